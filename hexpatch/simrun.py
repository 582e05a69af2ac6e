"""Runs test-backend-ops on the simulated DSP: one process per group of cases, side by side.

A process has its own simulated DSP, so a crash or a time-out costs one group, and of that only
the case that caused it.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from hexpatch import faults, proc
from hexpatch.errors import HexpatchError
from hexpatch.faults import Fault, OpRun
from hexpatch.sim.devices import Device, environment
from hexpatch.simbuild import SimBuilt
from hexpatch.simkept import Said, Shelf, measured
from hexpatch.tbo import FAIL, OK, UNSUPPORTED, CaseResult, Unit, op_of, parse
from hexpatch.tborun import Gatherer, Listing, Program, Results, execute, probed

DEVICE = "HTP0"
FIRST_SEED = 1

# Seconds of one supported case, roughly; the others take COST. Groups are cut to ROOM seconds,
# so that few cores stay busy to the end.
COST, ROOM, CHUNK = 0.03, 30.0, 150
COSTS = {
    "ADD": 0.1,
    "FLASH_ATTN_EXT": 0.15,
    "GET_ROWS": 0.3,
    "MUL_MAT_HADAMARD": 1.5,
    "MUL_MAT_ID": 0.1,
    "MUL_MAT_ID_FUSION": 15.0,
    "ROPE": 0.1,
    "TOP_K": 0.15,
}


_NUMBERS = itertools.count()  # no two processes have one report, whatever their seeds


@dataclass
class Heard:
    """What the processes of one program reported: faults by op, errors by case."""

    faults: list[Fault] = field(default_factory=list)
    ops: list[OpRun] = field(default_factory=list)
    errors: dict[str, float] = field(default_factory=dict)
    exact: dict[str, float] = field(default_factory=dict)  # against float64; -1 = not computed
    silent: int = 0  # processes that ran cases to their end and left no whole report
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, report: str, errors: str, done: proc.Finished) -> None:
        """Add a process's report and errors."""
        found = faults.read(report)
        run = parse(done.stdout)
        values = measured(run, errors)
        # a listing counts none, an older program also those it was not asked for
        ran = any(c.status in (OK, FAIL) for b in run.blocks if b.total for c in b.cases)
        with self.lock:
            self.silent += not found.whole and ran and not run.truncated
            self.faults += found.faults
            self.ops += found.ops
            for case, nmse, exact in values or ():
                self.errors[case.name], self.exact[case.name] = nmse, exact


@dataclass(frozen=True)
class SimProgram(Program):
    """test-backend-ops with a simulated DSP: its surroundings, and what is heard of its runs."""

    variables: tuple[tuple[str, str], ...] = ()
    machine: Device | None = None
    checks: tuple[str, ...] = ()
    room: Path = Path()
    seed: int | None = FIRST_SEED
    counting: bool = False  # every op's counters are wanted, and errors against float64
    shelf: Shelf | None = None  # of processes that need not be run again
    heard: Heard = field(default_factory=Heard, compare=False)

    def run(self, *args: str, timeout: float) -> proc.Finished:
        """Run it unless what it says is kept, and take its report in."""
        said = self.shelf.take(self, args) if self.shelf else None
        if said is None:
            said = self._said(self.exe, args, timeout)
            if self.shelf:
                self.shelf.put(self, args, said)
        self.heard.take(said.report, said.errors, said.done)
        return said.done

    def other(self, exe: Path, *args: str, timeout: float) -> proc.Finished:
        """Run another program of the same build in these surroundings."""
        said = self._said(exe, args, timeout)
        self.heard.take(said.report, said.errors, said.done)
        return said.done

    def _said(self, exe: Path, args: Sequence[str], timeout: float) -> Said:
        number = next(_NUMBERS)
        report, errors = self.room / f"{number}.report", self.room / f"{number}.errors"
        env = {**self.environment(), **dict(self.variables), "HEXPATCH_ERRORS": str(errors)}
        if self.machine is not None:
            reported = report if self.checks or self.counting else None
            env.update(environment(self.machine, self.checks, reported))
        if self.counting:
            env["HEXPATCH_EXACT"] = "1"
        if self.seed is not None:
            env["HEXPATCH_SEED"] = str(self.seed)
        self.room.mkdir(parents=True, exist_ok=True)
        try:
            done = proc.run([exe, *args], cwd=exe.parent, env=env, timeout=timeout)
            return Said(done, _text(report), _text(errors))
        finally:
            report.unlink(missing_ok=True)
            errors.unlink(missing_ok=True)

    def with_seed(self, seed: int) -> SimProgram:
        """The same with other inputs; what it reports is kept apart."""
        shelf = replace(self.shelf, seed=seed) if self.shelf else None
        return replace(self, seed=seed, shelf=shelf, heard=Heard())


def finite(error: float | None) -> float | None:
    """A measured error as JSON can hold it: none where it was not measured, or is no number."""
    return error if error is not None and math.isfinite(error) else None


def _text(file: Path) -> str:
    return file.read_text("utf-8", "replace") if file.exists() else ""


