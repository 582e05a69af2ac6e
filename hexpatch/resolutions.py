"""Conflict resolutions, remembered in `patches/resolutions/`: a colleague or CI replays them.

One file per conflict, named by the three sides; it holds the change from upstream's side to the
resolved file as a diff, so it can be reviewed like any patch. Where a patch is moved back, the same
conflict stands the other way round, and the answer is what the patch was before: a second file.

`result:` says what comes out, so a damaged file is never taken for an answer. Older files have no
such line: there the diff's index line says it. `region:` is the answer to one place of the file,
with its checksum: it counts for the same place after an edit of the patch elsewhere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Container, Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

from hexpatch import regions
from hexpatch.errors import HexpatchError, MissingObject
from hexpatch.merge import Resolver, merged_mode
from hexpatch.oplog import EMPTY_TREE
from hexpatch.patchfile import PatchFile, parse_diff
from hexpatch.pick import Conflict, Laid, Source, lay, text
from hexpatch.textmerge import merge_text
from hexpatch.tree import Entry, Store, Tree
from hexpatch.workspace import FileState

FOLDER = "patches/resolutions"
_RESULT = re.compile(rb"^result: (.*)\n\n", re.MULTILINE)
_REGION = re.compile(rb"^region: (\w+) (\w+)\n((?:\+.*\n)*)", re.MULTILINE)
_T = TypeVar("_T")
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


def _name(conflict: Conflict) -> str:
    """The file that holds the answer to a conflict."""
    return f"{FOLDER}/{key(conflict)}.diff"


def load(root: Path) -> FileState:
    """The remembered answers of a series."""
    folder = root / FOLDER
    if folder.exists() and not folder.is_dir():
        raise HexpatchError(
            f"{folder} is in the way: answers to conflicts are kept in a folder of that name",
            f"move {folder} away and run again",
        )
    if not folder.is_dir():
        return {}
    return {
        f"{FOLDER}/{path.name}": (path.read_bytes(), False)
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.is_symlink()
    }


def resolver(store: Store, root: Path, say: Callable[[str], None]) -> Resolver:
    """What knows the remembered answers; a damaged one is named once, and is none."""
    files = load(root)

    def undamaged(name: str, recall: Callable[[bytes], _T]) -> _T | None:
        try:
            return recall(files[name][0])
        except MissingObject:
            raise
        except HexpatchError as error:
            del files[name]
            why = error.message.removeprefix(f"{name}: ")
            say(f"warning: {name} is damaged and is not used: {why}")
            return None

    @cache
    def places() -> dict[str, bytes]:
        """The answers to places that no two files answer differently."""
        found: dict[str, set[bytes]] = {}
        for name in list(files):
            for place, answer in (undamaged(name, _places) or {}).items():
                found.setdefault(place, set()).add(answer)
        return {place: texts.pop() for place, texts in found.items() if len(texts) == 1}

    def resolve(met: Conflict) -> tuple[Entry | None] | None:
        name = _name(met)
        if name in files:
            return undamaged(name, lambda data: (_recall(store, data, name, met),))
        if met.kind != "content" or not (met.merged and met.base and met.ours and met.theirs):
            return None
        whole = regions.fill(met.path, met.merged, places())
        mode = merged_mode(met.base, met.ours, met.theirs)
        return None if whole is None else (Entry(mode, store.from_data(whole)),)

    return resolve


def _places(data: bytes) -> dict[str, bytes]:
    """The answers to single places that a file holds."""
    found = {}
    for place, said, quoted in _REGION.findall(_head(data)[0]):
        answer = b"".join(line[1:] for line in regions.lines(quoted))
        if _sum(answer) != said:
            raise HexpatchError(f"its region {place.decode()} was changed")
        found[place.decode()] = answer
    return found


def _sum(answer: bytes) -> bytes:
    return hashlib.sha256(answer).hexdigest()[:20].encode()


def _head(data: bytes) -> tuple[bytes, bytes]:
    """What is said before the diff, and the diff."""
    start = data.find(b"\ndiff --git ") + 1
    return (data[:start], data[start:]) if start else (data, b"")


def _recall(store: Store, data: bytes, name: str, conflict: Conflict) -> Entry | None:
    """The remembered answer to a conflict, None for a file that goes."""
    head, diff = _head(data)
    said = _RESULT.search(head)
    tree = Tree(store, EMPTY_TREE)
    if conflict.ours is not None:
        tree.put(conflict.path, conflict.ours)
    if not diff:
        if not said and not _is_head(head, conflict):
            raise HexpatchError("it has neither a diff nor a result")
    else:
        parsed = parse_diff(data, name)
        if any(part.path != conflict.path for part in parsed):
            raise HexpatchError(f"its diff is not for {text(conflict.path)}")
        laid = lay(tree, Source(name, PatchFile("", "", "", "0 +0000", "", "", parsed, data)))
        if not isinstance(laid, Laid):
            raise HexpatchError("; ".join(met.detail for met in laid))
    answer = tree.get(conflict.path)
    if said:
        wrong = said[1] != _result(answer)
    else:
        wrong = bool(diff and parsed[-1].new_id) and not _is(answer, parsed[-1].new_id)
    if wrong:
        raise HexpatchError("its diff does not give the file it states")
    return answer


def _is_head(head: bytes, conflict: Conflict) -> bool:
    """Is this all that an older file says where the answer is upstream's side?"""
    ends = f": {conflict.kind} in {text(conflict.path)}\n\n".encode("utf-8", "replace")
    return head.startswith(b"resolution: ") and head.endswith(ends)


