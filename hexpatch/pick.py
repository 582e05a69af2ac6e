"""One patch onto one tree: strictly from its hunks, or by three-way merge of what it changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hexpatch import place
from hexpatch.drift import Drift
from hexpatch.errors import HexpatchError
from hexpatch.objects import EXECUTABLE, FILE, LINK
from hexpatch.patchfile import FileDiff, Hunk, PatchFile, apply_binary
from hexpatch.tree import Content, Entry, Store, Tree


def text(path: bytes) -> str:
    """A path for people."""
    return path.decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class Source:
    """A patch as its files say it: the parsed mail and the owned files (path, mode, bytes)."""

    name: str
    patch: PatchFile
    owned: tuple[tuple[bytes, int, bytes], ...] = ()


@dataclass(frozen=True)
class Conflict:
    """Why a patch can't be placed in one file, with the three sides where there are three.

    kind: hunk, ambiguous, overlap, bare (strict placement); missing, exists, directory, binary
    (strict, whole file); content, add/add, modify/delete, delete/modify, mode (three-way).
    """

    path: bytes
    kind: str
    detail: str
    base: Entry | None = None
    ours: Entry | None = None
    theirs: Entry | None = None
    merged: bytes | None = None
    hunk: Hunk | None = None

    @property
    def line(self) -> str:
        """Path, kind and detail on one line."""
        return f"{text(self.path)}: {self.detail}"


@dataclass(frozen=True)
class Change:
    """What a patch does to one path, as values: before, after, and the hunks' lines before."""

    old_path: bytes | None
    path: bytes
    pre: Entry | None
    post: Entry | None
    copy: bool = False
    hunks: tuple[tuple[int, Hunk], ...] = ()

    @property
    def moved(self) -> bool:
        """Is this a rename or copy?"""
        return self.old_path is not None and self.post is not None and self.old_path != self.path


@dataclass(frozen=True)
class Placed:
    """How one file of a patch came out. how: exact, offset, three-way, landed, resolved."""

    path: bytes
    how: str
    offset: int = 0
    landed_hunks: tuple[int, ...] = ()
    hunks: int = 0


@dataclass(frozen=True)
class Laid:
    """A patch placed strictly: its changes, and every hunk that sits elsewhere than stated."""

    source: Source
    changes: tuple[Change, ...]
    moved_hunks: tuple[tuple[bytes, str, int], ...] = ()

    @property
    def name(self) -> str:
        """The patch's name."""
        return self.source.name


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


# -- strict ---------------------------------------------------------------------------------


def lay(tree: Tree, source: Source) -> Laid | list[Conflict]:
    """Place a patch strictly and change `tree`; or say what does not fit and leave it alone."""
    changes: list[Change] = []
    moved: list[tuple[bytes, str, int]] = []
    conflicts: list[Conflict] = []
    for diff in source.patch.diffs:
        outcome = _lay_file(tree, diff, source.name)
        if isinstance(outcome, Conflict):
            conflicts.append(outcome)
            continue
        changes.append(outcome)
        for at, hunk in outcome.hunks:
            if at != place.stated(hunk):
                moved.append((outcome.path, place.hunk_name(hunk), at + 1))
    for path, mode, data in source.owned:
        if tree.get(path) is not None:
            conflicts.append(Conflict(path, "exists", "the file exists at the base already"))
        changes.append(Change(None, path, None, Entry(mode, tree.store.from_data(data))))
    conflicts += _collisions(tree, changes)
    if conflicts:
        return conflicts
    write(tree, changes)
    return Laid(source, tuple(changes), tuple(moved))


def _collisions(tree: Tree, changes: Sequence[Change]) -> list[Conflict]:
    gone = {
        c.old_path for c in changes if c.old_path and (c.post is None or c.moved) and not c.copy
    }
    found = []
    for change in changes:
        if change.post is None or (change.pre is not None and not change.moved):
            continue
        blocker = tree.in_the_way(change.path)
        if blocker is not None and blocker not in gone:
            detail = f"{text(blocker)} is in the way"
            found.append(Conflict(change.path, "directory", detail))
    return found


def write(tree: Tree, changes: Sequence[Change]) -> None:
    """Put all changes of a patch into a tree: removals first, so that types can swap."""
    for change in changes:
        if change.old_path and not change.copy and (change.post is None or change.moved):
            tree.remove(change.old_path)
    for change in changes:
        if change.post is not None:
            tree.put(change.path, change.post)


