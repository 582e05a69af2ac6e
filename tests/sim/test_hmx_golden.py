"""Published results of other models and of devices. The numbers are theirs."""

from __future__ import annotations

import pytest
from hmx_lab import Hmx, half, hmx, library, sm, weight_byte

__all__ = ["hmx", "library"]
pytestmark = pytest.mark.sim

A, W, OUT, B = 0, 0x8000, 0x10000, 0x18000


def check_channel_major_convert(hmx: Hmx) -> None:
    """BSD-licensed test of Qualcomm's emulator port: accumulators 8c + 4, bias (32 + c) << 10,
    shift c, written channel-major and saturated."""
    hmx.put(A, (i % 2 for i in range(2048)))
    hmx.put(W, range(128))
    hmx.put32(B, [i << 10 for i in range(64)])
    hmx.bias(B)
    hmx.op(0, 0x11)
    hmx.load("ub:cm", A, 0xE3, "b", W, 0)
    assert [hmx.acc(0, c) for c in range(32)] == [8 * c + 4 for c in range(32)]
    hmx.op(0, 0x05, OUT, 0xE0)
    row = [0] * 9 + [1, 2, 5, 11, 22, 46, 94, 192] + [255] * 15
    assert list(hmx.get(OUT, 2048)) == row * 64


def check_f8(hmx: Hmx) -> None:
    """The same test's f8 part, v81: only channel 30 is large enough and not negated."""
    hmx.device(81)
    hmx.put32(B, [i << 10 for i in range(64)])
    hmx.bias(B)
    hmx.op(0, 0x11)
    hmx.cvt(27, 0)
    hmx.op(0, 0x1D, OUT, 0)
    expected = bytearray(2048)
    for j in range(16):
        expected[128 * j + 120] = expected[128 * j + 122] = 1
    assert hmx.get(OUT, 2048) == bytes(expected)


def high_plane(hmx: Hmx) -> None:
    """a = 255 in the high bytes, w = 127, K = 32: every sum is 1036320."""
    for r in range(1, 64, 2):
        for k in range(32):
            hmx.put(A + sm(r, k), [255])
    hmx.put(W, [127] * 1024)
    hmx.load("ub", A, 2047, "b", W, 1023)


