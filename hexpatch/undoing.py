"""undo and log: restore the state before an operation, list the operations."""

from __future__ import annotations

import time
from typing import Any

from hexpatch import oplog, workspace
from hexpatch.oplog import Operation, Step
from hexpatch.session import Session
from hexpatch.workspace import BRANCH


def undo(session: Session, name: str | None) -> Operation:
    """Put back files and refs as they were before an operation; this is an operation too."""
    session.no_pending()
    op = oplog.find(session.repo, name) if name else oplog.to_undo(session.repo)
    session.clean()
    refs: dict[str, str | None] = {}
    for ref in {*op.refs_before, *op.refs_after}:
        if op.refs_before.get(ref) != op.refs_after.get(ref):
            refs[ref] = op.refs_before.get(ref)
    here = session.branch_tip()
    unstacked = BRANCH in refs and refs[BRANCH] is None  # there was no stack yet
    target = op.refs_after.get(workspace.BASE) if unstacked else refs.get(BRANCH)
    again = BRANCH in refs and BRANCH not in op.refs_after  # its undo had removed the checkout
    if (target == here and not unstacked) or not (session.checkout.exists or again):
        target = None
    if target:
        session.room_for(target)
    remove = bool(unstacked and target and session.checkout.untouched())
    stray = session.stray()
    step = Step(
        command=session.command,
        files=oplog.files_of(session.store, op, "before"),
        refs=refs,
        checkout=None if remove else target,
        detach=unstacked,
        remove_checkout=remove,
        undoes=op.oid,
        keep=tuple(o for o in (here, stray) if o),
    )
    oplog.perform(session.ws, session.store, step, workspace.durable(session.ws.root))
    return op


def entries(session: Session, limit: int) -> list[dict[str, Any]]:
    """The newest operations, for people and scripts."""
    out: list[dict[str, Any]] = []
    for op in oplog.history(session.repo):
        if len(out) >= limit:
            break
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(op.when))
        note = f"undoes {op.undoes[:12]}" if op.undoes else ""
        out.append({"id": op.oid, "when": when, "note": note, "command": op.command})
    return out
