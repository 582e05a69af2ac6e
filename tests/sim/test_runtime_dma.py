"""The DMA engine: descriptors of every architecture, at once and lazily."""

from __future__ import annotations

import pytest
from runtime_lab import Lab, built, lab

__all__ = ["built", "lab"]
pytestmark = pytest.mark.sim

EE = 0xEE


def row(first: int, n: int, fill: int = EE) -> int:
    """Eight bytes as read from memory: n that count up from first, the rest as they were."""
    some = [(first + i) & 0xFF for i in range(n)] + [fill] * (8 - n)
    return int.from_bytes(bytes(some), "little")


@pytest.mark.parametrize("modes", ["", "lazy"])
@pytest.mark.parametrize(("arch", "type_"), [(73, 0), (75, 0), (75, 9), (79, 9), (81, 9), (81, 10)])
def test_rows_with_strides(lab: Lab, arch: int, type_: int, modes: str) -> None:
    answer = lab.kernel("dma_2d", type_, 3, 5, 300 | 64 << 16, device=f"arch={arch}", checks=modes)
    assert answer.results() == [row(0, 5), row(300, 5), row(600, 5), row(0, 0)]
    n = answer.op()["n"]
    assert (n["dma"], n["dma_rows"], n["dma_bytes"]) == (1, 3, 15)
    assert n.get("dma_waits", 0) == (1 if modes else 0)


@pytest.mark.parametrize(("type_", "stride"), [(0, 65536), (9, 1 << 24)])
def test_a_stride_of_zero_is_the_largest(lab: Lab, type_: int, stride: int) -> None:
    """One row is fine; the second is so far away that nothing is mapped there."""
    args = {"device": "arch=75", "checks": "dma"}
    assert lab.kernel("dma_2d", type_, 1, 8, 8 << 16, **args).faults() == {}
    assert lab.kernel("dma_2d", type_, 2, 8, 8 << 16, **args).faults() == {"dma_bad": 1}
    assert stride


def test_many_rows_of_the_wide_type(lab: Lab) -> None:
    """More than 255 rows: the upper bits are in another word."""
    answer = lab.kernel("dma_2d", 9, 300, 4, 8 | 8 << 16, device="arch=75")
    n = answer.op()["n"]
    assert (n["dma_rows"], n["dma_bytes"]) == (300, 1200)


@pytest.mark.parametrize("modes", ["", "lazy"])
def test_a_linear_copy_of_any_alignment(lab: Lab, modes: str) -> None:
    answer = lab.kernel("dma_linear", checks=modes)
    assert answer.results()[0] == int.from_bytes(bytes([EE] * 3 + [8, 9, 10, 11, 12]), "little")
    assert answer.results()[2] == (0 if modes else 1), "done right after dmlink"


def test_the_sdks_descriptor_has_pointers(lab: Lab) -> None:
    """Two rows of 4 bytes, 256 apart, to rows of 8; VTCM is zero when a process begins."""
    assert lab.kernel("dma_sdk").results()[:2] == [row(0, 4, fill=0), row(0, 4, fill=0)]


@pytest.mark.parametrize("offset", [0, 256])
def test_addresses_of_40_bits(lab: Lab, offset: int) -> None:
    """The first extended mapping is at a multiple of 4 GiB: a low half of 0, as the SDK's hole."""
    answer = lab.run("extended", offset, device="arch=81", checks="dma")
    assert answer.lines["low"] == str(offset)
    assert answer.lines["got"] == "far away"
    assert answer.op()["faults"] == {}


def test_lazily_one_descriptor_a_poll(lab: Lab) -> None:
    assert lab.kernel("dma_chain", checks="lazy").results() == [0, 1, 2, 3]
    assert lab.kernel("dma_chain").results() == [3, 3, 3, 3]


@pytest.mark.parametrize("modes", ["", "lazy"])
def test_dmwait_ends_a_chain(lab: Lab, modes: str) -> None:
    assert lab.kernel("dma_wait", checks=modes).results()[:2] == [0, 1]


@pytest.mark.parametrize("modes", ["", "lazy"])
def test_another_thread_may_wait(lab: Lab, modes: str) -> None:
    answer = lab.kernel("dma_other_thread", checks=modes)
    assert answer.results()[:2] == [1, row(0, 8)]
