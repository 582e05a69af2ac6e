"""Device models: what the simulator pretends to be, and the rates that estimates are made of."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hexpatch.errors import HexpatchError, InvalidSeries, UsageError
from hexpatch.yamltree import MapNode, Node, Reader, Rule, read, similar

FILE = Path(__file__).with_name("devices.yaml")
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_KEYS = ("about", "arch", "threads", "vtcm_mb", "hmx", "hmx_clock", "clock_mhz", "vmem")
_MORE = ("sessions", "source", "rates")
ARCHES = ("73", "75", "79", "81")
HMX = ("none", "int", "fp16")
RATES = {
    "hvx_issue": "HVX instructions per cycle and context",
    "hvx_perm": "HVX permutes per cycle and context",
    "hmx_tile_int": "cycles per integer HMX tile",
    "hmx_tile_fp": "cycles per FP16 HMX tile",
    "hmx_store": "cycles per HMX store",
    "dma_gbs": "GB/s of the DMA engine",
    "dma_row_ns": "ns per DMA row and engine",
    "ddr_gbs": "GB/s between cores and DDR",
    "dispatch_us": "us per worker dispatch",
    "barrier_us": "us per barrier",
    "vtcm_scalar_cycles": "cycles per scalar VTCM access",
}

# The switches of HEXPATCH_SIM_CHECKS: faults, and modes of the machine.
CHECKS = {
    "dma": "a DMA result used before it was waited for, or a descriptor the engine refuses",
    "balance": "DMA or HMX work left over at the end of an op",
    "scalar": "scalar loads and stores to VTCM",
    "bounds": "accesses outside mapped buffers",
    "align": "misaligned vector accesses",
    "hmx": "HMX operands not in VTCM, misaligned or crossing; HMX without its lock",
    "nan": "0 * NaN and 0 * Inf in HMX multiplies",
    "region": "gather and scatter regions not in VTCM",
    "stack": "more stack than a thread asked for",
    "lazy": "DMA happens as late as it may",
    "poison": "VTCM is filled with NaN patterns between ops",
    "nan0": "HMX: 0 * NaN and 0 * Inf count as 0",
}


@dataclass(frozen=True)
class Rate:
    """A number for estimates, and where it comes from in words."""

    value: float
    source: str

    @property
    def assumed(self) -> bool:
        """Whether it is a guess."""
        return self.source.startswith("assumed")


@dataclass(frozen=True)
class Device:
    """One model. `hmx` is none, int or fp16; a clock request of the HMX may fail."""

    name: str
    about: str
    arch: int
    threads: int
    vtcm: int
    hmx: str
    hmx_clock: bool
    hz: int
    vmem: int
    sessions: int
    source: str
    rates: Mapping[str, Rate]

    @property
    def text(self) -> str:
        """What the runtime reads from HEXPATCH_SIM_DEVICE."""
        values = {
            "name": self.name,
            "arch": self.arch,
            "threads": self.threads,
            "vtcm": self.vtcm,
            "hmx": int(self.hmx != "none"),
            "hmx_fp16": int(self.hmx == "fp16"),
            "hmx_clock": int(self.hmx_clock),
            "hz": self.hz,
            "vmem": self.vmem,
            "sessions": self.sessions,
        }
        return ",".join(f"{key}={value}" for key, value in values.items())

    @property
    def summary(self) -> str:
        """For people, in a line."""
        matrix = {"none": "no HMX", "int": "integer HMX only", "fp16": "HMX with FP16"}[self.hmx]
        return (
            f"v{self.arch}, {self.threads} threads, {self.vtcm >> 20} MB VTCM, {matrix}, "
            f"{self.hz / 1e6:g} MHz"
        )


def environment(device: Device, checks: Iterable[str], report: Path | None) -> dict[str, str]:
    """The variables that the simulated DSP reads; `report` gets counters and faults."""
    found = {"HEXPATCH_SIM_DEVICE": device.text}
    wanted = list(checks)
    if wanted:
        found["HEXPATCH_SIM_CHECKS"] = ",".join(wanted)
    if report is not None:
        found["HEXPATCH_SIM_REPORT"] = str(report)
    return found


def checks_of(text: str) -> tuple[str, ...]:
    """The switches that `--checks` means: all, none or a comma list of them.

    `all` leaves nan0 out: it is another opinion of the hardware, not a stricter one.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words == ["none"]:
        return ()
    if words == ["all"]:
        return tuple(word for word in CHECKS if word != "nan0")
    for word in words:
        if word not in CHECKS:
            hint = similar(word, CHECKS) or f"all, none, or some of {', '.join(CHECKS)}"
            raise UsageError(f"--checks {word}: there is no such check", hint)
    return tuple(word for word in CHECKS if word in words)


# -- the file ----------------------------------------------------------------------------------


