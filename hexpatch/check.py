"""Does every patch fit? Answered from a true series.lock, by placing, or by walking elsewhere."""

from __future__ import annotations

import contextlib

from hexpatch import lockfile
from hexpatch.errors import HexpatchError
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

        _tell_line_ends(session)
        session.store.keep = False
        known = fit.placed(session)
    return name, known


def _tell_line_ends(session: Session) -> None:
    """Patches fit with CRLF kernels, too, but they are not the ones that were committed."""
    with contextlib.suppress(HexpatchError):  # a lock that can't be read is another matter
        lock = lockfile.read(session.series.root)
        if lock is not None and (files := lockfile.line_ends(lock, session.series)):
            session.say(f"warning: {lockfile.crlf(files)}")
            session.say(f"hint: {lockfile.LINE_ENDS}")


def _locked(series: Series) -> list[Row] | None:
    """The rows that series.lock vouches for; None if anything differs from what it was made of."""
    lock = lockfile.true(series)
    if lock is None:
        return None
    moved = {p.name: p.placed for p in lock.patches}
    rows = []
    for patch in series.patches:
        if patch.name not in moved:
            rows.append(Row(patch.name, patch.out))
            continue
        detail = tuple(f"{hunk} sits at line {line}" for _, hunk, line in moved[patch.name][:5])
        rows.append(Row(patch.name, "offset" if detail else "ok", detail))
    return rows
