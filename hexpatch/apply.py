"""Files -> commits: put the stack on its base, or on another commit, into a checkout."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hexpatch import lockfile, proc, stack, walk, workspace
from hexpatch.checkout import Checkout
from hexpatch.errors import HexpatchError
from hexpatch.repo import Repo, environment
from hexpatch.series import Series
from hexpatch.session import Session
from hexpatch.sources import Found
from hexpatch.stack import Applied, Stack
from hexpatch.tree import Tree
from hexpatch.walk import Row


@dataclass(frozen=True)
class Result:
    """A stack in a checkout."""

    stack: Stack
    base_name: str
    where: Path
    operation: str | None
    rows: tuple[Row, ...] = ()


class DoesNotFit(HexpatchError):
    """Some patches do not fit on the commit that was asked for; `rows` has all of them."""

    def __init__(self, rows: list[Row], onto: Found) -> None:
        bad = [r for r in rows if not r.fits and r.status not in ("landed", "hold")]
        lines = [
            f"{len(bad)} of {len(rows)} patches do not fit on {onto.name}; nothing was changed"
        ]
        lines += [f"  {r.name}: {r.status}: {'; '.join(r.detail)}" for r in bad]
        super().__init__(
            "\n".join(lines), f"`hexpatch rebase --onto {onto.name}` lets you resolve them"
        )
        self.rows = rows


def run(
    session: Session,
    onto: str | None = None,
    into: Path | None = None,
    *,
    force: bool = False,
    locked: bool = False,
) -> Result:
    """Apply the series. The same files give the same ids on every machine."""
    session.no_pending()
    if into is None and not force:
        session.in_sync()
        session.clean()
    if onto is not None:
        return _apply_onto(session, session.upstream.resolve(onto), into, force)
    made = session.stack
    before = workspace.durable(session.ws.root)
    _check_lock(session.series, made, locked)
    files = session.with_lock(before, session.series, made)
    keep = _rescue(session) if force and into is None else []
    if into is None and not force:
        session.room_for(made.tip)
    operation = session.step(
        files, made, before=before, force=force, keep=keep, visible=into is None
    )
    where = session.ws.checkout if into is None else checkout_into(session, made.tip, into)
    return Result(made, session.series.base.name, where, operation)


def _rescue(session: Session) -> list[str]:
    """Keep what --force is about to drop: uncommitted changes and commits, as parents of the op."""
    keep = []
    if session.checkout.exists:
        stash = session.checkout.stash() if session.checkout.dirty() else None
        head = session.checkout.head()
        keep = [oid for oid in (stash, head) if oid]
        if stash:
            session.say(f"the uncommitted changes are kept as {stash[:12]}")
    return keep


def _check_lock(series: Series, made: Stack, locked: bool) -> None:
    """The lock proves reproducibility: unchanged files must give the locked ids again."""
    lock = lockfile.read(series.root)
    if lock is None:
        if locked:
            raise HexpatchError("there is no series.lock", "run `hexpatch apply` and commit it")
        return
    changed = lockfile.changed(lock, series, lambda p: (series.root / p).read_bytes())
    names = [p.name for p in lock.patches]
    same = not changed and names == [p.name for p in series.active]
    same = same and lock.base.tree == made.base_tree
    if same and lock.tree != made.tree:
        raise HexpatchError(
            f"series.lock says tree {lock.tree}, the same files give {made.tree}",
            "series.lock was edited, or made by another version: delete it and run again",
        )
    if locked and (not same or lock.tip != made.tip):
        what = ", ".join(changed) or "the order or the base"
        raise HexpatchError(
            f"series.lock does not fit the files ({what})", "run `hexpatch apply` and commit it"
        )


def _apply_onto(session: Session, onto: Found, into: Path | None, force: bool) -> Result:
    base = session.base
    items = walk.items_of(session.series, Tree(session.store, base.tree))
    fold = walk.start(session.store, session.series, base.commit, onto.commit, items)
    parent, rows, applied = onto.commit, [], []
    for item in items:
        row, _ = fold.step(item)
        rows.append(row)
        if row.fits:
            tree = fold.tree.write()
            parent = stack.commit_patch(session.store, item.source, parent, tree)
            applied.append(Applied(item.name, parent, tree))
    if any(not r.fits and r.status not in ("landed", "hold") for r in rows):
        raise DoesNotFit(rows, onto)
    made = Stack(onto.commit, onto.tree, tuple(applied))
    before = workspace.durable(session.ws.root)
    keep = _rescue(session) if force and into is None else []
    operation = session.step(
        before, made, before=before, force=force, keep=keep, visible=into is None
    )
    where = session.ws.checkout if into is None else checkout_into(session, made.tip, into)
    return Result(made, onto.name, where, operation, tuple(rows))


def checkout_into(session: Session, tip: str, into: Path) -> Path:
    """The stack in another folder: a new one, a work tree of ours, or a clone of the user's."""
    into = into.resolve()
    if not into.exists() or (into.is_dir() and not any(into.iterdir())):
        session.repo.git("worktree", "prune")
        session.repo.git("worktree", "add", "-q", "--detach", os.fspath(into), tip)
        return into
    target = Checkout(session.repo, into)
    if target.exists and session.ws.store in _git_dir(into).parents:
        if target.dirty():
            raise HexpatchError(f"{into} has uncommitted changes", "commit or stash them first")
        target.move(tip, detach=True, force=False)
        return into
    return _into_clone(session, tip, into)


def _git_dir(folder: Path) -> Path:
    done = proc.run(["git", "-C", folder, "rev-parse", "--absolute-git-dir"], env=environment())
    if done.status:
        raise HexpatchError(
            f"{into_text(folder)} is not empty and not a git repository",
            "name an empty folder or a clone of llama.cpp",
        )
    return Path(os.fsdecode(done.stdout.rstrip(b"\n")))


def into_text(folder: Path) -> str:
    """A folder for people."""
    return os.fspath(folder)


def _into_clone(session: Session, tip: str, into: Path) -> Path:
    """Branch `hexpatch-stack` in somebody's clone, checked out only if nothing is in the way."""
    clone = Repo(_git_dir(into), into)
    dirty = clone.git("status", "--porcelain", "--untracked-files=no")
    if dirty:
        raise HexpatchError(f"{into} has uncommitted changes", "commit or stash them first")
    clone.git(
        "fetch",
        "-q",
        "--no-tags",
        "--update-shallow",
        os.fspath(session.ws.store),
        f"+{tip}:refs/hexpatch/incoming",
    )
    clone.git("checkout", "-q", "-B", "hexpatch-stack", "refs/hexpatch/incoming")
    clone.git("update-ref", "-d", "refs/hexpatch/incoming")
    return into
