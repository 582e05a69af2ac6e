"""Place the whole series on its base and say how each patch sits there."""

from __future__ import annotations

from hexpatch import stack
from hexpatch.pick import Laid
from hexpatch.place import hunk_name, stated
from hexpatch.rows import Row
from hexpatch.session import Session
from hexpatch.stack import Failed
from hexpatch.tree import Tree


def placed(session: Session) -> list[Row]:
    """A row for every patch, by placing all hunks in memory."""
    base = session.base
    tree = Tree(session.store, base.tree)
    laid = {(r.name): r for r in stack.lay_all(tree, stack.sources(session.series))}
    rows = []
    for patch in session.series.patches:
        result = laid.get(patch.name)
        if result is None:
            rows.append(Row(patch.name, "hold" if patch.state == "hold" else "landed"))
        else:
            rows.append(_row(result))
    return rows


def _row(result: Laid | Failed) -> Row:
    if isinstance(result, Failed):
        detail = tuple(c.line for c in result.conflicts)
        word = "blocked" if result.blocked_by else "conflict"
        return Row(result.name, word, detail, result.blocked_by)
    moved = [(p, h) for c in result.changes for p, h in c.hunks if p != stated(h)]
    if not moved:
        return Row(result.name, "ok")
    detail = tuple(f"{hunk_name(h)} sits at line {p + 1}" for p, h in moved[:5])
    return Row(result.name, "offset", detail)
