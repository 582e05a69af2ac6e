"""undo and log: further back, forward again, and never out of reach."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import World, commit, edit, git, hexpatch

KERNEL = "src/htp/kernel.c"


def ids(world: World) -> list[str]:
    """Ids of the operations, newest first."""
    return [e["id"] for e in world.ok("log", "--json").json]


def test_further_and_further_back(stacked: World) -> None:
    worlds = []
    for command in (
        ["rebase", "--onto", "v2"],
        ["drop", "tests-add-a-case"],
        ["rebase", "--onto", "v1"],
    ):
        worlds.append(stacked.world())
        stacked.ok(*command)
    for before in reversed(worlds):
        stacked.ok("undo")
        assert stacked.world() == before


def test_an_undo_by_id_is_redo(stacked: World) -> None:
    before = stacked.world()
    stacked.ok("rebase", "--onto", "v2")
    after = stacked.world()
    stacked.ok("undo")
    assert stacked.world() == before
    stacked.ok("undo", ids(stacked)[0])
    assert stacked.world() == after
    # the rebase is in force again, so it is what a plain undo takes back
    stacked.ok("undo")
    assert stacked.world() == before


def test_undo_names_what_it_undid(stacked: World) -> None:
    stacked.ok("rebase", "--onto", "v2")
    op = ids(stacked)[0]
    assert stacked.ok("undo").out == f"undid {op[:12]}  hexpatch rebase --onto v2\n"
    newest = stacked.ok("log", "--json").json[0]
    assert (newest["command"], newest["note"]) == ("hexpatch undo", f"undoes {op[:12]}")


def test_an_older_operation_by_its_id(stacked: World) -> None:
    before = stacked.world()
    stacked.ok("drop", "tests-add-a-case")
    op = ids(stacked)[0]
    stacked.ok("rebase", "--onto", "v2")
    stacked.ok("undo", op[:10])
    assert stacked.world() == before


def test_an_unknown_id(stacked: World) -> None:
    before = stacked.world()
    ran = stacked.fails("undo", "ffffffffffff", says="no operation ffffffffffff in the log")
    assert "`hexpatch log`" in ran.err
    assert stacked.world() == before


def test_the_first_apply_is_taken_back_whole(world: World) -> None:
    before = world.world()
    world.ok("apply")
    assert world.checkout.exists()
    after = world.world()
    world.ok("undo")
    assert not world.checkout.exists()
    assert world.world() == before
    world.ok("undo", ids(world)[0])
    assert world.world() == after


def test_the_first_apply_is_taken_back_but_for_a_persons_files(world: World) -> None:
    world.ok("apply")
    (world.checkout / "notes.txt").write_text("mine\n")
    world.ok("undo")
    assert (world.checkout / "notes.txt").read_text() == "mine\n"
    assert world.status()["sync"] == "not applied yet"
    world.ok("apply")
    assert (world.checkout / "notes.txt").read_text() == "mine\n"


def test_init_is_taken_back_and_again(world: World) -> None:
    yaml = (world.root / "series.yaml").read_bytes()
    world.ok("undo")
    assert not (world.root / "series.yaml").exists()
    world.fails("status", says="hexpatch init")
    world.ok("undo", ids(world)[0])
    assert (world.root / "series.yaml").read_bytes() == yaml
    world.ok("undo")
    world.fails("undo", says="nothing to undo")
    world.ok("init", "--repo", str(world.upstream), "--base", "v2")


def test_hand_edits_stay_within_reach(stacked: World) -> None:
    edit(stacked.root / KERNEL, "return 1", "return 99")
    made = commit(stacked, "tests : a note", tests__note="x\n")
    stacked.ok("undo")  # of the refresh: back to before there was a kernel
    assert not (stacked.root / KERNEL).exists()
    git(stacked.root / ".hexpatch/upstream.git", "gc", "-q", "--prune=now")
    stacked.ok("undo", ids(stacked)[0])
    assert "return 99" in (stacked.root / KERNEL).read_text()
    assert stacked.git("rev-parse", "HEAD") == made


def test_commits_on_a_detached_head_stay_within_reach(stacked: World) -> None:
    stacked.git("checkout", "-q", "--detach")
    made = commit(stacked, "tests : a note", tests__note="x\n")
    stacked.ok("undo")
    git(stacked.root / ".hexpatch/upstream.git", "gc", "-q", "--prune=now")
    assert stacked.git("cat-file", "-t", made) == "commit"


def test_uncommitted_work_is_not_overwritten(stacked: World) -> None:
    stacked.ok("rebase", "--onto", "v2")
    edit(stacked.checkout / "README.md", "tiny", "TINY")
    stacked.fails("undo", says="uncommitted changes: README.md")
    assert "TINY" in (stacked.checkout / "README.md").read_text()


def test_undo_where_a_person_did_it_already(stacked: World) -> None:
    """Nothing is left to restore, and still the next undo goes further back."""
    edit(stacked.root / KERNEL, "return 1", "return 2")
    stacked.ok("apply")
    stacked.ok("undo")
    first = ids(stacked)[0]
    stacked.ok("undo")
    assert ids(stacked)[0] != first
    assert not (stacked.root / KERNEL).exists()


def test_undo_without_a_checkout(stacked: World) -> None:
    files = stacked.files()
    stacked.ok("rebase", "--onto", "v2")
    shutil.rmtree(stacked.checkout)
    stacked.ok("undo")
    assert stacked.files() == files
    stacked.ok("apply")
    assert stacked.status()["sync"] == "in sync"


def test_branches_of_a_person_are_left_alone(stacked: World) -> None:
    stacked.git("branch", "topic")
    stacked.ok("rebase", "--onto", "v2")
    made = stacked.git("commit-tree", "-m", "mine", "HEAD^{tree}")
    stacked.git("branch", "-f", "topic", made)
    stacked.ok("undo")
    assert stacked.git("rev-parse", "topic") == made


def test_log_is_empty_before_anything_happened(world: World) -> None:
    shutil.rmtree(world.root / ".hexpatch")
    assert "no operations yet" in world.ok("log").err
    world.fails("undo", says="nothing to undo")


# -- standing in the checkout -----------------------------------------------------------------


@pytest.mark.parametrize("below", ["", "ggml/src"])
def test_the_first_apply_is_taken_back_from_inside(world: World, below: str) -> None:
    world.ok("apply")
    ran = hexpatch(world.checkout / below, "undo")
    assert ran.code == 0, ran.err
    assert world.git("rev-parse", "HEAD") == git(world.upstream, "rev-parse", "v1")
    assert world.git("branch", "--show-current") == ""
    ran = hexpatch(world.checkout / below, "status")
    assert "not applied yet" in ran.out
    assert ran.err.count("killed") == 0
    world.ok("apply")


def test_a_folder_that_only_the_stack_had(stacked: World) -> None:
    """The step ends well even where it takes away the folder that a person stands in."""
    (stacked.checkout / "extra").mkdir()
    commit(stacked, "hexagon : a folder", **{"extra/file": "x\n"})
    stacked.ok("refresh")
    before = Path.cwd()
    try:
        # the test's own way back would fail here: chdir again after
        os.chdir(stacked.checkout / "extra")
        code = "import sys; from hexpatch.__main__ import main; sys.exit(main())"
        for command, says in ((["drop", "hexagon-a-folder"], "dropped"), (["status"], "is gone")):
            done = subprocess.run(
                [sys.executable, "-c", code, *command], capture_output=True, text=True, check=False
            )
            assert says in done.stdout + done.stderr
            assert "Traceback" not in done.stderr
        assert "the current folder is gone" in done.stderr
        assert "hint: `cd`" in done.stderr
    finally:
        os.chdir(before)
    assert stacked.status()["sync"] == "in sync"


def test_a_step_that_fails_is_taken_back(stacked: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from hexpatch.checkout import Checkout
    from hexpatch.errors import HexpatchError

    def fails(*_: object, **__: object) -> None:
        raise HexpatchError("the disk is full")

    before, operations = stacked.world(), ids(stacked)
    with monkeypatch.context() as patched:
        patched.setattr(Checkout, "move", fails)
        ran = stacked.fails("rebase", "--onto", "v2", says="the disk is full")
    assert "`hexpatch rebase --onto v2` was taken back" in ran.err
    assert not (stacked.root / ".hexpatch/journal.json").exists()
    assert (stacked.world(), ids(stacked)) == (before, operations)
    stacked.ok("rebase", "--onto", "v2")


def test_a_file_that_git_cannot_write(stacked: World) -> None:
    """The other files of the step are taken back too, in the series and in the checkout."""
    before, operations = stacked.world(), ids(stacked)
    store = stacked.root / ".hexpatch/upstream.git"
    git(store, "config", "filter.full.smudge", "false")
    git(store, "config", "filter.full.required", "true")
    (store / "info").mkdir(exist_ok=True)
    (store / "info/attributes").write_text("zzz filter=full\n")
    patch = stacked.root / "patches/tests-add-a-case.patch"
    old = patch.read_bytes()
    more = b""
    for name in ("aaa", "zzz"):
        more += f"""diff --git a/{name} b/{name}
