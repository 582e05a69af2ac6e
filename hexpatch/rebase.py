"""Move the series to another upstream commit: fold in memory, park a conflict, refresh, record."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hexpatch import conflict, oplog, refresh, resolutions, seriesedit, stack, walk, workspace
from hexpatch.errors import HexpatchError
from hexpatch.merge import Picked, pick
from hexpatch.oplog import Step
from hexpatch.patchfile import parse_patch
from hexpatch.pick import Laid, text
from hexpatch.refresh import Named
from hexpatch.rows import Row
from hexpatch.series import Base, Series, parse
from hexpatch.session import Session
from hexpatch.sources import Found
from hexpatch.stack import DoesNotApply, Failed
from hexpatch.tree import Tree
from hexpatch.walk import Item, Walk
from hexpatch.workspace import SERIES, FileState


@dataclass
class Outcome:
    """What a rebase did, or where it waits. `rows` has every patch of the series, in order."""

    rows: list[Row]
    onto: Found
    tip: str = ""
    tree: str = ""
    waiting: str = ""  # the patch a person has to look at
    conflicts: list[str] = field(default_factory=list)
    fate: dict[str, str] = field(default_factory=dict)
    held: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class _Progress:
    """How far a rebase is: patches with their new commits, and those that are left out."""

    head: str
    done: list[dict[str, Any]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    resolutions: dict[str, str] = field(default_factory=dict)

    def names(self) -> set[str]:
        return {row.name for row in self.rows}


def plan(session: Session, onto: Found) -> list[Row]:
    """What would become of every patch on `onto`; nothing is written, nothing is hashed."""
    session.store.keep = False
    fold, items = begin(session, onto)
    return [fold.step(item)[0] for item in items]


def start(session: Session, rev: str, *, keep_going: bool = False) -> Outcome:
    """Begin a rebase; ends done, or waiting for a person with the conflict in the checkout.

    Refused, before anything is downloaded, while something in the checkout waits for a person.
    """
    session.no_pending()
    session.clean()
    session.in_sync()
    onto = session.upstream.resolve(rev)
    session.idle()  # that may have taken minutes
    session.in_sync()
    if onto.commit == session.base.commit and not _inactive(session.series):
        old = session.stack
        rows = [Row(a.name, "ok") for a in old.patches]
        return Outcome(rows, onto, old.tip, old.tree, notes=["already there"])
    fold, items = begin(session, onto)
    broken = next((item.laid for item in items if isinstance(item.laid, Failed)), None)
    if broken is not None:
        raise DoesNotApply(broken, session.series.base.name)
    return _run(session, onto, fold, items, _Progress(onto.commit), keep_going)


def _inactive(series: Series) -> bool:
    return len(series.active) != len(series.patches)


def begin(session: Session, onto: Found) -> tuple[Walk, list[Item]]:
    """The walk onto another commit, with the remembered resolutions, and all its patches."""
    base = session.base
    items = walk.items_of(session.series, Tree(session.store, base.tree))
    resolve = resolutions.resolver(session.store, session.ws.root, session.say)
    fold = walk.start(session.store, session.series, base.commit, onto.commit, items, resolve)
    return fold, items


def _run(
    session: Session,
    onto: Found,
    fold: Walk,
    items: list[Item],
    progress: _Progress,
    keep_going: bool,
) -> Outcome:
    """Pick what is still to do; `items` is used up, for a large patch should be held but once."""
    seen = progress.names()
    todo = [item for item in items if item.name not in seen]
    items.clear()
    for at, item in enumerate(todo):
        row, picked = fold.step(item)
        if row.unfit:
            if not keep_going:
                picked = picked or _unneeded(fold, item)
                rest = [fold.step(later)[0] for later in todo[at + 1 :]]
                return _park(session, onto, item, row, picked, progress, rest)
            row = row._replace(status="hold", detail=(row.status, *row.detail))
        progress.rows.append(row)
        if row.fits:
            tree = fold.tree.write()
            oid = stack.commit_patch(session.store, item.source, progress.head, tree)
            progress.head = oid
            progress.done.append({"name": item.name, "commit": oid})
        del item, picked
    todo.clear()
    return _finish(session, onto, progress)


def _unneeded(fold: Walk, item: Item) -> Picked:
    """A patch whose `needs:` is out: what it would be without, for a person to judge."""
    assert isinstance(item.laid, Laid)
    return pick(fold.tree.fork(), item.laid, fold.drift, item.name, fold.resolve)


# -- waiting for a person -------------------------------------------------------------------


def _park(
    session: Session,
    onto: Found,
    item: Item,
    row: Row,
    picked: Picked,
    progress: _Progress,
    rest: list[Row],
) -> Outcome:
    again = session.ws.pending.exists()
    layout = conflict.layout(session, item, picked)
    session.room_for(progress.head, more=[file.path for file in layout.files if file.oid])
    conflicts = [text(c.path) for c in picked.conflicts]
    pending = {
        "command": session.command,
        "onto": onto._asdict(),
        "tip": session.stack.tip,
        "head": progress.head,
        "done": progress.done,
        "rows": [r.as_json() for r in progress.rows],
        "current": item.name,
        "status": row.status,
        "conflicts": conflicts,
        "resolutions": progress.resolutions,
    }
    step = Step(
        command=session.command,
        files=workspace.durable(session.ws.root),
        checkout=progress.head,
        detach=True,
        force=again,
        pending=pending,
        layout=layout,
    )
    oplog.perform(session.ws, session.store, step)
    return Outcome([*progress.rows, row, *rest], onto, waiting=item.name, conflicts=conflicts)


def waiting(session: Session) -> dict[str, Any]:
    """The rebase that waits; an error if none does."""
    pending = workspace.read_pending(session.ws)
    if pending is None:
        raise HexpatchError("no rebase is waiting", "`hexpatch rebase --onto REV` starts one")
    return pending


def abort(session: Session) -> str:
    """Back to the stack as it was before the rebase: the commit that is checked out then."""
    if not session.ws.pending.exists():
        waiting(session)  # raises
    session.in_reach()
    if session.lost():
        session.made_again()
    tip = session.branch_tip()
    target = tip or session.stack.tip
    session.room_for(target)
    with contextlib.suppress(HexpatchError):  # damaged: nobody knows what is a person's there
        _name_commits(session, waiting(session))
    step = Step(
        command=session.command,
        files=workspace.durable(session.ws.root),
        checkout=target,
        detach=tip is None,  # it had never been applied
        force=True,
    )
    oplog.perform(session.ws, session.store, step)
    return target


def _name_commits(session: Session, pending: dict[str, Any]) -> None:
    """Name what a person has committed at the stop and is about to leave."""
    stray = session.stray()
    if stray not in (None, pending["head"], *(d["commit"] for d in pending["done"])):
        session.say_kept(str(stray))


def resume(session: Session, *, skip: bool = False, keep_going: bool = False) -> Outcome:
    """Go on after a conflict: take what the checkout has now, or drop the patch."""
    pending = waiting(session)
    session.whole()
    if not skip and not session.checkout.exists:
        raise HexpatchError(
            f"the checkout with the half-merged {pending['current']} is gone",
            "`hexpatch rebase --abort` makes it again, with the stack as it was",
        )
    if session.stack.tip != pending["tip"]:
        raise HexpatchError(
            "the series' files have changed since the rebase stopped",
            "`hexpatch rebase --abort`, then start again",
        )
    onto = Found(**pending["onto"])
    rows = [_row(r) for r in pending["rows"]]
    known = dict(pending["resolutions"])
    progress = _Progress(pending["head"], list(pending["done"]), rows, known)
    fold, items = begin(session, onto)
    current = next(item for item in items if item.name == pending["current"])
    if skip:
        _name_commits(session, pending)
        progress.rows.append(Row(current.name, "skipped", ("dropped from the series",)))
    else:
        answers = _answers(session, onto, current, progress, conflict.take(session, pending))
        progress.resolutions.update((p, data.decode("latin-1")) for p, (data, _) in answers.items())
        progress.rows.append(Row(current.name, "resolved", tuple(pending["conflicts"])))
    _catch_up(fold, items, progress)
    return _run(session, onto, fold, items, progress, keep_going)


def _answers(
    session: Session, onto: Found, current: Item, progress: _Progress, head: str
) -> FileState:
    """Meet the conflict again, without remembered answers, to know which ones `head` answers."""
    fold, items = begin(session, onto)
    fold.resolve = None
    _catch_up(fold, items, progress)
    _, picked = fold.step(current)
    progress.done.append({"name": current.name, "commit": head})
    progress.head = head
    return conflict.remember(session, current.name, picked, head)


def _row(raw: dict[str, Any]) -> Row:
    return Row(raw["name"], raw["status"], tuple(raw["detail"]), raw.get("blocked_by", ""))


def _catch_up(fold: Walk, items: Sequence[Item], progress: _Progress) -> None:
    """Set the walk to where the rebase stopped: the tree is the head's, the failed are known."""
    fold.tree = Tree(fold.store, fold.store.read_tree_of(progress.head))
    for item in items:
        row = next((r for r in progress.rows if r.name == item.name), None)
        if row is None:
            continue
        if not isinstance(item.laid, Laid):
            if row.status == "hold":
                fold.on_hold.add(item.name)
            continue
        for change in item.laid.changes:
            fold.drift.forget(change)
        if not row.fits and row.status != "landed":
            fold.failed.append(item.laid)
            fold.out.add(item.name)


