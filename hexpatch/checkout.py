"""The working tree people edit and build in: a linked work tree of the store, on branch `stack`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hexpatch import proc
from hexpatch.errors import HexpatchError
from hexpatch.repo import Repo, environment

BRANCH = "refs/heads/stack"


@dataclass(frozen=True)
class Stage:
    """One index entry: mode, blob id, stage (0 merged; 1 base, 2 ours, 3 theirs) and path."""

    mode: int
    oid: str
    stage: int
    path: bytes


class Checkout:
    """A linked work tree at `path`, made on first use."""

    def __init__(self, store: Repo, path: Path) -> None:
        self.store = store
        self.path = path

    @property
    def exists(self) -> bool:
        """Is there a work tree of our store?"""
        return (self.path / ".git").is_file()

    @property
    def repo(self) -> Repo:
        """git in this work tree."""
        if not self.exists:
            raise HexpatchError(f"there is no checkout at {self.path}", "run `hexpatch apply`")
        pointer = (self.path / ".git").read_text().removeprefix("gitdir:").strip()
        return Repo(Path(pointer), self.path)

    def create(self) -> None:
        """Add an empty work tree, its HEAD on branch `stack`."""
        if (
            self.exists
            and Path((self.path / ".git").read_text().removeprefix("gitdir:").strip()).is_dir()
        ):
            return
        if self.path.exists() and any(self.path.iterdir()):
            if self.exists:
                (self.path / ".git").unlink()
            raise HexpatchError(
                f"{self.path} is in the way: not a checkout of this workspace",
                f"move {self.path} away and run again",
            )
        self.store.git("worktree", "prune")
        seed = self.store.git("for-each-ref", "--count=1", "--format=%(objectname)", "refs/")
        self.store.git(
            "worktree",
            "add",
            "--no-checkout",
            "--detach",
            os.fspath(self.path),
            seed.decode().strip(),
        )

    def head(self) -> str | None:
        """Commit that is checked out."""
        return self.repo.resolve("HEAD")

    def on_branch(self) -> bool:
        """Is HEAD on branch `stack` (not detached, not elsewhere)?"""
        status, out = self.repo.git_status("symbolic-ref", "-q", "HEAD", ok=(0, 1, 128))
        return status == 0 and out.decode().strip() == BRANCH

    def dirty(self) -> list[bytes]:
        """Tracked files with uncommitted changes."""
        out = self.repo.git("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames")
        return [field[3:] for field in out.split(b"\0") if field]

    def unmerged(self) -> list[bytes]:
        """Paths with conflict stages in the index."""
        out = self.repo.git("diff", "--name-only", "--diff-filter=U", "-z")
        return sorted({p for p in out.split(b"\0") if p})

    def in_the_way(self, target: str) -> str | None:
        """git's word on untracked files that a move to `target` would overwrite."""
        repo = self.repo
        head = repo.resolve("HEAD")
        if head is None or not repo.git_path("index").exists():
            return None
        done = proc.run(
            repo._argv(["read-tree", "-n", "-m", "-u", head, target]),
            cwd=self.path,
            env=environment(),
        )
        if done.status == 0:
            return None
        return done.stderr.decode("utf-8", "replace").strip()

    def stash(self) -> str | None:
        """A commit that holds the uncommitted changes; they stay where they are."""
        env = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "hexpatch"), ("EMAIL", "hexpatch@localhost"))
        }
        out = self.repo.git("stash", "create", "hexpatch: before --force", env=env)
        return out.decode().strip() or None

    def move(self, target: str, *, detach: bool, force: bool) -> None:
        """Files and index to a commit, then HEAD. With force, whatever a killed run left goes."""
        self.create()
        repo = self.repo
        _break_stale_lock(repo.git_path("index.lock"))
        current = repo.resolve("HEAD") if repo.git_path("index").exists() else None
        if force or current is None:
            repo.git("read-tree", "--reset", "-u", target)
        elif current != target:
            repo.git("read-tree", "-m", "-u", current, target)
        for name in ("CHERRY_PICK_HEAD", "MERGE_MSG", "AUTO_MERGE"):
            repo.git_path(name).unlink(missing_ok=True)
        if detach:
            repo.git("update-ref", "--no-deref", "HEAD", target)
            repo.git("checkout", "-q", "--detach", ok=(0, 1))
        else:
            repo.git("symbolic-ref", "HEAD", BRANCH)

    def put_conflict(
        self,
        stages: Iterable[Stage],
        files: Iterable[tuple[bytes, int, bytes | None]],
        original: str,
        message: str,
    ) -> None:
        """Leave a half-merged patch: index stages, marked-up files, and git's cherry-pick state."""
        repo = self.repo
        lines = []
        for entry in stages:
            lines.append(b"0 " + b"0" * 40 + b"\t" + entry.path + b"\0" if entry.mode == 0 else b"")
            if entry.mode:
                lines.append(
                    b"%o %s %d\t%s\0" % (entry.mode, entry.oid.encode(), entry.stage, entry.path)
                )
        repo.git("update-index", "-z", "--index-info", stdin=b"".join(lines))
        for path, mode, data in files:
            _write_file(self.path, path, mode, data)
        repo.git("update-index", "-q", "--refresh", ok=(0, 1))
        repo.git_path("MERGE_MSG").write_text(message, encoding="utf-8")
        repo.git("update-ref", "--no-deref", "CHERRY_PICK_HEAD", original)

    def staged_tree(self) -> str:
        """Tree of the index."""
        return self.repo.git("write-tree").decode().strip()


def _break_stale_lock(lock: Path) -> None:
    """A killed git leaves index.lock; we hold the workspace, so wait a little, then remove it."""
    for _ in range(20):
        if not lock.exists():
            return
        time.sleep(0.1)
    lock.unlink(missing_ok=True)


def _write_file(top: Path, path: bytes, mode: int, data: bytes | None) -> None:
    target = top / os.fsdecode(path)
    if target.is_symlink() or target.is_file():
        target.unlink()
    if data is None:
        return
    parent = target.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        return  # a file stands where a directory is wanted: the stages in the index say so
    if target.is_dir():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if mode == 0o120000:
        target.symlink_to(os.fsdecode(data))
        return
    target.write_bytes(data)
    target.chmod(0o755 if mode == 0o100755 else 0o644)
