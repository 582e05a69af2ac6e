"""What a person has to check, write and answer for before a pull request: facts and empty boxes.

Upstream forbids machine-written pull request text, so nothing here is prose, ticked or filled in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hexpatch import evidence as records
from hexpatch.tree import Tree

REVIEW_LIMIT = 400  # changed lines; upstream's pace is an hour for 200 to 400
TEMPLATES = (
    b".github/pull_request_template.md",
    b".github/PULL_REQUEST_TEMPLATE.md",
    b"pull_request_template.md",
    b"docs/pull_request_template.md",
)
POLICY = (b"AGENTS.md", b"CONTRIBUTING.md", *TEMPLATES)

_OWN_TEMPLATE = b"""\
## Overview

## Additional information

## Requirements

- I have read and agree with the contributing guidelines
- AI usage disclosure: <!-- mention: YES / NO - if yes, describe how AI was used -->
"""


# -- evidence -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """A recorded result for a tree: where it is, and what it says of itself."""

    name: str
    files: tuple[Path, ...]
    tree: str
    line: str


def evidence(results: Path, trees: Sequence[str]) -> list[Evidence]:
    """Results below a folder that were measured on one of these trees, as JSON with its page."""
    found = []
    for path in sorted(results.rglob("*.json")) if results.is_dir() else ():
        try:
            written = path.read_text("utf-8")
            data = json.loads(written)
        except (OSError, ValueError):
            continue
        tree = data.get("stack_tree") if isinstance(data, dict) else None
        if not isinstance(tree, str) or tree not in trees:
            continue
        page = path.with_suffix(".html")
        files = (path, page) if page.is_file() else (path,)
        name = "-".join(path.relative_to(results).parts)
        found.append(Evidence(name, files, tree, _result(data, written)))
    shown = {(e.tree, e.line) for e in found if len(e.files) > 1}
    return [e for e in found if len(e.files) > 1 or (e.tree, e.line) not in shown]


def _result(data: Mapping[str, Any], written: str) -> str:
    """What was run, and the verdict with what speaks against it."""
    where = f"target {data.get('target', '?')}"
    try:
        report = replace(records.from_json(written), judged="")
    except ValueError:
        return f"{where}: from another version of hexpatch"
    asked = " ".join(f"-o {op}" for op in report.ops)
    asked += f" -p {report.params}" if report.params is not None else ""
    told = records.headline(report)
    told = code(told) if report.problems else told
    return f"{where}, {code(', '.join([asked.strip(), *report.settings]))}: {told}"


def evidence_text(found: Sequence[Evidence], tree: str) -> str:
    """evidence.md: what was measured, on which tree."""
    lines = ["# Evidence", "", f"Tree of this branch: {tree}", ""]
    if not found:
        lines += ["None recorded for this tree. To run the tests: `hexpatch validate`"]
    for item in found:
        where = "this branch" if item.tree == tree else f"the whole stack, tree {item.tree}"
        lines.append(f"- evidence/{item.name}: {item.line} (measured on {where})")
    return "\n".join(lines) + "\n"


# -- the checklist --------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """What the tool knows of one exported group."""

    group: str
    title: str
    branch: str
    version: int
    base: str
    tip: str
    tree: str
    commits: tuple[tuple[str, str], ...]  # patch name, subject
    lines: int
    stacked_on: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    policy: tuple[str, ...]
    sent: tuple[str, ...]
    warnings: tuple[str, ...]


def checklist(facts: Facts, template: bytes | None, where: str) -> bytes:
    """checklist.md: facts, boxes for a person, and upstream's template as it is."""
    text = "\n".join([*_facts(facts), "", *_boxes(facts), ""])
    source = f"upstream's {where}" if template is not None else "the base has no template"
    head = f"\n# The pull request's text: {source}\n\nA person writes it.\n\n"
    return (text + head).encode() + (_OWN_TEMPLATE if template is None else template)


def _facts(facts: Facts) -> Iterator[str]:
    yield f"# Checklist: {facts.group} v{facts.version}"
    yield ""
    yield "Facts (from the tool):"
    yield ""
    yield f"- branch {code(facts.branch)}, tip {facts.tip}, tree {facts.tree}"
    yield f"- base {facts.base}"
    count = len(facts.commits)
    yield f"- {facts.lines} changed lines in {count} commit{'s' * (count != 1)}"
    yield f"- review at upstream's pace (an hour for 200 to 400 lines): {pace(facts.lines)}"
    if facts.stacked_on:
        yield f"- stacked on {', '.join(facts.stacked_on)}, which has to go first"
    yield from (f"- {line}" for line in facts.policy)
    yield from (f"- marked as sent in the series: {line}" for line in facts.sent)
    yield from (f"- warning: {code(line)}" for line in facts.warnings)
    yield ""
    yield "Commits:"
    yield ""
    yield from fenced("\n".join(f"{name}: {subject}" for name, subject in facts.commits))
    if facts.title:
        yield ""
        yield "Title in series.yaml:"
        yield ""
        yield from fenced(facts.title)


def _boxes(facts: Facts) -> Iterator[str]:
    yield "For a person to fill in and tick:"
    yield ""
    yield "- [ ] title:"
    yield "- [ ] overview:"
    yield "- [ ] issue number:"
    yield f"- [ ] reviewed by, of {facts.lines} lines, in hours:"
    yield "- [ ] AI usage disclosure, YES or NO, and how:"
    yield "- [ ] every line is understood and can be defended without AI help"
    yield "- [ ] tests run:"
    if facts.evidence:
        yield from (f"  - evidence/{e.name}: {e.line}" for e in facts.evidence)
    else:
        yield "  - no evidence is recorded for this tree (`hexpatch validate`)"
    yield "- [ ] other open pull requests (upstream takes one at a time from new contributors):"


def pace(lines: int) -> str:
    """Hours a review takes at an hour for 200 to 400 lines."""
    low, high = lines / 400, lines / 200
    return "under an hour" if high <= 1 else f"{low:.1f} to {high:.1f} hours"


def template_of(tree: Tree) -> tuple[bytes | None, str]:
    """Upstream's pull request template and its path."""
    for path in TEMPLATES:
        entry = tree.get(path)
        if entry is not None:
            return entry.content.data, path.decode()
    return None, TEMPLATES[0].decode()


def policy_moves(before: Tree, after: Tree, since: str, now: str) -> tuple[str, ...]:
    """Rule files that upstream changed between two bases."""
    lines = []
    for path in POLICY:
        old, new = before.get(path), after.get(path)
        if old is None and new is None:
            continue
        if old is None or not old.same(new):
            verb = "appeared" if old is None else "was removed" if new is None else "changed"
            lines.append(f"{path.decode()} {verb} between {since[:12]} and {now[:12]}: read it")
    return tuple(lines)


# -- markdown that holds any text -----------------------------------------------------------


def code(text: str) -> str:
    """Text as inline code, byte for byte whatever is in it."""
    ticks = "`" * (_longest(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def fenced(text: str) -> Iterable[str]:
    """Lines of a code block that its text cannot end."""
    fence = "`" * max(3, _longest(text) + 1)
    return fence, text, fence


def _longest(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
