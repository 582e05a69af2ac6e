"""Three-way merge of a patch onto another tree, with the outcome of `git rebase`.

Where this asks a person although git would not: two different added files of one name (git takes
the other one if one is empty), and a new file below a folder that upstream has moved (git asks
only if the file is in that very folder).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from hexpatch import place
from hexpatch.attributes import merge_rule
from hexpatch.drift import Drift
from hexpatch.objects import EXECUTABLE, FILE, GITLINK
from hexpatch.patchfile import Hunk
from hexpatch.pick import Change, Conflict, Laid, collisions, text, write
from hexpatch.textmerge import merge_text
from hexpatch.tree import Entry, Tree

_REGULAR = (FILE, EXECUTABLE)
_MANY = 30


class Placed(NamedTuple):
    """How one file of a patch came out. how: exact, offset, three-way, landed, resolved."""

    path: bytes
    how: str
    offset: int = 0
    landed_hunks: tuple[int, ...] = ()
    hunks: int = 0


@dataclass
class Picked:
    """A patch after three-way: how each file came out, and the conflicts if there are any."""

    laid: Laid
    placed: list[Placed] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    clean: list[Change] = field(default_factory=list)

    @property
    def status(self) -> str:
        """ok, offset, three-way, resolved, partly, landed or conflict."""
        if self.conflicts:
            return "conflict"
        hows = {p.how for p in self.placed}
        if hows == {"landed"}:
            return "landed"
        if "landed" in hows or any(p.landed_hunks for p in self.placed):
            return "partly"
        for how in ("resolved", "three-way", "offset"):
            if how in hows:
                return how
        return "ok"


Resolver = Callable[[Conflict], "tuple[Entry | None] | None"]
_Merged = tuple[Placed, Change | None]


def pick(
    tree: Tree, laid: Laid, drift: Drift, label: str, resolve: Resolver | None = None
) -> Picked:
    """Three-way merge of a laid patch onto `tree`, which is changed only if there is no conflict.

    `resolve` may know the answer to a conflict: (entry,) or, for a file that goes, (None,). Answers
    that leave nothing of the patch are for a person to give, who skips it then.
    """
    picked = Picked(laid)
    answered: list[Conflict] = []
    gone = {change.gone for change in laid.changes}
    merged: list[tuple[Change, Placed, Change | None]] = []
    for change in laid.changes:
        outcome = _merge(tree, change, drift, label, gone)
        if isinstance(outcome, Conflict):
            known = resolve(outcome) if resolve else None
            if known is None:
                picked.conflicts.append(outcome)
                continue
            answered.append(outcome)
            path = outcome.path
            outcome = Placed(path, "resolved"), Change(path, path, outcome.ours, known[0])
        placed, after = outcome
        picked.placed.append(placed)
        merged.append((change, placed, after))
    picked.clean = [after for _, _, after in merged if after is not None]
    if answered and not picked.conflicts and not any(map(_changes, picked.clean)):
        left = "; the remembered answer leaves nothing of the patch"
        picked.conflicts = [met._replace(detail=met.detail + left) for met in answered]
        picked.clean = []
    picked.conflicts += _left_behind(tree, laid, gone)
    picked.conflicts += _collisions(tree, picked)
    if picked.conflicts:
        for change in laid.changes:
            drift.forget(change)
        return picked
    write(tree, picked.clean)
    for change, placed, after in merged:
        if after is None or placed.how == "resolved":  # a person's answer may be anything
            drift.forget(change)
        else:
            drift.follow(change, after, spliced=placed.how in ("offset", "exact"))
    return picked


def _merge(
    tree: Tree, change: Change, drift: Drift, label: str, gone: set[bytes | None]
) -> _Merged | Conflict:
    if change.pre is None:
        return _merge_add(tree, change, drift, gone)
    assert change.old_path is not None
    source = drift.renamed(change.old_path, tree)
    ours = tree.get(source)
    if ours is not None and ours.mode == GITLINK:
        return _submodule(source, change.pre, ours, change.post)
    if change.post is None:
        return _merge_delete(change, source, ours)
    if ours is None:
        return _merge_gone(tree, change)
    if not change.moved:
        return _merge_entry(tree, change, ours, drift, label, source)
    target = change.path
    if source not in (change.old_path, target):
        detail = f"upstream renamed {text(change.old_path)} to this, the patch to {text(target)}"
        return Conflict(source, "rename/rename", detail, change.pre, ours, change.post)
    there = tree.get(target)
    if there is not None and target != source and target not in gone:
        if there.same(change.post) and ours.same(change.pre):
            return Placed(target, "three-way"), Change(source, source, ours, None)
        return _add_add(target, there, change.post)
    moved = drift.moved_folder(target, tree) if target != source else None
    if moved is not None:
        return _elsewhere(tree, target, moved, change.post)
    return _merge_entry(tree, change, ours, drift, label, source)


def _collisions(tree: Tree, picked: Picked) -> list[Conflict]:
    """Files that can't be made; beside other conflicts, those where a file and a folder meet."""
    met = {conflict.path for conflict in picked.conflicts}
    found = collisions(tree, picked.clean)
    return [c for c in found if not met or (c.kind == "directory" and c.path not in met)]


