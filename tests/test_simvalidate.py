"""Base against stack on a simulated device: parallel runs, flaky cases, known failures, faults."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from test_validate import CASES, FAKE, FILES, TOOLS, tree_of

from hexpatch import bench, build, evidence, knownfail, simflaky, simkept, simrun, simvalidate
from hexpatch.asked import Asked
from hexpatch.errors import HexpatchError, UsageError
from hexpatch.evidence import Report
from hexpatch.knownfail import Entry
from hexpatch.proc import Finished
from hexpatch.repo import Repo, init_bare
from hexpatch.sim import devices
from hexpatch.simbuild import SimBuilt
from hexpatch.tborun import Program

pytestmark = pytest.mark.slow  # the rest of the suite stays quick without it

PHONE = devices.find("sm7750")


@dataclass
class Lab:
    """A repository, fake builds and a scripted test program with a simulated DSP."""

    root: Path
    repo: Repo
    config: dict[str, Any] = field(default_factory=dict)
    built: list[tuple[str, bool]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def build(self, repo: Repo, state: Path, tree: str, **options: Any) -> SimBuilt:
        """As simbuild.build."""
        self.built.append((tree, options["checked"]))
        home = state / "build" / "sim" / tree
        place = home / "build" / "bin"
        place.mkdir(parents=True, exist_ok=True)
        (place / "libggml-cpu.so").write_text("base" if tree == self.tree() else "stack")
        for name in ("test-backend-ops", "test-backend-ops-stack", "hexpatch-opbench"):
            exe = place / name
            exe.write_text(f"#!{sys.executable} -ES\n" + FAKE.read_text())
            exe.chmod(0o755)
        return SimBuilt(home, place, home, home, home / "log", 0.0, "clang", "key")

    def tree(self) -> str:
        return tree_of(self.repo, FILES)

    def other(self) -> str:
        """A tree with another kernel."""
        return tree_of(self.repo, {**FILES, "ggml/src/ggml-hexagon/htp.c": "int changed;"})

    def script(self) -> None:
        config = {"cases": {"*": CASES}, "libs": {}, "device": "HTP0", **self.config}
        script = self.root / "fake.json"
        script.write_text(json.dumps(config))
        os.environ["TBO_FAKE"] = os.fspath(script)

    def validate(self, *ops: str, known: tuple[Entry, ...] = (), **options: Any) -> Report:
        self.script()
        asked = Asked(ops=ops or ("all",), jobs=2, **options)
        return simvalidate.validate(
            self.repo,
            self.root / "state",
            self.tree(),
            self.other(),
            asked,
            device=PHONE,
            known=known,
            say=self.said.append,
        )

    def edited(self, *ops: str, text: str = "int again;", **options: Any) -> Report:
        """Validate the stack with yet another kernel."""
        tree = tree_of(self.repo, {**FILES, "ggml/src/ggml-hexagon/htp.c": text})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self, "other", lambda: tree)
            return self.validate(*ops, **options)

    def forget_runs(self) -> None:
        """`runs` starts again."""
        (self.root / "fake.json.log").write_text("")

    def runs(self) -> list[list[str]]:
        """Command lines of the test program that ran cases."""
        log = (self.root / "fake.json.log").read_text()
        return [run for run in map(json.loads, log.splitlines()) if "(" in str(run)]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("TBO_FAKE", "")
    with init_bare(tmp_path / "repo.git") as repo:
        made = Lab(tmp_path, repo)
        monkeypatch.setattr("hexpatch.simbuild.build", made.build)
        monkeypatch.setattr("hexpatch.build.tools", lambda: TOOLS)
        yield made


def verdicts(report: Report) -> dict[str, str]:
    return {f"{c.op}({c.params})": c.verdict for c in report.cases}


def entry(op: str, params: str = "", count: int | None = None, **options: Any) -> Entry:
    given = {"since": "", "until": "", "env": (), "place": "known.yaml:3", **options}
    return Entry(target="sim:*", op=op, params=params, reason="no FP16", count=count, **given)


# -- runs --------------------------------------------------------------------------------------


def test_a_green_run_says_that_it_is_simulated(lab: Lab) -> None:
    report = lab.validate()
    assert report.green
    assert evidence.headline(report) == "green: 5 passed (simulated sim:sm7750)"
    assert lab.built == [(lab.tree(), False), (lab.other(), False)]
    assert "simulated" in evidence.to_html(report, "x")
    assert not (lab.root / "state" / "scratch").exists() or not list(
        (lab.root / "state" / "scratch").iterdir()
    )
    assert evidence.from_json(evidence.to_json(report)) == report


def test_cases_are_in_upstreams_order_however_they_end(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simrun, "COSTS", {"MUL": 10.0, "SUB": 5.0})
    monkeypatch.setattr(simrun, "CHUNK", 1)
    lab.config["libs"] = {"base": {"SUB(n=1)": "unsupported"}}
    assert [[c.op, c.params] for c in lab.validate().cases] == CASES


def test_unsupported_cases_are_not_run(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"SUB": "unsupported"}, "stack": {"SUB(n=1)": "unsupported"}}
    report = lab.validate()
    assert (report.totals["new"], report.totals["unsupported"]) == (1, 1)
    assert not any("SUB(n=1)" in str(run) for run in lab.runs())


def test_cases_of_fused_graphs_are_run_though_support_mode_hides_them(lab: Lab) -> None:
    lab.config.update(cases={"*": [*CASES, ["MUL_ADD", "n=1"]]}, fused=["MUL_ADD"])
    report = lab.validate()
    assert verdicts(report)["MUL_ADD(n=1)"] == "passed"


def test_a_crash_costs_one_case(lab: Lab) -> None:
    lab.config["libs"] = {"stack": {"ADD(n=2)": "crash"}}
    report = lab.validate()
    assert not report.problems
    assert [(c.op, c.params, c.stack) for c in report.of("broken")] == [("ADD", "n=2", "CRASH")]
    assert report.totals["passed"] == 4


def test_a_hang_costs_one_case_and_the_result_is_not_kept(lab: Lab) -> None:
    lab.config["libs"] = {"stack": {"SUB(n=1)": "hang"}}
    report = lab.validate(timeout=2.5)
    assert [(c.op, c.params, c.stack) for c in report.of("broken")] == [("SUB", "n=1", "TIMEOUT")]
    assert not list((lab.root / "state" / "results").rglob("*.json"))


def test_a_result_is_kept(lab: Lab) -> None:
    first = lab.validate()
    again = lab.validate()
    assert (again.cached, again.cases) == (True, first.cases)
    assert not lab.validate(env=(("GGML_HEXAGON_NHMX", "0"),)).cached
    assert not lab.validate(fresh=True).cached


def test_a_device_that_does_not_come_up(lab: Lab) -> None:
    lab.config["device"] = "HTP1"
    with pytest.raises(HexpatchError, match="simulated sm7750 does not start: there is no device"):
        lab.validate()


def test_cases_run_once_where_both_trees_have_the_same_kernels(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = tree_of(lab.repo, {**FILES, "tests/test-backend-ops.cpp": "int main(){}"})
    monkeypatch.setattr(lab, "other", lambda: more)
    lab.config["libs"] = {"stack": {"ADD(n=1)": "fail"}}
    report = lab.validate()
    assert verdicts(report)["ADD(n=1)"] == "still failing"
    assert "a case of both lists was run once" in report.notes[0]
    assert sum("ADD(n=1)" in str(run) for run in lab.runs()) == 1


def test_errors_of_passing_cases_are_compared(lab: Lab) -> None:
    lab.config["errors"] = {"base": 1e-9, "stack": 4e-9}
    report = lab.validate()
    assert evidence.accuracy(report)[1] == ["ADD", "1e-09", "4e-09", "4"]
    assert "Largest NMSE" in evidence.to_html(report, "x")


# -- kept processes ----------------------------------------------------------------------------

KEPT = "5 cases of the base were kept from an earlier run"


def test_after_an_edit_only_the_stack_is_run(lab: Lab) -> None:
    first = lab.validate()
    assert not any("were kept" in note for note in first.notes)
    both = len(lab.runs())
    lab.forget_runs()
    lab.config["libs"] = {"base": {"ADD": "crash"}}  # would show, were it run
    report = lab.edited()
    assert len(lab.runs()) == both // 2
    assert (report.cases, report.cached) == (first.cases, False)
    assert KEPT in report.notes
    assert not any("of the stack were kept" in note for note in report.notes)


def test_a_stack_that_was_seen_before_is_kept_too(lab: Lab) -> None:
    """The base moved on outside ggml/ and the test, so the report is another one."""
    lab.validate()
    lab.forget_runs()
    older = lab.tree()
    newer = tree_of(lab.repo, {**FILES, "src/llama.cpp": "int llama;"})
    assert newer != older
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab, "tree", lambda: newer)
        report = lab.validate()
    assert not lab.runs()
    assert KEPT in report.notes
    assert KEPT.replace("base", "stack") in report.notes


def test_fresh_runs_all_and_replaces_what_was_kept(lab: Lab) -> None:
    lab.validate()
    both = len(lab.runs())
    lab.forget_runs()
    lab.config["libs"] = {"base": {"SUB": "fail"}, "stack": {"SUB": "fail"}}
    report = lab.validate(fresh=True)
    assert len(lab.runs()) == both
    assert not any("were kept" in note for note in report.notes)
    lab.config["libs"] = {"stack": {"SUB": "fail"}}
    assert verdicts(lab.edited())["SUB(n=1)"] == "still failing"


def test_a_fresh_run_that_crashes_leaves_nothing_of_the_older_one(lab: Lab) -> None:
    lab.validate()
    lab.config["libs"] = {"base": {"ADD(n=2)": "crash"}}
    assert verdicts(lab.validate(fresh=True))["ADD(n=2)"] == "fixed"
    assert verdicts(lab.edited())["ADD(n=2)"] == "fixed"


def test_what_is_kept_says_all_that_the_run_said(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"ADD(n=1)": "fail", "SUB(n=2)": "unsupported"}}
    lab.config["errors"] = {"base": 2e-3, "stack": 4e-9}
    lab.validate()
    kept, ran = lab.edited(), lab.edited(fresh=True)
    assert (kept.cases, kept.per_op) == (ran.cases, ran.per_op)
    (case,) = (c for c in kept.cases if (c.op, c.params) == ("ADD", "n=1"))
    assert (case.base, case.base_error, case.verdict) == ("FAIL", 2e-3, "fixed")
    assert not any("were kept" in note for note in ran.notes)


def test_a_crash_is_tried_again(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"ADD(n=2)": "crash"}}
    assert verdicts(lab.validate())["ADD(n=2)"] == "fixed"
    lab.config["libs"] = {}
    assert verdicts(lab.edited())["ADD(n=2)"] == "passed"


def test_a_time_out_is_tried_again(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"SUB(n=1)": "hang"}}
    assert verdicts(lab.validate(timeout=2.5))["SUB(n=1)"] == "fixed"
    lab.config["libs"] = {}
    report = lab.validate(timeout=2.5)
    assert verdicts(report)["SUB(n=1)"] == "passed"
    assert any("of the stack were kept" in note for note in report.notes)


@pytest.mark.parametrize(
    "options",
    [{"env": (("GGML_HEXAGON_NHMX", "0"),)}, {"checks": ("scalar",)}, {"params": "n="}],
)
def test_other_settings_are_another_run(lab: Lab, options: dict[str, Any]) -> None:
    lab.validate()
    both = len(lab.runs())
    lab.forget_runs()
    report = lab.edited(**options)
    assert len(lab.runs()) == both
    assert not any("were kept" in note for note in report.notes)


def test_a_key_has_all_that_decides(lab: Lab) -> None:
    trees = [
        lab.tree(),
        lab.other(),
        tree_of(lab.repo, {**FILES, "tests/test-backend-ops.cpp": ""}),
    ]
    keys = [simkept.key(lab.repo, tree, PHONE.text, {"checks": "none"}) for tree in trees]
    slower = replace(PHONE, threads=2).text
    keys.append(simkept.key(lab.repo, trees[0], slower, {"checks": "none"}))
    keys.append(simkept.key(lab.repo, trees[0], PHONE.text, {"checks": "scalar"}))
    assert len(set(keys)) == 5


def test_other_seeds_are_kept_apart(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"ADD(n=1)": "fail@1,2"}}
    assert "fails with how many of 5 seeds: 2 base, 0 stack" in str(lab.validate().cases)
    ran = len(lab.runs())
    lab.forget_runs()
    assert "fails with how many of 5 seeds: 2 base, 0 stack" in str(lab.edited().cases)
    assert 0 < len(lab.runs()) <= ran // 2  # the stack's


def test_faults_of_what_is_kept_are_not_lost(lab: Lab) -> None:
    lab.config["faults"] = {"base": [FAULT], "stack": [FAULT]}
    first = lab.validate(checks=("scalar",))
    report = lab.edited(checks=("scalar",))
    assert KEPT in report.notes
    assert report.faults == first.faults
    assert report.green


@pytest.mark.parametrize("damage", ["", "{}", "[1]", "cut", "changed"])
def test_a_damaged_file_is_not_used(lab: Lab, damage: str) -> None:
    first = lab.validate()
    both = len(lab.runs())
    lab.forget_runs()
    for file in (lab.root / "state" / "runs").rglob("*.json"):
        text = file.read_text()
        words = {"cut": text[: len(text) // 2], "changed": text.replace("1e-09", "2e-09")}
        file.write_text(words.get(damage, damage))
    report = lab.edited()
    assert len(lab.runs()) == both
    assert report.cases == first.cases


def test_a_killed_run_leaves_what_was_done(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simrun, "CHUNK", 1)

    class Killed(list[str]):
        def append(self, text: str) -> None:
            if text.startswith("ran "):
                raise KeyboardInterrupt

    lab.said = Killed()
    with pytest.raises(KeyboardInterrupt):
        lab.validate()
    lab.said = []
    lab.forget_runs()
    report = lab.validate()
    assert report.green
    assert 5 <= len(lab.runs()) < 10
    assert any("of the stack were kept" in note for note in report.notes)


def test_keys_that_are_not_used_go(lab: Lab) -> None:
    reports = [lab.edited(text=f"int edit_{number};") for number in range(simkept.MOST + 2)]
    assert all(KEPT in report.notes for report in reports[1:])
    top = lab.root / "state" / "runs" / f"sim:{PHONE.name}"
    assert len(list(top.iterdir())) == simkept.MOST


# -- what is selected --------------------------------------------------------------------------


def test_default_selection() -> None:
    assert simvalidate.wanted(Asked(), ["ADD"]) == (simvalidate.Wanted(("ADD",), None), False)
    assert simvalidate.wanted(Asked(), [])[1]
    assert simvalidate.wanted(Asked(quick=True), ["ADD"])[1]
    assert simvalidate.wanted(Asked(full=True), ["ADD"]) == (
        simvalidate.Wanted(("all",), None),
        False,
    )
    assert simvalidate.wanted(Asked(ops=("MUL,SUB",)), ["ADD"])[0].entries == ("MUL", "SUB")


def test_the_quick_set_leaves_slow_cases_out(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simvalidate, "QUICK", {"ADD": "n=2", "MUL": None})
    report = lab.validate("quick")
    assert set(verdicts(report)) == {"ADD(n=2)", "SUB(n=1)", "SUB(n=2)"}
    assert report.ops == ("quick",)


@pytest.mark.parametrize(
    ("params", "count"),
    [
        ("type=f32,ne=[16,5,4,3],nr=[1,1,1,2],nf=1", 1920),
        ("type_src=f32,ne_src=[2,3,1,1],ne_dst=[3,4,1,1],_src_transpose=0", 12),
        ("m=16,n=8,k=256,bs=[1536,1]", 1),
    ],
)
def test_the_size_of_a_case(params: str, count: int) -> None:
    assert simvalidate.elements(params) == count


def test_groups_are_cut_to_equal_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simrun, "COSTS", {"MUL_MAT": 3.0})
    names = [
        *(f"ADD(n={i})" for i in range(8)),
        *(f"MUL_MAT(n={i})" for i in range(25)),
        "SUB(n=1)",
    ]
    groups = simrun.groups_of(names)
    assert sorted(n for g in groups for u in g for n in u.cases) == sorted(names)
    assert [(len(g), g[0].op) for g in groups[:2]] == [(1, "MUL_MAT"), (1, "MUL_MAT")]
    assert [u.op for u in groups[-1]] == ["ADD", "SUB"]
    assert all(len(u.cases) <= 10 for g in groups for u in g)


# -- flaky -------------------------------------------------------------------------------------


def test_a_case_that_fails_with_every_seed_is_broken(lab: Lab) -> None:
    lab.config["libs"] = {"stack": {"ADD(n=1)": "fail"}}
    report = lab.validate()
    (case,) = report.of("broken")
    assert case.error.endswith("fails with how many of 5 seeds: 0 base, 5 stack")
    assert any("1 cases were repeated" in note for note in report.notes)


def test_a_case_that_fails_with_some_seeds_is_flaky(lab: Lab) -> None:
    lab.config["libs"] = {"stack": {"ADD(n=1)": "fail@1,4", "SUB(n=1)": "fail@1,2,3,4"}}
    report = lab.validate()
    assert verdicts(report)["ADD(n=1)"] == "flaky"
    assert verdicts(report)["SUB(n=1)"] == "broken"  # most seeds, and the base with none
    assert "1 flaky" in evidence.headline(report)


def test_flaky_on_both_sides_is_not_red(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"ADD(n=1)": "fail@2,3"}, "stack": {"ADD(n=1)": "fail@1,2,3"}}
    report = lab.validate()
    assert verdicts(report)["ADD(n=1)"] == "flaky"
    assert report.green


def test_flaky_at_the_base_alone(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"ADD(n=1)": "fail@1", "SUB(n=1)": "fail"}}
    report = lab.validate(base_only=True)
    assert verdicts(report)["ADD(n=1)"] == "flaky"
    assert verdicts(report)["SUB(n=1)"] == "failed"
    assert not report.green


@pytest.mark.parametrize(
    ("base", "stack", "verdict"),
    [
        (0, 5, "broken"),
        (0, 3, "broken"),
        (0, 2, "flaky"),
        (1, 5, "flaky"),
        (5, 5, "still failing"),
        (5, 0, "fixed"),
        (3, 0, "fixed"),
        (2, 0, "flaky"),
        (0, 0, "passed"),
        (None, 5, "broken"),
        (None, 3, "broken"),
        (None, 2, "flaky"),
        (5, None, "failed"),
        (4, None, "flaky"),
    ],
)
def test_what_seeds_say(base: int | None, stack: int | None, verdict: str) -> None:
    assert simflaky.verdict(base, stack, 5) == verdict


# -- known failures ----------------------------------------------------------------------------


def test_a_known_failure_is_not_red(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"ADD": "fail"}}
    report = lab.validate(base_only=True, known=(entry("ADD", count=2),))
    assert report.green
    assert [c.verdict for c in report.cases if c.op == "ADD"] == ["known", "known"]
    assert "no FP16" in report.cases[0].error
    assert "2 known" in evidence.headline(report)


def test_a_known_failure_may_depend_on_the_inputs(lab: Lab) -> None:
    """It fails with the first seed, as the entry says, and passes with others."""
    lab.config["libs"] = {"base": {"ADD(n=1)": "fail@1"}}
    report = lab.validate(base_only=True, known=(entry("ADD", "n=1"),))
    (case,) = (c for c in report.cases if c.params == "n=1" and c.op == "ADD")
    assert case.verdict == "known"
    assert case.error.endswith("1 base; no FP16")


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("sim:*", ["sm7750", "sm8550", "sm8650", "sm8750"]),
        ("sim:sm8[56]50", ["sm8550", "sm8650"]),
        ("sim:sm8650", ["sm8650"]),
        ("sim:sm7750, sim:sm87*", ["sm7750", "sm8750"]),
    ],
)
def test_an_entry_names_its_targets(glob: str, names: list[str]) -> None:
    targets = ("cpu", *(f"sim:sm{n}" for n in (7750, 8550, 8650, 8750)))
    one = replace(entry("ADD"), target=glob)
    found = [t for t in targets if knownfail.applying([one], t, "", {})]
    assert found == [f"sim:{name}" for name in names]


def test_a_known_failure_that_the_stack_mends_is_fixed(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"ADD": "fail"}, "stack": {"ADD(n=2)": "fail"}}
    report = lab.validate(known=(entry("ADD"),))
    assert verdicts(report)["ADD(n=1)"] == "fixed"
    assert verdicts(report)["ADD(n=2)"] == "known"
    assert report.green


@pytest.mark.parametrize("known", [True, False])
def test_a_known_failure_that_the_stack_refuses_is_no_loss(lab: Lab, known: bool) -> None:
    lab.config["libs"] = {"base": {"ADD": "fail"}, "stack": {"ADD": "unsupported"}}
    report = lab.validate(known=(entry("ADD"),) if known else ())
    assert verdicts(report)["ADD(n=1)"] == ("known" if known else "lost")
    assert report.green == known
    assert report.totals["failed"] == 0


def test_an_added_case_is_known_where_the_kernels_are_the_bases(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = tree_of(lab.repo, {**FILES, "tests/test-backend-ops.cpp": "int main(){}"})
    monkeypatch.setattr(lab, "other", lambda: more)
    lab.config["cases_of"] = {"stack": [*CASES, ["ADD", "n=3"]]}
    lab.config["libs"] = {"base": {"ADD": "fail"}, "stack": {"ADD": "fail"}}
    report = lab.validate(known=(entry("ADD"),))
    assert verdicts(report)["ADD(n=3)"] == "known"
    assert report.green
    report = lab.validate(fresh=True)
    assert verdicts(report)["ADD(n=3)"] == "still failing"
    assert report.green
    lab.config["libs"] = {"base": {}, "stack": {}}
    assert verdicts(lab.validate(fresh=True))["ADD(n=3)"] == "new"


@pytest.mark.parametrize("base", ["fail", "ok", "crash", "unsupported"])
def test_an_added_case_that_fails_is_run_on_the_bases_kernels(lab: Lab, base: str) -> None:
    """A test that shows a fault of upstream breaks nothing; one that shows the stack's does."""
    more = [*CASES, ["ADD", "n=3"]]
    lab.config["cases"] = {"*": CASES, "test-backend-ops-stack": more}
    lab.config["cases_of"] = {"stack": more}
    lab.config["libs"] = {"base": {"ADD(n=3)": base}, "stack": {"ADD(n=3)": "fail"}}
    report = lab.validate()
    anyway = base in ("fail", "crash")
    assert verdicts(report)["ADD(n=3)"] == ("still failing" if anyway else "broken")
    assert report.green == anyway
    note = "1 of the cases that the stack adds fail with the base's kernels too"
    assert (note in report.notes) == anyway
    assert any("test-backend-ops-stack" in run[0] for run in lab.runs())


