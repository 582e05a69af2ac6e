"""Objects of the stack that go: a clone lent them and drops them, or a crash has eaten them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import HOST, World, commit, edit, git


@pytest.fixture
def imported(world: World) -> World:
    """A series that a branch of the user's clone was imported into: the ids are the same."""
    up = world.upstream
    git(up, "checkout", "-q", "-b", "my", "v1")
    edit(up / HOST, "host 10\n", "host ten\n")
    git(up, "commit", "-qam", "hexagon : ten")
    (up / "more.c").write_text("more\n")
    git(up, "add", "-A")
    git(up, "commit", "-qm", "hexagon : more")
    git(up, "checkout", "-q", "master")
    return world


def forget(world: World, *branches: str) -> None:
    """The user deletes branches in the clone, and its gc runs."""
    git(world.upstream, "branch", "-qD", *branches)
    git(world.upstream, "reflog", "expire", "--all", "--expire=now")
    git(world.upstream, "gc", "-q", "--prune=now")


def objects(world: World) -> Path:
    return world.root / ".hexpatch/upstream.git/objects"


def crash(world: World, how: str) -> None:
    """All that the store holds itself is empty, or not there."""
    for file in [*objects(world).glob("??/*"), *objects(world).glob("pack/*")]:
        if how == "empty" and len(file.parent.name) == 2:
            file.chmod(0o644)
            file.write_bytes(b"")
        else:
            file.unlink()


# -- what is the stack's is the store's own -----------------------------------------------------


@pytest.mark.parametrize("way", ["branch", "mails"])
def test_a_branch_that_was_imported_and_deleted(imported: World, way: str, tmp_path: Path) -> None:
    what = ["my"]
    if way == "mails":
        git(imported.upstream, "format-patch", "-q", "--full-index", "-o", str(tmp_path), "v1..my")
        what = sorted(map(str, tmp_path.glob("*.patch")))
    imported.ok("import", *what)
    assert imported.git("rev-parse", "HEAD") == git(imported.upstream, "rev-parse", "my")
    before = imported.world()
    forget(imported, "my")
    assert imported.world() == before
    imported.git("rev-list", "--objects", "--all")
    imported.ok("rebase", "--onto", "v2")
    imported.ok("undo")
    assert imported.world() == before
    imported.ok("undo")
    imported.ok("undo", imported.ok("log", "--json").json[0]["id"])
    assert imported.world() == before


def test_commits_taken_from_the_clone_by_git(imported: World) -> None:
    """git in the checkout writes nothing that the clone has; the first operation copies it."""
    imported.ok("apply")
    imported.git("merge", "-q", "--ff-only", git(imported.upstream, "rev-parse", "my"))
    assert "commits are kept" in imported.ok("apply", "--force").err
    forget(imported, "my")
    imported.ok("undo")
    assert (imported.checkout / "more.c").read_text() == "more\n"
    imported.ok("refresh")
    assert imported.status()["sync"] == "in sync"


def test_a_waiting_rebase(imported: World) -> None:
    edit(imported.upstream / HOST, "host 10\n", "host 10!\n")
    git(imported.upstream, "commit", "-qam", "hexagon : another ten")
    imported.ok("import", "my")
    before = imported.world()
    imported.conflicts("rebase", "--onto", "master")
    forget(imported, "my")
    assert "more.c" not in imported.git("status", "--porcelain")
    (imported.checkout / HOST).write_text("ten\n")
    imported.git("add", "-A")
    imported.ok("rebase", "--continue")
    imported.ok("undo")
    shutil.rmtree(imported.root / "patches/resolutions")
    assert imported.world() == before


def test_nothing_is_copied_twice(imported: World) -> None:
    imported.ok("import", "my")
    packs = sorted(objects(imported).glob("pack/*.pack"))
    for command in ("apply", "refresh"):
        imported.ok(command)
    assert sorted(objects(imported).glob("pack/*.pack")) == packs


# -- what is gone is made again -----------------------------------------------------------------

GONE = "commits of the stack are not in the store any more"


