"""Everything the tool prints. stdout is the answer, stderr the story."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import click

from hexpatch.errors import HexpatchError

_COLOURS = {
    "ok": "green",
    "offset": "green",
    "three-way": "green",
    "resolved": "green",
    "revived": "green",
    "unchanged": "green",
    "landed": "cyan",
    "partly": "cyan",
    "new": "green",
    "context moved": "yellow",
    "changed": "yellow",
    "hold": "yellow",
    "skipped": "yellow",
    "dropped": "yellow",
    "conflict": "red",
    "twice": "red",
    "blocked": "red",
}

quiet = False


def out(text: str = "") -> None:
    """A line of the answer."""
    click.echo(_plain(text, sys.stdout))


def say(text: str) -> None:
    """A line of the story."""
    if not quiet:
        click.echo(_plain(text, sys.stderr), err=True)


def _plain(text: str, stream: Any) -> str:
    """Text that the terminal can take: nothing outside its encoding, no control characters."""
    clean = (
        "".join(
            c if c in "\n\t" or c == "\x1b" or unicodedata.category(c) != "Cc" else "?"
            for c in text
        )
        if not text.isprintable()
        else text
    )
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if encoding.lower().replace("-", "") in ("ascii", "ansix3.41968", "usascii"):
        encoding = "utf-8"  # LC_ALL=C: names are UTF-8 all the same
    return clean.encode(encoding, "backslashreplace").decode(encoding)


def fail(error: HexpatchError) -> None:
    """An error and the way out of it."""
    click.echo(_plain(f"error: {error.message}", sys.stderr), err=True)
    if error.hint:
        click.echo(_plain(f"hint: {error.hint}", sys.stderr), err=True)


def as_json(value: Any) -> None:
    """The answer for a script."""
    click.echo(json.dumps(value, indent=1))


def status(word: str, width: int = 0) -> str:
    """A status word in its colour (click drops colours when stdout is no terminal)."""
    return click.style(word.ljust(width), fg=_COLOURS.get(word))


def table(rows: Sequence[Sequence[str]], *, head: Sequence[str] = ()) -> None:
    """Columns, left-aligned, the last one as it is."""
    every = [list(head), *map(list, rows)] if head else [list(r) for r in rows]
    if not every:
        return
    widths = [max(len(click.unstyle(row[i])) for row in every) for i in range(len(every[0]))]
    for row in every:
        cells = [
            cell + " " * (width - len(click.unstyle(cell)))
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


def file(path: str, data: str) -> None:
    """Text as it is, without a newline added."""
    click.echo(_plain(data, sys.stdout), nl=False)
