"""Copies of rows shorter than a vector: tables, gathers, plan and worker against plain loops."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from kernel_lab import ARCHES, Lab, lab

__all__ = ["lab"]
pytestmark = [pytest.mark.upstream, pytest.mark.sim]


@pytest.fixture(scope="module", params=ARCHES)
def program(request: pytest.FixtureRequest, lab: Lab) -> Path:
    """The driver for an arch."""
    return lab.built("short_rows", request.param)


def said(program: Path, *args: object) -> str:
    done = subprocess.run(
        [str(program), *map(str, args)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("what", ["table", "gather"])
def test_kernels(program: Path, what: str) -> None:
    """Every row length, one part and two, rows and columns, f32 and f16, ends within a vector."""
    assert said(program, what, 1, 3000) == ""


@pytest.mark.parametrize("what", ["cpy", "concat"])
@pytest.mark.parametrize("seed", [1, 2])
def test_copies(program: Path, what: str, seed: int) -> None:
    """Random views, permutations, bases, threads and devices; DMA late and never out of bounds."""
    words = said(program, what, seed, 300).split()
    planned, refused = int(words[1]), int(words[3])
    assert planned > 80, (planned, refused)


def test_plan(program: Path) -> None:
    """What is taken, at which cost, and what stays with the old branches."""
    lines = dict(line.split(": ", 1) for line in said(program, "plan", 1, 1).splitlines())
    left = {name for name, text in lines.items() if text == "left"}
    assert left == {
        "cpy contiguous",
        "cpy stride 260",
        "cpy 63 rows",
        "cpy rows of a vector",
        "cpy strided dst",
        "cpy transposed",
        "cpy one column far apart",
        "cpy f16 wide columns",
        "concat 3 + 29 columns",
        "concat without room",
    }
    state = lines["cpy conv state"]
    assert "gathers 768" in state
    assert "period 3 vectors" in state
    # no descriptor of short rows: as many DMA rows as descriptors
    for name in ("cpy conv state", "cpy two sequences", "cpy stride 256", "concat 3 + 1 columns"):
        words = lines[name].replace(",", "").split()
        assert words[words.index("dma") + 1] == words[words.index("dma") + 3], lines[name]
