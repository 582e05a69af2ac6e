"""import: append patches to the series."""

from __future__ import annotations

from collections.abc import Sequence

from hexpatch import objects, stack, workspace
from hexpatch.drift import Drift
from hexpatch.edited import Edited, check_name, current, ready, write
from hexpatch.errors import HexpatchError
from hexpatch.incoming import Picked, Read
from hexpatch.merge import pick
from hexpatch.patchfile import PatchFile, slug
from hexpatch.pick import Conflict, Laid, Source, lay
from hexpatch.refresh import Named
from hexpatch.session import Session
from hexpatch.tree import Entry, Tree


class AlreadyThere(HexpatchError):
    """All of a patch is in the stack."""


def add_patches(session: Session, patches: list[Read], names: Sequence[str]) -> Edited:
    """Append patches to the series, all of them or none.

    Each is parsed when it is its turn, and let go then: `patches` is used up.
    """
    ready(session)
    for name in filter(None, names):
        check_name(name)
    named = current(session)
    tree = Tree(session.store, session.stack.tree)
    parent = session.stack.tip
    taken = [p.name for p in session.series.patches]
    notes: list[str] = []
    assert len(patches) == len(names)
    first = patches[0]
    for wanted in names:
        read = patches.pop(0)
        patch = read()
        name = wanted or slug(patch.subject, taken)
        if name in taken:
            raise HexpatchError(f"there is a patch named {name} already", "use --name")
        taken.append(name)
        source = Source(name, patch)
        try:
            _place(session, tree, source, notes)
        except AlreadyThere as error:
            if isinstance(read, Picked) and isinstance(first, Picked):
                error.hint = _without(session, first, read, patches) or error.hint
            raise
        tree_id = tree.write()
        oid = stack.commit_patch(session.store, source, parent, tree_id)
        commit = objects.parse_commit(session.store.read(oid, "commit"))
        named.append(Named(name, oid, commit, None))
        parent = oid
        del patch, source  # a large patch must be gone before the next one comes
    files = workspace.durable(session.ws.root)
    return write(session, session.series, files, files, named, notes)


def _without(session: Session, first: Picked, there: Picked, after: Sequence[Read]) -> str | None:
    """The ranges that leave out commits which are in the stack already."""
    last = there
    for read in after:
        if not isinstance(read, Picked) or not _is_there(session, read()):
            break
        last = read
    ranges = [] if first is there else [f"{first.parent[:12]}..{there.parent[:12]}"]
    if not after or last is not after[-1]:
        ranges += [f"{last.oid[:12]}..{there.end}"] if after else []
    said = ", then ".join(f"`hexpatch import {r}`" for r in ranges)
    return f"nothing was imported; the commits that are not: {said}" if said else None


def _is_there(session: Session, patch: PatchFile) -> bool:
    if not patch.diffs:  # nothing to look for but its message
        known = stack.sources(session.series, once=True)
        empty = (s.patch for s in known if not s.patch.diffs and not s.owned)
        return any(there.message == patch.message for there in empty)
    tree = Tree(session.store, session.stack.tree)
    try:
        _place(session, tree, Source("", patch), [])
    except AlreadyThere:
        return True
    except HexpatchError:
        pass
    return False


def _place(session: Session, tree: Tree, source: Source, notes: list[str]) -> None:
    laid = lay(tree, source)
    if isinstance(laid, Laid):
        for path, hunk, line in laid.moved_hunks:
            where = path.decode("utf-8", "replace")
            notes.append(f"{source.name}: {where}: hunk {hunk} sits at line {line}")
        return
    merged = _three_way(session, tree, source, laid)
    if merged:
        raise HexpatchError(
            f"{source.name} does not apply on {session.series.base.name}\n"
            + "\n".join(f"  {c.line}" for c in merged),
            "nothing was changed; start from the commit it was made for: "
            "`hexpatch init --base REV`, import, then `hexpatch rebase --onto`",
        )
    notes.append(f"{source.name}: merged three-way, its context has changed")


def _three_way(
    session: Session, tree: Tree, source: Source, laid: list[Conflict]
) -> list[Conflict]:
    """As `git am -3`: the ancestor is the blob that the index line names, if the store has it.

    It has no file where the patch adds one.
    """
    there = tree.fork()
    found = False
    for diff in source.patch.diffs:
        if diff.old_path is None and there.get(diff.path) is not None:
            there.remove(diff.path)
            found = True
        if diff.old_path is None or not diff.old_id.strip("0"):
            continue
        blob = session.repo.lookup(diff.old_id)
        now = there.get(diff.old_path)
        if now is not None and blob is not None and blob[1] == "blob":
            mode = diff.old_mode or now.mode
            there.put(diff.old_path, Entry(mode, session.store.content(blob[0])))
            found = True
    on_ancestor = lay(there, source) if found else laid
    if not isinstance(on_ancestor, Laid):
        return on_ancestor
    drift = Drift(session.repo, session.stack.tree, session.stack.tree)
    picked = pick(tree, on_ancestor, drift, source.name)
    if picked.status == "landed":
        raise AlreadyThere(
            f"{source.name}: all of it is there already",
            "nothing was imported; `hexpatch series` lists what is in the stack",
        )
    return picked.conflicts
