"""Base against stack: verdicts, crashes, hangs, and everything that must not look green."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import World

from hexpatch import compare, evidence, prove, tborun, validate
from hexpatch.asked import Asked
from hexpatch.build import Built, Tools
from hexpatch.evidence import Report
from hexpatch.repo import Repo, init_bare

pytestmark = pytest.mark.slow  # the rest of the suite stays quick without it

FAKE = Path(__file__).parent / "cases" / "tbo" / "fake.py"
TOOLS = Tools("cmake 3.25", "cc", "c++", "gcc 12", "Ninja", "")
FILES = {
    "ggml/CMakeLists.txt": "project(ggml)",
    "ggml/include/ggml.h": "int ggml;",
    "ggml/include/ggml-hexagon.h": "int hexagon;",
    "ggml/src/ggml.c": "int ggml;",
    "ggml/src/ggml-cpu/ops.cpp": "int ops;",
    "ggml/src/ggml-hexagon/htp.c": "int htp;",
    "tests/test-backend-ops.cpp": "int main() {}",
    "LICENSE": "MIT",
}
CASES = [["ADD", "n=1"], ["ADD", "n=2"], ["SUB", "n=1"], ["SUB", "n=2"], ["MUL", "n=1"]]


def tree_of(repo: Repo, files: dict[str, str]) -> str:
    env = {"GIT_INDEX_FILE": os.fspath(repo.git_dir / "index.test")}
    repo.git("read-tree", "--empty", env=env)
    for path, text in files.items():
        oid = repo.git("hash-object", "-w", "--stdin", stdin=text.encode()).decode().strip()
        repo.git("update-index", "--add", "--cacheinfo", f"100644,{oid},{path}", env=env)
    return repo.git("write-tree", env=env).decode().strip()


@dataclass
class Lab:
    """A repository, fake builds and a scripted test program."""

    root: Path
    repo: Repo
    config: dict[str, Any] = field(default_factory=dict)
    built: list[tuple[str, bool]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def build(self, repo: Repo, state: Path, tree: str, **options: Any) -> Built:
        """As build.build: a directory with programs and a library that names its tree."""
        self.built.append((tree, options.get("library_only", False)))
        home = state / "build" / "cpu" / tree
        bin_dir = home / "build" / "bin"
        bin_dir.mkdir(parents=True, exist_ok=True)
        (bin_dir / "libggml-cpu.so").write_text("base" if tree == self.tree() else "stack")
        for name in ("test-backend-ops", "test-backend-ops-stack"):
            exe = bin_dir / name
            exe.write_text(f"#!{sys.executable} -ES\n" + FAKE.read_text())
            exe.chmod(0o755)
        return Built(home, bin_dir, home / "log", 0.0)

    def tree(self, **changed: str) -> str:
        """The base tree, with some files changed (names as in FILES, / as __, . as _dot_)."""
        paths = {k.replace("__", "/").replace("_dot_", "."): v for k, v in changed.items()}
        return tree_of(self.repo, {**FILES, **paths})

    def cpu(self) -> str:
        """A tree whose CPU backend differs."""
        return tree_of(self.repo, {**FILES, "ggml/src/ggml-cpu/ops.cpp": "int changed;"})

    def with_test(self, cpu: bool = False) -> str:
        """A tree whose test file differs."""
        more = {"ggml/src/ggml-cpu/ops.cpp": "int changed;"} if cpu else {}
        return tree_of(self.repo, {**FILES, **more, "tests/test-backend-ops.cpp": "int main(){}"})

    def validate(self, stack: str | None = None, *ops: str, **options: Any) -> Report:
        config = {"cases": {"*": CASES}, "libs": {}, **self.config}
        script = self.root / "fake.json"
        script.write_text(json.dumps(config))
        os.environ["TBO_FAKE"] = os.fspath(script)
        return validate.validate(
            self.repo,
            self.root / "state",
            self.tree(),
            stack or self.cpu(),
            Asked(ops=ops or ("all",), jobs=2, **options),
            say=self.said.append,
        )

    def runs(self) -> list[list[str]]:
        """Command lines of the test program so far."""
        log = (self.root / "fake.json.log").read_text()
        return [json.loads(line) for line in log.splitlines()]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("TBO_FAKE", "")
    with init_bare(tmp_path / "repo.git") as repo:
        made = Lab(tmp_path, repo)
        monkeypatch.setattr("hexpatch.build.build", made.build)
        monkeypatch.setattr("hexpatch.build.tools", lambda: TOOLS)
        yield made


def verdicts(report: Report) -> dict[str, str]:
    return {f"{c.op}({c.params})": c.verdict for c in report.cases}


# -- verdicts ----------------------------------------------------------------------------


def test_nothing_changed_for_the_worse_is_green(lab: Lab) -> None:
    report = lab.validate()
    assert report.green
    assert report.totals == {**dict.fromkeys(evidence.TOTALS, 0), "passed": 5}
    assert lab.built == [(lab.tree(), False), (lab.cpu(), True)]
    assert evidence.headline(report) == "green: 5 passed"


def test_a_wrong_result_of_the_stack_is_broken(lab: Lab) -> None:
    lab.config["libs"] = {"stack": {"ADD": "fail"}}
    report = lab.validate()
    assert not report.green
    assert not report.problems
    assert (report.totals["broken"], report.totals["failed"], report.totals["passed"]) == (2, 2, 3)
    assert report.of("broken")[0].error == "[ADD] ERR = 0.5 > 0.0000001"


def test_what_fails_before_and_after_is_not_red(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"MUL": "fail"}, "stack": {"MUL": "fail"}}
    report = lab.validate()
    assert report.green
    assert verdicts(report)["MUL(n=1)"] == "still failing"
    assert "1 failing before and after" in evidence.headline(report)


def test_fixed(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"MUL": "fail"}}
    report = lab.validate()
    assert report.green
    assert report.totals["fixed"] == 1


def test_lost_support_is_red(lab: Lab) -> None:
    lab.config["libs"] = {"stack": {"SUB(n=2)": "unsupported"}}
    report = lab.validate()
    assert not report.green
    assert (report.totals["lost"], report.totals["unsupported"]) == (1, 0)


def test_new_support_is_compared_with_the_stack_itself(lab: Lab) -> None:
    """The base can't be the reference for what it doesn't support."""
    lab.config["libs"] = {"base": {"SUB": "unsupported"}}
    report = lab.validate()
    assert report.green
    assert (report.totals["new"], report.totals["passed"]) == (2, 5)
    assert report.notes == (
        "2 cases that the base crashes on or does not support were compared with the stack itself",
    )


def test_a_base_only_run(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"MUL": "fail", "SUB(n=1)": "unsupported"}}
    report = lab.validate(base_only=True)
    assert not report.green
    assert (report.totals["passed"], report.totals["failed"], report.totals["broken"]) == (3, 1, 0)
    assert verdicts(report)["MUL(n=1)"] == "failed"
    assert (report.stack_tree, lab.built) == ("", [(lab.tree(), False)])


def test_an_unchanged_backend_is_loaded_as_a_copy(lab: Lab) -> None:
    stack = lab.tree(ggml__src__ggml_hexagon="x")
    report = lab.validate(tree_of(lab.repo, {**FILES, "ggml/src/ggml-hexagon/htp.c": "int x;"}))
    assert stack
    assert report.green
    assert "changes nothing that is built for target cpu" in report.notes[0]
    assert "ggml/src/ggml-hexagon/htp.c" in report.notes[1]
    assert len(lab.built) == 1
    assert (lab.root / "state/build/cpu" / lab.tree() / "second/libggml-cpu.so").exists()


# -- case lists that differ ----------------------------------------------------------------


def test_added_cases_are_new(lab: Lab) -> None:
    stack = [*CASES, ["ADD", "n=3"]]
    lab.config["cases"] = {"test-backend-ops": CASES, "test-backend-ops-stack": stack}
    report = lab.validate(lab.with_test(cpu=True))
    assert report.green
    assert (report.totals["new"], report.totals["passed"]) == (1, 6)
    (case,) = report.of("new")
    assert (case.params, case.base, case.stack) == ("n=3", None, "OK")


def test_an_added_case_that_fails_is_broken(lab: Lab) -> None:
    stack = [*CASES, ["ADD", "n=3"]]
    lab.config["cases"] = {"test-backend-ops": CASES, "test-backend-ops-stack": stack}
    lab.config["libs"] = {"stack": {"ADD(n=3)": "fail"}}
    report = lab.validate(lab.with_test(cpu=True))
    assert (report.green, report.totals["broken"]) == (False, 1)


def test_removed_cases_are_lost_with_the_base_result(lab: Lab) -> None:
    lab.config["cases"] = {"test-backend-ops": CASES, "test-backend-ops-stack": CASES[1:]}
    report = lab.validate(lab.with_test())
    (case,) = report.of("lost")
    assert (case.op, case.params, case.base, case.stack) == ("ADD", "n=1", "OK", None)
    assert not report.green


def test_a_parameter_more_is_the_same_case(lab: Lab) -> None:
    stack = [[op, f"{params},v=0"] for op, params in CASES] + [["MUL", "n=1,v=1"]]
    lab.config["cases"] = {"test-backend-ops": CASES, "test-backend-ops-stack": stack}
    report = lab.validate(lab.with_test())
    assert report.green
    assert (report.totals["passed"], report.totals["lost"], report.totals["new"]) == (6, 0, 1)


# -- crashes and hangs ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ADD(n=1)", "SUB(n=1)", "MUL(n=1)"])
def test_a_crash_costs_one_case(lab: Lab, name: str) -> None:
    lab.config["libs"] = {"stack": {name: "crash"}}
    report = lab.validate()
    assert not report.problems
    assert [f"{c.op}({c.params})" for c in report.of("broken")] == [name]
    (case,) = report.of("broken")
    assert (case.base, case.stack, case.error) == ("OK", "CRASH", "ended by signal 6")
    assert report.totals["passed"] == 4


def test_several_crashes(lab: Lab) -> None:
    lab.config["libs"] = {"stack": {"ADD(n=1)": "crash", "SUB": "crash"}}
    report = lab.validate()
    assert not report.problems
    assert (report.totals["broken"], report.totals["passed"]) == (3, 2)


def test_a_crash_of_the_base_is_fixed_by_the_stack(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"ADD(n=2)": "crash"}}
    report = lab.validate()
    assert not report.problems
    (case,) = report.of("fixed")
    assert (case.base, case.stack, case.params) == ("CRASH", "OK", "n=2")
    assert any("compared with the stack itself" in note for note in report.notes)
    assert report.green


def test_a_crash_of_both(lab: Lab) -> None:
    lab.config["libs"] = {"base": {"ADD(n=2)": "crash"}, "stack": {"ADD(n=2)": "crash"}}
    report = lab.validate()
    assert (verdicts(report)["ADD(n=2)"], report.problems) == ("still failing", ())


def test_a_crash_in_company_only_is_a_problem(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tborun.execute

    def flaky(program: Any, only: str, *args: Any, **options: Any) -> tborun.Outcome:
        out = real(program, only, *args, **options)
        if only == "ADD,SUB,MUL" and options.get("mode") != "support":
            blocks = (out.blocks[0],)
            return tborun.Outcome(out.run, blocks, "CRASH", "ended by signal 11")
        return out

    monkeypatch.setattr(tborun, "execute", flaky)
    report = lab.validate()
    assert report.problems == (
        "ADD ... MUL: crashed (ended by signal 11) when run together, but no case does alone",
    )
    assert not report.green


def test_a_crash_that_does_not_come_back_is_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a race in stock upstream on a busy machine: a whole run is not lost for that."""
    real, crashes = tborun.execute, [1]

    def once(program: Any, only: str, *args: Any, **options: Any) -> tborun.Outcome:
        out = real(program, only, *args, **options)
        if only == "ADD,SUB,MUL" and options.get("mode") != "support" and crashes:
            crashes.pop()
            return tborun.Outcome(out.run, (out.blocks[0],), "CRASH", "ended by signal 11")
        return out

    monkeypatch.setattr(tborun, "execute", once)
    report = lab.validate()
    assert (report.green, report.totals["passed"]) == (True, 5)
    told = (
        "stack: ADD ... MUL: crashed (ended by signal 11) once, and not in 3 more runs of the same"
    )
    assert told in report.notes


