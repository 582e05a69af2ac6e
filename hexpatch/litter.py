"""What a killed git leaves lying about in the store, and when it may go."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

_AT_WORK = 0.5  # seconds after which a git that lives has gone on
_MAKING = b"initializing"  # why git has locked a work tree that it is just adding


def break_stale_locks(locks: Iterable[Path], since: float) -> None:
    """The git of a killed run leaves *.lock files behind; remove what no living process has.

    It may still be at work: wait for it. An older lock is somebody else's, and so is one that a
    commit keeps while its message is edited.
    """
    for lock in locks:
        for _ in range(600):
            try:
                made = lock.stat().st_mtime
            except FileNotFoundError:
                break
            if made < since - 1:
                break
            if time.time() - made > _AT_WORK and not _is_open(lock):
                lock.unlink(missing_ok=True)
                break
            time.sleep(0.1)


def half_made(admin: Path) -> bool:
    """Was the `git worktree add` of this folder in `worktrees` killed? It unlocks it at its end."""
    reason = _read(admin / "locked")
    if _readable(admin) or (admin / "index").exists():
        return reason == _MAKING  # else it was in use, and a crash may have emptied its files
    return reason in (None, b"", _MAKING)


def forget_half_made(store: Path) -> None:
    """Take back work trees that git was just adding: it trips over the files it has not written.

    One that has begun to get its files is left, to be filled: nobody has worked in it.
    """
    for admin in store.glob("worktrees/*"):
        if not half_made(admin):
            continue
        _let_live(admin)
        break_stale_locks(admin.glob("*.lock"), 0.0)
        if not half_made(admin):
            continue
        pointer = admin / os.fsdecode(_read(admin / "gitdir") or b"/")
        text = os.fsdecode(_read(pointer) or b"").removeprefix("gitdir:").strip()
        points_here = (pointer.parent / (text or "/")).resolve() == admin.resolve()
        if _readable(admin) and points_here and _has_files(pointer.parent):
            continue
        if points_here or _read(pointer) == b"":
            pointer.unlink()
        shutil.rmtree(admin)


def last_seen(admin: Path) -> str | None:
    """The commit that HEAD was last at, by its log."""
    lines = (_read(admin / "logs" / "HEAD") or b"").splitlines()
    found = re.match(rb"[0-9a-f]{40} ([0-9a-f]{40}) ", lines[-1]) if lines else None
    return found[1].decode() if found else None


def drop_lost_pointer(tree: Path, store: Path) -> None:
    """Take away the `.git` of an empty work tree that the store no longer knows."""
    pointer = tree / ".git"
    target = Path(os.fsdecode(_read(pointer) or b"").removeprefix("gitdir:").strip())
    ours = store.resolve() / "worktrees" / target.name
    if target.name and target.resolve() == ours and not ours.exists() and not _has_files(tree):
        pointer.unlink()


def _let_live(admin: Path) -> None:
    """A git that is at work there goes on meanwhile."""
    for _ in range(10):
        newest = max((p.stat().st_mtime for p in (admin, *admin.iterdir())), default=0.0)
        if time.time() - newest > _AT_WORK:
            return
        time.sleep(0.1)


def _has_files(folder: Path) -> bool:
    return any(p.name != ".git" for p in folder.iterdir())


def _readable(admin: Path) -> bool:
    """Are the files there that git needs to know a work tree?"""
    head = _read(admin / "HEAD") or b""
    return bool(_read(admin / "gitdir") and _read(admin / "commondir") and head.strip(b"0"))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes().strip()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def _is_open(path: Path) -> bool:
    """Has a process this file open? Where there is no /proc nobody can say: then it has not."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == os.fspath(path):  # noqa: PTH115 - Path.readlink is slow here
                return True
        except OSError:
            continue
    return False
