"""Compares what test-backend-ops says of the base and of the stack, case by case.

Target `cpu` loads the stack's CPU backend as a second device into the pristine build, so each of
its results is compared with upstream's own code: a device compared with itself is always right.
"""

from __future__ import annotations

import functools
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hexpatch import build as builder
from hexpatch import evidence, reportfile, tbo
from hexpatch.asked import Asked
from hexpatch.build import CPU_LIBRARY, STACK_TEST, TEST, TEST_SOURCE, Built
from hexpatch.compare import (
    ALONE,
    HOST,
    LIMITS,
    PRISTINE,
    REFERENCE,
    TOLERANCE,
    Plan,
    alone,
    compare,
    plan_for,
    renamed,
)
from hexpatch.errors import HexpatchError
from hexpatch.evidence import CaseVerdict, Report
from hexpatch.repo import Repo
from hexpatch.tbo import CRASH, FAIL, OK, TIMEOUT, UNKNOWN, UNSUPPORTED, CaseResult, Unit
from hexpatch.tborun import Gatherer, Listing, Program, Results, list_cases, probe, solo, units_of

Say = Callable[[str], None]

TARGET = "cpu"
# quick: about 4 minutes for both devices on two cores. These alone take as long as all others.
SLOW = (
    "FLASH_ATTN_EXT",
    "LIGHTNING_INDEXER",
    "MUL_MAT_ID",
    "MUL_MAT_ID_FUSION",
    "MUL_MAT_VEC_FUSION",
)
QUICK_ATTENTION = "hs[kv]=(64|128),hsv=(64|128),.*type_K=(f16|q8_0),"


# -- runs --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wanted:
    """What to select: -o entries (or the words quick, all) with one -p."""

    entries: tuple[str, ...]
    params: str | None

    def nothing(self, entry: str | None = None) -> str:
        """The problem that it, or one entry of it, selects nothing."""
        given = f" with -p {self.params}" if self.params is not None else ""
        return f"empty selection: no case matches -o {entry or ','.join(self.entries)}{given}"


def wanted(ops: Sequence[str], default: Sequence[str], params: str | None) -> list[Wanted]:
    """What the user asked for, else what the patches say they affect, else the quick set."""
    asked = tuple(tbo.entries(ops)) or tuple(tbo.entries(default)) or ("quick",)
    found = [Wanted(asked, params)]
    if "quick" in asked and params is None:
        found.append(Wanted(("FLASH_ATTN_EXT",), QUICK_ATTENTION))
    return found


def expand(entries: Sequence[str], known: Iterable[str]) -> tuple[list[Unit], list[str]]:
    """Units for -o entries, and what is wrong with them; quick and all stand for op names."""
    listed = list(known)
    names: list[str] = []
    for entry in entries:
        if entry in ("quick", "all"):
            names += [op for op in listed if entry == "all" or op not in SLOW]
        else:
            names.append(entry)
    return tbo.select(names, dict.fromkeys(listed))


@dataclass(frozen=True)
class Stage:
    """The programs of one validation, and how they are run."""

    plan: Plan
    base: Program  # the base alone
    stack: Program  # what the stack is judged by; the base's program where only that is judged
    sources: tuple[str, ...]  # test-backend-ops.cpp of both
    library: Path | None  # the stack's CPU backend, to run it against itself
    scratch: Path
    jobs: int
    timeout: float
    say: Say

    def gatherer(self, program: Program, listing: Listing, params: str | None) -> Gatherer:
        """A runner for one program."""
        return Gatherer(program, listing.ops, params, self.jobs, self.timeout, self.say)

    def listing(self, program: Program, params: str | None, source: str) -> Listing:
        """The cases a program knows."""
        return list_cases(program, params, source)


@dataclass
class Finding:
    """Results of both sides so far, and what is to be said about them."""

    base: dict[str, CaseResult] = field(default_factory=dict)
    stack: dict[str, CaseResult] = field(default_factory=dict)
    verdicts: list[CaseVerdict] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def hear(self, results: Results, side: str) -> None:
        """What went wrong, and what else is to be said of a side's runs."""
        self.problems += results.problems
        self.notes += [f"{side}: {note}" for note in results.notes]


def examine(stage: Stage, want: Wanted) -> Finding:
    """Run one selection on both sides and compare."""
    found = Finding()
    try:
        there = stage.listing(stage.base, want.params, stage.sources[0])
        here = there
        if stage.stack.exe != stage.base.exe:
            here = stage.listing(stage.stack, want.params, stage.sources[1])
        found.notes += [there.plumbing] if there.plumbing and want.params is None else []
        units, wrong = expand(want.entries, {**there.known(), **here.known()})
        found.problems += wrong
        if units:
            _run(stage, want, units, (there, here), found)
        elif not wrong:
            found.problems.append(want.nothing())
    except HexpatchError as e:
        found.problems.append(e.message)
    return found


