"""`check` as scripts and prompts ask it, without the parser of the command line.

To load that (click, and what it needs) takes as long as the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from hexpatch import edge, render

if TYPE_CHECKING:
    from hexpatch.session import Session

_OPTIONS = {"--fresh", "--json"}


def run(args: Sequence[str]) -> int | None:
    """The exit status; None for all that is more than `check` with plain options."""
    options = set(args[1:])
    if args[:1] != ["check"] or not options <= _OPTIONS:
        return None

    def command() -> int:
        from hexpatch import session

        start = edge.start_folder()
        opened = session.opened(start, edge.command_line(), render.say, write=False)
        return check(opened, fresh="--fresh" in options, as_json="--json" in options)

    return edge.ending(command)


def check(
    opened: AbstractContextManager[Session],
    onto: str | None = None,
    *,
    fresh: bool = False,
    as_json: bool = False,
) -> int:
    """Say of every patch whether it fits; 1 if one does not."""
    from hexpatch import check as checking

    with opened as session:
        name, rows = checking.check(session, onto, fresh=fresh)
    bad = sum(r.unfit for r in rows)
    if as_json:
        render.as_json({"onto": name, "patches": [r.as_json() for r in rows]})
    else:
        render.out(f"on {name}:")
        render.fates((r.name, r.status, r.detail) for r in rows)
        fit = sum(r.fits for r in rows)
        render.out(f"{fit} of {len(rows)} patches fit" + (f", {bad} do not" if bad else ""))
    return 1 if bad else 0
