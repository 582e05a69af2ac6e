"""Runs test-backend-ops, and finds out which case it was that crashed or hung.

The exit status says little (0 for a device that isn't there and for an empty selection; 1 for a
wrong option as for a failing case), so `judge` weighs a run by what it printed.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from hexpatch import proc
from hexpatch.errors import HexpatchError
from hexpatch.tbo import (
    CRASH,
    FAIL,
    OK,
    TIMEOUT,
    UNSUPPORTED,
    Block,
    CaseResult,
    Run,
    Unit,
    by_name,
    op_of,
    parse,
)

Say = Callable[[str], None]

# One process costs half a second for building all graphs, so small ops share one. When it dies,
# each is run again on its own: a crash or a time-out loses only the op it is in.
BATCH_CASES, BATCH_OPS = 400, 24
HUNT_RUNS, HUNT_CHUNK = 200, 150
REPEATS = 3  # of a group that died although none of its cases does


@dataclass(frozen=True)
class Program:
    """A test program with its libraries: which device it tests, and how many bear that name."""

    exe: Path
    device: str = "CPU"
    devices: int = 1
    second: Path | None = None  # a backend library loaded beside the program's own
    parallel: bool = False  # takes -j
    counts_all: bool = False  # older: N/M counts skipped and unsupported cases too

    def run(self, *args: str, timeout: float) -> proc.Finished:
        """Run it with fixed surroundings: its own directory, no debugger, no foreign backends."""
        return proc.run(
            [self.exe, *args], cwd=self.exe.parent, env=self.environment(), timeout=timeout
        )

    def environment(self) -> dict[str, str]:
        """The user's, without what would change results."""
        foreign = ("GGML_", "GIT_", "HEXPATCH_", "MALLOC_")
        env = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        env.update(GGML_NO_BACKTRACE="1", LC_ALL="C.UTF-8")
        if self.second is not None:
            env["GGML_BACKEND_PATH"] = str(self.second)
        return env


# what ggml says before it aborts: an assertion, or `file:line: text`
_ABORT = re.compile(r"GGML_ASSERT|fatal|^\S+\.(?:c|cpp|h):\d+: ")
KILLED = "ended by signal 9"  # from outside: no program does that to itself
_P = TypeVar("_P", bound=Program)


@dataclass(frozen=True)
class Outcome:
    """A judged run. `died` is CRASH, TIMEOUT or empty; `problem` makes any result worthless."""

    run: Run
    blocks: tuple[Block, ...]
    died: str = ""
    reason: str = ""
    problem: str = ""


def execute(
    program: Program,
    only: str,
    params: str | None,
    *,
    jobs: int,
    timeout: float,
    mode: str = "test",
) -> Outcome:
    """Run a selection and judge it."""
    args = [mode, "-b", program.device]
    if only:
        args += ["-o", only]
    if params is not None:
        args += ["-p", params]
    if program.parallel and jobs > 1 and mode == "test":
        args += ["-j", str(jobs)]
    return judge(program, program.run(*args, timeout=timeout), mode)


def judge(program: Program, done: proc.Finished, mode: str = "test") -> Outcome:
    """Say what a run is worth: its exit status alone says nothing good and little bad."""
    run = parse(done.stdout)
    blocks = tuple(b for b in run.blocks if b.name == program.device and not b.skipped)
    told = done.stderr.decode("utf-8", "replace").strip()
    last = told.splitlines()[-1] if told else ""
    if done.timed_out:
        return Outcome(run, blocks, TIMEOUT, "time is up")
    if done.status < 0 or done.status >= 128:
        number = -done.status if done.status < 0 else done.status - 128
        if "regex_error" in told:
            return Outcome(run, blocks, problem="-p is not a valid regex to test-backend-ops")
        why = f"ended by signal {number}"
        abort = [line for line in told.splitlines() if _ABORT.search(line)]
        return Outcome(run, blocks, CRASH, f"{why}: {abort[-1]}" if abort else why)
    problem = _problem(program, run, blocks, done.status, mode)
    if problem and last and (run.usage or run.truncated or len(blocks) < program.devices):
        problem += f"; it said: {last}"
    return Outcome(run, blocks, problem=problem)


