"""qfloat: the fast forms against the plain rules, golden values, how far from IEEE."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import hvx_lab as lab
import pytest

pytestmark = [
    pytest.mark.sim,
    pytest.mark.skipif(lab.host_clang() is None, reason="needs clang"),
]


@pytest.mark.slow
def test_the_fast_forms_follow_the_rules_bit_for_bit(tmp_path: Path) -> None:
    """A million pairs for each operation, edge cases among them; and the known statistics."""
    program = lab.build_host(lab.HERE / "hvx_qfloat.c", tmp_path / "qfloat", "-DHEXSIM_COUNT=0")
    done = subprocess.run([program, str(1 << 20)], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("\n0 wrong\n")
    found = re.search(r"mul ([\d.]+) add ([\d.]+) far (\d+)", done.stdout)
    assert found is not None
    # Of normally distributed pairs about 38 % of products and 47 % of sums differ from IEEE.
    assert abs(float(found[1]) - 0.38) < 0.01
    assert abs(float(found[2]) - 0.47) < 0.01
    assert found[3] == "0"


@pytest.mark.parametrize("arch", [73, 79])
def test_known_values(tmp_path: Path, arch: int) -> None:
    """Golden values of both models: encodings, constants, rounding, IEEE forms."""
    program = lab.build_host(lab.HERE / "hvx_golden.c", tmp_path / "golden", arch=arch)
    done = subprocess.run([program], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