def program(
    built: SimBuilt,
    device: Device,
    room: Path,
    *,
    exe: str = "test-backend-ops",
    checks: Sequence[str] = (),
    counting: bool = False,
    variables: Mapping[str, str] | None = None,
) -> SimProgram:
    """A tree's test program on a device model; HexpatchError when the DSP does not come up."""
    surroundings = {
        "LD_LIBRARY_PATH": str(built.runtime),
        "ADSP_LIBRARY_PATH": str(built.dsp),
        "LD_PRELOAD": str(built.watch),
        **(variables or {}),
    }
    plain = SimProgram(
        built.bin / exe,
        DEVICE,
        variables=tuple(sorted(surroundings.items())),
        machine=device,
        checks=tuple(checks),
        room=room,
        counting=counting,
    )
    known = probed(plain)
    check = execute(known, "NO_SUCH_OP", None, jobs=1, timeout=120)
    if check.problem or check.died:
        raise HexpatchError(
            f"the simulated {device.name} does not start: {check.problem or check.reason}",
            f"the build is {built.dir}, its log {built.log}",
        )
    return replace(known, parallel=False)


def list_cases(program: SimProgram, params: str | None) -> Listing:
    """Every case that matches `params`, and those that the device supports.

    Cases of fused graphs are in the list, and not among the supported: they have to be run.
    """
    program = replace(program, shelf=None)  # by its arguments, a listing looks like a run
    listing = replace(program, variables=(*program.variables, ("HEXPATCH_LIST", "1")))
    known = _listed(listing, params, "test")
    asked = {c.name: c.status for c in _listed(program, params, "support")}
    ops: dict[str, dict[str, None]] = {}
    for case in known:
        ops.setdefault(case.op, {})[case.name] = None
    unknown = {c.name for c in known if c.name not in asked}
    supported = frozenset(unknown | {name for name, status in asked.items() if status == OK})
    return Listing({op: tuple(names) for op, names in ops.items()}, supported)


def _listed(program: SimProgram, params: str | None, mode: str) -> tuple[CaseResult, ...]:
    out = execute(program, "", params, jobs=1, timeout=300, mode=mode)
    if out.problem or out.died:
        raise HexpatchError(f"listing the cases failed: {out.problem or out.reason}")
    return out.blocks[0].cases


# -- groups ------------------------------------------------------------------------------------


def cost_of(unit: Unit) -> float:
    """Seconds that a unit may take, for the order only."""
    return COSTS.get(unit.op, COST) * max(1, len(unit.cases))


def groups_of(names: Iterable[str]) -> list[list[Unit]]:
    """Cases in groups of about equal time, the long ones first; small ops share a group."""
    by_op: dict[str, list[str]] = {}
    for name in names:
        by_op.setdefault(op_of(name), []).append(name)
    groups: list[list[Unit]] = []
    shared: list[Unit] = []
    room = ROOM
    for op, cases in by_op.items():
        size = max(1, min(CHUNK, int(ROOM / COSTS.get(op, COST))))
        chunks = [Unit(op, tuple(cases[at : at + size])) for at in range(0, len(cases), size)]
        if len(chunks) > 1:
            groups += [[chunk] for chunk in chunks]
            continue
        held = sum(len(u.cases) for u in shared)
        if shared and (cost_of(chunks[0]) > room or held + len(cases) > CHUNK):
            groups.append(shared)
            shared, room = [], ROOM
        shared.append(chunks[0])
        room -= cost_of(chunks[0])
    groups += [shared] if shared else []
    return sorted(groups, key=lambda group: -sum(map(cost_of, group)))


@dataclass(frozen=True)
class SimGatherer(Gatherer):
    """Runs groups in parallel processes; what the device does not support is not run at all."""

    supported: frozenset[str] = frozenset()
    memo: dict[str, CaseResult] | None = None  # results that hold for this program too

    def gather(self, units: Sequence[Unit]) -> Results:
        """Results of all units."""
        results = self.empty()
        wanted: dict[str, None] = {}
        for unit in units:
            wanted.update(dict.fromkeys(unit.cases or self.cases.get(unit.op, ())))
        for name in wanted:
            if name not in self.supported:
                op = op_of(name)
                params = name[len(op) + 1 : -1]
                results.blocks[0][name] = CaseResult(op, params, UNSUPPORTED)
        memo = {} if self.memo is None else self.memo
        todo = [name for name in wanted if name in self.supported and name not in memo]
        results.blocks[0].update((n, memo[n]) for n in wanted if n in memo)
        for part in self.run(groups_of(todo), len(todo)):
            results.blocks[0].update(part.blocks[0])
            results.problems += part.problems
            results.notes += part.notes
        held = results.blocks[0]
        memo.update((n, held[n]) for n in todo if n in held)
        results.blocks[0] = {n: held[n] for n in wanted if n in held} | held  # not as they came
        return results

    def run(self, groups: Sequence[Sequence[Unit]], cases: int) -> Iterable[Results]:
        """Results of the groups as they come."""
        done = 0
        with proc.pool(self.jobs) as pool:
            waiting = {pool.submit(self.one, group): group for group in groups}
            for future in as_completed(waiting):
                part = future.result()
                done += len(part.blocks[0])
                label = ", ".join(dict.fromkeys(u.op for u in waiting[future][:2]))
                self.say(f"ran {label} ({done}/{cases} cases)")
                yield part

    def one(self, group: Sequence[Unit]) -> Results:
        """Results of one group."""
        results = self.empty()
        self._group(results, group)
        return results
