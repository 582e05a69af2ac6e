"""Paths in git diffs: C-style quoting, and which paths are refused."""

from __future__ import annotations

import re

from hexpatch.errors import HexpatchError

_PLAIN = re.compile(rb"(?:[A-Za-z0-9_][A-Za-z0-9_.+ -]*/)*[A-Za-z0-9_][A-Za-z0-9_.+ -]*")
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")  # HFS+ skips them
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPES = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))
QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_UNSAFE = re.compile(rb'[\x00-\x1f"\\\x7f-\xff]')


def check_path(path: bytes, name: str) -> None:
    """Refuse a path that leaves the tree, reaches into .git, or can't be shown on one line."""
    if len(path) < 256 and _PLAIN.fullmatch(path):
        return
    why = _bad_path(path)
    if why:
        raise HexpatchError(f"{name}: unsafe path {shown(path)}: {why}")


def _bad_path(path: bytes) -> str | None:
    if not path:
        return "it is empty"
    if path.startswith((b"/", b"\\")) or re.match(rb"[A-Za-z]:", path):
        return "it is absolute"
    if re.search(rb"[\x00-\x1f\x7f]", path):
        return "it has control characters"
    if len(path) > 4000:
        return "it is longer than a disk can take"
    for part in path.split(b"/"):
        if not part:
            return "it has an empty component"
        if len(part) > 255:
            return "it has a name longer than 255 bytes"
        # Windows splits at \ too, and opens .git for .git::$INDEX_ALLOCATION
        for piece in part.split(b"\\"):
            if piece in (b".", b".."):
                return f"it has the component {piece.decode()}"
            word = _IGNORED.sub("", piece.decode("utf-8", "replace")).lower()
            if word.split(":")[0].rstrip(" .") in (".git", "git~1"):
                return "it reaches into .git"
    return None


def shown(path: bytes) -> str:
    """A path for people, on one line."""
    text = path.decode("utf-8", "backslashreplace")
    if text and text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text) or '""'


def unquote(inner: bytes) -> bytes:
    """The bytes that stand for the text between a quoted path's quotes."""

    def one(match: re.Match[bytes]) -> bytes:
        code = match[1]
        if len(code) == 3:
            return bytes((int(code, 8),))
        return bytes((_ESCAPES.get(code[0], code[0]),))

    return _ESCAPE.sub(one, inner)


def quote(path: bytes) -> bytes:
    """The path as git writes it: quoted only where it must be. Inverse of `bare`."""
    if not _UNSAFE.search(path):
        return path
    names = {v: bytes((0x5C, k)) for k, v in _ESCAPES.items()}

    def one(match: re.Match[bytes]) -> bytes:
        return names.get(match[0][0]) or b"\\%03o" % match[0][0]

    return b'"' + _UNSAFE.sub(one, path) + b'"'


def bare(text: bytes) -> bytes:
    """A path that is quoted or not."""
    match = QUOTED.fullmatch(text)
    return unquote(match[1]) if match else text


def halves(rest: bytes) -> tuple[bytes, bytes] | None:
    """The two paths of a `diff --git` line: quoted, or both the same."""
    first, second = b"", b""
    match = QUOTED.match(rest)
    if match is not None:
        first, second = unquote(match[1]), bare(rest[match.end() + 1 :])
    elif rest.endswith(b'"') and b' "' in rest:
        first, _, second = rest.partition(b' "')
        second = bare(b'"' + second)
    else:
        half = len(rest) // 2
        first, second = rest[:half], rest[half + 1 :]
        if first[2:] != second[2:]:
            return None
    if not first.startswith(b"a/") or not second.startswith(b"b/"):
        return None
    return first[2:], second[2:]