def test_an_entry_that_no_longer_fails_has_to_go(lab: Lab) -> None:
    report = lab.validate(base_only=True, known=(entry("ADD", "n=1"),))
    assert report.problems == (
        "known.yaml:3: ADD(n=1) no longer fails at the base (1 cases pass): remove the entry",
    )
    assert not report.green


def test_another_count_is_said_where_the_op_was_run_whole(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"ADD(n=1)": "fail"}}
    report = lab.validate(base_only=True, known=(entry("ADD", count=2),))
    assert report.problems == ("known.yaml:3: ADD: 1 cases fail at the base, the entry says 2",)
    report = lab.validate(base_only=True, known=(entry("ADD", count=2),), params="n=1")
    assert not report.problems


# -- faults ------------------------------------------------------------------------------------

FAULT = {"kind": "scalar_vtcm", "op": "op_x", "count": 7, "where": "libx.so+0x10"}


def test_faults_that_only_the_stack_has_are_a_problem(lab: Lab) -> None:
    lab.config["faults"] = {"stack": [FAULT]}
    report = lab.validate(checks=("scalar",))
    assert report.problems == (
        "the stack has faults that the base has not: scalar_vtcm in op_x (libx.so+0x10), 7 times",
    )
    assert lab.built[0][1]
    assert "Faults (simulated)" in evidence.to_html(report, "x")


