"""A conflict in a rebase: what lies in the checkout, every way on, every way back."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import World, commit, edit, git

HOST = "ggml/src/ggml-hexagon/ggml-hexagon.cpp"
CASES = "tests/test-backend-ops.cpp"
KERNEL = "ggml/src/ggml-hexagon/htp/kernel.c"
NEEDS = "  - name: tests-add-a-case\n    needs: [hexagon-hook-a]\n"


@pytest.fixture
def clash(stacked: World) -> World:
    """Upstream's v3 rewrites the lines next to hook a: the first of the three patches conflicts."""
    edit(stacked.upstream / HOST, "host 10\n", "HOST TEN\n")
    git(stacked.upstream, "commit", "-qam", "hexagon : shout (#3)")
    git(stacked.upstream, "tag", "v3")
    return stacked


@pytest.fixture
def two(clash: World) -> World:
    """v3 conflicts with the first patch, and with the last."""
    edit(clash.upstream / CASES, "case 20\n", "CASE TWENTY\n")
    git(clash.upstream, "commit", "-qam", "tests : shout (#4)")
    git(clash.upstream, "tag", "-f", "v3")
    return clash


def resolve(world: World, path: str = HOST, line: str = "HOST TEN\nhook a\n") -> None:
    """Replace the marked block by a person's text, and stage it."""
    file = world.checkout / path
    before, rest = file.read_text().split("<<<<<<< upstream\n")
    file.write_text(before + line + rest.partition(">>>>>>> ")[2].partition("\n")[2])
    world.git("add", path)


def without_answers(world: World) -> str:
    """The world but for the remembered resolutions, which an undo keeps."""
    return "\n".join(x for x in world.world().split("\n") if "patches/resolutions/" not in x)


# -- what waits -------------------------------------------------------------------------------


def test_the_checkout_shows_a_cherry_pick(clash: World) -> None:
    files = clash.files()
    ran = clash.conflicts("rebase", "--onto", "v3", says="hexagon-hook-a needs you")
    assert "hexagon : shout (#3)" in ran.out
    assert "hexpatch rebase --continue" in ran.err
    said = clash.git("status")
    assert "cherry-pick" in said
    assert f"both modified:   {HOST}" in said
    marked = (clash.checkout / HOST).read_text()
    assert "<<<<<<< upstream\nHOST TEN\n" in marked
    assert "hook a\n>>>>>>> hexagon-hook-a\n" in marked
    assert clash.git("show", "-s", "--format=%s", "CHERRY_PICK_HEAD") == "hexagon : hook a"
    assert clash.files() == files
    state = clash.status()
    assert state["waiting"] == {"patch": "hexagon-hook-a", "conflicts": [HOST]}
    assert "rebase waits: hexagon-hook-a" in clash.ok("status").out


def test_nothing_else_starts_meanwhile(clash: World, tmp_path: Path) -> None:
    mail = tmp_path / "x.patch"
    mail.write_bytes((clash.root / "patches/tests-add-a-case.patch").read_bytes())
    clash.conflicts("rebase", "--onto", "v3")
    before = clash.world()
    for command in (
        ["apply"],
        ["apply", "--force"],
        ["refresh"],
        ["new", "x", "-m", "tests : x"],
        ["import", str(mail)],
        ["drop", "tests-add-a-case"],
        ["undo"],
        ["export"],
        ["rebase", "--onto", "v2"],
    ):
        ran = clash.fails(*command, says="a rebase is waiting for you")
        assert "--continue`, `--skip` or `--abort`" in ran.err
    assert clash.world() == before
    for command in (["status"], ["series"], ["log"], ["check"]):
        clash.ok(*command)


def test_nothing_waits(stacked: World) -> None:
    for how in ("--continue", "--skip", "--abort"):
        stacked.fails("rebase", how, says="no rebase is waiting")


# -- ways on ----------------------------------------------------------------------------------


def test_continue_after_git_add(clash: World) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash)
    clash.ok("rebase", "--continue")
    state = clash.status()
    assert (state["base"]["name"], state["sync"], state["waiting"]) == ("v3", "in sync", None)
    assert clash.git("log", "--format=%s", "-3").splitlines()[-1] == "hexagon : hook a"
    assert "HOST TEN\n+hook a\n" in (clash.root / "patches/hexagon-hook-a.patch").read_text()
    assert clash.git("status", "--porcelain") == ""
    assert clash.git("symbolic-ref", "HEAD") == "refs/heads/stack"
    assert "cherry-pick" not in clash.git("status")


