"""Device models: what the file says, what the runtime is told, what is refused and where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hexpatch.errors import InvalidSeries, UsageError
from hexpatch.sim import devices

HEADER = Path(devices.__file__).parent / "sdk" / "incs" / "hexsim.h"


def test_the_phone_is_there() -> None:
    phone = devices.find("sm7750")
    assert (phone.arch, phone.threads, phone.vtcm, phone.hmx) == (73, 4, 4 << 20, "int")
    assert phone.text == (
        "name=sm7750,arch=73,threads=4,vtcm=4194304,hmx=1,hmx_fp16=0,hmx_clock=1,"
        "hz=1497600000,vmem=3102130176,sessions=1"
    )
    assert phone.summary == "v73, 4 threads, 4 MB VTCM, integer HMX only, 1497.6 MHz"


def test_every_arch_has_a_model_with_all_rates() -> None:
    known = devices.load()
    assert {d.arch for d in known.values()} == {73, 75, 79, 81}
    assert all(set(d.rates) == set(devices.RATES) for d in known.values())
    assert known["sm7750"].rates["hmx_tile_int"].assumed
    assert not known["sm7750"].rates["ddr_gbs"].assumed


def test_an_unknown_device_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no device model named sm9") as caught:
        devices.find("sm9")
    assert "sm7750" in str(caught.value.hint)


def test_the_checks_are_those_of_the_runtime() -> None:
    """The second column of SIM_FAULTS and the modes of the machine."""
    text = HEADER.read_text(encoding="utf-8").partition("#define SIM_FAULTS(X)")[2]
    switches = set(re.findall(r'X\(\w+, +"(\w+)"', text.partition("enum sim_fault")[0]))
    assert switches <= set(devices.CHECKS)
    assert set(devices.CHECKS) - switches == {"lazy", "poison", "nan0"}


def test_checks_of_a_command_line() -> None:
    assert devices.checks_of("none") == ()
    assert devices.checks_of("scalar, dma") == ("dma", "scalar")
    assert "nan0" not in devices.checks_of("all")
    assert "lazy" in devices.checks_of("all")
    with pytest.raises(UsageError, match="--checks scaler"):
        devices.checks_of("scaler")


def test_the_environment(tmp_path: Path) -> None:
    phone = devices.find("sm7750")
    assert set(devices.environment(phone, (), None)) == {"HEXPATCH_SIM_DEVICE"}
    full = devices.environment(phone, ("dma", "lazy"), tmp_path / "r")
    assert full["HEXPATCH_SIM_CHECKS"] == "dma,lazy"
    assert full["HEXPATCH_SIM_REPORT"] == str(tmp_path / "r")


OWN = """\
version: 1
devices:
  mine:
    about: mine
    arch: 75
    threads: 2
    vtcm_mb: 1
    hmx: none
    hmx_clock: no
    clock_mhz: 1000
    vmem: 1073741824
    source: "assumed: a small one"
    rates:
"""


def own(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    return file


def rates(but: str = "") -> str:
    names = (name for name in devices.RATES if name != but)
    return "".join(f'      {name}: [2.5, "assumed"]\n' for name in names)


def test_a_file_of_the_users_own(tmp_path: Path) -> None:
    file = own(tmp_path, OWN + rates())
    mine = devices.find("mine", file)
    assert (mine.hmx, mine.hmx_clock, mine.sessions, mine.hz) == ("none", False, 1, 10**9)
    assert mine.rates["barrier_us"].value == 2.5
    assert devices.find("sm7750", file).name == "sm7750"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ((OWN + rates()).replace("arch: 75", "arch: 68"), "own.yaml:5:11: .*arch 68 is none of"),
        ((OWN + rates()).replace("threads: 2", "threads: 1.5"), "not a whole number"),
        ((OWN + rates()).replace("threads: 2", "threads: 99"), "not between 1 and 16"),
        ((OWN + rates()).replace("hmx: none", "hmx: yes"), "is none of none, int, fp16"),
        ((OWN + rates()).replace("    vmem: 1073741824\n", ""), "vmem is missing"),
        ((OWN + rates()).replace("about:", "abuot:"), "unknown key abuot .*did you mean about"),
        ((OWN + rates()).replace('source: "assumed', 'source: "heard'), "must start with"),
        (OWN + rates(but="barrier_us"), "no rate barrier_us"),
        (OWN + rates() + "      barrier_us2: [1, assumed]\n", "unknown key barrier_us2"),
        (OWN + rates().replace('[2.5, "assumed"]', "2.5", 1), "must be a list"),
        ("devices: {}\n", "version is missing"),
        ("version: 2\n", "version 2 is none of 1"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidSeries, match=says):
        devices.load(own(tmp_path, text))