def test_what_was_killed_from_outside_is_run_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tborun.execute

    def killed(program: Any, only: str, *args: Any, **options: Any) -> tborun.Outcome:
        out = real(program, only, *args, **options)
        if only == "ADD,SUB,MUL" and options.get("mode") != "support":
            return tborun.Outcome(out.run, (out.blocks[0],), "CRASH", "ended by signal 9")
        return out

    monkeypatch.setattr(tborun, "execute", killed)
    report = lab.validate()
    assert (report.green, report.totals["passed"]) == (True, 5)
    assert any("killed from outside" in text for text in lab.said)


@pytest.mark.parametrize("what", ["crash", "hang"])
def test_a_case_that_only_failed_and_now_takes_the_process_is_broken(lab: Lab, what: str) -> None:
    lab.config["libs"] = {"base": {"SUB(n=1)": "fail"}, "stack": {"SUB(n=1)": what}}
    report = lab.validate(timeout=1.5)
    assert verdicts(report)["SUB(n=1)"] == "broken"
    assert not report.green


def test_a_base_that_is_out_of_time_excuses_nothing(lab: Lab) -> None:
    """As on a busy machine, or with a short --timeout: all hangs, and nothing was judged."""
    stack = {"SUB(n=1)": "fail", "SUB(n=2)": "hang"}
    lab.config["libs"] = {"base": {"SUB": "hang"}, "stack": stack}
    report = lab.validate(None, "SUB", timeout=1.5)
    assert set(verdicts(report).values()) == {"unknown"}
    assert not report.green
    assert evidence.headline(report) == "red: 2 failed, 2 not judged"
    assert "unknown: SUB(n=2) time is up; base: time is up" in prove.lines(report)


