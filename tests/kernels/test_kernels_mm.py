"""Kernels of the integer matmul against exact references, on the simulator's HVX and HMX models.

The C drivers include the kernels' own headers. Mutations of the headers must fail a driver.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from kernel_lab import ARCHES, HERE, KERNELS, Lab, lab

__all__ = ["lab"]
pytestmark = [pytest.mark.upstream, pytest.mark.sim]

DRIVERS = ("q4_0", "types", "pack", "product")


def run(program: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *args], capture_output=True, text=True, check=False, timeout=600
    )


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("driver", DRIVERS)
def test_kernel(lab: Lab, driver: str, arch: int) -> None:
    """A driver finds nothing wrong."""
    done = run(lab.built(f"mm_{driver}", arch, model=True))
    assert done.returncode == 0, done.stdout[-3000:]


def counts(text: str) -> dict[str, float]:
    """What the drivers counted: name -> HVX ops per unit."""
    lines = [line[6:].split(" ops ") for line in text.splitlines() if line.startswith("COUNT ")]
    return {name.strip(): float(rest.split()[0]) for name, rest in lines}


def test_counts(lab: Lab) -> None:
    """Operations per tile, 32 activations and 64 outputs stay where they are."""
    found: dict[str, float] = {}
    for driver in ("types", "pack", "product"):
        found |= counts(run(lab.built(f"mm_{driver}", model=True)).stdout)
    limits = {
        "q4_0 convert per tile, 20": 60,
        "iq4_nl convert per tile, 20": 72,
        "mxfp4 convert per tile, 20": 66,
        "q8_0 convert per tile, 20": 60,
        "q4_1 convert per tile, 20": 87,
        "q5_k convert per tile, 20": 123,
        "q6_k convert per tile, 20": 95,
        "pack per 32 activations": 6.2,
        "reduce per 64, 4 groups": 10,
        "reduce per 64, 5 groups": 11,
        "reduce per 64, 5 groups, acc": 13,
    }
    assert {name: found[name] for name in limits if found[name] > limits[name]} == {}


# what, driver that must notice, text, replacement
MUTATIONS = (
    ("low plane dropped", "product", "Q6_Vh_vasr_VwVwR(v1, v0, HMX_INT_MAGIC_SHIFT)",
     "Q6_V_vand_VV(Q6_Vh_vasr_VwVwR(v1, v0, HMX_INT_MAGIC_SHIFT), Q6_Vh_vsplat_R(0xFF00))"),
    ("low plane dropped", "pack", "Q6_Vh_vasr_VwVwR(v1, v0, HMX_INT_MAGIC_SHIFT)",
     "Q6_V_vand_VV(Q6_Vh_vasr_VwVwR(v1, v0, HMX_INT_MAGIC_SHIFT), Q6_Vh_vsplat_R(0xFF00))"),
    ("bias word off by one", "q4_0", "Q6_Vw_vsub_VwVw(half, ",
     "Q6_Vw_vsub_VwVw(Q6_V_vsplat_R(9), "),
    ("rounding not in the bias", "product", "1 << (HMX_INT_OUT_SHIFT - 1)", "0"),
    ("scale word one exponent off", "product", "(16 - HMX_INT_OUT_SHIFT) << 10",
     "(15 - HMX_INT_OUT_SHIFT) << 10"),
    ("column sum of one vector skipped", "types",
     "    c->sum = Q6_Vw_vrmpyacc_VwVbVb(c->sum, w1, c->ones);\n", ""),
    ("what rounding took from half the weights skipped", "types",
     "    hmx_int_sum_exact(c, ph);\n", ""),
    ("means dropped", "product", "Q6_V_vsplat_R(a->means[p + i])", "Q6_V_vzero()"),
    ("means swapped", "product", "Q6_Vh_vasr_VwVwR_sat(Q6_V_vror_VR(w, 64), w, 0)",
     "Q6_Vh_vasr_VwVwR_sat(w, Q6_V_vror_VR(w, 64), 0)"),
    ("tokens swapped", "pack", "Q6_Vh_vasr_VwVwR(v1, v0, HMX_INT_MAGIC_SHIFT)",
     "Q6_Vh_vasr_VwVwR(v0, v1, HMX_INT_MAGIC_SHIFT)"),
    ("tokens swapped at the end", "product", "hmx_int_output(a, Q6_V_lo_W(sum[i]), row + 0, add)",
     "hmx_int_output(a, Q6_V_hi_W(sum[i]), row + 0, add)"),
    ("stale accumulators: store keeps them", "product", ":after.uh = acc:2x1",
     ":after:retain.uh = acc:2x1"),
    ("stale accumulators: never cleared", "product",
     "        asm volatile(HMX_INT_CLRACC());\n\n"
     "        for (uint32_t r = 0; r < n_row_tiles; r++) {",
     '        asm volatile(HMX_INT_LOAD_MPY_DEEP("%0", "%1", "%2") '
     ':: "r"(act), "r"(wgt), "r"(range));\n'
     "        for (uint32_t r = 0; r < n_row_tiles; r++) {"),
    ("wrong half of the group scale", "product", "h = Q6_Vh_vshuffe_VhVh(w, w)", "h = w"),
    ("rounding always up", "q4_0",
     "Q6_W_vcombine_VV(Q6_Vh_vsplat_R(odd - 1), Q6_Vh_vsplat_R(-odd))",
     "Q6_W_vcombine_VV(Q6_V_vzero(), Q6_V_vzero())"),
    ("sign of the scale ignored", "types", "return Q6_Vw_vasr_VwR(v, 31);", "return Q6_V_vzero();"),
    ("norm of one group only", "pack",
     "vmax = Q6_Vw_vmax_VwVw(vmax, hmx_int_pair_sums(s0, s1))",
     "vmax = hmx_int_pair_sums(s0, s1)"),
    ("norm too small by two", "product", "#define HMX_INT_EXP_ONE  79",
     "#define HMX_INT_EXP_ONE  80"),
    ("columns out of order", "types", "Q6_V_lo_W(p), 86)", "Q6_V_lo_W(p), 85)"),
)  # fmt: skip


@pytest.mark.parametrize(("what", "driver", "old", "new"), MUTATIONS, ids=[m[0] for m in MUTATIONS])
def test_mutation(lab: Lab, what: str, driver: str, old: str, new: str, tmp_path: Path) -> None:
    """The driver notices a broken kernel."""
    changed = 0
    for name in ("hmx-int-mm-kernels.h", "hmx-int-utils.h", "matmul-int-ops.h"):
        text = (KERNELS / name).read_text()
        changed += old in text
        (tmp_path / name).write_text(text.replace(old, new, 1))
    assert changed == 1, f"{what}: the kernels changed, so must this test"
    source = HERE / f"mm_{driver}.c"
    done = run(lab.build(source, tmp_path / driver, first=tmp_path, model=True))
    assert done.returncode != 0, f"{what}: not noticed"
