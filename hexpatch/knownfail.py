"""Failures that are expected on a device model, each with its reason.

An entry is a claim about the base: the cases it names fail there. One that no longer fails is an
error, so that the list can't outlive its reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from hexpatch import catalogue
from hexpatch.errors import HexpatchError, InvalidSeries
from hexpatch.evidence import FAILED, FLAKY, KNOWN, LOST, STILL, UNKNOWN, CaseVerdict
from hexpatch.seriesrules import OP, like
from hexpatch.tbo import BAD, OK, UNSUPPORTED
from hexpatch.yamltree import Node, Reader, read

FILE = Path(__file__).parent / "sim" / "known-failures.yaml"
_KEYS = ("target", "op", "params", "since", "until", "count", "env", "reason")
_NEEDED = ("target", "op", "reason")


@dataclass(frozen=True)
class Entry:
    """Cases of an op that fail on targets, for bases between two snapshots (both included).

    `count` says how many, where the whole op is run. `env` are settings under which it holds.
    """

    target: str
    op: str
    params: str
    reason: str
    since: str
    until: str
    count: int | None
    env: tuple[str, ...]
    place: str

    def names(self, case: CaseVerdict) -> bool:
        """Whether it speaks of a case."""
        return case.op == self.op and re.search(self.params, case.params) is not None

    def __str__(self) -> str:
        return f"{self.op}({self.params})" if self.params else self.op


def load(path: Path = FILE) -> tuple[Entry, ...]:
    """All entries of a file, or InvalidSeries with every fault and its place."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise HexpatchError(f"cannot read {path}: {error.strerror}") from None
    document, problems = read(data, path.name)
    entries: list[Entry] = []
    if document is not None:
        reader = Reader(path.name, problems)
        fields = reader.fields(document.root, "the file", ("version", "failures"))
        for node in reader.items(fields.get("failures"), "failures"):
            entry = _entry(reader, node, path.name)
            if entry is not None:
                entries.append(entry)
    if problems:
        raise InvalidSeries(tuple(problems))
    return tuple(entries)


def _entry(reader: Reader, node: Node, name: str) -> Entry | None:
    before = len(reader.problems)
    fields = reader.fields(node, "a failure", _KEYS)
    for key in _NEEDED:
        if key not in fields:
            reader.fault(node, f"{key} is missing")
    known = {entry.name for entry in catalogue.entries()}

    def text(key: str) -> str:
        rule = {
            "op": like(OP),
            "count": like(re.compile("[1-9][0-9]*")),
            "params": _regex_fault,
            "since": lambda t: None if t in known else "is no snapshot's name",
            "until": lambda t: None if t in known else "is no snapshot's name",
        }.get(key)
        return reader.text(fields[key], key, rule) if key in fields else ""

    texts = {key: text(key) for key in _KEYS if key != "env"}
    env = tuple(reader.texts(fields.get("env"), "env"))
    if len(reader.problems) > before:
        return None
    return Entry(
        target=texts["target"],
        op=texts["op"],
        params=texts["params"],
        reason=texts["reason"],
        since=texts["since"],
        until=texts["until"],
        count=int(texts["count"]) if texts["count"] else None,
        env=env,
        place=f"{name}:{node.start.line}",
    )


def _regex_fault(text: str) -> str | None:
    try:
        re.compile(text)
    except re.error as error:
        return f"is not a regex ({error})"
    return None


def applying(
    entries: Iterable[Entry], target: str, base_tree: str, env: Mapping[str, str]
) -> list[Entry]:
    """Entries for a target and base. A tree that no registry holds counts as the newest."""
    order = [entry.name for entry in catalogue.entries()]
    trees = [entry.tree for entry in catalogue.entries()]
    at = trees.index(base_tree) if base_tree in trees else len(trees)
    settings = {f"{key}={value}" for key, value in env.items()}
    return [
        e
        for e in entries
        if any(fnmatchcase(target, glob.strip()) for glob in e.target.split(","))
        and (not e.since or order.index(e.since) <= at)
        and (not e.until or at <= order.index(e.until))
        and settings == set(e.env)
    ]


def apply(
    entries: Sequence[Entry],
    cases: Sequence[CaseVerdict],
    whole: frozenset[str] = frozenset(),
) -> tuple[tuple[CaseVerdict, ...], list[str]]:
    """Cases with what is known of them, and the entries that don't hold any more.

    `whole` are the ops of which every case was run. A known failure that the stack refuses, so that
    another device computes it, is no loss.
    """
    return tuple(_known(case, entries) for case in cases), _stale(entries, cases, whole)


def _stale(
    entries: Sequence[Entry], cases: Sequence[CaseVerdict], whole: frozenset[str]
) -> list[str]:
    """Entries that name no case that fails, or not as many as they say."""
    problems = []
    for entry in entries:
        ran = [c for c in cases if entry.names(c) and c.base in (OK, *BAD)]
        count = sum(c.base in BAD for c in ran)
        if ran and not count:
            problems.append(
                f"{entry.place}: {entry} no longer fails at the base ({len(ran)} cases pass): "
                "remove the entry"
            )
        elif entry.count is not None and entry.op in whole and count != entry.count:
            problems.append(
                f"{entry.place}: {entry}: {count} cases fail at the base, the entry says "
                f"{entry.count}"
            )
    return problems


def _known(case: CaseVerdict, entries: Sequence[Entry]) -> CaseVerdict:
    """The case, known if an entry names it and it fails as the entry says."""
    reason = next((e.reason for e in entries if e.names(case)), None)
    failed = case.verdict in (FAILED, STILL, FLAKY) and case.base in BAD
    late = case.verdict == UNKNOWN and case.base in BAD and case.stack in BAD
    added = case.verdict == STILL and case.base is None
    refused = case.verdict == LOST and case.base in BAD and case.stack == UNSUPPORTED
    if reason is None or not (failed or late or added or refused):
        return case
    return replace(case, verdict=KNOWN, error=f"{case.error}; {reason}" if case.error else reason)
