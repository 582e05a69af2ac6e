"""What the unit drops, what is reported, what each architecture has, bias registers, threads."""

from __future__ import annotations

import ctypes
import threading

import pytest
from hmx_lab import VTCM, Hmx, hmx, library

__all__ = ["hmx", "library"]
pytestmark = pytest.mark.sim

A, W, OUT, B = 0, 0x8000, 0x10000, 0x18000
ONE = 0x3C00


def ones(hmx: Hmx, at: int, size: int) -> None:
    hmx.put(at, [1] * size)


def nothing(hmx: Hmx) -> bool:
    return all(hmx.acc(r, c, s) == 0 for r in (0, 1, 63) for c in (0, 31) for s in (0, 1))


DROPPED = [
    # activation base, Rt, weight base, Rt
    (VTCM - 2048, 4095, W, 1023),  # the second tile is beyond
    (VTCM, 2047, W, 1023),
    (-2048, 2047, W, 1023),
    (A, 0x800007FF, W, 1023),  # bit 31
    (A, 2047, W, 0x800003FF),
    (A, 2047, VTCM - 1024, 2047),  # the range counts, not what is used
    (A, 2047, -1024, 1023),
    (A, 0x7FFFFFFF, W, 1023),
]


@pytest.mark.parametrize(("a", "art", "w", "wrt"), DROPPED)
def test_operands_outside_are_dropped(hmx: Hmx, a: int, art: int, w: int, wrt: int) -> None:
    ones(hmx, A, VTCM)
    hmx.load("ub:deep", a, art, "b", w, wrt)
    assert nothing(hmx)
    assert hmx.fault("hmx_operand") == 1
    assert hmx.count("hmx_tiles_i") == 0
    hmx.checks()
    hmx.load("ub:deep", a, art, "b", w, wrt)
    assert nothing(hmx)
    assert hmx.fault("hmx_operand") == 1


def test_the_last_tile_is_fine(hmx: Hmx) -> None:
    ones(hmx, A, VTCM)
    hmx.load("ub:deep", VTCM - 2048, 2047, "b", VTCM - 1024, 1023)
    assert hmx.acc(0, 0) == 32
    assert hmx.fault("hmx_operand") == 0


@pytest.mark.parametrize("plain", [False, True])
def test_limits_of_a_packet(hmx: Hmx, plain: bool) -> None:
    """64 tiles with integers, 32 with FP16, 64 KiB of weights; the rest is not multiplied."""
    hmx.mode(plain=plain)
    ones(hmx, A, VTCM)
    hmx.load("ub:deep", A, 64 * 2048 - 1, "b", A, 128 * 1024 - 1)
    assert hmx.acc(0, 0) == 64 * 32
    assert hmx.fault("hmx_operand") == 0
    hmx.op(0, 0x11)
    hmx.load("ub:deep", A, 65 * 2048 - 1, "b", A, 128 * 1024 - 1)
    assert hmx.acc(0, 0) == 64 * 32
    assert hmx.fault("hmx_operand") == 1
    hmx.put16(A, [ONE] * 80000)
    hmx.load("hf:deep", A, 33 * 2048 - 1, "hf", A, 33 * 2048 - 1)
    assert hmx.fp(0, 0) == 32 * 32
    assert hmx.fault("hmx_operand") == 2
    assert hmx.count("hmx_tiles_i") == 128
    assert hmx.count("hmx_tiles_f") == 32


@pytest.mark.parametrize(("at", "wgt"), [(A + 4, W), (A + 128, W), (A, W + 4), (A, W + 32)])
def test_ignored_address_bits_are_told(hmx: Hmx, at: int, wgt: int) -> None:
    """The unit looks past them, so a kernel that sets them reads another place than it thinks."""
    ones(hmx, A, 65536)
    hmx.load("ub:deep", at, 2047, "b", wgt, 1023)
    assert hmx.fault("hmx_operand") == 1
    assert hmx.acc(0, 0) == 32


def test_channels_that_run_backwards(hmx: Hmx) -> None:
    """First channel after the last: group convolution, not modelled. Narrow weights do not ask."""
    ones(hmx, A, 65536)
    hmx.load("ub", A + 64, 0x783 + 28, "b", W, 1023)
    assert nothing(hmx)
    assert hmx.fault("hmx_operand") == 1
    hmx.load("ub", A + 64, 0x783 + 28, "ubit", W, 1023)
    assert hmx.acc(0, 0) == 4
    assert hmx.fault("hmx_operand") == 1


