"""Tells a failing case from one that fails with some inputs only, by repeating it with other seeds.

Base and stack get the same seeds, and with a seed a case has the same inputs on both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from hexpatch import evidence
from hexpatch.evidence import CaseVerdict
from hexpatch.tbo import FAIL, OK, CaseResult

SEEDS = (1, 2, 3, 4, 5)  # the first is that of the whole run
MOST = 100  # cases repeated
_ERR = re.compile(r"(?:ERR|NMSE|MAA) = (\S+) > (\S+)")

# Results of some cases with a seed.
Again = Callable[[Sequence[str], int], dict[str, CaseResult]]


def nearness(case: CaseVerdict) -> float:
    """How many times the limit a failing case's error is: near the limit, chance decides."""
    found = _ERR.search(case.error)
    if found is None:
        return float("inf")
    try:
        return float(found[1]) / float(found[2])
    except (ValueError, ZeroDivisionError):
        return float("inf")


def suspects(cases: Iterable[CaseVerdict], *, alone: bool) -> list[CaseVerdict]:
    """Cases worth another look: one side fails and the other does not, or fails at the base alone.

    Those nearest to their limit first; a crash or a time-out is no matter of inputs.
    """
    found = [
        case
        for case in cases
        if (alone and case.base == FAIL and case.verdict == evidence.FAILED)
        or (not alone and {case.base, case.stack} == {OK, FAIL})
        or (not alone and case.base is None and case.stack == FAIL)
    ]
    return sorted(found, key=nearness)[:MOST]


def verdict(base: int | None, stack: int | None, seeds: int) -> str:
    """The verdict of a case that failed so many times of `seeds`; None where it was not run.

    Worse in most runs than a base that never fails (or has no such case) is broken, the reverse is
    fixed; a case that
    fails always or never on both sides is what it seems; the rest is flaky.
    """
    if stack is None:
        return evidence.FAILED if base == seeds else evidence.FLAKY
    if base is None:
        return evidence.BROKEN if 2 * stack > seeds else evidence.FLAKY
    if base == stack == seeds:
        return evidence.STILL
    if base == 0 and 2 * stack > seeds:
        return evidence.BROKEN
    if stack == 0 and 2 * base > seeds:
        return evidence.FIXED
    return evidence.FLAKY if base or stack else evidence.PASSED


def settle(
    cases: Sequence[CaseVerdict],
    base: Again,
    stack: Again | None,
    base_names: Callable[[CaseVerdict], str | None],
) -> tuple[list[CaseVerdict], int]:
    """The cases with suspects judged by all seeds, and how many those were.

    `base_names` gives a case's text at the base: the stack may have added a parameter.
    """
    doubtful = suspects(cases, alone=stack is None)
    fails: dict[CaseVerdict, list[int | None]] = {
        case: [
            None if case.base is None else int(case.base == FAIL),
            None if stack is None else int(case.stack == FAIL),
        ]
        for case in doubtful
    }
    for seed in SEEDS[1:] if doubtful else ():
        for side, again in enumerate((base, stack)):
            if again is None:
                continue
            names = {
                case: base_names(case) if side == 0 else f"{case.op}({case.params})"
                for case in doubtful
            }
            results = again([n for n in names.values() if n], seed)
            for case, name in names.items():
                held = fails[case][side]
                if held is not None and name is not None and name in results:
                    fails[case][side] = held + int(results[name].status != OK)
    return [_judged(case, fails.get(case)) for case in cases], len(doubtful)


def _judged(case: CaseVerdict, fails: Sequence[int | None] | None) -> CaseVerdict:
    if fails is None:
        return case
    base, stack = fails
    found = verdict(base, stack, len(SEEDS))
    sides = [f"{n} {name}" for name, n in (("base", base), ("stack", stack)) if n is not None]
    text = f"fails with how many of {len(SEEDS)} seeds: {', '.join(sides)}"
    return replace(case, verdict=found, error=f"{case.error}; {text}" if case.error else text)
