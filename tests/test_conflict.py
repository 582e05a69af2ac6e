"""A conflict in a rebase: what lies in the checkout, every way on, every way back."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import CASES, HOST, World, colleague, commit, edit, git, resolve, without_answers

KERNEL = "ggml/src/ggml-hexagon/htp/kernel.c"
NEEDS = "  - name: tests-add-a-case\n    needs: [hexagon-hook-a]\n"


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


def test_two_commits_on_one_conflict(clash: World) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash)
    clash.git("commit", "-q", "-m", "hexagon : hook A\n\nReworded.")
    messages = (
        *("fixup! hexagon : hook A", "Say it twice.\n\nFor good.", "Say it twice.\n\nFor good."),
        "squash! hexagon : hook A\n\nAnd once more.",
    )
    for message in messages:
        with (clash.checkout / HOST).open("a") as file:
            file.write("more\n")
        clash.git("commit", "-q", "-a", "-m", message)
    ran = clash.ok("rebase", "--continue")
    assert "hexagon-hook-a is made of 5 commits: `hexagon : hook A`, `fixup! hexa" in ran.err
    whole = "hexagon : hook A\n\nReworded.\n\nSay it twice.\n\nFor good.\n\nAnd once more."
    assert clash.git("log", "-1", "--format=%B", "HEAD~2").strip() == whole
    assert clash.status()["sync"] == "in sync"


def test_an_amending_commit_on_a_conflict(clash: World) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash)
    clash.git("commit", "-q", "-m", "hexagon : hook A")
    message = "amend! hexagon : hook A\n\nhexagon : hook AA\n\nWhy."
    clash.git("commit", "-q", "--allow-empty", "-m", message)
    clash.ok("rebase", "--continue")
    whole = clash.git("log", "-1", "--format=%B", "HEAD~2").strip()
    assert whole == "hexagon : hook AA\n\nWhy."


def test_a_commit_without_message_on_a_conflict(clash: World) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash)
    clash.git("commit", "-q", "--allow-empty-message", "-m", "")
    ran = clash.fails("rebase", "--continue", says="has no message")
    assert "git commit --amend" in ran.err
    clash.git("commit", "-q", "--amend", "-m", "hexagon : hook A")
    clash.ok("rebase", "--continue")


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


def swapped(world: World, first: dict[str, str], then: dict[str, str], link: str = "") -> None:
    """v4 conflicts with a patch on v1 that also turns the files `first` into those of `then`."""
    git(world.upstream, "checkout", "-q", "v1")
    for name, text in first.items():
        (world.upstream / name).parent.mkdir(parents=True, exist_ok=True)
        (world.upstream / name).write_text(text)
    if link:
        (world.upstream / link).symlink_to("nowhere")
    git(world.upstream, "add", "-A")
    git(world.upstream, "commit", "-qm", "first")
    git(world.upstream, "tag", "v3")
    edit(world.upstream / CASES, "case 20\n", "CASE TWENTY\n")
    git(world.upstream, "commit", "-qam", "shout")
    git(world.upstream, "tag", "v4")
    world.ok("rebase", "--onto", "v3")
    world.git("rm", "-qr", *first, *([link] if link else []))
    cases = (world.checkout / CASES).read_text().replace("case 20\n", "case zwanzig\n")
    commit(world, "tests : swap", **then, **{CASES: cases})
    world.ok("refresh")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "then", "link"),
    [
        ({"aa/b/x": "x\n", "aa/b/y": "y\n"}, {"aa/b": "file\n"}, ""),
        ({"aa": "file\n"}, {"aa/b/x": "x\n"}, ""),
        ({"keep": "k\n"}, {"aa/b/x": "x\n"}, "aa"),
        ({"aa/x": "x\n"}, {"bb/x": "xx\n"}, ""),
    ],
)
def test_a_folder_and_a_file_swap_beside_a_conflict(
    world: World, first: dict[str, str], then: dict[str, str], link: str
) -> None:
    """What is not in conflict lies in the checkout as the patch has it."""
    world.ok("apply")
    swapped(world, first, then, link)
    world.conflicts("rebase", "--onto", "v4", says="tests-swap needs you")
    for name, text in then.items():
        assert (world.checkout / name).read_text() == text
    assert not (world.checkout / "aa/b/y").exists()
    assert set(world.git("diff", "--name-only").splitlines()) == {CASES}
    assert (world.checkout / "aa").exists() == any(n.startswith("aa") for n in then)
    resolve(world, CASES, "CASE TWENTY\ncase zwanzig\n")
    world.ok("rebase", "--continue")
    for name, text in then.items():
        assert world.git("show", f"HEAD:{name}") + "\n" == text


def test_an_untracked_file_where_a_later_conflict_comes(two: World) -> None:
    """The last patch adds a file too; a person has notes of that name at the first stop."""
    two.ok("rebase", "--onto", "v1")
    commit(two, "tests : more", **{"tests/more": "m\n"})
    two.git("reset", "-q", "--soft", "HEAD~2")
    two.git("commit", "-qm", "tests : add a case")
    two.ok("refresh")
    two.conflicts("rebase", "--onto", "v3", says="hexagon-hook-a needs you")
    notes = two.checkout / "tests/more"
    notes.write_text("notes\n")
    resolve(two)
    ran = two.fails("rebase", "--continue", says="untracked files are in the way: tests/more")
    assert "run again" in ran.err
    assert notes.read_text() == "notes\n"
    notes.rename(two.root / "notes")
    two.conflicts("rebase", "--continue", says="tests-add-a-case needs you")
    assert notes.read_text() == "m\n"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["--skip", "--abort", "--continue"])
def test_a_file_of_upstream_where_the_patch_moves_one_below(stacked: World, way: str) -> None:
    """Upstream's file stays, in the index too, whatever becomes of the patch."""
    stacked.git("mv", "README.md", "notes")
    (stacked.checkout / "aa").mkdir()
    stacked.git("mv", "notes", "aa/README.md")
    commit(stacked, "tests : move")
    stacked.ok("refresh")
    before = stacked.world()
    (stacked.upstream / "aa").write_text("upstream's\n")
    git(stacked.upstream, "add", "-A")
    git(stacked.upstream, "commit", "-qm", "aa (#5)")
    stacked.conflicts("rebase", "--onto", "master", says="aa is in the way")
    assert (stacked.checkout / "aa").read_text() == "upstream's\n"
    assert stacked.git("ls-files", "aa", "-s").splitlines()[0].endswith(" 0\taa")
    if way == "--continue":
        stacked.git("rm", "-q", "--cached", "aa/README.md")
    stacked.ok("rebase", way)
    if way == "--abort":
        assert stacked.world() == before
    else:
        assert stacked.git("show", "HEAD:aa") == "upstream's"
        stacked.ok("undo")
        assert stacked.world() == before


