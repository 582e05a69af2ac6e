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
    tree = Tree(session.store, session.base_tree)
    # mapped: a large patch must be gone before the next one comes
    rows = dict(map(_row, stack.lay_all(tree, stack.sources(session.series, once=True))))
    return [rows.get(p.name) or Row(p.name, p.out) for p in session.series.patches]


def _row(result: Laid | Failed) -> tuple[str, Row]:
    if isinstance(result, Failed):
        detail = tuple(c.line for c in result.conflicts)
        word = "blocked" if result.blocked_by else "conflict"
        return result.name, Row(result.name, word, detail, result.blocked_by)
    moved = [(p, h) for c in result.changes for p, h in c.hunks if p != stated(h)]
    detail = tuple(f"{hunk_name(h)} sits at line {p + 1}" for p, h in moved[:5])
    return result.name, Row(result.name, "offset" if moved else "ok", detail)
