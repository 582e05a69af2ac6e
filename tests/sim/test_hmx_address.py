"""Positions, taps, neighbours, channels and weights of a load pair against a second model of them,
written with carries through masks instead of position numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hmx_lab import Hmx, fp16, hmx, library, value16

__all__ = ["hmx", "library"]
pytestmark = pytest.mark.sim

A, W = 0x8000, 0x20000
COLUMNS = (0, 13, 31)


def masked_add(x: int, d: int, mask: int) -> tuple[int, bool]:
    """x + d over the bits of mask: the others are ones, so that carries run through them."""
    width = mask.bit_length()
    total = (x | ~mask & (1 << width) - 1) + d
    return total & mask, bool(total >> width)


def walk(mask: int, start: int, stop: int, step: int = 1) -> Iterator[int]:
    at = start
    while True:
        yield at
        for _ in range(step):
            at, over = masked_add(at, mask & -mask, mask)
            if over or not mask or at > stop:
                return


def weight(data: bytes, kind: str, k: int, o: int, rt: int) -> tuple[int, int]:
    """Value of weight k, as (low, high) parts that are summed apart in n:2x."""
    per = {"b": 4, "sm": 4, "n2x": 4, "n": 8, "c": 16, "sc": 16, "ubit": 32, "sbit": 32}[kind]
    vector, i = divmod(k, per)
    if vector * 128 > (rt | 127):
        return 0, 0
    word = int.from_bytes(data[vector * 128 + 4 * o : vector * 128 + 4 * o + 4], "little")
    if kind == "n":
        v = word >> (8 * i if i < 4 else 8 * (i - 4) + 4) & 15
        return (v - 16 if v > 7 else v), 0
    if kind in ("c", "sc"):
        v = word >> (8 * (i % 4) + 2 * (i // 4)) & 3
        return ((0, 1, -2, -1) if kind == "c" else (2, 1, -2, -1))[v], 0
    if kind in ("ubit", "sbit"):
        v = word >> (8 * (i % 4) + i // 4) & 1
        return (v if kind == "ubit" else 1 - 2 * v), 0
    v = word >> 8 * i & 255
    if kind == "n2x":
        return ((v & 15) ^ 8) - 8, ((v >> 4) ^ 8) - 8
    if kind == "sm" and v > 127:
        v ^= 127
    return (v - 256 if v > 127 else v), 0


def model(
    hmx: Hmx, act: str, a: int, art: int, wgt: str, w: int, wrt: int
) -> dict[tuple[int, int, int], int]:
    """Sums by (set, row, column), from the rules as they are written down."""
    kind, *mods = act.split(":")
    wkind, *wmod = wgt.split(":")
    fp = kind == "hf"
    fmt, sp = (0, 0x7E0) if "cm" in mods else (2, 0x782 if fp else 0x783)
    ymask, xmask = art & sp, ~art & sp
    fy, fx, dy = a & ymask, a & xmask, art & ~2047
    start, stop = (a >> fmt & 31) & ~3, (art >> fmt & 31 | 3) + 1
    if wkind in ("n", "c", "sc", "ubit", "sbit"):
        start, stop = 0, 32
    blocks = (dy >> 11) + 1 if "deep" in mods else 1
    ys = {
        "deep": [0],
        "above": walk(ymask, fy, ymask),
        "single": [fy],
        "dilate": walk(ymask, 0, fy, 2),
        "": walk(ymask, 0, fy),
    }[next((m for m in mods if m != "cm"), "")]
    xs = {
        "deep": [0],
        "after": walk(xmask, fx, xmask),
        "single": [fx],
        "dilate": walk(xmask, 0, fx, 2),
    }.get("".join(wmod), walk(xmask, 0, fx))
    ys, xs = list(ys), list(xs)
    data, memory = hmx.get(w & ~127, 65536), hmx.get(0, 0x20000)
    base, k = a & ~2047, 0
    sums: dict[tuple[int, int, int], int] = {}
    for b in range(blocks):
        for ty in ys:
            for d in range(2 if wmod == ["deep"] else 1):
                for tx in xs:
                    for c in range(start if b == 0 else 0, stop if b == blocks - 1 else 32):
                        for y in walk(ymask, 0, ymask):
                            for x in walk(xmask, 0, xmask):
                                ay, below = masked_add(ty, y, ymask)
                                ox, beside = masked_add(tx, x, xmask)
                                if beside and wmod in (["drop"], ["deep"]):
                                    continue
                                at = base + b * 2048 + (dy if below else 0) + (ay | x) + (c << fmt)
                                p = ox | y
                                row = p >> 5 if fmt == 0 else p >> 7 << 2 | p & 3
                                for o in COLUMNS:
                                    key = int(beside) ^ d, row, o
                                    if fp:
                                        word = int.from_bytes(memory[at : at + 2], "little")
                                        at_w = k // 2 * 128 + 4 * o + k % 2 * 2
                                        bits = int.from_bytes(data[at_w : at_w + 2], "little")
                                        if k // 2 * 128 > (wrt | 127):
                                            bits = 0
                                        v = int(value16(word) * value16(bits))
                                    else:
                                        lo, hi = weight(data, wkind, k, o, wrt)
                                        v = memory[at] * (lo + 16 * hi)
                                    sums[key] = sums.get(key, 0) + v
                        k += 1
    return sums


ACTS = ("", ":above", ":single", ":dilate", ":deep")
WGTS = ("", ":single", ":drop", ":deep", ":after", ":dilate")


def check_against_second_model(hmx: Hmx, seeds: range = range(50)) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        hmx.fresh()
        fp = rng.random() < 0.3
        act = "hf" if fp else "ub"
        act += rng.choice(ACTS)
        cm = not fp and rng.random() < 0.4
        act += ":cm" if cm else ""
        kind = "hf" if fp else rng.choice(("b", "b", "sm", "n", "c", "sc", "ubit", "sbit", "n2x"))
        wgt = kind + rng.choice(WGTS)
        fmt, sp = (0, 0x7E0) if cm else (2, 0x782 if fp else 0x783)
        # y and x get some of the position bits each; the offset stays small in both
        art = rng.choice((sp, rng.getrandbits(11) & sp, 0x700, 0, 0x180))
        offset = 0
        for mask in (art & sp, ~art & sp):
            for _ in range(rng.randrange(3)):
                offset |= masked_add(offset & mask, mask & -mask, mask)[0]
        c0, c1 = sorted((rng.randrange(8) * 4, rng.randrange(8) * 4))
        if rng.random() < 0.7:
            c1 = min(c1, c0 + 4)
        a = A + offset + (c0 << fmt)
        art |= (c1 << fmt) | rng.randrange(3 if "deep" in act else 4) * 2048
        if fp:
            hmx.put16(A, [fp16(rng.randrange(-3, 4)) for _ in range(4096)])
            hmx.put16(W, [fp16(rng.randrange(-3, 4)) for _ in range(32768)])
        else:
            hmx.put(A, rng.randbytes(8192))
            hmx.put(W, rng.randbytes(65536))
        wrt = rng.choice((65535, 127, 1000))
        expected = model(hmx, act, a, art, wgt, W, wrt)
        hmx.load(act, a, art, wgt, W, wrt)
        read = hmx.fp if fp else hmx.acc
        rows = range(32) if fp else range(64)
        for set_ in (0, 1):
            for row in rows:
                for o in COLUMNS:
                    want = expected.get((set_, row * 2 if fp else row, o), 0)
                    assert read(row, o, set_) == want, (seed, act, wgt, set_, row, o)


def test_addressing(hmx: Hmx) -> None:
    check_against_second_model(hmx)