def test_a_case_that_the_system_kills_each_time_is_no_result(lab: Lab) -> None:
    """As where memory is short: on both sides it would look like failing before and after."""
    lab.config["libs"] = {"base": {"SUB(n=1)": "killed"}, "stack": {"SUB(n=1)": "killed"}}
    report = lab.validate()
    assert not report.green
    assert "SUB(n=1): killed from outside (is memory short?)" in report.problems
    assert not list((lab.root / "state").rglob("results/*/*.json"))


def test_a_hang_is_killed_and_named(lab: Lab) -> None:
    lab.config["libs"] = {"stack": {"SUB(n=1)": "hang"}}
    report = lab.validate(timeout=2.5)
    (case,) = report.of("broken")
    assert (case.op, case.params, case.stack) == ("SUB", "n=1", "TIMEOUT")
    assert not report.green
    assert not list((lab.root / "state" / "results").rglob("*.json"))


# -- false greens --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"second_missing": True}, "the second library gave no device CPU"),
        ({"device": "GPU"}, "listing the cases failed: there is no device CPU (devices: GPU)"),
        ({"no_library": True}, "listing the cases failed: no backend library was loaded"),
        ({"cut": True}, "the output is cut off (exit 0)"),
        ({"usage": True}, "usage error: this tree's test-backend-ops does not take"),
    ],
)
def test_never_green(lab: Lab, config: dict[str, Any], problem: str) -> None:
    lab.config.update(config)
    report = lab.validate()
    assert not report.green
    assert any(problem in text for text in report.problems), report.problems
    assert evidence.headline(report).startswith("not a result: ")
    assert not list((lab.root / "state").rglob("results/*/*.json"))


