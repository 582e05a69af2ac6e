"""The integer matmul as an op, driver and kernels, against float64 and upstream's HVX route.

A column tile knows nothing of the others, so a slice of N shows the error of the whole: 128 columns
are one tile for each of four threads, 256 fill both of a thread's slots.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")

import numpy as np
from kernel_lab import HERE, KERNELS, Lab
from mm_lab import TYPES, Matmul, activations, lab, matmul, nmse, weights, wrong

from hexpatch.errors import HexpatchError
from hexpatch.sim import inspect

__all__ = ["lab", "matmul"]
pytestmark = [pytest.mark.upstream, pytest.mark.sim]
Array = np.ndarray[Any, Any]

KINDS = ("normal", "positive", "outliers")


def normal(k: int, n: int, seed: int = 1) -> Array:
    """Weights as models have them."""
    return np.random.default_rng(seed).standard_normal((k, n))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(512, 2560, 256), (512, 9216, 128), (64, 2560, 256), (64, 9216, 128)]
)
def test_q4_0(matmul: Matmul, m: int, k: int, n: int, kind: str) -> None:
    """At most 6e-5, whatever the activations; all positive ones are the easiest."""
    w = weights("q4_0", normal(k, n))
    drawn = [activations(kind, np.random.default_rng(2 + i), m, k) for i in range(512 // m)]
    error = np.mean([nmse(matmul(w, x), x @ w.values) for x in drawn])
    assert error < {"normal": 6e-5, "positive": 2.2e-5, "outliers": 6e-5}[kind]


# NMSE of normal, all positive and outlier activations, in 1e-5. int8 weights decide: they go by the
# largest of a column's group, whatever the type; where a block has a minimum, it is rounded too.
LIMITS = {
    "q4_0": (6.0, 2.2, 6.2),
    "q8_0": (6.6, 2.3, 6.9),
    "q6_k": (6.6, 2.3, 6.9),
    "iq4_nl": (6.6, 2.3, 6.9),
    "q4_1": (7.4, 4.0, 7.7),
    "q4_k": (7.4, 5.0, 7.7),
    "q5_k": (7.1, 4.4, 7.4),
    "mxfp4": (0.5, 0.3, 0.9),  # four powers of two are exact
}


@pytest.mark.parametrize("type", TYPES)
def test_types(matmul: Matmul, type: str) -> None:
    """The error of each type; against the HVX route far less with outliers, less with a minimum
    where all activations are positive, and with the others there no more than 1.4 times as much."""
    m, k, n = 512, 2560, 128
    w = weights(type, normal(k, n))
    for kind, limit in zip(KINDS, LIMITS[type], strict=True):
        x = activations(kind, np.random.default_rng(2), m, k)
        exact = x @ w.values
        error = nmse(matmul(w, x), exact)
        assert error < limit * 1e-5, kind
        hvx = nmse(matmul.hvx(w, x[:64]), exact[:64])
        bound = {"normal": 2.5, "outliers": 0.5, "positive": 1.4}[kind]
        if kind == "positive" and type in ("q4_1", "q4_k", "q5_k"):
            bound = 0.5
        assert error < bound * hvx, kind


SHAPES = [  # tokens, k, n, threads, vtcm in KB, padding in floats
    (5, 32, 32, 1, 4096, 0),
    (6, 64, 1, 3, 4096, 0),
    (31, 96, 31, 2, 4096, 32),
    (33, 2592, 40, 4, 4096, 0),
    (127, 544, 97, 4, 4096, 64),
    (129, 288, 64, 6, 4096, 0),
    (513, 160, 65, 4, 4096, 0),
    (1030, 96, 33, 4, 4096, 0),
    (300, 3104, 70, 3, 1024, 0),  # K in several steps, and tokens
    (97, 4128, 33, 4, 512, 32),
    (64, 64, 32, 4, 4096, 16512),  # rows too far apart for DMA
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("add", ["nothing", "row", "rows"])
def test_shapes(matmul: Matmul, shape: tuple[int, ...], add: str) -> None:
    """Odd sizes, few threads, little VTCM, padded rows, something added: each token and column is
    right, and nothing beside the output is written."""
    m, k, n, threads, vtcm, pad = shape
    rng = np.random.default_rng(3)
    w = weights("q4_0", normal(k, n))
    x = activations("normal", rng, m, k) * np.exp2(rng.integers(-9, 9, (m, 1))).astype(np.float32)
    more = {"nothing": None, "row": rng.standard_normal(n), "rows": rng.standard_normal((m, n))}[
        add
    ]
    got = matmul(w, x, more, threads=threads, vtcm=vtcm << 10, pad=pad)
    exact = x @ w.values
    size = np.sqrt((x.astype(float) ** 2).sum(1, keepdims=True) * (w.values**2).sum(0) / k)
    wrong = np.abs(got - exact - (0 if more is None else more)) / size
    assert wrong.max() < 0.05  # five standard deviations of the error
    assert np.sqrt((wrong**2).mean()) < 0.009


def test_steps(matmul: Matmul) -> None:
    """The shapes above do go through several steps of K and of the tokens, and both slots."""
    seen = []
    for m, k, n, threads, vtcm, _ in SHAPES:
        w = weights("q4_0", np.zeros((k, n)))
        assert not matmul(w, np.ones((m, k), np.float32), threads=threads, vtcm=vtcm << 10).any()
        s = matmul.sizes
        seen.append((s["k_chunk"] * 32 < k, s["m_chunk"] < m, s["n_wgt"]))
    assert {True} <= {s[0] for s in seen} and {True} <= {s[1] for s in seen}
    assert {1, 2} <= {s[2] for s in seen}


def test_not_a_number(matmul: Matmul) -> None:
    """A token with NaN or infinity spoils no other, as on HVX; a token of zeros gives zeros."""
    w = weights("q4_1", normal(640, 64))
    x = activations("normal", np.random.default_rng(4), 40, 640)
    clean = matmul(w, x)
    bad = {3: np.nan, 10: np.inf, 21: -np.inf, 39: 3e38}
    for row, value in bad.items():
        x[row, 77] = value
    x[12] = 0
    got = matmul(w, x)
    others = [i for i in range(40) if i not in bad and i != 12]
    assert np.array_equal(got[others], clean[others])
    assert not got[12].any()


def test_worst_weights(matmul: Matmul) -> None:
    """One block decides the scale of its column's group; columns of zeros; subnormal scales; blocks
    that use -8 and so saturate."""
    rng = np.random.default_rng(5)
    v = rng.standard_normal((640, 64))
    v[:, 0::8] = 0
    v[32:64, 1::8] *= 1000
    v[:, 2::8] *= 2.0**-20
    v[:, 3::8] = rng.choice([-1.0, 1.0], (640, 8))
    v[:, 4::8] = 1.0
    w = weights("q4_0", v)
    x = activations("positive", rng, 64, 640)
    got, exact = matmul(w, x), x @ w.values
    assert not got[:, 0::8].any()
    for at, limit in ((1, 1e-4), (2, 2e-3), (3, 1e-4), (4, 1e-6), (5, 1e-4)):
        assert nmse(got[:, at::8], exact[:, at::8]) < limit, at


@pytest.mark.parametrize("bit", range(6))
@pytest.mark.parametrize("kind", TYPES)
def test_signs_in_a_pattern(matmul: Matmul, kind: str, bit: int) -> None:
    """Rounding of the weights does not add up where activations' signs follow a pattern of k."""
    rng = np.random.default_rng(bit)
    k = 9216
    w = weights(kind, rng.standard_normal((k, 32)))
    x = activations("positive", rng, 32, k) + np.float32(0.5)
    x *= 1 - 2 * (np.arange(k, dtype=np.float32) // 2**bit % 2)
    assert nmse(matmul(w, x), x @ w.values) < 5e-4


def test_counts(matmul: Matmul) -> None:
    """HVX operations and tiles of a slice of 512 x 2560 x 9216: 2.4 million for all, 2.6 where all
    activations are positive, 3.2 where K is 9216."""
    for kind, k, n, limit in (
        ("normal", 2560, 1024, 2.45e6 / 9),
        ("positive", 2560, 1024, 2.6e6 / 9),
        ("normal", 9216, 256, 3.2e6 / 10),
    ):
        w = weights("q4_0", normal(k, n))
        x = activations(kind, np.random.default_rng(2), 512, k)
        before = matmul.counts()
        matmul(w, x)
        used = {name: n - before[name] for name, n in matmul.counts().items()}
        packing = 512 * k / 32 * 6.2 * (1 - n * k / (9216 * 2560))  # as much for a slice as for all
        ops = sum(used[name] for name in ("hvx_alu", "hvx_mpy", "hvx_perm", "hvx_fp"))
        assert ops - packing < limit, kind
        assert used["hmx_tiles_i"] == 16 * (k // 32) * (n // 32)
        assert used["hmx_stores"] <= 16 * (n // 32) * -(-k // 640) * 1.05


@pytest.mark.parametrize("arch", [73, 79])
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("matmul-int-ops.c", [f"hmx_int_convert_{t}" for t in ("q4_0", "q4_1", "q5_k", "q6_k")]),
        ("flash-attn-int-ops.c", ["fa_int_softmax_mask_softcap", "fa_int_q_dots", "fa_int_q_pack"]),
    ],
)
def test_no_vector_is_spilled(lab: Lab, arch: int, name: str, wanted: list[str]) -> None:
    """What a Hexagon compiler makes of them: no vector on the stack in a loop, no division."""
    try:
        inspect.find_clang()
    except HexpatchError as lacks:
        pytest.skip(str(lacks))
    source = lab.tree / "ggml/src/ggml-hexagon/htp" / name
    found = {r.name: r for r in inspect.inspect(source, arch=arch)}
    assert set(wanted) <= set(found)
    for name, report in found.items():
        assert not report.error, report.error
        assert report.vector_stack_in_loops == 0, name
        assert not report.divides_in_loops, name


# what, file, text, replacement
MUTATIONS = (
    ("weights not waited for", "matmul-int-ops.c",
     "hmx_int_dma_wait(&th->dma, th->raw_dma[th->raw_buf]);", ""),
    ("addends not waited for", "matmul-int-ops.c",
     "    hmx_int_dma_wait(&th->dma, th->out_dma[th->out_buf]);\n\n    htp_trace", "    htp_trace"),
    ("steps of K not added", "matmul-int-ops.c", ".acc_is_dst = st->tile > 0,",
     ".acc_is_dst = false,"),
    ("exponents of another step", "matmul-int-ops.c", "mm->exps[st->idx & 1] + b.row",
     "mm->exps[0] + b.row"),
    ("means of other tokens", "matmul-int-ops.c", "mm->means[st->idx & 1] + b.row / 2",
     "mm->means[st->idx & 1] + b.row / 4"),
    ("scales of another column tile", "matmul-int-ops.c", "    if (r == 0) {",
     "    if (r == 0 && i == 0) {"),
    ("means dropped", "hmx-int-mm-kernels.h", "Q6_V_vsplat_R(a->means[p + i])", "Q6_V_vzero()"),
    ("stale accumulators", "hmx-int-utils.h", ":after.uh = acc:2x1", ":after:retain.uh = acc:2x1"),
)  # fmt: skip


def run(library: Path) -> subprocess.CompletedProcess[str]:
    """What `wrong` finds, in a process of its own."""
    return subprocess.run(
        [sys.executable, str(HERE / "mm_lab.py"), str(library)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=HERE.parents[1],
    )


def test_nothing_wrong(matmul: Matmul, lab: Lab) -> None:
    """The kernels as they are, here and in another process."""
    assert wrong(matmul) == []
    done = run(lab.built("mm_lab", model=True, shared=True))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("what", "name", "old", "new"), MUTATIONS, ids=[m[0] for m in MUTATIONS])
def test_mutation(lab: Lab, what: str, name: str, old: str, new: str, tmp_path: Path) -> None:
    """A broken driver or kernel is noticed."""
    for file in ("matmul-int-ops.c", "hmx-int-mm-kernels.h", "hmx-int-utils.h"):  # of one folder
        text = (KERNELS / file).read_text()
        if file == name:
            assert text.count(old) == 1, f"{what}: the kernels changed, so must this test"
        (tmp_path / file).write_text(text.replace(old, new) if file == name else text)
    source = HERE / "mm_lab.c"
    library = lab.build(source, tmp_path / "lab", first=tmp_path, model=True, shared=True)
    try:
        done = run(library)
    except subprocess.TimeoutExpired:
        return
    assert done.returncode != 0, f"{what}: not noticed"
    assert "Error" not in done.stderr or "assert" in done.stderr, done.stderr
