"""The integer matmul as an op through ctypes, and weights of all types in their tiles."""

from __future__ import annotations

import ctypes as C
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_lab import Lab, lab

__all__ = ["TYPES", "Matmul", "Weights", "activations", "lab", "matmul", "nmse", "weights", "wrong"]

Array = np.ndarray[Any, Any]
VTCM = 4 << 20
DDR = 64 << 20
SIZES = ("k_chunk", "m_chunk", "group", "n_wgt", "n_stage")
CODES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
COUNTERS = (
    *("hvx_alu", "hvx_mpy", "hvx_perm", "hvx_fp", "hvx_ld", "hvx_st", "hvx_ldu", "hvx_stu"),
    *("hvx_gather", "hvx_scatter", "hmx_tiles_i", "hmx_tiles_f", "hmx_stores"),
)
FP4 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12])


# -- weights -------------------------------------------------------------------------------------
#
# A tile has 32 columns of one block of 32 k. Quantisers get blocks [tile][k][column] of numbers and
# give the bytes of each tile and what these stand for.


def half(x: Array) -> Array:
    """Rounded to fp16."""
    return np.asarray(x, np.float64).astype(np.float16)


def over(x: Array, d: Array) -> Array:
    """x / d, and 0 where d is 0."""
    return np.divide(x, d, out=np.zeros(np.broadcast_shapes(x.shape, d.shape)), where=d != 0)


def nibbles(q: Array) -> Array:
    """Row p of 32 bytes: k = 2p in the low nibbles, 2p + 1 in the high ones."""
    return (q[:, 0::2] | q[:, 1::2] << 4).astype(np.uint8).reshape(len(q), 512)


def raw(x: Array) -> Array:
    """The bytes of each tile."""
    return np.ascontiguousarray(x).view(np.uint8).reshape(len(x), -1)


def largest(b: Array) -> Array:
    """The value of the largest size, sign included."""
    return np.take_along_axis(b, np.abs(b).argmax(1)[:, None], 1)


def q4_0(b: Array) -> tuple[Array, Array]:
    d = half(largest(b) / -8)
    q = np.clip(np.floor(over(b, d.astype(float)) + 8.5), 0, 15).astype(int)
    return np.hstack([nibbles(q), raw(d)]), d.astype(float) * (q - 8)


def q8_0(b: Array) -> tuple[Array, Array]:
    d = half(np.abs(b).max(1, keepdims=True) / 127)
    q = np.rint(over(b, d.astype(float))).astype(np.int8)
    rows = q.reshape(-1, 16, 2, 32).transpose(0, 1, 3, 2)
    return np.hstack([raw(rows), raw(d)]), d.astype(float) * q


def iq4_nl(b: Array) -> tuple[Array, Array]:
    d = half(largest(b) / -127)
    q = np.abs(over(b, d.astype(float))[..., None] - CODES).argmin(-1)
    return np.hstack([nibbles(q), raw(d)]), d.astype(float) * CODES[q]


def mxfp4(b: Array) -> tuple[Array, Array]:
    top = np.abs(b).max(1, keepdims=True)
    e = np.where(top > 0, np.floor(np.log2(np.where(top > 0, top, 1))) - 2 + 127, 0).astype(int)
    d = np.where(e > 0, np.exp2(e - 128.0), 0)
    q = np.abs(over(b, d)[..., None] - FP4).argmin(-1)
    return np.hstack([nibbles(q), e.astype(np.uint8)[:, 0]]), d * FP4[q]


def with_min(b: Array, bits: int, supers: bool) -> tuple[Array, Array, Array]:
    """Quants, (d, m) in turn as fp16, values. supers: d and m are six bits of a larger block's."""
    top = (1 << bits) - 1
    low, high = b.min(1, keepdims=True), b.max(1, keepdims=True)
    if supers:
        low = np.minimum(low, 0)
        d, m = (high - low) / top, -low
        for x in (d, m):
            s = x.reshape(-1, 8, 1, 32) if len(x) % 8 == 0 else x[None]
            unit = half(s.max(1, keepdims=True) / 63).astype(float)
            x[:] = (np.rint(over(s, unit)) * unit).reshape(x.shape)
        exact_d, exact_m = d, -m
        d, m = half(d), half(-m)
    else:
        d, m = half((high - low) / top), half(low)
        exact_d, exact_m = d.astype(float), m.astype(float)
    q = np.clip(np.rint(over(b - exact_m, exact_d)), 0, top).astype(int)
    scales = np.stack([d, m], -1).reshape(len(b), 64)
    return q, raw(scales), exact_d * q + exact_m


