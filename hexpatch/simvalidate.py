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
from hexpatch.validate import Finding, Stage, Wanted, examine

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
    target = f"sim:{device.name}"
    stack_tree = base_tree if asked.base_only else stack_tree
    want, quick = wanted(asked, default_ops)
    own_jobs = asked.jobs or builder.cores()

    def make(tree: str, stack_test: str | None = None) -> SimBuilt:
        return simbuild.build(
            repo,
            state,
            tree,
            stack_test=stack_test,
            arch=device.arch,
            checked=bool(asked.checks),
            jobs=asked.jobs,
            say=say,
        )

    base_built = make(base_tree)
    stack_built = base_built if asked.base_only else make(stack_tree)
    tools = {
        **builder.tools().lines(),
        "DSP compiler": base_built.clang,
        "simulator": base_built.key,
        "checks": ", ".join(asked.checks) or "none",
        "settings": shlex.join(f"{k}={v}" for k, v in asked.env) or "none",
        "seeds": ", ".join(map(str, simflaky.SEEDS)),
    }
    entries = knownfail.applying(known, target, base_tree, dict(asked.env))
    expected = [repr(entry) for entry in entries]
    key = reportfile.key(
        *(device.text, want.entries, want.params, quick, asked.base_only, tools, expected),
        *(base_tree, stack_tree, builder.harness()),
    )
    name = f"{base_tree[:12]}-{stack_tree[:12]}-{key[:16]}.json"
    file = state.resolve() / "results" / target / name
    if not asked.fresh and (kept := reportfile.take(file)):
        return kept

    room = _room(state.resolve() / "scratch", target.replace(":", "-"))

    def program(built: SimBuilt, side: str, exe: str = TEST) -> SimProgram:
        settings = dict(asked.env)
        return simrun.program(
            built, device, room / side, exe=exe, checks=asked.checks, variables=settings
        )

    def base_as_tested() -> SimProgram:
        """The base's kernels under the stack's tests."""
        built = make(base_tree, blob_at(repo, stack_tree, TEST_SOURCE))
        return program(built, "added", STACK_TEST)

    programs = [program(base_built, "base"), program(stack_built, "stack")]
    shelves = simkept.open_shelves(
        state.resolve() / "runs" / target,
        [simkept.key(repo, tree, device.text, tools) for tree in (base_tree, stack_tree)],
        fresh=asked.fresh,
        checked=bool(asked.checks),
    )
    programs = [replace(p, shelf=shelf) for p, shelf in zip(programs, shelves, strict=True)]
    same = blob_at(repo, base_tree, "ggml") == blob_at(repo, stack_tree, "ggml")
    if asked.fresh and same:
        shutil.rmtree(shelves[0].folder, ignore_errors=True)  # the stack's alone is filled anew
    base, stack = programs if not asked.base_only else (programs[0], programs[0])
    if same:
        base = replace(base, heard=stack.heard)
    plan = Plan(ALONE if asked.base_only else SIM, None, False, _notes(repo, base_tree, stack_tree))
    stage = SimStage(
        plan,
        base,
        stack,
        ("", ""),
        None,
        room,
        own_jobs,
        asked.limit,
        say,
        quick=quick,
        memo={} if same else None,
    )
    found = examine(stage, want)
    cases, repeated = _settled(stage, found)
    cases = _failing_anyway(stage, cases, None if same else base_as_tested, found)
    cases = [_with_errors(case, base, stack) for case in cases]
    whole = frozenset(c.op for c in cases) if want.params is None and not quick else frozenset()
    judged, stale = knownfail.apply(entries, cases, whole)
    table, new = _faults(asked, base, stack, base_built, stack_built)
    problems = list(dict.fromkeys([*found.problems, *stale, *new]))
    totals = evidence.count(judged)
    if judged and not problems and not totals["passed"] + totals["failed"]:
        problems.append(f"none of the {len(judged)} selected cases is supported")
    notes = [*plan.notes, *found.notes]
    if repeated:
        notes.append(f"{repeated} cases were repeated with other seeds, to tell flaky from failing")
    for shelf, side in zip(shelves, ("base", "stack"), strict=True):
        notes += simkept.note(shelf, side)
    report = Report(
        target=target,
        base_tree=base_tree,
        stack_tree="" if asked.base_only else stack_tree,
        ops=("quick",) if quick else want.entries,
        params=want.params,
        totals=totals,
        cases=judged,
        per_op=evidence.per_op(judged),
        notes=tuple(dict.fromkeys(notes)),
        limits=(_MODEL, LIMITS[SIM], TOLERANCE),
        problems=tuple(problems),
        seconds=round(time.monotonic() - began, 1),
        tools=tools,
        reference=REFERENCE[SIM],
        simulated=f"{device.name}: {device.summary}",
        faults=table,
    )
    shutil.rmtree(room, ignore_errors=True)
    reportfile.settle(file, report)
    return report


def _room(scratch: Path, target: str) -> Path:
    """A folder of this run alone: a process of a killed one may still write into that one's."""
    for old in scratch.glob(f"{target}-*"):
        shutil.rmtree(old, ignore_errors=True)
    return scratch / f"{target}-{os.getpid()}-{time.time_ns():x}"


def _notes(repo: Repo, base: str, stack: str) -> tuple[str, ...]:
    """What the stack changes that this target does not show, or can't tell apart."""
    if base == stack:
        return ()
    notes = []
    if blob_at(repo, base, "ggml") == blob_at(repo, stack, "ggml"):
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
    return replace(case, base_error=_finite(there), stack_error=_finite(here))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _faults(
    asked: Asked, base: SimProgram, stack: SimProgram, base_built: SimBuilt, stack_built: SimBuilt
) -> tuple[tuple[evidence.FaultRow, ...], list[str]]:
    """The faults of both sides, and those that only the stack has."""
    if not asked.checks:
        return (), []
    there = faults.Side(base.heard.faults, (base_built.dsp, base_built.runtime))
    here = faults.Side(stack.heard.faults, (stack_built.dsp, stack_built.runtime))
    found = faults.rows(there, None if asked.base_only else here)
    sides = {"base": base.heard.silent, "stack": 0 if asked.base_only else stack.heard.silent}
    lost = [
        f"{side}: {count} processes left no report of their faults (is the disk full?)"
        for side, count in sides.items()
        if count
    ]
    return tuple(found), lost if asked.base_only else [*lost, *faults.new_faults(found)]
