"""What a killed git leaves lying about goes with the next command; what is a person's stays."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from conftest import World, git, sound

WORKTREE = ".hexpatch/upstream.git/worktrees/llama.cpp"


@pytest.mark.parametrize("name", ["index.lock", "CHERRY_PICK_HEAD.lock", "../../HEAD.lock"])
def test_locks_of_a_killed_git_go_with_the_next_command(stacked: World, name: str) -> None:
    stacked.ok("apply")
    lock = stacked.root / WORKTREE / name
    lock.write_bytes(b"")
    os.utime(lock, (time.time() - 5,) * 2)
    holder = stacked.root / ".hexpatch/lock"
    holder.write_text("`hexpatch rebase` (process 1)")  # killed a while ago, its git before it
    os.utime(holder, (time.time() - 6,) * 2)
    stacked.ok("status")
    assert not lock.exists()
    assert not holder.read_bytes()


def test_who_only_looks_writes_no_lock(stacked: World) -> None:
    stacked.ok("apply")
    holder = stacked.root / ".hexpatch/lock"
    holder.unlink()
    stacked.ok("status")
    assert not holder.exists()


def test_the_lock_of_a_commit_that_is_being_written_stays(stacked: World) -> None:
    stacked.ok("apply")
    lock = stacked.root / WORKTREE / "index.lock"
    lock.write_bytes(b"")
    old = time.time() - 100
    os.utime(lock, (old, old))
    before = stacked.world()
    ran = stacked.run("apply", "--onto", "v2")
    assert ran.code == 1
    assert "index.lock" in ran.err
    assert lock.exists()
    assert stacked.world() == before
    lock.unlink()
    stacked.ok("status")


# What `git worktree add` writes, in this order: the name of a file, and the text that was written
# of it when git was killed.
MADE = {
    "locked": ["", "initializing"],
    "gitdir": ["", "{tree}/.git\n"],
    ".git": ["", "gitdir: {admin}\n"],
    "HEAD": ["", "0" * 40 + "\n"],
    "commondir": ["", "../..\n"],
    "HEAD again": ["{tip}\n"],
}


def leave_half_made(store: Path, tree: Path, steps: int) -> Path:
    """A work tree whose `git worktree add` was killed after so many writes, a while ago."""
    admin = store / "worktrees" / tree.name
    shutil.rmtree(admin, ignore_errors=True)
    shutil.rmtree(tree, ignore_errors=True)
    admin.mkdir(parents=True)
    tree.mkdir()
    words = {"tree": tree, "admin": admin, "tip": git(store, "rev-parse", "stack")}
    writes = [(name, text) for name, texts in MADE.items() for text in texts]
    for name, text in writes[:steps]:
        at = tree if name == ".git" else admin
        (at / name.split()[0]).write_text(text.format(**words))
    for path in (*admin.iterdir(), admin):
        os.utime(path, (time.time() - 5,) * 2)
    return admin


STEPS = range(1 + sum(map(len, MADE.values())))


@pytest.mark.parametrize("steps", STEPS)
def test_a_checkout_that_git_was_just_adding(stacked: World, steps: int) -> None:
    before = stacked.world()
    leave_half_made(stacked.root / ".hexpatch/upstream.git", stacked.checkout, steps)
    stacked.ok("status")
    stacked.ok("apply")
    assert stacked.world() == before
    assert not (stacked.root / WORKTREE / "locked").exists()
    sound(stacked)


@pytest.mark.slow
@pytest.mark.parametrize("command", [("export",), ("apply", "--into", "../there"), ("undo",)])
@pytest.mark.parametrize("steps", [2, 4, 6, 8, 9])
def test_another_work_tree_that_git_was_just_adding(
    stacked: World, tmp_path: Path, command: tuple[str, ...], steps: int
) -> None:
    leave_half_made(stacked.root / ".hexpatch/upstream.git", tmp_path / "there", steps)
    stacked.ok(*command)
    git(stacked.root / ".hexpatch/upstream.git", "worktree", "list")
    sound(stacked)


def test_another_work_tree_that_git_was_just_filling(stacked: World, tmp_path: Path) -> None:
    there = tmp_path / "there"
    admin = leave_half_made(stacked.root / ".hexpatch/upstream.git", there, STEPS[-1])
    (there / "README.md").write_text("# tiny")
    (admin / "index.lock").write_bytes(b"")
    stacked.ok("apply", "--into", "../there")
    assert git(there, "rev-parse", "HEAD") == stacked.status()["tip"]
    assert git(there, "status", "--porcelain") == ""
    assert not (admin / "locked").exists()


@pytest.mark.parametrize("reason", ["", "on a stick"])
def test_a_work_tree_that_a_person_locked_stays(
    stacked: World, tmp_path: Path, reason: str
) -> None:
    store, there = stacked.root / ".hexpatch/upstream.git", tmp_path / "there"
    git(store, "worktree", "add", "-q", "--detach", "--no-checkout", str(there), "stack")
    git(store, "worktree", "lock", "--reason", reason, str(there))
    shutil.rmtree(there)
    stacked.ok("apply")
    assert (store / "worktrees/there/locked").exists()


@pytest.mark.parametrize("detached", [False, True])
@pytest.mark.parametrize("name", ["HEAD", "commondir", "gitdir"])
def test_what_a_crash_has_emptied_of_a_checkout_in_use_is_written_again(
    stacked: World, name: str, detached: bool
) -> None:
    admin = stacked.root / WORKTREE
    if detached:
        stacked.git("switch", "-q", "--detach", "HEAD~1")
    (stacked.checkout / "README.md").write_text("staged\n")
    stacked.git("add", "-A")
    before, log = stacked.world(), (admin / "logs/HEAD").read_bytes()
    (admin / name).write_bytes(b"")
    stacked.ok("status")
    assert stacked.world() == before
    assert (admin / "logs/HEAD").read_bytes() == log
    assert stacked.git("diff", "--cached", "--name-only") == "README.md"
    sound(stacked)