def _changes(change: Change) -> bool:
    """Does the tree differ after this change?"""
    if change.pre is None or change.post is None:
        return change.pre is not change.post
    return change.moved or not change.post.same(change.pre)


def _left_behind(tree: Tree, laid: Laid, gone: set[bytes | None]) -> list[Conflict]:
    """Files that upstream added to a folder that the patch moves with all it has."""
    found = []
    for old, new in laid.moved_folders:
        for path in tree.in_the_way(old):
            if path not in gone and path.startswith(old + b"/"):
                detail = f"upstream added {text(path)}, and the patch moves {text(old)}/"
                target = new + path[len(old) :]
                found.append(Conflict(target, "location", detail, None, tree.get(path)))
    return found


def _merge_gone(tree: Tree, change: Change) -> _Merged | Conflict:
    """The patch changes or renames a file that upstream has no more."""
    assert change.old_path is not None
    assert change.post is not None
    there = tree.get(change.path)
    if change.moved and there is not None and there.same(change.post):
        return Placed(change.path, "landed"), None
    blocked = next(iter(tree.in_the_way(change.old_path)), None)
    detail = "upstream deleted the file, the patch changes it"
    if blocked is not None:
        detail = f"upstream has {text(blocked)} where the patch changes a file"
    return Conflict(change.old_path, "modify/delete", detail, change.pre, None, change.post)


def _merge_add(
    tree: Tree, change: Change, drift: Drift, gone: set[bytes | None]
) -> _Merged | Conflict:
    assert change.post is not None
    path = change.path
    ours = tree.get(path)
    if ours is not None and path not in gone:
        if ours.mode == GITLINK:
            return _submodule(path, None, ours, change.post)
        if ours.same(change.post):
            return Placed(path, "landed", hunks=1, landed_hunks=(0,)), None
        return _add_add(path, ours, change.post)
    blocker = next((b for b in tree.in_the_way(path) if b not in gone), None)
    if blocker is not None:
        detail = f"upstream has {text(blocker)} where the patch adds a file"
        return Conflict(path, "directory", detail, theirs=change.post)
    moved = drift.moved_folder(path, tree)
    if moved is not None:
        return _elsewhere(tree, path, moved, change.post)
    return Placed(path, "exact"), Change(None, path, None, change.post)


def _elsewhere(tree: Tree, path: bytes, moved: tuple[bytes, list[bytes]], post: Entry) -> Conflict:
    old, homes = moved
    to = " and ".join(text(home) + "/" if home else "the top folder" for home in homes)
    detail = f"upstream moved {text(old)}/ to {to}, and the patch adds {text(path)}"
    target = path
    if len(homes) == 1:
        target = (homes[0] + path[len(old) :]).lstrip(b"/")
    return Conflict(target, "location", detail, None, tree.get(target), post)


def _submodule(path: bytes, base: Entry | None, ours: Entry, theirs: Entry | None) -> Conflict:
    """A commit of another repository: there is no content to merge, or even to read."""
    what = "deletes" if theirs is None else "adds" if base is None else "changes"
    detail = f"upstream has a submodule where the patch {what} a file"
    return Conflict(path, "submodule", detail, base, ours, theirs)


def _add_add(path: bytes, ours: Entry, theirs: Entry) -> Conflict:
    if ours.content.same(theirs.content):
        detail = (
            f"upstream added the same file with mode {ours.mode:o}, the patch has {theirs.mode:o}"
        )
        return Conflict(path, "mode", detail, ours=ours, theirs=theirs)
    detail = "upstream added a file of that name too"
    return Conflict(path, "add/add", detail, ours=ours, theirs=theirs)


def _merge_delete(change: Change, source: bytes, ours: Entry | None) -> _Merged | Conflict:
    assert change.pre is not None
    if ours is None:
        return Placed(change.path, "landed"), None
    if source != change.path:
        detail = f"the patch deletes {text(change.path)}, which upstream renamed to this"
        return Conflict(source, "delete/modify", detail, change.pre, ours)
    if ours.same(change.pre):
        return Placed(source, "exact"), Change(source, source, ours, None)
    detail = "the patch deletes the file, upstream changed it"
    return Conflict(source, "delete/modify", detail, change.pre, ours)


