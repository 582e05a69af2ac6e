"""Conflict resolutions, remembered in `patches/resolutions/`: a colleague or CI replays them.

One file per conflict, named by the three sides; it holds the change from upstream's side to the
resolved file as a diff, so it can be reviewed like any patch. Where a patch is moved back, the same
conflict stands the other way round, and the answer is what the patch was before: a second file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from pathlib import Path

from hexpatch.oplog import EMPTY_TREE
from hexpatch.patchfile import PatchFile, parse_diff
from hexpatch.pick import Conflict, Laid, Source, lay, text
from hexpatch.tree import Entry, Store, Tree
from hexpatch.workspace import FileState

FOLDER = "patches/resolutions"
_MARKS = (b"<<<<<<< ", b"||||||| ", b">>>>>>> ")


def marks(lines: Iterable[bytes], known: Container[bytes]) -> list[bytes]:
    """Conflict marks among the lines, whatever their labels, but for those that are `known`."""
    found, inside = [], False
    for raw in lines:
        line = raw.rstrip(b"\r")
        mark = line.startswith(_MARKS) or line in (b"<<<<<<<", b">>>>>>>")
        if mark:
            inside = not line.startswith(b">")
        if (mark or (inside and line == b"=======")) and line not in known:
            found.append(line)
    return found


def plain(data: bytes) -> list[bytes]:
    """Lines without the CR that some files have: what `marks` compares with."""
    return [line.rstrip(b"\r") for line in data.split(b"\n")]


def key(conflict: Conflict) -> str:
    """Name of a conflict: path, and mode and blob of base, ours and theirs."""
    parts = [conflict.path]
    for side in (conflict.base, conflict.ours, conflict.theirs):
        parts.append(b"%o %s" % (side.mode, side.content.oid.encode()) if side else b"-")
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]


def load(root: Path) -> FileState:
    """The remembered answers of a series."""
    folder = root / FOLDER
    if not folder.is_dir():
        return {}
    return {
        f"{FOLDER}/{path.name}": (path.read_bytes(), False)
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.is_symlink()
    }


def recall(store: Store, files: FileState, conflict: Conflict) -> tuple[Entry | None] | None:
    """The remembered answer to a conflict: (entry,), (None,) for a deleted file, or None."""
    found = files.get(f"{FOLDER}/{key(conflict)}.diff")
    if found is None:
        return None
    diff = found[0][found[0].find(b"diff --git ") :] if b"diff --git " in found[0] else b""
    tree = Tree(store, EMPTY_TREE)
    if conflict.ours is not None:
        tree.put(conflict.path, conflict.ours)
    if not diff:
        return (conflict.ours,)
    name = f"{FOLDER}/{key(conflict)}.diff"
    mail = PatchFile("", "", "", "0 +0000", "", "", parse_diff(diff, name), diff)
    laid = lay(tree, Source(name, mail))
    if not isinstance(laid, Laid):
        return None
    return (tree.get(conflict.path),)


def remember(
    store: Store, files: FileState, name: str, conflict: Conflict, resolved: Entry | None
) -> None:
    """Add the answer to a conflict to the files, and to the one that the way back would meet."""
    _add(store, files, name, conflict, resolved)
    gone = conflict.ours is None if resolved is None else resolved.same(conflict.ours)
    if not gone:  # else nothing of the patch is left to come back
        back = conflict._replace(base=conflict.ours, ours=conflict.base, theirs=resolved)
        _add(store, files, f"{name}, the way back", back, conflict.theirs)


def _add(
    store: Store, files: FileState, name: str, conflict: Conflict, resolved: Entry | None
) -> None:
    trees = []
    for side in (conflict.ours, resolved):
        tree = Tree(store, EMPTY_TREE)
        if side is not None:
            tree.put(conflict.path, side)
        trees.append(tree.write())
    store.flush()
    head = f"resolution: {name}: {conflict.kind} in {text(conflict.path)}\n\n"
    diff = store.repo.diff(trees[0], trees[1])
    files[f"{FOLDER}/{key(conflict)}.diff"] = (head.encode("utf-8", "replace") + diff, False)
