"""The chunked gated delta net kernels against float64, on the simulator's HVX model."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from kernel_lab import ARCHES, HERE, Lab, lab

__all__ = ["lab"]
pytestmark = [pytest.mark.upstream, pytest.mark.sim]

# upstream's limit for the op; these kernels stay at least 100 times below it
LIMIT = 1e-7
NEAR = 5e-11


@pytest.fixture(scope="module", params=ARCHES)
def kernels(request: pytest.FixtureRequest, lab: Lab) -> Path:
    """The driver for an arch: v73 and v75 have encoded qfloat, v79 the new one."""
    return lab.built("gdn_kernels", request.param)


@pytest.fixture(scope="module")
def token_route(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Upstream's per-token kernels on the same heads."""
    room = tmp_path_factory.mktemp("gdn-token")
    htp = lab.tree / "ggml" / "src" / "ggml-hexagon" / "htp"
    source = (htp / "gated-delta-net-ops.c").read_text()
    first, after = (
        "static inline HVX_Vector gdn_mul_dot_f32",
        "static void gated_delta_net_f32_pp_thread",
    )
    steps = re.search(rf"^{first}.*?(?=^{after})", source, re.M | re.S)
    assert steps
    (room / "token_steps.h").write_text(steps[0])
    return lab.build(HERE / "gdn_token.c", room / "gdn_token", first=room)


def run(binary: Path, **case: object) -> dict[str, float]:
    """NMSE of outputs and states, the worst token, the worst value channel, and counts."""
    words = subprocess.run(
        [binary, *(f"{k}={v}" for k, v in case.items())], capture_output=True, text=True, check=True
    )
    parts = words.stdout.split()
    return {k: float(v) for k, v in zip(parts[::2], parts[1::2], strict=True)}


def test_what_the_kernels_rely_on_holds(kernels: Path) -> None:
    assert (
        subprocess.run([kernels, "laws"], capture_output=True, text=True, check=False).stdout
        == "hold 0\n"
    )


@pytest.mark.parametrize("kda", [0, 1])
@pytest.mark.parametrize("size", [1, 16, 20, 32, 40, 64, 96, 100, 128])
def test_every_head_size(kernels: Path, size: int, kda: int) -> None:
    got = run(kernels, D=size, T=37, kda=kda, kind="gauss")
    assert max(got["out"], got["state"]) < NEAR


@pytest.mark.parametrize("kda", [0, 1])
@pytest.mark.parametrize("tokens", [2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 18, 31, 32, 33, 47, 48, 100])
def test_lengths_around_chunks(kernels: Path, tokens: int, kda: int) -> None:
    got = run(kernels, D=64, T=tokens, kda=kda, kind="gauss")
    assert max(got["out"], got["state"]) < NEAR


@pytest.mark.parametrize("kda", [0, 1])
@pytest.mark.parametrize(
    ("tokens", "snapshots"),
    [(2, 2), (3, 2), (4, 4), (5, 8), (16, 4), (17, 4), (18, 16), (33, 20), (40, 40)],
)
def test_snapshots(kernels: Path, tokens: int, snapshots: int, kda: int) -> None:
    """Slot s is the state s tokens back; slots beyond the tokens are left alone."""
    got = run(kernels, D=64, T=tokens, K=snapshots, kda=kda, kind="gauss")
    assert max(got["out"], got["state"]) < NEAR
    assert got["column"] < 100 * NEAR  # of every snapshot


HARD = {
    "test": NEAR,  # the distribution of test-backend-ops
    "corr": NEAR,
    "outlier": 1e-10,  # channels of very different size
    "zerogate": 2e-10,  # nothing is ever forgotten
    "underflow": NEAR,  # exp(-100), exp(-10000)
    "mixgate": NEAR,  # some of exp(-300) between 1: no quotient of gates survives this
    "posgate": NEAR,
    "hugekey": NEAR,  # keys of 1e6
    "hugeentry": NEAR,  # one entry of a key
    "hugeall": NEAR,
    "tinyall": NEAR,
    "tinykeys": 3e-10,
    "denormal": NEAR,
    "zerostate": NEAR,
    "flat": NEAR,  # sums of fixed-point products at their limit
    "widev": NEAR,
}


@pytest.mark.parametrize("kda", [0, 1])
@pytest.mark.parametrize("kind", HARD)
def test_hard_inputs(kernels: Path, kind: str, kda: int) -> None:
    got = run(kernels, T=77, kind=kind, kda=kda)
    assert max(got["out"], got["state"]) < HARD[kind] < LIMIT / 100
    assert got["token"] < LIMIT / 10


@pytest.mark.parametrize("kda", [0, 1])
def test_zeros_give_zeros(kernels: Path, kda: int) -> None:
    got = run(kernels, T=20, kind="zeros", kda=kda)
    assert max(got["out"], got["state"]) < 1e-60  # squared; what qf32 makes of 0


@pytest.mark.parametrize("kind", ["nan", "inf"])
def test_nan_and_inf_reach_no_token_before_them(kernels: Path, kind: str) -> None:
    """v73 has no NaN: what comes after is as undefined as in the per-token kernels."""
    before = run(kernels, T=77, kind=kind, upto=77 // 2)
    assert before["out"] < NEAR


@pytest.mark.parametrize("kind", ["gauss", "zerogate", "hugekey"])
def test_errors_are_those_of_the_per_token_route(
    kernels: Path, token_route: Path, kind: str
) -> None:
    got, token = run(kernels, T=128, kind=kind), run(token_route, T=128, kind=kind)
    assert got["out"] < 4 * token["out"]
    assert got["state"] < 4 * token["state"]


def test_a_third_of_the_per_token_instructions(kernels: Path, token_route: Path) -> None:
    got, token = run(kernels, T=512), run(token_route, T=512)

    def ops(n: dict[str, float]) -> float:
        return sum(n[k] for k in ("alu", "mpy", "perm", "fp"))

    assert ops(got) < 0.33 * ops(token)