def test_continue_with_unmerged_paths(clash: World) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    before = clash.world()
    ran = clash.fails("rebase", "--continue", says=f"hexagon-hook-a still has conflicts: {HOST}")
    assert "`git add` them" in ran.err
    assert clash.world() == before


def test_continue_with_marks_that_were_added_unseen(clash: World) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    clash.git("add", HOST)
    clash.fails("rebase", "--continue", says=f"conflict marks: {HOST}")
    clash.git("commit", "-qam", "hexagon : hook a")
    clash.fails("rebase", "--continue", says=f"conflict marks: {HOST}")
    resolve(clash)
    clash.git("commit", "-q", "--amend", "--no-edit")
    clash.ok("rebase", "--continue")


def test_continue_with_marks_that_git_made_again(clash: World) -> None:
    """`git checkout -m` labels them ours and theirs, zdiff3 shows the base too."""
    for style in ("merge", "diff3"):
        clash.conflicts("rebase", "--onto", "v3")
        resolve(clash)
        clash.git("checkout", "-q", "-m", f"--conflict={style}", HOST)
        assert "<<<<<<< ours" in (clash.checkout / HOST).read_text()
        clash.git("add", HOST)
        clash.fails("rebase", "--continue", says=f"conflict marks: {HOST}")
        clash.ok("rebase", "--abort")


@pytest.mark.parametrize("left", ["<<<<<<< x\n", ">>>>>>> 1234 (x)\r\n", "||||||| base\n"])
def test_continue_with_one_mark_left(clash: World, left: str) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash, line=f"HOST TEN\nhook a\n{left}")
    clash.fails("rebase", "--continue", says=f"conflict marks: {HOST}")
    edit(clash.checkout / HOST, left.rstrip(), "// a shift: a <<<<<<< b")
    clash.git("add", HOST)
    clash.ok("rebase", "--continue")


def test_continue_with_marks_that_were_there_before(clash: World) -> None:
    """Upstream's text about merges, and a patch's, are no conflict left over."""
    text = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> topic\n"
    commit(clash, "docs : how to merge", MERGE=text)
    clash.ok("refresh")
    (clash.upstream / "MERGE").write_text(f"Upstream says:\n{text}")
    git(clash.upstream, "add", "-A")
    git(clash.upstream, "commit", "-qm", "docs : merging (#8)")
    clash.conflicts("rebase", "--onto", "master")
    resolve(clash)
    clash.conflicts("rebase", "--continue", says="docs-how-to-merge needs you")
    (clash.checkout / "MERGE").write_text(f"Upstream and we say:\n{text}")
    clash.git("add", "MERGE")
    clash.ok("rebase", "--continue")


def test_refresh_of_a_resolved_patch_with_marks(clash: World) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash)
    clash.ok("rebase", "--continue")
    marked = "hook a\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"
    clash.git("checkout", "-q", "HEAD~2")
    edit(clash.checkout / HOST, "hook a\n", marked)
    clash.git("commit", "-qa", "--amend", "--no-edit")
    clash.git("cherry-pick", "stack~1", "stack")
    clash.git("checkout", "-q", "-B", "stack")
    files = clash.files()
    ran = clash.fails("refresh", says=f"hexagon-hook-a has conflict marks: {HOST}")
    assert "git commit --amend" in ran.err
    assert clash.files() == files


def test_continue_with_edits_that_are_not_staged(clash: World) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash)
    edit(clash.checkout / HOST, "hook a\n", "hook A\n")
    clash.fails("rebase", "--continue", says=f"not staged: {HOST}")
    clash.git("add", HOST)
    clash.ok("rebase", "--continue")
    assert "hook A" in (clash.checkout / HOST).read_text()


def test_continue_with_nothing_left(clash: World) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash, line="HOST TEN\n")
    ran = clash.fails("rebase", "--continue", says="nothing is left of hexagon-hook-a")
    assert "--skip" in ran.err
    clash.ok("rebase", "--skip")
    assert [p["name"] for p in clash.status()["patches"]] == [
        "hexagon-add-a-kernel",
        "tests-add-a-case",
    ]


