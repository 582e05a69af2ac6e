"""Files -> commits: put the stack on its base, or on another commit, into a checkout."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hexpatch import litter, lockfile, oplog, proc, rebase, stack, workspace
from hexpatch.checkout import Checkout
from hexpatch.errors import HexpatchError, MissingObject
from hexpatch.oplog import Step
from hexpatch.patchfile import marked
from hexpatch.repo import Repo, environment
from hexpatch.rows import Row
from hexpatch.series import Series
from hexpatch.session import Session
from hexpatch.sources import Found
from hexpatch.stack import Applied, Stack
from hexpatch.workspace import FileState

CLONE_BRANCH = "refs/heads/hexpatch-stack"
CLONE_MARK = "refs/hexpatch/stack"  # what we last put there


@dataclass(frozen=True)
class Result:
    """A stack in a checkout."""

    stack: Stack
    base_name: str
    where: Path
    rows: Sequence[Row] = ()


class DoesNotFit(HexpatchError):
    """Some patches do not fit on the commit that was asked for; `rows` has all of them."""

    def __init__(self, rows: list[Row], onto: Found) -> None:
        bad = [r for r in rows if r.unfit]
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
    if into is not None and into.resolve() == session.ws.checkout:
        into = None
    unreadable = into is None and not _readable(session, force)
    if into is None and not force and not unreadable:
        session.in_sync()
    rows: list[Row] = []
    # the files are read after the stack is made: a large patch is then in memory once, not twice
    if onto is None:
        name, made = session.series.base.name, session.stack
        _say_marks(session)
        _check_lock(session.series, made, locked)
        before = workspace.durable(session.ws.root)
        files = session.with_lock(before, made)
    else:
        found = session.upstream.resolve(onto)
        name = found.name
        made, rows = _stack_on(session, found)
        before = files = workspace.durable(session.ws.root)
    if into is not None:
        where = into.resolve()
        _apply_into(session, before, files, made, where)
        return Result(made, name, where, rows)
    force = force or unreadable
    session.store.flush()
    keep: list[str] = []
    if force:
        keep = _remains(session, made) if unreadable else _rescue(session, made)
    session.room_for(made.tip, hidden=not force)
    session.step(files, made, before=before, force=force, keep=keep)
    return Result(made, name, session.ws.checkout, rows)


def _readable(session: Session, force: bool) -> bool:
    """Refuse to overwrite work; False if even with the stack made again git can't read it."""
    try:
        _look(session, force)
        return True
    except MissingObject as error:
        session.say(error.message)
    session.say("the stack's commits are made again from the files")
    session.made_again()
    try:
        _look(session, force)
        return True
    except MissingObject:
        return False


def _look(session: Session, force: bool) -> None:
    if not force:
        session.clean()
        return
    session.whole()
    if session.checkout.exists:
        session.checkout.dirty()


def _remains(session: Session, made: Stack) -> list[str]:
    """What there is to keep where git can't read the checkout: the files as they lie there."""
    session.say("the checkout is made again, too: commits that were only there are lost")
    if not session.checkout.exists:
        return []
    put = session.checkout.remains(made.tip)
    return [_told(session, put)] if put else []


def _told(session: Session, put: str) -> str:
    session.say(f"the uncommitted changes are kept as {put[:12]}")
    return put


def _apply_into(
    session: Session, before: FileState, files: FileState, made: Stack, where: Path
) -> None:
    """Another folder gets the stack; the workspace's own refs and checkout stay as they are."""
    session.store.flush()
    checkout_into(session, made.tip, where)
    oplog.perform(session.ws, session.store, Step(session.command, files), before)


def _rescue(session: Session, made: Stack) -> list[str]:
    """Keep what --force is about to drop: commits and uncommitted changes, as parents of the op."""
    keep: list[str] = []
    checkout, tip = session.checkout, session.branch_tip()
    head = checkout.head() if checkout.exists else None
    for oid in dict.fromkeys(o for o in (tip, head) if o):
        known = oid in (session.applied_tip(), made.tip, made.base)
        if not known and (oid == tip or oid == session.stray()):
            session.say_kept(oid)
            keep.append(oid)
    if checkout.exists:
        for put in (checkout.stash(made.tip), checkout.autostash()):
            if put:
                keep.append(_told(session, put))
    return keep


def _say_marks(session: Session) -> None:
    """New files may hold anything, but a half-merged one was hardly meant."""
    for patch in session.series.active:
        for file in patch.files:
            line = marked(session.series.read(file))
            if line:
                session.say(f"{file}: line {line}: holds merge conflict marks")