def _run(
    stage: Stage,
    want: Wanted,
    units: Sequence[Unit],
    lists: tuple[Listing, Listing],
    found: Finding,
) -> None:
    there, here = lists
    results = stage.gatherer(stage.stack, here, want.params).gather(units)
    found.hear(results, "base" if stage.plan.mode == ALONE else "stack")
    whole = {unit.op for unit in units if not unit.cases}
    single = {name for unit in units for name in unit.cases}
    old = [n for n in there.cases() if tbo.op_of(n) in whole or n in single]
    new = [n for n in here.cases() if tbo.op_of(n) in whole or n in single]
    pairs = renamed(set(old) - set(new), [n for n in new if n not in set(old)])
    mode = stage.plan.mode
    if mode == ALONE:
        found.base = results.blocks[0]
    elif mode == PRISTINE:
        _second_device(stage, want.params, results.blocks, found)
        if stage.plan.own_test is not None:
            _as_listed(found, pairs, there, here)
            gone = [n for n in old if n not in found.base]
            _base_run(stage, want.params, units_of(gone), there, found)
    else:
        found.stack = results.blocks[0]
        if mode == HOST:
            _against_base(found, results.blocks[1])
        _base_run(stage, want.params, units, there, found)
    _complete(found.base, old, found, "base")
    if mode != ALONE:
        _complete(found.stack, new, found, "stack")
    ran = {**found.base, **found.stack}
    ops = {tbo.op_of(name) for name in ran}
    for entry in tbo.entries(want.entries):
        known = ran if "(" in entry else ops
        if re.fullmatch(r"[A-Z0-9_]+(?:\(.*)?", entry) and entry not in known:
            found.problems.append(want.nothing(entry))
    found.verdicts = alone(found.base) if mode == ALONE else compare(found.base, found.stack, pairs)


def _second_device(
    stage: Stage, params: str | None, blocks: Sequence[dict[str, CaseResult]], found: Finding
) -> None:
    """Base and stack from the two devices; where the base can't be the reference, the stack is."""
    base, stack = blocks
    dead = [n for n, c in base.items() if c.status in (CRASH, TIMEOUT) and n not in stack]
    idle = [n for n, c in stack.items() if UNSUPPORTED == c.status == base.get(n, c).status]
    if stage.library is not None and (dead or (idle and stage.plan.library_differs)):
        itself = solo(stage.stack, stage.library, stage.scratch / "solo")
        listing = list_cases(itself, params)
        mine = listing.cases()
        idle = [n for n in idle if n in listing.supported or n not in mine]
        ask = units_of([*dead, *(idle if stage.plan.library_differs else ())])
        results = stage.gatherer(itself, listing, params).gather(ask)
        found.hear(results, "stack")
        alone_ran = {n: c for n, c in results.blocks[0].items() if c.status != UNSUPPORTED}
        stack.update(results.blocks[0])
        if alone_ran:
            found.notes.append(
                f"{len(alone_ran)} cases that the base crashes on or does not support were "
                "compared with the stack itself"
            )
    found.base, found.stack = base, stack
    _complete(stack, base, found, "stack")


def _as_listed(found: Finding, pairs: Mapping[str, str], there: Listing, here: Listing) -> None:
    """Drop base results of cases that only the stack's test file has; use the base's texts."""
    old = there.cases()
    for name in list(found.base):
        if name in pairs:
            found.base[pairs[name]] = found.base.pop(name)
        elif name not in old and (name in here.cases() or there.plumbing):
            case = found.base.pop(name)
            held = found.stack.get(name)
            if held is not None and not held.error and case.status in tbo.BAD:
                found.stack[name] = replace(held, error=f"base's library: {case.status}")


def _against_base(found: Finding, other: Mapping[str, CaseResult]) -> None:
    """A result that is right by the stack, and not what the base's CPU backend gives, failed.

    Where that one gives none, the stack was its own judge: then that is said.
    """
    for name, case in other.items():
        held = found.stack.get(name)
        if case.status == FAIL and held is not None and held.status == OK:
            error = f"differs from the base's CPU backend: {case.error}"
            found.stack[name] = replace(held, status=FAIL, error=error)
    right = [n for n, case in found.stack.items() if case.status == OK]
    none = [n for n in right if n not in other or other[n].status not in (OK, FAIL)]
    if none:
        found.notes.append(
            f"{len(none)} cases have no result of the base's CPU backend in the stack's library, "
            f"as {none[0]}: they were compared with the stack itself"
        )


def _base_run(
    stage: Stage, params: str | None, units: Sequence[Unit], there: Listing, found: Finding
) -> None:
    """The base's own cases on the base alone."""
    if units:
        results = stage.gatherer(stage.base, there, params).gather(units)
        found.hear(results, "base")
        found.base.update(results.blocks[0])


