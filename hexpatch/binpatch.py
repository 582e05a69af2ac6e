"""Binary hunks of git diffs: base85 lines, zlib, and git's delta format."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Sequence
from io import BytesIO
from typing import NamedTuple

_PIECE = 1 << 16
_HEAD = re.compile(rb"(literal|delta) (\d{1,12})\Z")


class BadBinary(Exception):
    """Binary data is damaged; `at` is the index of the line, or -1."""

    def __init__(self, text: str, at: int = -1) -> None:
        super().__init__(text)
        self.text = text
        self.at = at


class BinaryHunk(NamedTuple):
    """One direction of a binary change: the content itself, or a git delta."""

    method: str
    size: int
    data: bytes


def parse_binary(
    lines: Sequence[bytes], at: int
) -> tuple[tuple[BinaryHunk, BinaryHunk | None], int]:
    """Read the hunks after a `GIT binary patch` line; give them and the index after them."""
    forward, at = _hunk(lines, at)
    if at < len(lines) and _HEAD.match(lines[at]):
        reverse, at = _hunk(lines, at)
        return (forward, reverse), at
    return (forward, None), at


def _hunk(lines: Sequence[bytes], at: int) -> tuple[BinaryHunk, int]:
    head = _HEAD.match(lines[at]) if at < len(lines) else None
    if head is None:
        raise BadBinary("a `literal` or `delta` line is missing", at)
    data = _Inflated(int(head[2]), at)
    packed = bytearray()
    at += 1
    while at < len(lines) and (line := lines[at]):
        packed += _line(line, at)
        if len(packed) > _PIECE:
            data.add(packed)
            packed.clear()
        at += 1
    if at == len(lines):
        raise BadBinary("the binary data ends without its blank line", at - 1)
    data.add(packed)
    return BinaryHunk(head[1].decode(), data.size, data.whole()), at + 1


class _Inflated:
    """What a zlib stream gives: `size` bytes, as line `at` says."""

    def __init__(self, size: int, at: int) -> None:
        self.size = size
        self._at = at
        self._engine = zlib.decompressobj()
        self._sink = BytesIO()

    def add(self, packed: bytearray) -> None:
        left = self.size + 1 - self._sink.tell()
        if left <= 0 or self._engine.eof:
            return
        try:
            self._sink.write(self._engine.decompress(packed, left))
        except zlib.error:
            raise BadBinary("the binary data is damaged (zlib)", self._at) from None

    def whole(self) -> bytes:
        if self._sink.tell() != self.size or not self._engine.eof:
            raise BadBinary(f"the binary data does not have the stated {self.size} bytes", self._at)
        return self._sink.getvalue()


def _line(line: bytes, at: int) -> bytes:
    letter = line[0]
    if 0x41 <= letter <= 0x5A:
        size = letter - 0x40
    elif 0x61 <= letter <= 0x7A:
        size = letter - 0x61 + 27
    else:
        raise BadBinary("a line of the binary data has no length", at)
    try:
        data = base64.b85decode(line[1:])
    except ValueError:
        raise BadBinary("a line of the binary data is not base85", at) from None
    if len(line) - 1 != (size + 3) // 4 * 5:
        raise BadBinary("a line of the binary data is not as long as it says", at)
    return data[:size]


def apply_delta(before: bytes, delta: bytes) -> bytes:
    """What a git delta makes of `before`."""
    try:
        size, at = _number(delta, 0)
        if size != len(before):
            raise BadBinary(f"the delta is for a file of {size} bytes, not {len(before)}")
        size, at = _number(delta, at)
        out = bytearray()
        while at < len(delta):
            at = _step(before, delta, at, out)
            if len(out) > size:
                break
    except IndexError:
        raise BadBinary("the delta is cut off") from None
    if len(out) != size:
        raise BadBinary(f"the delta does not make the stated {size} bytes")
    return bytes(out)


def _number(delta: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = delta[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def _step(before: bytes, delta: bytes, at: int, out: bytearray) -> int:
    code = delta[at]
    at += 1
    if not code:
        raise BadBinary("the delta has an unknown step")
    if not code & 0x80:
        if at + code > len(delta):
            raise BadBinary("the delta is cut off")
        out += delta[at : at + code]
        return at + code
    start = size = 0
    for bit in range(7):
        if code >> bit & 1:
            if bit < 4:
                start |= delta[at] << 8 * bit
            else:
                size |= delta[at] << 8 * (bit - 4)
            at += 1
    size = size or 0x10000
    if start + size > len(before):
        raise BadBinary("the delta copies from behind the end of the file")
    out += before[start : start + size]
    return at
