"""From counters to an estimated time, by a device model's rates. Says what it leaves out.

The terms are separate units of the DSP that can work at the same time. If they overlap perfectly,
the longest of them counts; if not at all, their sum. The truth is between, so both are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hexpatch.sim.devices import RATES, Device

VECTOR = (
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
)
OVERLAP = (
    "assumed: between the longest term (all units work at once) and the sum (one after another); "
    "dispatches and barriers always add up; vector work is spread evenly over the threads, DMA "
    "rows over as many engines at best, on one at worst"
)


@dataclass(frozen=True)
class Estimate:
    """Microseconds by term, and in total: at best and at worst."""

    terms: Mapping[str, float]
    low: float
    high: float

    @property
    def dominant(self) -> str:
        """The longest term."""
        return max(self.terms, key=lambda name: self.terms[name])


def estimate(device: Device, counters: Mapping[str, int]) -> Estimate:
    """The time of an op with these counters."""

    def n(name: str) -> int:
        return counters.get(name, 0)

    rate = {name: device.rates[name].value for name in RATES}
    mhz = device.hz / 1e6
    vector = max(
        sum(n(name) for name in VECTOR) / rate["hvx_issue"], n("hvx_perm") / rate["hvx_perm"]
    )
    matrix = n("hmx_tiles_i") * rate["hmx_tile_int"] + n("hmx_tiles_f") * rate["hmx_tile_fp"]
    rows = n("dma_rows") * rate["dma_row_ns"] / 1e3
    terms = {
        "HVX": vector / device.threads / mhz,
        "HMX": (matrix + n("hmx_stores") * rate["hmx_store"]) / mhz,
        "DMA": n("dma_bytes") / rate["dma_gbs"] / 1e3 + rows / device.threads,
        "DDR": (n("ddr_rd") + n("ddr_wr")) / rate["ddr_gbs"] / 1e3,
        "dispatch": n("dispatches") * rate["dispatch_us"],
        "barrier": n("barriers") * rate["barrier_us"],
        "scalar VTCM": n("vtcm_scalar") * rate["vtcm_scalar_cycles"] / device.threads / mhz,
    }
    serial = terms["dispatch"] + terms["barrier"]
    # the cores' own reads and the DMA share the memory; scalar code and vectors share the threads
    units = (
        terms["HVX"] + terms["scalar VTCM"],
        terms["HMX"],
        terms["DMA"] + terms["DDR"],
    )
    uneven = rows - rows / device.threads
    return Estimate(terms, max(units) + serial, sum(units) + uneven + serial)


def sources(device: Device) -> list[str]:
    """A line per rate: what it is, its value, and where that comes from."""
    return [
        f"{name} = {device.rates[name].value:g} ({what}): {device.rates[name].source}"
        for name, what in RATES.items()
    ]