@pytest.mark.parametrize(
    ("ops", "params", "problem"),
    [
        (("NOPE",), None, "empty selection: no case matches -o NOPE"),
        (("^X",), None, "-o ^X: matches no op of this tree"),
        (("ADD,NOPE",), None, "empty selection: no case matches -o NOPE"),
        (("ADD(n=9)",), None, "empty selection: no case matches -o ADD(n=9)"),
        (("ADD",), "n=7", "empty selection: no case matches -o ADD with -p n=7"),
        (("ADD",), "([", "-p is not a valid regex"),
    ],
)
def test_empty_selections(lab: Lab, ops: tuple[str, ...], params: str | None, problem: str) -> None:
    report = lab.validate(None, *ops, params=params)
    assert not report.green
    assert any(problem in text for text in report.problems), report.problems


def test_all_unsupported_is_not_green(lab: Lab) -> None:
    every = {"ADD": "unsupported", "SUB": "unsupported", "MUL": "unsupported"}
    lab.config["libs"] = {"base": every, "stack": every}
    report = lab.validate()
    assert report.problems == ("none of the 5 selected cases is supported",)
    assert not report.green


# -- selection, cache, older programs --------------------------------------------------------


def test_selection_by_regex_and_case_and_params(lab: Lab) -> None:
    assert set(verdicts(lab.validate(None, "^[AS]", params="n=2"))) == {"ADD(n=2)", "SUB(n=2)"}
    assert set(verdicts(lab.validate(None, "SUB(n=1),MUL"))) == {"SUB(n=1)", "MUL(n=1)"}