# -- the end --------------------------------------------------------------------------------


def _finish(session: Session, onto: Found, progress: _Progress) -> Outcome:
    before = workspace.durable(session.ws.root)
    files = dict(before)
    pending = workspace.read_json(session.ws.pending)
    for path, data in progress.resolutions.items():
        files[path] = (data.encode("latin-1"), False)
    files[SERIES] = (_mark(session.series, files[SERIES][0], progress.rows, onto), False)
    marked = parse(files[SERIES][0], session.ws.root, disk=False)
    new_base = base_entry(onto)
    session.store.flush()
    named = [
        Named(d["name"], d["commit"], session.repo.commit(d["commit"]), marked.patch(d["name"]))
        for d in progress.done
    ]
    out = refresh.to_files(session.store, marked, files, onto.commit, named, new_base)
    made = out.stack
    final = session.with_lock(out.files, made)
    session.room_for(made.tip)
    session.step(final, made, before=before, force=bool(pending))
    fate = {row.name: _fate(row, out.fate, before, final, marked) for row in progress.rows}
    was = {p.name for p in session.series.active}
    held = [row.name for row in progress.rows if row.status == "hold" and row.name in was]
    return Outcome(progress.rows, onto, made.tip, made.tree, fate=fate, held=held, notes=out.notes)


