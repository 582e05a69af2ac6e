"""Every check sees its planted fault, and nothing in the right version."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from runtime_lab import Lab, built, lab

__all__ = ["built", "lab"]
pytestmark = pytest.mark.sim

RIGHT = [
    ("nothing",),
    ("vector_vtcm",),
    ("vector_unaligned",),
    ("ddr_bytes",),
    ("aligned_vector",),
    ("in_buffer",),
    ("library_data", 3),
    ("dma_waited",),
    ("dma_source", 0),
    ("dma_tail",),
    ("dma_wait",),
    ("dma_unmapped", 64),
    ("stack_use", 3),
    ("threads",),
    ("hmx_jobs", 2, 3),
    ("hmx_jobs", 0, 5),
]
WRONG = [
    ("scalar_vtcm", (), {"scalar_vtcm": 2}),
    ("copy_to_vtcm", (0,), {"scalar_vtcm": 1}),
    ("misaligned_vector", (), {"misaligned": 1}),
    ("behind_buffer", (), {"bounds": 1}),
    ("null_pointer_near", (), {"bounds": 1}),
    ("heap_overrun", (0,), {"bounds": 1}),
    ("heap_freed", (), {"bounds": 1}),
    ("dma_not_waited", (), {"dma_order": 1}),
    ("dma_source", (1,), {"dma_order": 1}),
    ("dma_left", (), {"dma_left": 1}),
    ("dma_unmapped", (63,), {"dma_bad": 1}),
    ("dma_type", (9,), {"dma_bad": 1}),
    ("dma_type", (3,), {"dma_bad": 1}),
    ("dma_odd_descriptor", (), {"dma_bad": 1}),
    ("hmx_jobs", (2, 2), {"hmx_left": 1}),
    ("stack_use", (14,), {"stack": 1}),
]
SWITCH = {
    "scalar_vtcm": "scalar",
    "misaligned": "align",
    "bounds": "bounds",
    "dma_order": "dma",
    "dma_bad": "dma",
    "dma_left": "balance",
    "hmx_left": "balance",
    "stack": "stack",
}


@pytest.mark.parametrize("kernel", RIGHT, ids=lambda k: "-".join(map(str, k)))
def test_silent_on_what_is_right(lab: Lab, kernel: tuple[object, ...]) -> None:
    answer = lab.kernel(*kernel, checks="all")
    assert answer.faults() == {}
    assert answer.report[-1]["faults"] == []


@pytest.mark.parametrize(("name", "args", "faults"), WRONG, ids=lambda v: str(v))
def test_what_is_wrong_is_told(
    lab: Lab, name: str, args: tuple[int, ...], faults: dict[str, int]
) -> None:
    answer = lab.kernel(name, *args, checks="all")
    assert answer.faults() == faults
    for told in answer.report[-1]["faults"]:
        assert told["op"] == name and told["kind"] in faults


@pytest.mark.parametrize(("name", "args", "faults"), WRONG, ids=lambda v: str(v))
def test_a_check_can_be_alone_or_off(
    lab: Lab, name: str, args: tuple[int, ...], faults: dict[str, int]
) -> None:
    (kind,) = faults
    others = ",".join(sorted(set(SWITCH.values()) - {SWITCH[kind]}))
    assert lab.kernel(name, *args, checks=f"lazy,{SWITCH[kind]}").faults() == faults
    # without bounds checking there is no memory behind a buffer to go on with
    if kind != "bounds":
        assert lab.kernel(name, *args, checks=f"lazy,{others}").faults() == {}


def test_a_fault_names_its_line(lab: Lab, built: Path) -> None:
    (told,) = lab.kernel("behind_buffer", checks="bounds").report[-1]["faults"]
    library, _, address = told["where"].partition("+")
    assert library == "libtest-dsp.so"
    asked = ["addr2line", "-f", "-e", str(built / library), address]
    try:
        text = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    except OSError:
        pytest.skip("no addr2line")
    assert text.split()[0] == "behind_buffer"
    assert told["size"] == 1 and int(told["addr"], 16) % 4096 == 0


def test_a_fault_is_counted_where_it_happens(lab: Lab) -> None:
    answer = lab.kernel("scalar_vtcm", "/", "nothing", "/", "scalar_vtcm", checks="scalar")
    assert [op["faults"] for op in answer.ops()] == [{"scalar_vtcm": 2}, {}, {"scalar_vtcm": 2}]
    assert [told["count"] for told in answer.report[-1]["faults"]] == [2, 2]


def test_vtcm_is_poisoned_between_ops(lab: Lab) -> None:
    clean = lab.kernel("touch_vtcm_end")
    assert clean.results()[:2] == [0, 0]
    answer = lab.kernel("touch_vtcm_end", checks="poison")
    assert answer.results()[:2] == [0x7FFF7FFF, 0x7FFF7FFF]


def test_what_is_counted(lab: Lab) -> None:
    n = lab.kernel("ddr_bytes").op()["n"]
    assert n == {"hvx_ld": 1, "hvx_st": 1, "ddr_rd": 40 + 128, "ddr_wr": 40 + 128}
    n = lab.kernel("vector_unaligned").op()["n"]
    assert n == {"hvx_ldu": 1, "hvx_stu": 1, "ddr_rd": 128, "ddr_wr": 128}
    assert lab.kernel("scalar_vtcm").op()["n"] == {"vtcm_scalar": 2}
    assert lab.kernel("copy_to_vtcm", 0).op()["n"] == {"vtcm_scalar": 10, "ddr_rd": 80}
    n = lab.kernel("misaligned_vector").op()["n"]
    assert n == {"hvx_ld": 1, "misaligned": 1}


def test_totals_include_all_threads(lab: Lab) -> None:
    answer = lab.kernel("threads", "/", "scalar_vtcm", device="name=toy")
    total = answer.report[-1]
    assert total["total"] == {"hvx_alu": 100, "vtcm_scalar": 2}
    assert total["device"] == "toy"
    assert sum("total" in line for line in answer.report) == 1


def test_stack_depths_are_reported(lab: Lab) -> None:
    (told,) = lab.kernel("stack_use", 3, checks="stack").report[-1]["stacks"]
    assert told["thread"] == "kernel" and told["asked"] == 16384
    assert 3 * 4096 < told["used"] < 6 * 4096


def test_ops_have_a_status(lab: Lab) -> None:
    answer = lab.kernel("none_such")
    assert answer.op()["op"] == "none_such" and answer.op()["status"] == 39


def test_a_crash_says_where(lab: Lab) -> None:
    answer = lab.run("kernel", "nothing", "/", "crash")
    assert answer.status < 0
    done, fatal = answer.report
    assert done["op"] == "nothing"
    assert fatal["op"] == "crash" and fatal["fatal"] == "Segmentation fault"
    assert fatal["where"].startswith("libtest-dsp.so+0x") and fatal["addr"] == "0x10"
    assert "crash" in answer.said


def test_unknown_words_are_told(lab: Lab) -> None:
    answer = lab.kernel("nothing", device="colour=red", checks="colour")
    assert "unknown key colour" in answer.said and "unknown word colour" in answer.said


def test_without_a_report_faults_go_to_stderr(lab: Lab) -> None:
    answer = lab.kernel("scalar_vtcm", checks="scalar", HEXPATCH_SIM_REPORT="")
    assert answer.report == [] and "scalar load or store to VTCM" in answer.said
