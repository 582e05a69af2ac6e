"""Patch files: what a git diff says, read strictly; mail and diff together as one value."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeAlias

from hexpatch import header
from hexpatch.binpatch import BadBinary, BinaryHunk, apply_delta
from hexpatch.diffpath import check_path, quote, shown
from hexpatch.errors import HexpatchError
from hexpatch.filediff import FileDiff, Hunk
from hexpatch.gitdiff import (
    START,
    next_section,
    parse_diff,
    parse_sections,
)
from hexpatch.objects import GITLINK

__all__ = [
    "BinaryHunk",
    "FileDiff",
    "Hunk",
    "PatchFile",
    "apply_binary",
    "check_path",
    "map_paths",
    "marked",
    "merged",
    "parse_diff",
    "parse_patch",
    "parse_patch_headers",
    "render_patch",
    "slug",
]


class PatchFile(NamedTuple):
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


# -- mail and diff --------------------------------------------------------------------------


def parse_patch(data: bytes, name: str, *, scissors: bool = False, bare: bool = False) -> PatchFile:
    """Read a patch file. A mail without a diff is a patch that changes nothing.

    `bare`: the diff's bytes are left out of the value.
    """
    mail = header.parse_mail(data, name, scissors)
    data = mail.data
    start = next_section(data, mail.rest, name, mail.before)
    diffs = parse_sections(data, start, start, name, mail.before)
    for diff in diffs:
        if GITLINK in (diff.old_mode, diff.new_mode):
            raise HexpatchError(f"{name}: {shown(diff.path)}: a submodule can't be patched")
    end = start + diffs[-1].end if diffs else start
    return _patch(mail, diffs, b"" if bare else data[start:end])


def marked(data: bytes) -> int | None:
    """The line where the marks begin of a merge that waits for a person."""
    found = header.CONFLICT.search(data) if b"<<<<<<< " in data else None
    return data.count(b"\n", 0, found.start()) + 1 if found else None


def merged(data: bytes, name: str) -> bytes:
    """A patch file of the series; a half-merged one is refused."""
    line = marked(data)
    if line:
        raise HexpatchError(
            f"{name}: line {line}: holds merge conflict marks",
            f"keep one side there; `git checkout --ours {name}` or `--theirs` takes it whole",
        )
    return data


def parse_patch_headers(data: bytes, name: str) -> PatchFile:
    """Read author, date and message only; the diff is left out unseen."""
    return _patch(header.parse_mail(data, name), (), b"")


def _patch(mail: header.Mail, diffs: tuple[FileDiff, ...], diff: bytes) -> PatchFile:
    return PatchFile(
        author=f"{mail.name} <{mail.email}>",
        author_name=mail.name,
        author_email=mail.email,
        author_date=mail.date,
        subject=mail.subject,
        body=mail.body,
        diffs=diffs,
        diff=diff,
        glued=mail.glued,
    )


def render_patch(p: PatchFile) -> bytes:
    """Write a patch file in its one canonical form. Inverse of parse_patch."""
    author = p.author_name, p.author_email
    lines = header.render_mail(author, p.author_date, p.subject, p.body, p.glued)
    try:
        head = "\n".join(lines).encode()
    except UnicodeEncodeError:
        raise HexpatchError(f"{p.subject!r}: the message is not valid text") from None
    return header.SEPARATOR + head + (b"\n\n" if p.diff else b"\n") + p.diff


# -- other layouts --------------------------------------------------------------------------

_BODY = re.compile(rb"^(?:@@ -|GIT binary patch\n)", re.MULTILINE)


PathRule: TypeAlias = tuple[bytes, bytes]  # a path, and what stands for it


def map_paths(diff: bytes, rules: Sequence[PathRule], name: str) -> bytes:
    """Rewrite the paths in a diff's header lines, and nothing else.

    The first rule that fits wins: `src/` stands for everything below, `README` for that path
    (a file, or a directory with all below it). A path without a rule is an error.
    """
    out: list[bytes] = []
    done = 0
    for part in parse_diff(diff, name):
        old = _mapped(part.old_path or part.path, rules, name)
        new = _mapped(part.path, rules, name)
        match = _BODY.search(diff, part.start, part.end)
        stop = match.start() if match else part.end
        out.append(diff[done : part.start])
        for line in diff[part.start : stop].split(b"\n"):
            out.append(_renamed(line, old, new))
            out.append(b"\n")
        out.pop()
        done = stop
    out.append(diff[done:])
    return b"".join(out)


def _mapped(path: bytes, rules: Sequence[PathRule], name: str) -> bytes:
    for old, new in rules:
        if path == old or path.startswith(old if old[-1:] in (b"", b"/") else old + b"/"):
            made = new + path[len(old) :]
            check_path(made, name)
            return made
    folder = shown(path).rpartition("/")[0]
    place = f"{folder}/" if folder else shown(path)
    raise HexpatchError(
        f"{name}: no --map says where {shown(path)} goes", f"add `--map {place}=...`, or `={place}`"
    )


def _renamed(line: bytes, old: bytes, new: bytes) -> bytes:
    """One header line with its paths replaced, the rest as it was."""
    one, two = quote(b"a/" + old), quote(b"b/" + new)
    if line.startswith(START):
        return START + one + b" " + two
    for start, side in ((b"--- ", one), (b"+++ ", two)):
        if line.startswith(start) and line != start + b"/dev/null":
            return start + side + (b"\t" if b" " in side else b"")
    for start, bare in ((b"rename from ", old), (b"copy from ", old)):
        if line.startswith(start):
            return start + quote(bare)
    for start, bare in ((b"rename to ", new), (b"copy to ", new)):
        if line.startswith(start):
            return start + quote(bare)
    if line.startswith(b"Binary files "):
        first = b"/dev/null" if line.startswith(b"Binary files /dev/null and ") else one
        second = b"/dev/null" if line.endswith(b" and /dev/null differ") else two
        return b"Binary files " + first + b" and " + second + b" differ"
    return line


def slug(title: str, taken: Collection[str]) -> str:
    """A patch name from a title: kebab-case, at most 50 bytes, not among `taken`."""
    text = re.sub(r"^(?:\s*\[[^\]]*\])+", "", title)
    text = unicodedata.normalize("NFKD", text.replace("ß", "ss")).encode("ascii", "ignore").decode()
    base = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    base = _short(base, 50) or "patch"
    made = base
    number = 2
    while made in taken:
        tail = f"-{number}"
        made = _short(base, 50 - len(tail)) + tail
        number += 1
    return made


def _short(text: str, size: int) -> str:
    """Cut at the end of a word if there is one in the last third."""
    if len(text) <= size:
        return text
    cut = text[:size]
    if text[size] != "-" and "-" in cut[size * 2 // 3 :]:
        cut = cut[: cut.rindex("-")]
    return cut.strip("-")
