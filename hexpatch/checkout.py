"""The working tree people edit and build in: a linked work tree of the store, on branch `stack`."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from hexpatch import workspace
from hexpatch.errors import HexpatchError
from hexpatch.repo import Repo
from hexpatch.workspace import BRANCH

# What git leaves in a work tree's directory while one of its commands is half done.
_HALF_DONE = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "MERGE_HEAD": "merge",
    "sequencer": "cherry-pick",
}
_LEFT_OVER = (*_HALF_DONE, "MERGE_MSG", "MERGE_MODE", "AUTO_MERGE", "SQUASH_MSG")


class Stage(NamedTuple):
    """One index entry: mode, blob id, stage (0 merged; 1 base, 2 ours, 3 theirs) and path."""

    mode: int
    oid: str
    stage: int
    path: bytes


class Shown(NamedTuple):
    """A file of the work tree beside the index: mode and blob, no blob for a file that goes."""

    path: bytes
    mode: int
    oid: str | None


class Layout(NamedTuple):
    """A half-merged patch: index stages, files with conflict marks, the commit that is picked."""

    stages: tuple[Stage, ...]
    files: tuple[Shown, ...]
    original: str
    message: str

    def as_json(self) -> dict[str, Any]:
        """For the journal."""
        data = self._asdict()
        for key in ("stages", "files"):
            data[key] = [{**x._asdict(), "path": os.fsdecode(x.path)} for x in data[key]]
        return data


def layout_from(data: dict[str, Any]) -> Layout:
    """Inverse of Layout.as_json."""
    stages, files = (
        [{**entry, "path": os.fsencode(entry["path"])} for entry in data[key]]
        for key in ("stages", "files")
    )
    return Layout(
        tuple(Stage(**s) for s in stages),
        tuple(Shown(**f) for f in files),
        data["original"],
        data["message"],
    )


class Checkout:
    """A linked work tree at `path`, made on first use."""

    def __init__(self, store: Repo, path: Path) -> None:
        self.store = store
        self.path = path
        self._repo: Repo | None = None

    @property
    def exists(self) -> bool:
        """Is there a work tree of our store?"""
        pointer = self._pointer()
        return (
            pointer is not None
            and pointer.is_dir()
            and pointer.parent.parent == self.store.git_dir.resolve()
        )

    def _pointer(self) -> Path | None:
        """Where the work tree's `.git` file leads."""
        try:
            text = (self.path / ".git").read_text("utf-8", "surrogateescape")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None
        return Path(text.removeprefix("gitdir:").strip())

    def mend(self) -> None:
        """Join work tree and store again after the workspace was moved or copied as a whole."""
        pointer = self._pointer()
        if pointer is None or self.exists:
            return
        ours = self.store.git_dir / "worktrees" / pointer.name
        if pointer.parts[-3:-1] != ours.parts[-3:-1] or not ours.is_dir():
            return
        workspace.write_atomic(ours / "gitdir", os.fsencode(f"{self.path}/.git\n"))
        workspace.write_atomic(self.path / ".git", os.fsencode(f"gitdir: {ours}\n"))

    @property
    def repo(self) -> Repo:
        """git in this work tree."""
        pointer = self._pointer()
        if pointer is None or not self.exists:
            raise HexpatchError(f"there is no checkout at {self.path}", "run `hexpatch apply`")
        if self._repo is None or self._repo.git_dir != pointer:
            self.close()
            self._repo = Repo(pointer, self.path)
        return self._repo

    def close(self) -> None:
        """End the process that reads here."""
        if self._repo is not None:
            self._repo.close()
            self._repo = None

    def create(self, commit: str) -> None:
        """Add an empty work tree, its HEAD at a commit."""
        if self.exists:
            return
        if self.path.is_symlink() or (
            self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir()))
        ):
            raise HexpatchError(
                f"{self.path} is in the way: not a checkout of this workspace",
                f"move {self.path} away and run again",
            )
        self.store.git("worktree", "prune")
        where = os.fspath(self.path)
        self.store.git("worktree", "add", "--no-checkout", "--detach", where, commit)

    def remove(self) -> None:
        """Take the work tree away; the caller has made sure that nobody's work is in it."""
        if self.path.exists():
            shutil.rmtree(self.path)
        self.store.git("worktree", "prune")

    def untouched(self) -> bool:
        """Is there nothing in it but what was checked out?"""
        out = self.repo.git("status", "--porcelain", "--ignored", "--untracked-files=normal")
        return not out and self.busy() is None

    def head(self) -> str | None:
        """Commit that is checked out."""
        return self.repo.resolve("HEAD")

    def branch(self) -> str | None:
        """Full name of the branch that HEAD is on; None when it is detached."""
        status, out = self.repo.git_status("symbolic-ref", "-q", "HEAD", ok=(0, 1, 128))
        return out.decode().strip() if status == 0 else None

    def busy(self) -> str | None:
        """The git command that is half done here: HEAD is not yet what it will be."""
        top = self.repo.git_dir
        return next((what for name, what in _HALF_DONE.items() if (top / name).exists()), None)

    def autostash(self) -> str | None:
        """What `git rebase --autostash` has put aside until it ends."""
        for name in ("rebase-merge", "rebase-apply"):
            kept = self.repo.git_dir / name / "autostash"
            if kept.exists():
                return self.repo.resolve(kept.read_text().strip())
        return None

    def dirty(self, *, note: bool = False) -> list[bytes]:
        """Tracked files with uncommitted changes.

        After a checkout git must read them all: their times say nothing when the index is of the
        same second. With `note` the index keeps what it has found, if nobody else writes it now.
        """
        args = ("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames")
        out = self.repo.git(*args, env={"GIT_OPTIONAL_LOCKS": "1"} if note else None)
        return [field[3:] for field in out.split(b"\0") if field]

    def unmerged(self) -> list[bytes]:
        """Paths with conflict stages in the index."""
        out = self.repo.git("diff", "--name-only", "--diff-filter=U", "-z")
        return sorted({p for p in out.split(b"\0") if p})

    def in_the_way(self, target: str) -> list[str]:
        """Untracked files that a move to `target` would overwrite."""
        repo = self.repo
        if not (repo.git_dir / "index").exists():
            return []
        out = repo.git("diff-index", "--cached", "--name-only", "--diff-filter=D", "-z", target)
        found = set()
        for name in filter(None, out.split(b"\0")):
            path = self.path / os.fsdecode(name)
            above = [p for p in path.parents if self.path in p.parents]
            blocker = next((p for p in reversed(above) if p.is_symlink() or p.is_file()), path)
            if os.path.lexists(blocker):
                found.add(os.fspath(blocker.relative_to(self.path)))
        tracked = self.tracked(sorted(found))
        return sorted(name for n in found - tracked for name in self._untracked(n))

    def _untracked(self, name: str) -> list[str]:
        """The path; for a directory what git does not know in it: git moves only its own files."""
        path = self.path / name
        if path.is_symlink() or not path.is_dir():
            return [name]
        out = self.repo.git("--literal-pathspecs", "ls-files", "--others", "-z", "--", name)
        return [os.fsdecode(n) for n in out.split(b"\0") if n]

    def tracked(self, names: list[str]) -> set[str]:
        """Those of these paths that the index has, merged or not."""
        if not names:
            return set()
        out = self.repo.git("--literal-pathspecs", "ls-files", "-z", "--", *names)
        return {os.fsdecode(n) for n in out.split(b"\0") if n}

    def _look_again(self) -> None:
        """Files that were touched or copied but not changed are no reason to refuse a move."""
        self.repo.git("update-index", "-q", "--refresh", ok=(0, 1))

    def stash(self) -> str | None:
        """A commit that holds the uncommitted changes; they stay where they are."""
        env = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "hexpatch"), ("EMAIL", "hexpatch@localhost"))
        }
        out = self.repo.git("stash", "create", "hexpatch: before --force", env=env)
        return out.decode().strip() or None

    def move(
        self, target: str, *, detach: bool, force: bool = False, index_only: bool = False
    ) -> None:
        """Files and index to a commit, then HEAD. With force, whatever a killed run left goes."""
        self.create(target)
        repo = self.repo
        index = repo.git_dir / "index"
        current = repo.resolve("HEAD") if index.exists() else None
        if index_only and current is not None:
            repo.git("read-tree", target)
            self._look_again()
        elif force or current is None:
            repo.git("read-tree", "--reset", "-u", target)
        elif current != target:
            self._look_again()
            repo.git("read-tree", "-m", "-u", current, target)
        for name in _LEFT_OVER:
            left = repo.git_dir / name
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink(missing_ok=True)
        if detach:
            repo.git("update-ref", "--no-deref", "HEAD", target)
            repo.git("checkout", "-q", "--detach", ok=(0, 1))
        else:
            repo.git("symbolic-ref", "HEAD", BRANCH)

    @property
    def _old_index(self) -> Path:
        """The index before a step that forces, with its conflict stages."""
        return self.store.git_dir.parent / "index.old"

    def snapshot(self, *, dirty: bool) -> dict[str, Any]:
        """What `put_back` needs: HEAD and, for `dirty` ones, the tracked files as they are."""
        if not self.exists:
            return {"exists": False}
        found: dict[str, Any] = {"exists": True, "head": self.head(), "branch": self.branch()}
        index = self.repo.git_dir / "index"
        copy = self._old_index
        for litter in (copy, copy.with_name(f"{copy.name}.lock")):  # of a killed run
            litter.unlink(missing_ok=True)
        if dirty and index.exists():
            # a step that forces mends a broken checkout too: there is nothing to keep then
            with contextlib.suppress(HexpatchError):
                if self.dirty():
                    shutil.copyfile(index, copy)
                    env = {"GIT_INDEX_FILE": os.fspath(copy)}
                    self.repo.git("add", "-u", env=env)
                    found["files"] = self.repo.git("write-tree", env=env).decode().strip()
                    shutil.copyfile(index, copy)
        return found

    def put_back(self, was: dict[str, Any], target: str | None, *, index_only: bool) -> None:
        """As it was before a move to `target` that failed, as far as git can."""
        if not was["exists"]:
            if self.exists:
                self.remove()
            return
        head = was["head"]
        self.create(head)
        repo = self.repo
        index = repo.git_dir / "index"
        if was["branch"]:
            repo.git("symbolic-ref", "HEAD", was["branch"])
        else:
            repo.git("update-ref", "--no-deref", "HEAD", head)
        if index_only:
            repo.git("read-tree", head)
        elif target:
            repo.git("read-tree", "--reset", target)  # git removes what it knows
            self._look_again()
            repo.git("read-tree", "--reset", "-u", was.get("files") or head)
        copy = self._old_index
        if was.get("files") and copy.exists():
            copy.replace(index)
        self._look_again()

    def lay_out(self, layout: Layout) -> None:
        """Leave a half-merged patch the way `git cherry-pick` does, on top of what is there."""
        repo = self.repo
        lines = []
        for entry in layout.stages:
            if entry.mode == 0:
                lines.append(b"0 " + b"0" * 40 + b"\t" + entry.path + b"\0")
                continue
            lines.append(
                b"%o %s %d\t%s\0" % (entry.mode, entry.oid.encode(), entry.stage, entry.path)
            )
        repo.git("update-index", "-z", "--index-info", stdin=b"".join(lines))
        for file in layout.files:
            data = self.store.read(file.oid, "blob") if file.oid else None
            _write_file(self.path, file.path, file.mode, data)
        repo.git("update-index", "-q", "--refresh", ok=(0, 1))
        (repo.git_dir / "MERGE_MSG").write_text(layout.message, encoding="utf-8")
        repo.git("update-ref", "--no-deref", "CHERRY_PICK_HEAD", layout.original)

    def staged_tree(self) -> str:
        """Tree of the index."""
        return self.repo.git("write-tree").decode().strip()


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
