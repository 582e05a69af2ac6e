"""FP16: the exact path, the bit-exact one, the bias register, Inf and NaN, chips without it."""

from __future__ import annotations

import ctypes
import math
import random

import pytest
from hmx_lab import IEEE, NAN0, ORDINARY, Hmx, fp16, half, hmx, library, value16

__all__ = ["hmx", "library"]
pytestmark = pytest.mark.sim

A, W, OUT = 0, 0x8000, 0x10000
AFTER, AFTER_POS, AFTER_RETAIN, BEFORE = (1, 0x04), (1, 0x09), (1, 0x0C), (1, 0x00)
ONE = 0x3C00


def tiles(hmx: Hmx, at: int, rows: list[list[float]]) -> None:
    """A matrix of 32 rows as activation or, transposed, weight tiles."""
    for t in range(len(rows[0]) // 32):
        image = [0] * 1024
        for r in range(32):
            for c in range(32):
                image[half(r, c)] = fp16(rows[r][32 * t + c])
        hmx.put16(at + 2048 * t, image)


def check_product(hmx: Hmx) -> None:
    """Deep multiply, scale 1: the exact sum, rounded once."""
    rng = random.Random(4)
    n = 3
    a = [[value16(fp16(rng.gauss(0, 1))) for _ in range(32 * n)] for _ in range(32)]
    w = [[value16(fp16(rng.gauss(0, 1))) for _ in range(32)] for _ in range(32 * n)]
    tiles(hmx, A, a)
    for t in range(n):
        tiles(hmx, W + 2048 * t, w[32 * t : 32 * t + 32])
    hmx.set_bias(ONE)
    hmx.load("hf:deep", A, 2048 * n - 1, "hf", W, 2048 * n - 1)
    assert hmx.count("hmx_tiles_f") == n
    hmx.op(*AFTER, OUT)
    out = hmx.get16(OUT, 1024)
    for r in range(32):
        for c in range(32):
            exact = math.fsum(a[r][k] * w[k][c] for k in range(32 * n))
            assert out[half(r, c)] == fp16(exact), (r, c)


def check_store_clears_and_flips(hmx: Hmx) -> None:
    """Flash attention never clears between tiles."""
    tiles(hmx, A, [[1.0] * 32] * 32)
    tiles(hmx, W, [[0.5] * 32] * 32)
    hmx.set_bias(ONE)
    for _ in range(3):
        hmx.load("hf", A, 2047, "hf", W, 2047)
        hmx.op(*AFTER, OUT)
        assert set(hmx.get16(OUT, 1024)) == {fp16(16)}
    hmx.load("hf", A, 2047, "hf", W, 2047)
    hmx.op(*AFTER_RETAIN, OUT)
    hmx.load("hf", A, 2047, "hf", W, 2047)
    hmx.op(*AFTER, OUT)
    assert set(hmx.get16(OUT, 1024)) == {fp16(32)}
    hmx.load("hf", A, 2047, "hf", W, 2047)
    hmx.op(0, 0x15)
    assert hmx.fp(0, 0) == 0
    hmx.load("hf", A, 2047, "hf", W, 2047)
    hmx.load("hf", A, 2047, "hf", W, 2047)
    assert hmx.fp(0, 0) == 32
    hmx.op(0, 0x15)
    assert hmx.fp(0, 0) == 16
    hmx.op(0, 0x13)
    assert hmx.fp(0, 0, 0) == hmx.fp(0, 0, 1) == 0, "mxclracc.hf clears both sets"


def check_second_set(hmx: Hmx) -> None:
    """weight :deep: 32 further outputs, in the other set."""
    tiles(hmx, A, [[1.0] * 64] * 32)
    for t in range(4):
        tiles(hmx, W + 2048 * t, [[float(t + 1)] * 32] * 32)
    hmx.load("hf:deep", A, 4095, "hf:deep", W, 8191)
    assert hmx.fp(0, 0) == 32 * (1 + 3)
    assert hmx.fp(0, 0, 1) == 32 * (2 + 4)
    assert hmx.count("hmx_tiles_f") == 4


def check_splat_scale(hmx: Hmx) -> None:
    """A scale splat into both halves of word 0 is the output bias as well: acc * h + h."""
    h = 0.125 + 0.0625
    hmx.set_bias(fp16(h) << 16 | fp16(h))
    hmx.set_fp(0, 0, 10.0)
    hmx.op(*AFTER_RETAIN, OUT)
    assert value16(hmx.get16(OUT, 1)[0]) == 10 * h + h
    assert value16(hmx.get16(OUT, 1024)[half(9, 9)]) == h


def check_bias_register(hmx: Hmx) -> None:
    """(acc + acc_bias, shape, negate) * scale + out_bias; extra mantissa bits go below."""
    half_, two = fp16(0.5), fp16(2)
    cases = [
        (-3.0, half_, 0, -1.5),
        (-3.0, half_, two << 16, -0.5),  # accumulator bias 2
        (-3.0, half_ | two << 16, 0, 0.5),  # output bias 2
        (-3.0, half_, 1 << 8, -1.5),  # min(0, x)
        (3.0, half_, 1 << 8, 0.0),
        (-3.0, half_, 2 << 8, 0.0),  # max(0, x)
        (3.0, half_, 2 << 8, 1.5),
        (-3.0, half_, 3 << 8, 1.5),  # abs
        (-3.0, half_, 3 << 8 | 1 << 10, -1.5),  # negated
        (3.0, half_, 1 << 10, -1.5),
        (1024.0, ONE, 0x8, 1024.5),  # one half of the scale's last place
        (0.0, ONE, 31 << 11, 31 * 2.0**-29),  # accumulator bias: a denormal of its extra bits
        (0.0, ONE, 8 << 4, 2.0**-25),  # output bias: half a last place, which rounds to even
    ]
    for acc, w0, w1, expected in cases:
        hmx.set_bias(w0, w1)
        hmx.set_fp(0, 0, acc)
        hmx.op(*AFTER_RETAIN, OUT)
        assert value16(hmx.get16(OUT, 1)[0]) == value16(fp16(expected)), (acc, hex(w0), hex(w1))
    # clipped, and a result of -0 is 0
    hmx.set_bias(ONE)
    hmx.set_fp(0, 0, -3.0)
    hmx.set_fp(0, 1, -(2.0**-30))
    hmx.op(1, 0x0C, OUT)
    assert hmx.get16(OUT, 3)[0::2] == [fp16(-3), 0x8000]
    hmx.op(*AFTER_POS, OUT)
    assert hmx.get16(OUT, 3)[0::2] == [0, 0]


def check_rounding(hmx: Hmx) -> None:
    """Nearest even, denormals, and exponent 31 as a number up to 131008."""
    hmx.set_bias(ONE)
    cases = [
        (2049.0, fp16(2048)), (2051.0, fp16(2052)), (2049.0001, fp16(2050)), (2.0**-24, 1),
        (2.0**-25, 0), (2.0**-25 * 1.0001, 1), (3 * 2.0**-25, 2), (-(2.0**-24), 0x8001),
        (65504.0, 0x7BFF), (65536.0, 0x7C00), (131008.0, 0x7FFF), (1e6, 0x7FFF), (-1e6, 0xFFFF),
    ]  # fmt: skip
    for plain in (True, False):
        for xfp in (True, False):
            hmx.mode(plain=plain, xfp=xfp)
            hmx.set_bias(ONE)
            for acc, expected in cases:
                hmx.set_fp(0, 0, acc)
                hmx.op(*AFTER_RETAIN, OUT)
                assert hmx.get16(OUT, 1) == [expected], acc


def check_exponent_31_is_a_number(hmx: Hmx) -> None:
    """The unit's power-on rule, so 0 * 0x7E00 is 0 and 0x7E00 is 98304."""
    for policy, one, zero in ((ORDINARY, 98304.0, 0.0), (IEEE, None, None), (NAN0, None, 0.0)):
        for xfp in (False, True):
            hmx.mode(policy=policy, xfp=xfp)
            hmx.put16(A, [0x7E00] + [0] * 1023)
            image = [0] * 1024
            image[half(0, 0)] = ONE
            hmx.put16(W, image)
            hmx.load("hf", A, 2047, "hf", W, 2047)
            for col, expected in ((0, one), (1, zero)):
                got = hmx.fp(0, col)
                assert math.isnan(got) if expected is None else got == expected, (policy, xfp, col)
            assert hmx.fp(1, 0) == 0
            hmx.set_bias(ONE)
            hmx.op(*AFTER, OUT)
            out = hmx.get16(OUT, 1024)
            assert out[half(0, 1)] == (0 if zero == 0 else 0xFFFF)
            assert out[half(1, 1)] == 0
            assert hmx.fault("hmx_nan") == 1


def check_infinity(hmx: Hmx) -> None:
    for xfp in (False, True):
        hmx.mode(policy=IEEE, xfp=xfp)
        hmx.put16(A, [0x7C00, 0xFC00] * 512)  # even rows Inf, odd rows -Inf
        hmx.put16(W, [ONE] * 1024)
        hmx.load("hf", A, 2047, "hf", W, 2047)
        hmx.set_bias(ONE)
        hmx.op(*AFTER_RETAIN, OUT)
        assert hmx.get16(OUT, 2) == [0x7C00, 0xFC00]
        hmx.put16(A, [0xFC00] * 1024)
        hmx.load("hf", A, 2047, "hf", W, 2047)
        hmx.op(*AFTER_RETAIN, OUT)
        assert hmx.get16(OUT, 2) == [0xFFFF, 0xFC00], "Inf - Inf"
        assert hmx.fault("hmx_nan") == 0
        hmx.mode(policy=IEEE, xfp=xfp)
        hmx.set_bias(ONE)
        hmx.set_fp(0, 0, 70000.0)
        hmx.op(*AFTER_RETAIN, OUT)
        assert hmx.get16(OUT, 1) == [0x7C00]
        hmx.cvt(26, 1 | 2 | 64)  # the largest number instead
        hmx.op(0, 0x18, OUT)
        assert hmx.get16(OUT, 1) == [0x7BFF]


def check_nan_fault_needs_a_zero(hmx: Hmx) -> None:
    hmx.put16(A, [0x7E00] * 1024)
    hmx.put16(W, [ONE] * 1024)
    hmx.load("hf", A, 2047, "hf", W, 2047)
    assert hmx.fault("hmx_nan") == 0
    hmx.put16(W, [ONE] * 1023 + [0x8000])
    hmx.load("hf", A, 2047, "hf", W, 2047)
    assert hmx.fault("hmx_nan") == 1
    hmx.checks()
    hmx.load("hf", A, 2047, "hf", W, 2047)
    assert hmx.fault("hmx_nan") == 1


def check_without_fp16(hmx: Hmx) -> None:
    """Chips without the multipliers: stores write 0 whatever the bias is, seen on a v73 phone."""
    hmx.device(73, fp16=False)
    hmx.put16(A, [ONE] * 1024)
    hmx.put16(W, [ONE] * 1024)
    hmx.put16(OUT, [0x5555] * 1024)
    hmx.set_bias(ONE << 16 | ONE)
    hmx.load("hf", A, 2047, "hf", W, 2047)
    assert hmx.fp(0, 0) == 0
    hmx.op(*AFTER, OUT)
    assert set(hmx.get16(OUT, 1024)) == {0}
    assert hmx.count("hmx_tiles_f") == 0
    assert hmx.count("hmx_stores") == 1
    assert [hmx.fault(f) for f in ("hmx_operand", "hmx_lock")] == [0, 0]


def check_f8_operands(hmx: Hmx) -> None:
    """Codes become the top of an fp16: 2^-8 of e4m3's value. Rs[0] selects the activation's byte;
    a weight vector has bytes 0, 2, 1, 3 of each word in order."""
    hmx.device(79)
    hmx.put(A, [0x38, 0x40] * 1024)  # 1.0 low, 2.0 high
    hmx.put(W, [0x38, 0x40, 0x44, 0x80] * 32)
    for odd, scale in ((0, 1.0), (1, 2.0)):
        hmx.op(0, 0x13)
        hmx.load("f8", A + odd, 0x78F, "f8", W, 0)
        assert hmx.fp(0, 0) == scale * (1.0 + 3.0 + 2.0 - 98304.0 * 256) / 65536
    hmx.device(75)
    hmx.load("f8", A, 0x78F, "f8", W, 0)
    assert hmx.fault("hmx_operand") == 1


def check_f8_results(hmx: Hmx) -> None:
    """e4m3, bias 7: even half, then the odd half joins; too large is the largest code."""
    hmx.device(81)
    hmx.set_bias(ONE)
    for col, v in enumerate((1.0, -1.0, 500.0, 2.0**-9, 17.0, -(2.0**-20))):
        hmx.set_fp(0, col, v)
    hmx.cvt(27, 1 | 2)
    hmx.cvt(27, 1 | 2048)
    hmx.op(0, 0x1D, OUT)
    out = hmx.get16(OUT, 12)[0::2]
    assert [v & 255 for v in out] == [0x38, 0xB8, 0x7F, 0x01, 0x58, 0x00]
    assert [v >> 8 for v in out] == [0x38, 0x00, 0x7F, 0x01, 0x58, 0x00]


def check_bf16_and_negate(hmx: Hmx) -> None:
    hmx.device(81)
    hmx.put16(A, [0x3F80] * 1024)  # 1.0
    hmx.put16(W, [0x4040] * 1024)  # 3.0
    hmx.load("hf", A, 2047, "hf", W + 64, 2047)
    assert hmx.fp(0, 0) == 96.0
    hmx.load("hf", A, 2047, "hf", W + 96, 2047)
    assert hmx.fp(0, 0) == 0.0
    hmx.device(79)
    hmx.load("hf", A, 2047, "hf", W + 64, 2047)
    assert hmx.fault("hmx_operand") == 1
    hmx.put16(A, [ONE] * 1024)
    hmx.put16(W, [ONE] * 1024)
    hmx.load("hf", A, 2047, "hf", W + 32, 2047)
    assert hmx.fp(0, 0) == -32.0


def check_feedback(hmx: Hmx) -> None:
    """A feedback convert takes the last result as its output bias or limits its scale with it."""
    hmx.set_bias(fp16(0.5))
    hmx.set_fp(0, 0, 8.0)
    hmx.cvt(26, 1 | 2)
    hmx.cvt(26, 1 | 2 | 1 << 2)
    hmx.op(0, 0x18, OUT)
    assert value16(hmx.get16(OUT, 1)[0]) == 8.0
    hmx.cvt(26, 1 | 2 | 2 << 2 | 16)
    hmx.op(0, 0x18, OUT)
    assert value16(hmx.get16(OUT, 1)[0]) == 64.0
    hmx.cvt(26, 1 | 2 | 2 << 2)
    hmx.op(0, 0x18, OUT)
    assert value16(hmx.get16(OUT, 1)[0]) == 4.0


def check_group_of_eight(hmx: Hmx) -> None:
    """The bit-exact path aligns 8 products to the largest: far smaller ones leave a sticky bit.
    2^10 * 2^10 is 1024 * 1024 * 2^(10 + 10 - 18) with exponent sum 18, so the grid is 2^-4."""
    hmx.mode(xfp=True)
    image = [0] * 1024
    image[half(0, 0)], image[half(0, 1)] = fp16(1024), fp16(2.0**-14)
    hmx.put16(A, image)
    image = [0] * 1024
    image[half(0, 0)], image[half(1, 0)] = fp16(1024), fp16(2.0**-14)
    hmx.put16(W, image)
    hmx.load("hf", A, 2047, "hf", W, 2047)
    exact = 2.0**20
    got = hmx.fp(0, 0)
    assert exact < got < exact + 1
    hmx.mode(xfp=False)
    hmx.load("hf", A, 2047, "hf", W, 2047)
    assert hmx.fp(0, 0) == exact + 2.0**-28
    # in two groups, the smaller one is lost in the accumulator's alignment instead
    hmx.mode(xfp=True)
    a = [0] * 1024
    a[half(0, 0)], a[half(0, 8)] = fp16(1024), fp16(2.0**-14)
    hmx.put16(A, a)
    w = [0] * 1024
    w[half(0, 0)], w[half(8, 0)] = fp16(1024), fp16(2.0**-14)
    hmx.put16(W, w)
    hmx.load("hf", A, 2047, "hf", W, 2047)
    assert exact < hmx.fp(0, 0) < got


CHECKS = [v for k, v in list(globals().items()) if k.startswith("check_")]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__[6:])
def test_fp16(hmx: Hmx, check) -> None:
    check(hmx)


@pytest.mark.parametrize("deep", [1, 8, 32])
@pytest.mark.parametrize("bias", [ONE, 0x3555, 0x2C2C2C2C])
def test_exact_sums_agree_with_the_unit_s(hmx: Hmx, deep: int, bias: int) -> None:
    """N(0, 1) operands: at least 99.9 % of the results are the same; see the law for the rest."""
    off = ctypes.c_int()
    differ = hmx.c.law_xfp_exact(deep, 10, ctypes.c_double(1), bias, ctypes.byref(off))
    assert differ <= 10
    assert off.value <= 1


def test_leading_sign_anticipation(hmx: Hmx) -> None:
    check_anticipation(hmx)


def check_anticipation(hmx: Hmx) -> None:
    less = ctypes.c_int()
    assert hmx.c.law_lza(200_000, ctypes.byref(less)) == 0
    assert 0.4 < less.value / 200_000 < 0.6
