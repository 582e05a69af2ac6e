"""Files to commits: where they go, what is refused, what is kept when something is dropped."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HOST, World, commit, edit, git

from hexpatch import series

KERNEL = "src/htp/kernel.c"


def tip(world: World) -> str:
    return str(world.ok("apply", "--json").json["tip"])


def clone_of(world: World, folder: Path) -> World:
    """The series' files alone, as a colleague gets them."""
    folder.mkdir()
    for name, data in world.files().items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return World(folder, world.upstream)


# -- the same everywhere ----------------------------------------------------------------------


def test_a_colleague_gets_the_same_ids(stacked: World, tmp_path: Path) -> None:
    other = clone_of(stacked, tmp_path / "other")
    assert tip(other) == tip(stacked)
    assert other.files() == stacked.files()


def test_a_second_apply_changes_nothing(stacked: World) -> None:
    before, log = stacked.world(), stacked.ok("log").out
    assert stacked.ok("apply", "--json").out == stacked.ok("apply", "--json").out
    assert (stacked.world(), stacked.ok("log").out) == (before, log)


def test_without_hexpatch_folder_the_files_are_enough(stacked: World) -> None:
    before = stacked.world()
    shutil.rmtree(stacked.root / ".hexpatch")
    assert "not applied yet" in stacked.ok("status").out
    stacked.ok("apply")
    assert stacked.world() == before


def test_a_removed_checkout_is_made_again(stacked: World) -> None:
    before = stacked.world()
    shutil.rmtree(stacked.checkout)
    stacked.ok("status")
    stacked.ok("apply")
    assert stacked.world() == before


def test_a_moved_workspace_keeps_its_checkout(stacked: World, tmp_path: Path) -> None:
    before = stacked.world()
    stacked.root.rename(tmp_path / "elsewhere")
    moved = World(tmp_path / "elsewhere", stacked.upstream)
    assert moved.world() == before
    commit(moved, "tests : one more", tests__note="x\n")
    moved.ok("refresh")


def test_a_copied_workspace_does_not_touch_the_first(stacked: World, tmp_path: Path) -> None:
    before = stacked.world()
    shutil.copytree(stacked.root, tmp_path / "copy", symlinks=True)
    copy = World(tmp_path / "copy", stacked.upstream)
    edit(copy.root / KERNEL, "return 1", "return 2")
    copy.ok("apply")
    assert "return 2" in (copy.checkout / "ggml/src/ggml-hexagon/htp/kernel.c").read_text()
    assert stacked.world() == before


def test_a_checkout_whose_store_is_gone_is_in_the_way(stacked: World) -> None:
    shutil.rmtree(stacked.root / ".hexpatch" / "upstream.git")
    stacked.fails("apply", says="is in the way")
    shutil.rmtree(stacked.checkout)
    stacked.ok("apply")


def test_a_moved_clone_is_a_clear_error(stacked: World, tmp_path: Path) -> None:
    stacked.upstream.rename(tmp_path / "gone")
    for command in (["apply"], ["status"], ["rebase", "--onto", "v2"]):
        ran = stacked.fails(*command, says=str(stacked.upstream))
        assert "hint:" in ran.err


def test_a_moved_clone_stops_undo_and_abort_too(stacked: World, tmp_path: Path) -> None:
    edit(stacked.upstream / "tests/test-backend-ops.cpp", "case 20\n", "case TWENTY\n")
    git(stacked.upstream, "commit", "-qam", "tests : shout (#4)")
    stacked.ok("rebase", "--onto", "v2")
    files, away = stacked.files(), tmp_path / "gone"
    stacked.upstream.rename(away)
    ran = stacked.fails("undo", says=str(stacked.upstream))
    assert "hint:" in ran.err
    away.rename(stacked.upstream)
    stacked.conflicts("rebase", "--onto", "master")
    stacked.upstream.rename(away)
    stacked.fails("rebase", "--abort", says=str(stacked.upstream))
    away.rename(stacked.upstream)
    stacked.ok("rebase", "--abort")
    assert stacked.files() == files
    stacked.ok("undo")


