"""What a validation found, kept with the tree ids it was measured on: as JSON, page and table."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

FORMAT = 4
PASSED, FIXED, BROKEN, LOST, NEW = "passed", "fixed", "broken", "lost", "new"
STILL, UNSUPPORTED, UNKNOWN = "still failing", "unsupported", "unknown"
FAILED = "failed"  # the verdict where only one tree was judged
KNOWN = "known"  # fails, and is listed as failing, with the reason
FLAKY = "flaky"  # fails with some inputs and passes with others
TOTALS = ("passed", "failed", "fixed", "broken", "lost", "new", "unsupported")
# in this order, worst first
SHOWN = (BROKEN, LOST, FAILED, UNKNOWN, FLAKY, STILL, KNOWN, FIXED, NEW)
_RED = (BROKEN, LOST, FAILED, UNKNOWN)
# what the totals do not say
_WORDS = (
    (UNKNOWN, "not judged"),
    (STILL, "failing before and after"),
    (KNOWN, "known"),
    (FLAKY, FLAKY),
)


@dataclass(frozen=True)
class CaseVerdict:
    """One case: status at the base and with the stack (None: not there), and what they mean."""

    op: str
    params: str
    base: str | None
    stack: str | None
    verdict: str
    error: str = ""
    base_error: float | None = None  # the NMSE, where it was measured
    stack_error: float | None = None


@dataclass(frozen=True)
class FaultRow:
    """Faults of one kind in an op's function: how often at the base and with the stack."""

    kind: str
    op: str
    function: str
    where: tuple[str, ...]
    base: int | None
    stack: int | None


@dataclass(frozen=True)
class OpCounts:
    """The counts of one op, with the same meaning as a report's totals."""

    op: str
    counts: dict[str, int]


@dataclass(frozen=True)
class Report:
    """A validation. `problems` say why a result can't be trusted; `limits` what it can't show."""

    target: str
    base_tree: str
    stack_tree: str
    ops: tuple[str, ...]
    params: str | None
    totals: dict[str, int]
    cases: tuple[CaseVerdict, ...]
    per_op: tuple[OpCounts, ...]
    notes: tuple[str, ...]
    limits: tuple[str, ...]
    problems: tuple[str, ...]
    seconds: float
    tools: dict[str, str]
    reference: str = "base"  # base, both or stack: whose CPU backend the stack's was compared with
    cached: bool = False
    simulated: str = ""  # the device model, where no real device was used
    faults: tuple[FaultRow, ...] = ()
    judged: str = ""  # which part of the series, where it was not the whole stack

    @property
    def green(self) -> bool:
        """Something ran, nothing got worse, and nothing went wrong on the way."""
        ran = self.totals["passed"] + self.totals["failed"]
        return not self.problems and ran > 0 and not any(c.verdict in _RED for c in self.cases)

    @property
    def settings(self) -> tuple[str, ...]:
        """Checks and variables of the runs, where there were any."""
        named = ((name, self.tools.get(name, "none")) for name in ("checks", "settings"))
        return tuple(f"{name} {value}" for name, value in named if value != "none")

    def of(self, verdict: str) -> list[CaseVerdict]:
        """The cases with a verdict."""
        return [case for case in self.cases if case.verdict == verdict]


def count(cases: Iterable[CaseVerdict]) -> dict[str, int]:
    """Totals: passed and failed are the stack's (or only) results, the others compare."""
    totals = dict.fromkeys(TOTALS, 0)
    for case in cases:
        ran = case.stack if case.stack is not None or case.verdict == LOST else case.base
        if ran == "OK":
            totals["passed"] += 1
        elif ran in ("FAIL", "CRASH", "TIMEOUT"):
            totals["failed"] += 1
        if case.verdict in (FIXED, BROKEN, LOST, NEW, UNSUPPORTED):
            totals[case.verdict] += 1
    return totals


def per_op(cases: Sequence[CaseVerdict]) -> tuple[OpCounts, ...]:
    """Counts for each op, in the order the ops appear."""
    groups: dict[str, list[CaseVerdict]] = {}
    for case in cases:
        groups.setdefault(case.op, []).append(case)
    return tuple(OpCounts(op, count(group)) for op, group in groups.items())