@pytest.mark.parametrize("how", ["empty", "gone"])
def test_lost_objects_are_made_again_from_the_files(stacked: World, how: str) -> None:
    before = stacked.world()
    crash(stacked, how)
    assert stacked.status()["sync"].startswith(GONE)
    assert "`hexpatch apply`" in stacked.status()["hint"]
    for command in (["refresh"], ["rebase", "--onto", "v2"], ["undo"], ["log"]):
        ran = stacked.fails(*command, says=GONE)
        assert "hint: `hexpatch apply`" in ran.err
    stacked.fails("new", "more", "-m", "more", says=GONE)
    said = stacked.ok("apply").err
    assert "made again from the files" in said
    assert "the log of operations is lost" in said
    assert stacked.world() == before
    stacked.ok("rebase", "--onto", "v2")
    stacked.ok("undo")
    assert stacked.world() == before


@pytest.mark.parametrize("option", [[], ["--force"]])
def test_uncommitted_work_over_lost_commits(stacked: World, option: list[str]) -> None:
    edit(stacked.checkout / HOST, "host 5\n", "host five\n")
    crash(stacked, "gone")
    if not option:
        stacked.fails("apply", says="uncommitted changes")
        assert stacked.git("status", "--porcelain") == f"M {HOST}"
        return
    kept = stacked.ok("apply", *option).err.split("changes are kept as ")[1][:12]
    assert "host five" in stacked.git("show", f"{kept}:{HOST}")


def test_commits_that_no_file_has_are_lost_but_their_files_are_kept(stacked: World) -> None:
    before = stacked.world()
    commit(stacked, "tests : a note", README__md="x\n")
    edit(stacked.checkout / HOST, "host 5\n", "host five\n")
    crash(stacked, "gone")
    said = stacked.ok("apply").err
    assert "commits that were only there are lost" in said
    assert stacked.world() == before
    kept = said.split("changes are kept as ")[1][:12]
    assert "host five" in stacked.git("show", f"{kept}:{HOST}")


def test_a_detached_head_that_is_lost(stacked: World) -> None:
    before = stacked.world()
    stacked.git("checkout", "-q", "--detach")
    made = commit(stacked, "tests : a note", note="x\n")
    (objects(stacked) / made[:2] / made[2:]).unlink()
    stacked.fails("refresh", says=f"{GONE}: HEAD {made[:12]}")
    stacked.ok("apply")
    (stacked.checkout / "note").unlink(missing_ok=True)
    assert stacked.world() == before


def test_the_tree_of_a_commit_that_is_there(stacked: World) -> None:
    before = stacked.world()
    lost = stacked.git("rev-parse", "HEAD^{tree}")
    (objects(stacked) / lost[:2] / lost[2:]).unlink()
    assert "`hexpatch apply`" in stacked.status()["hint"]
    stacked.ok("apply")
    assert stacked.world() == before


def test_a_waiting_rebase_whose_objects_are_lost(stacked: World) -> None:
    before = stacked.world()
    edit(stacked.upstream / HOST, "host fifty\n", "host 50\n")
    edit(stacked.upstream / HOST, "host 30\n", "host 30!\n")
    git(stacked.upstream, "commit", "-qam", "hexagon : thirty")
    stacked.conflicts("rebase", "--onto", "master")
    crash(stacked, "gone")
    ran = stacked.fails("rebase", "--continue", says=GONE)
    assert "hint: `hexpatch rebase --abort`" in ran.err
    stacked.ok("rebase", "--abort")
    stacked.ok("apply")
    assert stacked.world() == before


def test_undo_to_a_stack_that_is_lost(stacked: World) -> None:
    """Neither the base nor to be fetched: the files are in the log, and make it again."""
    before = stacked.world()
    lost = stacked.git("rev-parse", "HEAD")
    stacked.ok("rebase", "--onto", "v2")
    for pack in objects(stacked).glob("pack/*"):
        pack.unlink()
    (objects(stacked) / lost[:2] / lost[2:]).unlink()
    ran = stacked.fails("undo", says=f"a commit of that stack, {lost[:12]}, is not in the store")
    hint = ran.err.split("hint: `")[1].split("`")[0]
    subprocess.run(["sh", "-c", hint], check=True)
    stacked.ok("apply")
    assert stacked.world() == before
