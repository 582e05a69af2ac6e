"""Compares base and stack on a simulated device, case by case, as `validate` does on the CPU."""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from hexpatch import build as builder
from hexpatch import (
    evidence,
    faults,
    knownfail,
    reportfile,
    simbuild,
    simflaky,
    simkept,
    simrun,
    tbo,
)
from hexpatch.asked import Asked
from hexpatch.build import STACK_TEST, TEST, TEST_SOURCE, blob_at
from hexpatch.compare import ALONE, LIMITS, REFERENCE, SIM, TOLERANCE, Plan, renamed, verdict_of
from hexpatch.errors import HexpatchError
from hexpatch.evidence import BROKEN, STILL, CaseVerdict, Report
from hexpatch.knownfail import Entry
from hexpatch.repo import Repo
from hexpatch.sim.devices import Device
from hexpatch.simbuild import SimBuilt
from hexpatch.simrun import SimGatherer, SimProgram
from hexpatch.tbo import OK, CaseResult, op_of
from hexpatch.tborun import Listing, Program, units_of
from hexpatch.validate import Finding, Stage, Wanted, examine, unsupported

Say = builder.Say

# quick: every op, but no tensor of more than a million elements, and of the slow ops only cases
# that tell something, by parameters. None = no case.
LARGE = 1 << 20
QUICK: dict[str, str | None] = {
    "FLASH_ATTN_EXT": r"hsk=(64|128|256),.*kv=(113|512|8192),nb=(1|3|32|35|64),.*=\[0,1,2,3\]",
    "GET_ROWS": r"n=\d+,m=\d{1,4},.*be1=\d{1,2},",
    "MUL_MAT_HADAMARD": r"m=\d{1,4},",
    "MUL_MAT_ID": r"n_mats=4,",
    "MUL_MAT_ID_FUSION": None,
}
_MODEL = (
    "a simulated device: verdicts follow from a model of the hardware, times and bandwidth do not"
)


def wanted(asked: Asked, default: Sequence[str]) -> tuple[Wanted, bool]:
    """The selection, and whether it is the quick one."""
    ops = tuple(tbo.entries(asked.ops))
    if not ops and not (asked.quick or asked.full):
        ops = tuple(tbo.entries(default))
    quick = asked.quick or "quick" in ops or not (ops or asked.full)
    if asked.full or quick:
        ops = ("all",)
    return Wanted(ops, asked.params), quick


@dataclass(frozen=True)
class SimStage(Stage):
    """The programs of one validation on a simulated device."""

    quick: bool = False
    memo: dict[str, CaseResult] | None = None  # where both trees have the same kernels

    def gatherer(self, program: Program, listing: Listing, params: str | None) -> SimGatherer:
        first = isinstance(program, SimProgram) and program.seed == simrun.FIRST_SEED
        return SimGatherer(
            program,
            listing.ops,
            params,
            self.jobs,
            self.timeout,
            self.say,
            supported=listing.supported,
            memo=self.memo if first else None,
        )

    def listing(self, program: Program, params: str | None, source: str) -> Listing:
        assert isinstance(program, SimProgram)
        found = simrun.list_cases(program, params)
        return only_quick(found) if self.quick else found


def only_quick(listing: Listing) -> Listing:
    """The cases of the quick set."""
    ops = {}
    for op, names in listing.ops.items():
        rule = QUICK.get(op, "")
        if rule is not None:
            cases = {name: name[len(op) + 1 : -1] for name in names}
            ops[op] = tuple(
                n for n, p in cases.items() if re.search(rule, p) and elements(p) <= LARGE
            )
    return Listing({op: names for op, names in ops.items() if names}, listing.supported)


def elements(params: str) -> int:
    """Elements of the largest tensor that a case names by its `ne`, repeats included."""
    lists = re.findall(r"(?:^|,)_?(ne\w*|nr)=\[([\d,]+)\]", params)
    sizes = {name: math.prod(map(int, text.split(","))) for name, text in lists}
    return sizes.pop("nr", 1) * max(sizes.values(), default=1)


