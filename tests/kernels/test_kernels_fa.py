"""The attention kernels against numpy, on the simulator's HVX and HMX models."""

from __future__ import annotations

import ctypes as C
from typing import Any

import pytest

pytest.importorskip("numpy")

import numpy as np
from fa_lab import (
    FLOOR,
    Attention,
    act_rows,
    align,
    attention,
    lab,
    out_tile,
    ptr,
    tile_words,
    u32,
)

__all__ = ["attention", "lab"]
pytestmark = [pytest.mark.upstream, pytest.mark.sim]
Array = np.ndarray[Any, Any]

F = np.float64


def test_exp2(attention: Attention) -> None:
    A = attention.arena()
    d = A.take(65536, np.uint16)
    p = A.take(65536, np.uint16)
    d[:] = np.arange(65536)
    attention.c.lab_exp2(ptr(d), ptr(p), u32(65536 // 64))
    want = 32736 * 2.0 ** (-np.arange(65536) / 4096)
    assert np.abs(p - want).max() < 1.3
    assert p[-1] == 0 and p[0] == 32736
    assert abs((p - want).mean()) < 0.2


def test_tanh(attention: Attention) -> None:
    A = attention.arena()
    h = A.take(65536, np.int16)
    t = A.take(65536, np.int16)
    h[:] = np.arange(-32768, 32768)
    attention.c.lab_tanh(ptr(h), ptr(t), u32(1024))
    want = 32768 * np.tanh(np.arange(-32768, 32768) / (4096 * 1.4426950408889634))
    assert np.abs(t - want).max() < 3


def make_k(kind: str, rng: np.random.Generator, n: int, d: int) -> Array:
    """Keys of a kind."""
    k = rng.standard_normal((n, d))
    if kind == "uniform":
        k = rng.uniform(-1, 1, (n, d))
    if kind == "outlier channels":
        k[:, ::17] *= 60
    if kind == "offset":
        k[:, ::13] += 40
    if kind == "loud offset":
        k[:, ::13] = 30 * k[:, ::13] + 400
    if kind == "huge key":
        k[7] *= 3000
    if kind == "zero keys":
        k[: n // 2] = 0
    if kind == "tiny":
        k *= 1e-4
    if kind == "zeros":
        k[:] = 0
    if kind == "drift":
        k[n // 2 :, 3] *= 12
    return k.astype(np.float16)


KINDS = [
    "normal",
    "uniform",
    "outlier channels",
    "offset",
    "huge key",
    "zero keys",
    "tiny",
    "drift",
]


def run_k(
    attention: Attention,
    kind: str,
    n: int,
    d: int,
    rng: np.random.Generator,
    center: bool = True,
    sample: int = 64,
) -> tuple[Any, ...]:
    """Keys of a kind through statistics and conversion; what came out, decoded."""
    A = attention.arena(1)
    nv, nk = -(-d // 64), -(-d // 32)
    pitch = align(d * 2, 128)
    rows = A.take((align(n, 32), pitch // 2), np.float16)
    rows[:] = 0
    rows[:n, :d] = k = make_k(kind, rng, n, d)
    stats = A.take(5 * nv * 128, np.uint8, 128)
    tmp = A.take(48 * 128, np.uint8, 128)
    buf = A.take(64 * nv * 128, np.uint8, 128)
    ns = min(sample, n)
    cen = attention.c.lab_stats(
        ptr(stats),
        ptr(rows),
        u32(pitch * (n // ns)),
        u32(ns),
        u32(d),
        int(center),
        C.c_float(1.0),
        ptr(tmp),
    )
    nc = -(-n // 32)
    tiles = A.take((nc, nk * 1024), np.int8)
    bias = A.take((nc, 64), np.int32, 256)
    scale = A.take((nc, 32), np.float32, 128)
    with attention.counted() as c:
        for i in range(nc):
            attention.c.lab_k(
                ptr(tiles[i]),
                ptr(bias[i]),
                ptr(scale[i]),
                ptr(rows[32 * i :]),
                u32(pitch),
                u32(min(32, n - 32 * i)),
                u32(d),
                ptr(stats),
                cen,
                ptr(buf),
                ptr(tmp),
            )
    inv = stats[2 * nv * 128 : 3 * nv * 128].view(np.float16)[:d].astype(F)
    mu = (
        stats[: 2 * nv * 128]
        .view(np.float32)
        .reshape(nv, 2, 32)
        .transpose(0, 2, 1)
        .reshape(-1)[:d]
        .astype(F)
        / inv
        * cen
    )
    qs = stats[3 * nv * 128 :].view(np.float32)[: nk * 32].astype(F)
    w = np.concatenate([tile_words(t, nk) for t in tiles], 1)  # [channel][key]
    return A, k.astype(F), w, scale.reshape(-1), bias, mu, inv, qs, c, (tiles, stats, tmp, buf)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "n,d", [(64, 128), (96, 64), (40, 72), (512, 256), (33, 40), (64, 576), (17, 65)]
)
def test_k(attention: Attention, kind: str, n: int, d: int) -> None:
    rng = np.random.default_rng(n + d)
    _, k, w, scale, bias, mu, inv, qs, _c, _ = run_k(attention, kind, n, d, rng)
    assert (w[d:] == 0).all() and (w[:, n:] == w[:, n - 1 : n]).all()
    kp = (k - mu) * inv  # smoothed
    err = np.abs(w[:d, :n].T * scale[:n, None] - kp)
    amax = np.abs(kp).max(1)
    lsb = np.maximum(amax / 127, 0.05 / 127)
    assert (err <= lsb[:, None] * 0.62 + 1e-6).all(), (err / lsb[:, None]).max()
    assert np.sqrt((err**2).mean(1)).max() < 1e-9 or (np.sqrt((err**2).mean(1)) / lsb).max() < 0.36
    assert np.abs(w).max() <= 127
    # smoothing is undone exactly by Q
    assert np.allclose(qs[:d] * inv, 1) and (qs[d:] == 0).all()
    s = bias[:, 32:].reshape(-1)
    sh = attention.c.lab_store_shift(u32(d))
    assert (s == (1 << sh >> 1) - 128 * w.sum(0)).all()
    assert (bias[:, :32] == (16 - sh) << 10).all()


def test_k_zeros(attention: Attention) -> None:
    _, _k, w, scale, *_ = run_k(attention, "zeros", 64, 128, np.random.default_rng(0))
    assert (w == 0).all() and np.isfinite(scale).all()


def test_k_smoothing_helps(attention: Attention) -> None:
    """int8 noise of scores relative to their spread stays near that of plain data"""
    for kind, limit in (
        ("normal", 0.011),
        ("outlier channels", 0.014),
        ("offset", 0.014),
        ("huge key", 0.014),
        ("zero keys", 0.012),
        ("drift", 0.03),
    ):
        rng = np.random.default_rng(5)
        _, k, w, scale, _bias, mu, _inv, qs, *_ = run_k(attention, kind, 512, 128, rng)
        q = rng.standard_normal((64, 128))
        if kind == "outlier channels":
            q[:, ::17] /= 60
        true = q @ k.T
        got = (q * qs[:128]) @ (w[:128, :512] * scale[None, :512]) + (q @ mu)[:, None]
        e = got - true
        use = np.ones(512, bool)
        if kind == "huge key":
            use[7] = False
        if kind == "zero keys":
            use[:256] = False
        e -= e[:, use].mean(1, keepdims=True)
        rel = e[:, use].std() / (true[:, use] - true[:, use].mean(1, keepdims=True)).std()
        print(kind, rel)
        assert rel < limit


@pytest.mark.parametrize(("d", "f32"), [(128, 1), (64, 0), (72, 1), (40, 0), (96, 1), (576, 0)])
def test_what_centering_takes(attention: Attention, d: int, f32: int) -> None:
    """With it, scores are right as such, as sinks want them."""
    rng = np.random.default_rng(d)
    A, k, w, scale, _, mu, inv, _qs, _, (_, stats, tmp, buf) = run_k(
        attention, "loud offset", 64, d, rng
    )
    assert mu.any() and (inv != 1).any()
    dt = np.float32 if f32 else np.float16
    rows = A.take((8, align(d * np.dtype(dt).itemsize, 128) // np.dtype(dt).itemsize), dt, 128)
    rows[:] = 0
    rows[:, :d] = rng.standard_normal((8, d))
    act, q_scale = A.take((-(-d // 32), 2048), np.uint8), A.take(32, np.float32, 128)
    attention.c.lab_q(
        ptr(act), ptr(q_scale), ptr(rows), u32(rows.strides[0]), f32, u32(8), u32(d), ptr(stats),
        ptr(buf), ptr(tmp),
    )  # fmt: skip
    dots = A.take(32, np.float32, 128)
    attention.c.lab_dots(ptr(dots), u32(d), ptr(stats), ptr(buf), ptr(tmp))
    q = rows[:, :d].astype(F)
    want = q @ mu
    assert np.allclose(dots, np.tile(want, 4), rtol=1e-5, atol=1e-4 * np.abs(want).max())
    a = act_rows(act, -(-d // 32))[:8, :d].astype(F) - 32768
    got = (a @ w[:d, :64]) / 256 / 2 ** attention.c.lab_store_shift(u32(d)) * scale[:64]
    scores = got * q_scale[:8, None] + dots[:8, None]
    true = q @ k.T
    assert np.abs(scores - true).max() < 0.012 * np.linalg.norm(k - mu, axis=1).max() * (
        np.linalg.norm(q, axis=1).max()
    )


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf, 1e30])
def test_a_query_that_is_no_number_is_alone(attention: Attention, bad: float) -> None:
    """The others of its group are packed as if it were zero."""
    rng = np.random.default_rng(1)
    d = 128
    A, *_, (_, stats, tmp, buf) = run_k(attention, "normal", 77, d, rng, center=False)
    rows = A.take((8, d), np.float32, 128)
    packed = []
    for value in (0.0, bad):
        rows[:] = np.random.default_rng(2).standard_normal((8, d))
        rows[5, 3 if value else slice(None)] = value
        act, scale = A.take((d // 32, 2048), np.uint8), A.take(32, np.float32, 128)
        attention.c.lab_q(
            ptr(act), ptr(scale), ptr(rows), u32(d * 4), 1, u32(8), u32(d), ptr(stats),
            ptr(buf), ptr(tmp),
        )  # fmt: skip
        packed.append((np.delete(act_rows(act, d // 32)[:8], 5, 0), scale.copy()))
    assert (packed[0][0] == packed[1][0]).all() and (packed[0][1] == packed[1][1]).all()


@pytest.mark.parametrize("kind", ["normal", "uniform", "big row", "zero row", "outlier"])
@pytest.mark.parametrize(
    "d,f32",
    [(128, 1), (64, 1), (72, 1), (256, 0), (65, 0), (576, 1), (40, 0), (96, 0), (3, 1), (2, 1)],
)
def test_q_and_scores(attention: Attention, kind: str, d: int, f32: int) -> None:
    rng = np.random.default_rng(d)
    n = 77
    A, k, w, scale, bias, _mu, _inv, _qs, _c, (tiles, stats, tmp, buf) = run_k(
        attention, "normal", n, d, rng, center=False
    )
    _nv, nk = -(-d // 64), -(-d // 32)
    q = rng.standard_normal((32, d))
    if kind == "uniform":
        q = rng.uniform(-1, 1, (32, d))
    if kind == "big row":
        q[5] *= 300
    if kind == "zero row":
        q[3] = 0
        q[8:16] = 0
    if kind == "outlier":
        q[:, min(7, d - 1)] *= 100
    dt = np.float32 if f32 else np.float16
    pitch = align(d * np.dtype(dt).itemsize, 128)
    rows = A.take((32, pitch // np.dtype(dt).itemsize), dt, 128)
    rows[:] = 0
    rows[:, :d] = q
    q = rows[:, :d].astype(F)
    act = A.take((nk, 2048), np.uint8)
    qscale = A.take((4, 32), np.float32, 128)
    for g in range(4):
        attention.c.lab_q(
            C.c_void_p(act.ctypes.data + g * 512),
            ptr(qscale[g]),
            ptr(rows[8 * g :]),
            u32(pitch),
            f32,
            u32(8 if g < 3 else 5),
            u32(d),
            ptr(stats),
            ptr(buf),
            ptr(tmp),
        )
    a = act_rows(act, nk).astype(F) - 32768
    assert (a[29:] == a[28]).all() and (a[:, d:] == 0).all()
    a = a[:, :d]
    norm = np.sqrt((a**2).sum(1))
    lim = attention.c.lab_q_norm(u32(d)) + 0.5 * np.sqrt(d)
    assert norm.max() <= lim + 1
    for g in range(4):
        if kind == "zero row" and g == 1:
            continue
        assert norm[8 * g : 8 * g + 8].max() > 0.99 * attention.c.lab_q_norm(u32(d)) - 10
    # scores as stored
    nc = tiles.shape[0]
    out = A.take((nc, 2048), np.uint8)
    attention.c.lab_qk(ptr(out), ptr(act), ptr(tiles), ptr(bias), u32(nc), u32(nk))
    S = np.concatenate([out_tile(t) for t in out], 1)[:, :n].astype(F)
    sh = attention.c.lab_store_shift(u32(d))
    exact = (a @ w[:d, :n]) / 256 / 2**sh
    assert np.abs(S - exact).max() < 1.01
    got = S * scale[:n] * np.repeat(qscale[:, 0], 8)[:, None]
    want = q @ k.T
    for r in range(29):
        if np.abs(want[r]).max() == 0:
            continue
        big = max(np.linalg.norm(q[8 * (r // 8) : 8 * (r // 8) + 8], axis=1))
        assert np.abs(got[r] - want[r]).max() < 0.012 * big * np.linalg.norm(k, axis=1).max()


def test_store_never_wraps(attention: Attention) -> None:
    """rows and keys as parallel as can be"""
    for d in (40, 64, 128, 256, 320, 576):
        rng = np.random.default_rng(d)
        nv, nk = -(-d // 64), -(-d // 32)
        A = attention.arena(3)
        v = np.sign(rng.standard_normal(d))
        rows = A.take((32, align(d * 2, 128) // 2), np.float16)
        rows[:] = 0
        rows[:, :d] = v * np.where(np.arange(32) % 2, 1, -1)[:, None]
        stats = A.take(5 * nv * 128, np.uint8, 128)
        tmp = A.take(48 * 128, np.uint8, 128)
        buf = A.take(64 * nv * 128, np.uint8, 128)
        cen = attention.c.lab_stats(
            ptr(stats),
            ptr(rows),
            u32(rows.strides[0]),
            u32(32),
            u32(d),
            0,
            C.c_float(1.0),
            ptr(tmp),
        )
        tiles = A.take(nk * 1024, np.int8)
        bias = A.take(64, np.int32, 256)
        scale = A.take(32, np.float32, 128)
        attention.c.lab_k(
            ptr(tiles),
            ptr(bias),
            ptr(scale),
            ptr(rows),
            u32(rows.strides[0]),
            u32(32),
            u32(d),
            ptr(stats),
            cen,
            ptr(buf),
            ptr(tmp),
        )
        q = A.take((8, align(d * 4, 128) // 4), np.float32)
        q[:] = 0
        q[:, :d] = v * 3.3
        act = A.take((nk, 2048), np.uint8)
        act[:] = 0
        qscale = A.take(32, np.float32, 128)
        attention.c.lab_q(
            ptr(act),
            ptr(qscale),
            ptr(q),
            u32(q.strides[0]),
            1,
            u32(8),
            u32(d),
            ptr(stats),
            ptr(buf),
            ptr(tmp),
        )
        out = A.take(2048, np.uint8)
        attention.c.lab_qk(ptr(out), ptr(act), ptr(tiles), ptr(bias), u32(1), u32(nk))
        S = out_tile(out)[:8].astype(F)
        assert (np.sign(S) == np.where(np.arange(32) % 2, 1, -1)).all()
        assert np.allclose(np.abs(S) * scale * qscale[0], 3.3 * d, rtol=3e-3), d
        print(d, np.abs(S).max())
        assert np.abs(S).max() > 30000


@pytest.mark.parametrize(
    "kind",
    ["normal", "uniform", "offset", "tiny", "big", "constant", "zero", "mixed", "denormal", "max"],
)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 64, 77, 512])
@pytest.mark.parametrize("first", [0, 1], ids=["", "first"])
def test_v(attention: Attention, kind: str, n: int, first: int) -> None:
    """Of the first block, the first key's value is the center where that costs little."""
    rng = np.random.default_rng(n)
    A = attention.arena(2)
    v = rng.standard_normal((n, 64))
    if kind == "uniform":
        v = rng.uniform(-1, 1, (n, 64))
    if kind == "offset":
        v += 30
    if kind == "tiny":
        v *= 1e-3
    if kind == "big":
        v *= 9000
    if kind == "constant":
        v[:] = rng.standard_normal(64)
    if kind == "zero":
        v[:] = 0
    if kind == "mixed":
        v *= 10.0 ** rng.uniform(-3, 3, 64)
    if kind == "denormal":
        v *= 2e-6
    if kind == "max":
        v = rng.choice([-65504.0, 65504.0], (n, 64))
    np_ = align(n, 32)
    rows = A.take((align(n, 64), 64), np.float16)
    rows[:n] = v
    v = rows[:n].astype(F)
    stride = np_ // 32 * 1024
    tiles = A.take((2, stride), np.int8)
    step = A.take((2, 32), np.float32, 128)
    mean = A.take((2, 32), np.float32, 128)
    with attention.counted() as c:
        attention.c.lab_v(
            ptr(tiles), u32(stride), 1, ptr(step), ptr(mean), ptr(rows), u32(128), u32(n), first
        )
    w = np.concatenate([tile_words(t, np_ // 32) for t in tiles], 1)[:n]
    lsb = step.reshape(-1).astype(F) / 256
    rec = w * lsb + mean.reshape(-1)
    mid = (v.max(0) + v.min(0)) / 2
    half = np.maximum((v.max(0) - v.min(0)) / 2, 6.1e-5)
    if first:
        off = np.abs(v[0] - mid)
        exact = (off < half / 4.1) & (kind != "denormal")
        half = np.where(off < half / 3.9, half + off, half)
        room = half * 0.1 / 127 + np.abs(mid) * 2**-9 + 1e-7
        assert (np.abs(rec[0] - v[0]) <= room + half / np.sqrt(n) / 127)[exact].all()
    assert (np.abs(rec - v) <= 1.3 * half / 127 + np.abs(mid) * 2**-9 + 1e-7).all(), (
        np.abs(rec - v) / half
    ).max()
    # the mean is right
    assert (
        np.abs(rec.mean(0) - v.mean(0))
        <= half * 1.5e-3 / np.sqrt(n) + half * 1e-4 + np.abs(mid) * 3e-6 + 1e-9
    ).all(), (np.abs(rec.mean(0) - v.mean(0)) / half).max()
    if kind == "uniform" and n == 512 and not first:
        print("v ops per 64:", c.ops / n, "noise in LSB", (rec - v).std() / lsb.mean())
        assert (rec - v).std() / lsb.mean() < 0.31


def soft_ref(
    S: Array, k_scale: Array, q_scale: float, mask: Array | None, slopes: Array, softcap: float
) -> Array:
    """Scores with softcap and mask, in units of the kernels."""
    x = S.astype(F) * k_scale * q_scale
    if softcap:
        x = np.tanh(x / (4096 * 1.4426950408889634)) * softcap * 4096 * 1.4426950408889634
    if mask is not None:
        x = x + mask.astype(F) * slopes[:, None] * 4096 * 1.4426950408889634
    return x


@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 65, 113, 256, 512, 1024])
@pytest.mark.parametrize(
    "mode",
    [
        "plain",
        "mask",
        "alibi",
        "softcap",
        "mask softcap",
        "all masked",
        "all masked alibi",
        "all masked softcap alibi",
    ],
)
@pytest.mark.parametrize("n_rows", [8, 5, 1])
def test_softmax(attention: Attention, n: int, mode: str, n_rows: int) -> None:
    rng = np.random.default_rng(n + n_rows)
    A = attention.arena(4)
    nc = -(-n // 32)
    S = rng.integers(-20000, 20000, (8, nc * 32))
    a = A.take((nc, 2048), np.uint8)
    b = A.take((nc, 2048), np.uint8)
    at = a.view(np.int16).reshape(nc, 16, 32, 2)
    for r in range(8):
        at[:, r // 2, :, r % 2] = S[r].reshape(nc, 32)
    ks = A.take((nc, 32), np.float32, 128)
    ks[:] = rng.uniform(0.5, 1, (nc, 32))
    qs = A.take(32, np.float32, 128)
    qs[:] = 1.2 if "softcap" not in mode else 0.5
    mask = None
    slopes = np.ones(8)
    if "mask" in mode or mode == "alibi":
        mp = align(n * 2, 128)
        mask = A.take((8, mp // 2), np.float16, 128)
        mask[:, :n] = rng.uniform(-1, 1, (8, n)) * (8 if "alibi" in mode else 1)
        mask[:, :n][rng.random((8, n)) < 0.3] = -np.inf
        if "all masked" in mode:
            mask[2, :n] = -np.inf
            mask[4, :n] = -np.inf
        mask[:, 0] = 0 if "all masked" not in mode else mask[:, 0]
    if "alibi" in mode:
        slopes = 2.0 ** -(np.arange(1, 9) * (4 if "all" in mode else 1))
    cap = 10.0 if "softcap" in mode else 0.0
    mx = A.take(32, np.int32, 128)
    sm = A.take(32, np.int32, 128)
    tmp = A.take(48 * 128, np.uint8, 128)
    sl = (C.c_float * 8)(*slopes)
    with attention.counted() as c:
        attention.c.lab_softmax(
            ptr(a),
            ptr(b),
            u32(n),
            u32(n_rows),
            ptr(ks),
            ptr(qs),
            ptr(mask) if mask is not None else None,
            u32(mask.strides[0] if mask is not None else 0),
            sl,
            C.c_float(cap),
            ptr(mx),
            ptr(sm),
            ptr(tmp),
        )
    P = a.view(np.uint16).reshape(nc, 16, 32, 2)
    ops = c.ops
    for r in range(n_rows):
        x = soft_ref(
            S[r : r + 1, :n],
            ks.reshape(-1)[:n],
            float(qs[0]),
            mask[r : r + 1, :n] if mask is not None else None,
            slopes[r : r + 1],
            cap,
        )[0]
        p = P[:, r // 2, :, r % 2].reshape(-1)
        assert (p[n:] == 0).all()
        assert sm[r] == p.sum()
        if x.max() < FLOOR:
            assert mx[r] == FLOOR and (p == 0).all()
            continue
        assert abs(mx[r] - x.max()) < 40 + abs(x.max()) * 1e-3 + cap * 4
        want = 32736 * 2.0 ** ((x - x.max()) / 4096)
        rel = (
            1e-3 * (1 + np.minimum(np.abs(x), 1e6) / 4096)
            + (1e-4 * cap)
            + (2e-3 if mask is not None else 0)
        )
        assert (np.abs(p[:n] - want) < 2 + want * rel * 3).all(), np.max(
            np.abs(p[:n] - want) / (2 + want * rel)
        )
        if mask is not None:
            assert (p[:n][np.isinf(mask[r, :n])] == 0).all()
    if n == 1024 and n_rows == 8:
        print(mode, "ops per 64 scores", ops / (8 * n / 64))


@pytest.mark.parametrize("n", [1, 31, 63, 64, 65, 127, 128, 200, 512, 1000, 1024])
@pytest.mark.parametrize("rows,pieces", [(8, 1), (3, 2), (1, 4)])
def test_mask_scan(attention: Attention, n: int, rows: int, pieces: int) -> None:
    """Empty, no mask or mixed; and up to which key some row sees one."""
    rng = np.random.default_rng(n)
    A = attention.arena(n)
    mask = A.take((rows * pieces, align(n * 2, 128) // 2), np.float16)
    for trial in range(40):
        mask[:, n:] = rng.choice([0.0, -np.inf, 3.0], mask[:, n:].shape)  # behind the keys
        mask[:, :n] = -np.inf
        if trial > 0:
            seen = rng.integers(0, n, max(1, trial // 8))
            mask[rng.integers(0, len(mask), len(seen)), seen] = rng.choice([0.0, -2.0], len(seen))
        if trial % 5 == 1:
            mask[:, :n] = np.where(np.arange(n) > rng.integers(0, n, (len(mask), 1)), -np.inf, 0)
        if trial % 5 == 2:
            mask[:, :n] = 0.0 if trial % 2 else -0.0
        got = attention.c.lab_mask(ptr(mask), u32(mask.strides[0]), u32(rows), u32(pieces), u32(n))
        some = ~np.isneginf(mask[:, :n]).all(0)
        last = int(np.flatnonzero(some)[-1]) + 1 if some.any() else 0
        kind = 0 if not some.any() else 1 if (mask[:, :n] == 0).all() else 2
        assert (got & 3, got >> 2) == (kind, last)


def test_exp2_f32(attention: Attention) -> None:
    A = attention.arena()
    x = A.take(32, np.int32, 128)
    y = A.take(32, np.float32, 128)
    x[:] = -np.concatenate([[0, 1, 2, 3], np.geomspace(4, 4096 * 200, 28)]).astype(int)
    attention.c.lab_exp2_f32(ptr(x), ptr(y))
    want = 2.0 ** (x / 4096)
    ok = want > 1e-37
    assert (np.abs(y / want - 1)[ok] < 1e-5).all()
    assert y[0] == 1 or abs(y[0] - 1) < 1e-6
    assert (y[~ok] <= 1e-37).all()


@pytest.mark.parametrize(
    "dv,n,n_rows",
    [(32, 64, 8), (64, 96, 7), (128, 512, 8), (72, 1024, 2), (512, 32, 8), (96, 320, 8)],
)
def test_pv_out(attention: Attention, dv: int, n: int, n_rows: int) -> None:
    rng = np.random.default_rng(dv)
    A = attention.arena(6)
    nc, nk = -(-dv // 32), n // 32
    P = rng.integers(0, 32737, (8, n))
    act = A.take((nk, 2048), np.uint8)
    at = act.view(np.uint16).reshape(nk, 16, 32, 2)
    for r in range(8):
        at[:, r // 2, :, r % 2] = P[r].reshape(nk, 32)
    w = A.take((nc, nk * 1024), np.int8)
    W = np.concatenate([tile_words(t, nk) for t in w], 1)
    out = A.take((nc, 2, 2048), np.uint8)
    bias = A.take(64 * 2, np.int32, 256)
    with attention.counted() as c:
        attention.c.lab_pv(ptr(out), ptr(act), ptr(w), u32(nk * 1024), ptr(bias), u32(nc), u32(nk))
    assert c.n["hmx_tiles_i"] == nc * nk and c.n["hmx_stores"] == 2 * nc
    lo = np.concatenate([out_tile(t[0]).view(np.uint16) for t in out], 1).astype(np.int64)
    hi = np.concatenate([out_tile(t[1]) for t in out], 1).astype(np.int64)
    got = (hi >> 1) * 65536 + lo
    full = (P >> 8) @ W + ((P & 255) @ W >> 8)
    assert (got[:8] == full).all()
    step = A.take((nc, 32), np.float32, 128)
    mean = A.take((nc, 32), np.float32, 128)
    step[:] = rng.uniform(0.001, 1, (nc, 32))
    mean[:] = rng.standard_normal((nc, 32))
    fa, fm, fo = (A.take(32, np.float32, 128) for _ in range(3))
    fa[:] = np.tile(rng.uniform(0, 1, 8), 4)
    fm[:] = np.tile(rng.uniform(0, 3, 8), 4)
    fo[:] = np.tile(rng.uniform(0, 1, 8), 4)
    pitch = nc * 128
    o = A.take((32, nc * 32), np.float32, 128)
    for how in (0, 1, 2):
        o[:] = old = rng.standard_normal(o.shape).astype(np.float32) * 1e5
        attention.c.lab_out(
            ptr(out),
            ptr(o),
            u32(pitch),
            u32(nc),
            u32(n_rows),
            ptr(step),
            ptr(mean),
            ptr(fo),
            ptr(fa),
            ptr(fm),
            how,
        )
        new = full * step.reshape(-1).astype(F) * fa[:8, None].astype(F) + mean.reshape(-1) * fm[
            :8, None
        ].astype(F)
        want = new + [0, old[:8], old[:8] * fo[:8, None].astype(F)][how]
        m = align(n_rows, 2)
        assert np.abs(o[:m] - want[:m]).max() < 2e-6 * np.abs(want).max() + 1e-3
        assert (o[m:8] == old[m:8]).all()


@pytest.mark.parametrize("n", [1, 2, 3, 8, 18])
def test_dequant(attention: Attention, n: int) -> None:
    rng = np.random.default_rng(n)
    A = attention.arena(8)
    row = A.take(align(n * 64, 128), np.uint8, 128)
    blk = np.zeros((n, 34), np.uint8)
    d = rng.uniform(0.001, 0.1, n).astype(np.float16)
    q = rng.integers(-127, 128, (n, 32)).astype(np.int8)
    blk[:, :2] = d.view(np.uint8).reshape(n, 2)
    blk[:, 2:] = q.view(np.uint8)
    row[: n * 34] = blk.reshape(-1)
    attention.c.lab_dequant(ptr(row), u32(n))
    got = row.view(np.float16).astype(F)
    want = (d[:, None].astype(F) * q).reshape(-1)
    assert np.abs(got[: n * 32] - want).max() <= np.abs(want).max() * 2**-9.9
    assert (got[n * 32 :] == 0).all()


SCORE_UNIT = 4096 * 1.4426950408889634


def attend(
    attention: Attention, q: Array, k: Array, v: Array, mask: Array | None
) -> tuple[Array, Array]:
    """Up to 8 rows of Q on one block of keys, step by step as the op goes: outputs, sums of P."""
    A = attention.arena(9)
    c = attention.c
    rows, d = q.shape
    n, dv = v.shape
    nk, nv, nvec = -(-d // 32), -(-dv // 32), -(-d // 64)
    cols = -(-n // 32)

    def staged(x: Array, dtype: Any, height: int) -> Array:
        a = A.take(
            (height, align(x.shape[1] * np.dtype(dtype).itemsize, 128) // np.dtype(dtype).itemsize),
            dtype,
        )
        a[:] = 0
        a[: len(x), : x.shape[1]] = x
        return a

    ks, vs = staged(k, np.float16, n), staged(v, np.float16, align(n, 64))
    qs = staged(q, np.float32, 8)
    stats = A.take(5 * nvec * 128, np.uint8, 128)
    tmp = A.take(48 * 128, np.uint8, 128)
    buf = A.take(64 * nvec * 128, np.uint8, 128)
    sample = min(64, n)
    centered = c.lab_stats(
        ptr(stats), ptr(ks), u32(ks.strides[0] * (n // sample)), u32(sample), u32(d), 1,
        C.c_float(SCORE_UNIT / d**0.5), ptr(tmp),
    )  # fmt: skip
    w = A.take((cols, nk * 1024), np.int8)
    bias, k_scale = A.take((cols, 64), np.int32, 256), A.take((cols, 32), np.float32, 128)
    for i in range(cols):
        c.lab_k(
            ptr(w[i]), ptr(bias[i]), ptr(k_scale[i]), ptr(ks[32 * i :]), u32(ks.strides[0]),
            u32(min(32, n - 32 * i)), u32(d), ptr(stats), centered, ptr(buf), ptr(tmp),
        )  # fmt: skip
    act, q_scale = A.take((nk, 2048), np.uint8), A.take(32, np.float32, 128)
    c.lab_q(
        ptr(act), ptr(q_scale), ptr(qs), u32(qs.strides[0]), 1, u32(rows), u32(d), ptr(stats),
        ptr(buf), ptr(tmp),
    )  # fmt: skip
    s, b = A.take((cols, 2048), np.uint8), A.take((cols, 2048), np.uint8)
    c.lab_qk(ptr(s), ptr(act), ptr(w), ptr(bias), u32(cols), u32(nk))
    m = None
    if mask is not None:
        m = A.take((8, align(n * 2, 128) // 2), np.float16, 128)
        m[:rows, :n] = mask
    top, total = A.take(32, np.int32, 128), A.take(32, np.int32, 128)
    c.lab_softmax(
        ptr(s), ptr(b), u32(n), u32(rows), ptr(k_scale), ptr(q_scale), ptr(m),
        u32(0 if m is None else m.strides[0]), (C.c_float * 8)(*[1.0] * 8), C.c_float(0), ptr(top),
        ptr(total), ptr(tmp),
    )  # fmt: skip
    vw = A.take((2 * -(-dv // 64), cols * 1024), np.int8)
    step, mean = (A.take((len(vw), 32), np.float32, 128) for _ in range(2))
    for j in range(0, len(vw), 2):
        c.lab_v(
            ptr(vw[j]), u32(vw.strides[0]), 1, ptr(step[j]), ptr(mean[j]),
            C.c_void_p(vs.ctypes.data + 64 * j), u32(vs.strides[0]), u32(n), 1,
        )  # fmt: skip
    out, words = A.take((nv, 2, 2048), np.uint8), A.take(128, np.int32, 256)
    c.lab_pv(ptr(out), ptr(s), ptr(vw), u32(vw.strides[0]), ptr(words), u32(nv), u32(cols))
    one, add = A.take(32, np.float32, 128), A.take(32, np.float32, 128)
    sums = total[:8].astype(F)
    inv = np.divide(1, sums, out=np.zeros(8), where=sums > 0)
    one[:], add[:] = np.tile(inv, 4), np.tile(inv * sums, 4)
    o = A.take((8, nv * 32), np.float32, 128)
    c.lab_out(
        ptr(out), ptr(o), u32(o.strides[0]), u32(nv), u32(rows), ptr(step), ptr(mean), ptr(one),
        ptr(one), ptr(add), 0,
    )  # fmt: skip
    return o[:rows, :dv].astype(F), sums[:rows]


def exact_attention(q: Array, k: Array, v: Array, mask: Array | None) -> Array:
    """The definition in float64. Masked keys don't take part, whatever they are."""
    q, k, v = (
        x.astype(F) for x in (q.astype(np.float32), k.astype(np.float16), v.astype(np.float16))
    )
    out = np.zeros((len(q), v.shape[1]))
    for i, row in enumerate(q):
        m = np.zeros(len(k)) if mask is None else mask[i].astype(np.float16).astype(F)
        use = ~np.isneginf(m)
        if use.any():
            s = k[use] @ row / len(row) ** 0.5 + m[use]
            p = np.exp(s - s.max())
            out[i] = p @ v[use] / p.sum()
    return out


# NMSE: int8 keys put 1.1 % of the scores' deviation on each score, int8 values 1/440 of their range
# on each value, and where many values meet that averages out
WHOLE = {
    "plain": 2e-4,
    "causal": 2e-4,
    "all masked rows": 2e-4,
    "one key left": 2e-4,
    "huge key": 2e-4,
    "huge key masked": 2e-4,
    "inf and nan in masked keys": 2e-4,
    "sharp": 2e-3,  # scores with a deviation of 5
    "same keys": 2e-4,
    "denormal keys": 2e-4,
    "denormal values": 6e-3,  # the step is that of the smallest normal half
    "denormal queries": 2e-4,
    "huge queries": 2e-4,
    "zero queries": 2e-4,
    "largest values": 2e-4,
    "far mask": 2e-4,
}


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize(
    "d,dv,n,rows", [(128, 128, 512, 8), (256, 256, 1024, 8), (72, 40, 77, 5), (64, 64, 1, 1)]
)
def test_attention(attention: Attention, kind: str, d: int, dv: int, n: int, rows: int) -> None:
    """From Q, K, V to the output, against float64."""
    rng = np.random.default_rng(d + n)
    q, k, v = (rng.standard_normal(x) for x in ((rows, d), (n, d), (n, dv)))
    mask = None
    odd = np.arange(n) % 5 == 3
    if kind in ("causal", "all masked rows", "one key left"):
        mask = np.where(np.arange(n) > (n - rows + np.arange(rows))[:, None], -np.inf, 0.0)
    if kind == "all masked rows":
        mask[:: min(3, rows)] = -np.inf
    if kind == "one key left":
        mask[:] = -np.inf
        mask[:, n // 2] = -1.5
    if "huge key" in kind:
        k[n // 3] *= 3000
    if kind in ("huge key masked", "inf and nan in masked keys"):
        mask = np.where(odd | (np.arange(n) == n // 3), -np.inf, 0.25) * np.ones((rows, 1))
    if kind == "inf and nan in masked keys":
        k[odd, :3] = [np.inf, -np.inf, np.nan]
        k[odd & (np.arange(n) % 2 == 0)] = np.nan
    if kind == "sharp":
        q *= 5
    if kind == "same keys":
        k[:] = k[0]
    if kind == "denormal keys":
        k *= 3e-7
    if kind == "denormal values":
        v *= 2e-6
    if kind == "denormal queries":
        q *= 1e-42
    if kind == "huge queries":
        q[:] = 1e3 * k[np.arange(rows) * 3 % n]  # each sees one key
    if kind == "zero queries":
        q[:] = 0
    if kind == "largest values":
        v = rng.choice([-65504.0, 65504.0], v.shape)
    if kind == "far mask":
        mask = np.where(odd, -65504.0, rng.uniform(-30, 0, (rows, n)))
    got, sums = attend(attention, q, k, v, mask)
    want = exact_attention(q, k, v, mask)
    empty = np.zeros(rows, bool) if mask is None else np.isneginf(mask).all(1)
    assert (sums[empty] == 0).all() and (sums[~empty] > 0).all()
    error, size = ((got - want)[~empty] ** 2).sum(), (want[~empty] ** 2).sum()
    print(f"{kind} d {d} n {n}: {error / max(size, 1e-30):.2g}")
    assert np.isfinite(got).all()
    assert error <= WHOLE[kind] * size


def test_costs(attention: Attention) -> None:
    """A vector of K (64 halves) is converted in at most 12 HVX operations."""
    n, d = 512, 256
    *_, c, _ = run_k(attention, "normal", n, d, np.random.default_rng(0))
    assert 0 < c.ops <= 12 * n * d / 64