def test_what_the_patches_affect_is_the_default(lab: Lab) -> None:
    config = {"cases": {"*": CASES}, "libs": {}}
    (lab.root / "fake.json").write_text(json.dumps(config))
    os.environ["TBO_FAKE"] = os.fspath(lab.root / "fake.json")
    state = lab.root / "state"
    report = validate.validate(
        lab.repo, state, lab.tree(), lab.cpu(), Asked(), default_ops=["SUB"], say=lab.said.append
    )
    assert report.ops == ("SUB",)
    assert {c.op for c in report.cases} == {"SUB"}


def test_the_quick_set_leaves_slow_ops_out() -> None:
    quick, attention = validate.wanted([], [], None)
    units, wrong = validate.expand(quick.entries, ["ADD", "MUL_MAT_ID", "FLASH_ATTN_EXT"])
    assert ([u.op for u in units], wrong) == (["ADD"], [])
    assert attention.entries == ("FLASH_ATTN_EXT",)
    assert attention.params is not None
    assert len(validate.wanted([], [], "n=1")) == 1


def test_a_complete_result_is_kept(lab: Lab) -> None:
    first = lab.validate()
    ran = len(lab.runs())
    again = lab.validate()
    assert (first.cached, again.cached) == (False, True)
    assert len(lab.runs()) == ran
    assert again == dataclasses.replace(first, cached=True)
    assert not lab.validate(fresh=True).cached
    assert not lab.validate(None, "ADD").cached


def test_an_older_program(lab: Lab) -> None:
    """No -j, and N/M counts every case of the file."""
    lab.config.update(parallel=False, counts_all=True)
    lab.config["libs"] = {"stack": {"ADD(n=2)": "fail"}}
    report = lab.validate()
    assert (report.problems, report.totals["broken"], report.totals["passed"]) == ((), 1, 4)
    assert not any("-j" in run for run in lab.runs())


def test_jobs_reach_a_program_that_takes_them(lab: Lab) -> None:
    lab.validate()
    assert any(run[-2:] == ["-j", "2"] for run in lab.runs())


def test_blas_lists_whole_graph_cases_and_checks_the_plumbing(lab: Lab) -> None:
    lab.config.update(blas=True, fused=["MUL"])
    report = lab.validate()
    assert report.green
    assert report.notes[-1] == "plumbing check on BLAS: 0 OK, 0 FAIL, 5 not supported"
    assert "MUL(n=1)" in verdicts(report)


def test_an_unknown_target_is_a_usage_error(world: World) -> None:
    ran = world.usage_error("validate", "--target", "gpu", says="there is no target gpu")
    assert "hint: known: cpu, sim:" in ran.err


# -- the reference -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        ("ggml/src/ggml-cpu/ops.cpp", compare.PRISTINE),
        ("ggml/src/ggml-cpu/new.h", compare.PRISTINE),
        ("ggml/src/CMakeLists.txt", compare.PRISTINE),
        ("ggml/include/ggml-hexagon.h", compare.PRISTINE),
        ("ggml/include/ggml-cpu.h", compare.PRISTINE),
        ("src/llama.cpp", compare.PRISTINE),
        ("ggml/src/ggml.c", compare.HOST),
        ("ggml/src/ggml-backend-reg.cpp", compare.HOST),
        ("ggml/include/ggml.h", compare.SELF),
    ],
)
def test_what_is_changed_decides_the_reference(lab: Lab, path: str, mode: str) -> None:
    stack = tree_of(lab.repo, {**FILES, path: "int changed;"})
    assert compare.plan_for(lab.repo, lab.tree(), stack).mode == mode


