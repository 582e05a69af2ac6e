"""The series: what series.yaml says, checked. Order lives here, hunks live in patches/."""

from __future__ import annotations

import os
from pathlib import Path

from hexpatch import yamltree
from hexpatch.errors import HexpatchError, InvalidSeries, Problem
from hexpatch.seriescheck import FILE, PATCH_KEYS, Check
from hexpatch.seriesmodel import DEFAULT_URL, Base, Group, Patch, Series, Target, Upstream
from hexpatch.workspace import no_link

__all__ = [
    "DEFAULT_URL",
    "FILE",
    "PATCH_KEYS",
    "Base",
    "Group",
    "Patch",
    "Series",
    "Target",
    "Upstream",
    "load",
    "orphans",
    "parse",
]


def load(root: Path) -> Series:
    """The series in this directory, or InvalidSeries with all that is wrong with it."""
    no_link(root / FILE)
    try:
        data = (root / FILE).read_bytes()
    except FileNotFoundError:
        raise HexpatchError(f"no {FILE} in {root}", "start a series with `hexpatch init`") from None
    except OSError as error:
        raise HexpatchError(f"cannot read {root / FILE}: {error.strerror}") from error
    return parse(data, root)


def parse(data: bytes, root: Path, *, disk: bool = True) -> Series:
    """A series from bytes; `disk=False` doesn't ask whether the files it names exist."""
    document, problems = yamltree.read(data, FILE)
    series = Check(root, problems, disk).series(document.root) if document else None
    if problems or series is None:
        raise InvalidSeries(_capped(problems))
    return series


def orphans(series: Series) -> tuple[str, ...]:
    """Names of .patch files in patches/ that no entry lists."""
    listed = {patch.file for patch in series.patches}
    try:
        names = os.listdir(series.root / "patches")  # noqa: PTH208 - Path objects are slow here
    except OSError:
        return ()
    return tuple(sorted(n for n in names if n.endswith(".patch") and n not in listed))


def _capped(problems: list[Problem]) -> tuple[Problem, ...]:
    """In file order, at most yamltree.MAX_SHOWN lines."""
    ordered = sorted(problems, key=lambda problem: (problem.line, problem.column))
    if len(ordered) <= yamltree.MAX_SHOWN:
        return tuple(ordered)
    more = Problem(FILE, 0, 0, f"... and {len(ordered) - yamltree.MAX_SHOWN + 1} more")
    return (*ordered[: yamltree.MAX_SHOWN - 1], more)
