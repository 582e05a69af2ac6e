"""undo and log: restore the state before an operation, list the operations."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from hexpatch import oplog, resolutions, workspace
from hexpatch.errors import HexpatchError, UsageError
from hexpatch.oplog import Operation, Step
from hexpatch.series import parse
from hexpatch.session import Session
from hexpatch.workspace import BRANCH, FileState

_STACK = (workspace.BASE, workspace.TIP, BRANCH)


def undo(session: Session, name: str | None) -> Operation:
    """Put back files and refs as they were before an operation; this is an operation too.

    What came after it is undone with it: every ref that one of these operations moved goes back,
    base, tip and branch together. Files in patches/resolutions/ are answers, not state: they stay.
    What the person had in the checkout is never lost: uncommitted changes refuse an undo, commits
    are kept by their id, and the undo of `new` leaves its changes uncommitted.
    """
    session.no_pending()
    session.whole()
    if name is not None and not name.strip():
        raise UsageError("OPERATION is empty", "`hexpatch log` lists the operations")
    op = oplog.find(session.repo, name) if name else oplog.to_undo(session.repo)
    session.in_reach()
    refs = _refs(session, op)
    here = session.branch_tip()
    unstacked = BRANCH in refs and refs[BRANCH] is None  # there was no stack yet
    target = refs.get(BRANCH)
    if unstacked:
        target = op.refs_after.get(workspace.BASE) or session.repo.ref(workspace.BASE)
    files = _files(session, op)
    _all_there(session, op, files, {*refs.values(), target})
    again = BRANCH in refs and here is None  # its undo had removed the checkout
    if (target == here and not unstacked) or not (session.checkout.exists or again):
        target = None
    index_only = target is not None and _files_stay(session, op, target)
    keep = _kept(session, here if BRANCH in refs and refs[BRANCH] != here else None)
    if index_only:
        session.idle()
        put = session.checkout.stash()
        keep += [put] if put else []
    else:
        session.clean()
        if target:
            session.room_for(target)
    remove = bool(unstacked and target and session.checkout.untouched() and not _inside(session))
    step = Step(
        command=session.command,
        files=files,
        refs=refs,
        checkout=None if remove else target,
        detach=unstacked,
        index_only=index_only,
        remove_checkout=remove,
        undoes=op.oid,
        keep=tuple(o for o in (here, *keep) if o),
    )
    _rescue(session, op, files)
    oplog.perform(session.ws, session.store, step, workspace.durable(session.ws.root))
    return op


def _all_there(session: Session, op: Operation, files: FileState, commits: set[str | None]) -> None:
    """Refuse to go back to commits that are gone: a clone lends the base, and its `gc` drops it."""
    wanted = {oid for oid in commits if oid}
    gone = wanted - session.repo.existing(wanted)
    bases = {refs.get(workspace.BASE) for refs in (op.refs_before, op.refs_after)}
    base = next((oid for oid in gone if oid in bases), None)
    if base:
        what = base
        if workspace.SERIES in files:
            with contextlib.suppress(HexpatchError):
                data = files[workspace.SERIES][0]
                what += f" (base {parse(data, session.ws.root, disk=False).base.name})"
        raise HexpatchError(f"{what} is not in the store any more", "fetch it into the clone")
    if gone:
        ws = session.ws
        raise HexpatchError(
            f"a commit of that stack, {min(gone)[:12]}, is not in the store any more",
            f"`git -C {ws.store} archive {op.oid[:12]}:before | tar -x -C {ws.root}` puts the "
            "series' files back, then `hexpatch apply` makes its commits again",
        )


def _rescue(session: Session, op: Operation, files: FileState) -> None:
    """Keep what a person has edited since the last operation and this undo overwrites."""
    known = oplog.files_of(session.store, oplog.since(session.repo, op)[0], "after")
    for path, (data, _) in workspace.durable(session.ws.root).items():
        new, old = files.get(path), known.get(path)
        if (new is None or new[0] != data) and (old is None or old[0] != data):
            copy = workspace.rescue(session.ws, path, data)
            session.say(f"{path} was edited by hand; your version is kept as {copy}")


def _refs(session: Session, op: Operation) -> dict[str, str | None]:
    """The refs that this operation or a later one moved, as they were before it.

    A branch for export that a person has moved since stays theirs.
    """
    moved: set[str] = set()
    ops = oplog.since(session.repo, op)
    for later in ops:
        for ref in {*later.refs_before, *later.refs_after}:
            if later.refs_before.get(ref) != later.refs_after.get(ref):
                moved.add(ref)
    if moved.intersection(_STACK):
        moved.update(_STACK)
    now = oplog.state_refs(session.repo)
    for ref in sorted(r for r in moved if r.startswith("refs/heads/") and r != BRANCH):
        if now.get(ref) not in (None, ops[0].refs_after.get(ref), op.refs_before.get(ref)):
            session.say(f"branch {ref.removeprefix('refs/heads/')} has commits of yours: it stays")
            moved.remove(ref)
    return {ref: op.refs_before.get(ref) for ref in moved}


def _files(session: Session, op: Operation) -> FileState:
    """The files as they are now, but those that an operation has changed as before this one.

    So are files of that time which a person edited before a later operation recorded it. What no
    operation made stays, and the answers to conflicts that were given since.
    """
    files = workspace.durable(session.ws.root)
    old = oplog.files_of(session.store, op, "before")
    ops = oplog.since(session.repo, op)
    last = oplog.files_of(session.store, ops[0], "after")
    paths = {path for path in old if old[path] != last.get(path)}
    for later in ops:
        paths |= oplog.changed_paths(session.repo, later)
    for path in paths:
        if path.startswith(f"{resolutions.FOLDER}/"):
            continue
        if path in old:
            files[path] = old[path]
        else:
            files.pop(path, None)
    return files


def _files_stay(session: Session, op: Operation, target: str) -> bool:
    """Is it the undo of `new` (or of that undo), and the checkout as that left it?"""
    checkout = session.checkout
    if not op.index_only or not checkout.exists or checkout.branch() != BRANCH:
        return False
    if checkout.head() != op.refs_after.get(BRANCH):
        return False
    return op.undoes is None or bool(checkout.dirty() or checkout.in_the_way(target))


def _kept(session: Session, leaving: str | None) -> list[str]:
    """Name the commits that are not in files and that no branch will have after this."""
    keep = [leaving] if leaving and leaving != session.applied_tip() else []
    stray = session.stray()
    if stray:
        keep.append(stray)
    for oid in keep:
        session.say_kept(oid)
    return keep


def _inside(session: Session) -> bool:
    """Does the person stand in the checkout? It can't be taken away then."""
    here = Path.cwd()
    return session.ws.checkout.resolve() in (here, *here.parents)


def entries(session: Session, limit: int) -> list[dict[str, Any]]:
    """The newest operations, for people and scripts."""
    out: list[dict[str, Any]] = []
    for op in oplog.history(session.repo):
        if len(out) >= limit:
            break
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(op.when))
        note = f"undoes {op.undoes[:12]}" if op.undoes else ""
        out.append({"id": op.oid, "when": when, "note": note, "command": op.command})
    if not out:
        session.whole()  # the log may be lost
    return out
