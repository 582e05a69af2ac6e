"""Counts what an op does on a simulated device, base against stack, and estimates its time.

A case runs alone in a process, with the counting flavour of the kernels. Shapes that upstream's
list lacks are run by a program of our own (harness/opbench.cpp).
"""

from __future__ import annotations

import functools
import json
import math
import re
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hexpatch import build as builder
from hexpatch import estimate, proc, simbuild, simrun, tbo
from hexpatch.errors import HexpatchError, UsageError
from hexpatch.repo import Repo
from hexpatch.sim.devices import Device
from hexpatch.simbuild import BENCH, SimBuilt
from hexpatch.simrun import FIRST_SEED, SimProgram
from hexpatch.tbo import CaseResult
from hexpatch.tborun import execute
from hexpatch.validate import expand

Say = builder.Say
MOST = 24  # cases of one call: each is a table
LIMITS = {"MUL_MAT": 5e-4, "FLASH_ATTN_EXT": 5e-4, "CPY": 1e-6}  # upstream's NMSE of own shapes
LIMIT = 1e-7
HEADER = Path(__file__).parent / "sim" / "sdk" / "incs" / "hexsim.h"


@dataclass(frozen=True)
class Measured:
    """One case on one tree: its status, counters and errors (None where not known)."""

    status: str
    counters: Mapping[str, int] = field(default_factory=dict)
    nmse: float | None = None
    exact: float | None = None
    error: str = ""


@dataclass(frozen=True)
class Row:
    """One case: measured at the base, and with the stack unless only the base was asked for."""

    case: str
    base: Measured
    stack: Measured | None


@dataclass(frozen=True)
class Wish:
    """What to measure: cases of upstream's list by op and params, or own shapes."""

    ops: tuple[str, ...] = ()
    params: str | None = None
    shapes: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    base_only: bool = False
    jobs: int | None = None
    timeout: float | None = None

    @property
    def limit(self) -> float:
        """Seconds that a case may take."""
        return self.timeout or 900.0


def bench(
    repo: Repo,
    state: Path,
    base_tree: str,
    stack_tree: str,
    device: Device,
    wish: Wish,
    *,
    say: Say,
) -> list[Row]:
    """Build both trees' counting flavour and measure."""
    if bool(wish.ops) == bool(wish.shapes):
        raise UsageError(
            "bench needs -o OP or --shape", "as in `-o MUL_MAT -p type_a=q4_0,.*n=512`"
        )
    trees = [base_tree] if wish.base_only else [base_tree, stack_tree]
    sides = [
        simbuild.build(
            repo,
            state,
            tree,
            arch=device.arch,
            checked=True,
            bench=bool(wish.shapes),
            jobs=wish.jobs,
            say=say,
        )
        for tree in trees
    ]
    room = state.resolve() / "scratch" / f"bench-{device.name}-{time.time_ns():x}"
    programs = [
        simrun.program(b, device, room / str(n), counting=True, variables=dict(wish.env))
        for n, b in enumerate(sides)
    ]
    names = shapes(wish) if wish.shapes else _cases(programs, wish)
    with proc.pool(wish.jobs or builder.cores()) as pool:
        tasks = [
            [
                pool.submit(_own if wish.shapes else _listed, program, built, name, wish)
                for program, built in zip(programs, sides, strict=True)
            ]
            for name in names
        ]
        rows = []
        for name, futures in zip(names, tasks, strict=True):
            say(f"measure {name}")
            found = [future.result() for future in futures]
            rows.append(Row(name, found[0], found[1] if len(found) > 1 else None))
    shutil.rmtree(room, ignore_errors=True)
    return rows


def shapes(wish: Wish) -> list[str]:
    """Own shapes as complete cases: `m=..,n=..` alone is a matrix product."""
    return [text if "(" in text else f"MUL_MAT({text})" for text in wish.shapes]


def _cases(programs: Sequence[SimProgram], wish: Wish) -> list[str]:
    """Supported cases of all trees that are asked for, in upstream's order."""
    lists = [simrun.list_cases(program, wish.params) for program in programs]
    known = {name: names for listing in lists for name, names in listing.known().items()}
    units, wrong = expand(wish.ops, known)
    if wrong:
        raise HexpatchError(wrong[0])
    whole = {u.op for u in units if not u.cases}
    single = {n for u in units for n in u.cases}
    found: dict[str, None] = {}
    for listing in lists:
        for names in listing.ops.values():
            for name in names:
                chosen = tbo.op_of(name) in whole or name in single
                if chosen and name in listing.supported:
                    found[name] = None
    given = f" with -p {wish.params}" if wish.params is not None else ""
    if not found:
        raise HexpatchError(f"no supported case matches -o {','.join(wish.ops)}{given}")
    if len(found) > MOST:
        raise HexpatchError(
            f"{len(found)} cases match -o {','.join(wish.ops)}{given}; at most {MOST} are shown",
            "narrow it with -p, or name a shape of your own with --shape",
        )
    return list(found)


def _listed(program: SimProgram, built: SimBuilt, name: str, wish: Wish) -> Measured:
    """A case of upstream's list."""
    alone = program.with_seed(FIRST_SEED)
    out = execute(alone, name, wish.params, jobs=1, timeout=wish.limit)
    if out.died or out.problem:
        return Measured(out.died or "ERROR", error=out.reason or out.problem)
    case = next((c for b in out.blocks for c in b.cases), CaseResult("", "", "UNSUPPORTED"))
    errors = alone.heard.errors
    exact = alone.heard.exact.get(name, -1.0)
    return Measured(
        case.status,
        counters(alone),
        simrun.finite(errors.get(name)),
        exact if exact >= 0 and math.isfinite(exact) else None,
        case.error,
    )


