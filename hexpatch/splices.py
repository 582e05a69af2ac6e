"""A file as bytes, and splices that wait until somebody asks for the result.

The quick half of `place`: most hunks stand at the line they state, and then neither the file need
be split into lines nor a long file be copied for each of the patches that change it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from typing import NamedTuple

from hexpatch.objects import object_id
from hexpatch.patchfile import Hunk

_CHUNK = 8192
_MANY = 1 << 15


class _Cut(NamedTuple):
    """Bytes of the base that go, as range and as lines, what stands there instead, lines gained."""

    at: int
    end: int
    line: int
    size: int
    new: bytes
    grow: int


class _Base:
    """An earlier version of a file, shared by all that is made of it."""

    __slots__ = ("_counted", "_lines", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._counted = [0]  # newlines before each chunk, as far as they were needed
        self._lines: list[bytes] | None = None

    @property
    def lines(self) -> list[bytes]:
        if self._lines is None:
            self._lines = self.data.split(b"\n")
        return self._lines

    def find(self, text: bytes, line: int, floor: int, stop: int) -> int:
        """Offset of the line, if this text stands there, between `floor` and `stop`; else -1."""
        counted = self._counted
        while counted[-1] < line and len(counted) * _CHUNK < len(self.data) + _CHUNK:
            start = (len(counted) - 1) * _CHUNK
            counted.append(counted[-1] + self.data.count(b"\n", start, start + _CHUNK))
        # the newline before the line is in this chunk
        chunk = max(bisect_left(counted, line) - 1, 0)
        start = chunk * _CHUNK
        end = min(start + _CHUNK + len(text), stop)
        return _at_line(self.data, text, line - counted[chunk], start, max(start, floor), end)


class Text:
    """A file: the bytes of an earlier version, and what was cut and put in since. Not changed."""

    __slots__ = ("_base", "_cuts")

    def __init__(self, data: bytes) -> None:
        self._base = _Base(data)
        self._cuts: list[_Cut] = []

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        base = self._base.data
        return b"".join(self._pieces(memoryview(base))) if self._cuts else base

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self._base.data) + sum(len(c.new) - c.end + c.at for c in self._cuts)

    @property
    def oid(self) -> str:
        """The id of the file."""
        return object_id("blob", *self._pieces(memoryview(self._base.data)))

    def head(self, size: int) -> bytes:
        """The first bytes of the file, `size` of them if there are so many."""
        out = b""
        for piece in self._pieces(memoryview(self._base.data)):
            out += piece[: size - len(out)]
            if len(out) == size:
                break
        return out

    def _pieces(self, base: memoryview) -> Iterator[bytes | memoryview]:
        done = 0
        for cut in self._cuts:
            yield base[done : cut.at]
            yield cut.new
            done = cut.end
        yield base[done:]

    @property
    def lines(self) -> list[bytes]:
        """The bytes split at newlines; what several versions have is in memory once."""
        lines = self._base.lines
        out: list[bytes] = []
        done = 0
        for cut in self._cuts:
            out += lines[done : cut.line]
            done = cut.line + cut.size
            if cut.end == len(self._base.data):  # what comes last has an end of its own
                return out + cut.new.split(b"\n")
            if cut.new:
                out += cut.new[:-1].split(b"\n")
        return out + lines[done:] if self._cuts else lines

    def alike(self, other: Text) -> bool:
        """Made of the same version in the same way, and so surely equal?"""
        return self._base is other._base and self._cuts == other._cuts

    def only(self, hunks: Sequence[Hunk]) -> list[int] | None:
        """The line of each hunk, if all stand once in the file and in their order."""
        data = self.data
        places: list[int] = []
        line = end = 0
        for hunk in hunks:
            old = joined(hunk.old, hunk.old_eof)
            at = data.find(old, end) if hunk.old else -1
            if at < 0 or data.find(old) < at or data.find(old, at + 1) >= 0:
                return None
            line += data.count(b"\n", end, at)
            end = at + len(old)
            if (at and data[at - 1] != 0x0A) or (_is_last(hunk) and end != len(data)):
                return None
            places.append(line)
            line += len(hunk.old)
        return places

    def spliced(self, hunks: Sequence[Hunk], places: Sequence[int]) -> Text | None:
        """The file after the hunks, if they stand at these lines; None leaves it to `place`."""
        cuts = _Cuts(self._base, self._cuts)
        # the last one first: what stands before a hunk is then still as its line numbers have it
        for hunk, line in zip(reversed(hunks), reversed(places), strict=True):
            if not cuts.put(hunk, line):
                return None
        made = object.__new__(Text)
        made._base = self._base
        made._cuts = cuts.cuts
        return made


class _Cuts:
    """The cuts of a text while hunks are put in, from the last to the first.

    Lines are counted in the text as it was. What `put` changes is behind all that is still to come,
    so what is noted of the cuts before stays true.
    """

    def __init__(self, base: _Base, cuts: list[_Cut]) -> None:
        self.base = base
        self.cuts = list(cuts)
        self.starts: list[int] = []
        self.stops: list[int] = []
        self.shifts = [0]  # lines gained before each cut, and by all
        for cut in cuts:
            shift = self.shifts[-1] + cut.grow
            self.starts.append(cut.line + self.shifts[-1])
            self.stops.append(cut.line + cut.size + shift)
            self.shifts.append(shift)
        self.limit: int | None = None  # where the hunk begins that was put in last

    def put(self, hunk: Hunk, line: int) -> bool:
        """Cut out the hunk's old side at this line and put in the new one, if it stands there."""
        end = line + len(hunk.old)
        if not hunk.old or (self.limit is not None and end > self.limit):
            return False
        self.limit = line
        first = bisect_right(self.starts, line)
        if first and self.stops[first - 1] > line:
            first -= 1
        last = bisect_left(self.starts, end, first)
        floor = self.cuts[first - 1].end if first else 0
        stop = self.cuts[last].at if last < len(self.cuts) else len(self.base.data)
        if first == last:
            made = self._clear(hunk, line - self.shifts[first], floor, stop)
        else:
            made = self._joined(hunk, line, first, last)
        if made is None or made.at < floor or made.end > stop:
            return False
        if _is_last(hunk) and made.end != len(self.base.data):
            return False
        self.cuts[first:last] = [made]
        return True

    def _clear(self, hunk: Hunk, line: int, floor: int, stop: int) -> _Cut | None:
        """The cut of a hunk that touches no other one, at a line of the base."""
        old = joined(hunk.old, hunk.old_eof)
        at = self.base.find(old, line, floor, stop)
        if at < 0:
            return None
        new = joined(hunk.new, hunk.new_eof)
        return _Cut(at, at + len(old), line, len(hunk.old), new, len(hunk.new) - len(hunk.old))

    def _joined(self, hunk: Hunk, line: int, first: int, last: int) -> _Cut | None:
        """One cut for a hunk and the cuts that it touches."""
        base, cuts = self.base.data, self.cuts[first:last]
        lead = max(self.starts[first] - line, 0)  # lines of the hunk before these cuts, and behind
        tail = max(line + len(hunk.old) - self.stops[last - 1], 0)
        before = joined(hunk.old[:lead], False)
        after = joined(hunk.old[len(hunk.old) - tail :], hunk.old_eof)
        at, end = cuts[0].at - len(before), cuts[-1].end + len(after)
        if at < 0 or not base.startswith(before, at) or not base.startswith(after, cuts[-1].end):
            return None
        if lead and at and base[at - 1] != 0x0A:
            return None
        text = before + cuts[0].new
        for one, two in pairwise(cuts):
            text += base[one.end : two.at] + two.new
        text += after
        old = joined(hunk.old, hunk.old_eof)
        here = _at_line(text, old, max(line - self.starts[first], 0), 0, 0, len(text))
        there = here + len(old)
        if here < 0 or (_is_last(hunk) and there != len(text)):
            return None
        start = cuts[0].line - lead
        size = cuts[-1].line + cuts[-1].size + tail - start
        grow = sum(cut.grow for cut in cuts) + len(hunk.new) - len(hunk.old)
        new = text[:here] + joined(hunk.new, hunk.new_eof) + text[there:]
        return _Cut(at, end, start, size, new, grow)


