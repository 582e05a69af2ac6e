"""The working tree people edit and build in: a linked work tree of the store, on branch `stack`."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from hexpatch import litter, workspace
from hexpatch.errors import HexpatchError, MissingObject
from hexpatch.repo import Repo
from hexpatch.workspace import BRANCH

REPAIR = "`hexpatch apply` makes the stack's commits and the checkout again from the files"

# What git leaves in a work tree's directory while one of its commands is half done.
_HALF_DONE = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "MERGE_HEAD": "merge",
    "sequencer": "cherry-pick",
}
_BEFORE_FORCE = "hexpatch: before --force"
_SOMEBODY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "hexpatch"), ("EMAIL", "hexpatch@localhost"))
}
_SHOW = ("--no-skip-worktree", "--no-assume-unchanged")
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
        """Join work tree and store again where the workspace was moved, or a crash parted them."""
        pointer = self._pointer()
        if pointer is None or self.exists:
            self._fill_emptied()
            return
        ours = self.store.git_dir / "worktrees" / pointer.name
        if pointer.parts[-3:-1] != ours.parts[-3:-1] or not ours.is_dir():
            return
        workspace.write_atomic(ours / "gitdir", os.fsencode(f"{self.path}/.git\n"))
        workspace.write_atomic(self.path / ".git", os.fsencode(f"gitdir: {ours}\n"))

    def _fill_emptied(self) -> None:
        """Write what a crash has emptied of the files that tell git of a work tree in use."""
        admin = self._pointer()
        if admin is None or not (admin / "index").exists():
            return
        tip = self.store.ref(BRANCH)
        last = litter.last_seen(admin) or tip
        texts = {
            "gitdir": f"{self.path}/.git",
            "commondir": "../..",
            "HEAD": f"ref: {BRANCH}" if last == tip else last,
        }
        for name, text in texts.items():
            file = admin / name
            if not (file.exists() and file.read_bytes().strip()):
                workspace.write_atomic(file, os.fsencode(f"{text}\n"))

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
        litter.forget_half_made(self.store.git_dir)
        if self.exists:
            return
        litter.drop_lost_pointer(self.path, self.store.git_dir)
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

    def elsewhere(self) -> Path | None:
        """Another work tree that has branch `stack` checked out: git would keep it there."""
        for head in self.store.git_dir.glob("worktrees/*/HEAD"):
            place = head.with_name("gitdir")
            if head.read_bytes().strip() != b"ref: " + BRANCH.encode() or not place.exists():
                continue
            pointer = Path(os.fsdecode(place.read_bytes().rstrip(b"\n")))
            if (
                pointer.name == ".git"
                and pointer.exists()
                and pointer.parent.resolve() != self.path.resolve()
            ):
                return pointer.parent
        return None

    @property
    def half_made(self) -> bool:
        """Was git killed while it filled this one? Nobody has worked in it then."""
        return litter.half_made(self.repo.git_dir)

    def unlock(self) -> None:
        """Finish what a killed git has left to do: a person's own lock stays."""
        if self.half_made:
            (self.repo.git_dir / "locked").unlink()

    def remove(self) -> None:
        """Take the work tree away; the caller has made sure that nobody's work is in it."""
        if self.exists:
            self.unlock()  # git prunes no locked ones
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

    def lost(self) -> str | None:
        """The commit that a detached HEAD names, if the store does not have it."""
        try:
            named = (self.repo.git_dir / "HEAD").read_text("ascii", "replace").strip()
        except FileNotFoundError:
            return None
        detached = not named.startswith("ref: ")
        return named if detached and not self.store.present([named]) else None

    def branch(self) -> str | None:
        """Full name of the branch that HEAD is on; None when it is detached."""
        status, out = self.repo.git_status("symbolic-ref", "-q", "HEAD", ok=(0, 1, 128))
        return out.decode("utf-8", "surrogateescape").strip() if status == 0 else None

    def busy(self) -> str | None:
        """The git command that is half done here: HEAD is not yet what it will be."""
        top = self.repo.git_dir
        if (top / "rebase-apply" / "applying").exists():
            return "am"
        found = next((what for name, what in _HALF_DONE.items() if (top / name).exists()), None)
        todo = top / "sequencer" / "todo"
        if found == "cherry-pick" and todo.exists() and todo.read_bytes().startswith(b"revert"):
            return "revert"
        return found

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
        try:
            out = self.repo.git(*args, env={"GIT_OPTIONAL_LOCKS": "1"} if note else None)
        except HexpatchError as error:
            raise MissingObject(error.message, REPAIR) from None
        return [field[3:] for field in out.split(b"\0") if field]

    def unmerged(self) -> list[bytes]:
        """Paths with conflict stages in the index."""
        out = self.repo.git("ls-files", "--unmerged", "--full-name", "-z")
        return sorted({entry.partition(b"\t")[2] for entry in out.split(b"\0") if entry})

    def in_the_way(self, target: str, more: Iterable[bytes] = ()) -> list[str]:
        """Untracked files that a move to `target`, and writing `more` files, would overwrite."""
        repo = self.repo
        if not (repo.git_dir / "index").exists():
            return []
        out = repo.git("diff-index", "--cached", "--name-only", "--diff-filter=D", "-z", target)
        found = set()
        for name in {*filter(None, out.split(b"\0")), *more}:
            path = self.path / os.fsdecode(name)
            blocker = _blocker(self.path, path) or path
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

    def _submodule_folders(self) -> None:
        """Make the empty folders again that stand for submodules: git misses one that is gone."""
        for entry in self.repo.git("ls-files", "--stage", "-z").split(b"\0"):
            if entry.startswith(b"160000 "):
                folder = self.path / os.fsdecode(entry.partition(b"\t")[2])
                with contextlib.suppress(FileExistsError, NotADirectoryError):
                    folder.mkdir(parents=True, exist_ok=True)

    def hidden(self, target: str) -> dict[str, list[str]]:
        """Files that a move to `target` changes, with edits that git was told not to look at.

        By the option of `git update-index` that makes git look again.
        """
        repo = self.repo
        listed = [e for e in repo.git("ls-files", "-v", "-z").split(b"\0") if e]
        flags = {e[2:]: e[:1] for e in listed if e[:1] == b"S" or e[:1].islower()}
        if not flags:
            return {}
        moved = set(repo.git("diff-index", "--cached", "--name-only", "-z", target).split(b"\0"))
        names = sorted(os.fsdecode(n) for n in moved & flags.keys())
        names = [n for n in names if os.path.lexists(self.path / n)]
        env = self._scratch()
        for option in _SHOW:
            repo.git("update-index", "-q", option, "--", *names, env=env)
        args = ("diff-files", "--name-only", "-z", "--", *names)
        out = repo.git("--literal-pathspecs", *args, env=env) if names else b""
        found: dict[str, list[str]] = {}
        for name in filter(None, out.split(b"\0")):
            kinds = [flags[name] in b"Ss", flags[name].islower()]
            for option in (o for o, on in zip(_SHOW, kinds, strict=True) if on):
                found.setdefault(option, []).append(os.fsdecode(name))
        return found

    def _show(self, hidden: dict[str, list[str]], env: dict[str, str] | None = None) -> None:
        """Let git look at these files again."""
        for option, names in hidden.items():
            self.repo.git("update-index", "-q", option, "--", *names, env=env)

    def _scratch(self) -> dict[str, str]:
        """The environment that makes git work on a copy of the index."""
        copy = self.store.git_dir.parent / "index.tmp"
        copy.unlink(missing_ok=True)
        index = self.repo.git_dir / "index"
        if index.exists():
            shutil.copyfile(index, copy)
        return {"GIT_INDEX_FILE": os.fspath(copy)}

    def stash(self, target: str | None = None) -> str | None:
        """A commit that holds the uncommitted changes; they stay where they are.

        With a `target` that will be forced, also of what git does not look at, and of conflicts.
        """
        hidden = self.hidden(target) if target else {}
        if target and self.head() is None:
            return self.remains(target)
        if hidden or self.unmerged():
            env = self._scratch()
            self._show(hidden, env)
            return self._commit_of(env, "HEAD")
        if not self.dirty():
            return None
        out = self.repo.git("stash", "create", _BEFORE_FORCE, env=_SOMEBODY)
        return out.decode().strip() or None

    def remains(self, target: str) -> str | None:
        """A commit on `target` with the files as they lie here, where git can't read its own."""
        env = self._scratch()
        Path(env["GIT_INDEX_FILE"]).unlink(missing_ok=True)
        self.repo.git("read-tree", target, env=env)
        return self._commit_of(env, target)

    def _commit_of(self, env: dict[str, str], parent: str) -> str | None:
        """A commit of the tracked files as they lie here; None if they are the parent's."""
        repo = self.repo
        repo.git("add", "-u", env=env)
        tree = repo.git("write-tree", env=env).decode().strip()
        if tree == repo.resolve(parent, "tree"):
            return None
        args = ("commit-tree", "-p", parent, "-m", _BEFORE_FORCE, tree)
        return repo.git(*args, env=_SOMEBODY).decode().strip()

    def move(
        self, target: str, *, detach: bool, force: bool = False, index_only: bool = False
    ) -> None:
        """Files and index to a commit, then HEAD. With force, whatever a killed run left goes."""
        self.create(target)
        repo = self.repo
        index = repo.git_dir / "index"
        current = repo.resolve("HEAD") if index.exists() else None
        if index_only and current is not None:
            repo.git("read-tree", "--reset", target)  # keeps what a sparse checkout hides
            self._look_again()
        elif force or current is None:
            if current is not None:
                self._show(self.hidden(target))
            repo.git("read-tree", "--reset", "-u", target)
            self._submodule_folders()
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
        self.unlock()

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
        for left in (copy, copy.with_name(f"{copy.name}.lock")):  # of a killed run
            left.unlink(missing_ok=True)
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
        if head is None:
            return  # it was lost, or never checked out
        self.create(head)
        repo = self.repo
        index = repo.git_dir / "index"
        if was["branch"]:
            repo.git("symbolic-ref", "HEAD", was["branch"])
        else:
            repo.git("update-ref", "--no-deref", "HEAD", head)
        if index_only:
            repo.git("read-tree", "--reset", head)
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
            _remove_file(self.path, file.path)  # all of them first: folder and file may swap
        for file in layout.files:
            if file.oid:
                data = self.store.read(file.oid, "blob")
                _write_file(self.path, file.path, file.mode, data)
        repo.git("update-index", "-q", "--refresh", ok=(0, 1))
        (repo.git_dir / "MERGE_MSG").write_text(layout.message, encoding="utf-8")
        repo.git("update-ref", "--no-deref", "CHERRY_PICK_HEAD", layout.original)

    def staged_tree(self) -> str:
        """Tree of the index."""
        return self.repo.git("write-tree").decode().strip()


def _remove_file(top: Path, path: bytes) -> None:
    """Remove a file, and the folders that it leaves empty."""
    target = top / os.fsdecode(path)
    if _blocker(top, target) is not None or not (target.is_symlink() or target.is_file()):
        return
    target.unlink()
    for folder in target.parents:
        if folder == top or any(folder.iterdir()):
            return
        folder.rmdir()


def _blocker(top: Path, target: Path) -> Path | None:
    """The file or link that stands where a folder above the target is wanted."""
    above = [folder for folder in target.parents if top in folder.parents]
    return next((p for p in reversed(above) if p.is_symlink() or p.is_file()), None)


def _write_file(top: Path, path: bytes, mode: int, data: bytes) -> None:
    target = top / os.fsdecode(path)
    if _blocker(top, target) is not None or target.is_dir():
        return  # a conflict of file and folder: the stages in the index say so
    target.parent.mkdir(parents=True, exist_ok=True)
    if mode == 0o120000:
        target.symlink_to(os.fsdecode(data))
        return
    target.write_bytes(data)
    target.chmod(0o755 if mode == 0o100755 else 0o644)
