"""What can go wrong for a user: exceptions carry data, `edge` makes text of it."""

from __future__ import annotations

from typing import NamedTuple

# a way out where objects are missing; only `init` has the option
NAME_A_CLONE = (
    "name a clone of llama.cpp: --repo PATH of `hexpatch init`, later `repo: PATH` below "
    "`upstream:`"
)


class HexpatchError(Exception):
    """Something failed. `message` says what, to which patch and where; `hint` what to type next."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(HexpatchError):
    """The command line asks for something that makes no sense."""

    exit_code = 2


class MissingObject(HexpatchError):
    """An object is not in the store, and could not be fetched either."""


class Problem(NamedTuple):
    """One finding in a file: where (1-based; 0 = unknown) and what."""

    path: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        place = self.path
        if self.line:
            place += f":{self.line}"
            if self.column:
                place += f":{self.column}"
        return f"{place}: {self.text}"


class InvalidSeries(HexpatchError):
    """The series' own files are wrong. All problems at once, in file order."""

    def __init__(self, problems: tuple[Problem, ...], hint: str | None = None) -> None:
        super().__init__("\n".join(str(p) for p in problems), hint)
        self.problems = problems
