"""Git diffs as values: strictly parsed, so that what is wrong is said with its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import compress
from operator import itemgetter
from typing import NoReturn

from hexpatch.binpatch import BadBinary, parse_binary
from hexpatch.diffpath import QUOTED, bare, check_path, halves, shown, unquote
from hexpatch.errors import HexpatchError
from hexpatch.filediff import FileDiff, Hunk

START = b"diff --git "
GITLINK = 0o160000
_HUNK = re.compile(rb"@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", re.DOTALL)
_WHOLE = re.compile(rb"@@ -0,0 \+1(?:,([1-9]\d*))? @@")
_INDEX = re.compile(rb"index ([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: (\d{6}))?\Z")
_TRADITIONAL = re.compile(rb"^(?:@@ -\d|--- .*\n\+\+\+ .*\n@@ -\d|diff --c)", re.MULTILINE)
_HEADERS = (
    (b"new file mode ", "new mode"),
    (b"deleted file mode ", "old mode"),
    (b"old mode ", "old mode"),
    (b"new mode ", "new mode"),
    (b"similarity index ", "similarity"),
    (b"dissimilarity index ", "dissimilarity"),
    (b"rename from ", "rename from"),
    (b"rename to ", "rename to"),
    (b"copy from ", "copy from"),
    (b"copy to ", "copy to"),
)
_NOT_OLD = bytes.maketrans(b"+", b"\0")
_NOT_NEW = bytes.maketrans(b"-", b"\0")
_FIRST: Callable[[bytes], bytes] = itemgetter(slice(1))
_TAIL: Callable[[bytes], bytes] = itemgetter(slice(1, None))
_PREFIX_HINT = "make it again with `git -c diff.noprefix=false -c diff.mnemonicPrefix=false`"


def parse_diff(data: bytes, name: str) -> tuple[FileDiff, ...]:
    """Read a git diff; text around the sections is skipped, as git does. Strict in them."""
    start = first_section(data, 0, name, 0)
    if start == len(data) and data.strip():
        raise HexpatchError(f"{name}: no diff found")
    return parse_sections(data, start, 0, name, 0)


def first_section(data: bytes, at: int, name: str, before: int) -> int:
    """Offset of the first file's section from `at` on, the end of the data if there is none."""
    start = at
    if not data.startswith(START, at):
        start = data.find(b"\n" + START, max(at - 1, 0)) + 1 or len(data)
    _prose(data, at, start, name, before)
    return start


def parse_sections(
    data: bytes, start: int, base: int, name: str, before: int
) -> tuple[FileDiff, ...]:
    """Read the sections from `start` on; their ranges count from `base`.

    `before` lines of the file are not in `data`.
    """
    found: list[FileDiff] = []
    while start < len(data):
        stop = data.find(b"\n" + START, start) + 1 or len(data)
        section = _Section(data, start, stop, name, before)
        found.append(section.read(base))
        if section.at < len(section.lines):
            _prose(data, base + found[-1].end, stop, name, before)
        start = stop
    return tuple(found)


def _prose(data: bytes, start: int, stop: int, name: str, before: int) -> None:
    """Refuse diffs of other kinds, which would be skipped as text."""
    match = _TRADITIONAL.search(data, start, stop) if stop > start else None
    if match is None:
        return
    number = before + data.count(b"\n", 0, match.start()) + 1
    if match[0].startswith(b"diff"):
        raise HexpatchError(f"{name}: line {number}: the diff of a merge can't be used")
    what = match[0].split(b"\n")[0].decode("utf-8", "replace")
    raise HexpatchError(
        f"{name}: line {number}: `{what}` without a `diff --git` line before it",
        "make it with `git diff` or `git format-patch`",
    )