@pytest.mark.parametrize(
    ("word", "op6", "out"),
    [
        (0x40004000, 0x0B, 53280),
        (0x40004000, 0x0A, 65535),
        (0x2000, 0x0B, 1036320 // 256),
    ],
)
def test_v75_simulator(hmx: Hmx, word: int, op6: int, out: int) -> None:
    """hexagon-sim for v75, as a public project reports it."""
    high_plane(hmx)
    hmx.set_bias(word)
    hmx.op(1, op6, OUT)
    assert set(hmx.get16(OUT, 1024)) == {out}


WEIGHTS = [
    ("b", 0x7F, 4064),
    ("b", 0xFF, -32),
    ("n", 0x01, 16),
    ("n", 0x10, 16),
    ("n", 0x11, 32),
    ("n", 0x77, 224),
    ("n", 0x88, -256),
    ("c", 0x01, 8),
    ("c", 0x55, 32),
    ("c", 0xFF, -32),
    ("ubit", 0x01, 4),
    ("ubit", 0xFF, 32),
    ("n2x", 0x11, 544),
]


@pytest.mark.parametrize(("kind", "byte", "total"), WEIGHTS)
@pytest.mark.parametrize("plain", [False, True])
def test_weight_types_on_v75(hmx: Hmx, kind: str, byte: int, total: int, plain: bool) -> None:
    """Sums over K = 32 of a = 1, measured on a v75 phone, all weight bytes alike."""
    hmx.mode(plain=plain)
    hmx.put(A, [1] * 2048)
    hmx.put(W, [byte] * 1024)
    hmx.load("ub", A, 2047, kind, W, 1023)
    assert {hmx.acc(r, c) for r in range(64) for c in range(32)} == {total}


def check_layouts(hmx: Hmx) -> None:
    """Layouts found on a v73 phone: token t has its bytes in rows 2t (low) and 2t + 1."""
    for t, k, c in [(0, 0, 0), (1, 5, 7), (13, 31, 2), (31, 18, 31)]:
        hmx.fresh()
        hmx.put(A + sm(2 * t, k), [0x34])
        hmx.put(A + sm(2 * t + 1, k), [0x12])
        hmx.put(W + weight_byte(k, c), [3])
        hmx.set_bias(0x4000)
        hmx.load("ub:deep", A, 2047, "b", W, 2047)
        hmx.op(1, 0x0B, OUT)
        out = hmx.get16(OUT, 1024)
        assert out[half(t, c)] == 0x12 * 3 + (0x34 * 3 >> 8)
        assert sum(v != 0 for v in out) == 1


WIDE = [0x4000, 0x2000, 0x0400]
CONVERTED = [
    (0, (0, 0, 0)),
    (1, (1, 0, 0)),
    (-1, (0xFFFF, 0xFFFF, 0xFFFF)),
    (255, (255, 0, 0)),
    (256, (256, 1, 0)),
    (65535, (0xFFFF, 255, 1)),
    (65536, (0, 256, 2)),
    (-65537, (0xFFFF, 0xFEFF, 0xFFFD)),
    (2**27 + 5, (5, 2**19 % 2**16, 4096)),
]


def check_power_of_two_words(hmx: Hmx) -> None:
    """16-bit results of one sum under three bias words: the low half, 2^-8 and 2^-15, by floor."""
    for total, expected in CONVERTED:
        for word, out in zip(WIDE, expected, strict=True):
            hmx.set_acc(1, 0, total)
            hmx.set_bias(word)
            hmx.op(1, 0x0F, OUT)
            assert hmx.get16(OUT, 1) == [out], (total, hex(word))


READY = [
    # activation.hf:deep + weight.hf, activation.hf + weight.hf, activation.ub:deep + weight.b
    ([0x920041E2, 0x9202E3EF], "hf:deep", "hf"),
    ([0x920041E4, 0x9202E3EF], "hf", "hf"),
    ([0x920041E0, 0x9202E3E0], "ub:deep", "b"),
]


@pytest.mark.parametrize(("words", "act", "wgt"), READY)
def test_ready_words(hmx: Hmx, words: list[int], act: str, wgt: str) -> None:
    """Words as found in device binaries do what the texts say."""
    hmx.put16(A, [0x3C00 + i % 7 for i in range(1024)])
    hmx.put16(W, [0x3800 + i % 5 for i in range(1024)])
    r = [hmx.base + A, 2047, hmx.base + W, 2047]
    hmx.run(words, r)
    get = hmx.fp if act.startswith("hf") else hmx.acc
    first = [get(i, 3) for i in range(32)]
    hmx.op(0, 0x11)
    hmx.op(0, 0x13)
    assert {get(i, 3) for i in range(32)} == {0}
    hmx.load(act, A, 2047, wgt, W, 2047)
    assert [get(i, 3) for i in range(32)] == first
    assert 0 not in first


def test_ready_words_of_the_others(hmx: Hmx) -> None:
    r = [hmx.base + OUT, 0]
    hmx.put32(B, [0x4000] * 64)
    hmx.run([0x9200C3FE], [hmx.base + B])
    hmx.set_acc(1, 0, 7)
    hmx.run([0xA6E0E10F], r)  # mxmem(r0,r1):after:retain.uh=acc:2x1
    assert hmx.get16(OUT, 1) == [0x4007]
    hmx.run([0xA6E0C014], r)  # mxswapacc
    assert hmx.acc(1, 0) == 0
    hmx.run([0xA6E0C014, 0xA6E0E10B], r)  # swap back, the same without :retain
    assert hmx.get16(OUT, 1) == [0x4007]
    assert hmx.acc(1, 0, 0) == hmx.acc(1, 0, 1) == 0
    hmx.run([0xA6E0C014], r)
    hmx.set_acc(1, 0, 7)
    hmx.run([0xA6E0C011], r)  # mxclracc
    assert hmx.acc(1, 0) == 0
    hmx.run([0xA6E0D910, 0xA6E0C118], [0x1, 0])  # cvt.uh=acc(r0):2x2, retain
    assert hmx.count("hmx_stores") == 2  # address 1 is not VTCM
    assert hmx.fault("hmx_operand") == 1


CHECKS = [check_channel_major_convert, check_f8, check_layouts, check_power_of_two_words]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__[6:])
def test_golden(hmx: Hmx, check) -> None:
    check(hmx)