# -- the whole ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lab:
    """What one validation works with: the trees, what is asked of them, and the device."""

    repo: Repo
    state: Path
    base_tree: str
    stack_tree: str
    asked: Asked
    device: Device
    say: Say

    @property
    def target(self) -> str:
        return f"sim:{self.device.name}"

    @cached_property
    def room(self) -> Path:
        return _room(self.state.resolve() / "scratch", self.target.replace(":", "-"))

    @cached_property
    def same(self) -> bool:
        """Have both trees the same kernels, and the same host part?"""
        base, stack = (blob_at(self.repo, t, "ggml") for t in (self.base_tree, self.stack_tree))
        return base == stack

    def build(self, tree: str, stack_test: str | None = None) -> SimBuilt:
        return simbuild.build(
            self.repo,
            self.state,
            tree,
            stack_test=stack_test,
            arch=self.device.arch,
            checked=bool(self.asked.checks),
            jobs=self.asked.jobs,
            say=self.say,
        )

    def tools(self, built: SimBuilt) -> dict[str, str]:
        """What beside the trees decides a result: for the report, and for keys of what is kept."""
        return {
            **builder.tools().lines(),
            "DSP compiler": built.clang,
            "simulator": built.key,
            "checks": ", ".join(self.asked.checks) or "none",
            "settings": shlex.join(f"{k}={v}" for k, v in self.asked.env) or "none",
            "seeds": ", ".join(map(str, simflaky.SEEDS)),
        }

    def file(self, *question: object) -> Path:
        """Where the answer to this question is kept."""
        trees = (self.base_tree, self.stack_tree)
        key = reportfile.key(self.device.text, *question, *trees, builder.harness())
        name = f"{self.base_tree[:12]}-{self.stack_tree[:12]}-{key[:16]}.json"
        return self.state.resolve() / "results" / self.target / name

    def program(self, built: SimBuilt, side: str, exe: str = TEST) -> SimProgram:
        return simrun.program(
            built,
            self.device,
            self.room / side,
            exe=exe,
            checks=self.asked.checks,
            variables=dict(self.asked.env),
        )

    def programs(
        self, builds: Sequence[SimBuilt], tools: dict[str, str]
    ) -> tuple[SimProgram, SimProgram]:
        """The programs of base and stack, with what is kept of their runs."""
        sides = ("base", "stack")
        found = [self.program(built, side) for built, side in zip(builds, sides, strict=True)]
        shelves = simkept.open_shelves(
            self.state.resolve() / "runs" / self.target,
            [
                simkept.key(self.repo, tree, self.device.text, tools)
                for tree in (self.base_tree, self.stack_tree)
            ],
            fresh=self.asked.fresh,
            checked=bool(self.asked.checks),
        )
        base, stack = (
            replace(program, shelf=shelf) for program, shelf in zip(found, shelves, strict=True)
        )
        if self.asked.fresh and self.same:
            shutil.rmtree(shelves[0].folder, ignore_errors=True)  # the stack's alone is filled anew
        if self.asked.base_only:
            return base, base
        if self.same:
            base = replace(base, heard=stack.heard)
        return base, stack

    def base_as_tested(self) -> SimProgram:
        """The base's kernels under the stack's tests."""
        built = self.build(self.base_tree, blob_at(self.repo, self.stack_tree, TEST_SOURCE))
        return self.program(built, "added", STACK_TEST)

    def stage(self, base: SimProgram, stack: SimProgram, *, quick: bool) -> SimStage:
        mode = ALONE if self.asked.base_only else SIM
        return SimStage(
            plan=Plan(mode, None, False, _notes(self)),
            base=base,
            stack=stack,
            sources=("", ""),
            library=None,
            scratch=self.room,
            jobs=self.asked.jobs or builder.cores(),
            timeout=self.asked.limit,
            say=self.say,
            quick=quick,
            memo={} if self.same else None,
        )