def _is(answer: Entry | None, oid: str) -> bool:
    """Is this the file of that id? Zeros stand for none."""
    return not oid.strip("0") if answer is None else answer.content.oid == oid


def _result(answer: Entry | None) -> bytes:
    return b"none" if answer is None else b"%o %s" % (answer.mode, answer.content.oid.encode())


def remember(
    store: Store, files: FileState, name: str, conflict: Conflict, resolved: Entry | None
) -> None:
    """Add the answer to a conflict to the files, and to the one that the way back would meet."""
    _add(store, files, name, conflict, resolved)
    gone = conflict.ours is None if resolved is None else resolved.same(conflict.ours)
    if not gone:  # else nothing of the patch is left to come back
        back = conflict._replace(base=conflict.ours, ours=conflict.base, theirs=resolved)
        back = back._replace(merged=_merged(store, back) if conflict.merged else None)
        _add(store, files, f"{name}, the way back", back, conflict.theirs)


def _merged(store: Store, conflict: Conflict) -> bytes | None:
    """The marked text of a conflict, if it is one of texts."""
    sides = [conflict.base, conflict.ours, conflict.theirs]
    texts = [side.content.data for side in sides if side and not side.content.binary()]
    return merge_text(store.repo, texts[0], texts[1], texts[2])[0] if len(texts) == 3 else None


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
    head = f"resolution: {name}: {conflict.kind} in {text(conflict.path)}\n"
    said = head.encode("utf-8", "replace") + _said_places(conflict, resolved)
    said += b"result: " + _result(resolved) + b"\n\n"
    files[_name(conflict)] = (said + store.repo.diff(trees[0], trees[1]), False)


def _said_places(conflict: Conflict, resolved: Entry | None) -> bytes:
    """The `region:` lines of an answer."""
    if conflict.kind != "content" or conflict.merged is None or resolved is None:
        return b""
    said = []
    found = regions.answers(conflict.path, conflict.merged, resolved.content.data)
    for place, answer in found.items():
        said.append(b"region: %s %s\n" % (place.encode(), _sum(answer)))
        said += [b"+" + line for line in regions.lines(answer)]
    return b"".join(said)
