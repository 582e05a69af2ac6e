"""undo and log: restore the state before an operation, list the operations."""

from __future__ import annotations

import time
from typing import Any

from hexpatch import oplog, workspace
from hexpatch.checkout import BRANCH
from hexpatch.oplog import Operation, Step
from hexpatch.session import Session


def undo(session: Session, name: str | None) -> Operation:
    """Put back files and refs as they were before an operation; this is an operation too."""
    if session.ws.pending.exists():
        session.no_pending()
    op = oplog.find(session.repo, name) if name else oplog.to_undo(session.repo)
    session.clean()
    files = oplog.files_of(session.store, op, "before")
    refs: dict[str, str | None] = {}
    for ref in {*op.refs_before, *op.refs_after}:
        if op.refs_before.get(ref) != op.refs_after.get(ref):
            refs[ref] = op.refs_before.get(ref)
    here = session.branch_tip()
    target = refs.get(BRANCH)
    if BRANCH in refs and target is None:
        target = op.refs_after.get(oplog.BASE)  # there was no stack yet: leave the bare base
    moved = target is not None and target != here
    if moved and target:
        session.room_for(target)
    step = Step(
        command=session.command,
        files=files,
        refs=refs,
        checkout=target if moved and session.checkout.exists else None,
        detach=refs.get(BRANCH, "") is None,
        undoes=op.oid,
        keep=tuple(o for o in (here,) if o),
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
