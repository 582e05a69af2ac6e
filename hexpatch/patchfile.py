"""Patch files: what a git diff says, read strictly; mail and diff together as one value."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hexpatch.binpatch import BadBinary, BinaryHunk, apply_delta
from hexpatch.diffpath import check_path, shown
from hexpatch.errors import HexpatchError
from hexpatch.gitdiff import FileDiff, Hunk, parse_diff

__all__ = [
    "BinaryHunk",
    "FileDiff",
    "Hunk",
    "PatchFile",
    "apply_binary",
    "check_path",
    "map_paths",
    "parse_diff",
    "parse_patch",
    "parse_patch_headers",
    "render_patch",
    "slug",
]


@dataclass(frozen=True, slots=True)
class PatchFile:
    """A mail with its diff. `glued`: the title's paragraph goes on in the body's first line."""

    author: str
    author_name: str
    author_email: str
    author_date: str
    subject: str
    body: str
    diffs: tuple[FileDiff, ...]
    diff: bytes
    glued: bool = False

    @property
    def message(self) -> str:
        """The commit message."""
        if self.glued:
            return f"{self.subject}\n{self.body}\n"
        return f"{self.subject}\n\n{self.body}\n" if self.body else f"{self.subject}\n"


def apply_binary(diff: FileDiff, before: bytes | None, name: str) -> bytes:
    """The file after a binary change; both sides are checked against the index line's ids."""
    place = f"{name}: {shown(diff.path)}"
    if diff.binary is None:
        raise HexpatchError(f"{place}: the binary data is not in the patch")
    before = before or b""
    if len(diff.old_id) < 40 or len(diff.new_id) < 40:
        raise HexpatchError(f"{place}: a binary patch without full ids in its index line")
    if not _is(before, diff.old_id):
        raise HexpatchError(f"{place}: the binary file is not the one the patch is for")
    forward = diff.binary[0]
    try:
        delta = forward.method == "delta"
        after = apply_delta(before, forward.data) if delta else forward.data
    except BadBinary as error:
        raise HexpatchError(f"{place}: {error.text}") from None
    if not _is(after, diff.new_id):
        raise HexpatchError(f"{place}: the binary data does not give the file the patch states")
    return after


def _is(data: bytes, oid: str) -> bool:
    if not oid.strip("0"):
        return data == b""
    algorithm = hashlib.sha256 if len(oid) == 64 else hashlib.sha1
    return algorithm(b"blob %d\0" % len(data) + data).hexdigest() == oid