@pytest.mark.slow
@pytest.mark.parametrize("way", ["--skip", "--abort", "--continue"])
def test_a_folder_with_files_of_upstream_that_the_patch_makes_a_file(
    stacked: World, way: str
) -> None:
    """Beside another conflict too, what upstream has added there stays."""
    cases = stacked.checkout / CASES
    edit(cases, "case 60\n", "case sixty\n")
    stacked.git("mv", "CMakeLists.txt", "CMakeLists")
    commit(stacked, "tests : move")
    stacked.ok("refresh")
    before = stacked.world()
    edit(stacked.upstream / CASES, "case 60\n", "CASE SIXTY\n")
    (stacked.upstream / "CMakeLists").mkdir()
    (stacked.upstream / "CMakeLists/more").write_text("upstream's\n")
    git(stacked.upstream, "add", "-A")
    git(stacked.upstream, "commit", "-qm", "more (#5)")
    stacked.conflicts("rebase", "--onto", "master", says="CMakeLists/more")
    assert (stacked.checkout / "CMakeLists/more").read_text() == "upstream's\n"
    assert stacked.git("ls-files", "-s", "CMakeLists/more").endswith(" 0\tCMakeLists/more")
    if way == "--continue":
        resolve(stacked, CASES, "CASE SIXTY, case sixty\n")
        stacked.git("update-index", "--force-remove", "CMakeLists")
    stacked.ok("rebase", way)
    if way == "--abort":
        assert stacked.world() == before
    else:
        assert stacked.git("show", "HEAD:CMakeLists/more") == "upstream's"
        stacked.ok("undo")
        assert without_answers(stacked) == before


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


def test_abort_for_a_script(clash: World) -> None:
    before = clash.status()
    clash.conflicts("rebase", "--onto", "v3")
    said = clash.ok("rebase", "--abort", "--json").json
    assert said == {"aborted": True, "tip": before["tip"], "tree": before["tree"]}


@pytest.mark.parametrize("how", ["--abort", "--skip"])
def test_a_committed_answer_that_is_left_is_named(clash: World, how: str) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash)
    clash.git("commit", "-q", "-m", "hexagon : hook A")
    made = clash.git("rev-parse", "HEAD")
    ran = clash.ok("rebase", how)
    assert f"the checkout's commits are kept as {made[:12]}" in ran.err
    assert "HOST TEN\nhook a\n" in clash.git("show", f"{made[:12]}:{HOST}")
    clash.ok("status")


