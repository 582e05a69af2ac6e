"""What a Hexagon compiler makes of the kernels: base against stack, function by function."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hexpatch import build as builder
from hexpatch.errors import HexpatchError
from hexpatch.repo import Repo
from hexpatch.sim.inspect import FunctionReport, inspect

Key = tuple[str, str]  # file, function


@dataclass(frozen=True)
class Compared:
    """One function at the base and with the stack; None where it does not exist."""

    file: str
    name: str
    base: FunctionReport | None
    stack: FunctionReport | None

    @property
    def changed(self) -> bool:
        """Whether the compiler made something else of it."""
        return _facts(self.base) != _facts(self.stack)

    @property
    def bad(self) -> bool:
        """Whether the newer side spills or promotes in a loop."""
        it = self.stack or self.base
        return it is not None and bool(
            it.error or it.vector_stack_in_loops or it.promotions_in_loops or it.divides_in_loops
        )


def run(
    repo: Repo,
    state: Path,
    trees: Sequence[str],
    *,
    arch: int,
    functions: str | None = None,
    jobs: int | None = None,
    say: builder.Say,
) -> list[Compared]:
    """Compile the kernels of the trees (base, and perhaps stack) for the real target."""
    try:
        wanted = re.compile(functions) if functions else None
    except re.error as error:
        raise HexpatchError(f"{functions}: not a valid regex ({error})") from None
    sides: list[dict[Key, FunctionReport]] = []
    for tree in dict.fromkeys(trees):
        home = builder.tree_dir(state.resolve(), "sim", tree) / "src"
        say(f"export {tree[:12]}")
        builder.export_tree(repo, tree, home)
        say(f"compile {tree[:12]} for v{arch}")
        found = inspect(home, arch=arch, functions=wanted, jobs=jobs)
        sides.append({(r.file, r.name): r for r in found})
    if len(trees) > 1 and len(sides) == 1:
        sides.append(sides[0])
    both = {key: None for side in reversed(sides) for key in side}
    none: Mapping[Key, FunctionReport] = {}
    stack = sides[1] if len(sides) > 1 else none
    return [Compared(*key, sides[0].get(key), stack.get(key)) for key in both]


def shown(found: Sequence[Compared], *, alone: bool, every: bool) -> list[Compared]:
    """What is worth a line: what changed, or (alone) what a kernel should not have in a loop."""
    if every:
        return list(found)
    return [c for c in found if (c.bad if alone else c.changed)]


def _facts(report: FunctionReport | None) -> tuple[object, ...] | None:
    if report is None:
        return None
    r = report
    return (
        r.packets,
        r.stack,
        r.vector_stack_in_loops,
        r.scalar_stack_in_loops,
        tuple(sorted(r.promotions_in_loops.items())),
        tuple(sorted(r.divides_in_loops.items())),
        _inner(r),
        r.error,
    )


def _inner(report: FunctionReport) -> tuple[int, ...]:
    """Packets of the innermost loops, in order."""
    return tuple(loop.packets for loop in report.loops if loop.inner)


def _largest(loops: Sequence[int], most: int = 5) -> str:
    """Packets of the largest inner loops, and how many more there are."""
    listed = sorted(loops, reverse=True)
    more = f" +{len(listed) - most}" if len(listed) > most else ""
    return " ".join(map(str, listed[:most])) + more


COLUMNS: Mapping[str, Callable[[FunctionReport], str]] = {
    "packets": lambda r: str(r.packets),
    "inner loops": lambda r: _largest(_inner(r)),
    "vector stack": lambda r: str(r.vector_stack_in_loops or ""),
    "scalar stack": lambda r: str(r.scalar_stack_in_loops or ""),
    "promotions": lambda r: str(sum(r.promotions_in_loops.values()) or ""),
    "divides": lambda r: str(sum(r.divides_in_loops.values()) or ""),
}


def failed(found: Sequence[Compared]) -> list[str]:
    """What is to be said of files that could not be compiled: nothing was seen of them."""
    sides = [(c.file, word, getattr(c, word)) for c in found for word in ("base", "stack")]
    return [f"{file}: {word}: {r.error}" for file, word, r in sides if r is not None and r.error]


def table(found: Sequence[Compared], *, alone: bool) -> list[list[str]]:
    """Header and a row per function; `a > b` where base and stack differ."""
    rows = [["file", "function", *COLUMNS]]
    for one in found:
        cells = []
        for take in COLUMNS.values():
            sides = [take(r) if r else "-" for r in (one.base, one.stack)][: 1 if alone else 2]
            same = len(set(sides)) == 1
            cells.append(sides[0] if same else " > ".join(s or "0" for s in sides))
        error = next((r.error for r in (one.stack, one.base) if r and r.error), "")
        rows.append([one.file, one.name or error, *([""] * len(COLUMNS) if error else cells)])
    return rows


def to_json(found: Sequence[Compared]) -> list[dict[str, Any]]:
    """For scripts."""
    return [
        {
            "file": c.file,
            "function": c.name,
            "base": c.base.as_dict() if c.base else None,
            "stack": c.stack.as_dict() if c.stack else None,
        }
        for c in found
    ]
