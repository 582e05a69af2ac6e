"""init: start a series."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hexpatch import oplog, workspace
from hexpatch.errors import InvalidSeries, UsageError
from hexpatch.oplog import Step
from hexpatch.rebase import base_entry
from hexpatch.series import Base, parse
from hexpatch.session import Session
from hexpatch.sources import Found
from hexpatch.workspace import SERIES

# or a clone of the series with core.autocrlf has other files, and other commit ids
BYTES = b"patches/** -text\nsrc/** -text\nseries.lock -text\n"


# where new files are kernels: upstream's folder is looked for, and src/htp stands for it
KERNELS = {"htp": "ggml/src/ggml-hexagon/htp"}


def init(
    session: Session, template: Callable[..., bytes], base_rev: str, src: Mapping[str, str]
) -> Found:
    """Write series.yaml with its base resolved. Without `src`, the known folder that base has."""
    text = template(base=Base("master"), src=src)  # until it is known
    try:
        session.__dict__["series"] = parse(text, session.ws.root, disk=False)
    except InvalidSeries as error:  # there is no such file yet to point into
        raise UsageError("; ".join(p.text for p in error.problems)) from None
    found = session.upstream.resolve(base_rev)
    known = {
        own: path for own, path in KERNELS.items() if session.repo.lookup(f"{found.tree}:{path}")
    }
    text = template(base=base_entry(found), src=src or known)
    before = workspace.durable(session.ws.root)
    files = {**before, SERIES: (text, False)}
    oplog.perform(session.ws, session.store, Step(session.command, files), before)
    attributes = session.ws.root / ".gitattributes"
    if not attributes.exists():
        workspace.write_atomic(attributes, BYTES)
    (session.ws.root / "patches").mkdir(exist_ok=True)
    (session.ws.root / "src").mkdir(exist_ok=True)
    return found