def _check_lock(series: Series, made: Stack, locked: bool) -> None:
    """The lock proves reproducibility: unchanged files must give the locked ids again."""
    lock = lockfile.read(series.root)
    if lock is None:
        if locked:
            raise HexpatchError("there is no series.lock", "run `hexpatch apply` and commit it")
        return
    changed = lockfile.changed(lock, series, series.read)
    names = [p.name for p in lock.patches]
    if changed and (files := lockfile.line_ends(lock, series)):
        raise HexpatchError(lockfile.crlf(files), lockfile.LINE_ENDS)
    same = not changed and names == [p.name for p in series.active]
    same = same and lock.base.tree == made.base_tree
    locked_trees = [*((p.name, p.tree) for p in lock.patches), ("the whole stack", lock.tree)]
    trees = [*((a.name, a.tree) for a in made.patches), ("the whole stack", made.tree)]
    wrong = [(n, t, new) for (n, t), (_, new) in zip(locked_trees, trees, strict=False) if t != new]
    if same and wrong:
        what, told, new = wrong[0]
        raise HexpatchError(
            f"series.lock says tree {told} for {what}, the same files give {new}",
            "series.lock was edited, or made by another version: delete it and run again",
        )
    if locked and (not same or lock.tip != made.tip):
        what = ", ".join(changed) or "the order or the base"
        raise HexpatchError(
            f"series.lock does not fit the files ({what})", "run `hexpatch apply` and commit it"
        )


def _stack_on(session: Session, onto: Found) -> tuple[Stack, list[Row]]:
    """The stack as it would be on another commit; all of it or an error that names what fails."""
    fold, items = rebase.begin(session, onto)
    parent, rows, applied = onto.commit, [], []
    for item in items:
        row, _ = fold.step(item)
        rows.append(row)
        if row.fits:
            tree = fold.tree.write()
            parent = stack.commit_patch(session.store, item.source, parent, tree)
            applied.append(Applied(item.name, parent, tree))
    if any(r.unfit for r in rows):
        raise DoesNotFit(rows, onto)
    return Stack(onto.commit, onto.tree, tuple(applied)), rows


def checkout_into(session: Session, tip: str, into: Path) -> None:
    """The stack in another folder: a new one, a work tree of ours, or a clone of the user's."""
    litter.forget_half_made(session.ws.store)
    if not into.exists() or (into.is_dir() and not any(into.iterdir())):
        session.repo.git("worktree", "prune")
        session.repo.git("worktree", "add", "-q", "--detach", os.fspath(into), tip)
        return
    target = Checkout(session.repo, into)
    if target.exists and target.half_made:
        target.move(tip, detach=True, force=True)
        return
    if target.exists:
        busy = target.busy()
        if busy:
            raise HexpatchError(
                f"a `git {busy}` is not finished in {into}", f"`git {busy} --abort` there"
            )
        try:
            dirty = target.dirty()
        except MissingObject as error:
            raise HexpatchError(error.message, f"move {into} away and run again") from None
        if dirty:
            raise HexpatchError(f"{into} has uncommitted changes", "commit or stash them first")
        names = target.in_the_way(tip)
        if names:
            raise HexpatchError(
                f"untracked files are in the way in {into}: {', '.join(names[:5])}",
                "move them away and run again",
            )
        target.move(tip, detach=True)
        return
    _into_clone(session, tip, into)


def _clone_at(folder: Path) -> Repo:
    done = proc.run(
        ["git", "-C", folder, "rev-parse", "--absolute-git-dir", "--show-toplevel"],
        env=environment(),
    )
    found = [Path(os.fsdecode(line)) for line in done.stdout.splitlines()]
    if done.status or len(found) != 2 or found[1] != folder:
        raise HexpatchError(
            f"{folder} is in the way: neither an empty folder nor the top of a git work tree",
            "name a new folder, or a clone of llama.cpp",
        )
    return Repo(found[0], folder)


def _into_clone(session: Session, tip: str, into: Path) -> None:
    """Branch `hexpatch-stack` in somebody's clone, checked out only if nothing is in the way."""
    if into == session.ws.root or into in session.ws.root.parents:
        raise HexpatchError(
            f"{into} holds the series itself", "name a new folder, or a clone of llama.cpp"
        )
    clone = _clone_at(into)
    if clone.git("status", "--porcelain", "--untracked-files=no"):
        raise HexpatchError(f"{into} has uncommitted changes", "commit or stash them first")
    there, ours = clone.ref(CLONE_BRANCH), clone.ref(CLONE_MARK)
    if there not in (None, ours, tip):
        raise HexpatchError(
            f"branch hexpatch-stack in {into} has commits of yours",
            "`git branch -m hexpatch-stack NAME` there keeps them",
        )
    store = os.fspath(session.ws.store)
    clone.git("fetch", "-q", "--no-tags", "--update-shallow", store, f"+{tip}:{CLONE_MARK}")
    status, _ = clone.git_status("checkout", "-q", "-B", "hexpatch-stack", CLONE_MARK)
    if status:
        clone.update_refs({CLONE_MARK: ours})
        raise HexpatchError(
            f"{into} has untracked files where the stack has its own",
            "move them away and run again",
        )
