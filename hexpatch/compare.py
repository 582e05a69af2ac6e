"""How two trees can be compared honestly, and what two results of a case mean together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hexpatch import evidence
from hexpatch.build import TEST_SOURCE, blob_at
from hexpatch.evidence import CaseVerdict
from hexpatch.repo import Repo
from hexpatch.tbo import (
    BAD,
    CRASH,
    FAIL,
    OK,
    TIMEOUT,
    UNKNOWN,
    UNSUPPORTED,
    CaseResult,
    op_of,
)

Cases = Mapping[str, CaseResult]

PRISTINE, HOST, SELF, ALONE, SIM = "pristine", "host", "self", "alone", "sim"
LIMITS = {
    PRISTINE: "reference: the CPU backend of the base",
    HOST: "reference: the stack's own library, with the CPU backends of base and stack in it; a "
    "change that reaches both alike (ggml's base library) shows only in the base's own run",
    SELF: "reference: the stack itself, because the stack changes headers that base and stack "
    "would have to share; a wrong result that is wrong every time passes",
    ALONE: "reference: the base itself; a wrong result that is wrong every time passes",
    SIM: "reference: the CPU backend of the same tree (`validate --target cpu` judges that one)",
}
REFERENCE = {PRISTINE: "base", HOST: "both", SELF: "stack", ALONE: "base", SIM: "cpu"}
TOLERANCE = (
    "a case passes within upstream's tolerance (mostly an error of 1e-7, 5e-4 for MUL_MAT and "
    "FLASH_ATTN_EXT): passing does not mean the same numbers"
)


# -- what the stack changes --------------------------------------------------------------


def kind_of(path: str, status: str, backends: frozenset[str]) -> str:
    """What a changed path is to target cpu: cpu, base, headers, build, test or other."""
    parts = path.split("/")
    if path == TEST_SOURCE:
        return "test"
    if parts[0] != "ggml":
        return "other"
    if parts[1:2] == ["include"]:
        stem = parts[-1].removesuffix(".h")
        if stem == "ggml-cpu":
            return "cpu"
        return "other" if stem in backends or status == "A" else "headers"
    if parts[1:3] == ["src", "ggml-cpu"]:
        return "cpu"
    if parts[1:2] == ["src"] and len(parts) == 3:
        if parts[2] == "CMakeLists.txt":
            return "build"
        if parts[2].endswith(".h"):
            return "cpu" if status == "A" else "headers"
        return "base"
    return "build" if parts[1] in ("CMakeLists.txt", "cmake") else "other"


@dataclass(frozen=True)
class Plan:
    """How to compare two trees honestly, and what that leaves out."""

    mode: str
    own_test: str | None  # blob of the stack's test file, where it differs
    library_differs: bool
    notes: tuple[str, ...]


def plan_for(repo: Repo, base: str, stack: str) -> Plan:
    """Choose the reference by what the stack changes."""
    changes = repo.raw_diff(base, stack)
    sources = repo.git("ls-tree", "-z", "--name-only", base, "--", "ggml/src/")
    sources += repo.git("ls-tree", "-z", "--name-only", stack, "--", "ggml/src/")
    backends = frozenset(p.decode().rsplit("/", 1)[-1] for p in sources.split(b"\0") if p)
    kinds: dict[str, list[str]] = {}
    for change in changes:
        path = change.path.decode("utf-8", "replace")
        kinds.setdefault(kind_of(path, change.status, backends), []).append(path)
    mode = SELF if "headers" in kinds else HOST if "base" in kinds else PRISTINE
    differs = any(kind in kinds for kind in ("cpu", "build", "base", "headers"))
    notes = []
    if not differs:
        notes.append(
            "the stack changes nothing that is built for target cpu: the base's own CPU backend "
            "was loaded a second time"
        )
    if "other" in kinds:
        notes.append(f"changed, but not exercised by target cpu: {_some(kinds['other'])}")
    own_test = None
    if "test" in kinds:
        own_test = blob_at(repo, stack, TEST_SOURCE)
        notes.append("the stack has its own test-backend-ops.cpp; its list of cases was run")
    return Plan(mode, own_test, differs, tuple(notes))


def _some(paths: Sequence[str], most: int = 12) -> str:
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(paths[:most]) + more


# -- verdicts ----------------------------------------------------------------------------


def verdict_of(base: str | None, stack: str | None) -> str:
    """What a case's two statuses mean together.

    A crash or a time-out is worse than a wrong number. A base that did not come to its end in time
    says nothing of a case that fails with the stack.
    """
    if UNKNOWN in (base, stack) or (base == TIMEOUT and stack in BAD):
        return evidence.UNKNOWN
    if stack == OK:
        return evidence.PASSED if base == OK else evidence.FIXED if base in BAD else evidence.NEW
    if stack in BAD:
        same = base == CRASH or base == stack == FAIL
        return evidence.STILL if same else evidence.BROKEN
    if base in (OK, FAIL) or (base is not None and base in BAD and stack is None):
        return evidence.LOST
    return evidence.UNSUPPORTED


def fields(params: str) -> list[str]:
    """Split a case's parameters at commas outside brackets."""
    return re.findall(r"(?:\[[^\]]*\]|[^,\[])+", params)


def renamed(base: Iterable[str], stack: Iterable[str]) -> dict[str, str]:
    """Stack's cases that are a base's case with a parameter added: stack text -> base text.

    A patch that adds a parameter changes the text of every case of an op; nothing is lost by it.
    """
    only_base, only_stack = dict.fromkeys(base), list(stack)
    keys: dict[str, set[str]] = {}
    for name in only_base:
        keys.setdefault(op_of(name), set()).update(_keys(name))
    pairs = {}
    for name in only_stack:
        op = op_of(name)
        if op not in keys:
            continue
        kept = [f for f in fields(name[len(op) + 1 : -1]) if f.split("=")[0] in keys[op]]
        old = f"{op}({','.join(kept)})"
        if old in only_base:
            pairs[name] = old
            del only_base[old]
    return pairs


def _keys(name: str) -> list[str]:
    return [f.split("=")[0] for f in fields(name[len(op_of(name)) + 1 : -1])]


def compare(base: Cases, stack: Cases, pairs: Mapping[str, str]) -> list[CaseVerdict]:
    """Verdicts for all cases: the stack's in its order, then those only the base has."""
    found = []
    for name, case in stack.items():
        before = base.get(pairs.get(name, name))
        status = before.status if before else None
        error = case.error
        if before is not None and before.error and (status == TIMEOUT or not error):
            told = f"base: {before.error}"
            error = f"{error}; {told}" if error else told
        found.append(
            CaseVerdict(
                case.op, case.params, status, case.status, verdict_of(status, case.status), error
            )
        )
    taken = set(pairs.values())
    for name, case in base.items():
        if name not in stack and name not in taken:
            verdict = verdict_of(case.status, None)
            found.append(CaseVerdict(case.op, case.params, case.status, None, verdict, case.error))
    return found


def alone(base: Cases) -> list[CaseVerdict]:
    """Verdicts where only one tree was run."""
    words = {OK: evidence.PASSED, UNSUPPORTED: evidence.UNSUPPORTED, UNKNOWN: evidence.UNKNOWN}
    return [
        CaseVerdict(c.op, c.params, c.status, None, words.get(c.status, evidence.FAILED), c.error)
        for c in base.values()
    ]
