"""The tests of the matrix unit can fail: each rule changed in the source is seen by one of them."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hmx_lab import HERE, RUNTIME, build, library, unit

__all__ = ["library"]
pytestmark = [pytest.mark.sim, pytest.mark.slow]

FLIPS = "store_clears_and_flips"
SECOND = "against_second_model"
# file, what it says, what it says instead, module and check that must fail
MUTATIONS = [
    ("hmx_pair.c", "{ 0, 1, -2, -1 }", "{ 0, 1, 2, -1 }", "address", SECOND),
    ("hmx_pair.c", "-((byte & 0x7F) + 1)", "-(byte & 0x7F)", "address", SECOND),
    ("hmx_pair.c", "at >= p->wbytes", "at > p->wbytes", "address", SECOND),
    ("hmx_mac.c", "cur ^ over ^ st", "cur ^ st", "address", SECOND),
    ("hmx_mac.c", "(to >= ny ? p->dy : 0)", "0", "address", SECOND),
    ("hmx_mac.c", "between(p->fy, p->ymask, 1", "between(0, p->fy, 1", "address", SECOND),
    ("hmx_mac.c", "(at >> 7) << 2 | (at & 3)", "at >> 5", "address", SECOND),
    ("hmx_cvt.c", "hi + (lo >> 8) + g.bias", "hi + lo / 256 + g.bias", "int", "closed_forms"),
    ("hmx_cvt.c", "128 * g.rnd", "0 * g.rnd", "int", "closed_forms"),
    ("hmx_cvt.c", "2 * unit * b33", "0 * unit * b33", "int", "closed_forms"),
    ("hmx_cvt.c", "top != 0 : top == -1", "top & 1 : top & 1", "int", "range_limit"),
    ("hmx_cvt.c", "2 * R + (jam && R != 0 && !drop)", "2 * R", "int", "cvt"),
    ("hmx_cvt.c", "h->iset ^= 1", "h->iset ^= 0", "int", "retain_clear_and_flip"),
    ("hmx_cvt.c", "hh * 256", "hh", "int", "two_by_two"),
    ("hmx_store.c", "(x - x0) & (nx - 1)", "x & (nx - 1)", "int", "before_and_after"),
    ("hmx_store.c", "(y < y0 ? dy : 0)", "0", "int", "rows_below"),
    ("hmx_xfp.c", "16 * s[i]", "8 * s[i]", "fp", "group_of_eight"),
    ("hmx_xfp.c", "(rest == half && (m & 1))", "rest == half", "fp", "rounding"),
    ("hmx_xfp.c", "b >> 43 & 31", "b >> 43 & 15", "fp", "bias_register"),
    ("hmx_xfp.c", "nz > no ? nz : no", "nz < no ? nz : no", "fp", "anticipation"),
    ("hmx_xfp.c", "ab.s *= 256", "ab.s *= 128", "golden", "f8"),
    ("hmx_fast.c", "hi += v >> 3 & 1", "hi += 0", "fast", "laws"),
    ("hmx_fast.c", "h->fset ^ d]", "h->fset]", "fast", "laws"),
    ("hmx_fastcvt.c", "((bits & lost) + lost) & (lost + 1)", "0", "fast", "laws"),
    ("hmx_fastcvt.c", "exp < 2 ? 31 : 33 - exp", "exp < 2 ? 31 : 32 - exp", "fast", "laws"),
    ("hmx_fastcvt.c", "0x1p28) & 0xFFF", "0x1p28) & 0x1FF", "fast", "laws"),
    ("hmx.c", "!two && !HMX_MXMEM_KEEPS_WORD1", "!two", "rules", "bias_registers"),
    ("hmx.c", "case 0x15: h->fset ^= 1; return", "case 0x15: return", "fp", FLIPS),
    ("hmx.c", ">= 75 ? (int) (bits & 3)", ">= 75 ? (int) (bits & 1)", "rules", "bias_registers"),
]
RUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import importlib
import hmx_lab
module = importlib.import_module("test_hmx_" + sys.argv[3])
try:
    getattr(module, "check_" + sys.argv[4])(hmx_lab.unit(Path(sys.argv[2])))
except AssertionError:
    sys.exit(42)
"""


def run(library: Path, module: str, check: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(HERE), str(library), module, check], check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    return done.returncode


def test_unchanged(library: Path) -> None:
    """All checks named here pass on the source as it is."""
    for module, check in sorted({m[3:] for m in MUTATIONS}):
        getattr(importlib.import_module(f"test_hmx_{module}"), f"check_{check}")(unit(library))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m[0]}:{m[1]}")
def test_mutation(library: Path, tmp_path: Path, mutation: tuple[str, str, str, str, str]) -> None:
    name, old, new, module, check = mutation
    text = (RUNTIME / name).read_text()
    assert text.count(old) >= 1, "the source says it otherwise now"
    (tmp_path / name).write_text(text.replace(old, new))
    for obj in library.parent.glob("*.o"):
        (tmp_path / obj.name).symlink_to(obj)
    (tmp_path / name).with_suffix(".o").unlink()
    assert run(build(tmp_path / "mutant.so", tmp_path / name), module, check) == 42
