"""Every intrinsic that upstream's kernels name is declared; the headers compile everywhere."""

from __future__ import annotations

import re
import resource
import subprocess
from pathlib import Path

import hvx_lab as lab
import pytest

# In upstream's comments only, or a type of quantisation.
NO_INTRINSICS = {"Q6_K", "Q6_dmstart"}


def snapshots() -> dict[str, list[str]]:
    """The names of q6-names.txt, by snapshot."""
    found: dict[str, list[str]] = {}
    for line in (lab.HERE / "q6-names.txt").read_text().splitlines():
        if line.startswith("["):
            found[line.strip("[]")] = names = []
        elif line and not line.startswith("#"):
            names += line.split()
    return found


def names_in(folder: Path) -> list[str]:
    """The Q6_ names in a folder of sources, as q6-names.txt is made."""
    found = set()
    for path in sorted(folder.rglob("*.[ch]")):
        found |= set(re.findall(r"\bQ6_\w+", path.read_text(errors="replace")))
    return sorted(found - NO_INTRINSICS)


def undeclared(names: list[str], arch: int) -> list[str]:
    """Those of the names that the headers do not declare."""
    compiler = lab.host_clang()
    assert compiler is not None
    table = "".join(f"    (void *) {name},\n" for name in names)
    source = f"#include <hexagon_types.h>\nvoid * table[] = {{\n{table}}};\n"
    done = subprocess.run(
        [compiler, *lab.host_flags(), f"-D__HVX_ARCH__={arch}", "-isystem", str(lab.SDK),
         "-fsyntax-only", "-ferror-limit=0", "-x", "c", "-"],
        input=source, text=True, capture_output=True, check=False,
    )  # fmt: skip
    missing = re.findall(r"undeclared identifier '(\w+)'", done.stderr)
    assert missing or done.returncode == 0, done.stderr
    return missing


pytestmark = [
    pytest.mark.sim,
    pytest.mark.skipif(lab.host_clang() is None, reason="needs clang"),
]


@pytest.mark.parametrize("arch", [73, 79])
def test_every_snapshot_is_covered(arch: int) -> None:
    """No snapshot names an intrinsic that the headers lack."""
    for snapshot, names in snapshots().items():
        assert len(names) > 50
        assert undeclared(names, arch) == [], snapshot


def test_the_tables_are_declared() -> None:
    """Every row of the lists that are compared with the emulator is there."""
    assert undeclared([row.name for row in lab.table()], 73) == []


def test_an_unknown_name_is_found(tmp_path: Path) -> None:
    """A folder's names are collected, and one that is not modelled is reported."""
    (tmp_path / "kernel.c").write_text(
        "// Q6_dmstart\nHVX_Vector f(HVX_Vector v) { return Q6_Vb_vshuff_Vb(Q6_V_vnew_V(v)); }\n"
    )
    names = names_in(tmp_path)
    assert names == ["Q6_V_vnew_V", "Q6_Vb_vshuff_Vb"]
    assert undeclared(names, 73) == ["Q6_V_vnew_V"]


USER = """
#include <hexagon_types.h>
HVX_Vector sum(HVX_Vector a, HVX_Vector b) { return Q6_Vqf32_vadd_VsfVsf(a, b); }
HVX_Vector pick(HVX_Vector a, HVX_Vector b) {
    HVX_VectorPred q = Q6_Q_vcmp_gt_VhVh(a, b);
    return Q6_V_vmux_QVV(q, a, b);
}
HVX_Vector load(const void * p) { return *(const HVX_UVector *) p; }
"""


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("arch", [73, 75, 79, 81])
def test_compiles_without_a_warning(language: str, arch: int) -> None:
    """C and C++, every generation, every installed clang, within two seconds."""
    for name in lab.CLANGS:
        compiler = lab.tool(name)
        if compiler is None:
            continue
        start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(
            [compiler, f"-D__HVX_ARCH__={arch}", "-I", str(lab.SDK), *lab.host_flags(),
             "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", language, "-"],
            input=USER, text=True, check=True,
        )  # fmt: skip
        assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start < 2


def test_a_vector_is_no_predicate() -> None:
    """Passing one for the other is an error."""
    compiler = lab.host_clang()
    assert compiler is not None
    done = subprocess.run(
        [compiler, "-D__HVX_ARCH__=73", "-I", str(lab.SDK), "-fsyntax-only", "-x", "c", "-"],
        input="#include <hexagon_types.h>\n"
        "HVX_Vector f(HVX_Vector a) { return Q6_V_vmux_QVV(a, a, a); }\n",
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "HVX_VectorPred" in done.stderr


def test_a_vector_load_is_one_aligned_vector_in_the_ir() -> None:
    """The toolchain truncates such addresses: `load <32 x i32>, align 128`."""
    compiler = lab.host_clang()
    assert compiler is not None
    done = subprocess.run(
        [compiler, "-D__HVX_ARCH__=73", "-I", str(lab.SDK), *lab.host_flags(),
         "-S", "-emit-llvm", "-x", "c", "-", "-o", "-"],
        input="#include <hexagon_types.h>\n"
        "void f(HVX_Vector * p, HVX_UVector * q) { *p = Q6_V_vnot_V(*q); }\n",
        text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert re.search(r"load <32 x i32>, .*align 1\b(?!\d)", done.stdout)
    assert re.search(r"store <32 x i32> .*align 128", done.stdout)
