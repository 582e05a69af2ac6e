"""build, validate, bench and inspect for a session: which trees, which ops, where evidence goes."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hexpatch import bench as benching
from hexpatch import build as building
from hexpatch import evidence, inspecting, knownfail, part, reportfile, simbuild, simvalidate
from hexpatch import validate as validation
from hexpatch.asked import Asked
from hexpatch.bench import Row, Wish
from hexpatch.build import BuildFailed, Built
from hexpatch.errors import HexpatchError, UsageError
from hexpatch.evidence import Report
from hexpatch.inspecting import Compared
from hexpatch.knownfail import Entry
from hexpatch.part import Choice, Part
from hexpatch.series import Patch, Target
from hexpatch.session import Session
from hexpatch.sim import devices
from hexpatch.sim.devices import Device

SIM = "sim:"
_LISTED = (  # in the terminal, worst first
    *(evidence.BROKEN, evidence.LOST, evidence.FAILED, evidence.UNKNOWN),
    *(evidence.FLAKY, evidence.FIXED, evidence.STILL),
)
WHOLE = Choice()


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
    session: Session, target: str, *, which: Choice = WHOLE, checks: str | None = None
) -> Built:
    """Build the stack's tree (or the chosen part's) for a target."""
    options = _target(session, target)
    if checks is not None and not target.startswith(SIM):
        raise UsageError(f"--checks is for targets {SIM}NAME, not for {target}")
    device = device_of(session, target) if target.startswith(SIM) else None
    chosen = part.find(session, which)
    for line in (chosen.text, *chosen.notes):
        if line:
            session.say(line)
    tree = chosen.tree
    jobs = _number(options, "jobs")
    with _blaming(session, chosen.patches):
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


@contextlib.contextmanager
def _blaming(session: Session, patches: Sequence[Patch]) -> Iterator[None]:
    """A failed build names the patches that change what the compiler complains of."""
    try:
        yield
    except BuildFailed as error:
        told = "this is the base itself, without a patch"
        if error.tree != session.base.tree or building.SECOND in error.files:
            files = [f if f != building.SECOND else building.TEST_SOURCE for f in error.files]
            told = _changed_by(session, files, {p.name for p in patches})
        raise HexpatchError(f"{error.message}\n{told}".rstrip(), error.hint) from None


def _changed_by(session: Session, files: Sequence[str], names: Collection[str]) -> str:
    """Who changes these files, a line for each."""
    before, by = session.base.tree, {file: list[str]() for file in files}
    for made in session.stack.patches:
        for change in session.repo.raw_diff(before, made.tree) if made.name in names else ():
            by.get(change.path.decode("utf-8", "replace"), []).append(made.name)
        before = made.tree
    changed = [f"{file} is changed by {', '.join(who)}" for file, who in by.items() if who]
    return "\n".join(changed)


def _checks(target: Target, asked: str | None) -> tuple[str, ...]:
    listed = target.options.get("checks", "none")
    text = ",".join(listed) if isinstance(listed, tuple) else str(listed)
    return devices.checks_of(asked or text)


def validate(
    session: Session,
    target: str,
    asked: Asked,
    which: Choice = WHOLE,
    *,
    checks: str | None = None,
    env: Sequence[str] = (),
) -> tuple[Report, Path]:
    """Judge the stack (or a part of it) against its base; the report, and its page on disk."""
    wanted = _target(session, target)
    simulated = target.startswith(SIM)
    if not simulated and (checks is not None or env):
        raise UsageError(f"--checks and --env are for targets {SIM}NAME, not for {target}")
    if asked.quick + asked.full + bool(asked.ops) > 1:
        raise UsageError("give only one of -o OP, --quick, --full: each says which ops are run")
    device = device_of(session, target) if simulated else None
    chosen = part.find(session, which)
    default = _default_ops(wanted, chosen)
    chosen_ops = asked.ops or asked.quick or asked.full
    unnamed = [] if chosen_ops else _without_ops(wanted, chosen)
    asked = replace(
        asked,
        base_only=which.base_only,
        checks=_checks(wanted, checks) if simulated else (),
        env=_settings(env),
        jobs=asked.jobs or _number(wanted, "jobs"),
        timeout=asked.timeout or _number(wanted, "timeout"),
    )
    judge = (
        validation.validate
        if device is None
        else functools.partial(simvalidate.validate, device=device, known=_known(session, wanted))
    )
    with _blaming(session, chosen.patches):
        report = judge(
            session.repo,
            session.ws.state,
            session.base.tree,
            chosen.tree,
            asked,
            default_ops=default,
            say=session.say,
        )
    report = _told(report, chosen)
    if unnamed:
        note = f"no `ops:` in series.yaml, so nothing was run for their sake: {', '.join(unnamed)}"
        report = replace(report, notes=(note, *report.notes))
    title = ", ".join(filter(None, (f"{target}: {session.series.base.name}", chosen.name)))
    return report, reportfile.publish(session.ws.state / "results" / target, report, title)


def _default_ops(target: Target, chosen: Part) -> tuple[str, ...]:
    """What runs without -o: the ops of the target, else those of the patches judged."""
    listed = target.options.get("ops", ())
    if isinstance(listed, tuple) and listed:
        return listed
    return tuple(dict.fromkeys(op for patch in chosen.patches for op in patch.ops))


def _without_ops(target: Target, chosen: Part) -> list[str]:
    """Patches that others' ops would be run without, where the ops come from the patches."""
    if target.options.get("ops") or not any(patch.ops for patch in chosen.patches):
        return []
    return [patch.name for patch in chosen.patches if not patch.ops]


