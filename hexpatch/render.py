"""Everything the tool prints. stdout is the answer, stderr the story."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from hexpatch.errors import HexpatchError

_RED, _GREEN, _YELLOW, _CYAN = (f"\x1b[{n}m" for n in (31, 32, 33, 36))
_COLOURS = {
    "ok": _GREEN,
    "offset": _GREEN,
    "three-way": _GREEN,
    "resolved": _GREEN,
    "revived": _GREEN,
    "unchanged": _GREEN,
    "landed": _CYAN,
    "partly": _CYAN,
    "new": _GREEN,
    "context moved": _YELLOW,
    "changed": _YELLOW,
    "hold": _YELLOW,
    "skipped": _YELLOW,
    "dropped": _YELLOW,
    "conflict": _RED,
    "twice": _RED,
    "blocked": _RED,
}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]")
_STYLE = re.compile(r"\x1b\[[0-9]*m")
_ASCII = ("ascii", "ansix3.41968", "usascii")

quiet = False


def out(text: str = "") -> None:
    """A line of the answer."""
    _write(f"{text}\n", sys.stdout)


def say(text: str) -> None:
    """A line of the story."""
    if not quiet:
        _write(f"{text}\n", sys.stderr)


def warn(text: str) -> None:
    """What must be heard even by the quiet."""
    _write(f"{text}\n", sys.stderr)


def _write(text: str, stream: TextIO | None) -> None:
    """Text that the terminal can take, at once; colours are for terminals only."""
    if stream is None:
        return
    plain = _plain(text)
    if not stream.isatty():
        plain = _STYLE.sub("", plain)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if encoding.lower().replace("-", "") in _ASCII and hasattr(stream, "buffer"):
        # LC_ALL=C: names are UTF-8 all the same
        stream.flush()
        stream.buffer.write(plain.encode("utf-8", "backslashreplace"))
    else:
        stream.write(plain.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _plain(text: str) -> str:
    """No control characters but for our own colours."""
    return text if text.isprintable() else _CONTROL.sub("?", text)


def fail(error: HexpatchError) -> None:
    """An error and the way out of it."""
    _write(f"error: {error.message}\n", sys.stderr)
    if error.hint:
        _write(f"hint: {error.hint}\n", sys.stderr)


def as_json(value: Any) -> None:
    """The answer for a script."""
    import json

    out(json.dumps(value, indent=1))


def status(word: str, width: int = 0) -> str:
    """A status word in its colour."""
    colour = _COLOURS.get(word)
    return f"{colour}{word.ljust(width)}\x1b[0m" if colour else word.ljust(width)


def table(rows: Sequence[Sequence[str]], *, head: Sequence[str] = ()) -> None:
    """Columns, left-aligned, the last one as it is."""
    every = [list(head), *map(list, rows)] if head else [list(r) for r in rows]
    if not every:
        return
    widths = [max(len(_STYLE.sub("", row[i])) for row in every) for i in range(len(every[0]))]
    for row in every:
        cells = [
            cell + " " * (width - len(_STYLE.sub("", cell)))
            for cell, width in zip(row, widths, strict=True)
        ]
        out("  ".join([*cells[:-1], row[-1]]).rstrip())


def fates(rows: Iterable[tuple[str, str, Sequence[str]]]) -> None:
    """One line per patch: name, what became of it, and details below."""
    listed = list(rows)
    width = max((len(name) for name, _, _ in listed), default=0)
    for name, word, detail in listed:
        first = f"  {detail[0]}" if detail else ""
        out(f"  {name.ljust(width)}  {status(word, 13)}{first}".rstrip())
        for line in detail[1:]:
            out(f"  {' ' * width}  {' ' * 13}  {line}")


def document(text: str) -> None:
    """An answer of several lines as it is, without a newline added."""
    _write(text, sys.stdout)