# -- what is refused --------------------------------------------------------------------------


def test_edits_in_the_checkout_are_not_overwritten(stacked: World) -> None:
    edit(stacked.checkout / HOST, "host 5\n", "host five\n")
    stacked.fails("apply", says="uncommitted changes: " + HOST)
    assert "host five" in (stacked.checkout / HOST).read_text()


def test_commits_in_the_checkout_are_not_dropped(stacked: World) -> None:
    made = commit(stacked, "tests : a note", tests__note="x\n")
    stacked.fails("apply", says="not in patches/ yet")
    assert stacked.git("rev-parse", "HEAD") == made


def test_commits_on_a_detached_head_are_not_dropped(stacked: World) -> None:
    stacked.git("checkout", "-q", "--detach")
    made = commit(stacked, "tests : a note", tests__note="x\n")
    stacked.fails("apply", says="on no branch")
    stacked.git("switch", "-q", "-C", "stack")
    stacked.ok("refresh")
    assert "tests : a note" in stacked.ok("series").out
    assert stacked.git("rev-parse", "HEAD^{tree}") == stacked.git("rev-parse", f"{made}^{{tree}}")


def test_somebody_elses_branch_in_the_checkout_stays(stacked: World) -> None:
    stacked.git("switch", "-q", "-c", "topic")
    made = commit(stacked, "tests : a note", tests__note="x\n")
    stacked.ok("apply")
    assert stacked.git("symbolic-ref", "HEAD") == "refs/heads/stack"
    assert stacked.git("rev-parse", "topic") == made


def test_an_untracked_file_in_the_way(stacked: World) -> None:
    stacked.ok("drop", "hexagon-add-a-kernel")
    (stacked.checkout / "ggml/src/ggml-hexagon/htp/kernel.c").write_text("mine\n")
    before = stacked.world()
    stacked.fails("undo", says="kernel.c")
    assert stacked.world() == before


def test_a_directory_that_becomes_a_file(stacked: World) -> None:
    (stacked.checkout / "lib").mkdir()
    commit(stacked, "tests : a folder", **{"lib/a": "a\n"})
    stacked.ok("refresh")
    (stacked.checkout / "lib/a").unlink()
    (stacked.checkout / "lib").rmdir()
    (stacked.checkout / "lib").write_text("file\n")
    stacked.git("add", "-A")
    stacked.git("commit", "-qm", "tests : a file")
    stacked.ok("refresh")
    stacked.ok("drop", "tests-a-file")
    assert (stacked.checkout / "lib/a").exists()
    (stacked.checkout / "lib/mine").write_text("mine\n")
    stacked.fails("undo", says="in the way: lib/mine\n")
    (stacked.checkout / "lib/mine").unlink()
    stacked.ok("undo")
    assert (stacked.checkout / "lib").read_text() == "file\n"


def test_an_unfinished_git_rebase(stacked: World) -> None:
    env = {"GIT_SEQUENCE_EDITOR": "sed -i 1s/pick/edit/"}
    stacked.git("rebase", "-q", "-i", "HEAD~2", **env)
    for command in ("apply", "refresh"):
        stacked.fails(command, says="a `git rebase` is not finished")
    stacked.ok("apply", "--force")
    assert not stacked.git("status").startswith("interactive rebase")
    assert stacked.status()["sync"] == "in sync"


def test_a_patch_that_does_not_apply_is_named(stacked: World) -> None:
    before = stacked.git("rev-parse", "HEAD")
    edit(stacked.root / "patches/tests-add-a-case.patch", " case 20\n", " case twenty\n")
    stacked.fails("apply", says="tests-add-a-case does not apply on v1")
    assert stacked.git("rev-parse", "HEAD") == before


# -- --force ----------------------------------------------------------------------------------