def _problem(program: Program, run: Run, blocks: Sequence[Block], status: int, mode: str) -> str:
    if run.usage:
        return "usage error: this tree's test-backend-ops does not take these options"
    if status in (126, 127):
        return f"test-backend-ops could not be started (exit {status})"
    if run.devices == 0:
        return "no backend library was loaded (0 devices)"
    if run.truncated:
        return f"the output is cut off (exit {status})"
    if len(blocks) < program.devices:
        have = ", ".join(b.name for b in run.blocks) or "none"
        if not blocks:
            return f"there is no device {program.device} (devices: {have})"
        return f"the second library gave no device {program.device} (devices: {have})"
    if mode != "test":
        return ""
    for block in blocks:
        ran = [c.status for c in block.cases if c.status != UNSUPPORTED]
        good = ran.count(OK)
        if block.passed is None or block.total is None or block.ok is None:
            return f"device {block.index} has no summary"
        bad = block.total - block.passed
        counted = bad == len(ran) - good and block.total >= len(ran)
        if not counted or (block.total != len(ran) and not program.counts_all):
            return (
                f"device {block.index} says {block.passed}/{block.total} passed, "
                f"but printed {good} OK and {len(ran) - good} FAIL"
            )
        if block.ok != (good == len(ran)):
            return f"device {block.index} says {'OK' if block.ok else 'FAIL'} against its cases"
    if run.ok != (status == 0) or (run.ok and not all(b.ok for b in blocks)):
        return f"exit {status} does not go with what was printed"
    return ""


def probe(exe: Path, second: Path | None = None) -> Program:
    """Find out what a tree's program can do: ask for its usage, and run an empty selection."""
    known = probed(Program(exe, "CPU"))
    return replace(known, devices=1 if second is None else 2, second=second)


def probed(plain: _P) -> _P:
    """The program, with what it can do found out."""
    text = plain.run("--help", timeout=60).stdout.decode("utf-8", "replace")
    empty = plain.run("-b", plain.device, "-o", "NO_SUCH_OP", timeout=120)
    counts = [b.total for b in parse(empty.stdout).blocks if b.total is not None]
    return replace(
        plain,
        parallel=re.search(r"^\s+-j <n>", text, re.M) is not None,
        counts_all=bool(counts and counts[0]),
    )


@dataclass(frozen=True)
class Listing:
    """The cases a program knows, by op, and those it supports; `fused` names have no cases."""

    ops: Mapping[str, tuple[str, ...]]
    supported: frozenset[str]
    fused: tuple[str, ...] = ()
    plumbing: str = ""

    def known(self) -> dict[str, tuple[str, ...]]:
        """Every op name, also those whose cases can't be listed."""
        return {**dict.fromkeys(self.fused, ()), **self.ops}

    def cases(self) -> set[str]:
        """Every listed case."""
        return {name for names in self.ops.values() for name in names}


_FUSED = re.compile(r'op_desc\(ggml_tensor \* \w+\) override \{[^}]*?return "([A-Z0-9_]+)";')


def list_cases(program: Program, params: str | None, source: str = "") -> Listing:
    """Cases that match `params`. Support mode leaves whole-graph cases out; a device that supports
    next to nothing (BLAS) lists all of them, and shows that results of another device come through.
    """
    alone = replace(program, devices=1, second=None)
    out = execute(alone, "", params, jobs=1, timeout=300, mode="support")
    if out.problem or out.died:
        raise HexpatchError(f"listing the cases failed: {out.problem or out.reason}")
    cases = list(out.blocks[0].cases)  # in the order they run; those of BLAS are more
    supported = frozenset(c.name for c in cases if c.status == OK)
    plumbing = ""
    if any(b.name == "BLAS" for b in out.run.blocks):
        other = replace(alone, device="BLAS", parallel=False)
        blas = execute(other, "", params, jobs=1, timeout=300)
        plumbing = _plumbing(blas)
        if not blas.problem and not blas.died:
            cases[:0] = blas.blocks[0].cases
    ops: dict[str, dict[str, None]] = {}
    for case in cases:
        ops.setdefault(case.op, {})[case.name] = None
    fused = tuple(dict.fromkeys(_FUSED.findall(source))) if not plumbing else ()
    return Listing({op: tuple(names) for op, names in ops.items()}, supported, fused, plumbing)