def validate(
    repo: Repo,
    state: Path,
    base_tree: str,
    stack_tree: str,
    asked: Asked,
    *,
    device: Device,
    default_ops: Sequence[str] = (),
    known: Sequence[Entry] = (),
    say: Say,
) -> Report:
    """Build what is needed, run, compare. A complete result is kept and answered from then on."""
    began = time.monotonic()
    lab = _Lab(
        repo, state, base_tree, base_tree if asked.base_only else stack_tree, asked, device, say
    )
    want, quick = wanted(asked, default_ops)
    built = lab.build(base_tree)
    builds = (built, built if asked.base_only else lab.build(stack_tree))
    tools = lab.tools(built)
    entries = knownfail.applying(known, lab.target, base_tree, dict(asked.env))
    expected = [repr(entry) for entry in entries]
    file = lab.file(want.entries, want.params, quick, asked.base_only, tools, expected)
    if not asked.fresh and (kept := reportfile.take(file)):
        return kept
    base, stack = lab.programs(builds, tools)
    stage = lab.stage(base, stack, quick=quick)
    found = examine(stage, want)
    cases, repeated = _settled(stage, found)
    cases = _failing_anyway(stage, cases, None if lab.same else lab.base_as_tested, found)
    cases = [_with_errors(case, base, stack) for case in cases]
    whole = frozenset(c.op for c in cases) if want.params is None and not quick else frozenset()
    judged, stale = knownfail.apply(entries, cases, whole)
    table, new = _faults(asked, (base, stack), builds)
    problems = list(dict.fromkeys([*found.problems, *stale, *new]))
    report = Report(
        target=lab.target,
        base_tree=base_tree,
        stack_tree="" if asked.base_only else stack_tree,
        ops=("quick",) if quick else want.entries,
        params=want.params,
        totals=evidence.count(judged),
        cases=judged,
        per_op=evidence.per_op(judged),
        notes=_all_notes(stage, found, repeated),
        limits=(_MODEL, LIMITS[SIM], TOLERANCE),
        problems=(*problems, *unsupported(judged, problems)),
        seconds=round(time.monotonic() - began, 1),
        tools=tools,
        reference=REFERENCE[SIM],
        simulated=f"{device.name}: {device.summary}",
        faults=table,
    )
    shutil.rmtree(lab.room, ignore_errors=True)
    reportfile.settle(file, report)
    return report


def _all_notes(stage: SimStage, found: Finding, repeated: int) -> tuple[str, ...]:
    """What is to be said beside the verdicts, once each."""
    notes = [*stage.plan.notes, *found.notes]
    if repeated:
        notes.append(f"{repeated} cases were repeated with other seeds, to tell flaky from failing")
    sides = [("base", stage.base), ("stack", stage.stack)]
    for side, program in sides[:1] if stage.plan.mode == ALONE else sides:
        if isinstance(program, SimProgram) and program.shelf:
            notes += simkept.note(program.shelf, side)
    return tuple(dict.fromkeys(notes))


def _room(scratch: Path, target: str) -> Path:
    """A folder of this run alone: a process of a killed one may still write into that one's."""
    for old in scratch.glob(f"{target}-*"):
        shutil.rmtree(old, ignore_errors=True)
    return scratch / f"{target}-{os.getpid()}-{time.time_ns():x}"


def _notes(lab: _Lab) -> tuple[str, ...]:
    """What the stack changes that this target does not show, or can't tell apart."""
    repo, base, stack = lab.repo, lab.base_tree, lab.stack_tree
    if base == stack:
        return ()
    notes = []
    if lab.same:
        notes.append(
            "the stack changes nothing below ggml/: only the list of cases differs, and a case of "
            "both lists was run once"
        )
    cpu = "ggml/src/ggml-cpu"
    if blob_at(repo, base, cpu) != blob_at(repo, stack, cpu):
        notes.append(f"the stack changes {cpu}, so base and stack have different references")
    return tuple(notes)


