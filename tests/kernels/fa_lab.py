"""The attention kernels through ctypes: buffers in the simulator's VTCM, numpy views on them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_lab import Lab, lab

__all__ = [
    "FLOOR",
    "Arena",
    "Attention",
    "act_rows",
    "align",
    "attention",
    "lab",
    "out_tile",
    "ptr",
    "tile_words",
    "u32",
]

Array = np.ndarray[Any, Any]
SIZE = 4 << 20
# the first counters, in the order of hexsim.h
COUNTERS = [
    "hvx_alu",
    "hvx_mpy",
    "hvx_perm",
    "hvx_fp",
    "hvx_ld",
    "hvx_st",
    "hvx_ldu",
    "hvx_stu",
    "hvx_gather",
    "hvx_scatter",
    "hmx_tiles_i",
    "hmx_tiles_f",
    "hmx_stores",
]
FLOOR = int(-10000 * np.float32(4096 * np.float32(1.44269504)))


class Arena:
    """Buffers one after the other in VTCM that is full of stale data."""

    def __init__(self, memory: Array, seed: int = 0) -> None:
        self.memory = memory
        self.at = 0
        memory[:] = np.random.default_rng(seed).integers(0, 256, SIZE, dtype=np.uint8)

    def take(self, shape: int | Sequence[int], dtype: Any, align: int = 2048) -> Array:
        """The next buffer."""
        n = int(np.prod(shape)) * np.dtype(dtype).itemsize
        self.at = (self.at + align - 1) // align * align
        view: Array = self.memory[self.at : self.at + n].view(dtype).reshape(shape)
        self.at += n
        assert self.at <= SIZE
        return view


class Counted:
    """What was counted inside a with block: n by counter, ops = HVX operations."""

    def __init__(self, c: ctypes.CDLL) -> None:
        self.c = c
        self.n: dict[str, int] = {}
        self.ops = 0

    def _counts(self) -> dict[str, int]:
        n = (ctypes.c_uint64 * 64)()
        self.c.lab_counts(n)
        return dict(zip(COUNTERS, n, strict=False))

    def __enter__(self) -> Counted:
        self.before = self._counts()
        return self

    def __exit__(self, *_: object) -> None:
        self.n = {k: v - self.before[k] for k, v in self._counts().items()}
        self.ops = sum(self.n[k] for k in ("hvx_alu", "hvx_mpy", "hvx_perm", "hvx_fp"))


class Attention:
    """The library of fa_lab.c and its VTCM."""

    def __init__(self, library: Path) -> None:
        self.c = ctypes.CDLL(str(library))
        self.c.lab_vtcm.restype = ctypes.c_void_p
        self.c.lab_q_norm.restype = ctypes.c_float
        base = self.c.lab_vtcm(u32(SIZE))
        assert base
        self.memory: Array = np.frombuffer((ctypes.c_uint8 * SIZE).from_address(base), np.uint8)

    def arena(self, seed: int = 0) -> Arena:
        """All of VTCM, free."""
        return Arena(self.memory, seed)

    def counted(self) -> Counted:
        """Counts what happens in a with block."""
        return Counted(self.c)


@pytest.fixture(scope="session", params=(73, 79))  # encoded qfloat, and IEEE numbers
def attention(request: pytest.FixtureRequest, lab: Lab) -> Attention:
    """The kernels for an arch."""
    return Attention(lab.built("fa_lab", request.param, model=True, shared=True))


def ptr(a: Array | None) -> ctypes.c_void_p | None:
    """A buffer's address."""
    return ctypes.c_void_p(a.ctypes.data) if a is not None else None


def u32(x: int) -> ctypes.c_uint32:
    """A C number."""
    return ctypes.c_uint32(int(x))


def align(x: int, a: int) -> int:
    """x up to a multiple of a."""
    return (x + a - 1) // a * a


def tile_words(tiles: Array, n_k: int) -> Array:
    """Weights [k][column] of one column of tiles."""
    t = tiles.reshape(n_k, 8, 32, 4).astype(np.int64)  # k tile, k / 4, column, k % 4
    return t.transpose(0, 1, 3, 2).reshape(n_k * 32, 32)


def act_rows(tiles: Array, n_k: int) -> Array:
    """[row][k] of the 32 rows of n_k activation tiles, unsigned."""
    t = tiles.view(np.uint16).reshape(n_k, 16, 32, 2)
    return t.transpose(1, 3, 0, 2).reshape(32, n_k * 32)


def out_tile(t: Array) -> Array:
    """[row][column] of a stored tile, signed."""
    return t.view(np.int16).reshape(16, 32, 2).transpose(0, 2, 1).reshape(32, 32)