new file mode 100644
--- /dev/null
+++ b/{name}
@@ -0,0 +1 @@
+x
""".encode()
    at = old.index(b"diff --git ")
    patch.write_bytes(old[:at] + more + old[at:])
    for _ in range(2):
        ran = stacked.fails("apply", says="zzz: smudge filter full failed")
        assert "was taken back" in ran.err
        assert stacked.git("status", "--porcelain") == ""
        assert not (stacked.checkout / "aaa").exists()
    patch.write_bytes(old)
    stacked.ok("status")
    assert (stacked.world(), ids(stacked)) == (before, operations)


def test_a_continue_that_fails_still_waits(stacked: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The half-merged files, and what a person made of them, are there again."""
    from hexpatch.errors import HexpatchError
    from hexpatch.repo import Repo

    cases = "tests/test-backend-ops.cpp"
    edit(stacked.upstream / cases, "case 20\n", "case TWENTY\n")
    git(stacked.upstream, "commit", "-qam", "tests : shout (#4)")
    stacked.conflicts("rebase", "--onto", "master")
    (stacked.checkout / cases).write_text("mine\n")
    before = stacked.git("status", "--porcelain=v2"), stacked.git("diff")

    def fails(*_: object, **__: object) -> None:
        raise HexpatchError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Repo, "update_refs", fails)
        stacked.fails("rebase", "--abort", says="the disk is full")
    assert stacked.status()["waiting"]
    assert (stacked.git("status", "--porcelain=v2"), stacked.git("diff")) == before
    assert (stacked.checkout / cases).read_text() == "mine\n"
    stacked.ok("rebase", "--abort")


