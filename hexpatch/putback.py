"""Files of the series that are gone from the disk: where they are still to be had."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from hexpatch import oplog, proc, series, workspace
from hexpatch.errors import HexpatchError
from hexpatch.repo import environment

if TYPE_CHECKING:
    from hexpatch.session import Session


def hint(session: Session) -> str | None:
    """The command that writes files again which series.yaml names; None where none is missing."""
    root, ws = session.ws.root, session.ws
    try:
        known = series.parse((root / workspace.SERIES).read_bytes(), root, disk=False)
    except (HexpatchError, OSError):
        return None
    named = [f for p in known.patches for f in (f"patches/{p.file}", *p.files)]
    gone = [name for name in named if not os.path.lexists(root / name)]
    if not gone:
        return None
    names = shlex.join(gone)
    if ws.store.is_dir() and all(session.repo.lookup(f"{oplog.OPS}:after/{n}") for n in gone):
        made = f"git -C {shlex.quote(str(ws.store))} archive {oplog.OPS}:after {names}"
        return f"`{made} | tar -x -C {shlex.quote(str(root))}` puts back what was there last"
    top = ["git", "-C", os.fspath(root)]
    if all(
        proc.run([*top, "cat-file", "-e", f"HEAD:./{n}"], env=environment()).status == 0
        for n in gone
    ):
        return f"`{shlex.join(top)} checkout HEAD -- {names}` puts back what was committed"
    return f"put back {names}, or take its entry out of {workspace.SERIES}"
