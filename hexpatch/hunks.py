"""The hunks of one file's section: counts must be exact, and what is wrong has a line number."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import compress
from operator import itemgetter
from typing import NoReturn, overload

from hexpatch.diffpath import shown
from hexpatch.errors import HexpatchError
from hexpatch.filediff import Hunk

_HUNK = re.compile(rb"@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", re.DOTALL)
_ONE_BLOCK = re.compile(rb"([ \n]*)(-*)(\+*)([ \n]*)")
_WHOLE = re.compile(rb"@@ -0,0 \+1(?:,([1-9]\d*))? @@")
_PIECE = 1 << 20
_NOT_OLD = bytes.maketrans(b"+", b"\0")
_NOT_NEW = bytes.maketrans(b"-", b"\0")
_FIRST: Callable[[bytes], int] = itemgetter(0)
_TAIL: Callable[[bytes], bytes] = itemgetter(slice(1, None))


class Lines(Sequence[bytes]):
    """Lines of a part of the data, cut out when they are asked for, one after the other.

    A large binary file has so many that they would fill the memory.
    """

    def __init__(self, data: bytes, start: int, stop: int) -> None:
        self._data = data
        self._start = self._offset = start
        self._stop = stop
        self._at = 0  # the line that begins at `_offset`
        self._count = data.count(b"\n", start, stop) + (data[stop - 1] != 0x0A)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(self._count))]
        if index < self._at:
            self._at, self._offset = 0, self._start
        while self._at < index:
            self._offset = self._data.index(b"\n", self._offset) + 1
            self._at += 1
        end = self._data.find(b"\n", self._offset, self._stop)
        return self._data[self._offset : end if end >= 0 else self._stop]


class Section:
    """The lines of one file's section, and how far they are read."""

    def __init__(self, data: bytes, start: int, stop: int, name: str, before: int) -> None:
        self.data = data
        self.start = start
        self.stop = stop
        self.name = name
        self.before = before
        hunks = data.find(b"\n@@ -", start, stop)
        self.body = stop if hunks < 0 else hunks + 1
        self.lines: list[bytes] = []
        self.cut = data[stop - 1] != 0x0A  # the last line has no newline
        self.label = b""
        self.at = 0
        self.skipped = 0  # lines that were read without being split
        self.kinds = b""
        self.body_end = 0

    def fail(self, text: str, at: int | None = None, hint: str | None = None) -> NoReturn:
        """Raise, naming the patch file, the line in it, and the file it changes."""
        number = self.before + self.data.count(b"\n", 0, self.start) + 1
        at = self.at if at is None else at
        number += min(at, max(len(self.lines) - 1, 0)) + self.skipped
        raise HexpatchError(f"{self.name}: line {number}: {shown(self.label)}: {text}", hint)

    def line(self, at: int) -> bytes:
        """A line before the hunks; nothing behind the last."""
        return self.lines[at] if at < len(self.lines) else b""

    def hunks(self) -> tuple[Hunk, ...]:
        """The hunks, which begin at `body`."""
        found: list[Hunk] = []
        if self.data.startswith(b"@@ -0,0 ", self.body) and (whole := self.whole()) is not None:
            found.append(whole)
        self.unfold()
        while self.kinds.startswith(b"@", self.at):
            found.append(self.hunk())
        self.after()
        return tuple(found)

    def end(self, hunks: bool) -> int:
        """Offset after what is read; without hunks `lines` reach to `body` only."""
        stop = self.stop if hunks else self.body
        if self.at >= len(self.lines):
            return stop
        tail = self.lines[self.at :]
        size = sum(map(len, tail)) + len(tail) - (self.cut and stop == self.stop)
        if hunks:  # each line but an empty one has its first byte in `kinds`
            size += len(tail) - self.kinds.count(b"\n", self.at)
        return stop - size

    def one_sided(self, kind: str, hunks: Sequence[Hunk]) -> None:
        """Refuse a new file with lines before, and a deleted one with lines after."""
        if kind == "add" and any(h.old_len for h in hunks):
            self.fail("a new file, but a hunk has old lines")
        if kind == "delete" and any(h.new_len for h in hunks):
            self.fail("a deleted file, but a hunk has new lines")

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
        self.skipped += size + 1
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
        kinds = [bytes(len(self.lines))]
        at = self.body
        while at < self.stop:
            # piece by piece: until their first bytes are cut off all lines are in memory twice
            end = self.data.find(b"\n", at + _PIECE, self.stop) + 1 or self.stop
            lines = self.data[at:end].split(b"\n")
            if not lines[-1]:
                lines.pop()
            firsts = map(_FIRST, (x or b"\n" for x in lines) if b"" in lines else lines)
            kinds.append(bytes(firsts))
            self.lines += map(_TAIL, lines)
            at = end
        self.kinds = b"".join(kinds)
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
        shape = _ONE_BLOCK.match(self.kinds, at, self.body_end)
        if shape is None:
            self.bad_hunk(start, old_len, new_len)
        _, (_, one), (_, two), (_, three), (_, stop) = shape.regs
        added, removed = three - two, two - one
        context = stop - at - added - removed
        if (
            context + removed != old_len
            or context + added != new_len
            or self.kinds[stop : stop + 1] == b"\\"
        ):
            return self.odd_hunk(match, old_len, new_len)
        if not added and not removed:
            self.fail("the hunk changes nothing", start)
        lines = self.lines
        self.at = stop
        return Hunk(
            int(old_start), old_len, int(new_start), new_len, section,
            lines[at:two] + lines[three:stop], lines[at:one] + lines[two:stop],
            False, False, one - at, stop - three, added, removed,
        )  # fmt: skip

    def odd_hunk(self, match: re.Match[bytes], old_len: int, new_len: int) -> Hunk:
        """A hunk of several blocks, or with `\\` lines, or one that is wrong."""
        start = self.at
        at = start + 1
        stop = self.extent(at, old_len, new_len)
        part = self.kinds[at:stop]
        if part.translate(None, b" +-\\\n"):
            self.bad_hunk(start, old_len, new_len)
        body = self.lines[at:stop]
        old_eof = new_eof = False
        if b"\\" in part:
            old_eof, new_eof = self.ends(at, part, old_len, new_len)
            body = [x for x, k in zip(body, part, strict=True) if k != 0x5C]
            part = part.replace(b"\\", b"")
        added, removed = part.count(b"+"), part.count(b"-")
        if not added and not removed:
            self.fail("the hunk changes nothing", start)
        self.at = stop
        return Hunk(
            int(match[1]),
            old_len,
            int(match[3]),
            new_len,
            match[5],
            list(compress(body, part.translate(_NOT_OLD))),
            list(compress(body, part.translate(_NOT_NEW))),
            old_eof,
            new_eof,
            len(part) - len(part.lstrip(b" \n")),
            len(part) - len(part.rstrip(b" \n")),
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
            text = self.lines[at + mark]  # " No newline at end of file" in any language
            bad = kind in (b"", b"\\") or not text.startswith(b" ") or len(text) < 10
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