def test_a_lost_report_of_faults_is_no_result(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk: the checks would have found nothing."""
    whole = simrun._text
    monkeypatch.setattr(
        simrun, "_text", lambda file: "" if file.suffix == ".report" else whole(file)
    )
    report = lab.validate(checks=("scalar",))
    assert not report.green
    assert any("stack: 1 processes left no report" in t for t in report.problems), report.problems
    assert lab.validate().green


def test_faults_of_the_base_are_shown_and_not_held_against_the_stack(lab: Lab) -> None:
    lab.config["faults"] = {"base": [FAULT], "stack": [FAULT]}
    report = lab.validate(checks=("scalar",))
    assert report.green
    assert [(f.kind, f.base, f.stack) for f in report.faults] == [("scalar_vtcm", 7, 7)]
    assert evidence.from_json(evidence.to_json(report)) == report


def test_without_checks_no_report_is_asked_for(lab: Lab) -> None:
    lab.config["faults"] = {"stack": [FAULT]}
    assert lab.validate().faults == ()


# -- bench -------------------------------------------------------------------------------------


def measured(lab: Lab, **wish: Any) -> list[bench.Row]:
    lab.script()
    return bench.bench(
        lab.repo,
        lab.root / "state",
        lab.tree(),
        lab.other(),
        PHONE,
        bench.Wish(jobs=2, **wish),
        say=lab.said.append,
    )


def test_counters_side_by_side(lab: Lab) -> None:
    lab.config["counters"] = {"hmx_tiles_i": 1000, "hvx_alu": 40, "dispatches": 3}
    rows = measured(lab, ops=("ADD",))
    assert [row.case for row in rows] == ["ADD(n=1)", "ADD(n=2)"]
    text = bench.lines(rows, PHONE)
    assert all(line.startswith("simulated") for line in text)
    assert any(line.split()[1:] == ["hmx_tiles_i", "1,000", "1,000", "1"] for line in text)
    assert any("assumed" in line for line in text)
    data = bench.to_json(rows, PHONE)
    assert data["cases"][0]["stack"]["counters"]["hvx_alu"] == 40
    assert data["rates"]["hmx_tile_int"]["assumed"] is True
    assert all(checked for _, checked in lab.built)


def test_bench_wants_a_selection(lab: Lab) -> None:
    with pytest.raises(UsageError, match="needs -o OP or --shape"):
        measured(lab)
    with pytest.raises(HexpatchError, match="no supported case matches -o ADD with -p n=9"):
        measured(lab, ops=("ADD",), params="n=9")
    lab.config["cases"] = {"*": [["ADD", f"n={i}"] for i in range(30)]}
    with pytest.raises(HexpatchError, match="30 cases match -o ADD; at most 24 are shown"):
        measured(lab, ops=("ADD",))


@pytest.mark.parametrize(
    ("nmse", "status", "known"),
    [("6e-5", "OK", 6e-5), ("6e-3", "FAIL", 6e-3), ("nan", "FAIL", None), ("inf", "FAIL", None)],
)
def test_a_wrong_result_of_a_shape_is_said_and_is_valid_json(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, nmse: str, status: str, known: float | None
) -> None:
    """As of a device without FP16 multipliers, that stores zeros."""
    said = json.dumps({"supported": True, "nmse": nmse, "exact": nmse})
    done = Finished(0, said.encode(), b"")
    monkeypatch.setattr(simrun.SimProgram, "other", lambda *_, **__: done)
    (row,) = rows = measured(lab, shapes=("m=1,n=2,k=32",))
    assert (row.stack and row.stack.status, row.base.nmse) == (status, known)
    json.dumps(bench.to_json(rows, PHONE), allow_nan=False)
    assert ("simulated   NMSE = " in "\n".join(bench.lines(rows, PHONE))) == (status == "FAIL")
    assert not bench.unmeasured(rows)


@pytest.mark.parametrize("done", [Finished(0, b"", b""), Finished(-11, b"", b"")])
def test_a_shape_without_a_result_is_not_measured(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, done: Finished
) -> None:
    monkeypatch.setattr(simrun.SimProgram, "other", lambda *_, **__: done)
    rows = measured(lab, shapes=("m=1,n=2,k=32",))
    status = "CRASH" if done.status else "ERROR"
    case = "MUL_MAT(m=1,n=2,k=32)"
    assert bench.unmeasured(rows) == [f"{case}: base: {status}", f"{case}: stack: {status}"]
    assert not list((lab.root / "state" / "scratch").glob("bench-*"))


def test_a_shape_alone_is_a_matrix_product() -> None:
    wish = bench.Wish(shapes=("m=1,n=2,k=32", "CPY(ne=[1,1,1,1])"))
    assert bench.shapes(wish) == ["MUL_MAT(m=1,n=2,k=32)", "CPY(ne=[1,1,1,1])"]


def test_the_counters_are_those_of_the_header() -> None:
    known = bench.known_counters()
    assert next(iter(known)) == "hvx_alu"
    assert known["hmx_stores"] == "HMX convert-and-store instructions"


# -- Ctrl-C ------------------------------------------------------------------------------------


def test_ctrl_c_ends_what_runs_and_starts_no_more(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case that is killed by it is no crash to be looked into."""
    monkeypatch.setattr(simrun, "CHUNK", 1)
    lab.config["libs"] = {"stack": {"SUB": "hang"}}

    class Told(list[str]):
        def append(self, text: str) -> None:
            if text.startswith("ran "):
                raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab, "said", Told())
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            lab.validate()
        assert time.monotonic() - began < 60  # of 900
    ran = len(lab.runs())
    time.sleep(0.5)
    assert len(lab.runs()) == ran
    lab.config["libs"] = {}
    assert lab.validate().green


