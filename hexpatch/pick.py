"""One patch onto one tree, strictly: every hunk where it says, or the only other place it fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from hexpatch import place
from hexpatch.errors import HexpatchError
from hexpatch.objects import FILE, LINK
from hexpatch.patchfile import FileDiff, Hunk, PatchFile, apply_binary
from hexpatch.tree import Content, Entry, Store, Tree


def text(path: bytes) -> str:
    """A path for people."""
    return path.decode("utf-8", "backslashreplace")


class Source(NamedTuple):
    """A patch as its files say it: the parsed mail and the owned files (path, mode, bytes)."""

    name: str
    patch: PatchFile
    owned: tuple[tuple[bytes, int, bytes], ...] = ()


class Conflict(NamedTuple):
    """Why a patch can't be placed in one file, with the three sides where there are three.

    kind: hunk, ambiguous, overlap, bare (strict placement); missing, exists, directory, binary,
    double, type (strict, whole file); content, add/add, modify/delete, delete/modify, mode, type,
    rename/rename, location, submodule (three-way).
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


class Change(NamedTuple):
    """What a patch does to one path, as values: before, after, and the hunks' lines before.

    A copy is an added file, as it is to git's merges; a path that is deleted and added again (file
    and link swap) is one change.
    """

    old_path: bytes | None
    path: bytes
    pre: Entry | None
    post: Entry | None
    hunks: tuple[tuple[int, Hunk], ...] = ()

    @property
    def moved(self) -> bool:
        """Is this a rename?"""
        return self.old_path is not None and self.post is not None and self.old_path != self.path

    @property
    def gone(self) -> bytes | None:
        """The path that is not there any more after this change."""
        return self.old_path if self.post is None or self.moved else None


class Laid(NamedTuple):
    """A patch placed strictly: its changes, and every hunk that sits elsewhere than stated.

    `moved_folders` are those of which it leaves nothing, and where their files go.
    """

    source: Source
    changes: tuple[Change, ...]
    moved_hunks: tuple[tuple[bytes, str, int], ...] = ()
    moved_folders: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def name(self) -> str:
        """The patch's name."""
        return self.source.name


def lay(tree: Tree, source: Source) -> Laid | list[Conflict]:
    """Place a patch strictly and change `tree`; or say what does not fit and leave it alone."""
    outcomes = [_lay_file(tree, diff, source.name) for diff in source.patch.diffs]
    for path, mode, data in source.owned:
        entry = Entry(mode, tree.store.from_data(data))
        outcomes.append(Change(None, path, None, entry))
    conflicts = [o for o in outcomes if isinstance(o, Conflict)]
    changes = [o for o in outcomes if isinstance(o, Change)]
    changes = _joined(changes, tree.store.from_data(b""))
    conflicts += _doubles(changes) + collisions(tree, changes)
    if conflicts:
        return conflicts
    write(tree, changes)
    moved = [
        (change.path, place.hunk_name(hunk), at + 1)
        for change in changes
        for at, hunk in change.hunks
        if at != place.stated(hunk)
    ]
    return Laid(source, tuple(changes), tuple(moved), _moved_folders(tree, changes))


def _moved_folders(tree: Tree, changes: Sequence[Change]) -> tuple[tuple[bytes, bytes], ...]:
    found = {}
    for change in changes:
        old, _, name = (change.gone or b"").rpartition(b"/")
        new, _, new_name = change.path.rpartition(b"/")
        if change.moved and old and old != new and name == new_name:
            found[old] = new
    return tuple(
        (old, new) for old, new in found.items() if next(tree.in_the_way(old), None) is None
    )


def _joined(changes: Sequence[Change], empty: Content) -> list[Change]:
    """Changes with each deleted and added path as one, and a moved empty file as two.

    To git's merges an empty file is none that could be followed.
    """
    added = {c.path: c for c in changes if c.old_path is None}
    deleted = {c.path for c in changes if c.post is None}
    both = deleted & added.keys()
    out = []
    for change in changes:
        if change.moved and change.pre is not None and change.pre.content.same(empty):
            out.append(Change(change.old_path, change.old_path or b"", change.pre, None))
            out.append(Change(None, change.path, None, change.post, change.hunks))
        elif change.path not in both:
            out.append(change)
        elif change.post is None:
            again = added[change.path]
            out.append(Change(change.path, change.path, change.pre, again.post))
    return out