def _is_last(hunk: Hunk) -> bool:
    """Must the file end with this hunk?"""
    return hunk.old_eof or hunk.new_eof


def joined(lines: list[bytes], eof: bool) -> bytes:
    """Lines as they stand in a file; `eof`: the last one has no newline."""
    if len(lines) > _MANY:  # `join` needs 80 bytes for each of them while it is at work
        sink = BytesIO()
        sink.seek(sum(map(len, lines)) + len(lines) - eof - 1)
        sink.write(b"\n")  # in one place from the start: to grow would leave holes in the memory
        sink.seek(0)
        for at in range(0, len(lines), _MANY):
            part = lines[at : at + _MANY]
            sink.write(joined(part, eof and at + _MANY >= len(lines)))
        return sink.getvalue()
    return b"\n".join(lines if eof or not lines else [*lines, b""])


def _at_line(data: bytes, text: bytes, line: int, start: int, floor: int, end: int) -> int:
    """Offset of a text that stands between `floor` and `end`, `line` lines after `start`; or -1."""
    at = data.find(text, floor, end)
    while at >= 0:
        here = data.count(b"\n", start, at)
        if here == line and (at == 0 or data[at - 1] == 0x0A):
            return at
        at = data.find(text, at + 1, end) if here <= line else -1
    return -1
