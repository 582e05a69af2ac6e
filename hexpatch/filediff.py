"""What a git diff says, as values."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from hexpatch.binpatch import BinaryHunk
from hexpatch.objects import GITLINK

_EMPTY = (  # ids of the empty file
    b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    b"473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)


class Hunk(NamedTuple):
    """One @@ block. Lines come without their newline; context lines are in `old` and `new`."""

    old_start: int
    old_len: int
    new_start: int
    new_len: int
    section: bytes
    old: list[bytes]
    new: list[bytes]
    old_eof: bool
    new_eof: bool
    lead: int
    trail: int
    added: int
    removed: int


class FileDiff(NamedTuple):
    """What a diff does to one file. kind: modify, add, delete, rename, copy.

    A mode is None where the diff does not state it; the mode in an `index` line is the old one,
    as for git: it never sets a mode. `start` and `end` are the section's range in the diff.
    """

    kind: str
    old_path: bytes | None
    new_path: bytes | None
    old_mode: int | None
    new_mode: int | None
    old_id: str
    new_id: str
    similarity: int | None
    hunks: tuple[Hunk, ...]
    binary: tuple[BinaryHunk, BinaryHunk | None] | None
    binary_missing: bool
    start: int
    end: int

    @property
    def path(self) -> bytes:
        """The path after the change; for a deletion the one before."""
        path = self.old_path if self.new_path is None else self.new_path
        assert path is not None
        return path

    @property
    def added(self) -> int:
        """Lines added."""
        return sum(h.added for h in self.hunks)

    @property
    def removed(self) -> int:
        """Lines removed."""
        return sum(h.removed for h in self.hunks)


def has_content(oid: bytes) -> bool:
    """Is this the id of a file that is not empty?"""
    return bool(oid.strip(b"0")) and not any(e.startswith(oid) for e in _EMPTY)


@cache
def file_mode(text: bytes | None) -> int | None:
    """A mode as git keeps it: 100644, 100755, 120000, 160000."""
    if text is None or not re.fullmatch(rb"[0-7]{6}", text):
        return None
    mode = int(text, 8)
    if mode >> 12 == 0o10:
        return 0o100755 if mode & 0o100 else 0o100644
    return mode if mode in (0o120000, GITLINK) else None