@functools.cache
def load(path: Path = FILE) -> Mapping[str, Device]:
    """All models of a file, or InvalidSeries with every fault and its place."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise HexpatchError(f"cannot read {path}: {error.strerror}") from None
    document, problems = read(data, path.name)
    devices: dict[str, Device] = {}
    if document is not None:
        devices = _Check(Reader(path.name, problems)).devices(document.root)
    if problems:
        raise InvalidSeries(tuple(problems))
    return devices


def find(name: str, path: Path | None = None) -> Device:
    """The model of this name; a file of the user's own goes before the package's."""
    known = {**load(FILE), **(load(path) if path else {})}
    if name not in known:
        names = ", ".join(known)
        raise UsageError(f"no device model named {name}", similar(name, known) or f"known: {names}")
    return known[name]


class _Check:
    """Makes devices of nodes; the reader keeps what is wrong with them."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def devices(self, root: MapNode) -> dict[str, Device]:
        fields = self.reader.fields(root, "the file", ("version", "rates", "devices"))
        version = fields.get("version")
        if self.reader.text(version, "version", _one_of(("1",))) == "" and version is None:
            self.reader.fault(root, "version is missing")
        shared = self.rates(fields.get("rates"), "rates")
        found = {}
        for key, value in self.reader.pairs(fields.get("devices"), "devices"):
            name = self.reader.text(key, "device", _like(_NAME))
            made = self.device(name, value, shared)
            if name and made:
                found[name] = made
        return found

    def device(self, name: str, node: Node, shared: Mapping[str, Rate]) -> Device | None:
        what = f"device {name}"
        fields = self.reader.fields(node, what, (*_KEYS, *_MORE))
        before = len(self.reader.problems)
        lacking = [key for key in (*_KEYS, *_MORE) if key not in fields]
        for key in lacking:
            if key not in ("hmx_clock", "sessions", "rates"):
                self.reader.fault(node, f"{what}: {key} is missing")

        def text(key: str, rule: Rule | None = None) -> str:
            return self.reader.text(fields.get(key), f"{what}: {key}", rule)

        arch, hmx = text("arch", _one_of(ARCHES)), text("hmx", _one_of(HMX))
        clock = text("hmx_clock", _one_of(("yes", "no"))) if "hmx_clock" in fields else "yes"
        numbers = {
            key: text(key, _number(low, high))
            for key, low, high in (
                ("threads", 1, 16),
                ("vtcm_mb", 1, 32),
                ("clock_mhz", 1.0, 10e3),
                ("vmem", 1 << 20, 0xF0000000),
                ("sessions", 1, 16),
            )
            if key in fields
        }
        about, source = text("about"), text("source", _sourced)
        rates = {**shared, **self.rates(fields.get("rates"), f"{what}: rates")}
        for key in RATES:
            if key not in rates:
                self.reader.fault(node, f"{what}: no rate {key}, neither here nor in `rates`")
        if len(self.reader.problems) > before:
            return None
        return Device(
            name=name,
            about=about,
            arch=int(arch),
            threads=int(numbers["threads"]),
            vtcm=int(numbers["vtcm_mb"]) << 20,
            hmx=hmx,
            hmx_clock=clock == "yes",
            hz=round(float(numbers["clock_mhz"]) * 1e6),
            vmem=int(numbers["vmem"]),
            sessions=int(numbers.get("sessions", "1")),
            source=source,
            rates=rates,
        )

    def rates(self, node: Node | None, what: str) -> dict[str, Rate]:
        found = {}
        for key, value in self.reader.fields(node, what, tuple(RATES)).items():
            items = self.reader.items(value, f"{what}: {key}")
            if len(items) != 2:
                self.reader.fault(value, f"{what}: {key} must be [number, source]")
                continue
            number = self.reader.text(items[0], f"{what}: {key}", _number(0.001, 1e6))
            source = self.reader.text(items[1], f"{what}: {key}", _sourced)
            if number and source:
                found[key] = Rate(float(number), source)
        return found


def _like(pattern: re.Pattern[str]) -> Rule:
    return lambda text: None if pattern.fullmatch(text) else f"does not match {pattern.pattern}"


def _one_of(words: tuple[str, ...]) -> Rule:
    return lambda text: None if text in words else f"is none of {', '.join(words)}"


def _number(low: float, high: float) -> Rule:
    """Within bounds, and whole where the lower one is an int."""
    whole = isinstance(low, int)

    def rule(text: str) -> str | None:
        if not re.fullmatch(r"[0-9]+" if whole else r"[0-9]+(?:\.[0-9]+)?", text):
            return "is not a whole number" if whole else "is not a number"
        return None if low <= float(text) <= high else f"is not between {low:g} and {high:g}"

    return rule


def _sourced(text: str) -> str | None:
    good = text.startswith(("published", "assumed", "measured", "derived"))
    return None if good else "must start with published, measured, derived or assumed"
