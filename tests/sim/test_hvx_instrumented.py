"""What an intrinsic does inside is no access of the kernel: no callback of the checked flavour."""

from __future__ import annotations

import re
import subprocess

import hvx_lab as lab
import pytest

FLAGS = (
    "-fsanitize=kernel-address",
    *("-mllvm", "-asan-instrumentation-with-call-threshold=0"),
    *("-mllvm", "-asan-stack=0"),
    *("-mllvm", "-asan-globals=0"),
    *("-mllvm", "-asan-use-stack-safety=1"),
    *("-mllvm", "-asan-opt-same-temp=0"),
)
FLOATS = """
Q6_Vqf32_vadd_VsfVsf V VV
Q6_Vqf32_vmpy_Vqf32Vqf32 V VV
Q6_Wqf32_vmpy_VhfVhf W VV
Q6_Vqf16_vadd_Vqf16Vhf V VV
Q6_Vhf_equals_Wqf32 V W
Q6_Vhf_equals_Vqf16 V V
Q6_Vsf_equals_Vqf32 V V
Q6_Vhf_vmpy_VhfVhf V VV
Q6_Wsf_vmpyacc_WsfVhfVhf W WVV
Q6_Vhf_vmpyacc_VhfVhfVhf V VVV
Q6_Vsf_vdmpyacc_VsfVhfVhf V VVV
Q6_Vhf_vcvt_VsfVsf V VV
Q6_Vb_vcvt_VhfVhf V VV
Q6_Vsf_vmax_VsfVsf V VV
Q6_Q_vcmp_gt_VhfVhf Q VV
"""
TYPES = {"V": "HVX_Vector", "W": "HVX_VectorPair", "Q": "HVX_VectorPred"}


def source(rows: list[lab.Intrinsic]) -> tuple[str, dict[str, int]]:
    """A function for each row that loads its operands and stores the result; how many of these."""
    text, accesses = "#include <hexagon_types.h>\n", {}
    for at, row in enumerate(rows):
        if row.gives not in TYPES or set(row.takes) - set("VWQRK123"):
            continue
        name = f"f{at}_{row.name}"
        params, call = ["void * out"], []
        for i, kind in enumerate(row.takes):
            if kind in TYPES:
                params.append(f"const void * a{i}")
                call.append(f"*(const {TYPES[kind]} *) a{i}")
            elif kind == "R":
                params.append(f"int a{i}")
                call.append(f"a{i}")
            else:
                call.append("1" if kind != "K" else "-4")
        text += (
            f"void {name}({', '.join(params)}) "
            f"{{ *({TYPES[row.gives]} *) out = {row.name}({', '.join(call)}); }}\n"
        )
        accesses[name] = 1 + sum(kind in TYPES for kind in row.takes)
    return text, accesses


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize("name", ["clang-22", "clang-14", "clang"])
@pytest.mark.parametrize("arch", [73, 79])
def test_only_the_operands_are_seen(name: str, arch: int) -> None:
    """Callbacks: one for each load of an operand, one for the store of the result."""
    compiler = lab.tool(name)
    if compiler is None:
        pytest.skip(f"needs {name}")
    rows = [lab.Intrinsic(*line.split()) for line in FLOATS.strip().splitlines()]
    text, accesses = source(lab.table() + rows)
    assert len(accesses) > 350
    done = subprocess.run(
        [compiler, f"-D__HVX_ARCH__={arch}", "-isystem", str(lab.SDK), *lab.host_flags(), *FLAGS,
         "-S", "-emit-llvm", "-x", "c", "-", "-o", "-"],
        input=text, text=True, capture_output=True, check=True,
    )  # fmt: skip
    found = {}
    for match in re.finditer(r"define [^\n]*@(\w+)\([^\n]*\{\n(.*?)\n\}", done.stdout, re.S):
        found[match[1]] = len(re.findall(r"call [^\n]*@__asan_", match[2]))
    wrong = [f"{k}: {found.get(k)}, not {n}" for k, n in accesses.items() if found.get(k) != n]
    assert not wrong, "\n".join(wrong)
    outer = [k for k, n in found.items() if k not in accesses and n]
    assert not outer, outer
