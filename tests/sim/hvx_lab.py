"""Compilers and generated programs for the tests of the HVX headers."""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).parent
SDK = HERE.parents[1] / "hexpatch" / "sim" / "sdk" / "incs"
CLANGS = ("clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16",
          "clang-15", "clang-14", "clang")  # fmt: skip


def tool(*names: str) -> str | None:
    """The first of these programs that is installed."""
    return next((found for name in names if (found := shutil.which(name))), None)


@lru_cache(maxsize=1)
def host_clang() -> str | None:
    """A clang for this machine."""
    return tool(*CLANGS)


@lru_cache(maxsize=1)
def hexagon_clang() -> str | None:
    """A clang with the Hexagon target and its HVX header."""
    for name in CLANGS:
        found = shutil.which(name)
        if found is None:
            continue
        probe = subprocess.run(
            [found, "--target=hexagon", "-mv67", "-mhvx", "-mhvx-length=128B", "-ffreestanding",
             "-fsyntax-only", "-x", "c", "-"],
            input="#include <hexagon_types.h>\nHVX_Vector f(void) { return Q6_V_vzero(); }\n",
            text=True, capture_output=True, check=False,
        )  # fmt: skip
        if probe.returncode == 0:
            return found
    return None


def hexagon_linker() -> str | None:
    """lld under any of its versions' names."""
    return tool(*(name.replace("clang", "ld.lld") for name in CLANGS))


@lru_cache(maxsize=1)
def host_flags() -> tuple[str, ...]:
    """As the device libraries are compiled: no vectoriser, AVX2 when the machine has it."""
    flags = ["-O2", "-fno-vectorize", "-fno-slp-vectorize", "-ffp-contract=off"]
    cpuinfo = Path("/proc/cpuinfo")
    if platform.machine() == "x86_64" and cpuinfo.exists() and " avx2 " in cpuinfo.read_text():
        flags += ["-mavx2", "-mf16c"]
    return tuple(flags)


def build_host(
    source: Path, to: Path, *defines: str, arch: int = 73, clang: str | None = None
) -> Path:
    """A native program from a source that uses the headers."""
    compiler = clang or host_clang()
    assert compiler is not None
    subprocess.run(
        [compiler, "-std=gnu11", *host_flags(), "-Wall", "-Wextra", "-Werror",
         "-Wno-unused-function", f"-D__HVX_ARCH__={arch}", *defines, "-isystem", str(SDK),
         "-I", str(HERE), str(source), "-o", str(to), "-lm"],
        check=True,
    )  # fmt: skip
    return to


def build_hexagon(source: Path, to: Path) -> Path:
    """The same source for a v67 machine, static and without a C library."""
    compiler, linker = hexagon_clang(), hexagon_linker()
    assert compiler is not None
    assert linker is not None
    obj = to.with_suffix(".o")
    subprocess.run(
        [compiler, "--target=hexagon", "-mv67", "-mhvx", "-mhvx-length=128B", "-ffreestanding",
         "-fno-builtin", "-O1", "-I", str(HERE), "-c", str(source), "-o", str(obj)],
        check=True,
    )  # fmt: skip
    subprocess.run([linker, "-m", "hexagonelf", "-static", str(obj), "-o", str(to)], check=True)
    return to


@dataclass(frozen=True)
class Intrinsic:
    """One row of the lists of intrinsics."""

    name: str
    gives: str
    takes: str

    def vectors(self) -> int:
        """Vectors that one call writes."""
        return {"V": 1, "W": 2, "Q": 1, "R": 1, "P": 2}[self.gives] + self.takes.count("C")

    def immediates(self) -> list[int]:
        """Every value of a small immediate, a few of a large one, or one call without."""
        if "K" in self.takes:
            return [-1, -2, -4, -8, -16, -32, -64, 0, 3, 32, 77, 124]
        bits = next((int(kind) for kind in self.takes if kind in "12356"), 0)
        return list(range(2**bits)) if bits < 4 else [0, 1, 7, 16, 2**bits - 1]

    def calls(self) -> str:
        """C statements: one call for each immediate, with fresh operands, in a fixed order."""
        make = {
            "V": "HVX_Vector {} = vec();",
            "W": "HVX_VectorPair {} = pair();",
            "Q": "HVX_VectorPred {} = pred();",
            "C": "HVX_VectorPred {} = pred();",
            "R": "int {} = (int) scalar();",
            "P": "long long {} = (long long) scalar64();",
        }
        text = []
        for value in self.immediates():
            names, decls, after = [], [], ""
            for at, kind in enumerate(self.takes):
                name = f"a{at}"
                if kind in "K12356":
                    names.append(str(value))
                    continue
                decls.append(make[kind].format(name))
                names.append(f"&{name}" if kind == "C" else name)
                if kind == "C":
                    after = f" put_Q({name});"
            call = f"put_{self.gives}({self.name}({', '.join(names)}));"
            text.append("{ " + " ".join([*decls, call]) + after + " }")
        return "\n    ".join(text)


def table() -> list[Intrinsic]:
    """The rows of hvx-integer.txt and hvx-scalar.txt."""
    rows = []
    for file in ("hvx-integer.txt", "hvx-scalar.txt"):
        for line in (HERE / file).read_text().splitlines():
            if line and not line.startswith("#"):
                name, gives, takes = line.split()
                rows.append(Intrinsic(name, gives, takes.replace("-", "")))
    return rows


def program(rows: list[Intrinsic], rounds: int) -> str:
    """A C program that calls each intrinsic so many times and writes all results."""
    out = ['#include "hvx_driver.h"']
    out += [f"static void t{at}(void) {{\n    {row.calls()}\n}}" for at, row in enumerate(rows)]
    names = ", ".join(f"t{at}" for at in range(len(rows)))
    out.append(f"static void (*const tests[])(void) = {{{names}}};")
    out.append(
        "static void run(void) {\n"
        f"    for (u32 i = 0; i < {len(rows)}; i++)\n"
        f"        for (u32 k = 0; k < {rounds}; k++) {{\n"
        "            rng_state = i * 1000003u + k * 7919u + 1;\n"
        "            tests[i]();\n"
        "        }\n"
        "}\n"
    )
    return "\n".join(out)