# -- JSON --------------------------------------------------------------------------------


def to_json(report: Report) -> str:
    """One stable text for a report: sorted keys, one line per case."""
    data = asdict(report)
    rows = [
        {k: v for k, v in vars(case).items() if v is not None or not k.endswith("_error")}
        for case in report.cases
    ]
    data.update(format=FORMAT, green=report.green, cases="@cases@")
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    text = json.dumps(data, indent=1, sort_keys=True)
    return text.replace('"@cases@"', f"[\n{lines}\n ]" if rows else "[]", 1) + "\n"


def from_json(text: str) -> Report:
    """The report again. ValueError where the text is of another format."""
    data: dict[str, Any] = json.loads(text)
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise ValueError("not a report of this version")
    data.pop("green", None)
    try:
        data["cases"] = tuple(CaseVerdict(**row) for row in data["cases"])
        data["per_op"] = tuple(OpCounts(**row) for row in data["per_op"])
        data["faults"] = tuple(
            FaultRow(**{**row, "where": tuple(row["where"])}) for row in data["faults"]
        )
        for name in ("ops", "notes", "limits", "problems"):
            data[name] = tuple(data[name])
        return Report(**data)
    except (KeyError, TypeError) as e:
        raise ValueError(f"not a whole report: {e}") from None


# -- terminal ----------------------------------------------------------------------------


def accuracy(report: Report) -> list[list[str]]:
    """Header and a row per op: the largest NMSE at the base and with the stack, and their ratio.

    Only cases that passed, and on both sides where there are two.
    """
    worst: dict[str, list[float]] = {}
    both = bool(report.stack_tree)
    for case in report.cases:
        sides = [(case.base, case.base_error)] + [(case.stack, case.stack_error)] * both
        if any(status != "OK" or error is None for status, error in sides):
            continue
        held = worst.setdefault(case.op, [0.0] * len(sides))
        for at, (_, error) in enumerate(sides):
            held[at] = max(held[at], error or 0.0)
    rows = [["op", "base", "stack", "ratio"] if both else ["op", "base"]]
    for op, errors in worst.items():
        if any(errors):
            ratio = f"{errors[1] / errors[0]:.3g}" if both and errors[0] else ""
            rows.append([op, *(f"{e:.3g}" for e in errors), *([ratio] if both else [])])
    return rows if len(rows) > 1 else []


def fault_table(report: Report) -> list[list[str]]:
    """Header and a row per fault."""
    if not report.faults:
        return []
    rows = [["fault", "op", "function", "base", "stack", "at"]]
    for f in report.faults:
        counts = ["" if n is None else str(n) for n in (f.base, f.stack)]
        rows.append([f.kind, f.op, f.function, *counts, ", ".join(f.where)])
    return rows


def table(report: Report) -> list[list[str]]:
    """Header, a row per op and a last row of totals; a zero is an empty cell."""
    rows = [["op", *TOTALS]]
    for entry in report.per_op:
        rows.append([entry.op, *(str(entry.counts[t] or "") for t in TOTALS)])
    rows.append(["total", *(str(report.totals[t]) for t in TOTALS)])
    return rows


def headline(report: Report) -> str:
    """The result in one line."""
    if report.problems:
        return f"not a result: {report.problems[0]}"
    parts = [f"{n} {name}" for name, n in report.totals.items() if n and name != "unsupported"]
    for verdict, words in _WORDS:
        if found := len(report.of(verdict)):
            parts.append(f"{found} {words}")
    weak = "" if report.reference != "stack" else " (but only compared with itself)"
    made = f" (simulated {report.target})" if report.simulated else ""
    part = f" ({report.judged})" if report.judged else ""
    colour = "green: " if report.green else "red: "
    return colour + (", ".join(parts) or "nothing ran") + weak + made + part


# -- page --------------------------------------------------------------------------------

