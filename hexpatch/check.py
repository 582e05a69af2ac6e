"""Does every patch fit? Answered from a true series.lock, by placing, or by walking elsewhere."""

from __future__ import annotations

from hexpatch import lockfile
from hexpatch.rows import Row
from hexpatch.series import Series
from hexpatch.session import Session


def check(session: Session, onto: str | None, *, fresh: bool = False) -> tuple[str, list[Row]]:
    """A row for every patch, on the base or on another commit. No object is written.

    On the base, a series.lock that fits every file byte for byte has the answer already, for
    `apply` placed these very bytes there; `fresh` places them again.
    """
    if onto is not None:
        from hexpatch import rebase  # the moving half of the tool: not for a plain check

        found = session.upstream.resolve(onto)
        return found.name, rebase.plan(session, found)
    name = session.series.base.name
    known = None if fresh else _locked(session.series)
    if known is None:
        from hexpatch import fit

        session.store.keep = False
        known = fit.placed(session)
    return name, known


def _locked(series: Series) -> list[Row] | None:
    """The rows that series.lock vouches for; None if anything differs from what it was made of."""
    lock = lockfile.true(series)
    if lock is None:
        return None
    moved = {p.name: p.placed for p in lock.patches}
    rows = []
    for patch in series.patches:
        if patch.name not in moved:
            rows.append(Row(patch.name, "hold" if patch.state == "hold" else "landed"))
            continue
        detail = tuple(f"{hunk} sits at line {line}" for _, hunk, line in moved[patch.name][:5])
        rows.append(Row(patch.name, "offset" if detail else "ok", detail))
    return rows
