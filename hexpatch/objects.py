"""Git object bytes: ids, trees, commits and packs. Pure functions, no repository.

Formats: gitformat-pack(5) and the "tree", "commit" layouts of git's own object database.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

TREE = 0o040000
FILE = 0o100644
EXECUTABLE = 0o100755
LINK = 0o120000
GITLINK = 0o160000
EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"

_PACK_TYPE = {"commit": 1, "tree": 2, "blob": 3}


def object_id(kind: str, *pieces: bytes | memoryview) -> str:
    """The SHA-1 name git gives to an object, whose data may come in pieces."""
    head = b"%s %d\0" % (kind.encode(), sum(map(len, pieces)))
    digest = hashlib.sha1(head, usedforsecurity=False)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def parse_tree(data: bytes) -> dict[bytes, tuple[int, str]]:
    """Entries of a tree object: name -> (mode, id)."""
    entries: dict[bytes, tuple[int, str]] = {}
    at, end = 0, len(data)
    while at < end:
        blank = data.index(b" ", at)
        nul = data.index(b"\0", blank)
        entries[data[blank + 1 : nul]] = (
            int(data[at:blank], 8),
            data[nul + 1 : nul + 21].hex(),
        )
        at = nul + 21
    return entries


def format_tree(entries: dict[bytes, tuple[int, str]]) -> bytes:
    """Tree object bytes, in git's order (a directory sorts as if it ended in a slash)."""
    ordered = sorted(entries.items(), key=lambda e: e[0] + b"/" if e[1][0] == TREE else e[0])
    return b"".join(
        b"%o %s\0%s" % (mode, name, bytes.fromhex(oid)) for name, (mode, oid) in ordered
    )


class Commit(NamedTuple):
    """A commit's parts. Dates are git's raw form "<unix seconds> <+hhmm>"."""

    tree: str
    parents: tuple[str, ...]
    author_name: str
    author_email: str
    author_date: str
    message: str
    committer_name: str = ""
    committer_email: str = ""
    committer_date: str = ""

    @property
    def author(self) -> tuple[str, str, str]:
        """Name, mail and date: survives amend, reword and rebase."""
        return self.author_name, self.author_email, self.author_date


def ident(name: str, email: str) -> bytes:
    """`Name <mail>` as git writes it: angle brackets and line ends dropped, blanks trimmed."""
    drop = str.maketrans("", "", "<>\n\0")
    return f"{name.translate(drop).strip()} <{email.translate(drop).strip()}>".encode()


def format_commit(commit: Commit) -> bytes:
    """Commit object bytes. The committer defaults to the author: same files, same ids."""
    author = ident(commit.author_name, commit.author_email)
    committer = author
    if commit.committer_email:
        committer = ident(commit.committer_name, commit.committer_email)
    lines = [b"tree " + commit.tree.encode()]
    lines += [b"parent " + p.encode() for p in commit.parents]
    lines.append(b"author " + author + b" " + commit.author_date.encode())
    date = commit.committer_date or commit.author_date
    lines.append(b"committer " + committer + b" " + date.encode())
    return b"\n".join(lines) + b"\n\n" + commit.message.encode()


def parse_commit(data: bytes) -> Commit:
    """Parts of a commit object. Text is UTF-8, or what its encoding header says, or Latin-1."""
    head, _, message = data.partition(b"\n\n")
    tree, parents, encoding = "", [], "utf-8"
    author = committer = ("", "", "0 +0000")
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"encoding":
            encoding = value.decode("ascii", "replace")
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"tree":
            tree = value.decode()
        elif key == b"parent":
            parents.append(value.decode())
        elif key == b"author":
            author = _person(value, encoding)
        elif key == b"committer":
            committer = _person(value, encoding)
    return Commit(tree, tuple(parents), *author, _text(message, encoding), *committer)


def _person(value: bytes, encoding: str) -> tuple[str, str, str]:
    name, _, rest = value.partition(b"<")
    email, _, date = rest.partition(b"> ")
    return _text(name.rstrip(b" "), encoding), _text(email, encoding), date.decode("ascii")


def _text(data: bytes, encoding: str) -> str:
    for name in ("utf-8", encoding, "latin-1"):
        try:
            return data.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    raise AssertionError("latin-1 decodes every byte")


def pack(objects: Iterable[tuple[str, bytes]], count: int, level: int = 1) -> Iterator[bytes]:
    """A version 2 pack of `count` whole objects (kind, data), as a stream of chunks."""
    digest = hashlib.sha1(usedforsecurity=False)

    def out(chunk: bytes) -> bytes:
        digest.update(chunk)
        return chunk

    yield out(b"PACK" + (2).to_bytes(4, "big") + count.to_bytes(4, "big"))
    for kind, data in objects:
        yield out(_pack_header(_PACK_TYPE[kind], len(data)))
        yield out(zlib.compress(data, level))
    yield digest.digest()


def _pack_header(kind: int, size: int) -> bytes:
    byte = kind << 4 | size & 0x0F
    size >>= 4
    head = bytearray()
    while size:
        head.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    head.append(byte)
    return bytes(head)