def _told(report: Report, chosen: Part) -> Report:
    """The report says what was judged; a kept result may come from another part of equal tree."""
    if not chosen.name:
        return report
    notes = (f"judged: {chosen.text}", *chosen.notes, *report.notes)
    return replace(report, judged=chosen.name, notes=notes)


def bench(
    session: Session, target: str, wish: Wish, *, env: Sequence[str]
) -> tuple[list[Row], Device]:
    """Count what ops do on a device model, base against stack."""
    device, wanted = device_of(session, target), _target(session, target)
    wish = replace(
        wish,
        env=_settings(env),
        jobs=wish.jobs or _number(wanted, "jobs"),
        timeout=wish.timeout or _number(wanted, "timeout"),
    )
    tree = session.base.tree if wish.base_only else session.stack.tree
    session.store.flush()
    if not wish.base_only:
        part.tell_unrefreshed(session)
    with _blaming(session, session.series.active):
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
    if not base_only:
        part.tell_unrefreshed(session)
    return inspecting.run(
        session.repo,
        session.ws.state,
        trees,
        arch=device.arch,
        functions=functions,
        jobs=jobs or _number(_target(session, target), "jobs"),
        say=session.say,
    )


def _settings(env: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """NAME=VALUE pairs; the prefix GGML_HEXAGON_ may be left out. The model has readings of its
    own: HEXPATCH_SIM_HMX_FP and _NAN."""
    found = {}
    for text in env:
        name, equals, value = text.partition("=")
        if not equals or not re.fullmatch("[A-Z][A-Z0-9_]*", name):
            raise UsageError(f"--env {text}: not NAME=VALUE", "as in `--env NHMX=0`")
        whole = "_HEXAGON_" in name or name.startswith("HEXPATCH_SIM_HMX_")
        found[name if whole else f"GGML_HEXAGON_{name}"] = value
    return tuple(sorted(found.items()))


def _known(session: Session, target: Target) -> list[Entry]:
    """Failures that are expected: the package's list, and a file of the series (option `known`)."""
    own = _file(session, target, "known")
    return [*knownfail.load(), *(knownfail.load(own) if own else ())]


def _tables(report: Report) -> list[str]:
    """Further tables of a simulated run; every line says so."""
    out = []
    tables = (("faults", evidence.fault_table(report)), ("NMSE", evidence.accuracy(report)))
    for name, rows in tables:
        out += [f"simulated {name}: {line}" for line in _aligned(rows)]
    return out


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of a table as lines."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def lines(report: Report) -> list[str]:
    """The report for a terminal."""
    out = [*_aligned(evidence.table(report)), *_tables(report)]
    shown = [c for word in _LISTED for c in report.of(word)]
    out += [f"{c.verdict}: {c.op}({c.params}) {c.error}".rstrip() for c in shown[:40]]
    if len(shown) > 40:
        out.append(f"... and {len(shown) - 40} more, in the evidence")
    out += [f"problem: {text}" for text in report.problems]
    out += [f"note: {text}" for text in (*report.notes, *report.limits)]
    out.append(evidence.headline(report))
    return out
