"""build and validate for a session: which trees, which ops, where the evidence goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hexpatch import build as building
from hexpatch import evidence, workspace
from hexpatch import validate as validation
from hexpatch.build import Built
from hexpatch.errors import HexpatchError
from hexpatch.evidence import Report
from hexpatch.series import Target
from hexpatch.session import Session


def _target(session: Session, name: str) -> Target:
    found = next((t for t in session.series.targets if t.name == name), None)
    if name != "cpu":
        known = ", ".join(sorted({"cpu", *(t.name for t in session.series.targets)}))
        raise HexpatchError(f"target {name} can't be built yet", f"known: {known}; only cpu works")
    return found or Target(name)


def build(session: Session, target: str, *, base_only: bool = False) -> Built:
    """Build the stack's tree (or the base's) for a target."""
    _target(session, target)
    tree = session.base.tree if base_only else session.stack.tree
    session.store.flush()
    return building.build(session.repo, session.ws.state, tree, target=target, say=session.say)


def validate(
    session: Session,
    target: str,
    *,
    ops: Sequence[str],
    params: str | None,
    base_only: bool,
    jobs: int | None,
    timeout: float,
    fresh: bool,
) -> tuple[Report, Path]:
    """Judge the stack against its base; the report, and its page on disk."""
    options = _target(session, target).options
    tree = session.base.tree if base_only else session.stack.tree
    session.store.flush()
    listed = options.get("ops", ())
    default = tuple(listed) if isinstance(listed, tuple) else ()
    if not default:
        default = tuple(dict.fromkeys(op for p in session.series.active for op in p.ops))
    wanted_jobs = options.get("jobs")
    report = validation.validate(
        session.repo,
        session.ws.state,
        session.base.tree,
        tree,
        target=target,
        ops=ops,
        params=params,
        base_only=base_only,
        jobs=jobs or (int(wanted_jobs) if isinstance(wanted_jobs, (int, str)) else None),
        timeout=timeout,
        default_ops=default,
        fresh=fresh,
        say=session.say,
    )
    folder = session.ws.state / "results" / target
    name = f"{report.base_tree[:12]}-{report.stack_tree[:12]}"
    page = folder / f"{name}.html"
    title = f"{target}: {session.series.base.name}"
    workspace.write_atomic(page, evidence.to_html(report, title).encode())
    workspace.write_atomic(folder / f"{name}.json", evidence.to_json(report).encode())
    return report, page


def to_json(report: Report) -> str:
    """The report for scripts."""
    return evidence.to_json(report)


def lines(report: Report) -> list[str]:
    """The report for a terminal."""
    rows = evidence.table(report)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    out = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    shown = [c for c in report.cases if c.verdict in ("broken", "lost", "fixed", "still failing")]
    out += [f"{c.verdict}: {c.op}({c.params}) {c.error}".rstrip() for c in shown[:40]]
    if len(shown) > 40:
        out.append(f"... and {len(shown) - 40} more, in the evidence")
    out += [f"problem: {text}" for text in report.problems]
    out += [f"note: {text}" for text in (*report.notes, *report.limits)]
    out.append(evidence.headline(report))
    return out
