"""What the simulated DSP reports: counters of ops, and faults with the place in the kernel."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hexpatch import proc
from hexpatch.evidence import FaultRow

_WHERE = re.compile(r"(?:.*/)?([^/+]+)\+0x([0-9a-f]+)")


@dataclass(frozen=True)
class OpRun:
    """One op that the DSP carried out: its function, status and counters."""

    op: str
    status: int
    counters: Mapping[str, int]


@dataclass(frozen=True)
class Fault:
    """Faults of one kind at one place; `where` is `library+0xoffset`, or empty after a crash."""

    kind: str
    op: str
    where: str
    count: int


@dataclass
class Report:
    """One process's report; `whole` is False when it did not live to write its end."""

    ops: list[OpRun] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    total: dict[str, int] = field(default_factory=dict)
    whole: bool = False


def read(text: str) -> Report:
    """Take a report file apart. A line cut off by a crash ends it."""
    found = Report()
    early: list[Fault] = []
    for line in text.splitlines():
        try:
            data = json.loads(line)
        except ValueError:
            break
        if not isinstance(data, dict):
            break
        if "op" in data:
            numbers = {str(k): int(v) for k, v in data.get("n", {}).items()}
            found.ops.append(OpRun(str(data["op"]), int(data.get("status", 0)), numbers))
            for kind, count in data.get("faults", {}).items():
                early.append(Fault(str(kind), str(data["op"]), "", int(count)))
        elif "total" in data:
            found.whole = True
            found.total = {str(k): int(v) for k, v in data["total"].items()}
            for row in data.get("faults", []):
                place = str(row.get("where", ""))
                found.faults.append(
                    Fault(str(row["kind"]), str(row.get("op", "")), place, int(row["count"]))
                )
    if not found.whole:
        found.faults = early
    return found


def merged(faults: Iterable[Fault]) -> list[Fault]:
    """One entry per kind, op and place."""
    sums: dict[tuple[str, str, str], int] = {}
    for fault in faults:
        key = (fault.kind, fault.op, fault.where)
        sums[key] = sums.get(key, 0) + fault.count
    return [Fault(*key, count) for key, count in sorted(sums.items())]


# -- places ------------------------------------------------------------------------------------


def places(faults: Sequence[Fault], folders: Sequence[Path]) -> dict[str, tuple[str, str]]:
    """Function and `file:line` of each place, as far as a symbolizer is installed and knows it."""
    offsets: dict[str, list[str]] = {}
    for where in dict.fromkeys(f.where for f in faults):
        match = _WHERE.fullmatch(where)
        if match:
            offsets.setdefault(match[1], []).append(match[2])
    found: dict[str, tuple[str, str]] = {}
    for library, addresses in offsets.items():
        file = next((d / library for d in folders if (d / library).exists()), None)
        if file is None:
            continue
        for address, place in zip(addresses, _symbols(file, addresses), strict=False):
            found[f"{library}+0x{address}"] = place
    return found


def _symbols(library: Path, addresses: Sequence[str]) -> list[tuple[str, str]]:
    """The outermost source line of each address: of the kernel, not of an inlined intrinsic."""
    tool = next((t for t in ("llvm-symbolizer", *_versioned()) if shutil.which(t)), None)
    plain = [f"0x{a}" for a in addresses]
    if tool:
        argv = [tool, "--output-style=JSON", f"--obj={library}", *plain]
        done = proc.run(argv, timeout=120)
        with contextlib.suppress(ValueError, KeyError, TypeError):
            rows = json.loads(done.stdout)
            return [_frame(row["Symbol"]) for row in rows]
    if shutil.which("addr2line"):
        done = proc.run(["addr2line", "-f", "-e", str(library), *plain], timeout=120)
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        return [(name, _short(place)) for name, place in zip(lines[::2], lines[1::2], strict=False)]
    return []


def _versioned() -> list[str]:
    return [f"llvm-symbolizer-{n}" for n in range(30, 13, -1)]


def _frame(frames: Sequence[Mapping[str, object]]) -> tuple[str, str]:
    """Of inlined frames the innermost that is in a kernel file, and the function it ended in."""
    if not frames:
        return "", ""
    outer = str(frames[-1].get("FunctionName", ""))
    best = next(
        (f for f in frames if "/htp/" in str(f.get("FileName", ""))),
        frames[-1],
    )
    name, line = str(best.get("FileName", "")), best.get("Line", 0)
    return outer, f"{name.rsplit('/', 1)[-1]}:{line}" if name else ""


def _short(place: str) -> str:
    return "" if place.startswith("??") else place.rsplit("/", 1)[-1].split(" ", maxsplit=1)[0]


# -- base against stack --------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """One tree's faults, and where its DSP library is."""

    faults: Sequence[Fault]
    folders: Sequence[Path]


def rows(base: Side | None, stack: Side | None) -> list[FaultRow]:
    """Faults of both sides side by side. The same fault is one of a kind in an op's function:
    lines move with every edit.
    """
    counts: dict[tuple[str, str, str], list[int]] = {}
    lines: dict[tuple[str, str, str], dict[str, None]] = {}
    for index, side in enumerate((base, stack)):
        if side is None:
            continue
        known = places(side.faults, side.folders)
        for fault in merged(side.faults):
            function, line = known.get(fault.where, ("", ""))
            key = (fault.kind, fault.op, function)
            counts.setdefault(key, [0, 0])[index] += fault.count
            if line or fault.where:
                lines.setdefault(key, {})[line or fault.where] = None
    return [
        FaultRow(
            kind=key[0],
            op=key[1],
            function=key[2],
            where=tuple(list(lines.get(key, {}))[:8]),
            base=numbers[0] if base is not None else None,
            stack=numbers[1] if stack is not None else None,
        )
        for key, numbers in sorted(counts.items())
    ]


def new_faults(found: Iterable[FaultRow]) -> list[str]:
    """What is to be said of faults that only the stack has."""
    return [
        f"the stack has faults that the base has not: {row.kind} in {row.op}"
        + (f", {row.function}" if row.function else "")
        + (f" ({', '.join(row.where[:3])})" if row.where else "")
        + f", {row.stack} times"
        for row in found
        if row.base == 0 and row.stack
    ]
