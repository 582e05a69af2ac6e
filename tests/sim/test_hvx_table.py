"""Integer intrinsics against a Hexagon compiler and QEMU: one body, two oracles."""

from __future__ import annotations

import subprocess
from pathlib import Path

import hvx_lab as lab
import pytest

ROUNDS = 40


@pytest.mark.sim
@pytest.mark.slow
def test_every_integer_intrinsic_equals_qemu(tmp_path: Path) -> None:
    """The simulator's result is the emulator's in every byte, for every row of the table."""
    qemu = lab.tool("qemu-hexagon", "qemu-hexagon-static")
    if qemu is None or lab.hexagon_clang() is None or lab.hexagon_linker() is None:
        pytest.skip("needs qemu-hexagon, a clang with the Hexagon target and lld")
    if lab.host_clang() is None:
        pytest.skip("needs clang")
    rows = lab.table()
    source = tmp_path / "body.c"
    source.write_text(lab.program(rows, ROUNDS))
    ours = lab.build_host(source, tmp_path / "ours")
    theirs = lab.build_hexagon(source, tmp_path / "theirs")
    got = subprocess.run([ours], stdout=subprocess.PIPE, check=True).stdout
    want = subprocess.run([qemu, "-cpu", "v67", theirs], stdout=subprocess.PIPE, check=True).stdout
    oldest = lab.tool("clang-14")
    if oldest is not None:
        other = lab.build_host(source, tmp_path / "other", clang=oldest)
        assert subprocess.run([other], stdout=subprocess.PIPE, check=True).stdout == got
    sizes = [row.vectors() * len(row.immediates()) * 128 * ROUNDS for row in rows]
    assert len(got) == len(want) == sum(sizes)
    bad, at = [], 0
    for row, size in zip(rows, sizes, strict=True):
        if got[at : at + size] != want[at : at + size]:
            first = next(i for i in range(size) if got[at + i] != want[at + i])
            bad.append(f"{row.name}: byte {first % 128} of vector {first // 128}")
        at += size
    assert not bad, "\n".join(bad)