# -- always a state that was -----------------------------------------------------------------


def test_base_tip_and_branch_come_back_together(world: World) -> None:
    """Whatever was undone in whatever order, a commit in the checkout can be refreshed."""
    world.ok("apply")
    first = ids(world)[0]
    world.ok("new", "x", "-m", "a : b", "--allow-empty")
    made = ids(world)[0]
    for target in (first, first, made, made):
        world.ok("undo", target)
        refs = git(world.root / ".hexpatch/upstream.git", "for-each-ref", "--format=%(refname)")
        stack = {"refs/heads/stack", "refs/hexpatch/base", "refs/hexpatch/tip"} & set(refs.split())
        assert len(stack) in (0, 3)
        if not stack:
            world.ok("apply")
        count = len(ids(world))
        world.ok("apply")
        assert len(ids(world)) == count
        commit(world, "tests : a note", tests__note=f"{target} {count}\n")
        world.ok("refresh")
        assert world.status()["sync"] == "in sync"


def test_after_an_undo_by_id_what_came_later_is_undone_too(world: World) -> None:
    before = world.world()
    world.ok("apply")
    first = ids(world)[0]
    world.ok("new", "x", "-m", "a : b", "--allow-empty")
    after = world.world()
    world.ok("undo", first)
    assert world.world() == before
    redo = ids(world)[0]
    assert "hexpatch init" in world.ok("undo").out  # further back, never forward
    world.fails("undo", says="nothing to undo")
    world.ok("undo", redo)
    assert world.world() == after
    assert "hexpatch new" in world.ok("undo").out


