"""Integer converts and stores: closed forms, shapes, sets, ages."""

from __future__ import annotations

import random

import pytest
from hmx_lab import Hmx, half, hmx, library, sm, weight_byte

__all__ = ["hmx", "library"]
pytestmark = pytest.mark.sim

A, W, OUT = 0, 0x8000, 0x10000
UB, UB_SAT, UH, UH_SAT = (0, 0x06), (0, 0x04), (1, 0x0B), (1, 0x0A)
RETAIN = {UB: (0, 0x0E), UB_SAT: (0, 0x0C), UH: (1, 0x0F), UH_SAT: (1, 0x0E)}


def word0(exp: int, sig: int = 0, ob: int = 0, lsb: int = 0, shape: int = 0, nmsb: int = 0) -> int:
    """Bias word 0. ob: 12 bits; its bit 3 is also the rounding bit of 16-bit results."""
    bits = sig | exp << 10 | (shape >> 2) << 15 | nmsb << 16 | (shape & 1) << 17
    return bits | (shape >> 1 & 1) << 18 | (ob & 7) << 19 | (ob >> 3) << 22 | lsb << 31


def ub(b: int, exp: int, s12: int, ob: int, sat: bool) -> int:
    """Closed form of a byte, shape 0, |B * 2^exp| < 2^34."""
    y = ((b << exp >> 20) * s12 >> 11) + ob
    return (min(max(y, 0), 4095) if sat else y % 4096) >> 4


def uh(b: int, exp: int, s12: int, rnd: int, sat: bool) -> int:
    """The same for 16 bits."""
    y = ((b << exp >> 8) * s12 >> 11) + 128 * rnd
    return (min(max(y, 0), 2**24 - 1) if sat else y % 2**24) >> 8


def check_closed_forms(hmx: Hmx) -> None:
    """The pipeline against the closed forms where these hold: -4 <= B * 2^(exp - 32) < 4."""
    rng = random.Random(1)
    for plain in (False, True):
        hmx.mode(plain=plain)
        exps = [rng.randrange(32) for _ in range(32)]
        sigs = [rng.randrange(1024) for _ in range(32)]
        obs = [rng.randrange(4096) for _ in range(32)]
        lsbs = [rng.randrange(2) for _ in range(32)]
        bias = [rng.randrange(-200, 200) for _ in range(32)]
        hmx.set_bias(list(map(word0, exps, sigs, obs, lsbs)), bias)
        sums = {}
        for c in range(32):
            top = min(2 ** (34 - exps[c]), 2**30)
            for t in range(32):
                b = rng.randrange(-top, top)
                lo = rng.randrange(-255 * 128 * 40, 255 * 128 * 40)
                hi = b - bias[c] - (lo >> 8)
                sums[t, c] = lo, hi
                hmx.set_acc(2 * t, c, lo)
                hmx.set_acc(2 * t + 1, c, hi)
        for kind in (UB, UB_SAT, UH, UH_SAT):
            hmx.op(*RETAIN[kind], OUT)
            sat = kind in (UB_SAT, UH_SAT)
            out16, out8 = hmx.get16(OUT, 1024), hmx.get(OUT, 2048)
            for (t, c), (lo, hi) in sums.items():
                s12 = 2048 | sigs[c] << 1 | lsbs[c]
                if kind in (UH, UH_SAT):
                    b = hi + (lo >> 8) + bias[c]
                    expected = uh(b, exps[c], s12, obs[c] >> 3 & 1, sat)
                    assert out16[half(t, c)] == expected, (plain, kind, t, c, b)
                else:
                    for row, acc in ((2 * t, lo), (2 * t + 1, hi)):
                        b = acc + bias[c]
                        if -(2**34) <= b << exps[c] < 2**34:
                            assert out8[sm(row, c)] == ub(b, exps[c], s12, obs[c], sat)


def check_power_of_two_is_modular(hmx: Hmx) -> None:
    """With a fraction of 0 the result is right modulo 2^16 at every size: what is cut off outside
    -4 <= V < 4 is a multiple of 2."""
    rng = random.Random(2)
    for _ in range(40):
        exp, b = rng.randrange(8, 20), rng.randrange(-(2**30), 2**30)
        hmx.set_bias(word0(exp))
        hmx.set_acc(1, 0, b)
        hmx.op(*RETAIN[UH], OUT)
        assert hmx.get16(OUT, 1)[0] == (b << exp >> 16) % 2**16