def _lay_file(tree: Tree, diff: FileDiff, name: str) -> Change | Conflict:
    path = diff.path
    if diff.binary_missing:
        return Conflict(
            path,
            "binary",
            "the binary data is not in the patch (make it again with `git format-patch --binary`)",
        )
    pre = None
    if diff.old_path is not None:
        pre = tree.get(diff.old_path)
        if pre is None:
            return Conflict(diff.old_path, "missing", "the file does not exist there")
    elif tree.get(path) is not None:
        return Conflict(path, "exists", "the patch adds the file, but it exists already")
    if diff.kind == "delete":
        return _delete(tree, diff, pre)
    mode = diff.new_mode or (pre.mode if pre else FILE)
    if pre is not None and diff.kind == "modify" and (pre.mode == LINK) != (mode == LINK):
        return Conflict(path, "mode", "the patch and the tree disagree about a symbolic link")
    content = _after(tree.store, diff, pre, name)
    if isinstance(content, Conflict):
        return content
    made, hunks = content
    return Change(diff.old_path, path, pre, Entry(mode, made), diff.kind == "copy", hunks)


def _delete(tree: Tree, diff: FileDiff, pre: Entry | None) -> Change | Conflict:
    assert pre is not None
    after = _after(tree.store, diff, pre, "")
    if isinstance(after, Conflict):
        return after
    if after[0].data != b"":
        return Conflict(diff.path, "hunk", "the patch deletes the file, but there is more in it")
    return Change(diff.old_path, diff.path, pre, None, hunks=after[1])


def _after(
    store: Store, diff: FileDiff, pre: Entry | None, name: str
) -> tuple[Content, tuple[tuple[int, Hunk], ...]] | Conflict:
    if diff.binary is not None:
        if len(diff.old_id) < 40 or len(diff.new_id) < 40:
            return Conflict(
                diff.path, "binary", "a binary patch without full ids in its index line"
            )
        before = pre.content.data if pre else None
        if pre is not None and pre.content.oid != diff.old_id:
            return Conflict(diff.path, "binary", "the binary file is not the one the patch is for")
        try:
            return store.from_data(apply_binary(diff, before, name)), ()
        except HexpatchError as error:
            return Conflict(diff.path, "binary", error.message)
    before_content = pre.content if pre else store.from_data(b"")
    if not diff.hunks:
        return before_content, ()
    lines = before_content.lines
    places = place.place(lines, diff.hunks)
    if isinstance(places, place.Misfit):
        return Conflict(diff.path, places.kind, places.text, ours=pre, hunk=places.hunk)
    after = store.from_lines(place.splice(lines, diff.hunks, places))
    return after, tuple(zip(places, diff.hunks, strict=True))


# -- three-way ------------------------------------------------------------------------------


Resolver = Callable[[Conflict], "tuple[Entry | None] | None"]


def pick(
    tree: Tree, laid: Laid, drift: Drift, label: str, resolve: Resolver | None = None
) -> Picked:
    """Three-way merge of a laid patch onto `tree`, which is changed only if there is no conflict.

    `resolve` may know the answer to a conflict: (entry,) or, for a file that goes, (None,).
    """
    picked = Picked(laid)
    merged: list[tuple[Change, Placed, Change | None]] = []
    for change in laid.changes:
        outcome = _merge(tree, change, drift, label)
        if isinstance(outcome, Conflict):
            known = resolve(outcome) if resolve else None
            if known is None:
                picked.conflicts.append(outcome)
                continue
            path = outcome.path
            outcome = Placed(path, "resolved"), Change(path, path, outcome.ours, known[0])
        placed, after = outcome
        picked.placed.append(placed)
        merged.append((change, placed, after))
    picked.clean = [after for _, _, after in merged if after is not None]
    if picked.conflicts:
        for change in laid.changes:
            drift.forget(change)
        return picked
    write(tree, picked.clean)
    for change, placed, after in merged:
        if after is None:
            drift.forget(change)
        else:
            drift.follow(change, after, spliced=placed.how in ("offset", "exact"))
    return picked


_Merged = tuple[Placed, Change | None]


def _merge(tree: Tree, change: Change, drift: Drift, label: str) -> _Merged | Conflict:
    if change.pre is None:
        return _merge_add(tree, change)
    assert change.old_path is not None
    source = drift.renamed(change.old_path, tree)
    ours = tree.get(source)
    if change.post is None:
        return _merge_delete(change, source, ours)
    if ours is None:
        return Conflict(
            change.old_path,
            "modify/delete",
            "upstream deleted the file, the patch changes it",
            base=change.pre,
            theirs=change.post,
        )
    target = source if change.old_path == change.path else change.path
    if change.moved and tree.get(target) is not None and change.path != source:
        there = tree.get(target)
        assert there is not None
        if there.same(change.post) and (change.copy or ours is None):
            return Placed(target, "landed"), None
        return _add_add(target, there, change.post)
    if change.moved and (blocker := tree.in_the_way(target)) is not None and blocker != source:
        return Conflict(target, "directory", f"{text(blocker)} is in the way", theirs=change.post)
    outcome = _merge_entry(change, ours, drift, label, target)
    if isinstance(outcome, Conflict):
        return outcome
    entry, placed = outcome
    if placed.how == "landed" and not change.moved:
        return placed, None
    after = Change(source, target, ours, entry, change.copy)
    return placed, after