_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--dim:#60646c;--line:#d9d9e0;--soft:#f4f4f7;
--red:#b3261e;--green:#1a7f37;--amber:#8a5a00}
@media(prefers-color-scheme:dark){:root{--bg:#111315;--fg:#eceef0;--dim:#a0a4ab;--line:#33373d;
--soft:#1a1d21;--red:#ff8a80;--green:#6fdd8b;--amber:#ffc65c}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:60rem;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.3rem;margin:.2rem 0}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}
.verdict{font-size:1.1rem;font-weight:600;padding:.6rem .8rem;border-radius:.5rem;
background:var(--soft);border-left:.35rem solid}
.green{border-color:var(--green)}.red{border-color:var(--red)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--bg)}
tr.total{font-weight:600}td.bad{color:var(--red);font-weight:600}td.good{color:var(--green)}
details{border:1px solid var(--line);border-radius:.5rem;margin:.4rem 0;padding:.4rem .7rem}
summary{cursor:pointer;font-weight:600}
code{font:.82rem/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
.case{border-top:1px solid var(--line);padding:.4rem 0}.why{color:var(--amber);font-size:.85rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem .8rem;margin:.4rem 0}
dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}li{margin:.2rem 0}
"""
_MOST = 500  # cases shown per verdict; all of them are in the JSON


def to_html(report: Report, title: str) -> str:
    """One page that needs nothing else, for a phone as for a desk. All text is escaped."""
    e = html.escape
    out = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{e(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{e(title)}</h1>",
        f'<p class="verdict {"green" if report.green else "red"}">{e(headline(report))}</p>',
    ]
    out += _texts("Problems", report.problems)
    out.append("<h2>What was run</h2><dl>")
    facts = {
        "target": report.target,
        **({"simulated": report.simulated} if report.simulated else {}),
        "ops": ", ".join(report.ops),
        "params": report.params or "all",
        "base tree": report.base_tree,
        "stack tree": report.stack_tree or "none (base only)",
        "took": f"{report.seconds:.1f} s",
        **report.tools,
    }
    out += [f"<dt>{e(k)}</dt><dd><code>{e(v)}</code></dd>" for k, v in facts.items()]
    out.append("</dl><h2>By op</h2>")
    out += _html_table(table(report))
    if report.faults:
        out.append("<h2>Faults (simulated)</h2>")
        out += _html_table(fault_table(report), total=False)
    if errors := accuracy(report):
        out.append("<h2>Largest NMSE of passing cases</h2>")
        out += _html_table(errors, total=False)
    for verdict in SHOWN:
        out += _html_cases(verdict, report.of(verdict))
    out += _texts("Notes", report.notes)
    out += _texts("What this can't show", report.limits)
    out.append("</body></html>\n")
    return "\n".join(out)


def _texts(heading: str, texts: Sequence[str]) -> list[str]:
    if not texts:
        return []
    items = "".join(f"<li>{html.escape(text)}</li>" for text in texts)
    return [f"<h2>{html.escape(heading)}</h2><ul>{items}</ul>"]


def _html_table(cells: Sequence[Sequence[str]], *, total: bool = True) -> list[str]:
    head, *rows = cells
    out = ['<div class="scroll"><table><thead><tr>']
    out += [f"<th>{html.escape(cell)}</th>" for cell in head]
    out.append("</tr></thead><tbody>")
    for row in rows:
        out.append('<tr class="total">' if total and row is rows[-1] else "<tr>")
        for name, cell in zip(head, row, strict=True):
            tone = ""
            if cell not in ("", "0") and name in ("failed", BROKEN, LOST):
                tone = ' class="bad"'
            elif cell not in ("", "0") and name in (FIXED, NEW):
                tone = ' class="good"'
            out.append(f"<td{tone}>{html.escape(cell)}</td>")
        out.append("</tr>")
    out.append("</tbody></table></div>")
    return out


def _html_cases(verdict: str, cases: Sequence[CaseVerdict]) -> list[str]:
    if not cases:
        return []
    out = [f"<details><summary>{html.escape(verdict)}: {len(cases)}</summary>"]
    for case in cases[:_MOST]:
        change = f"{case.base or 'absent'} &rarr; {case.stack or 'absent'}"
        why = f'<div class="why">{html.escape(case.error)}</div>' if case.error else ""
        name = html.escape(f"{case.op}({case.params})")
        out.append(f'<div class="case"><code>{name}</code><div>{change}</div>{why}</div>')
    if len(cases) > _MOST:
        out.append(f"<p>and {len(cases) - _MOST} more, in the JSON beside this page</p>")
    out.append("</details>")
    return out
