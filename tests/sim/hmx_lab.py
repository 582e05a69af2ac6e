"""The matrix unit's model as a library of its own, for tests: instructions in, memory out.

``words`` are instruction words as an assembler makes them; registers name offsets into VTCM.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "hexpatch" / "sim" / "runtime"
INCS = RUNTIME.parent / "sdk" / "incs"
COMPILERS = ("clang", *(f"clang-{n}" for n in range(22, 13, -1)), "gcc")
VTCM = 1 << 20

FAULTS = ("hmx_operand", "hmx_lock", "hmx_nan")
ORDINARY, IEEE, NAN0 = range(3)

# activation and weight codes by their text
ACT = {
    "ub:deep": 0xE0, "ub:deep:cm": 0xE1, "hf:deep": 0xE2, "f8:deep": 0xE3, "hf": 0xE4, "f8": 0xE5,
    "hf:above": 0xE6, "f8:above": 0xE7, "ub:dilate": 0xE8, "ub:dilate:cm": 0xE9, "ub": 0xEC,
    "ub:cm": 0xED, "ub:above": 0xEE, "ub:above:cm": 0xEF, "ub:single": 0xF0, "ub:single:cm": 0xF1,
    "hf:single": 0xF8, "f8:single": 0xF9, "hf:dilate": 0xFA, "f8:dilate": 0xFB,
}  # fmt: skip
WGT_MODS = ("", ":single", ":drop", ":deep", ":after", ":dilate")
WGT_ROWS = {
    "b": (0xE0, 0xE6, 0xE7, 0xE8, 0xE9, 0xEB), "sm": (0xF1, 0xCF, 0xD0, 0xD1, 0xD2, 0xD3),
    "n": (0xE1, 0xEC, 0xED, 0xEE, 0xF7, 0xF8), "c": (0xE2, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD),
    "sc": (0xF0, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4), "ubit": (0xE3, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9),
    "sbit": (0xE4, 0xCA, 0xCB, 0xCC, 0xCD, 0xCE), "n2x": (0x46, 0x41, 0x42, 0x43, 0x45, 0x44),
    "hf": (0xEF, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6), "f8": (0x47, 0x48, 0x49, 0x4A, 0x4B, 0x4C),
}  # fmt: skip
WGT = {t + m: code for t, row in WGT_ROWS.items() for m, code in zip(WGT_MODS, row, strict=True)}


def compiler() -> str:
    for name in (os.environ.get("CC", ""), *COMPILERS):
        if name and shutil.which(name):
            return name
    pytest.skip("no C compiler")


FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wno-psabi", "-fPIC")


def build(out: Path, mutant: Path | None = None) -> Path:
    """Compile the model with its stub and laws. ``mutant``: takes the place of the file it is
    named after; the other objects are those of the last build beside it."""
    cc = compiler()
    objects = []
    for source in (*sorted(RUNTIME.glob("hmx*.c")), HERE / "hmx_stub.c", HERE / "hmx_laws.c"):
        changed = mutant is not None and mutant.name == source.name
        obj = (mutant.parent if changed and mutant else out.parent) / f"{source.stem}.o"
        if changed or not obj.exists():
            part = obj.with_suffix(f".{os.getpid()}.o")
            file = mutant if changed and mutant else source
            subprocess.run(
                [cc, *FLAGS, "-w" if changed else "-Werror", f"-I{RUNTIME}", f"-I{INCS}",
                 "-c", str(file), "-o", str(part)],
                check=True,
            )  # fmt: skip
            part.rename(obj)
        objects.append(str(obj))
    part = out.with_suffix(f".{os.getpid()}")
    subprocess.run([cc, "-shared", *objects, "-o", str(part), "-lm", "-lpthread"], check=True)
    part.rename(out)
    return out


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once a run, by whichever worker comes first."""
    base = tmp_path_factory.getbasetemp()
    out = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "hmx" / "hmx.so"
    out.parent.mkdir(exist_ok=True)
    return out if out.exists() else build(out)


@pytest.fixture
def hmx(library: Path) -> Hmx:
    return unit(library)


_units: dict[Path, Hmx] = {}


def unit(library: Path) -> Hmx:
    """The library's unit after power-on, on a v73 with FP16."""
    if library not in _units:
        _units[library] = Hmx(library)
    it = _units[library]
    it.fresh()
    return it