def _merge_add(tree: Tree, change: Change) -> _Merged | Conflict:
    assert change.post is not None
    ours = tree.get(change.path)
    if ours is None:
        blocker = tree.in_the_way(change.path)
        if blocker is not None:
            detail = f"upstream has {text(blocker)} where the patch adds a file"
            return Conflict(change.path, "directory", detail, theirs=change.post)
        return Placed(change.path, "exact"), change
    if ours.same(change.post):
        return Placed(change.path, "landed", hunks=1, landed_hunks=(0,)), None
    return _add_add(change.path, ours, change.post)


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
    if ours.same(change.pre):
        return Placed(source, "exact"), Change(source, source, ours, None)
    return Conflict(
        source,
        "delete/modify",
        "the patch deletes the file, upstream changed it",
        base=change.pre,
        ours=ours,
    )


def _merge_entry(
    change: Change, ours: Entry, drift: Drift, label: str, target: bytes
) -> tuple[Entry, Placed] | Conflict:
    pre, post = change.pre, change.post
    assert pre is not None
    assert post is not None
    count = len(change.hunks)
    if ours.same(pre):
        return post, Placed(target, "exact", hunks=count)
    if ours.same(post):
        return ours, Placed(target, "landed", landed_hunks=tuple(range(count)), hunks=count)
    mode = post.mode if ours.mode == pre.mode else ours.mode
    if ours.mode != pre.mode and post.mode not in (pre.mode, ours.mode):
        return Conflict(target, "mode", "both sides change the mode", pre, ours, post)
    if pre.content.same(post.content):
        how = "landed" if mode == ours.mode else "exact"
        return Entry(mode, ours.content), Placed(target, how, hunks=count)
    if ours.content.same(pre.content):
        return Entry(mode, post.content), Placed(target, "exact", hunks=count)
    if ours.content.same(post.content):
        return Entry(mode, ours.content), Placed(target, "three-way", hunks=count)
    if mode not in (FILE, EXECUTABLE) or pre.mode not in (FILE, EXECUTABLE):
        return Conflict(target, "mode", "both sides change a symbolic link", pre, ours, post)
    if change.moved is False and (spliced := drift.splice(change, ours)) is not None:
        lines, offset = spliced
        how = "offset" if offset else "exact"
        entry = Entry(mode, ours.content.store.from_lines(lines))
        return entry, Placed(target, how, offset, hunks=count)
    return _merge_text(change, Entry(mode, ours.content), ours, drift, label, target)


def _merge_text(
    change: Change, wanted: Entry, ours: Entry, drift: Drift, label: str, target: bytes
) -> tuple[Entry, Placed] | Conflict:
    pre, post = change.pre, change.post
    assert pre is not None
    assert post is not None
    if pre.content.binary() or post.content.binary() or ours.content.binary():
        return Conflict(target, "binary", "both sides change a binary file", pre, ours, post)
    repo = ours.content.store.repo
    merged, conflicts = repo.merge_file(
        pre.content.data,
        ours.content.data,
        post.content.data,
        ("upstream", "base of the patch", label),
    )
    count = len(change.hunks)
    there = tuple(n for n, (_, h) in enumerate(change.hunks) if is_there(ours.content.lines, h))
    if conflicts:
        detail = f"{conflicts} conflict{'s' if conflicts > 1 else ''}" + _hint(change, ours)
        return Conflict(target, "content", detail, pre, ours, post, merged)
    entry = Entry(wanted.mode, ours.content.store.from_data(merged))
    if entry.same(ours):
        return entry, Placed(target, "landed", landed_hunks=tuple(range(count)), hunks=count)
    return entry, Placed(target, "three-way", landed_hunks=there, hunks=count)


def core(hunk: Hunk, context: int = 1) -> tuple[list[bytes], list[bytes]]:
    """The changed lines of a hunk, old and new, with a little context on both sides."""
    lead = max(hunk.lead - context, 0)
    trail = max(hunk.trail - context, 0)
    return hunk.old[lead : len(hunk.old) - trail], hunk.new[lead : len(hunk.new) - trail]


def is_there(lines: list[bytes], hunk: Hunk) -> bool:
    """Has this file the hunk's new lines already, and its old ones no more?"""
    old, new = core(hunk)
    if not new or not hunk.added:
        return not old or not place.find(lines, old)
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
    return hunk.new[hunk.lead : len(hunk.new) - hunk.trail]