# -- answers that are no longer true -----------------------------------------------------------


@pytest.mark.parametrize(
    "before",
    [{"target": "sim:sm8650"}, {"env": ("GGML_HEXAGON_NHMX=0",)}, {"count": 2}],
    ids=["device", "settings", "count"],
)
def test_an_edited_known_failure_is_judged_anew(lab: Lab, before: dict[str, Any]) -> None:
    lab.config["libs"] = {"base": {"ADD(n=1)": "fail"}}
    now = entry("ADD", "n=1", count=1)
    assert not lab.validate(base_only=True, known=(replace(now, **before),)).green
    report = lab.validate(base_only=True, known=(now,))
    assert report.green
    assert not report.cached


@pytest.mark.parametrize("trouble", ["hang", "fault"])
def test_a_fresh_run_that_is_no_result_takes_the_old_one_with_it(lab: Lab, trouble: str) -> None:
    checks = ("scalar",)
    assert lab.validate(checks=checks).green
    if trouble == "hang":
        lab.config["libs"] = {"stack": {"SUB(n=1)": "hang"}}
    else:
        lab.config["faults"] = {"stack": [FAULT]}
    assert not lab.validate(checks=checks, fresh=True, timeout=2.5).green
    report = lab.validate(checks=checks, timeout=2.5)
    assert not report.cached
    assert not report.green


