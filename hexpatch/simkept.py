"""Keeps what processes of a simulated test program said: an unchanged tree is not run again.

A whole process is kept, under its seed and all its arguments, and not single cases: VTCM and the
heap of a simulated DSP live as long as their process, so a kernel that reads what it never wrote
may give a case another result among other cases. The same arguments run the same cases in the same
order.

    <state>/runs/<target>/<key>/<hash of seed and arguments>.json
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hexpatch import build as builder
from hexpatch import faults, proc
from hexpatch.build import EXPORTED, blob_at, keep
from hexpatch.repo import Repo
from hexpatch.tbo import FAIL, OK, CaseResult, Run
from hexpatch.tborun import Program, judge

FORMAT = 1
_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
MOST = 8  # keys of a target; a key is a tree with the device and the settings it ran under


class Said(NamedTuple):
    """How a process ended, what it printed, and its report and errors."""

    done: proc.Finished
    report: str
    errors: str


@dataclass(frozen=True)
class Shelf:
    """The kept processes of one key; a `fresh` one takes nothing out and replaces what is there."""

    folder: Path
    fresh: bool = False
    checked: bool = False  # a process owes a report of its faults
    seed: int | None = None
    taken: set[str] = field(default_factory=set, compare=False)  # cases that were not run again

    def take(self, program: Program, args: Sequence[str]) -> Said | None:
        """What a process with these arguments said; None where that is not known, or damaged."""
        if self.fresh:
            return None
        with contextlib.suppress(*_DAMAGED):
            said = _read(self._file(args).read_text("utf-8"), args, self.seed)
            if self._sound(program, args, said):
                blocks = judge(program, said.done, args[0]).blocks
                self.taken.update(case.name for block in blocks for case in block.cases)
                return said
        return None

    def put(self, program: Program, args: Sequence[str], said: Said) -> None:
        """Keep a process that came to its end; of a crash, time-out or doubtful run, nothing."""
        with contextlib.suppress(OSError):  # a full disk costs time, not the result
            if self._sound(program, args, said):
                self.folder.mkdir(parents=True, exist_ok=True)
                keep(self._file(args), _packed(args, said, self.seed))
            else:
                self._file(args).unlink(missing_ok=True)

    def _sound(self, program: Program, args: Sequence[str], said: Said) -> bool:
        """Whether it ended by itself, ran cases, and all it should say about them is there."""
        out = judge(program, said.done, args[0])
        told = faults.read(said.report).whole or not self.checked
        ran = any(block.cases for block in out.blocks)
        starved = b"failed to allocate" in said.done.stdout  # by the machine, not by the case
        errors = measured(out.run, said.errors) is not None
        return ran and told and errors and not (out.died or out.problem or starved)

    def _file(self, args: Sequence[str]) -> Path:
        return self.folder / f"{_hashed([self.seed, *args])[:24]}.json"


def _packed(args: Sequence[str], said: Said, seed: int | None) -> dict[str, Any]:
    body = {
        "seed": seed,
        "args": list(args),
        "status": said.done.status,
        "stdout": said.done.stdout.decode("utf-8", "replace"),
        "report": said.report,
        "errors": said.errors,
    }
    return {"format": FORMAT, "sum": _hashed(body), **body}


def _read(text: str, args: Sequence[str], seed: int | None) -> Said:
    """The process again; ValueError where the text is damaged or is another process's."""
    body: dict[str, Any] = json.loads(text)
    known = (body.pop("format"), body.pop("sum"), body["args"], body["seed"])
    if known != (FORMAT, _hashed(body), list(args), seed):
        raise ValueError("not what was kept")
    done = proc.Finished(body["status"], body["stdout"].encode(), b"")
    return Said(done, body["report"], body["errors"])


def measured(run: Run, errors: str) -> list[tuple[CaseResult, float, float]] | None:
    """Cases with their NMSE to the reference and to float64; None where the lines don't fit them.

    A process compares its cases in the order it prints them.
    """
    values = [line.split("\t") for line in errors.splitlines() if line.count("\t") == 2]
    ran = [c for b in run.blocks if not b.skipped for c in b.cases if c.status in (OK, FAIL)]
    if not (len(ran) == len(values) or (run.truncated and len(ran) <= len(values))):
        return None
    return [
        (case, float(nmse), float(exact))
        for case, (nmse, _, exact) in zip(ran, values, strict=False)
    ]


# -- keys --------------------------------------------------------------------------------------


def key(repo: Repo, tree: str, *surroundings: object) -> str:
    """What decides the results of a tree: the parts that are built, the harness, and the rest."""
    parts = [blob_at(repo, tree, path) for path in EXPORTED]
    return _hashed([FORMAT, parts, builder.harness(), *surroundings])[:24]


def open_shelves(top: Path, keys: Sequence[str], *, fresh: bool, checked: bool) -> list[Shelf]:
    """The shelves of these keys; of the other keys below `top` those longest not used go."""
    shelves = [Shelf(top / name, fresh, checked) for name in keys]
    with contextlib.suppress(OSError):
        for shelf in shelves:
            shelf.folder.mkdir(parents=True, exist_ok=True)
            os.utime(shelf.folder)
        _prune(top, {shelf.folder for shelf in shelves})
    return shelves


def _prune(top: Path, used: Iterable[Path]) -> None:
    others = sorted(set(top.iterdir()) - set(used), key=lambda p: p.stat().st_mtime, reverse=True)
    for folder in others[MOST - len(set(used)) :]:
        shutil.rmtree(folder, ignore_errors=True)


def note(shelf: Shelf, side: str) -> list[str]:
    """How much of a side was not run again, for the report."""
    count = len(shelf.taken)
    return [f"{count} cases of the {side} were kept from an earlier run"] if count else []


def _hashed(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