def test_mixed_kinds_and_unknown_codes(hmx: Hmx) -> None:
    hmx.load("ub", A, 2047, "hf", W, 2047)
    hmx.load("hf", A, 2047, "b", W, 2047)
    hmx.c.sim_hmx_load(0x12, hmx.base, 2047, 0xE0, hmx.base, 2047)
    hmx.c.sim_hmx_load(0xEC, hmx.base, 2047, 0x12, hmx.base, 2047)
    hmx.op(0, 0x12)
    hmx.op(1, 0x10)
    hmx.cvt(1, 0)
    hmx.cvt(28, 0)
    assert hmx.fault("hmx_operand") == 8
    assert nothing(hmx)


def lacks(hmx: Hmx, arch: int, act) -> bool:
    hmx.fresh()
    hmx.device(arch)
    act(hmx)
    assert hmx.fault("hmx_operand") in (0, 1)
    return hmx.fault("hmx_operand") == 1


FEATURES = [  # instruction, architectures of 68, 69, 73, 75, 79, 81 that have it
    ("weight.b", lambda h: h.load("ub", A, 2047, "b", W, 1023), "111111"),
    ("weight.n:2x", lambda h: h.load("ub", A, 2047, "n2x", W, 1023), "001111"),
    ("weight.f8", lambda h: h.load("f8", A, 2047, "f8", W, 1023), "000011"),
    ("activation.f8", lambda h: h.load("f8", A, 2047, "hf", W, 2047), "000011"),
    ("uh:2x1", lambda h: h.op(1, 0x0B, OUT), "111111"),
    ("uh:2x2", lambda h: h.op(1, 0x1B, OUT), "011111"),
    ("cvt.ub", lambda h: h.cvt(23, 0), "001111"),
    ("cvt.hf", lambda h: h.cvt(26, 0), "001111"),
    ("cvt.f8", lambda h: h.cvt(27, 0), "000001"),
    ("=cvt", lambda h: h.op(0, 0x18, OUT), "001111"),
    ("=cvt:cm", lambda h: h.op(0, 0x19, OUT), "001111"),
    ("=cvt:deep", lambda h: h.op(0, 0x1B, OUT), "000011"),
    (".f8=cvt", lambda h: h.op(0, 0x1D, OUT), "000001"),
    ("mxshl", lambda h: h.op(0, 0x17), "111100"),
]


@pytest.mark.parametrize(("name", "act", "has"), FEATURES, ids=[f[0] for f in FEATURES])
def test_what_an_architecture_has(hmx: Hmx, name: str, act, has: str) -> None:
    for arch, there in zip((68, 69, 73, 75, 79, 81), has, strict=True):
        assert lacks(hmx, arch, act) == (there == "0"), (name, arch)


def check_bias_registers(hmx: Hmx) -> None:
    hmx.device(75)
    hmx.put32(B, range(256))
    for group in range(4):
        hmx.bias(B + 256 * group + group)
    for group in range(4):
        hmx.op(0, 0x16, OUT + 256 * group + group)
    assert hmx.get(OUT, 1024) == hmx.get(B, 1024)
    # mxmem: the first words only; the second ones stay, as in the newer model
    hmx.put32(B + 1024, range(2000, 2032))
    hmx.bias(B + 1024, 0xFF)
    hmx.op(0, 0x16, OUT)
    assert hmx.get(OUT, 128) == hmx.get(B + 1024, 128)
    assert hmx.get(OUT + 128, 128) == hmx.get(B + 128, 128)
    hmx.cvt(0, hmx.base + OUT + 1024)
    hmx.op(0, 0x10, OUT + 1024 + 128)
    assert hmx.get(OUT + 1024, 256) == hmx.get(OUT, 128) * 2
    assert hmx.count("hmx_bias") == 5
    assert hmx.fault("hmx_operand") == 0
    hmx.bias(B + 128)
    hmx.bias(VTCM)
    assert hmx.fault("hmx_operand") == 2
    assert hmx.count("hmx_bias") == 6, "a low address bit too many is ignored"
    # one group before v75
    hmx.device(73)
    hmx.bias(B + 2)
    hmx.op(0, 0x16, OUT)
    assert hmx.get(OUT, 256) == hmx.get(B, 256)


