"""Where verdicts are kept: complete ones, to be answered from, and a page for each question."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

from hexpatch import evidence, workspace
from hexpatch.evidence import Report
from hexpatch.tbo import TIMEOUT

# What verdicts follow from, in this package: what other code has judged is judged again.
_JUDGES = (
    *("compare", "evidence", "faults", "knownfail", "simflaky", "simkept", "simrun"),
    *("simvalidate", "tbo", "tborun", "validate"),
)


def key(*asked: object) -> str:
    """Of an answer: it holds for the same question to the same code."""
    judges = [(Path(__file__).parent / f"{name}.py").read_text("utf-8") for name in _JUDGES]
    return hashlib.sha256(json.dumps([judges, *asked]).encode()).hexdigest()


def take(file: Path) -> Report | None:
    """The report kept there, if there is one that this version can read."""
    with contextlib.suppress(OSError, ValueError):
        return replace(evidence.from_json(file.read_text()), cached=True)
    return None


def settle(file: Path, report: Report) -> None:
    """Keep a complete result; an incomplete one takes away what an earlier run gave."""
    if report.problems or any(TIMEOUT in (c.base, c.stack) for c in report.cases):
        file.unlink(missing_ok=True)
    else:
        workspace.write_atomic(file, evidence.to_json(report).encode())


def publish(folder: Path, report: Report, title: str) -> Path:
    """The page of a report, with the JSON beside it: one pair for the trees and what was asked."""
    page = folder / f"{report.base_tree[:12]}-{report.stack_tree[:12]}-{_asked(report)}.html"
    workspace.write_atomic(page, evidence.to_html(report, title).encode())
    workspace.write_atomic(page.with_suffix(".json"), evidence.to_json(report).encode())
    return page


def _asked(report: Report) -> str:
    """Readable as far as a file name goes, and different for different questions."""
    asked = [*report.ops, *filter(None, [report.params]), *report.settings]
    words = "-".join(re.findall(r"\w+", " ".join(asked), re.ASCII))
    if words == "-".join(report.ops) and len(words) <= 40:
        return words
    digest = hashlib.sha256(json.dumps([report.ops, report.params, report.settings]).encode())
    return f"{words[:40].rstrip('-')}-{digest.hexdigest()[:8]}"