def _settled(stage: SimStage, found: Finding) -> tuple[list[CaseVerdict], int]:
    """Verdicts after suspicious cases were repeated."""
    if not found.verdicts:
        return [], 0
    old = [n for n in found.base if n not in found.stack]
    pairs = renamed(old, [n for n in found.stack if n not in found.base])

    def again(program: Program) -> simflaky.Again:
        def run(names: Sequence[str], seed: int) -> dict[str, CaseResult]:
            assert isinstance(program, SimProgram)
            return _single(stage, program.with_seed(seed), names)

        return run

    def at_base(case: CaseVerdict) -> str | None:
        name = f"{case.op}({case.params})"
        return None if case.base is None else pairs.get(name, name)

    alone = stage.plan.mode == ALONE
    try:
        return simflaky.settle(
            found.verdicts, again(stage.base), None if alone else again(stage.stack), at_base
        )
    except HexpatchError as e:
        found.problems.append(e.message)
        return found.verdicts, 0


def _single(stage: SimStage, program: SimProgram, names: Sequence[str]) -> dict[str, CaseResult]:
    """What some cases give with a program: passed or failed, the rest is left out."""
    ops: dict[str, tuple[str, ...]] = {}
    for name in names:
        ops[op_of(name)] = (*ops.get(op_of(name), ()), name)
    results = stage.gatherer(program, Listing(ops, frozenset(names)), None).gather(units_of(names))
    return {n: c for n, c in results.blocks[0].items() if c.status in (OK, *tbo.BAD)}


def _failing_anyway(
    stage: SimStage,
    cases: Sequence[CaseVerdict],
    base: Callable[[], SimProgram] | None,
    found: Finding,
) -> list[CaseVerdict]:
    """A case that the stack adds, and that fails with the base's kernels too, broke nothing.

    `base` runs the stack's tests on the base's kernels; None where the stack has those itself.
    """
    names = {f"{c.op}({c.params})": c for c in cases if c.verdict == BROKEN and c.base is None}
    failing = set(names)
    if base is not None and names:
        try:
            results = _single(stage, base(), list(names))
        except HexpatchError as e:  # tests of what the base has not
            found.notes.append(f"added cases can't be run at the base: {e.message}")
            return list(cases)
        failing = {
            name
            for name, case in results.items()
            if verdict_of(case.status, names[name].stack) == STILL
        }
    if failing:
        found.notes.append(
            f"{len(failing)} of the cases that the stack adds fail with the base's kernels too"
        )
    anyway = {names[name] for name in failing}
    return [replace(c, verdict=STILL) if c in anyway else c for c in cases]


def _with_errors(case: CaseVerdict, base: SimProgram, stack: SimProgram) -> CaseVerdict:
    """The case with its measured errors (at the base only where it has the same text there)."""
    name = f"{case.op}({case.params})"
    there = base.heard.errors.get(name) if case.base is not None else None
    here = stack.heard.errors.get(name) if case.stack is not None else None
    return replace(case, base_error=simrun.finite(there), stack_error=simrun.finite(here))


def _faults(
    asked: Asked, programs: tuple[SimProgram, SimProgram], builds: tuple[SimBuilt, SimBuilt]
) -> tuple[tuple[evidence.FaultRow, ...], list[str]]:
    """The faults of both sides, and those that only the stack has."""
    if not asked.checks:
        return (), []
    base, stack = programs
    there, here = (
        faults.Side(program.heard.faults, (built.dsp, built.runtime))
        for program, built in zip(programs, builds, strict=True)
    )
    found = faults.rows(there, None if asked.base_only else here)
    sides = {"base": base.heard.silent, "stack": 0 if asked.base_only else stack.heard.silent}
    lost = [
        f"{side}: {count} processes left no report of their faults (is the disk full?)"
        for side, count in sides.items()
        if count
    ]
    return tuple(found), lost if asked.base_only else [*lost, *faults.new_faults(found)]