def test_another_harness_gives_other_results(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    harness = tmp_path / "harness"
    shutil.copytree(build.HARNESS, harness)
    monkeypatch.setattr("hexpatch.build.HARNESS", harness)
    lab.validate()
    (harness / ".watch.cpp.swp").write_bytes(b"b0VIM\xff\xfe")  # an editor's
    assert lab.validate().cached
    with (harness / "errors.h").open("a") as file:
        file.write("// other sums\n")
    lab.forget_runs()
    assert not lab.validate().cached
    assert lab.runs()


def test_settings_are_not_run_together(lab: Lab) -> None:
    lab.validate(env=(("A", "1 B=2"),))
    assert not lab.validate(env=(("A", "1"), ("B", "2"))).cached


def test_a_process_that_lost_its_errors_is_not_kept(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = simrun._text
    monkeypatch.setattr(
        simrun, "_text", lambda file: "" if file.suffix == ".errors" else whole(file)
    )
    assert not evidence.accuracy(lab.validate())
    monkeypatch.setattr(simrun, "_text", whole)
    assert evidence.accuracy(lab.edited())


def test_what_the_machine_failed_at_is_not_kept(tmp_path: Path) -> None:
    program = Program(tmp_path / "exe", "HTP0")
    shelf = simkept.Shelf(tmp_path / "runs", seed=1)
    args = ("test", "-b", "HTP0", "-o", "ADD(n=1)")
    head = "Testing 1 devices\n\nBackend 1/1: HTP0\n  Device description: fake\n\n"
    line = "ADD(n=1): OK\n  1/1 tests passed\n  Backend HTP0: OK\n1/1 backends passed\nOK\n"
    empty = "  0/0 tests passed\n  Backend HTP0: OK\n1/1 backends passed\nOK\n"
    for text, kept in (
        ("  " + line, True),
        ("failed to allocate tensors [HTP0]   " + line.replace(": OK", ": FAIL", 1), False),
        (empty, False),
    ):
        done = Finished(0, (head + text).encode(), b"")
        shelf.put(program, args, simkept.Said(done, "", "1e-9\tADD\t-1\n"))
        assert (shelf.take(program, args) is not None) == kept


def test_fresh_renews_the_base_where_only_the_tests_differ(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"SUB": "fail"}, "stack": {"SUB": "fail"}}
    lab.validate()
    lab.config["libs"] = {}
    more = tree_of(lab.repo, {**FILES, "tests/test-backend-ops.cpp": "int main(){}"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab, "other", lambda: more)
        assert lab.validate(fresh=True).green
    assert set(verdicts(lab.edited()).values()) == {"passed"}