def check_range_limit(hmx: Hmx) -> None:
    """Outside, fraction and unit bit survive, anything above counts as 2 and the sign as -4. With
    a fraction in the scale that is not the value modulo 2^16."""
    for plain in (True, False):
        hmx.mode(plain=plain)
        hmx.set_bias(word0(16, 341))
        for b in (5 * 65536 + 1234, 40 * 65536 + 99, -7 * 65536 - 5, -65536 * 65536 // 4):
            hmx.set_acc(1, 0, b)
            hmx.op(*RETAIN[UH], OUT)
            v = b % 2**17 + 2**17 if b >= 0 else b % 2**17 - 2**18
            assert hmx.get16(OUT, 1)[0] == (v * 2**8 * (2048 + 682) >> 19) % 2**16
            assert hmx.get16(OUT, 1)[0] != (b * (2048 + 682) >> 11) % 2**16
            hmx.op(*RETAIN[UH_SAT], OUT)
            assert hmx.get16(OUT, 1)[0] == (65535 if b > 0 else 0)


SHAPED = {  # for 5, 0 and -5: negated is one's complement, so -r less half a unit, floor -1
    0: (5, 0, -5),
    1: (0, 0, -5),
    2: (5, 0, 0),
    3: (5, 0, 4),
    4: (-6, 0, 4),
    5: (0, 0, 4),
    6: (-6, 0, 0),
    7: (-6, 0, -5),
}


def check_shapes(hmx: Hmx) -> None:
    for shape, expected in SHAPED.items():
        hmx.mode(plain=shape % 2 == 0)
        hmx.set_bias(word0(20, ob=2048, shape=shape))
        for b, out in zip((5, 0, -5), expected, strict=True):
            hmx.set_acc(0, 0, b * 16)
            hmx.op(*RETAIN[UB], OUT)
            assert hmx.get(OUT, 1)[0] == 128 + out, (shape, b)


def check_retain_clear_and_flip(hmx: Hmx) -> None:
    hmx.set_bias(0x4000)
    hmx.set_acc(1, 0, 11, 0)
    hmx.set_acc(1, 0, 22, 1)
    results = []
    for op in (RETAIN[UH], UH, UH, UH):
        hmx.op(*op, OUT)
        results.append(hmx.get16(OUT, 1)[0])
    assert results == [11, 11, 22, 0]
    hmx.op(0, 0x14)
    hmx.set_acc(1, 0, 33)
    hmx.op(0, 0x11)
    assert hmx.acc(1, 0, 0) == hmx.acc(1, 0, 1) == 0, "mxclracc clears both sets"


def check_clear_keeps_the_index(hmx: Hmx) -> None:
    for op, current in ((0x11, "test_int_set"), (0x13, "test_fp_set")):
        assert getattr(hmx.c, current)() == 0
        hmx.op(0, op + 3 if op == 0x11 else 0x15)
        assert getattr(hmx.c, current)() == 1
        hmx.op(0, op)
        assert getattr(hmx.c, current)() == 1


def check_before_and_after(hmx: Hmx) -> None:
    """A result moved by some positions: `after` fills one tile from the offset on with the first
    rows, `before` another up to it with the rest."""
    hmx.set_bias(0x6000)  # a byte is the sum
    for row in range(64):
        for c in range(32):
            hmx.set_acc(row, c, row + 3 * c & 255)
    first, second, offset = OUT, OUT + 4096, 5 * 128
    hmx.put(first, [0xEE] * 2048)
    hmx.put(second, [0xEE] * 2048)
    hmx.op(0, 0x0E, first + offset, 0)  # after:retain
    hmx.op(0, 0x02, second + offset, 0)  # before
    for row in range(64):
        for c in range(32):
            moved = row + 20
            there, other = (first, second) if moved < 64 else (second, first)
            assert hmx.get(there + sm(moved % 64, c), 1)[0] == row + 3 * c & 255
            assert hmx.get(other + sm(moved % 64, c), 1)[0] == 0xEE


def check_rows_below(hmx: Hmx) -> None:
    """With the offset in y, rows that do not fit go to the tile Rt is away."""
    hmx.set_bias(0x6000)
    for row in range(64):
        hmx.set_acc(row, 9, row)
    hmx.op(0, 0x06, OUT + 3 * 128, 0x780 + 4096)
    for row in range(64):
        at = row + 12
        tile = OUT if at < 64 else OUT + 4096
        assert hmx.get(tile + sm(at % 64, 9), 1)[0] == row


def check_half_tile(hmx: Hmx) -> None:
    """tile + 1024, Rt = 0: the first 32 rows, in the second half of the tile."""
    hmx.set_bias(0x4000)
    for t in range(32):
        hmx.set_acc(2 * t + 1, 4, 1000 + t)
    hmx.put(OUT, [0x77] * 2048)
    hmx.op(*UH, OUT + 1024, 0)
    out = hmx.get16(OUT, 1024)
    assert [out[half(t + 16, 4)] for t in range(16)] == [1000 + t for t in range(16)]
    assert hmx.get(OUT, 1024) == bytes([0x77] * 1024)


def check_offset_cancels(hmx: Hmx) -> None:
    """Signed 16-bit activations are stored plus 32768; -128 * sum(w) in word 1 takes it out
    again, and two stores with powers of two give the 32-bit sum back."""
    rng = random.Random(3)
    n = 7
    w = [[rng.randrange(-128, 128) for _ in range(32 * n)] for _ in range(32)]
    a = [[rng.randrange(-32768, 32768) for _ in range(32 * n)] for _ in range(32)]
    a[5] = [0] * (32 * n)
    for tile in range(n):
        image, weights = bytearray(2048), bytearray(1024)
        for k in range(32):
            for t in range(32):
                v = a[t][32 * tile + k] + 32768
                image[sm(2 * t, k)], image[sm(2 * t + 1, k)] = v & 255, v >> 8
            for c in range(32):
                weights[weight_byte(k, c)] = w[c][32 * tile + k] & 255
        hmx.put(A + 2048 * tile, image)
        hmx.put(W + 1024 * tile, weights)
    hmx.load("ub:deep", A, 2048 * n - 1, "b", W, 2048 * n - 1)
    assert hmx.count("hmx_tiles_i") == n
    bias = [-128 * sum(w[c]) for c in range(32)]
    hmx.set_bias(0x4000, bias)
    hmx.op(1, 0x0F, OUT)
    hmx.set_bias(0x0400, bias)
    hmx.op(*UH, OUT + 2048)
    low, high = hmx.get16(OUT, 1024), hmx.get16(OUT + 2048, 1024)
    for t in range(32):
        for c in range(32):
            exact = sum(x * y for x, y in zip(a[t], w[c], strict=True))
            got_low, got_high = low[half(t, c)], high[half(t, c)]
            # high is the sum >> 15, so bit 15 is in both
            total = ((got_high ^ 0x8000) - 0x8000 << 15) | got_low & 0x7FFF
            assert got_low >> 15 == got_high & 1
            assert total == exact >> 8, (t, c)


def check_wrap_in_parts(hmx: Hmx) -> None:
    """High and low nibble sums wrap on their own: 2^28 in the high part is 0, in a plain
    32-bit sum it would be too; 2^27 is -2^31, and a low part adds to that without wrapping."""
    hmx.c.test_set_int(0, 1, 0, 1 << 28, 5)
    hmx.c.test_set_int(0, 1, 1, 1 << 27, -1)
    assert hmx.acc(1, 0) == 5
    assert hmx.acc(1, 1) == -(2**31) - 1
    hmx.set_bias(word0(16), [0, 2**31 - 1] + [0] * 30)
    for plain in (True, False):
        hmx.c.test_mode(0, 0, plain, 0)
        hmx.set_bias(word0(16), [0, 2**31 - 1] + [0] * 30)
        hmx.c.test_set_int(0, 1, 1, 1 << 27, -1)
        hmx.op(*UH_SAT, OUT)
        assert hmx.get16(OUT, 3)[2] == 0  # -2, not wrapped to something large


def check_two_by_two(hmx: Hmx) -> None:
    """16 x 16 bits: low and high weight bytes in even and odd channels. B = the 32-bit product
    sum >> 16 plus the bias; the result is in the odd channel. Legacy stores write 16 channels."""
    hmx.device(75)
    ll, lh, hl, hh = 70000, -5000, 123456, 789
    for r, (even, odd) in enumerate(((ll, lh), (hl, hh))):
        hmx.set_acc(r, 6, even)
        hmx.set_acc(r, 7, odd)
    hmx.set_bias(0x4000, [17] * 32)
    total = ll + ((lh + hl + (hh << 8)) << 8) + (17 << 16) >> 16
    hmx.cvt(25, 0x3)
    hmx.op(0, 0x18, OUT)
    out = hmx.get16(OUT, 64)
    assert out[half(0, 7)] == total
    assert out[half(0, 6)] == 0
    hmx.cvt(25, 0x3 | 2 << 9)
    hmx.op(0, 0x18, OUT)
    out = hmx.get16(OUT, 64)
    assert (out[half(0, 6)], out[half(0, 7)]) == (total, 0)
    hmx.put(OUT, [0xEE] * 2048)
    hmx.op(1, 0x1F, OUT)
    out = hmx.get16(OUT, 64)
    assert out[half(0, 3)] == total
    assert out[half(0, 16)] == 0xEEEE
    hmx.op(1, 0x1F, OUT + 64)
    assert hmx.get16(OUT, 64)[half(0, 19)] == total
    assert hmx.fault("hmx_operand") == 0


def check_ages(hmx: Hmx) -> None:
    """=cvt stores take positions before the offset from the previous convert."""
    hmx.device(79)
    hmx.set_bias(0x6000)
    for value in (10, 20, 30):
        for row in range(64):
            hmx.set_acc(row, 0, value + row)
        hmx.cvt(23, 1)
    hmx.op(0, 0x18, OUT + 1024)
    assert [hmx.get(OUT + sm(r, 0), 1)[0] for r in (0, 31, 32, 63)] == [52, 83, 30, 61]
    hmx.op(0, 0x1B, OUT + 1024)
    assert [hmx.get(OUT + sm(r, 0), 1)[0] for r in (0, 31, 32, 63)] == [42, 73, 20, 51]
    # a result in the place of the output bias does not age: 30 + 30 units
    hmx.cvt(23, 1 | 2 | 1 << 2)
    hmx.op(0, 0x18, OUT + 1024)
    assert [hmx.get(OUT + sm(r, 0), 1)[0] for r in (0, 32)] == [52, 60]


def check_cvt(hmx: Hmx) -> None:
    """cvt.*: groups of bias registers, saturation on a clear bit, a sticky bit below."""
    hmx.device(75)
    hmx.set_bias(word0(16), group=0)
    hmx.set_bias(word0(8), group=2)
    hmx.set_acc(1, 0, 70000)
    hmx.cvt(24, 1 | 2)
    hmx.op(0, 0x18, OUT)
    assert hmx.get16(OUT, 1) == [70000 % 65536]
    hmx.cvt(24, 1)
    hmx.op(0, 0x18, OUT)
    assert hmx.get16(OUT, 1) == [65535]
    hmx.cvt(24, 1 | 2 << 12)
    hmx.op(0, 0x18, OUT)
    assert hmx.get16(OUT, 1) == [70000 >> 8]
    # 3 * 2^-12 * 4095/2048 is 5.998 units of 2^-12, with the sticky half unit it is 6.998
    hmx.set_bias(word0(20, 1023, ob=10, lsb=1))
    hmx.set_acc(0, 0, 3)
    for op in ("legacy", "cvt"):
        if op == "cvt":
            hmx.cvt(23, 1 | 2)
            hmx.op(0, 0x18, OUT)
        else:
            hmx.op(*RETAIN[UB], OUT)
        assert hmx.get(OUT, 1)[0] == (5 + 10 >> 4 if op == "legacy" else 6 + 10 >> 4)
    assert hmx.fault("hmx_operand") == 0


def check_shift(hmx: Hmx) -> None:
    hmx.set_acc(3, 3, 5)
    hmx.op(0, 0x17)
    assert hmx.acc(3, 3) == 5 << 16


CHECKS = [v for k, v in list(globals().items()) if k.startswith("check_")]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__[6:])
def test_integer(hmx: Hmx, check) -> None:
    check(hmx)
