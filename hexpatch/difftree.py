"""What `git diff-tree` prints, as values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

from hexpatch.errors import HexpatchError


class RawChange(NamedTuple):
    """One path that differs between two trees; modes are 0 and ids NULL where it is absent."""

    status: str
    old_mode: int
    new_mode: int
    old_id: str
    new_id: str
    path: bytes
    new_path: bytes


def raw(fields: Sequence[bytes]) -> list[RawChange]:
    """The changes in the NUL-separated fields of `--raw -z`."""
    found = []
    at = 0
    while at + 1 < len(fields):
        head = fields[at]
        if not head.startswith(b":"):
            at += 1
            continue
        old_mode, new_mode, old_id, new_id, status = head[1:].split(b" ")
        path = new_path = fields[at + 1]
        at += 2
        if status[:1] in b"RC":
            new_path = fields[at]
            at += 1
        found.append(
            RawChange(
                status[:1].decode(),
                int(old_mode, 8),
                int(new_mode, 8),
                old_id.decode(),
                new_id.decode(),
                path,
                new_path,
            )
        )
    return found


def raw_of_commits(out: bytes) -> list[list[RawChange]]:
    """The changes of each commit of `--stdin --always --raw -z`."""
    found: list[list[RawChange]] = []
    block: list[bytes] = []
    for field in out.split(b"\0"):
        if len(field) == 40 and len(block) % 2 == 0 and not field.strip(b"0123456789abcdef"):
            if found:
                found[-1] = raw(block)
            found.append([])
            block = []
        else:
            block.append(field)
    if found:
        found[-1] = raw(block)
    return found


def texts(out: IO[bytes], commits: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The patch text of each commit of `--stdin --always -p`, read as far as it is asked for."""
    # no diff line is 40 hex digits alone: text has a prefix, base85 another length
    marks = [b"\n" + oid.encode() + b"\n" for oid in commits[1:]]
    held = bytearray()
    for oid, mark in zip(commits, [*marks, b""], strict=True):
        seen = 0
        while not mark or (end := held.find(mark, seen)) < 0:
            seen = max(len(held) - len(mark), 0)
            if not (chunk := out.read(1 << 20)):
                end = len(held)
                break
            held += chunk
        if not held.startswith(oid.encode() + b"\n"):
            raise HexpatchError(f"git diff-tree says nothing about {oid}")
        text = bytes(memoryview(held)[41 : end + 1])
        del held[: end + 1]
        yield oid, text