def test_refs_that_later_operations_made_go_too(stacked: World) -> None:
    commit(stacked, "tests : a note", tests__note="x\n")
    stacked.ok("refresh")
    op = ids(stacked)[0]
    before = stacked.status()["tip"]
    stacked.ok("rebase", "--onto", "v2")
    stacked.ok("drop", "tests-a-note")
    stacked.ok("undo", op)
    assert stacked.status()["base"]["name"] == "v1"
    assert stacked.git("rev-parse", "HEAD") == before
    assert stacked.status()["sync"].startswith("commits have changed")
    stacked.ok("refresh")
    assert stacked.git("rev-parse", "HEAD") == before


# -- nothing is lost --------------------------------------------------------------------------


def test_commits_that_are_not_in_files_are_named(stacked: World) -> None:
    stacked.ok("rebase", "--onto", "v2")
    made = commit(stacked, "tests : a note", tests__note="x\n")
    assert f"the checkout's commits are kept as {made[:12]}" in stacked.ok("undo").err
    git(stacked.root / ".hexpatch/upstream.git", "gc", "-q", "--prune=now")
    stacked.git("cherry-pick", made)
    stacked.ok("refresh")


def test_commits_stay_where_the_stack_does_not_move(stacked: World) -> None:
    (stacked.root / "series.lock").unlink()
    stacked.ok("apply")
    made = commit(stacked, "tests : a note", tests__note="x\n")
    ran = stacked.ok("undo")
    assert "hexpatch apply" in ran.out
    assert "kept" not in ran.err
    assert stacked.git("rev-parse", "stack") == made


@pytest.mark.parametrize("more", [False, True])
def test_what_new_took_is_uncommitted_again(stacked: World, more: bool) -> None:
    cases = stacked.checkout / "tests/test-backend-ops.cpp"
    edit(cases, "case 60\n", "case sixty\n")
    (stacked.checkout / "notes").write_text("mine\n")
    old = stacked.git("rev-parse", "HEAD")
    stacked.ok("new", "-A", "sixty", "-m", "tests : sixty")
    after = stacked.world()
    if more:
        edit(cases, "case 70\n", "case seventy\n")
    stacked.ok("undo")
    assert stacked.git("rev-parse", "HEAD", "stack").split() == [old, old]
    assert stacked.git("status", "--porcelain").split("\n") == [
        "M tests/test-backend-ops.cpp",
        "?? notes",
    ]
    assert ("case seventy" in cases.read_text()) == more
    assert "case sixty" in cases.read_text()
    stacked.fails("undo", says="uncommitted changes")
    stacked.ok("undo", ids(stacked)[0])  # redo
    if more:
        edit(cases, "case seventy\n", "case 70\n")
    assert stacked.world() == after
    stacked.ok("undo")
    stacked.ok("new", "-A", "sixty", "-m", "tests : sixty")
    assert stacked.world() == after


def test_redo_of_new_where_its_changes_are_gone(stacked: World) -> None:
    edit(stacked.checkout / "README.md", "tiny", "TINY")
    stacked.ok("new", "tiny", "-m", "docs : tiny")
    after = stacked.world()
    stacked.ok("undo")
    stacked.git("checkout", "-q", ".")
    stacked.ok("undo", ids(stacked)[0])
    assert stacked.world() == after


def test_a_branch_for_export_with_a_persons_commits_stays(stacked: World) -> None:
    edit(
        stacked.root / "series.yaml",
        "groups: []",
        "groups:\n  - name: hook\n    patches: [hexagon-hook-a]",
    )
    stacked.ok("export")
    store = stacked.root / ".hexpatch/upstream.git"
    (branch,) = (
        r
        for r in git(store, "for-each-ref", "--format=%(refname)", "refs/heads").split()
        if r != "refs/heads/stack"
    )
    made = stacked.git("commit-tree", "-m", "mine", "-p", branch, f"{branch}^{{tree}}")
    git(store, "update-ref", branch, made)
    ran = stacked.ok("undo")
    assert f"branch {branch.removeprefix('refs/heads/')} has commits of yours" in ran.err
    assert git(store, "rev-parse", branch) == made