def test_force_keeps_what_it_drops_within_reach(stacked: World) -> None:
    before = stacked.world()
    made = commit(stacked, "tests : a note", tests__note="x\n")
    edit(stacked.checkout / HOST, "host 5\n", "host five\n")
    said = stacked.ok("apply", "--force").err
    assert stacked.world() == before
    assert f"kept as {made[:12]}" in said
    stash = said.split("uncommitted changes are kept as ")[1][:12]
    assert "host five" in stacked.git("show", f"{stash}:{HOST}")
    git(stacked.root / ".hexpatch/upstream.git", "gc", "-q", "--prune=now")
    for kept in (made, stash):
        assert stacked.git("cat-file", "-t", kept) == "commit"
    stacked.ok("undo")
    assert stacked.git("rev-parse", "HEAD") == made


def test_force_with_uncommitted_changes_only(stacked: World) -> None:
    before = stacked.world()
    edit(stacked.checkout / HOST, "host 5\n", "host five\n")
    stash = stacked.ok("apply", "-f").err.split("kept as ")[1][:12]
    assert stacked.world() == before
    git(stacked.root / ".hexpatch/upstream.git", "gc", "-q", "--prune=now")
    assert "host five" in stacked.git("show", f"{stash}:{HOST}")


@pytest.mark.parametrize("how", ["merge", "cherry-pick", "stash"])
def test_force_over_conflicts(stacked: World, how: str) -> None:
    """The files as they lie there, marks and all, are kept: git itself can't stash them."""
    before = stacked.world()
    stacked.git("checkout", "-q", "-b", "mine", "HEAD~3")
    edit(stacked.checkout / HOST, "host 10\n", "host ten\n")
    if how == "stash":
        stacked.git("stash")
    else:
        stacked.git("commit", "-qam", "hexagon : ten")
    stacked.git("checkout", "-q", "stack")
    what = ["stash", "pop"] if how == "stash" else [how, "mine"]
    stacked.git(*what, check=False)
    assert f"UU {HOST}" in stacked.git("status", "--porcelain")
    said = stacked.ok("apply", "--force").err
    assert stacked.world() == before
    kept = said.split("changes are kept as ")[1][:12]
    git(stacked.root / ".hexpatch/upstream.git", "gc", "-q", "--prune=now")
    text = stacked.git("show", f"{kept}:{HOST}")
    assert "host ten" in text
    assert "<<<<<<<" in text


def test_force_over_a_branch_without_commits(stacked: World) -> None:
    before = stacked.world()
    stacked.git("checkout", "-q", "--orphan", "new")
    edit(stacked.checkout / HOST, "host 5\n", "host five\n")
    kept = stacked.ok("apply", "--force").err.split("changes are kept as ")[1][:12]
    assert stacked.world() == before
    assert "host five" in stacked.git("show", f"{kept}:{HOST}")


HIDING = ["skip-worktree", "assume-unchanged"]


@pytest.mark.parametrize("way", HIDING)
def test_edits_that_git_was_told_not_to_look_at(stacked: World, way: str) -> None:
    """They stay where a move does not touch them; else it is refused, and --force keeps them."""
    tests = "tests/test-backend-ops.cpp"
    for name in ("README.md", "CMakeLists.txt"):
        stacked.git("update-index", f"--{way}", name)
    edit(stacked.checkout / "README.md", "# tiny llama.cpp\n", "# mine\n")
    stacked.ok("rebase", "--onto", "v2")
    stacked.ok("undo")
    assert (stacked.checkout / "README.md").read_text() == "# mine\n"
    stacked.git("update-index", f"--{way}", tests)
    edit(stacked.checkout / tests, "case 5\n", "case five\n")
    before = stacked.world()
    ran = stacked.fails("rebase", "--onto", "v2", says=f"told not to look at: {tests}\n")
    hint = f"git update-index --no-{way} -- {tests}"
    assert f"hint: `{hint}` there" in ran.err
    assert stacked.world() == before
    stacked.git("update-ref", "refs/heads/stack", "HEAD~1")
    stacked.git("read-tree", "HEAD")
    stacked.git("checkout", "CMakeLists.txt", "README.md")
    stacked.git("update-index", f"--{way}", tests)
    kept = stacked.ok("apply", "--force").err.split("changes are kept as ")[1][:12]
    assert "case five" in stacked.git("show", f"{kept}:{tests}")
    assert "case five" not in (stacked.checkout / tests).read_text()
    assert stacked.status()["sync"] == "in sync"
    edit(stacked.checkout / tests, "case 5\n", "case five\n")
    stacked.git("update-index", f"--{way}", tests)
    stacked.git(*hint.split()[1:])
    stacked.fails("rebase", "--onto", "v2", says="uncommitted changes")


