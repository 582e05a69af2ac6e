"""Reads what upstream's test-backend-ops prints, and what its -o option means. Pure functions.

`parse` takes the console output of every generation of the program, whole or cut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

OK, FAIL, UNSUPPORTED = "OK", "FAIL", "UNSUPPORTED"
CRASH, TIMEOUT, UNKNOWN = "CRASH", "TIMEOUT", "UNKNOWN"
BAD = (FAIL, CRASH, TIMEOUT)
_WORST = (OK, UNSUPPORTED, FAIL, TIMEOUT, CRASH)

# What a comparison prints. It comes before its case on the same line and, with -j, isn't locked
# to it: it can follow the colon, or stand before another worker's case.
_ERROR = (
    r"(?:\[[A-Za-z0-9_+]+\] (?:(?:ERR|NMSE|MAA) = \S+ > \S+ "
    r"|NaN at index \d+ \([^)]*\) |inf(?: sign)? mismatch: \S+ \S+ "
    r"|nonfinite gradient at index \d+ \([^)]*\) )"
    r"|sentinel mismatch: \S+ |compare failed |failed to allocate (?:weight )?tensors \[[^\]]*\] )"
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_CASE = re.compile(
    rf"^(?P<before>(?:{_ERROR})*)(?P<junk>.*?)  (?P<op>[A-Z][A-Z0-9_+]*)\((?P<params>.*)\): "
    rf"(?P<between>(?:{_ERROR})*)(?P<status>OK|FAIL|SUPPORTED|NOT SUPPORTED|not supported"
    rf"(?: \[[^\]]*\] ?)?)(?P<after>(?:{_ERROR})*)$"
)
_HEAD = re.compile(r"^Backend (\d+)/(\d+): (.+)$")
_DEVICES = re.compile(r"^Testing (\d+) (?:devices|backends)$")
_SUM = re.compile(r"^((?:" + _ERROR + r")*)  (\d+)/(\d+) tests passed$")
_STATE = re.compile(r"^  Backend (.+): (OK|FAIL)$")
_END = re.compile(r"^(\d+)/(\d+) backends passed$")
_OPEN = re.compile(r"  ([A-Z][A-Z0-9_+]*\(.*\)): ?$")
_NAMED = re.compile(r"^  ([A-Z][A-Z0-9_+]*)\((.*)\)$")
_STATUS = {"OK": OK, "FAIL": FAIL, "SUPPORTED": OK}


@dataclass(frozen=True)
class CaseResult:
    """One case on one device: OK, FAIL, UNSUPPORTED; after a search also CRASH or TIMEOUT."""

    op: str
    params: str
    status: str
    error: str = ""

    @property
    def name(self) -> str:
        """The text by which -o selects it."""
        return f"{self.op}({self.params})"


@dataclass(frozen=True)
class Block:
    """What one device printed. `skipped` is the reason given; counts are None where cut off."""

    index: int
    count: int
    name: str
    skipped: str = ""
    cases: tuple[CaseResult, ...] = ()
    passed: int | None = None
    total: int | None = None
    ok: bool | None = None


@dataclass(frozen=True)
class Run:
    """A whole output. `leftovers` are lines that were not understood."""

    devices: int | None
    blocks: tuple[Block, ...]
    ok: bool | None
    truncated: bool
    usage: bool
    leftovers: tuple[str, ...]
    unfinished: str = ""  # the last case, printed without its status


class _Reader:
    def __init__(self) -> None:
        self.devices: int | None = None
        self.blocks: list[Block] = []
        self.head: tuple[int, int, str] | None = None
        self.skipped = ""
        self.cases: list[CaseResult] = []
        self.failing: list[tuple[str, str]] = []
        self.in_list = False
        self.sums: tuple[int | None, int | None] = (None, None)
        self.state: bool | None = None
        self.loose = ""  # error text not yet given to a failing case
        self.ended = False
        self.ok: bool | None = None
        self.leftovers: list[str] = []

    def close(self) -> None:
        if self.head is not None:
            failed = {(c.op, c.params) for c in self.cases if c.status == FAIL}
            # tensors that could not be allocated fail without a result line
            for op, params in self.failing:
                if (op, params) not in failed:
                    text = self.loose or "failed, and printed no result line"
                    self.cases.append(CaseResult(op, params, FAIL, text.strip()))
            self.blocks.append(
                Block(*self.head, self.skipped, tuple(self.cases), *self.sums, self.state)
            )
        self.head, self.skipped, self.cases, self.failing = None, "", [], []
        self.in_list, self.sums, self.state, self.loose = False, (None, None), None, ""

    def line(self, text: str) -> None:
        if self.ended and text in ("OK", "FAIL"):
            self.ok = text == "OK"
        elif found := _HEAD.match(text):
            self.close()
            self.head = (int(found[1]), int(found[2]), found[3])
        elif found := _DEVICES.match(text):
            self.devices = int(found[1])
        elif _END.match(text):
            self.close()
            self.ended = True
        elif self.head is not None and self.inside(text):
            pass
        elif text.strip():
            self.leftovers.append(text)

    def inside(self, text: str) -> bool:
        if found := _CASE.match(text):
            self.case(found)
        elif found := _SUM.match(text):
            self.sums = (int(found[2]), int(found[3]))
        elif found := _STATE.match(text):
            self.state = found[2] == "OK"
        elif text == "Failing tests:":
            self.in_list = True
        elif self.in_list and (found := _NAMED.match(text)):
            self.failing.append((found[1], found[2]))
        elif text.startswith("  Skipping"):
            self.skipped = text.strip()
        elif not text.startswith(("  Device description:", "  Device memory:")):
            return False
        return True

    def case(self, found: re.Match[str]) -> None:
        status = _STATUS.get(found["status"], UNSUPPORTED)
        self.loose += found["before"] + found["between"] + found["after"]
        if found["junk"].strip():
            self.leftovers.append(found["junk"])
        error = ""
        if status == FAIL:
            error, self.loose = self.loose.strip(), ""
        self.cases.append(CaseResult(found["op"], found["params"], status, error))


def parse(data: bytes) -> Run:
    """Take the console output of test or support mode apart, also when it is cut off."""
    reader = _Reader()
    text = _ANSI.sub("", data.decode("utf-8", "replace"))
    lines = text.split("\n")
    usage = any(line.startswith("Usage: ") for line in lines[:3])
    for line in [] if usage else lines:
        reader.line(line.rstrip("\r"))
    reader.close()
    unfinished = _OPEN.search(lines[-1]) if lines else None
    return Run(
        reader.devices,
        tuple(reader.blocks),
        reader.ok,
        truncated=reader.ok is None and not usage,
        usage=usage,
        leftovers=tuple(t for t in reader.leftovers if unfinished is None or t != lines[-1]),
        unfinished=unfinished[1] if unfinished else "",
    )


def by_name(cases: Iterable[CaseResult]) -> dict[str, CaseResult]:
    """Cases by their text. Upstream lists some twice: the worse result of equal texts counts."""
    found: dict[str, CaseResult] = {}
    for case in cases:
        held = found.get(case.name)
        if held is None or _WORST.index(case.status) > _WORST.index(held.status):
            found[case.name] = case
    return found


# -- selection ---------------------------------------------------------------------------


def entries(ops: Sequence[str]) -> list[str]:
    """Split -o values at commas, but not inside the parentheses of a complete case."""
    return [
        e.strip() for value in ops for e in re.findall(r"(?:\([^)]*\)|[^,(])+", value) if e.strip()
    ]


def op_of(name: str) -> str:
    """The op of a complete case string."""
    return name.split("(", 1)[0]


@dataclass(frozen=True)
class Unit:
    """What is run together: one op, whole or only some of its cases."""

    op: str
    cases: tuple[str, ...] = ()

    @property
    def only(self) -> str:
        """The value for -o."""
        return ",".join(self.cases) or self.op


def select(asked: Sequence[str], known: Mapping[str, object]) -> tuple[list[Unit], list[str]]:
    """Expand -o entries against known op names; also the entries that select nothing.

    Regexes are expanded here, so they work for trees whose test program takes exact names only.
    A name that isn't known is kept: the list of cases need not be complete.
    """
    whole: dict[str, None] = {}
    single: dict[str, dict[str, None]] = {}
    wrong = []
    for entry in entries(asked):
        if "(" in entry:
            single.setdefault(op_of(entry), {})[entry] = None
        elif re.fullmatch(r"[A-Z0-9_]+", entry):
            whole[entry] = None
        else:
            try:
                found = [op for op in known if re.search(entry, op)]
            except re.error as e:
                wrong.append(f"-o {entry}: not a valid regex ({e})")
                continue
            if not found:
                wrong.append(f"-o {entry}: matches no op of this tree")
            whole.update(dict.fromkeys(found))
    units = [Unit(op) for op in whole]
    units += [Unit(op, tuple(cases)) for op, cases in single.items() if op not in whole]
    return units, wrong
