"""The runtime, a DSP library of small kernels, a host program for both: a process per question."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "hexpatch" / "sim" / "runtime"
INCS = RUNTIME.parent / "sdk" / "incs"
COMPILERS = ("clang", *(f"clang-{n}" for n in range(30, 13, -1)))
SDK = (f"-I{INCS}", f"-I{INCS / 'stddef'}", f"-I{RUNTIME}")
STRICT = ("-std=gnu11", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wno-psabi")
# As hexpatch/sim/cc.py compiles the checked flavour.
CHECKED = (
    "-D__hexagon__=1",
    "-Wno-pointer-to-int-cast",
    "-Wno-int-to-pointer-cast",
    "-fsanitize=kernel-address",
    *("-mllvm", "-asan-instrumentation-with-call-threshold=0"),
    *("-mllvm", "-asan-stack=0"),
    *("-mllvm", "-asan-globals=0"),
    *("-mllvm", "-asan-opt-same-temp=0"),
)
WRAPPED = ("malloc", "calloc", "realloc", "free", "memalign", "memcpy", "memmove", "memset")


@dataclass
class Answer:
    """What a run printed and reported."""

    status: int
    lines: dict[str, str]
    text: str
    said: str
    report: list[dict[str, Any]] = field(default_factory=list)

    def ops(self) -> list[dict[str, Any]]:
        return [line for line in self.report if "op" in line and "n" in line]

    def op(self) -> dict[str, Any]:
        """The one op's line."""
        (line,) = self.ops()
        return line

    def faults(self) -> dict[str, int]:
        return dict(self.op()["faults"])

    def results(self) -> list[int]:
        """Of the last kernel."""
        return [int(word, 16) for word in self.text.split("\n")[-2].split()[2:]]


@dataclass
class Lab:
    """A built folder; every call of run is a process of its own."""

    folder: Path
    report: Path

    def run(self, *args: object, device: str = "", checks: str = "", **env: str) -> Answer:
        self.report.unlink(missing_ok=True)
        full = {
            **os.environ,
            "ADSP_LIBRARY_PATH": f"/nowhere;{self.folder}",
            "LD_LIBRARY_PATH": str(self.folder),
            "HEXPATCH_SIM_DEVICE": device,
            "HEXPATCH_SIM_CHECKS": checks,
            "HEXPATCH_SIM_REPORT": str(self.report),
            **env,
        }
        done = subprocess.run(
            [str(self.folder / "host"), *map(str, args)],
            env=full,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        pairs = (line.partition(" ") for line in done.stdout.splitlines())
        report = self.report.read_text().splitlines() if self.report.exists() else []
        return Answer(
            done.returncode,
            {name: rest for name, _, rest in pairs},
            done.stdout,
            done.stderr,
            [json.loads(line) for line in report],
        )

    def kernel(self, *args: object, device: str = "", checks: str = "", **env: str) -> Answer:
        answer = self.run("kernel", *args, device=device, checks=checks, **env)
        assert answer.status == 0, answer.said
        return answer


def compiler() -> str:
    """A clang: the callbacks of the checked flavour are clang's."""
    for name in (os.environ.get("HEXPATCH_CLANG", ""), *COMPILERS):
        if name and shutil.which(name):
            return name
    pytest.skip("no clang")


def build(folder: Path) -> None:
    cc = compiler()

    def make(*argv: object) -> None:
        subprocess.run([cc, *map(str, argv)], check=True)

    so = ("-shared", "-pthread", "-Wl,-soname,libcdsprpc.so", "-Wl,-Bsymbolic-functions")
    link = (f"-L{folder}", "-lcdsprpc")
    # -w: the runtime's own warnings are for those who change it
    runtime = sorted(RUNTIME.glob("*.c"))
    made = ("-Wl,-z,defs", "-lm", "-ldl", "-o", folder / "libcdsprpc.so")
    make("-std=gnu11", "-O1", "-fPIC", "-w", *SDK, *runtime, *so, *made)
    dsp = (*(HERE / f"runtime_{part}.c" for part in ("dsp", "kernels", "dma")), "-shared")
    wrap = [f"-Wl,--wrap={name}" for name in WRAPPED]
    make(*STRICT, "-O1", *CHECKED, *SDK, *dsp, *wrap, *link, "-o", folder / "libtest-dsp.so")
    make(*STRICT, "-O1", *SDK, HERE / "runtime_host.c", *link, "-o", folder / "host")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once a run, by whichever worker comes first."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = base / "runtime"
    with (base / "runtime.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            part = base / "runtime.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            build(part)
            part.rename(folder)
    return folder


@pytest.fixture
def lab(built: Path, tmp_path: Path) -> Lab:
    return Lab(built, tmp_path / "report.jsonl")