# -- what an undo needs, and what it leaves alone ----------------------------------------------


def test_undo_to_a_base_that_is_gone(stacked: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clone lent it, and its `gc` has dropped it."""
    from hexpatch.repo import Repo

    base = git(stacked.upstream, "rev-parse", "v1")
    stacked.ok("rebase", "--onto", "v2")
    before, exists = stacked.world(), Repo.existing
    monkeypatch.setattr(Repo, "existing", lambda repo, oids: exists(repo, oids) - {base})
    ran = stacked.fails("undo", says=f"{base} (base v1) is not in the store any more")
    assert "hint: fetch it into the clone" in ran.err
    monkeypatch.undo()
    assert stacked.world() == before


def test_undo_leaves_what_no_operation_made(stacked: World) -> None:
    (stacked.root / "src/mine.c").write_text("int mine;\n")
    (stacked.root / "patches/notes.txt").write_text("note\n")
    stacked.ok("drop", "tests-add-a-case")
    (stacked.root / "src/later.c").write_text("int later;\n")
    edit(stacked.root / KERNEL, "return 1", "return 3")
    stacked.ok("undo")
    assert "return 3" in (stacked.root / KERNEL).read_text()  # the drop had not touched it
    stacked.ok("undo")
    assert (stacked.root / "src/mine.c").read_text() == "int mine;\n"
    assert (stacked.root / "src/later.c").read_text() == "int later;\n"
    assert (stacked.root / "patches/notes.txt").read_text() == "note\n"
    assert not (stacked.root / KERNEL).exists()


def test_a_hand_edit_that_an_undo_overwrites_is_kept(stacked: World) -> None:
    edit(stacked.root / KERNEL, "return 1", "return 99")
    ran = stacked.ok("undo")  # of the refresh that made it
    kept = stacked.root / ".hexpatch/rescued" / KERNEL
    assert f"{KERNEL} was edited by hand; your version is kept as {kept}" in ran.err
    assert "return 99" in kept.read_text()
    assert ran.err.count("kept as") == 1


@pytest.mark.parametrize("text", ["{}", "{", "[]"])
def test_a_damaged_pending(stacked: World, text: str) -> None:
    edit(stacked.upstream / "tests/test-backend-ops.cpp", "case 20\n", "case TWENTY\n")
    git(stacked.upstream, "commit", "-qam", "tests : shout (#4)")
    before = stacked.world()
    stacked.conflicts("rebase", "--onto", "master")
    (stacked.root / ".hexpatch/pending.json").write_text(text)
    for command in (["status"], ["rebase", "--continue"], ["rebase", "--skip"]):
        ran = stacked.fails(*command, says="pending.json is damaged")
        assert "`hexpatch rebase --abort`" in ran.err
    stacked.ok("rebase", "--abort")
    assert stacked.world() == before


def test_a_new_file_becomes_a_folder_and_a_file_again(stacked: World) -> None:
    """One path of src/ is a file before and a folder after: refresh and undo go both ways."""
    kernel = stacked.checkout / "ggml/src/ggml-hexagon/htp/kernel.c"
    before, text = stacked.files(), kernel.read_text()
    kernel.unlink()
    kernel.mkdir()
    (kernel / "part.c").write_text(text)
    commit(stacked, "hexagon : kernel in parts")
    stacked.git("reset", "-q", "--soft", "HEAD~3")
    stacked.git("commit", "-qm", "hexagon : all of it")
    stacked.ok("refresh")
    assert (stacked.root / "src/htp/kernel.c/part.c").read_text() == text
    parts = stacked.files()
    stacked.ok("undo")
    assert stacked.files() == before
    stacked.ok("undo", str(stacked.ok("log", "--json").json[0]["id"]))
    assert stacked.files() == parts
    shutil.rmtree(kernel)
    kernel.write_text(text)
    stacked.git("add", "-A")
    stacked.git("commit", "-q", "--amend", "--no-edit")
    stacked.ok("refresh")
    assert (stacked.root / "src/htp/kernel.c").read_text() == text