def base_entry(found: Found) -> Base:
    """How series.yaml pins a commit: snapshots by name and tree, real commits by id as well."""
    if found.snapshot:
        return Base(found.name, None, found.tree, found.snapshot)
    return Base(found.name, found.commit, found.tree, None)


def _mark(series: Series, yaml: bytes, rows: Sequence[Row], onto: Found) -> bytes:
    """Note in series.yaml which patches are landed, held, or back."""
    for row in rows:
        patch = series.patch(row.name)
        inactive = patch not in series.active
        if row.status == "landed" and not inactive:
            yaml = seriesedit.set_patch(yaml, row.name, "landed", onto.name)
        elif row.status == "hold" and not inactive:
            yaml = seriesedit.set_patch(yaml, row.name, "held", series.base.name)
        elif row.status == "revived":
            for key in ("landed", "held"):
                if getattr(patch, key) is not None:
                    yaml = seriesedit.set_patch(yaml, row.name, key, None)
            if patch.state == "landed":
                yaml = seriesedit.set_patch(yaml, row.name, "state", None)
    return yaml


def _fate(
    row: Row, fates: dict[str, str], before: FileState, after: FileState, series: Series
) -> str:
    """unchanged, context moved, changed, or what kept the patch out."""
    if not row.fits:
        return row.status
    if fates.get(row.name) != "changed":
        return fates.get(row.name, "unchanged")
    patch = series.patch(row.name)
    if any(before.get(file) != after.get(file) for file in patch.files):
        return "changed"
    name = f"patches/{patch.file}"
    try:
        old, new = (parse_patch(files[name][0], name) for files in (before, after))
    except (HexpatchError, KeyError):
        return "changed"
    return "context moved" if _touched(old) == _touched(new) else "changed"


def _touched(patch: Any) -> list[tuple[bytes, list[bytes], list[bytes]]]:
    return [
        (
            diff.path,
            [x for h in diff.hunks for x in h.old[h.lead : len(h.old) - h.trail]],
            [x for h in diff.hunks for x in h.new[h.lead : len(h.new) - h.trail]],
        )
        for diff in patch.diffs
    ]