class Hmx:
    def __init__(self, library: Path) -> None:
        self.c = ctypes.CDLL(str(library))
        for name in ("test_vtcm", "hmx_fp_convert"):
            getattr(self.c, name).restype = ctypes.c_uint32
        for name in ("test_count", "test_int"):
            getattr(self.c, name).restype = ctypes.c_int64
        for name in ("test_fp", "law_time", "law_time_store"):
            getattr(self.c, name).restype = ctypes.c_double
        self.c.test_set_fp.argtypes = [ctypes.c_int] * 3 + [ctypes.c_double]
        self.base: int = self.c.test_vtcm(VTCM)
        assert self.base
        self.memory = (ctypes.c_uint8 * VTCM).from_address(self.base)
        header = (INCS / "hexsim.h").read_text()
        self.counters = _names(header, "SIM_COUNTERS")
        self.fault_names = _names(header, "SIM_FAULTS")

    def fresh(self) -> None:
        ctypes.memset(self.base, 0, VTCM)
        self.device(73)
        self.checks(*FAULTS)
        self.lock(True)
        self.mode()

    # -- settings

    def device(self, arch: int, hmx: bool = True, fp16: bool = True) -> None:
        self.c.test_device(arch, hmx, fp16)

    def checks(self, *names: str, modes: int = 0) -> None:
        self.c.test_checks(sum(1 << self.fault_names.index(n) for n in names), modes)

    def mode(self, xfp: bool = False, policy: int = ORDINARY, plain: bool = False) -> None:
        self.c.test_mode(xfp, policy, plain, False)

    def lock(self, held: bool) -> None:
        ctypes.c_int.in_dll(self.c, "test_locked").value = held

    def count(self, name: str) -> int:
        return int(self.c.test_count(self.counters.index(name)))

    def fault(self, name: str) -> int:
        return int(self.c.test_fault_count(self.fault_names.index(name)))

    # -- memory

    def put(self, at: int, data: bytes | Iterable[int]) -> None:
        data = bytes(data)
        assert at + len(data) <= VTCM
        ctypes.memmove(self.base + at, data, len(data))

    def get(self, at: int, size: int) -> bytes:
        return ctypes.string_at(self.base + at, size)

    def put32(self, at: int, words: Sequence[int]) -> None:
        self.put(at, struct.pack(f"<{len(words)}I", *(w & 0xFFFFFFFF for w in words)))

    def put16(self, at: int, words: Sequence[int]) -> None:
        self.put(at, struct.pack(f"<{len(words)}H", *(w & 0xFFFF for w in words)))

    def get16(self, at: int, n: int) -> list[int]:
        return list(struct.unpack(f"<{n}H", self.get(at, 2 * n)))

    # -- instructions

    def load(self, act: str, a: int, art: int, wgt: str, w: int, wrt: int) -> None:
        self.c.sim_hmx_load(ACT[act], self.base + a, art, WGT[wgt], self.base + w, wrt)

    def op(self, w: int, op6: int, at: int = 0, rt: int = 0) -> None:
        self.c.sim_hmx_op(w, op6, self.base + at, rt)

    def bias(self, at: int, op8: int = 0xFE) -> None:
        self.c.sim_hmx_bias(op8, self.base + at)

    def set_bias(
        self, word0: int | Sequence[int], word1: int | Sequence[int] = 0, group: int = 0
    ) -> None:
        """Load a table made here, at the end of VTCM."""
        both = [[w] * 32 if isinstance(w, int) else list(w) for w in (word0, word1)]
        self.put32(VTCM - 256, both[0] + both[1])
        self.bias(VTCM - 256 + group)

    def cvt(self, sub: int, rs: int) -> None:
        self.c.sim_hmx_cvt(sub, rs)

    def run(self, words: Sequence[int], r: Sequence[int]) -> None:
        """Execute instruction words with registers r."""
        todo = list(words)
        while todo:
            word = todo.pop(0)
            rs, field, w = r[word >> 16 & 31], word >> 8 & 31, word >> 13 & 1
            rt = r[field] if field < len(r) else 0
            if word >> 24 == 0x92 and word & 0xFE == 0xFE and not w:
                self.c.sim_hmx_bias(word & 255, rs)
            elif word >> 24 == 0x92:
                assert not w and word >> 14 & 3 == 1, "an activation comes first"
                second = todo.pop(0)
                assert second >> 13 & 7 == 7, "a weight ends the packet"
                self.c.sim_hmx_load(
                    word & 255, rs, rt, second & 255, r[second >> 16 & 31], r[second >> 8 & 31]
                )
            elif word & 0x3F == 0x10 and not w:
                self.c.sim_hmx_cvt(field, rs)
            else:
                self.c.sim_hmx_op(w, word & 0x3F, rs, rt)

    # -- state

    def acc(self, row: int, col: int, set_: int | None = None) -> int:
        return int(self.c.test_int(self.c.test_int_set() if set_ is None else set_, row, col))

    def set_acc(self, row: int, col: int, value: int, set_: int | None = None) -> None:
        """As a multiply would: the low part holds it, |value| < 2^31."""
        self.c.test_set_int(self.c.test_int_set() if set_ is None else set_, row, col, 0, value)

    def fp(self, row: int, col: int, set_: int | None = None) -> float:
        return float(self.c.test_fp(self.c.test_fp_set() if set_ is None else set_, row, col))

    def set_fp(self, row: int, col: int, value: float) -> None:
        self.c.test_set_fp(self.c.test_fp_set(), row, col, value)


def _names(header: str, macro: str) -> list[str]:
    body = header.split(f"#define {macro}(X)", 1)[1].split("\n\n", 1)[0]
    return [part.split(",", 1)[0].strip() for part in body.split("X(")[1:]]


# -- layouts ---------------------------------------------------------------------------------------


def sm(row: int, channel: int) -> int:
    """Byte of a spatial-major tile, 64 rows."""
    return (row >> 2) * 128 + channel * 4 + (row & 3)


def half(row: int, channel: int) -> int:
    """Halfword number of (row, channel) in a 32 x 32 tile: activation, weight and output alike."""
    return (row >> 1) * 64 + channel * 2 + (row & 1)


def weight_byte(k: int, col: int) -> int:
    return (k >> 2) * 128 + col * 4 + (k & 3)


def fp16(value: float) -> int:
    return int(struct.unpack("<H", struct.pack("<e", value))[0])


def value16(bits: int) -> float:
    return float(struct.unpack("<e", struct.pack("<H", bits))[0])