@pytest.mark.parametrize("how", ["commit", "cherry-pick"])
def test_plain_git_makes_the_commit(clash: World, how: str) -> None:
    old = clash.git("log", "-1", "--format=%an %ad", "HEAD~2")
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash)
    if how == "commit":
        clash.git("commit", "-q", "-m", "hexagon : hook A\n\nReworded.")
    else:
        clash.git("cherry-pick", "--continue", GIT_EDITOR="true")
    clash.ok("rebase", "--continue")
    first = clash.git("log", "-1", "--format=%an %ad", "HEAD~2")
    assert first == old
    subject = clash.git("log", "-1", "--format=%s", "HEAD~2")
    assert subject == ("hexagon : hook A" if how == "commit" else "hexagon : hook a")
    assert clash.status()["sync"] == "in sync"


def test_a_commit_with_leftovers_on_top(clash: World) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash)
    clash.git("commit", "-q", "--no-edit")
    edit(clash.checkout / HOST, "hook a\n", "hook A\n")
    clash.fails("rebase", "--continue", says="uncommitted changes on top")
    clash.git("commit", "-q", "-a", "--amend", "--no-edit")
    clash.ok("rebase", "--continue")


@pytest.mark.parametrize("how", ["--abort", "--skip"])
def test_git_cherry_pick_gives_up(clash: World, how: str) -> None:
    before = clash.world()
    clash.conflicts("rebase", "--onto", "v3")
    clash.git("cherry-pick", how)
    clash.fails("rebase", "--continue", says="nothing is left of hexagon-hook-a")
    clash.ok("rebase", "--abort")
    assert clash.world() == before


def test_skip_drops_the_patch(clash: World) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    ran = clash.ok("rebase", "--skip")
    assert "skipped" in ran.out
    assert not (clash.root / "patches/hexagon-hook-a.patch").exists()
    assert "hexagon-hook-a" not in (clash.root / "series.yaml").read_text()
    assert clash.status()["sync"] == "in sync"
    clash.ok("undo")
    assert (clash.root / "patches/hexagon-hook-a.patch").exists()


def test_skip_a_patch_that_another_needs(clash: World) -> None:
    edit(clash.root / "series.yaml", "  - name: tests-add-a-case\n", NEEDS)
    clash.ok("apply")
    clash.conflicts("rebase", "--onto", "v3")
    ran = clash.conflicts("rebase", "--skip", says="tests-add-a-case needs you")
    assert "needs hexagon-hook-a" in ran.out
    clash.ok("rebase", "--skip")
    assert [p["name"] for p in clash.status()["patches"]] == ["hexagon-add-a-kernel"]


def test_several_conflicts(two: World) -> None:
    before = two.world()
    two.conflicts("rebase", "--onto", "v3", says="hexagon-hook-a needs you")
    resolve(two)
    two.conflicts("rebase", "--continue", says="tests-add-a-case needs you")
    assert two.git("log", "-2", "--format=%s").splitlines() == [
        "hexagon : add a kernel",
        "hexagon : hook a",
    ]
    resolve(two, CASES, "CASE TWENTY\ncase new\n")
    two.ok("rebase", "--continue")
    assert two.git("rev-list", "--count", "HEAD~3..") == "3"
    assert len(two.ok("log", "--json").json) == 4
    two.ok("undo")
    assert without_answers(two) == before


def test_skip_then_abort(two: World) -> None:
    before = two.world()
    two.conflicts("rebase", "--onto", "v3")
    two.conflicts("rebase", "--skip", says="tests-add-a-case needs you")
    assert "hook a" not in (two.checkout / HOST).read_text()
    two.ok("rebase", "--abort")
    assert two.world() == before


def test_the_series_is_edited_meanwhile(clash: World) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash)
    edit(clash.root / "src/htp/kernel.c", "return 1", "return 2")
    ran = clash.fails("rebase", "--continue", says="have changed since the rebase stopped")
    assert "--abort" in ran.err
    edit(clash.root / "src/htp/kernel.c", "return 2", "return 1")
    edit(clash.root / "series.yaml", "patches:\n", "patches:\n  # a remark\n")
    clash.ok("rebase", "--continue")
    assert "  # a remark\n" in (clash.root / "series.yaml").read_text()


