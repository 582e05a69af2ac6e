"""build and validate for a session: which trees, which ops, where the evidence goes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hexpatch import bench as benching
from hexpatch import build as building
from hexpatch import evidence, inspecting, knownfail, simbuild, simvalidate, workspace
from hexpatch import validate as validation
from hexpatch.bench import Row, Wish
from hexpatch.build import Built
from hexpatch.errors import UsageError
from hexpatch.evidence import Report
from hexpatch.inspecting import Compared
from hexpatch.knownfail import Entry
from hexpatch.series import Target
from hexpatch.session import Session
from hexpatch.sim import devices
from hexpatch.sim.devices import Device
from hexpatch.simvalidate import Asked

SIM = "sim:"


def _target(session: Session, name: str) -> Target:
    """A target with its options; those of `sim` hold for every device model."""
    listed = {t.name: t for t in session.series.targets}
    if name != "cpu" and not name.startswith(SIM):
        known = ", ".join(["cpu", *(f"{SIM}{d}" for d in devices.load())])
        raise UsageError(f"there is no target {name}", f"known: {known}")
    shared = listed["sim"].options if name != "cpu" and "sim" in listed else {}
    own = listed[name].options if name in listed else {}
    return Target(name, {**shared, **own})


def device_of(session: Session, name: str) -> Device:
    """The device model of a target `sim:NAME`; option `devices` names a file of further models."""
    target = _target(session, name)
    if not name.startswith(SIM):
        raise UsageError(f"target {name} is not simulated", f"`--target {SIM}NAME`")
    return devices.find(name.removeprefix(SIM), _file(session, target, "devices"))


def _file(session: Session, target: Target, option: str) -> Path | None:
    value = target.options.get(option)
    return session.ws.root / value if isinstance(value, str) else None


def _number(target: Target, option: str) -> int | None:
    value = target.options.get(option)
    return int(value) if isinstance(value, (int, str)) else None


def build(
    session: Session, target: str, *, base_only: bool = False, checks: str | None = None
) -> Built:
    """Build the stack's tree (or the base's) for a target."""
    options = _target(session, target)
    device = device_of(session, target) if target.startswith(SIM) else None
    tree = session.base.tree if base_only else session.stack.tree
    session.store.flush()
    jobs = _number(options, "jobs")
    if device is None:
        return building.build(
            session.repo, session.ws.state, tree, target=target, jobs=jobs, say=session.say
        )
    made = simbuild.build(
        session.repo,
        session.ws.state,
        tree,
        arch=device.arch,
        checked=bool(_checks(options, checks)),
        jobs=jobs,
        say=session.say,
    )
    return Built(made.dir, made.bin, made.log, made.seconds)


def _checks(target: Target, asked: str | None) -> tuple[str, ...]:
    listed = target.options.get("checks", "none")
    text = ",".join(listed) if isinstance(listed, tuple) else str(listed)
    return devices.checks_of(asked or text)


def validate(
    session: Session,
    target: str,
    *,
    ops: Sequence[str],
    params: str | None,
    base_only: bool,
    jobs: int | None,
    timeout: float | None,
    fresh: bool,
    quick: bool = False,
    full: bool = False,
    checks: str | None = None,
    env: Sequence[str] = (),
) -> tuple[Report, Path]:
    """Judge the stack against its base; the report, and its page on disk."""
    wanted = _target(session, target)
    simulated = target.startswith(SIM)
    if not simulated and (checks is not None or env):
        raise UsageError(f"--checks and --env are for targets {SIM}NAME, not for {target}")
    device = device_of(session, target) if simulated else None
    tree = session.base.tree if base_only else session.stack.tree
    session.store.flush()
    listed = wanted.options.get("ops", ())
    default = tuple(listed) if isinstance(listed, tuple) else ()
    if not default:
        default = tuple(dict.fromkeys(op for p in session.series.active for op in p.ops))
    jobs = jobs or _number(wanted, "jobs")
    limit = timeout or float(_number(wanted, "timeout") or 900)
    if device is None:
        more = ("quick",) if quick else ("all",) if full else ()
        report = validation.validate(
            session.repo,
            session.ws.state,
            session.base.tree,
            tree,
            target=target,
            ops=(*ops, *more),
            params=params,
            base_only=base_only,
            jobs=jobs,
            timeout=limit,
            default_ops=default,
            fresh=fresh,
            say=session.say,
        )
    else:
        asked = Asked(
            ops=tuple(ops),
            params=params,
            quick=quick,
            full=full,
            base_only=base_only,
            checks=_checks(wanted, checks),
            env=_settings(env),
            jobs=jobs,
            timeout=limit,
            fresh=fresh,
        )
        report = simvalidate.validate(
            session.repo,
            session.ws.state,
            session.base.tree,
            tree,
            device,
            asked,
            default_ops=default,
            known=_known(session, wanted),
            say=session.say,
        )
    folder = session.ws.state / "results" / target
    name = f"{report.base_tree[:12]}-{report.stack_tree[:12]}"
    page = folder / f"{name}.html"
    title = f"{target}: {session.series.base.name}"
    workspace.write_atomic(page, evidence.to_html(report, title).encode())
    workspace.write_atomic(folder / f"{name}.json", evidence.to_json(report).encode())
    return report, page


def bench(
    session: Session,
    target: str,
    *,
    ops: Sequence[str],
    params: str | None,
    shapes: Sequence[str],
    base_only: bool,
    env: Sequence[str],
    jobs: int | None,
    timeout: float,
) -> tuple[list[Row], Device]:
    """Count what ops do on a device model, base against stack."""
    device = device_of(session, target)
    tree = session.base.tree if base_only else session.stack.tree
    session.store.flush()
    wish = Wish(tuple(ops), params, tuple(shapes), _settings(env), base_only, jobs, timeout)
    found = benching.bench(
        session.repo,
        session.ws.state,
        session.base.tree,
        tree,
        device,
        wish,
        say=session.say,
    )
    return found, device


def inspect(
    session: Session,
    target: str,
    *,
    functions: str | None,
    base_only: bool,
    jobs: int | None,
) -> list[Compared]:
    """Compile the kernels for the real arch of a device model."""
    device = device_of(session, target)
    trees = [session.base.tree] if base_only else [session.base.tree, session.stack.tree]
    session.store.flush()
    return inspecting.run(
        session.repo,
        session.ws.state,
        trees,
        arch=device.arch,
        functions=functions,
        jobs=jobs,
        say=session.say,
    )


def _settings(env: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """NAME=VALUE pairs; the prefix GGML_HEXAGON_ may be left out."""
    found = {}
    for text in env:
        name, equals, value = text.partition("=")
        if not equals or not re.fullmatch("[A-Z][A-Z0-9_]*", name):
            raise UsageError(f"--env {text}: not NAME=VALUE", "as in `--env NHMX=0`")
        found[name if "_HEXAGON_" in name else f"GGML_HEXAGON_{name}"] = value
    return tuple(sorted(found.items()))


def _known(session: Session, target: Target) -> list[Entry]:
    """Failures that are expected: the package's list, and a file of the series (option `known`)."""
    own = _file(session, target, "known")
    return [*knownfail.load(), *(knownfail.load(own) if own else ())]


def to_json(report: Report) -> str:
    """The report for scripts."""
    return evidence.to_json(report)


def _tables(report: Report) -> list[str]:
    """Further tables of a simulated run; every line says so."""
    out = []
    tables = (("faults", evidence.fault_table(report)), ("NMSE", evidence.accuracy(report)))
    for name, rows in tables:
        if rows:
            widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
            for row in rows:
                cells = "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True))
                out.append(f"simulated {name}: {cells}".rstrip())
    return out


def lines(report: Report) -> list[str]:
    """The report for a terminal."""
    rows = evidence.table(report)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    out = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    out += _tables(report)
    words = (evidence.BROKEN, evidence.LOST, evidence.FAILED, evidence.FLAKY, evidence.FIXED)
    shown = [c for word in (*words, evidence.STILL) for c in report.of(word)]
    out += [f"{c.verdict}: {c.op}({c.params}) {c.error}".rstrip() for c in shown[:40]]
    if len(shown) > 40:
        out.append(f"... and {len(shown) - 40} more, in the evidence")
    out += [f"problem: {text}" for text in report.problems]
    out += [f"note: {text}" for text in (*report.notes, *report.limits)]
    out.append(evidence.headline(report))
    return out
