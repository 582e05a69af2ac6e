"""The console of test-backend-ops, of all generations, and how a run is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from hexpatch.proc import Finished
from hexpatch.tbo import FAIL, OK, UNSUPPORTED, Unit, by_name, entries, parse, select
from hexpatch.tborun import Program, batches, judge

CASES = Path(__file__).parent / "cases" / "tbo"
ADD = "ADD(type=f32,ne=[1,1,8,1])"


def recorded(name: str) -> bytes:
    return (CASES / f"{name}.txt").read_bytes()


def judged(
    name: str, status: int, device: str = "CPU", devices: int = 1, stderr: bytes = b""
) -> tuple[str, str]:
    """(died, problem) of a recorded output."""
    program = Program(Path("x"), device, devices)
    out = judge(program, Finished(status, recorded(name), stderr))
    return out.died, out.problem


# -- the parser --------------------------------------------------------------------------


def test_a_passing_run_is_understood_whole() -> None:
    run = parse(recorded("pass"))
    blas, cpu = run.blocks
    assert (run.devices, run.ok, run.truncated, run.leftovers) == (2, True, False, ())
    assert (blas.name, blas.skipped, blas.cases) == ("BLAS", "Skipping", ())
    assert (cpu.index, cpu.count, cpu.passed, cpu.total, cpu.ok) == (2, 2, 6, 6, True)
    assert {c.status for c in cpu.cases} == {OK}
    assert cpu.cases[0].name == "SQR(type=f16,ne=[10,5,4,3])"


def test_a_failing_second_device_is_told_from_the_first() -> None:
    _, first, second = parse(recorded("fail-second")).blocks
    assert (first.passed, first.total, first.ok) == (8, 8, True)
    assert (second.passed, second.total, second.ok) == (0, 8, False)
    assert [c.status for c in second.cases] == [FAIL] * 8
    assert second.cases[0].error == "[ADD] ERR = 0.000157183 > 0.000000100"


def test_support_mode() -> None:
    block = parse(recorded("support")).blocks[1]
    assert (block.passed, block.total) == (None, None)
    assert len(by_name(block.cases)) == 12


@pytest.mark.parametrize(
    ("line", "status", "error"),
    [
        (f"  {ADD}: OK", OK, ""),
        (f"[ADD] NMSE = 0.1 > 0.01   {ADD}: FAIL", FAIL, "[ADD] NMSE = 0.1 > 0.01"),
        (f"  {ADD}: not supported [CPU, BLAS] ", UNSUPPORTED, ""),
        (f"  {ADD}: not supported [CPU]", UNSUPPORTED, ""),
        (f"sentinel mismatch: sent_1   {ADD}: FAIL", FAIL, "sentinel mismatch: sent_1"),
        (
            f"[ADD] NaN at index 3 (CPU=nan CPU=0.1)   {ADD}: FAIL",
            FAIL,
            "[ADD] NaN at index 3 (CPU=nan CPU=0.1)",
        ),
        (
            f"[ADD] inf sign mismatch: CPU=inf CPU=-inf   {ADD}: FAIL",
            FAIL,
            "[ADD] inf sign mismatch: CPU=inf CPU=-inf",
        ),
        # with -j another worker's text can come between
        (f"  {ADD}: [SUB] ERR = 1.0 > 0.1 OK", OK, ""),
        (f"  {ADD}: not supported [CPU] [SUB] ERR = 1.0 > 0.1 ", UNSUPPORTED, ""),
    ],
)
def test_one_line(line: str, status: str, error: str) -> None:
    run = parse(f"Testing 1 devices\n\nBackend 1/1: CPU\n{line}\n".encode())
    (case,) = run.blocks[0].cases
    assert (case.name, case.status, case.error, run.leftovers) == (ADD, status, error, ())


def test_error_text_goes_to_the_next_failing_case() -> None:
    text = (
        f"Backend 1/1: CPU\n[SUB] ERR = 1.0 > 0.1   {ADD}: OK\n  SUB(n=1): FAIL\n"
        "  1/2 tests passed\n"
    )
    ok, failed = parse(text.encode()).blocks[0].cases
    assert (ok.error, failed.error) == ("", "[SUB] ERR = 1.0 > 0.1")


def test_a_case_without_result_line_fails_by_the_list() -> None:
    text = (
        "Testing 1 devices\nBackend 1/1: CPU\nfailed to allocate tensors [CPU]   SUB(n=1): OK\n"
        f"  1/2 tests passed\n\nFailing tests:\n  {ADD}\n  Backend CPU: FAIL\n"
        "0/1 backends passed\nFAIL\n"
    )
    run = parse(text.encode())
    assert [(c.op, c.status) for c in run.blocks[0].cases] == [("SUB", OK), ("ADD", FAIL)]
    assert run.blocks[0].cases[1].error == "failed to allocate tensors [CPU]"
    assert judge(Program(Path("x")), Finished(1, text.encode(), b"")).problem == ""


def test_a_cut_off_output_names_the_open_case() -> None:
    run = parse(f"Testing 1 devices\nBackend 1/1: CPU\n  {ADD}: OK\n  SUB(n=1): ".encode())
    assert (run.truncated, run.unfinished, run.leftovers) == (True, "SUB(n=1)", ())
    assert len(run.blocks[0].cases) == 1


def test_lines_not_understood_are_kept() -> None:
    run = parse(b"Testing 1 devices\nhello\nBackend 1/1: CPU\n  ADD(: what\n")
    assert run.leftovers == ("hello", "  ADD(: what")


def test_equal_texts_count_once_and_the_worse_counts() -> None:
    text = f"Backend 1/1: CPU\n  {ADD}: OK\n  {ADD}: FAIL\n  {ADD}: OK\n"
    assert by_name(parse(text.encode()).blocks[0].cases)[ADD].status == FAIL


# -- what a run is worth: the table of exits -----------------------------------------------


def test_a_passing_run_has_no_problem() -> None:
    assert judged("pass", 0) == ("", "")
    assert judged("fail-second", 1, devices=2) == ("", "")


@pytest.mark.parametrize(
    ("name", "status", "device", "devices", "problem"),
    [
        ("no-device", 0, "NOPE", 1, "there is no device NOPE (devices: BLAS, CPU)"),
        ("zero-devices", 0, "CPU", 1, "no backend library was loaded (0 devices)"),
        ("pass", 0, "CPU", 2, "the second library gave no device CPU (devices: BLAS, CPU)"),
        ("usage", 1, "CPU", 1, "usage error: this tree's test-backend-ops does not take these"),
        ("pass", 1, "CPU", 1, "exit 1 does not go with what was printed"),
        ("fail-second", 0, "CPU", 2, "exit 0 does not go with what was printed"),
    ],
)
def test_false_greens(name: str, status: int, device: str, devices: int, problem: str) -> None:
    assert judged(name, status, device, devices)[1].startswith(problem)


def test_nothing_selected_and_nothing_supported_run_nothing() -> None:
    for name, device in (("empty", "CPU"), ("unsupported", "BLAS")):
        assert judged(name, 0, device) == ("", "")
        block = next(b for b in parse(recorded(name)).blocks if b.name == device)
        assert not [c for c in block.cases if c.status != UNSUPPORTED]


def test_a_bad_params_regex_is_no_crash() -> None:
    stderr = b"terminate called after throwing an instance of 'std::regex_error'\n"
    assert judged("bad-regex", -6, stderr=stderr) == (
        "",
        "-p is not a valid regex to test-backend-ops",
    )


@pytest.mark.parametrize(("status", "signal"), [(-6, 6), (134, 6), (-11, 11), (139, 11)])
def test_a_crash_keeps_what_was_printed(status: int, signal: int) -> None:
    told = b"x.cpp:153: GGML_ASSERT(dst->ne[0] != 64) failed\n"
    out = judge(Program(Path("x"), devices=2), Finished(status, recorded("crash"), told))
    assert (out.died, [len(b.cases) for b in out.blocks]) == ("CRASH", [6, 2])
    assert out.reason == f"ended by signal {signal}: {told.decode().strip()}"


def test_a_crash_says_what_ggml_said_before_it_aborted() -> None:
    told = b"ggml-hex: op failed\n/src/ggml-hexagon.cpp:12: dspqueue_read failed: 0x1\nAborted\n"
    out = judge(Program(Path("x")), Finished(-6, recorded("crash"), told))
    assert out.reason == "ended by signal 6: /src/ggml-hexagon.cpp:12: dspqueue_read failed: 0x1"


@pytest.mark.parametrize("lines", range(1, 18))
def test_no_cut_off_output_passes(lines: int) -> None:
    whole = recorded("pass").splitlines(keepends=True)
    assert len(whole) == 18
    done = Finished(0, b"".join(whole[:lines]), b"")
    assert judge(Program(Path("x")), done).problem


def test_a_lost_line_is_seen_by_the_count() -> None:
    lines = recorded("pass").splitlines(keepends=True)
    done = Finished(0, b"".join(lines[:8] + lines[9:]), b"")
    assert "says 6/6 passed, but printed 5 OK" in judge(Program(Path("x")), done).problem


def test_the_older_count_of_all_cases() -> None:
    text = recorded("pass").replace(b"6/6 tests", b"17808/17808 tests")
    done = Finished(0, text, b"")
    assert judge(Program(Path("x")), done).problem
    assert not judge(Program(Path("x"), counts_all=True), done).problem


# -- selection ---------------------------------------------------------------------------


def test_entries_split_at_commas_outside_of_cases() -> None:
    assert entries(["ADD,SUB", f"{ADD},^M.*", ""]) == ["ADD", "SUB", ADD, "^M.*"]


def test_select_expands_regexes_and_keeps_unknown_names() -> None:
    known = dict.fromkeys(["ADD", "ADD_ID", "MUL", "SUB"])
    units, wrong = select(["ADD.*", "NOPE", "SUB(n=1)", "SUB(n=2)", "MUL(n=1)", "MUL"], known)
    assert units == [
        Unit("ADD"),
        Unit("ADD_ID"),
        Unit("NOPE"),
        Unit("MUL"),
        Unit("SUB", ("SUB(n=1)", "SUB(n=2)")),
    ]
    assert not wrong
    assert units[-1].only == "SUB(n=1),SUB(n=2)"


def test_select_names_what_selects_nothing() -> None:
    _, wrong = select(["^X", "[", "ADD"], {"ADD": None})
    assert wrong[0] == "-o ^X: matches no op of this tree"
    assert wrong[1].startswith("-o [: not a valid regex")


def test_small_ops_share_a_process() -> None:
    sizes = {"A": ["x"] * 100, "B": ["x"] * 250, "C": ["x"] * 300, "D": ["x"] * 9000, "E": ["x"]}
    groups = batches([Unit(op) for op in sizes], sizes)
    assert [[u.op for u in g] for g in groups] == [["A", "B"], ["C"], ["D"], ["E"]]