# -- ways back --------------------------------------------------------------------------------


def test_abort_takes_all_back(clash: World) -> None:
    before, log = clash.world(), clash.ok("log").out
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash)
    (clash.checkout / "notes.txt").write_text("untracked\n")
    clash.ok("rebase", "--abort")
    assert (clash.checkout / "notes.txt").read_text() == "untracked\n"
    (clash.checkout / "notes.txt").unlink()
    assert (clash.world(), clash.ok("log").out) == (before, log)


def test_abort_where_nothing_was_ever_applied(clash: World, tmp_path: Path) -> None:
    colleague = tmp_path / "colleague"
    for name, data in clash.files().items():
        target = colleague / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    other = World(colleague, clash.upstream)
    other.conflicts("rebase", "--onto", "v3")
    other.ok("rebase", "--abort")
    assert other.status()["sync"] == "not applied yet"
    other.ok("apply")
    assert other.world() == clash.world()


def test_the_checkout_was_moved_elsewhere(clash: World) -> None:
    before = clash.world()
    clash.conflicts("rebase", "--onto", "v3")
    clash.git("checkout", "-q", "-f", "stack")
    clash.fails("rebase", "--continue", says="which is not built on")
    clash.ok("rebase", "--abort")
    assert clash.world() == before


# -- kinds of conflict ------------------------------------------------------------------------


def test_upstream_adds_a_file_of_the_same_name(stacked: World) -> None:
    (stacked.upstream / KERNEL).write_text("int kernel(void) {\n    return 7;\n}\n")
    git(stacked.upstream, "add", "-A")
    git(stacked.upstream, "commit", "-qm", "hexagon : a kernel too (#5)")
    stacked.conflicts("rebase", "--onto", "master", says="hexagon-add-a-kernel needs you")
    assert f"both added:      {KERNEL}" in stacked.git("status")
    assert "<<<<<<< upstream" in (stacked.checkout / KERNEL).read_text()
    resolve(stacked, KERNEL, "    return 8;\n")
    stacked.ok("rebase", "--continue")
    # it exists at the base now, so the patch has hunks for it
    assert not (stacked.root / "src/htp/kernel.c").exists()
    patch = (stacked.root / "patches/hexagon-add-a-kernel.patch").read_text()
    assert "-    return 7;\n+    return 8;\n" in patch
    assert stacked.status()["sync"] == "in sync"
    stacked.ok("undo")
    assert (stacked.root / "src/htp/kernel.c").exists()


@pytest.mark.parametrize("answer", ["keep", "delete"])
def test_upstream_deletes_the_file(stacked: World, answer: str) -> None:
    git(stacked.upstream, "rm", "-q", CASES)
    git(stacked.upstream, "commit", "-qm", "tests : remove (#6)")
    stacked.conflicts("rebase", "--onto", "master", says="tests-add-a-case needs you")
    assert f"deleted by us:   {CASES}" in stacked.git("status")
    if answer == "delete":
        stacked.git("rm", "-q", CASES)
        stacked.fails("rebase", "--continue", says="nothing is left")
        return
    stacked.git("add", CASES)
    stacked.ok("rebase", "--continue")
    assert "case new" in (stacked.checkout / CASES).read_text()
    # upstream has no such file any more: it is the patch's own now
    assert (stacked.root / "src" / CASES).exists() or "new file" in (
        stacked.root / "patches/tests-add-a-case.patch"
    ).read_text()
    assert stacked.status()["sync"] == "in sync"


def test_lines_that_are_there_already_are_for_a_person_to_judge(stacked: World) -> None:
    block = "static void hexagon_hook(void);\nstatic void hexagon_hook_two(void);\n"
    edit(stacked.checkout / HOST, "host 40\n", f"host 40\n{block}")
    commit(stacked, "hexagon : declare hooks")
    stacked.ok("refresh")
    edit(stacked.upstream / HOST, "host 55\n", f"host 55\n{block}")
    git(stacked.upstream, "commit", "-qam", "hexagon : the same lines elsewhere (#7)")
    says = "hexagon-declare-hooks needs you: look at it"
    stacked.conflicts("rebase", "--onto", "master", says=says)
    assert stacked.git("diff", "--cached", "--stat").startswith(HOST)
    stacked.ok("rebase", "--continue")
    assert (stacked.checkout / HOST).read_text().count("hexagon_hook_two") == 2