# -- series.lock ------------------------------------------------------------------------------


def test_locked_passes_only_if_nothing_would_change(stacked: World) -> None:
    stacked.ok("apply", "--locked")
    edit(stacked.root / KERNEL, "return 1", "return 2")
    before = stacked.files()
    stacked.fails("apply", "--locked", says="hexagon-add-a-kernel")
    assert stacked.files() == before
    stacked.ok("apply")
    stacked.ok("apply", "--locked")
    (stacked.root / "series.lock").unlink()
    stacked.fails("apply", "--locked", says="no series.lock")


@pytest.mark.parametrize("which", ["tree", "patch"])
def test_a_tampered_lock_is_refused(stacked: World, which: str) -> None:
    path = stacked.root / "series.lock"
    lock = json.loads(path.read_bytes())
    place = lock if which == "tree" else lock["patches"][1]
    place["tree"] = "0123456789" * 4
    path.write_text(json.dumps(lock))
    before = stacked.files()
    ran = stacked.fails("apply", says="the same files give")
    assert "hint: series.lock was edited" in ran.err
    assert stacked.files() == before
    path.unlink()
    stacked.ok("apply")


# -- --onto and --into --------------------------------------------------------------------------


def test_onto_for_once(stacked: World) -> None:
    files = stacked.files()
    stacked.ok("apply", "--onto", "v2")
    assert stacked.git("rev-parse", "HEAD~3") == git(stacked.upstream, "rev-parse", "v2")
    assert stacked.files() == files
    stacked.fails("refresh", says="not on the pinned base")
    stacked.ok("apply")
    assert stacked.status()["sync"] == "in sync"


def test_onto_where_a_patch_does_not_fit(stacked: World) -> None:
    edit(stacked.upstream / HOST, "host 10\n", "HOST TEN\n")
    git(stacked.upstream, "commit", "-qam", "hexagon : shout (#3)")
    before = stacked.world()
    stacked.fails("apply", "--onto", "master", says="hexagon-hook-a: conflict")
    assert stacked.world() == before


def test_into_a_new_folder_and_again(stacked: World, tmp_path: Path) -> None:
    before, folder = stacked.world(), tmp_path / "deep" / "tree"
    stacked.ok("apply", "--into", str(folder))
    assert git(folder, "rev-parse", "HEAD") == tip(stacked)
    stacked.ok("apply", "--into", str(folder), "--onto", "v2")
    assert "new head" in (folder / HOST).read_text()
    assert stacked.world() == before
    edit(folder / HOST, "host 5\n", "host five\n")
    stacked.fails("apply", "--into", str(folder), says="uncommitted changes")
    shutil.rmtree(folder)
    stacked.ok("apply", "--into", str(folder))
    assert git(folder, "rev-parse", "HEAD") == tip(stacked)


def test_into_without_a_first_apply(stacked: World, tmp_path: Path) -> None:
    other = clone_of(stacked, tmp_path / "ci")
    folder = tmp_path / "tree"
    ran = other.ok("apply", "--into", str(folder), "--locked", "--json")
    assert ran.json["checkout"] == str(folder)
    assert git(folder, "rev-parse", "HEAD") == tip(stacked)
    assert not other.checkout.exists()