def _plumbing(out: Outcome) -> str:
    if out.problem or out.died:
        return f"plumbing check on BLAS: {out.problem or out.reason}"
    counts = dict.fromkeys((OK, FAIL, UNSUPPORTED), 0)
    for case in out.blocks[0].cases:
        counts[case.status] += 1
    return (
        f"plumbing check on BLAS: {counts[OK]} OK, {counts[FAIL]} FAIL, "
        f"{counts[UNSUPPORTED]} not supported"
    )


@dataclass
class Results:
    """What was found out so far, per device block and case, and what went wrong on the way."""

    blocks: list[dict[str, CaseResult]]
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def take(self, blocks: Sequence[Block]) -> None:
        """Add the cases of a run; the worse result of equal texts counts."""
        for held, block in zip(self.blocks, blocks, strict=False):
            for name, case in by_name(block.cases).items():
                held[name] = by_name([case, held[name]])[name] if name in held else case

    def lacking(self, names: Iterable[str]) -> list[str]:
        """Those of the names that have no result on one of the devices."""
        return [n for n in names if any(n not in held for held in self.blocks)]


def batches(units: Sequence[Unit], cases: Mapping[str, Sequence[str]]) -> list[list[Unit]]:
    """Group units so that small ones share a process; the order stays."""
    groups: list[list[Unit]] = []
    room = 0
    for unit in units:
        size = len(unit.cases or cases.get(unit.op, ())) or 50
        if not groups or size > room or len(groups[-1]) >= BATCH_OPS:
            groups.append([])
            room = BATCH_CASES
        groups[-1].append(unit)
        room -= size
    return groups


def units_of(names: Iterable[str]) -> list[Unit]:
    """Units for single cases, small enough for a command line."""
    by_op: dict[str, list[str]] = {}
    for name in names:
        by_op.setdefault(op_of(name), []).append(name)
    return [
        Unit(op, tuple(found[at : at + HUNT_CHUNK]))
        for op, found in by_op.items()
        for at in range(0, len(found), HUNT_CHUNK)
    ]


