"""HMX instructions by their text: the op codes of the instruction words, as tables.

`activation.TYPE=mxmem(Rs,Rt):MODIFIERS` and `weight...` have an op8, the others a W bit and op6.
Modifiers stand sorted in the keys, so their order in a text does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping

_RANGES = ("", "above", "single", "dilate", "deep")
_ACTIVATIONS = {
    "ub": (0xEC, 0xEE, 0xF0, 0xE8, 0xE0),
    "ub cm": (0xED, 0xEF, 0xF1, 0xE9, 0xE1),
    "hf": (0xE4, 0xE6, 0xF8, 0xFA, 0xE2),
    "f8": (0xE5, 0xE7, 0xF9, 0xFB, 0xE3),
}
_TAPS = ("", "single", "drop", "deep", "after", "dilate")
_WEIGHTS = {
    "b": (0xE0, 0xE6, 0xE7, 0xE8, 0xE9, 0xEB),
    "sm": (0xF1, 0xCF, 0xD0, 0xD1, 0xD2, 0xD3),
    "n": (0xE1, 0xEC, 0xED, 0xEE, 0xF7, 0xF8),
    "c": (0xE2, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD),
    "sc": (0xF0, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4),
    "ubit": (0xE3, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9),
    "sbit": (0xE4, 0xCA, 0xCB, 0xCC, 0xCD, 0xCE),
    "n 2x": (0x46, 0x41, 0x42, 0x43, 0x45, 0x44),
    "hf": (0xEF, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6),
    "f8": (0x47, 0x48, 0x49, 0x4A, 0x4B, 0x4C),
}


def _loads(
    table: Mapping[str, tuple[int, ...]], ranges: tuple[str, ...]
) -> dict[tuple[str, str], int]:
    """(type, modifiers) -> op8."""
    made = {}
    for kind, ops in table.items():
        name, *mods = kind.split()
        for taps, op in zip(ranges, ops, strict=True):
            made[name, " ".join(sorted([*mods, *taps.split()]))] = op
    return made


ACTIVATION = _loads(_ACTIVATIONS, _RANGES)
WEIGHT = _loads(_WEIGHTS, _TAPS)
BIAS = {"mxmem2": 0xFE, "mxmem": 0xFF}
CVT = {"ub": 23, "uh 2x1": 24, "uh 2x2": 25, "hf": 26, "f8": 27, "ub sc0": 28, "ub sc1": 29}
PLAIN = {
    "mxclracc": 0x11,
    "mxclracc.hf": 0x13,
    "mxswapacc": 0x14,
    "mxswapacc.hf": 0x15,
    "acc=mxshl(acc,#16)": 0x17,
}
CVT_STORE = {"": 0x18, "cm": 0x19, "2x2": 0x1A, "deep": 0x1B, "cm deep": 0x1C}
CVT_STORE_F8 = {"": 0x1D, "deep": 0x1E}


def _stores() -> dict[tuple[str, str], tuple[int, int]]:
    """(type, modifiers) of `mxmem(Rs,Rt):modifiers.type=acc[:2xN]` -> (w, op6)."""
    made: dict[tuple[str, str], tuple[int, int]] = {}

    def add(kind: str, w: int, op: int, *mods: str) -> None:
        made[kind, " ".join(sorted(filter(None, mods)))] = (w, op)

    for keep in (0, 1):
        retain = "retain" if keep else ""
        for late, when in enumerate(("before", "after")):
            for low, mods in enumerate((("sat",), ("cm", "sat"), (), ("cm",))):
                add("ub", 0, 8 * keep + 4 * late + low, when, retain, *mods)
            for low, sat in enumerate(("sat", "")):
                add("uh", 1, 0x02 + 8 * late + 4 * keep + low, when, retain, sat, "2x1")
                add("uh", 1, 0x12 + 8 * late + 4 * keep + low, when, retain, sat, "2x2")
    for op, mods in {
        0x00: ("before",),
        0x01: ("before", "pos"),
        0x08: ("before", "retain"),
        0x05: ("before", "retain", "pos"),
        0x04: ("after",),
        0x09: ("after", "pos"),
        0x0C: ("after", "retain"),
        0x0D: ("after", "retain", "pos"),
    }.items():
        add("hf", 1, op, *mods)
    return made


STORE = _stores()