def _doubles(changes: Sequence[Change]) -> list[Conflict]:
    """Sections that speak of a path another section has changed already."""
    found = []
    made: set[bytes] = set()
    used: set[bytes] = set()
    for change in changes:
        again = change.path in made if change.post is not None else False
        again = again or change.old_path in used
        if change.post is not None:
            made.add(change.path)
        if change.old_path is not None:
            used.add(change.old_path)
        if again:
            detail = "the patch has two sections for this file"
            found.append(Conflict(change.path, "double", detail))
    return found


def collisions(tree: Tree, changes: Sequence[Change]) -> list[Conflict]:
    """Paths that can't be made, for a file or directory of that name stays in the tree."""
    gone = {c.gone for c in changes}
    found = []
    for change in changes:
        if change.post is None or change.old_path == change.path:
            continue
        if tree.get(change.path) is not None and change.path not in gone:
            detail = "the patch adds the file, but it exists already"
            found.append(Conflict(change.path, "exists", detail, theirs=change.post))
        for blocker in tree.in_the_way(change.path):
            if blocker not in gone:
                detail = f"{text(blocker)} is in the way"
                found.append(Conflict(change.path, "directory", detail, theirs=change.post))
                break
    made = sorted(c.path for c in changes if c.post is not None)
    for one, two in pairwise(made):
        if two.startswith(one + b"/"):
            detail = f"the patch makes {text(one)} a file as well"
            found.append(Conflict(two, "directory", detail))
    return found


def write(tree: Tree, changes: Sequence[Change]) -> None:
    """Put all changes of a patch into a tree: removals first, so that types can swap."""
    for change in changes:
        if change.gone is not None:
            tree.remove(change.gone)
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
        if diff.old_mode is not None and (diff.old_mode == LINK) != (pre.mode == LINK):
            return Conflict(path, "type", f"{_type(pre.mode)}, the patch is for another type")
    mode = diff.new_mode or (pre.mode if pre else FILE)
    if diff.kind == "modify" and pre is not None and (pre.mode == LINK) != (mode == LINK):
        return Conflict(path, "type", f"{_type(pre.mode)}, the patch is for another type")
    after = _after(tree.store, diff, pre, name)
    if isinstance(after, Conflict):
        return after
    content, hunks = after
    if diff.kind == "delete":
        if content.data != b"":
            return Conflict(path, "hunk", "the patch deletes the file, but there is more in it")
        return Change(diff.old_path, path, pre, None, hunks)
    if diff.kind == "copy":
        return Change(None, path, None, Entry(mode, content), hunks)
    return Change(diff.old_path, path, pre, Entry(mode, content), hunks)


def _type(mode: int) -> str:
    return "it is a symbolic link" if mode == LINK else "it is a file"


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

    def origin() -> bool | None:
        if pre is None or not diff.old_id:
            return None
        return pre.content.is_called(diff.old_id)

    placed = _quickly(before_content, diff.hunks, origin)
    if placed is None:
        found = place.place(before_content.lines, diff.hunks, origin)
        if isinstance(found, place.Misfit):
            return Conflict(diff.path, found.kind, found.text, ours=pre, hunk=found.hunk)
        placed = found, before_content.spliced(diff.hunks, found)
    places, after = placed
    if origin():
        after.name = diff.new_id
    return after, tuple(zip(places, diff.hunks, strict=True))


def _quickly(
    before: Content, hunks: Sequence[Hunk], origin: Callable[[], bool | None]
) -> tuple[list[int], Content] | None:
    """What `place` would say in the two usual cases, without the file as lines.

    All hunks stand where they say, or each of them stands in the file once.
    """
    text = before.text
    if text is None:
        return None
    if origin() is not False:
        places = [place.stated(hunk) for hunk in hunks]
        spliced = text.spliced(hunks, places)
        if spliced is not None:
            return places, before.store.from_text(spliced)
    only = text.only(hunks)
    return None if only is None else (only, before.spliced(hunks, only))