def _complete(
    side: dict[str, CaseResult], expected: Iterable[str], found: Finding, whose: str
) -> None:
    """Cases that should have a result and have none are unknown, which is never green."""
    lacking = [name for name in expected if name not in side]
    for name in lacking:
        op = tbo.op_of(name)
        side[name] = CaseResult(op, name[len(op) + 1 : -1], UNKNOWN)
    if lacking:
        found.problems.append(f"{whose}: {len(lacking)} cases have no result, as {lacking[0]}")


def unsupported(cases: Sequence[CaseVerdict], problems: Sequence[str]) -> list[str]:
    """The problem that nothing could be judged, where no other problem says why."""
    totals = evidence.count(cases)
    if problems or not cases or totals["passed"] + totals["failed"]:
        return []
    return [f"none of the {len(cases)} selected cases is supported"]


# -- the whole ---------------------------------------------------------------------------


def validate(
    repo: Repo,
    state: Path,
    base_tree: str,
    stack_tree: str,
    asked: Asked,
    *,
    default_ops: Sequence[str] = (),
    say: Say,
) -> Report:
    """Build what is needed, run, compare. A complete result is kept and answered from then on."""
    began = time.monotonic()
    stack_tree = base_tree if asked.base_only else stack_tree
    plan = (
        Plan(ALONE, None, False, ()) if asked.base_only else plan_for(repo, base_tree, stack_tree)
    )
    chosen = ("quick",) if asked.quick else ("all",) if asked.full else asked.ops
    wants = wanted(chosen, default_ops, asked.params)
    tools = builder.tools().lines()
    question = [plan.mode, [[w.entries, w.params] for w in wants], vars(builder.tools())]
    harness = (builder.HARNESS / "CMakeLists.txt").read_text()
    key = reportfile.key(base_tree, stack_tree, question, harness)
    name = f"{base_tree[:12]}-{stack_tree[:12]}-{key[:16]}.json"
    file = state.resolve() / "results" / TARGET / name
    if not asked.fresh and (kept := reportfile.take(file)):
        return kept
    make = functools.partial(builder.build, repo, state, target=TARGET, jobs=asked.jobs, say=say)
    base, program, library = _programs(make, plan, base_tree, stack_tree)
    texts = tuple(
        repo.git("cat-file", "blob", f"{tree}:{TEST_SOURCE}").decode("utf-8", "replace")
        for tree in (base_tree, stack_tree)
    )
    workers = asked.jobs or builder.cores()
    scratch = builder.tree_dir(state.resolve(), TARGET, base_tree)
    stage = Stage(plan, base, program, texts, library, scratch, workers, asked.limit, say)
    findings = [examine(stage, want) for want in wants]
    cases = tuple({(v.op, v.params): v for f in findings for v in f.verdicts}.values())
    problems = list(dict.fromkeys(p for f in findings for p in f.problems))
    report = Report(
        target=TARGET,
        base_tree=base_tree,
        stack_tree="" if asked.base_only else stack_tree,
        ops=wants[0].entries,
        params=asked.params,
        totals=evidence.count(cases),
        cases=cases,
        per_op=evidence.per_op(cases),
        notes=tuple(dict.fromkeys((*plan.notes, *(n for f in findings for n in f.notes)))),
        limits=(LIMITS[plan.mode], TOLERANCE),
        problems=(*problems, *unsupported(cases, problems)),
        seconds=round(time.monotonic() - began, 1),
        tools=tools,
        reference=REFERENCE[plan.mode],
    )
    reportfile.settle(file, report)
    return report


def _programs(
    make: Callable[..., Built], plan: Plan, base_tree: str, stack_tree: str
) -> tuple[Program, Program, Path | None]:
    """Build: the base's program, the one the stack is judged by, and the stack's library."""
    if plan.mode != PRISTINE:
        base = make(base_tree)
        alone_program = probe(base.bin / TEST)
        if plan.mode == ALONE:
            return alone_program, alone_program, None
        stack = make(stack_tree)
        second = base.bin / CPU_LIBRARY if plan.mode == HOST else None
        return alone_program, probe(stack.bin / TEST, second), None
    base = make(base_tree, stack_test=plan.own_test)
    if plan.library_differs:
        library = make(stack_tree, library_only=True).bin / CPU_LIBRARY
    else:  # a copy, because the loader takes the same file for the same library
        library = base.dir / "second" / CPU_LIBRARY
        library.parent.mkdir(exist_ok=True)
        shutil.copy2(base.bin / CPU_LIBRARY, library)
    name = STACK_TEST if plan.own_test else TEST
    return probe(base.bin / TEST), probe(base.bin / name, library), library