def test_a_changed_library_hosts_both_backends(lab: Lab) -> None:
    both = {"ggml/src/ggml.c": "int x;", "ggml/src/ggml-cpu/ops.cpp": "int x;"}
    stack = tree_of(lab.repo, {**FILES, **both})
    lab.config["libs"] = {"base": {"ADD(n=1)": "fail"}}
    report = lab.validate(stack)
    assert (stack, False) in lab.built
    # the base fails on its own too
    assert verdicts(report)["ADD(n=1)"] == "still failing"
    assert report.of("still failing")[0].error.startswith("differs from the base's CPU backend")
    assert report.limits[0].startswith("reference: the stack's own library")


@pytest.mark.parametrize("base", ["crash", "unsupported"])
def test_what_the_base_can_not_judge_in_the_stacks_library_is_told(lab: Lab, base: str) -> None:
    both = {"ggml/src/ggml.c": "int x;", "ggml/src/ggml-cpu/ops.cpp": "int x;"}
    lab.config["libs"] = {"base": {"ADD(n=1)": base}}
    report = lab.validate(tree_of(lab.repo, {**FILES, **both}))
    assert any(
        note.startswith("1 cases have no result of the base's CPU backend") for note in report.notes
    ), report.notes


def test_changed_headers_leave_the_stack_as_its_own_reference(lab: Lab) -> None:
    stack = tree_of(lab.repo, {**FILES, "ggml/include/ggml.h": "int other;"})
    lab.config["libs"] = {"stack": {"ADD(n=1)": "fail"}}
    report = lab.validate(stack)
    assert report.totals["broken"] == 1
    assert report.limits[0].startswith("reference: the stack itself")
    assert evidence.headline(report).endswith("(but only compared with itself)")


# -- evidence ------------------------------------------------------------------------------


@pytest.fixture
def mixed(lab: Lab) -> Report:
    lab.config["libs"] = {
        "base": {"MUL": "fail"},
        "stack": {"ADD(n=1)": "fail", "SUB(n=1)": "unsupported"},
    }
    return lab.validate()


def test_json_round_trip(mixed: Report) -> None:
    text = evidence.to_json(mixed)
    assert evidence.from_json(text) == mixed
    assert evidence.to_json(evidence.from_json(text)) == text
    assert json.loads(text)["green"] is False
    for wrong in ("[]", "{}", '{"format": 99}', "x"):
        with pytest.raises(ValueError):
            evidence.from_json(wrong)


def test_the_table(mixed: Report) -> None:
    rows = evidence.table(mixed)
    assert rows[0] == ["op", *evidence.TOTALS]
    assert rows[1] == ["ADD", "1", "1", "", "1", "", "", ""]
    assert rows[-1] == ["total", "3", "1", "1", "1", "1", "0", "0"]


def test_the_page_stands_alone_and_is_escaped(mixed: Report) -> None:
    page = evidence.to_html(mixed, "<script>x</script>")
    assert "<script>" not in page
    assert 'name="viewport"' in page
    assert "http" not in page
    assert "prefers-color-scheme:dark" in page
    for word in (mixed.base_tree, mixed.stack_tree, "cmake 3.25", "ADD(n=1)", "broken: 1"):
        assert word in page


def test_verdicts_are_a_total_function() -> None:
    statuses = [None, "OK", "FAIL", "CRASH", "TIMEOUT", "UNSUPPORTED", "UNKNOWN"]
    table: dict[tuple[str | None, str | None], str] = {
        (b, s): compare.verdict_of(b, s) for b in statuses for s in statuses
    }
    assert table["OK", "OK"] == "passed"
    assert {table[b, "OK"] for b in ("FAIL", "CRASH", "TIMEOUT")} == {"fixed"}
    assert {table[b, "OK"] for b in (None, "UNSUPPORTED")} == {"new"}
    assert {table[b, s] for b in (None, "OK", "UNSUPPORTED") for s in ("FAIL", "CRASH")} == {
        "broken"
    }
    assert {table[b, s] for b in ("OK", "FAIL") for s in (None, "UNSUPPORTED")} == {"lost"}
    assert {table["FAIL", s] for s in ("CRASH", "TIMEOUT")} == {"broken"}
    assert {table["TIMEOUT", s] for s in ("FAIL", "CRASH", "TIMEOUT")} == {"unknown"}
    assert {table["UNKNOWN", s] for s in statuses} == {"unknown"}
