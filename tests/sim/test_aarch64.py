"""The simulator on aarch64: cross-compiled, run by qemu-aarch64, skipped without them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import hvx_lab
import pytest
import runtime_lab

pytestmark = [pytest.mark.sim, pytest.mark.slow]
SYSROOT = Path("/usr/aarch64-linux-gnu")

# A compiler whose programs start by themselves: the emulator is put before them.
COMPILER = """\
#!/bin/bash
set -e
{clang} --target=aarch64-linux-gnu --ld-path={lld} "$@"
out=; last=
for word in "$@"; do [ "$last" = -o ] && out=$word; last=$word; done
if [ -n "$out" ] && [ "${{out%.so}}" = "$out" ] && [ "${{out%.o}}" = "$out" ]; then
    mv "$out" "$out.bin"
    printf '#!/bin/sh\\nexec {qemu} -L {sysroot} "$0.bin" "$@"\\n' >"$out"
    chmod +x "$out"
fi
"""


@pytest.fixture
def cross(tmp_path: Path) -> Path:
    """A stand-in for clang that makes programs for aarch64."""
    clang, lld, qemu = hvx_lab.host_clang(), hvx_lab.hexagon_linker(), shutil.which("qemu-aarch64")
    if clang is None or lld is None or qemu is None or not (SYSROOT / "lib/libc.so.6").exists():
        pytest.skip("needs clang, lld, qemu-aarch64 and the C library of aarch64")
    made = tmp_path / "clang"
    made.write_text(COMPILER.format(clang=clang, lld=lld, qemu=qemu, sysroot=SYSROOT))
    made.chmod(0o755)
    return made


def program(cross: Path, source: Path, *defines: str, arch: int) -> Path:
    to = cross.with_name(f"{source.stem}-{arch}")
    subprocess.run(
        [cross, "-std=gnu11", "-O2", "-ffp-contract=off", f"-D__HVX_ARCH__={arch}", *defines,
         "-isystem", hvx_lab.SDK, "-I", hvx_lab.HERE, source, "-o", to, "-lm"],
        check=True,
    )  # fmt: skip
    return to


@pytest.mark.parametrize(
    ("name", "arch"),
    [("hvx_memory", 73), ("hvx_golden", 73), ("hvx_golden", 79), ("hvx_ieee", 73)],
)
def test_vectors(cross: Path, name: str, arch: int) -> None:
    subprocess.run([program(cross, hvx_lab.HERE / f"{name}.c", arch=arch)], check=True)


def test_integer_intrinsics_are_those_of_this_machine(cross: Path) -> None:
    source = cross.with_name("body.c")
    source.write_text(hvx_lab.program(hvx_lab.table(), 2))
    ours = hvx_lab.build_host(source, cross.with_name("ours"))
    theirs = program(cross, source, arch=73)
    outputs = [subprocess.run([p], stdout=subprocess.PIPE, check=True).stdout
               for p in (ours, theirs)]  # fmt: skip
    assert outputs[0]
    assert outputs[0] == outputs[1]


def test_host_and_dsp_meet(cross: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEXPATCH_CLANG", str(cross))
    folder = tmp_path / "runtime"
    folder.mkdir()
    runtime_lab.build(folder)
    head = (folder / "host.bin").read_bytes()[:20]
    assert int.from_bytes(head[18:20], "little") == 183  # EM_AARCH64
    lab = runtime_lab.Lab(folder, tmp_path / "report.jsonl")
    called = lab.run("rpc")
    assert called.status == 0, called.said
    assert called.lines["text"] == "desserts"
    assert int(called.lines["places"], 16) < 1 << 32
    assert lab.run("queue", "thread").status == 0