def test_into_after_edits_leaves_the_checkout_alone(stacked: World, tmp_path: Path) -> None:
    edit(stacked.root / KERNEL, "return 1", "return 2")
    head = stacked.git("rev-parse", "HEAD")
    stacked.ok("apply", "--into", str(tmp_path / "tree"))
    assert stacked.git("rev-parse", "HEAD") == head
    assert stacked.git("status", "--porcelain") == ""
    assert stacked.status()["sync"] == "files have changed"


def test_into_a_users_clone(stacked: World, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(stacked.upstream), str(clone))
    stacked.ok("apply", "--into", str(clone))
    assert git(clone, "symbolic-ref", "--short", "HEAD") == "hexpatch-stack"
    assert git(clone, "rev-parse", "HEAD") == tip(stacked)
    assert git(clone, "rev-parse", "master") == git(stacked.upstream, "rev-parse", "v2")

    edit(stacked.root / KERNEL, "return 1", "return 2")
    stacked.ok("apply", "--into", str(clone))
    assert "return 2" in (clone / "ggml/src/ggml-hexagon/htp/kernel.c").read_text()

    git(clone, "commit", "-q", "--allow-empty", "-m", "mine")
    mine = git(clone, "rev-parse", "HEAD")
    stacked.fails("apply", "--into", str(clone), says="has commits of yours")
    git(clone, "branch", "-m", "mine")
    stacked.ok("apply", "--into", str(clone))
    assert git(clone, "rev-parse", "mine") == mine


def test_into_a_users_clone_with_work_in_it(stacked: World, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(stacked.upstream), str(clone))
    edit(clone / "README.md", "tiny", "TINY")
    stacked.fails("apply", "--into", str(clone), says="uncommitted changes")
    git(clone, "checkout", "-q", ".")
    kernel = clone / "ggml/src/ggml-hexagon/htp/kernel.c"
    kernel.write_text("mine\n")
    head = git(clone, "rev-parse", "HEAD")
    stacked.fails("apply", "--into", str(clone), says="untracked")
    assert (kernel.read_text(), git(clone, "rev-parse", "HEAD")) == ("mine\n", head)


def test_into_what_is_no_place(stacked: World, tmp_path: Path) -> None:
    committed(stacked)
    before = stacked.world(), git(stacked.root, "rev-parse", "HEAD")
    file = tmp_path / "file"
    file.write_text("mine\n")
    stacked.fails("apply", "--into", str(file), says="is in the way")
    stacked.fails("apply", "--into", str(stacked.root / "src"), says="is in the way")
    stacked.fails("apply", "--into", str(stacked.root), says="the series itself")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").write_text("mine\n")
    stacked.fails("apply", "--into", str(tmp_path / "full"), says="is in the way")
    assert (stacked.world(), git(stacked.root, "rev-parse", "HEAD")) == before
    assert file.read_text() == "mine\n"


# -- two runs -----------------------------------------------------------------------------------