def _own(program: SimProgram, built: SimBuilt, name: str, wish: Wish) -> Measured:
    """A shape of the user's own."""
    alone = program.with_seed(FIRST_SEED)
    done = alone.other(built.bin / BENCH, simrun.DEVICE, str(FIRST_SEED), name, timeout=wish.limit)
    if done.timed_out:
        return Measured("TIMEOUT", error="time is up")
    if done.status:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        text = told[-1] if told else f"exit {done.status}"
        if done.status == 2:
            raise UsageError(text)
        return Measured("CRASH", error=text)
    try:
        data = json.loads(done.stdout)
        if not data["supported"]:
            return Measured("UNSUPPORTED")
        nmse, exact = float(data["nmse"]), float(data["exact"])
    except (ValueError, KeyError, TypeError):
        return Measured("ERROR", error="it ended without a result")
    limit = LIMITS.get(tbo.op_of(name), LIMIT)
    known = (simrun.finite(nmse), exact if exact >= 0 and math.isfinite(exact) else None)
    if not nmse <= limit:  # a NaN is no less wrong
        return Measured("FAIL", counters(alone), *known, f"NMSE = {nmse:.3g} > {limit:g}")
    return Measured("OK", counters(alone), *known)


def unmeasured(rows: Iterable[Row]) -> list[str]:
    """What is to be said of cases that did not come to an end."""
    return [
        f"{row.case}: {side}: {found.status}"
        for row in rows
        for side, found in (("base", row.base), ("stack", row.stack))
        if found is not None and found.status in ("CRASH", "TIMEOUT", "ERROR")
    ]


def counters(program: SimProgram) -> dict[str, int]:
    """The sums over the ops that a process ran."""
    found: dict[str, int] = {}
    for op in program.heard.ops:
        for name, count in op.counters.items():
            found[name] = found.get(name, 0) + count
    order = {name: at for at, name in enumerate(known_counters())}
    return dict(sorted(found.items(), key=lambda item: order.get(item[0], len(order))))


@functools.cache
def known_counters() -> Mapping[str, str]:
    """The counters of the simulator in their order, and what one unit of each is."""
    text = HEADER.read_text(encoding="utf-8").partition("#define SIM_COUNTERS(X)")[2]
    return dict(re.findall(r'X\((\w+), +"([^"]*)"\)', text.partition("enum sim_counter")[0]))


# -- what is shown -----------------------------------------------------------------------------


def to_json(rows: Iterable[Row], device: Device) -> dict[str, Any]:
    """For scripts."""

    def side(measured: Measured | None) -> dict[str, Any] | None:
        if measured is None:
            return None
        time_us = estimate.estimate(device, measured.counters)
        return {
            **vars(measured),
            "estimate_us": {**time_us.terms, "low": time_us.low, "high": time_us.high},
        }

    return {
        "simulated": device.name,
        "device": device.summary,
        "rates": {
            name: {"value": r.value, "source": r.source, "assumed": r.assumed}
            for name, r in device.rates.items()
        },
        "overlap": estimate.OVERLAP,
        "cases": [{"case": r.case, "base": side(r.base), "stack": side(r.stack)} for r in rows],
    }


def lines(rows: Sequence[Row], device: Device) -> list[str]:
    """For a terminal: a table per case; every line says that it is simulated."""
    out = [f"{device.name}: {device.summary}"]
    for row in rows:
        out += ["", row.case, *_table(row, device)]
    assumed = [text for text in estimate.sources(device) if ": assumed" in text]
    stated = [text for text in estimate.sources(device) if ": assumed" not in text]
    out += ["", f"time: {estimate.OVERLAP}"]
    out += [f"rate: {text}" for text in (*stated, *assumed)]
    return [f"simulated {text}".rstrip() for text in out]


def _table(row: Row, device: Device) -> list[str]:
    sides = [row.base] + ([row.stack] if row.stack is not None else [])
    cells = [["", "base", "stack", "ratio"][: 1 + len(sides) + (len(sides) > 1)]]
    cells.append(["status", *(s.status for s in sides)])
    for name in dict.fromkeys(n for s in sides for n in s.counters):
        cells.append(_line(name, [float(s.counters.get(name, 0)) for s in sides], "{:,.0f}"))
    for name in ("nmse", "exact"):
        values = [getattr(s, name) for s in sides]
        if any(v is not None for v in values):
            label = {"nmse": "NMSE to the CPU", "exact": "NMSE to float64"}[name]
            cells.append(_line(label, values, "{:.3g}"))
    times = [estimate.estimate(device, s.counters) for s in sides]
    for term in times[0].terms:
        found = [t.terms[term] for t in times]
        if any(found):
            cells.append(_line(f"us {term}", found, "{:,.1f}"))
    cells.append(_line("us if all overlap", [t.low for t in times], "{:,.1f}"))
    cells.append(_line("us if nothing does", [t.high for t in times], "{:,.1f}"))
    cells.append(["longest", *(t.dominant for t in times)])
    width = max(len(line) for line in cells)
    full = [line + [""] * (width - len(line)) for line in cells]
    widths = [max(len(line[i]) for line in full) for i in range(width)]
    out = []
    for line in full:
        first = line[0].ljust(widths[0])
        rest = [cell.rjust(size) for cell, size in zip(line[1:], widths[1:], strict=True)]
        out.append("  " + "  ".join([first, *rest]).rstrip())
    return out + [f"  {s.error}" for s in sides if s.error]


def _line(name: str, values: Sequence[float | None], form: str) -> list[str]:
    cells = [name, *("-" if v is None else form.format(v) for v in values)]
    if len(values) > 1:
        a, b = values[0], values[1]
        cells.append(f"{b / a:.3g}" if a and b is not None else "")
    return cells