def test_bias_registers(hmx: Hmx) -> None:
    check_bias_registers(hmx)


def test_stores_outside(hmx: Hmx) -> None:
    """Nothing is written; the accumulators are cleared all the same."""
    hmx.set_bias(0x4000)
    hmx.set_acc(1, 0, 9)
    for at, rt in ((VTCM, 0), (-2048, 0), (VTCM - 2048 + 128, 0x780 + 2048)):
        hmx.op(1, 0x0F, at, rt)
    assert hmx.fault("hmx_operand") == 3
    assert hmx.count("hmx_stores") == 0
    hmx.op(1, 0x0B, VTCM)
    assert hmx.acc(1, 0, 0) == 0
    hmx.op(1, 0x0B, OUT + 4)  # channel bits mean nothing here
    assert hmx.fault("hmx_operand") == 5
    assert hmx.count("hmx_stores") == 1


def test_lock(hmx: Hmx) -> None:
    """Without it the instruction runs and is told; without a unit nothing happens."""
    ones(hmx, A, 65536)
    hmx.lock(False)
    hmx.load("ub", A, 2047, "b", W, 1023)
    assert hmx.acc(0, 0) == 32
    assert hmx.fault("hmx_lock") == 1
    hmx.lock(True)
    hmx.device(73, hmx=False)
    hmx.load("ub", A, 2047, "b", W, 1023)
    hmx.op(0, 0x11)
    hmx.bias(B)
    hmx.cvt(23, 0)
    assert hmx.acc(0, 0) == 32
    assert hmx.fault("hmx_lock") == 5
    assert hmx.fault("hmx_operand") == 0


def test_a_thread_has_its_own_unit(hmx: Hmx) -> None:
    ones(hmx, A, 65536)
    hmx.load("ub", A, 2047, "b", W, 1023)
    seen = []

    def other() -> None:
        seen.append(hmx.acc(0, 0))
        hmx.load("ub", A, 2047, "b", W, 1023)
        hmx.load("ub", A, 2047, "b", W, 1023)
        seen.append(hmx.acc(0, 0))

    for _ in range(20):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen == [0, 64] * 20
    assert hmx.acc(0, 0) == 32


@pytest.mark.parametrize(
    ("environment", "modes", "policy", "xfp"),
    [
        ({}, 0, 0, 0),
        ({"HEXPATCH_SIM_HMX_FP": "xfp"}, 0, 0, 1),
        ({"HEXPATCH_SIM_HMX_FP": "exact"}, 0, 0, 0),
        ({"HEXPATCH_SIM_HMX_NAN": "ieee"}, 0, 1, 0),
        ({"HEXPATCH_SIM_HMX_NAN": "nan0"}, 0, 2, 0),
        ({"HEXPATCH_SIM_HMX_NAN": "xfp"}, 0, 0, 0),
        ({}, 4, 2, 0),
    ],
)
def test_switches(
    hmx: Hmx,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    modes: int,
    policy: int,
    xfp: int,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    hmx.checks(modes=modes)
    hmx.c.hmx_read_switches()
    assert (hmx.c.test_policy(), hmx.c.test_xfp()) == (policy, xfp)
    hmx.c.hmx_mode.restype = ctypes.c_char_p
    names = ("xfp", "ieee", "nan0")
    assert hmx.c.hmx_mode().decode() == f"fp={'xfp' if xfp else 'exact'} nan={names[policy]}"


def test_the_dma_check_hears_of_operands_and_results(hmx: Hmx) -> None:
    touched = (ctypes.c_uint64 * 2).in_dll(hmx.c, "test_touched")
    before = list(touched)
    hmx.load("ub:deep", 0, 4095, "b", 8192, 4095)
    hmx.op(0, 0x04, 16384)
    assert list(touched) == before, "the check is off"
    hmx.checks("dma_order")
    hmx.load("ub:deep", 0, 4095, "b", 8192, 4095)  # 2 tiles; Rt covers more weights than they use
    assert [a - b for a, b in zip(touched, before, strict=True)] == [4096 + 2048, 0]
    hmx.bias(12288)
    hmx.op(0, 0x04, 16384)
    assert [a - b for a, b in zip(touched, before, strict=True)] == [4096 + 2048 + 256, 2048]