HOLD = """
import sys, time
from pathlib import Path
from hexpatch.workspace import Workspace
with Workspace(Path(sys.argv[1])).locked("hexpatch something long"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_is_told_who_holds_the_lock(stacked: World) -> None:
    before = stacked.world()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(stacked.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout and holder.stdin
    holder.stdout.readline()
    for command in (["apply"], ["refresh"], ["undo"], ["rebase", "--onto", "v2"]):
        ran = stacked.fails(*command, says="`hexpatch something long` (process ")
        assert str(holder.pid) in ran.err
    for command in ("status", "check", "series", "log"):
        stacked.ok(command)
    assert stacked.world() == before
    holder.stdin.close()
    holder.wait()
    stacked.ok("apply")


# -- what is said, and what is no change --------------------------------------------------------


def test_status_without_the_checkout(stacked: World) -> None:
    assert f"checkout  {stacked.checkout}\n" in stacked.ok("status").out
    shutil.rmtree(stacked.checkout)
    ran = stacked.ok("status")
    assert "applied, but the checkout is gone" in ran.out
    assert "`hexpatch apply`" in ran.err
    assert "checkout  /" not in ran.out
    stacked.ok("apply")
    assert stacked.status()["sync"] == "in sync"


def test_status_on_another_commit(stacked: World) -> None:
    stacked.ok("apply", "--onto", "v2")
    assert "the checkout is on v2 (not the pinned base)" in stacked.ok("status").out
    made = commit(stacked, "tests : a note", tests__note="x\n")
    ran = stacked.ok("status")
    assert "with commits of its own" in ran.out
    assert "`hexpatch apply --force`" in ran.err
    for command in ("apply", "refresh"):  # both say the same way on, and it keeps the commits
        ran = stacked.fails(command)
        assert "`hexpatch apply --force`" in ran.err
        assert "git cherry-pick" in ran.err
    assert made[:12] in stacked.ok("apply", "--force").err
    stacked.git("cherry-pick", made)
    stacked.ok("refresh")


@pytest.mark.slow
@pytest.mark.parametrize("lost", [["base"], ["tip"], ["base", "tip"]])
@pytest.mark.parametrize("way", ["refresh", "apply"])
def test_lost_refs_are_noted_again(stacked: World, lost: list[str], way: str) -> None:
    count = len(stacked.ok("log", "--json").json)
    store = stacked.root / ".hexpatch/upstream.git"
    for name in lost:
        git(store, "update-ref", "-d", f"refs/hexpatch/{name}")
    if way == "apply":
        stacked.ok("apply")
        assert len(stacked.ok("log", "--json").json) == count
        return
    commit(stacked, "tests : a note", tests__note="x\n")
    stacked.ok("refresh")
    assert "tests-a-note" in stacked.ok("series").out
    assert stacked.status()["sync"] == "in sync"


def test_lost_refs_and_a_stack_that_is_another(stacked: World) -> None:
    """The commits are on the base, but they are not the series: nothing is dropped unseen."""
    store = stacked.root / ".hexpatch/upstream.git"
    stacked.git("reset", "-q", "--hard", "HEAD~3")
    made = commit(stacked, "tests : a note", tests__note="x\n")
    for name in ("base", "tip"):
        git(store, "update-ref", "-d", f"refs/hexpatch/{name}")
    for command in ("apply", "refresh"):
        assert "`hexpatch apply --force`" in stacked.fails(command).err
    assert made[:12] in stacked.ok("apply", "--force").err


def test_an_apply_that_changes_nothing_is_no_operation(stacked: World) -> None:
    def operations() -> int:
        return len(stacked.ok("log", "--json").json)

    for command in (["rebase", "--onto", "v2"], ["drop", "tests-add-a-case"], ["undo"], ["undo"]):
        stacked.ok(*command)
        count = operations()
        stacked.ok("apply")
        stacked.ok("apply", "--force")
        assert operations() == count, command


# -- new ------------------------------------------------------------------------------------


def test_new_with_nothing_to_take(stacked: World) -> None:
    before = stacked.world()
    says = "nothing to take: no changes in the checkout"
    assert "--allow-empty" in stacked.fails("new", "x", "-m", "a : b", says=says).err
    assert stacked.world() == before
    (stacked.checkout / "notes").write_text("mine\n")
    assert "`-A` takes untracked" in stacked.fails("new", "x", "-m", "a : b", says=says).err
    stacked.ok("new", "x", "-m", "a : b", "--allow-empty")
    stacked.ok("new", "y", "-m", "a : c", "-A")
    assert [p["name"] for p in stacked.status()["patches"]][-2:] == ["x", "y"]


def committed(world: World) -> None:
    """The series in a repository of its own."""
    git(world.root, "init", "-q")
    git(world.root, "add", "-A")
    git(world.root, "commit", "-qm", "series")


def cloned(world: World, to: Path, *config: str) -> World:
    git(to.parent, *config, "clone", "-q", str(world.root), str(to))
    return World(to, world.upstream)


def test_a_clone_with_autocrlf_has_the_same_files(stacked: World, tmp_path: Path) -> None:
    committed(stacked)
    there = cloned(stacked, tmp_path / "there", "-c", "core.autocrlf=true")
    there.ok("apply", "--locked")
    assert there.git("rev-parse", "HEAD") == stacked.git("rev-parse", "HEAD")


def test_a_clone_that_got_other_line_ends(stacked: World, tmp_path: Path) -> None:
    """Nothing said so: the kernels were CRLF, and the stack had other ids."""
    (stacked.root / ".gitattributes").unlink()
    committed(stacked)
    there = cloned(stacked, tmp_path / "there", "-c", "core.autocrlf=true")
    ran = there.ok("check")
    assert "differ from series.lock in nothing but line ends: they have got CRLF" in ran.err
    before = there.files()
    assert ".gitattributes" in there.fails("apply", says="they have got CRLF").err
    assert there.files() == before
    (there.root / ".gitattributes").write_text("* -text\n")
    for file in (there.root / name for name in before if name.startswith(("patches/", "src/"))):
        file.unlink()
    git(there.root, "checkout", "--", "patches", "src")
    there.ok("apply", "--locked")


def test_crlf_that_is_meant(stacked: World) -> None:
    (kernel,) = (p for p in (stacked.root / "src").rglob("*.c"))
    kernel.write_bytes(kernel.read_bytes().replace(b"\n", b"\r\n"))
    stacked.fails("apply", says="they have got CRLF")
    (stacked.root / "series.lock").unlink()
    stacked.ok("apply")
    assert b"\r\n" in (stacked.checkout / "ggml/src/ggml-hexagon/htp" / kernel.name).read_bytes()


def test_init_leaves_attributes_that_are_there(tmp_path: Path, upstream: Path) -> None:
    root = tmp_path / "fresh"
    root.mkdir()
    (root / ".gitattributes").write_text("*.c text\n")
    World(root, upstream).ok("init", "--repo", str(upstream), "--base", "v1")
    assert (root / ".gitattributes").read_text() == "*.c text\n"


def test_init_maps_the_kernels_where_upstream_has_them(tmp_path: Path, upstream: Path) -> None:
    def mapped(name: str, base: str, *options: str) -> dict[str, str]:
        (tmp_path / name).mkdir()
        made = World(tmp_path / name, upstream)
        made.ok("init", "--repo", str(upstream), "--base", base, *options)
        return dict(series.load(made.root).src)

    assert mapped("as it is", "v1") == {"htp": "ggml/src/ggml-hexagon/htp"}
    assert mapped("as told", "v1", "--src", "own=ggml") == {"own": "ggml"}
    git(upstream, "rm", "-rqf", "ggml/src/ggml-hexagon/htp")
    git(upstream, "commit", "-qm", "hexagon : elsewhere (#9)")
    assert mapped("moved", "master") == {}


def test_a_failed_init_leaves_nothing(tmp_path: Path, upstream: Path) -> None:
    root = tmp_path / "fresh"
    root.mkdir()
    made = World(root, upstream)
    made.fails("init", "--repo", "../nope")
    assert list(root.iterdir()) == []
    made.ok("init", "--repo", str(upstream), "--base", "v1")
    # a folder that was there before stays
    made.ok("undo")
    made.fails("init", "--repo", "../nope")
    assert (root / ".hexpatch").is_dir()


def test_a_new_patch_is_by_the_person_git_would_name(
    stacked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `git commit` in the checkout: the environment, then its own settings, then the user's."""

    def author_of(name: str) -> str:
        stacked.ok("new", name, "-m", f"tests : {name}", "--allow-empty")
        return stacked.git("log", "-1", "--format=%an <%ae>")

    assert author_of("one") == "Test Person <test@example.org>"
    stacked.git("config", "user.name", "Work Name")
    assert author_of("two") == "Work Name <test@example.org>"
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "env@example.org")
    assert author_of("three") == "Work Name <env@example.org>"
