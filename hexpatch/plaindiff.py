"""Diffs that git did not write: `diff -u` with a/ and b/ is read, all other kinds are refused."""

from __future__ import annotations

import re
from typing import NoReturn

from hexpatch.diffpath import QUOTED, check_path, unquote
from hexpatch.errors import HexpatchError
from hexpatch.filediff import FileDiff, Hunk
from hexpatch.hunks import Section

_BLANK = rb"(?:[ \t]|\xc2?\xa0|&nbsp;)"
_OTHER = re.compile(
    rb"^(?:(?P<pair>--- .*\n\+\+\+ .*\n@@ -\d)|(?P<hunk>@@ -\d)|(?P<merge>diff --c)"
    rb"|(?P<context>\*\*\* .*\n--- .*\n\*{15})"
    rb"|(?P<normal>\d+(?:,\d+)?[acd]\d+(?:,\d+)?[ \t\r]*\n[<>] )"
    rb"|(?P<damaged>diff(?! --git )" + _BLANK + rb"+--git\b))",
    re.MULTILINE,
)
QUOTED_DIFF = re.compile(
    rb"^(?:[>|]|" + _BLANK + rb"|<[^>\n]*>)+diff" + _BLANK + rb"+--git\b.*", re.MULTILINE
)
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@.*\n")
_STAMP = re.compile(rb"(?:\t| +(?=\d{4}-\d\d-\d\d \d\d:\d\d))(.*)\Z", re.DOTALL)
_EPOCH = re.compile(
    rb"(1969-12-31|1970-01-01) (\d\d):(\d\d):00(?:\.0+)?(?: ([-+])(\d\d):?(\d\d))?\s*\Z"
)
NO_CRLF = (
    "get the file again as it was sent, or `git am --quoted-cr=strip` it in your clone, "
    "then `hexpatch import BASE..BRANCH`"
)


def find(data: bytes, at: int, stop: int, name: str, before: int) -> int | None:
    """Where a `diff -u` section begins between `at` and `stop`. What is no such diff is refused."""
    match = _OTHER.search(data, at, stop) if stop > at else None
    if match is None:
        return None
    if match.lastgroup == "pair":
        return match.start()
    number = before + data.count(b"\n", 0, match.start()) + 1
    what = match[0].split(b"\n")[0].strip().decode("utf-8", "replace")
    text, hint = {
        "merge": ("the diff of a merge can't be used", None),
        "context": (f"`{what}` begins a context diff", "make it with `git format-patch`"),
        "normal": (f"`{what}` begins a diff without context", "make it with `git format-patch`"),
        "damaged": (
            f"`{what}` is damaged: its blanks were changed on the way",
            "get the mail again as it was sent",
        ),
        "hunk": (
            f"`{what}` without a `diff --git` line before it",
            "make it with `git diff` or `git format-patch`",
        ),
    }[match.lastgroup or ""]
    raise HexpatchError(f"{name}: line {number}: {text}", hint)


def stop_of(data: bytes, start: int, stop: int) -> int:
    """Where the section that begins at `start` must end: before a `diff -u` one that follows it.

    Lines inside hunks may look like the start of one, so the hunks' counts are followed.
    """
    body = data.find(b"\n@@ -", start, stop) + 1
    if not body or data.find(b"\n+++ ", body, stop) < 0:
        return stop
    match = _OTHER.search(data, _after_hunks(data, body, stop), stop)
    return match.start() if match and match.lastgroup == "pair" else stop


def _after_hunks(data: bytes, at: int, stop: int) -> int:
    while head := _HUNK.match(data, at, stop):
        old, new = (1 if n is None else int(n) for n in head.groups())
        at = head.end()
        while at < stop and (old > 0 or new > 0 or data[at] == 0x5C):
            old -= data[at] in b" -\n"
            new -= data[at] in b" +\n"
            at = data.find(b"\n", at, stop) + 1 or stop
    return at


class PlainSection(Section):
    """One file's section of a `diff -u`: two lines with the paths, and hunks."""

    def read(self, base: int) -> FileDiff:
        """The file's diff; its range counts from `base`."""
        first, second = self.data[self.start : self.body].split(b"\n")[:2]
        if first.endswith(b"\r"):
            self.fail("the diff has CRLF line ends", hint=NO_CRLF)
        old, old_stamp = _side(first[4:])
        new, new_stamp = _side(second[4:])
        if not _prefixed(old, b"a/") or not _prefixed(new, b"b/") or old is new is None:
            self.refuse(first, old, new)
        paths = {side[2:] for side in (old, new) if side is not None}
        if len(paths) > 1:
            self.fail("the --- and +++ lines name different files", hint=_AM)
        path = self.label = paths.pop()
        check_path(path, self.name)
        self.skipped = 2
        hunks = self.hunks()
        kind = "modify"
        if old is None or (_is_epoch(old_stamp) and not any(h.old_len for h in hunks)):
            kind = "add"
        elif new is None or (_is_epoch(new_stamp) and not any(h.new_len for h in hunks)):
            kind = "delete"
        self.one_sided(kind, hunks)
        return self.diff(kind, path, hunks, base)

    def diff(self, kind: str, path: bytes, hunks: tuple[Hunk, ...], base: int) -> FileDiff:
        """The value; such a diff states no modes and no ids."""
        old = None if kind == "add" else path
        new = None if kind == "delete" else path
        end = self.end(True) - base
        return FileDiff(
            kind, old, new, None, None, "", "", None, hunks, None, False, self.start - base, end
        )

    def refuse(self, first: bytes, old: bytes | None, new: bytes | None) -> NoReturn:
        """Paths that may stand for several files."""
        number = self.before + self.data.count(b"\n", 0, self.start) + 1
        what = first.decode("utf-8", "replace")
        level = "" if old and new and old != new else " -p0"
        raise HexpatchError(
            f"{self.name}: line {number}: `{what}` without a `diff --git` line before it, "
            "or a/ and b/ before the paths",
            _AM.replace(" FILE", f"{level} FILE") + ("" if old and new else _LEVEL),
        )


_AM = "`git am FILE` in the checkout (`hexpatch apply` makes it), then `hexpatch refresh`"
_LEVEL = "; without -p0 where a folder stands before the paths"


def _side(text: bytes) -> tuple[bytes | None, bytes]:
    """The path in a --- or +++ line, None for /dev/null; and the time behind it."""
    quoted = QUOTED.match(text)
    if quoted:
        return unquote(quoted[1]), text[quoted.end() :].strip()
    found = _STAMP.search(text)
    path = text[: found.start()] if found else text
    return None if path == b"/dev/null" else path, found[1] if found else b""


def _prefixed(path: bytes | None, prefix: bytes) -> bool:
    return path is None or path.startswith(prefix)


def _is_epoch(stamp: bytes) -> bool:
    """Is this the time that `diff -N` writes for a file that is not there?"""
    match = _EPOCH.match(stamp)
    if match is None:
        return False
    zone = int(match[5] or 0) * 60 + int(match[6] or 0)
    minutes = int(match[2]) * 60 + int(match[3]) - (1440 if match[1][:4] == b"1969" else 0)
    return minutes == (-zone if match[4] == b"-" else zone)
