"""Each question has its own page, and only complete results are answered from."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hexpatch import evidence, reportfile
from hexpatch.evidence import CaseVerdict, Report

CASE = CaseVerdict("ADD", "ne=[1]", "OK", "OK", "still passing")
REPORT = Report(
    target="cpu",
    base_tree="b" * 40,
    stack_tree="5" * 40,
    ops=("ADD", "SUB"),
    params=None,
    totals=evidence.count([CASE]),
    cases=(CASE,),
    per_op=evidence.per_op([CASE]),
    notes=(),
    limits=(),
    problems=(),
    seconds=1.0,
    tools={"checks": "none", "settings": "none"},
)
TREES = "bbbbbbbbbbbb-555555555555"


def test_what_other_code_judged_is_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version number does not tell: a checkout of this program is edited and pulled."""
    before = reportfile.key("asked")
    assert reportfile.key("other") != before
    for name in reportfile._JUDGES:
        shutil.copy(Path(evidence.__file__).with_name(f"{name}.py"), tmp_path)
    monkeypatch.setattr(reportfile, "__file__", str(tmp_path / "reportfile.py"))
    assert reportfile.key("asked") == before
    with (tmp_path / "compare.py").open("a") as file:
        file.write("# other verdicts\n")
    assert reportfile.key("asked") != before


def test_a_page_for_each_question(tmp_path: Path) -> None:
    """What a long run found is not written over by a short one's answer."""
    asked = [
        REPORT,
        replace(REPORT, ops=("all",)),
        replace(REPORT, params="ne=.*"),
        replace(REPORT, params="ne=.+"),
        replace(REPORT, ops=("ADD(ne=[1])", "SUB")),
        replace(REPORT, tools={"checks": "all", "settings": "none"}),
        replace(REPORT, tools={"checks": "none", "settings": "GGML_HEXAGON_NHMX=0"}),
        replace(REPORT, ops=tuple(f"OP_{n}" for n in range(200))),
        replace(REPORT, ops=tuple(f"OP_{n}" for n in range(201))),
    ]
    pages = [reportfile.publish(tmp_path, report, "cpu: v1") for report in asked]
    assert len(set(pages)) == len(asked)
    assert [p.stem for p in pages[:2]] == [f"{TREES}-ADD-SUB", f"{TREES}-all"]
    for page, report in zip(pages, asked, strict=True):
        assert reportfile.take(page.with_suffix(".json")) == replace(report, cached=True)
        assert "<title>cpu: v1</title>" in page.read_text()
        assert len(page.name) < 120


def test_the_same_question_has_the_same_page(tmp_path: Path) -> None:
    page = reportfile.publish(tmp_path, REPORT, "cpu: v1")
    red = replace(REPORT, problems=("it ended early",))
    assert reportfile.publish(tmp_path, red, "cpu: v1") == page
    assert "it ended early" in page.read_text()


@pytest.mark.parametrize(
    "report",
    [
        replace(REPORT, problems=("it ended early",)),
        replace(REPORT, cases=(replace(CASE, stack="TIMEOUT"),)),
    ],
    ids=["problem", "time-out"],
)
def test_an_incomplete_result_takes_the_earlier_one_away(tmp_path: Path, report: Report) -> None:
    file = tmp_path / "results" / "one.json"
    reportfile.settle(file, REPORT)
    assert reportfile.take(file) == replace(REPORT, cached=True)
    reportfile.settle(file, report)
    assert reportfile.take(file) is None


def test_what_can_not_be_read_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    reportfile.settle(file, REPORT)
    file.write_text(file.read_text()[:-20])
    assert reportfile.take(file) is None
