"""A long-lived `git cat-file`: data of objects, and which are there, for a whole run."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from hexpatch import proc


class Reader:
    """Questions go to git together with a `flush`: it reads them all before it writes, so neither
    side can wait for the other.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        try:
            self._child = subprocess.Popen(
                [*argv, "cat-file", "--batch-command", "--buffer"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=env,
            )
        except FileNotFoundError as error:
            raise proc.missing(error, argv) from None

    @property
    def alive(self) -> bool:
        """Can it be asked?"""
        return self._child.poll() is None

    def close(self) -> None:
        """End the process."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.close()
        self._child.stdout.close()
        self._child.wait()

    def read(self, name: str) -> tuple[str, str, bytes] | None:
        """(id, kind, data) of an object; None when it is not there."""
        self._ask("contents", [name])
        head = self._head()
        if head is None:
            return None
        assert self._child.stdout is not None
        data = self._child.stdout.read(head[2])
        self._child.stdout.read(1)
        return head[0], head[1], data

    def there(self, names: Iterable[str]) -> set[str]:
        """The ids of those objects that are there."""
        asked = list(names)
        self._ask("info", asked)
        return {head[0] for head in [self._head() for _ in asked] if head is not None}

    def _ask(self, command: str, names: Iterable[str]) -> None:
        assert self._child.stdin is not None
        lines = [f"{command} {name}\n" for name in names]
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.write("".join(lines).encode("utf-8", "surrogateescape") + b"flush\n")
            self._child.stdin.flush()

    def _head(self) -> tuple[str, str, int] | None:
        """Id, kind and size from the first line of an answer."""
        assert self._child.stdout is not None
        fields = self._child.stdout.readline().rstrip(b"\n").rsplit(b" ", 2)
        # "missing", "ambiguous"; an empty answer: git died on a promised object it can't fetch
        if len(fields) != 3 or not fields[2].isdigit():
            return None
        return fields[0].decode(), fields[1].decode(), int(fields[2])