# -- going on without a person ------------------------------------------------------------------


def test_keep_going_puts_on_hold(two: World) -> None:
    ran = two.fails("rebase", "--onto", "v3", "--keep-going", says="on hold, not in the stack now")
    assert "hexagon-hook-a, tests-add-a-case" in ran.err
    assert "hold" in ran.out
    states = {p["name"]: p["state"] for p in two.status()["patches"]}
    assert states == {
        "hexagon-hook-a": "hold",
        "hexagon-add-a-kernel": "draft",
        "tests-add-a-case": "hold",
    }
    assert (two.root / "patches/hexagon-hook-a.patch").exists()
    assert two.status()["sync"] == "in sync"
    two.ok("apply")
    # those that were on hold before are no news
    two.ok("rebase", "--onto", "v3", "--keep-going")


def test_keep_going_from_a_stop(two: World) -> None:
    two.conflicts("rebase", "--onto", "v3")
    resolve(two)
    two.fails("rebase", "--continue", "--keep-going", says="on hold")
    states = {p["name"]: p["state"] for p in two.status()["patches"]}
    assert states["hexagon-hook-a"] == "draft"
    assert states["tests-add-a-case"] == "hold"


def test_resolutions_are_remembered(two: World, tmp_path: Path) -> None:
    before = two.world()
    two.conflicts("rebase", "--onto", "v3")
    resolve(two)
    two.conflicts("rebase", "--continue")
    resolve(two, CASES, "CASE TWENTY\ncase new\n")
    two.ok("rebase", "--continue")
    after = two.world()
    kept = sorted((two.root / "patches/resolutions").iterdir())
    assert len(kept) == 4  # two, and what the way back would ask
    assert "+hook a\n" in "".join(p.read_text() for p in kept)
    saved = {p.name: p.read_bytes() for p in kept}

    # with them, here or in a colleague's clone, it is no conflict any more
    two.ok("undo")
    assert {p.name: p.read_bytes() for p in kept} == saved  # an undo does not forget answers
    assert without_answers(two) == before
    colleague = tmp_path / "colleague"
    for name, data in two.files().items():
        target = colleague / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    other = World(colleague, two.upstream)
    dry = other.ok("rebase", "--onto", "v3", "--dry-run", "--json").json["patches"]
    real = other.ok("rebase", "--onto", "v3", "--json").json["patches"]
    rows = [(p["name"], p["status"], p["detail"]) for p in dry]
    assert rows == [(p["name"], p["status"], p["detail"]) for p in real]
    assert [p["status"] for p in real] == ["resolved", "three-way", "resolved"]
    other.ok("apply")
    assert other.world() == after


def test_there_and_back_is_resolved_once(two: World) -> None:
    """Back at the base the stack is what it was, and the next way there asks nothing either."""
    old, tree = two.status()["base"]["name"], two.status()["tree"]
    two.conflicts("rebase", "--onto", "v3")
    resolve(two)
    two.conflicts("rebase", "--continue")
    resolve(two, CASES, "CASE TWENTY\ncase new\n")
    two.ok("rebase", "--continue")
    there = two.status()["tree"]
    kept = sorted((two.root / "patches/resolutions").iterdir())
    back = two.ok("rebase", "--onto", old, "--json").json["patches"]
    assert "resolved" in [p["status"] for p in back]
    assert two.status()["tree"] == tree
    two.ok("rebase", "--onto", "v3")
    assert two.status()["tree"] == there
    assert sorted((two.root / "patches/resolutions").iterdir()) == kept


def test_dry_run_predicts(two: World) -> None:
    before = two.world()
    dry = two.fails("rebase", "--onto", "v3", "--dry-run", "--json").json
    assert two.world() == before
    real = two.conflicts("rebase", "--onto", "v3", "--json").json
    keys = ("name", "status", "detail")
    assert [[p[k] for k in keys] for p in dry["patches"]] == [
        [p[k] for k in keys] for p in real["patches"]
    ]
    two.ok("rebase", "--abort")
    going = two.fails("rebase", "--onto", "v3", "--keep-going", "--json").json
    stopped = [p["name"] for p in going["patches"] if p["status"] == "hold"]
    assert stopped == [p["name"] for p in dry["patches"] if p["status"] == "conflict"]