def q4_1(b: Array) -> tuple[Array, Array]:
    q, scales, w = with_min(b, 4, False)
    return np.hstack([nibbles(q), scales]), w


def q4_k(b: Array) -> tuple[Array, Array]:
    q, scales, w = with_min(b, 4, True)
    return np.hstack([nibbles(q), scales]), w


def q5_k(b: Array) -> tuple[Array, Array]:
    q, scales, w = with_min(b, 5, True)
    flags = np.zeros((len(b), 4, 32), np.uint8)
    for k in range(32):
        p = k // 2
        flags[:, p % 4] |= ((q[:, k] >> 4) << (2 * (p // 4) + k % 2)).astype(np.uint8)
    return np.hstack([nibbles(q & 15), scales, flags.reshape(len(b), 128)]), w


def q6_k(b: Array) -> tuple[Array, Array]:
    h = b.reshape(-1, 2, 16, 32)
    big = np.take_along_axis(h, np.abs(h).argmax(2)[:, :, None], 2)
    d = half(big / -32)
    q = np.clip(np.rint(over(h, d.astype(float))), -32, 31).astype(int)
    w = (d.astype(float) * q).reshape(b.shape)
    # k / 4, column, k % 4
    u = (q + 32).reshape(-1, 8, 4, 32).transpose(0, 1, 3, 2).reshape(len(b), 8, 128)
    low = (u[:, 0::2] & 15) | (u[:, 1::2] & 15) << 4
    high = sum((u[:, i::4] >> 4) << 2 * i for i in range(4))
    return np.hstack([raw(low.astype(np.uint8)), raw(np.asarray(high, np.uint8)), raw(d)]), w


@dataclass(frozen=True)
class Type:
    """A type of weights: its number in ggml and its quantiser."""

    number: int
    quantise: Callable[[Array], tuple[Array, Array]]


TYPES = {
    "q4_0": Type(2, q4_0),
    "q4_1": Type(3, q4_1),
    "q8_0": Type(8, q8_0),
    "q4_k": Type(12, q4_k),
    "q5_k": Type(13, q5_k),
    "q6_k": Type(14, q6_k),
    "iq4_nl": Type(20, iq4_nl),
    "mxfp4": Type(39, mxfp4),
}


@dataclass(frozen=True)
class Weights:
    """Tiles of a matrix, and the values [k][column] they stand for."""

    type: str
    tiles: Array
    values: Array


def weights(kind: str, w: Array) -> Weights:
    """w [k][column] as a type; columns are filled up with zeros to a whole tile."""
    k, n = w.shape
    full = np.zeros((k, -(-n // 32) * 32))
    full[:, :n] = w
    blocks = full.reshape(k // 32, 32, -1, 32).transpose(2, 0, 1, 3).reshape(-1, 32, 32)
    tiles, values = TYPES[kind].quantise(blocks)
    back = values.reshape(-1, k // 32, 32, 32).transpose(1, 2, 0, 3).reshape(full.shape)
    return Weights(kind, np.ascontiguousarray(tiles), back[:, :n])


def activations(kind: str, rng: np.random.Generator, m: int, k: int) -> Array:
    """m tokens: `normal`, `positive` (uniform in 0..1), `outliers` (1 of 300 times 100)."""
    if kind == "positive":
        return rng.random((m, k), np.float32)
    x = rng.standard_normal((m, k), np.float32)
    if kind == "outliers":
        x[rng.random((m, k)) < 1 / 300] *= 100
    return x


def nmse(got: Array, want: Array) -> float:
    """The squared error by the squares."""
    return float(((got - want) ** 2).sum() / (want**2).sum())


# -- the op --------------------------------------------------------------------------------------


class Matmul:
    """The library of mm_lab.c, its VTCM and its memory."""

    def __init__(self, library: Path) -> None:
        self.c = C.CDLL(str(library))
        for name in ("lab_vtcm", "lab_ddr"):
            getattr(self.c, name).restype = C.c_void_p
        self.vtcm: int = self.c.lab_vtcm(C.c_uint32(VTCM))
        self.ddr: int = self.c.lab_ddr(C.c_uint32(DDR))
        assert self.vtcm and self.ddr
        self.memory: Array = np.frombuffer((C.c_uint8 * DDR).from_address(self.ddr), np.uint8)
        self.at = 0
        self.sizes: dict[str, int] = {}

    def take(self, data: Array) -> Array:
        """A copy in the lab's memory."""
        self.at = (self.at + 255) // 256 * 256
        view = self.memory[self.at : self.at + data.nbytes].view(data.dtype).reshape(data.shape)
        assert self.at + data.nbytes <= DDR
        view[...] = data
        self.at += data.nbytes
        return view

    def __call__(
        self,
        w: Weights,
        x: Array,
        add: Array | None = None,
        threads: int = 4,
        vtcm: int = VTCM,
        pad: int = 0,
    ) -> Array:
        """x times w, and `add` (a row, or one for each token); tokens are `pad` floats apart."""
        self.at = 0
        (m, k), n = x.shape, w.values.shape[1]
        wide = self.take(np.full((m, k + pad), np.nan, np.float32))
        wide[:, :k] = x
        tiles = self.take(w.tiles)
        more = None if add is None else self.take(np.atleast_2d(add).astype(np.float32))
        y = self.take(np.full((m + 1, n + pad), np.nan, np.float32))
        sizes = (C.c_int32 * 5)()
        C.memset(self.vtcm, 0xFF, VTCM)  # stale data is NaN
        status = self.c.lab_matmul(
            *map(C.c_uint32, (TYPES[w.type].number, k, m, n)),
            self._p(tiles),
            self._p(wide),
            C.c_uint32((k + pad) * 4),
            self._p(more),
            C.c_uint32(0 if more is None else len(more)),
            self._p(y),
            C.c_uint32((n + pad) * 4),
            C.c_uint32(threads),
            C.c_void_p(self.vtcm),
            C.c_uint32(vtcm),
            sizes,
        )
        assert status == 0, f"status {status}"
        self.sizes = dict(zip(SIZES, sizes, strict=True))
        assert np.isnan(y[m:]).all() and np.isnan(y[:, n:]).all(), "written beside the output"
        return y[:m, :n].astype(np.float64)

    def counts(self) -> dict[str, int]:
        """What the threads counted so far: the first counters of hexsim.h."""
        n = (C.c_uint64 * 64)()
        self.c.lab_counts(n)
        return dict(zip(COUNTERS, n, strict=False))

    def hvx(self, w: Weights, x: Array) -> Array:
        """x times w on upstream's HVX route."""
        self.at = 0
        (m, k), n = x.shape, w.values.shape[1]
        tiles, wide, y = self.take(w.tiles), self.take(x), self.take(np.zeros((m, n), np.float32))
        room = self.take(np.zeros(k * 96, np.uint8))
        number = TYPES[w.type].number
        self.c.lab_hvx(*map(C.c_uint32, (number, k, m, n)), *map(self._p, (tiles, wide, y, room)))
        return y.astype(np.float64)

    @staticmethod
    def _p(a: Array | None) -> C.c_void_p | None:
        return None if a is None else C.c_void_p(a.ctypes.data)


def wrong(op: Matmul) -> list[str]:
    """What a broken driver would do wrong: several steps of K and of the tokens, several column
    tiles of a thread, something added."""
    rng = np.random.default_rng(6)
    found = []
    for kind, (m, k, n, vtcm) in {
        "normal": (300, 3104, 300, 3 << 18),
        "positive": (200, 1024, 200, VTCM),
    }.items():
        w = weights("q4_1", rng.standard_normal((k, n)) * np.exp2(rng.integers(-3, 3, n)))
        sizes = np.exp2(rng.integers(-9, 9, (m, 1))) * rng.choice([-1, 1], (m, 1))
        x = activations(kind, rng, m, k) * sizes.astype(np.float32)
        if kind == "normal":  # each step of K has other exponents than the one before
            x *= np.exp2(-8.0 * (np.arange(k) // 800 % 2)).astype(np.float32)
        add = rng.standard_normal((m, n)) * np.abs(x).max(1, keepdims=True)
        exact = x @ w.values
        size = np.sqrt((exact**2).mean(1, keepdims=True))
        error = nmse(op(w, x, add, vtcm=vtcm) / size, (exact + add) / size)
        if not error < {"normal": 1e-4, "positive": 5e-5}[kind]:
            found.append(f"{kind}: NMSE {error:.2e}")
    return found


@pytest.fixture(scope="session")
def matmul(lab: Lab) -> Matmul:
    """The op as a v73 has it."""
    return Matmul(lab.built("mm_lab", model=True, shared=True))


if __name__ == "__main__":  # of a library that may hang or crash
    sys.exit("\n".join(wrong(Matmul(Path(sys.argv[1])))) or 0)