def _merge_entry(
    tree: Tree, change: Change, ours: Entry, drift: Drift, label: str, source: bytes
) -> _Merged | Conflict:
    """Both sides have the file; `source` is where it is now."""
    pre, post = change.pre, change.post
    assert pre is not None
    assert post is not None
    target = change.path if change.moved else source
    moves = target != source
    count = len(change.hunks)
    types = {entry.mode in _REGULAR for entry in (pre, post, ours)}

    def made(entry: Entry, how: str, offset: int = 0, there: tuple[int, ...] = ()) -> _Merged:
        if entry.same(ours) and not moves:
            return Placed(target, "landed", 0, tuple(range(count)), count), None
        how = "exact" if how == "landed" else how
        return Placed(target, how, offset, there, count), Change(source, target, ours, entry)

    renamed = source != change.old_path
    if ours.same(pre) and (len(types) == 1 or not renamed):
        return made(post, "exact")
    if ours.same(post):
        return made(ours, "landed")
    if len(types) > 1:
        detail = "file and symbolic link: one side changes the type, the other side something else"
        return Conflict(target, "type", detail, pre, ours, post)
    mode = merged_mode(pre, ours, post)
    if pre.content.same(post.content) or ours.content.same(post.content):
        return made(Entry(mode, ours.content), "three-way")
    if ours.content.same(pre.content):
        return made(Entry(mode, post.content), "exact")
    if pre.mode not in _REGULAR:
        return Conflict(target, "type", "both sides change the link", pre, ours, post)
    if pre.content.binary() or post.content.binary() or ours.content.binary():
        return Conflict(target, "binary", "both sides change a binary file", pre, ours, post)
    rule = merge_rule(tree, target)
    if rule == "binary":
        detail = "both sides change the file, and .gitattributes forbids to merge it"
        return Conflict(target, "binary", detail, pre, ours, post)
    if not change.moved and (spliced := drift.splice(change, ours)) is not None:
        content, offset = spliced
        return made(Entry(mode, content), "offset" if offset else "exact", offset)
    merged, conflicts = _merged(change, ours, label, rule)
    if conflicts:
        line = merged[: merged.find(b"<<<<<<< ") + 1].count(b"\n") + 1
        detail = f"{conflicts} conflict{'s' if conflicts > 1 else ''}, at line {line} of the merge"
        detail += _hint(change, ours)
        return Conflict(target, "content", detail, pre, ours, post, merged)
    entry = Entry(mode, ours.content.store.from_data(merged))
    return made(entry, "three-way", 0, _there(change, ours))


def merged_mode(base: Entry, ours: Entry, theirs: Entry) -> int:
    """The side that changes the mode has its way."""
    return theirs.mode if ours.mode == base.mode else ours.mode


def _merged(change: Change, ours: Entry, label: str, rule: str) -> tuple[bytes, int]:
    assert change.pre is not None
    assert change.post is not None
    return merge_text(
        ours.content.store.repo,
        change.pre.content.data,
        ours.content.data,
        change.post.content.data,
        ("upstream", "base of the patch", label),
        union=rule == "union",
    )


# -- what is there already ------------------------------------------------------------------


def _there(change: Change, ours: Entry) -> tuple[int, ...]:
    """The hunks upstream has: merged alone, each of them changes nothing."""
    assert change.pre is not None
    likely = [n for n, (_, h) in enumerate(change.hunks) if is_there(ours.content.lines, h)]
    if len(likely) > _MANY:
        return tuple(likely)
    found = []
    before = change.pre.content
    for number in likely:
        at, hunk = change.hunks[number]
        alone = before.store.from_lines(place.splice(before.lines, [hunk], [at]))
        data = ours.content.data
        merged, conflicts = merge_text(before.store.repo, before.data, data, alone.data)
        if not conflicts and merged == data:
            found.append(number)
    return tuple(found)


def core(hunk: Hunk) -> tuple[list[bytes], list[bytes]]:
    """The changed lines of a hunk, old and new, with a line of context on both sides."""
    lead = max(hunk.lead - 1, 0)
    trail = max(hunk.trail - 1, 0)
    return hunk.old[lead : len(hunk.old) - trail], hunk.new[lead : len(hunk.new) - trail]


def is_there(lines: list[bytes], hunk: Hunk) -> bool:
    """Has this file the hunk's new lines already, and its old ones no more?"""
    old, new = core(hunk)
    if not new or not hunk.added:
        return bool(old) and not place.find(lines, old)
    return bool(place.find(lines, new)) and not place.find(lines, old)


def _hint(change: Change, ours: Entry) -> str:
    """`; 1 of its 2 changed lines is upstream already: mode = fast`."""
    assert change.pre is not None
    have = set(ours.content.lines) - set(change.pre.content.lines)
    added = [line for _, h in change.hunks for line in _added(h) if line.strip()]
    there = [line for line in added if line in have]
    if not there:
        return ""
    verb = "is" if len(there) == 1 else "are"
    shown = "; ".join(line.decode("utf-8", "replace").strip()[:60] for line in there[:3])
    return f"; {len(there)} of its {len(added)} added lines {verb} upstream already: {shown}"


def _added(hunk: Hunk) -> list[bytes]:
    end = len(hunk.new) - hunk.trail
    left = Counter(hunk.old[hunk.lead : len(hunk.old) - hunk.trail])
    found = []
    for line in hunk.new[hunk.lead : end]:
        if left[line] > 0:
            left[line] -= 1
        else:
            found.append(line)
    return found
