"""What a git diff says, as values."""

from __future__ import annotations

from dataclasses import dataclass

from hexpatch.binpatch import BinaryHunk


@dataclass(frozen=True, slots=True)
class Hunk:
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


@dataclass(frozen=True, slots=True)
class FileDiff:
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
