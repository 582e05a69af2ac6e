"""What all changes of the series share: when they may start, and how their files are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hexpatch import objects, refresh, seriesedit
from hexpatch.errors import UsageError
from hexpatch.refresh import Named
from hexpatch.series import Series
from hexpatch.seriesrules import name_fault
from hexpatch.session import Session
from hexpatch.stack import Stack
from hexpatch.workspace import SERIES, FileState


@dataclass
class Edited:
    """What a change of the series did."""

    stack: Stack
    fate: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def current(session: Session) -> list[Named]:
    """The patches of the stack as their commits."""
    named = []
    session.store.flush()
    for applied in session.stack.patches:
        commit = objects.parse_commit(session.store.read(applied.commit, "commit"))
        known = session.series.patch(applied.name)
        named.append(Named(applied.name, applied.commit, commit, known))
    return named


def ready(session: Session) -> None:
    """Refuse while anything is under way: a conflict, an edited file, a dirty checkout."""
    session.no_pending()
    session.in_sync()
    session.clean()


def check_name(name: str) -> None:
    """Refuse what can't be a patch's name, before anything is computed."""
    fault = name_fault(name)
    if fault:
        raise UsageError(f"the name {name!r} {fault}")


def write(
    session: Session,
    series: Series,
    before: FileState,
    files: FileState,
    named: Sequence[Named],
    notes: Sequence[str] = (),
    *,
    anew: bool = False,
    index_only: bool = False,
) -> Edited:
    """Refresh the files from these commits, prove the round trip, record and carry out.

    `files` is what the series starts from; `before`, how it lies on the disk. With `index_only`
    the files of the checkout are the tip's already.
    """
    session.store.flush()
    out = refresh.to_files(session.store, series, files, session.base.commit, named, anew=anew)
    for item in named:
        if item.known is None:
            out.files[SERIES] = (_trailers(out.files[SERIES][0], item), False)
    made = out.stack
    if not index_only:
        session.room_for(made.tip)
    final = session.with_lock(out.files, made)
    session.step(final, made, before=before, index_only=index_only)
    return Edited(made, out.fate, [*notes, *out.notes])


def _trailers(yaml: bytes, item: Named) -> bytes:
    """`Topic: X` puts a new patch into group X, `Export: no` marks it private."""
    for line in item.commit.message.splitlines()[1:]:
        key, _, value = line.partition(": ")
        if key == "Export" and value.strip().lower() == "no":
            yaml = seriesedit.set_patch(yaml, item.name, "state", "private")
        elif key == "Topic" and value.strip():
            yaml = seriesedit.add_to_group(yaml, value.strip(), item.name)
    return yaml