class _Section:
    """The lines of one file's section, and how far they are read."""

    def __init__(self, data: bytes, start: int, stop: int, name: str, before: int) -> None:
        self.data = data
        self.start = start
        self.stop = stop
        self.name = name
        self.before = before
        hunks = data.find(b"\n@@ -", start, stop)
        self.body = stop if hunks < 0 else hunks + 1
        self.lines = data[start : self.body].split(b"\n")
        if not self.lines[-1]:
            self.lines.pop()
        self.cut = data[stop - 1] != 0x0A  # the last line has no newline
        self.label = self.lines[0][len(START) :]
        self.at = 1
        self.skipped = 0  # lines that were read without being split
        self.kinds = b""
        self.body_end = 0

    def fail(self, text: str, at: int | None = None, hint: str | None = None) -> NoReturn:
        """Raise, naming the patch file, the line in it, and the file it changes."""
        number = self.before + self.data.count(b"\n", 0, self.start) + 1
        number += min(self.at if at is None else at, len(self.lines) - 1) + self.skipped
        raise HexpatchError(f"{self.name}: line {number}: {shown(self.label)}: {text}", hint)

    def line(self, at: int) -> bytes:
        """A line before the hunks; nothing behind the last."""
        return self.lines[at] if at < len(self.lines) else b""

    def read(self, base: int) -> FileDiff:
        """The file's diff; its range counts from `base`."""
        rest = self.lines[0][len(START) :]
        if rest.endswith(b"\r"):
            self.fail("the diff has CRLF line ends", hint="get the file again as it was sent")
        if not rest.startswith((b"a/", b'"a/')) or not (b" b/" in rest or b' "b/' in rest):
            self.fail("the paths have no a/ and b/ prefixes", hint=_PREFIX_HINT)
        said = self.head()
        pair = self.names(said)
        kind, old, new = self.kind(said, pair, rest)
        self.label = new or old or b""
        hunks: list[Hunk] = []
        binary = None
        missing = False
        line = self.line(self.at)
        if line == b"GIT binary patch":
            try:
                binary, self.at = parse_binary(self.lines, self.at + 1)
            except BadBinary as error:
                self.fail(error.text, error.at)
        elif line.startswith((b"Binary files ", b"Files ")) and line.endswith(b" differ"):
            missing = True
            self.at += 1
        elif self.body < self.stop and self.at == len(self.lines):
            whole = self.whole()
            if whole is not None:
                hunks.append(whole)
            self.unfold()
            while self.kinds.startswith(b"@", self.at):
                hunks.append(self.hunk())
            self.after()
        self.check(kind, said, hunks, bool(binary) or missing, pair is not None)
        similarity = said.get("similarity")
        stop = self.stop
        if self.at < len(self.lines):
            tail = self.lines[self.at :]
            stop -= sum(map(len, tail)) + len(tail) - self.cut
            if hunks:
                stop -= len(tail) - self.kinds.count(b"\n", self.at)
        return FileDiff(
            kind=kind,
            old_path=old,
            new_path=new,
            old_mode=_mode(said.get("old mode")),
            new_mode=_mode(said.get("new mode")),
            old_id=said.get("old id", b"").decode(),
            new_id=said.get("new id", b"").decode(),
            similarity=None if similarity is None else int(similarity),
            hunks=tuple(hunks),
            binary=binary,
            binary_missing=missing,
            start=self.start - base,
            end=stop - base,
        )

    def head(self) -> dict[str, bytes]:
        """The extended header lines."""
        said: dict[str, bytes] = {}
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith(b"index "):
                match = _INDEX.match(line)
                if match is None:
                    self.fail("the index line is damaged")
                said["old id"], said["new id"] = match[1], match[2]
                if match[3] is not None:
                    said.setdefault("old mode", match[3])
            else:
                for start, key in _HEADERS:
                    if line.startswith(start):
                        said[key] = line[len(start) :]
                        break
                else:
                    return said
                if start.endswith(b"mode ") and _mode(said[key]) is None:
                    self.fail("an unknown file mode")
                if key == "similarity" and not re.fullmatch(rb"\d{1,3}%", said[key]):
                    self.fail("the similarity is damaged")
                if key == "similarity":
                    said[key] = said[key][:-1]
                if start.startswith((b"new file", b"deleted")):
                    said["add" if start.startswith(b"new") else "delete"] = b""
            self.at += 1
        return said

    def names(self, said: dict[str, bytes]) -> tuple[bytes | None, bytes | None] | None:
        """The paths in the ---/+++ lines; None for /dev/null; nothing where there are none."""
        first, second = self.line(self.at), self.line(self.at + 1)
        if not first.startswith(b"--- "):
            return None
        if not second.startswith(b"+++ ") or self.line(self.at + 2) or self.body == self.stop:
            self.fail("a --- line without its +++ line and hunk")
        old = self.side(first[4:], b"a/")
        new = self.side(second[4:], b"b/")
        self.at += 2
        return old, new

    def side(self, text: bytes, prefix: bytes) -> bytes | None:
        if text[:1] == b'"':
            match = QUOTED.match(text)
            path = unquote(match[1]) if match else b""
        else:
            path = text.split(b"\t", 1)[0]
        if path == b"/dev/null":
            return None
        if not path.startswith(prefix):
            self.fail(f"the path {shown(path)} has no {prefix.decode()} prefix", hint=_PREFIX_HINT)
        return path[2:]

    def kind(
        self, said: dict[str, bytes], pair: tuple[bytes | None, bytes | None] | None, rest: bytes
    ) -> tuple[str, bytes | None, bytes | None]:
        """Kind, old and new path; all lines that name them must agree."""
        kind = "modify"
        for word in ("rename", "copy"):
            if f"{word} from" in said or f"{word} to" in said:
                ends = said.get(f"{word} from"), said.get(f"{word} to")
                if ends[0] is None or ends[1] is None or kind != "modify":
                    self.fail("the rename or copy lines do not go together")
                kind = word
                moved = bare(ends[0]), bare(ends[1])
                if pair is not None and pair != moved:
                    self.fail("the ---/+++ lines and the rename or copy lines disagree")
                pair = moved
        if "add" in said or (pair is not None and pair[0] is None):
            kind = "add"
        if "delete" in said or (pair is not None and pair[1] is None):
            kind = "delete" if kind == "modify" else "bad"
        both = pair if pair is not None else halves(rest)
        if both is None:
            self.fail("the paths in the `diff --git` line can't be told apart")
        old, new = (both[0] or both[1] or b""), (both[1] or both[0] or b"")
        if (kind in ("modify", "add", "delete") and old != new) or kind == "bad":
            self.fail("the header lines contradict each other")
        if pair is not None and (
            (kind == "add" and pair[0] is not None) or (kind == "delete" and pair[1] is not None)
        ):
            self.fail("the header lines contradict each other")
        if rest != b"a/" + old + b" b/" + new and halves(rest) != (old, new):
            self.fail("the `diff --git` line and the lines after it name different files")
        for path in {old, new}:
            check_path(path, self.name)
        return kind, None if kind == "add" else old, None if kind == "delete" else new

    def check(
        self, kind: str, said: dict[str, bytes], hunks: list[Hunk], binary: bool, named: bool
    ) -> None:
        """Refuse what contradicts itself, and a section that changes nothing."""
        if kind == "add" and any(h.old_len for h in hunks):
            self.fail("a new file, but a hunk has old lines")
        if kind == "delete" and any(h.new_len for h in hunks):
            self.fail("a deleted file, but a hunk has new lines")
        if named and not hunks:
            self.fail("---/+++ lines without a hunk")
        if kind == "modify":
            if "new mode" not in said and not hunks and not binary:
                self.fail("the section changes nothing")
            if "new mode" in said and "old mode" not in said:
                self.fail("a new mode without an old mode")

    def after(self) -> None:
        """Refuse lines of a hunk that is complete already."""
        line, follow = self.kinds[self.at : self.at + 1], self.kinds[self.at + 1 : self.at + 2]
        if line and line in b"+- \\":
            rest = self.lines[self.at]
            if line == b"-" and rest in (b"- ", b"-") and (not follow or follow not in b"+- @\\"):
                return  # the mail's signature
            self.fail("the hunk has more lines than its @@ line says")

    def whole(self) -> Hunk | None:
        """The hunk of a new file, taken as one text: much quicker. None if it is not as usual."""
        data, stop = self.data, self.stop
        eol = data.find(b"\n", self.body, stop)
        match = _WHOLE.fullmatch(data, self.body, max(eol, self.body))
        if match is None:
            return None
        size = int(match[1] or 1)
        end = data.find(b"\n", data.rfind(b"\n+", eol, stop) + 1, stop)
        if end < 0 or not data.count(b"\n+", eol, stop) == data.count(b"\n", eol, end) == size:
            return None
        new = data[eol + 2 : end].replace(b"\n+", b"\n").split(b"\n")
        self.skipped = size + 1
        self.body = end + 1
        eof = data.startswith(b"\\ ", end + 1)
        if eof:
            self.skipped += 1
            self.body = data.find(b"\n", end + 1, stop) + 1 or stop
        return Hunk(0, 0, 1, size, b"", [], new, False, eof, 0, 0, size, 0)

    def unfold(self) -> None:
        """Split what is left into lines: their first bytes in `kinds`, the tails in `lines`.

        An empty line's kind is a newline.
        """
        lines = self.data[self.body : self.stop].split(b"\n")
        if not lines[-1]:
            lines.pop()
        firsts = [x[:1] or b"\n" for x in lines] if b"" in lines else map(_FIRST, lines)
        self.kinds = bytes(len(self.lines)) + b"".join(firsts)
        self.lines += map(_TAIL, lines)
        # A last line without a newline is no part of a hunk, unless it is the marker.
        self.body_end = len(self.lines) - (self.cut and self.kinds[-1:] != b"\\")

    def hunk(self) -> Hunk:
        """Read one hunk; its counts must be exact."""
        start = self.at
        match = _HUNK.fullmatch(self.lines[start])
        if match is None:
            self.fail("the @@ line is damaged")
        old_start, old_size, new_start, new_size, section = match.groups()
        old_len = 1 if old_size is None else int(old_size)
        new_len = 1 if new_size is None else int(new_size)
        at = start + 1
        stop = self.kinds.find(b"@", at)
        if stop < 0:
            stop = self.body_end
        part = self.kinds[at:stop]
        added, removed = part.count(b"+"), part.count(b"-")
        size = len(part) - part.count(b"\\")
        if size - added != old_len or size - removed != new_len:
            stop = self.extent(at, old_len, new_len)
            part = self.kinds[at:stop]
            added, removed = part.count(b"+"), part.count(b"-")
        if part.translate(None, b" +-\\\n"):
            self.bad_hunk(start, old_len, new_len)
        if not added and not removed:
            self.fail("the hunk changes nothing", start)
        body = self.lines[at:stop]
        old_eof = new_eof = False
        if b"\\" in part:
            old_eof, new_eof = self.ends(at, part, old_len, new_len)
            body = [x for x, k in zip(body, part, strict=True) if k != 0x5C]
            part = part.replace(b"\\", b"")
        self.at = stop
        lead = len(part) - len(part.lstrip(b" \n"))
        trail = len(part) - len(part.rstrip(b" \n"))
        mid = lead + removed
        if part[lead : len(part) - trail] == b"-" * removed + b"+" * added:  # one block: quicker
            old, new = body[:mid] + body[mid + added :], body[:lead] + body[mid:]
        else:
            old = list(compress(body, part.translate(_NOT_OLD)))
            new = list(compress(body, part.translate(_NOT_NEW)))
        return Hunk(
            int(old_start),
            old_len,
            int(new_start),
            new_len,
            section,
            old,
            new,
            old_eof,
            new_eof,
            lead,
            trail,
            added,
            removed,
        )

    def extent(self, at: int, old: int, new: int) -> int:
        """Index after a hunk whose lines begin at `at`; it needs `old` and `new` lines."""
        start = at - 1
        needs = old, new
        kinds = self.kinds
        # The hunk has at least as many lines as its longer side still needs: take them at once.
        while old or new:
            stop = at + max(old, new)
            size = stop - at - kinds.count(b"\\", at, stop)
            old -= size - kinds.count(b"+", at, stop)
            new -= size - kinds.count(b"-", at, stop)
            if old < 0 or new < 0 or stop > self.body_end:
                self.bad_hunk(start, *needs)
            at = stop
        return at + 1 if kinds[at : at + 1] == b"\\" else at

    def ends(self, at: int, part: bytes, old_len: int, new_len: int) -> tuple[bool, bool]:
        """Which sides end without a newline: a marker must stand after a side's last line."""
        old = new = False
        mark = part.find(b"\\")
        while mark >= 0:
            kind = part[mark - 1 : mark].replace(b"\n", b" ")
            seen = mark - part.count(b"\\", 0, mark)
            bad = kind in (b"", b"\\") or not self.lines[at + mark].startswith(b" ")
            if kind in (b"-", b" "):
                old = True
                bad |= seen - part.count(b"+", 0, mark) != old_len
            if kind in (b"+", b" "):
                new = True
                bad |= seen - part.count(b"-", 0, mark) != new_len
            if bad:
                self.fail("`\\ No newline at end of file` in the wrong place", at + mark)
            mark = part.find(b"\\", mark + 1)
        return old, new

    def bad_hunk(self, start: int, old_len: int, new_len: int) -> NoReturn:
        """Say where a hunk leaves what its @@ line states."""
        head = "@" + self.lines[start].decode("utf-8", "replace")
        old = new = 0
        stop = self.body_end
        for at in range(start + 1, stop):
            kind = self.kinds[at : at + 1].replace(b"\n", b" ")
            if kind not in (b" ", b"+", b"-", b"\\"):
                stop = at
                break
            old += kind in (b"-", b" ")
            new += kind in (b"+", b" ")
            if old > old_len or new > new_len:
                side = "old" if old > old_len else "new"
                self.fail(f"hunk {head}: more {side} lines than its first line says", at)
        text = f"hunk {head} is cut off after {old} of {old_len} old, {new} of {new_len} new lines"
        self.fail(text, stop)


@cache
def _mode(text: bytes | None) -> int | None:
    """A mode as git keeps it: 100644, 100755, 120000, 160000."""
    if text is None or not re.fullmatch(rb"[0-7]{6}", text):
        return None
    mode = int(text, 8)
    if mode >> 12 == 0o10:
        return 0o100755 if mode & 0o100 else 0o100644
    return mode if mode in (0o120000, GITLINK) else None
