"""Inputs that upstream's uniform numbers never are: extremes.cpp on kernels without FP16 tiles."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import pytest
from conftest import World
from test_simupstream import folder, pytestmark, real

from hexpatch import bench, prove, session, simbuild, simrun
from hexpatch.simbuild import SimBuilt
from hexpatch.simrun import SimProgram

__all__ = ["folder", "pytestmark", "real"]
SOURCE = Path(__file__).parent / "sim" / "extremes.cpp"
UPSTREAM = 5e-4  # what test-backend-ops allows a product and an attention
SIGNS = ("q4_0", "q4_1", "q8_0", "iq4_nl", "mxfp4", "q4_K", "q5_K", "q6_K")


@functools.cache
def stack_on_sm7750(root: Path) -> SimProgram:
    """The stack as `bench` builds it, on the device model, with counters."""
    with session.opened(root, "test", print) as opened:
        device = prove.device_of(opened, "sim:sm7750")
        state, tree = opened.ws.state, opened.stack.tree
        opened.store.flush()
        built = simbuild.build(
            opened.repo, state, tree, arch=device.arch, checked=True, bench=True, say=print
        )
    compile_into(built)
    return simrun.program(built, device, state / "scratch" / "extremes", counting=True)


def compile_into(built: SimBuilt) -> None:
    """extremes.cpp beside the libraries that it is linked with."""
    command = [built.clang, "--driver-mode=g++", "-std=c++17", "-O2", str(SOURCE)]
    command += ["-o", str(built.bin / "extremes"), f"-I{built.dir / 'src' / 'ggml' / 'include'}"]
    command += [f"-L{built.bin}", "-lggml", "-lggml-base", "-Wl,-rpath,$ORIGIN"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Extremes:
    """Runs cases; what they report is by variant."""

    def __init__(self, program: SimProgram) -> None:
        self.program = program

    def run(self, case: str, word: str) -> tuple[dict[str, float], dict[str, int]]:
        """Figures by variant, and the counters of the whole run."""
        alone = self.program.with_seed(simrun.FIRST_SEED)
        done = alone.other(self.program.exe.with_name("extremes"), case, timeout=300)
        assert done.status == 0, done.stderr.decode("utf-8", "replace")
        lines = [line.split(" ", 2) for line in done.stdout.decode().splitlines()]
        assert lines
        assert {line[0] for line in lines} == {word}
        return {line[2]: float(line[1]) for line in lines}, bench.counters(alone)

    def close(self, case: str, limit: float = UPSTREAM, *, tiles: bool = True) -> None:
        """Every variant is near float64, and the integer matrix unit did it."""
        found, counters = self.run(case, "nmse")
        assert {what: error for what, error in found.items() if not error < limit} == {}
        assert (counters.get("hmx_tiles_i", 0) > 0) == tiles
        assert "hmx_tiles_f" not in counters

    def exact(self, case: str) -> None:
        """No element of any variant is wrong."""
        found, _ = self.run(case, "wrong")
        assert {what: wrong for what, wrong in found.items() if wrong} == {}


@pytest.fixture
def extremes(real: World) -> Extremes:
    return Extremes(stack_on_sm7750(real.root))


@pytest.mark.parametrize("behind", ["empty", "stale", "hostile"])
def test_cells_that_no_token_sees_have_no_say(extremes: Extremes, behind: str) -> None:
    """A short prompt in a large cache is as exact whatever the other cells hold: zeros, larger
    values of another text, infinities, NaN."""
    extremes.close(f"{behind}-cells", 2e-4)


def test_a_first_key_that_takes_most_of_the_attention(extremes: Extremes) -> None:
    """Its value is small, so the others' decide the output: they need digits of their own."""
    extremes.close("sink-token")


def test_a_broken_row_of_q_leaves_the_others_right(extremes: Extremes) -> None:
    extremes.close("beside-broken-query")


@pytest.mark.parametrize("mean", [3, 10])
def test_keys_with_a_large_mean_beside_sinks(extremes: Extremes, mean: int) -> None:
    """What all keys share moves no weight between them, but a sink has to see it. The mean is that
    many deviations."""
    extremes.close(f"mean-{mean}-sinks", 2e-4)


def test_keys_with_a_large_mean_under_a_softcap(extremes: Extremes) -> None:
    """Keys are not centered there: 3 deviations are near the limit, 10 beyond it."""
    extremes.close("mean-3-softcap")


def test_heads_of_two_and_three(extremes: Extremes) -> None:
    extremes.close("tiny-heads")


def test_tokens_that_see_nothing(extremes: Extremes) -> None:
    extremes.close("blind-rows")


def test_masks_that_are_large_and_finite(extremes: Extremes) -> None:
    extremes.close("finite-masks")


def test_keys_that_are_all_the_same(extremes: Extremes) -> None:
    extremes.close("equal-scores")


@pytest.mark.parametrize("op", ["cont", "cpy", "concat", "concat-to"])
def test_rows_that_repeat_and_rows_that_overlap(extremes: Extremes, op: str) -> None:
    """Views with a row stride of 0, and of less than a row: the bytes are the CPU backend's."""
    extremes.exact(op)


def test_one_row_for_all_tokens_of_a_gated_delta_net(extremes: Extremes) -> None:
    """q, k or v with a token stride of 0."""
    extremes.close("repeated-tokens", 1e-7, tiles=False)


@pytest.mark.parametrize("weights", SIGNS)
def test_signs_that_follow_a_pattern(extremes: Extremes, weights: str) -> None:
    """Errors of rounding must not follow a bit of k, where they'd add up along such a row."""
    extremes.close(f"signs-{weights}")


@pytest.mark.parametrize("case", ["batches", "batches-added"])
def test_tokens_in_batches(extremes: Extremes, case: str) -> None:
    """One weight for tokens of several batches: they are one run where they follow each other in
    memory, also when a batch has one token, and not where a batch of a view leaves tokens out.
    What is added to the product steps as the tokens do."""
    extremes.close(case, 1e-4)


def test_outliers_among_the_weights(extremes: Extremes) -> None:
    """One int8 scale for a column of a group has to hold them; src/README.md says the cost."""
    extremes.close("weight-outliers", 8e-4)
