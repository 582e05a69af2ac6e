"""The places of a merge where both sides differ, and what a person made of each.

The sides of a whole file change with every edit of a patch, those of a place only with an edit
there. So an answer to a place still holds when the patch was edited elsewhere, as in git's rerere.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from typing import NamedTuple

_MARKS = (b"<<<<<<< ", b"||||||| ", b"=======", b">>>>>>> ")


class Region(NamedTuple):
    """Whole lines of the three sides between conflict marks."""

    ours: bytes
    base: bytes
    theirs: bytes

    def key(self, path: bytes) -> str:
        """Name of this place's conflict: the path, and the text of the three sides."""
        parts = [path, *(b"%d" % len(side) for side in self), *self]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]


def split(merged: bytes) -> list[bytes | Region] | None:
    """Agreed texts, and a Region between any two of them.

    None where marks can't be told from text, or the last place is the end of the file.
    """
    parts: list[bytes | Region] = []
    agreed: list[bytes] = []
    sides: list[list[bytes]] = []
    for line in lines(merged):
        mark = line.rstrip(b"\r\n")
        if not sides and not mark.startswith(_MARKS[0]):
            agreed.append(line)
        elif not sides:
            parts.append(b"".join(agreed))
            agreed, sides = [], [[]]
        elif not mark.startswith(_MARKS):
            sides[-1].append(line)
        elif not mark.startswith(_MARKS[len(sides)]):
            return None
        elif len(sides) < 3:
            sides.append([])
        else:
            parts.append(Region(*map(b"".join, sides)))
            sides = []
    return None if sides or not agreed else [*parts, b"".join(agreed)]


def answers(path: bytes, merged: bytes, resolved: bytes) -> dict[str, bytes]:
    """What stands in each place of the resolved file, by the place's key.

    Nothing at all where something else was edited as well, or where places can't be told apart.
    """
    parts = split(merged)
    if parts is None or len(parts) == 1:
        return {}
    agreed = [part for part in parts if isinstance(part, bytes)]
    places = [part for part in parts if isinstance(part, Region)]
    found: dict[str, bytes] = {}
    start = len(agreed[0])
    last = len(resolved) - len(agreed[-1])
    if last < start or not resolved.startswith(agreed[0]) or not resolved.endswith(agreed[-1]):
        return {}
    for place, after in zip(places, agreed[1:], strict=True):
        end = last if place is places[-1] else resolved.find(after, start, last)
        if end < 0 or resolved[end - 1 : end] not in (b"", b"\n"):
            return {}
        if place is not places[-1] and resolved.find(after, end + 1, last) >= 0:
            return {}
        text = resolved[start:end]
        if found.setdefault(place.key(path), text) != text:
            return {}
        start = end + len(after)
    return found


def fill(path: bytes, merged: bytes, known: Mapping[str, bytes]) -> bytes | None:
    """The merged file with the answer in each place; None if one is not known."""
    parts = split(merged)
    if parts is None:
        return None
    texts = [part if isinstance(part, bytes) else known.get(part.key(path)) for part in parts]
    return None if None in texts else b"".join(text for text in texts if text is not None)


def lines(data: bytes) -> list[bytes]:
    """Lines with their ends; a bare CR ends none."""
    return io.BytesIO(data).readlines()