@dataclass(frozen=True)
class Gatherer:
    """Runs units on a program until each case has a result or the budget is used up."""

    program: Program
    cases: Mapping[str, Sequence[str]]
    params: str | None
    jobs: int
    timeout: float
    say: Say

    def empty(self) -> Results:
        """No results yet."""
        return Results([{} for _ in range(self.program.devices)])

    def gather(self, units: Sequence[Unit]) -> Results:
        """Results of all units. A problem that every run would meet ends it early."""
        results = self.empty()
        groups = batches(units, self.cases)
        done = 0
        for group in groups:
            more = f" and {len(group) - 1} more" if len(group) > 1 else ""
            self.say(f"run {group[0].op}{more} ({done}/{len(units)} ops done)")
            if not self._group(results, group):
                break
            done += len(group)
        return results

    def _group(self, results: Results, group: Sequence[Unit]) -> bool:
        only = ",".join(unit.only for unit in group)
        out = execute(self.program, only, self.params, jobs=self.jobs, timeout=self.timeout)
        results.take(out.blocks)
        if out.problem:
            names = ", ".join(unit.op for unit in group[:3]) + (", ..." if group[3:] else "")
            results.problems.append(f"{names}: {out.problem}")
            return bool(out.blocks) and len(out.blocks) == self.program.devices
        if not out.died:
            return True
        label = " ... ".join(dict.fromkeys((group[0].op, group[-1].op)))
        problems = len(results.problems)
        culprits = left = 0
        for unit in group:
            expected = self._expected(results, unit)
            lacking = results.lacking(expected)
            left += len(lacking)
            if lacking:
                culprits += self._hunt(results, unit.op, lacking, out)
            elif not expected and len(group) > 1:
                left += 1
                if not self._group(results, [unit]):
                    return False
        if not left:
            results.problems.append(f"{label}: {_died(out)}, and no case is known to be left")
        elif out.reason == KILLED:
            self.say(f"{label}: a process was killed from outside; its cases were run again")
        elif not culprits and out.died == CRASH and len(results.problems) == problems:
            self._together_again(results, label, only, _died(out))
        return True

    def _together_again(self, results: Results, label: str, only: str, died: str) -> None:
        """A crash that no case shows alone is a problem if it comes back, and else told."""
        for _ in range(REPEATS):
            again = execute(self.program, only, self.params, jobs=self.jobs, timeout=self.timeout)
            if again.died:
                results.problems.append(
                    f"{label}: {died} when run together, but no case does alone"
                )
                return
        results.notes.append(f"{label}: {died} once, and not in {REPEATS} more runs of the same")

    def _expected(self, results: Results, unit: Unit) -> list[str]:
        """Cases of a unit, from the listing and from what any device printed."""
        if unit.cases:
            return list(unit.cases)
        names = dict.fromkeys(self.cases.get(unit.op, ()))
        for held in results.blocks:
            names.update(dict.fromkeys(n for n, case in held.items() if case.op == unit.op))
        return list(names)

    def _hunt(self, results: Results, op: str, left: Sequence[str], first: Outcome) -> int:
        """Run what is left, and the suspect alone, until each case has a result or is a culprit.

        The number of culprits.
        """
        culprits = 0
        runs, ends = HUNT_RUNS, time.monotonic() + max(60.0, self.timeout)
        together, single = max(5.0, self.timeout / 30), max(10.0, self.timeout / 10)
        queue = [left[at : at + HUNT_CHUNK] for at in range(0, len(left), HUNT_CHUNK)]
        self.say(f"{op}: {_died(first)}; looking for the case among {len(left)}")
        while queue and runs > 0 and time.monotonic() < ends:
            chunk = queue.pop(0)
            runs -= 1
            limit = min(self.timeout, single if len(chunk) == 1 else together)
            out = execute(self.program, ",".join(chunk), self.params, jobs=1, timeout=limit)
            results.take(out.blocks)
            if out.problem:
                results.problems.append(f"{op}: {out.problem}")
            still = results.lacking(chunk)
            if not out.died or not still:
                continue
            if len(chunk) == 1 and out.reason == KILLED:
                results.problems.append(f"{chunk[0]}: killed from outside (is memory short?)")
                continue
            if len(chunk) == 1:
                self._blame(results, chunk[0], out, limit)
                culprits += 1
                self.say(f"{chunk[0]}: {out.died}")
                continue
            suspect = _suspect(chunk, out)
            first_part = [suspect] if suspect in still else still[: (len(still) + 1) // 2]
            others = [n for n in still if n not in first_part]
            queue[:0] = [part for part in (first_part, others) if part]
        dead = (CRASH, TIMEOUT)
        rest = [
            n
            for n in results.lacking(left)
            if n not in results.blocks[0] or results.blocks[0][n].status not in dead
        ]
        if rest:
            results.problems.append(
                f"{op}: {_died(first)}, and {len(rest)} cases could not be run singly"
            )
        return culprits

    def _blame(self, results: Results, name: str, out: Outcome, limit: float) -> None:
        """Note a crash or time-out for the device it happened on.

        Its own output can't tell: what the first device printed last is lost with the process.
        """
        where = 0
        if self.program.second is not None and name not in results.blocks[0]:
            alone = replace(self.program, second=None, devices=1)
            again = execute(alone, name, self.params, jobs=1, timeout=limit)
            results.take(again.blocks)
            if not again.died:
                where = 1
        elif name in results.blocks[0]:
            where = len(results.blocks) - 1
        params = name[len(op_of(name)) + 1 : -1]
        results.blocks[where][name] = CaseResult(op_of(name), params, out.died, out.reason)


def _suspect(chunk: Sequence[str], out: Outcome) -> str:
    """With one worker, cases run in order: the first that was not printed. Only a guess."""
    printed = [{c.name for c in block.cases} for block in out.blocks]
    if printed:
        printed[-1].add(out.run.unfinished)
    for names in [*printed, set[str]()]:
        for name in chunk:
            if name not in names:
                return name
    return ""


def _died(out: Outcome) -> str:
    return "ran out of time" if out.died == TIMEOUT else f"crashed ({out.reason})"


def solo(program: Program, library: Path, into: Path) -> Program:
    """The same program with another CPU backend in the place of its own: for self-comparison."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    exe = into / program.exe.name
    shutil.copy2(program.exe, exe)
    shutil.copy2(library, into / library.name)
    return replace(program, exe=exe, second=None, devices=1)