@pytest.mark.parametrize("how", ["--abort", "--skip"])
def test_without_commits_of_a_person_nothing_is_named(two: World, how: str) -> None:
    two.conflicts("rebase", "--onto", "v3")
    resolve(two)
    two.conflicts("rebase", "--continue")
    assert "kept as" not in two.ok("rebase", how).err


def test_abort_where_nothing_was_ever_applied(clash: World, tmp_path: Path) -> None:
    other = colleague(clash, tmp_path)
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


def entry(world: World, name: str) -> str:
    """What series.yaml says of a patch."""
    text = (world.root / "series.yaml").read_text()
    return text.partition(f"  - name: {name}\n")[2].partition("  - name:")[0].partition("\n\n")[0]


def test_what_a_rebase_holds_a_later_one_brings_back(two: World) -> None:
    edit(two.upstream / CASES, "CASE TWENTY\n", "case 20\n")
    git(two.upstream, "commit", "-qam", "tests : whisper again (#9)")
    git(two.upstream, "tag", "v4")
    name = "  - name: tests-add-a-case\n"
    edit(two.root / "series.yaml", name, f"{name}    state: ready\n")
    start, tree = two.files(), two.status()["tree"]
    ran = two.fails("rebase", "-k", "--onto", "v3")
    assert "a later rebase brings back what fits" in ran.err
    for patch, state in (("hexagon-hook-a", ""), ("tests-add-a-case", "    state: ready\n")):
        assert entry(two, patch).startswith(f"{state}    held: v1")
    for command in (["rebase", "--onto", "v3"], ["check"], ["check", "--fresh"], ["apply"]):
        assert "revived" not in two.ok(*command).out
    said = two.fails("build", "--upto", "tests-add-a-case", says="tests-add-a-case is on hold")
    assert "`--upto hexagon-add-a-kernel`" in said.err

    # the first of them fits on v4 no better, the other does
    assert "on hold since v1, fits again" in two.ok("check", "--onto", "v4").out
    two.ok("rebase", "--onto", "v4")
    assert entry(two, "hexagon-hook-a").startswith("    held: v1")
    assert entry(two, "tests-add-a-case").startswith("    state: ready")
    assert "held" not in entry(two, "tests-add-a-case")
    assert "case new" in (two.checkout / CASES).read_text()
    assert two.status()["sync"] == "in sync"

    # where it came from it fits, and the files say what they said before
    two.ok("rebase", "--onto", "v1")
    assert two.status()["tree"] == tree
    assert two.files() == start
    two.conflicts("rebase", "--onto", "v3", says="hexagon-hook-a needs you")


def test_a_held_patch_comes_back_after_what_it_needs(clash: World) -> None:
    edit(clash.root / "series.yaml", "  - name: tests-add-a-case\n", NEEDS)
    clash.ok("apply")
    clash.fails("rebase", "-k", "--onto", "v3", says="hexagon-hook-a, tests-add-a-case")
    for base, status in (("v3", "hold"), ("v2", "revived")):
        ran = clash.ok("rebase", "--onto", base, "--json").json["patches"]
        assert [ran[0]["status"], ran[2]["status"]] == [status, status]


def test_a_held_patch_that_is_edited_to_fit(clash: World) -> None:
    clash.fails("rebase", "-k", "--onto", "v3", says="hexagon-hook-a")
    edit(clash.root / "patches/hexagon-hook-a.patch", " host 10\n", " HOST TEN\n")
    clash.ok("rebase", "--onto", "v3")
    assert "HOST TEN\nhook a\n" in (clash.checkout / HOST).read_text()
    assert "held" not in entry(clash, "hexagon-hook-a")


def test_the_word_held_taken_away_by_hand(clash: World) -> None:
    """It does not apply there; what the hint says to write leads to where it does."""
    clash.fails("rebase", "-k", "--onto", "v3")
    edit(clash.root / "series.yaml", "    held: v1\n", "")
    for command in (["apply"], ["check", "--onto", "v1"], ["rebase", "--onto", "v1"]):
        ran = clash.fails(*command)
    assert "hint: nothing was changed; edit patches/hexagon-hook-a.patch" in ran.err
    assert "write `held: REV` into its entry" in ran.err
    name = "  - name: hexagon-hook-a\n"
    edit(clash.root / "series.yaml", name, f"{name}    held: v2\n")
    clash.ok("rebase", "--onto", "v2")
    assert [p["state"] for p in clash.status()["patches"]] == ["draft"] * 3


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
