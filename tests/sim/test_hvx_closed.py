"""Memory forms, counters and IEEE arithmetic in closed C programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import hvx_lab as lab
import pytest

pytestmark = [
    pytest.mark.sim,
    pytest.mark.skipif(lab.host_clang() is None, reason="needs clang"),
]


def run(program: Path) -> None:
    """The program's own checks hold."""
    done = subprocess.run([program], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout


def test_gather_scatter_and_masked_stores(tmp_path: Path) -> None:
    """Regions, masks, truncated addresses, faults; each form counts itself."""
    run(lab.build_host(lab.HERE / "hvx_memory.c", tmp_path / "memory"))


@pytest.mark.parametrize("arch", [73, 79])
def test_ieee_forms(tmp_path: Path, arch: int) -> None:
    """Every IEEE form and conversion against scalar references."""
    run(lab.build_host(lab.HERE / "hvx_ieee.c", tmp_path / "ieee", arch=arch))


@pytest.mark.skipif(lab.tool("clang-14") is None, reason="needs clang-14")
def test_ieee_forms_with_the_oldest_compiler(tmp_path: Path) -> None:
    """The same with clang 14."""
    clang = lab.tool("clang-14")
    run(lab.build_host(lab.HERE / "hvx_ieee.c", tmp_path / "ieee", clang=clang))
