"""drop: take patches out of the series."""

from __future__ import annotations

from collections.abc import Sequence

from hexpatch import objects, refresh, seriesedit, stack, walk, workspace
from hexpatch.drift import Drift
from hexpatch.edited import Edited, ready, write
from hexpatch.errors import HexpatchError
from hexpatch.pick import Laid
from hexpatch.refresh import Named
from hexpatch.series import parse
from hexpatch.session import Session
from hexpatch.tree import Tree
from hexpatch.workspace import SERIES


def drop(session: Session, names: Sequence[str]) -> Edited:
    """Take patches out of the series; those that build on them are named and nothing is done."""
    ready(session)
    gone = {session.series.patch(name).name for name in names}
    base = session.base
    items = walk.items_of(session.series, Tree(session.store, base.tree))
    fold = walk.Walk(
        session.store, Tree(session.store, base.tree), Drift(session.repo, base.tree, base.tree), {}
    )
    parent, named = base.commit, []
    yaml = workspace.durable(session.ws.root)[SERIES][0]
    for item in items:
        if item.name in gone:
            if isinstance(item.laid, Laid):
                fold.failed.append(item.laid)
                fold.out.add(item.name)
            continue
        if item.laid is None:
            continue
        row, _ = fold.step(item)
        if not row.fits and row.status != "landed":
            who = row.blocked_by or ", ".join(sorted(gone))
            why = [d for d in row.detail if d != f"needs {who}"]
            raise HexpatchError(
                ": ".join([f"{item.name} needs {who}", *(["; ".join(why)] if why else [])]),
                f"drop both: `hexpatch drop {' '.join(names)} {item.name}`",
            )
        tree = fold.tree.write()
        oid = stack.commit_patch(session.store, item.source, parent, tree)
        commit = objects.parse_commit(session.store.read(oid, "commit"))
        named.append(Named(item.name, oid, commit, session.series.patch(item.name)))
        parent = oid
    before = workspace.durable(session.ws.root)
    files = dict(before)
    for name in gone:
        patch = session.series.patch(name)
        if patch not in session.series.active:
            yaml = seriesedit.remove_patch(yaml, name)
            files.pop(f"patches/{patch.file}", None)
            for file in patch.files:
                files.pop(file, None)
    files[SERIES] = (yaml, False)
    series = parse(yaml, session.ws.root, disk=False)
    stay = {group.name for group in series.groups}
    cut = [p for g in session.series.groups if g.name not in stay for p in g.patches]
    edited = write(session, series, before, files, named, refresh.emptied(session.series, cut))
    for name in gone:
        edited.fate[name] = "dropped"
    return edited
