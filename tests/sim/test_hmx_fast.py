"""Fast paths do what the plain loops do, bit for bit, and they are fast."""

from __future__ import annotations

import ctypes
import os

import pytest
from hmx_lab import IEEE, NAN0, ORDINARY, Hmx, hmx, library

__all__ = ["hmx", "library"]
pytestmark = pytest.mark.sim


def check_laws(hmx: Hmx) -> None:
    for portable in (0, 1):
        assert hmx.c.law_fast_int(2, portable) == 0
        assert hmx.c.law_fast_fp(2, portable, ORDINARY, 1) == 0
        for bits in (32, 24, 12):
            assert hmx.c.law_fast_convert(0, 20, portable, bits) == 0
            assert hmx.c.law_fast_convert(1, 20, portable, bits) == 0


@pytest.mark.parametrize("portable", [False, True])
def test_integer_multiply(hmx: Hmx, portable: bool) -> None:
    assert hmx.c.law_fast_int(4, portable) == 0


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("policy", [ORDINARY, IEEE, NAN0])
@pytest.mark.parametrize("specials", [False, True])
def test_fp16_multiply(hmx: Hmx, portable: bool, policy: int, specials: bool) -> None:
    assert hmx.c.law_fast_fp(3, portable, policy, specials) == 0


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("bits", [32, 24, 12])
@pytest.mark.parametrize("kind", ["integer", "fp16"])
def test_converts_and_stores(hmx: Hmx, kind: str, portable: bool, bits: int) -> None:
    assert hmx.c.law_fast_convert(kind == "fp16", 40, portable, bits) == 0


LIMITS = {"b": 1500, "n": 1500, "hf": 2000}  # ns a tile


@pytest.mark.slow
@pytest.mark.skipif("HEXPATCH_TEST_SPEED" not in os.environ, reason="needs a quiet machine")
@pytest.mark.parametrize("kind", LIMITS)
def test_speed(hmx: Hmx, kind: str) -> None:
    code = {"b": 0xE0, "n": 0xE1, "hf": 0xEF}[kind]
    best = min(hmx.c.law_time(kind == "hf", code, 16, 100, 0) for _ in range(10))
    print(f"{kind}: {best:.0f} ns a tile")
    assert best <= LIMITS[kind]


def test_seeds_differ(hmx: Hmx) -> None:
    """The laws run on other numbers with another seed."""
    for seed in range(3):
        hmx.c.law_seed(ctypes.c_uint64(seed))
        assert hmx.c.law_fast_int(1, 0) == 0
        assert hmx.c.law_fast_convert(1, 5, 0, 20) == 0
