"""Parts of the simulator's driver: upstream's CMake arguments, reports, known failures."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from test_validate import tree_of

from hexpatch import build, catalogue, estimate, faults, knownfail, prove, simbuild, simrun
from hexpatch.build import HARNESS
from hexpatch.errors import HexpatchError, InvalidSeries
from hexpatch.evidence import CaseVerdict, FaultRow
from hexpatch.faults import Fault, Side
from hexpatch.inspecting import Compared, shown, table
from hexpatch.proc import Finished
from hexpatch.repo import init_bare
from hexpatch.sim import devices
from hexpatch.sim.inspect import FunctionReport, inspect
from hexpatch.sim.inspectasm import Loop
from hexpatch.simflaky import nearness

# -- what a build depends on -------------------------------------------------------------------


def test_an_edit_of_any_file_of_the_harness_is_a_new_build() -> None:
    sources = [p for p in HARNESS.iterdir() if p.suffix in {".h", ".cpp", ".txt"}]
    assert len(sources) > 3
    assert dict(build.harness()) == {p.name: p.read_text() for p in sources}


@pytest.mark.parametrize("name", ["my work", "a$b", "it's"])
def test_a_folder_that_upstreams_link_rule_can_not_name_is_refused_at_once(
    tmp_path: Path, name: str
) -> None:
    """Unrefused, it fails where the DSP library is linked, after all has been compiled."""
    with init_bare(tmp_path / "repo.git") as repo:
        tree = tree_of(repo, {f"{simbuild.HEXAGON}/htp/CMakeLists.txt": ""})
        with pytest.raises(HexpatchError, match="the simulator can't be built below") as caught:
            simbuild.build(repo, tmp_path / name, tree, arch=73, say=print)
    assert "move the workspace" in str(caught.value.hint)


def test_settings_of_the_backend_and_readings_of_the_model() -> None:
    given = ["NHMX=0", "GGML_HEXAGON_HOSTBUF=0", "HEXPATCH_SIM_HMX_FP=xfp"]
    assert [name for name, _ in prove._settings(given)] == [
        "GGML_HEXAGON_HOSTBUF",
        "GGML_HEXAGON_NHMX",
        "HEXPATCH_SIM_HMX_FP",
    ]


# -- upstream's arguments ----------------------------------------------------------------------

CMAKE = """\
option(GGML_HEXAGON_HTP_DEBUG  "enable HTP debug output" OFF)
set(GGML_HEXAGON_HTP_BUILD_TYPE "Release" CACHE STRING "HTP skel build type (Release, Debug)")
set(GGML_GROUP 128 CACHE STRING "x")
function(build_htp_skel V)
    ExternalProject_Add(htp-${V}
        SOURCE_DIR ${CMAKE_CURRENT_SOURCE_DIR}/htp BUILD_ALWAYS ON
        CMAKE_ARGS
            -DCMAKE_BUILD_TYPE=${GGML_HEXAGON_HTP_BUILD_TYPE}
            -DCMAKE_TOOLCHAIN_FILE=${CMAKE_CURRENT_SOURCE_DIR}/htp/cmake-toolchain.cmake
            -DHEXAGON_SDK_ROOT=${HEXAGON_SDK_ROOT}
            -DHEXAGON_HTP_DEBUG=${GGML_HEXAGON_HTP_DEBUG}
            -DGROUP=${GGML_GROUP}
            -DDSP_VERSION=${V}
            -DPREBUILT_LIB_DIR="toolv19_${V}")
    list(APPEND HTP_SKELS ${CMAKE_CURRENT_BINARY_DIR}/libggml-htp-${V}.so)
endfunction()

build_htp_skel(v73)
build_htp_skel(v75)
"""
PLACES = {"HEXAGON_SDK_ROOT": "/sdk", "CMAKE_CURRENT_SOURCE_DIR": "/src"}


def test_the_dsp_library_gets_upstreams_own_arguments() -> None:
    assert simbuild.dsp_arguments(CMAKE, "v75", PLACES) == [
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_TOOLCHAIN_FILE=/src/htp/cmake-toolchain.cmake",
        "-DHEXAGON_SDK_ROOT=/sdk",
        "-DHEXAGON_HTP_DEBUG=OFF",
        "-DGROUP=128",
        "-DDSP_VERSION=v75",
        "-DPREBUILT_LIB_DIR=toolv19_v75",
    ]


@pytest.mark.parametrize(
    ("text", "version", "says"),
    [
        (CMAKE, "v81", r"builds no DSP library for v81 \(it has: v73, v75\)"),
        ("build_htp_skel(v73)", "v73", "does not build the DSP library as hexpatch knows it"),
        (CMAKE.replace("${GGML_GROUP}", "${NEW}"), "v73", r"passes -DGROUP=\$\{NEW\} .* know NEW"),
    ],
)
def test_a_tree_that_does_not_fit_is_said(text: str, version: str, says: str) -> None:
    with pytest.raises(HexpatchError, match=says):
        simbuild.dsp_arguments(text, version, PLACES)


# -- reports -----------------------------------------------------------------------------------


def report(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


OP = {"op": "op_matmul", "status": 0, "n": {"hvx_alu": 3}, "faults": {"bounds": 2}}
END = {
    "total": {"hvx_alu": 3},
    "faults": [{"kind": "bounds", "op": "op_matmul", "count": 2, "where": "libx.so+0x1f"}],
}


def test_a_whole_report() -> None:
    found = faults.read(report(OP, END))
    assert (found.whole, found.total) == (True, {"hvx_alu": 3})
    assert found.ops[0].counters == {"hvx_alu": 3}
    assert found.faults == [Fault("bounds", "op_matmul", "libx.so+0x1f", 2)]


def test_a_report_cut_off_by_a_crash() -> None:
    found = faults.read(report(OP) + '{"op": "op_')
    assert not found.whole
    assert found.faults == [Fault("bounds", "op_matmul", "", 2)]


def test_errors_belong_to_the_cases_in_their_order() -> None:
    out = b"Testing 1 devices\n\nBackend 1/1: HTP0\n"
    out += b"  ADD(n=1): OK\n  ADD(n=2): not supported [HTP0] \n"
    out += b"[ADD] ERR = 1.0 > 0.1   ADD(n=3): FAIL\n"
    heard = simrun.Heard()
    heard.take("", "1e-9\tADD\t-1\n1.0\tADD\t2e-5\n", Finished(1, out, b""))
    assert heard.errors == {"ADD(n=1)": 1e-9, "ADD(n=3)": 1.0}
    assert heard.exact == {"ADD(n=1)": -1.0, "ADD(n=3)": 2e-5}
    crashed = simrun.Heard()
    crashed.take("", "1e-9\tADD\t-1\n", Finished(-11, out[:-30], b""))
    assert crashed.errors == {"ADD(n=1)": 1e-9}
    other = simrun.Heard()
    whole = out + b"  1/2 tests passed\n  Backend HTP0: FAIL\n0/1 backends passed\nFAIL\n"
    other.take("", "1e-9\tADD\t-1\n" * 5, Finished(1, whole, b""))
    assert other.errors == {}


def test_faults_are_compared_by_function_not_by_line() -> None:
    base = Side([Fault("scalar", "op_a", "libx.so+0x1", 5)], ())
    stack = Side([Fault("scalar", "op_a", "libx.so+0x9", 3), Fault("stack", "op_b", "", 1)], ())
    found = faults.rows(base, stack)
    assert [(f.kind, f.op, f.base, f.stack) for f in found] == [
        ("scalar", "op_a", 5, 3),
        ("stack", "op_b", 0, 1),
    ]
    assert found[0].where == ("libx.so+0x1", "libx.so+0x9")
    assert faults.new_faults(found) == [
        "the stack has faults that the base has not: stack in op_b, 1 times"
    ]
    assert faults.rows(base, None)[0] == FaultRow("scalar", "op_a", "", ("libx.so+0x1",), 5, None)


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler")
def test_a_fault_has_its_source_line(tmp_path: Path) -> None:
    folder = tmp_path / "htp"
    folder.mkdir()
    source = folder / "kernel.c"
    source.write_text("int worker(int x) {\n    return x + 1;\n}\n")
    library = tmp_path / "libk.so"
    subprocess.run(
        ["cc", "-g", "-O0", "-shared", "-fPIC", str(source), "-o", str(library)], check=True
    )
    listed = subprocess.run(["nm", str(library)], capture_output=True, text=True, check=True).stdout
    address = next(line.split()[0] for line in listed.splitlines() if line.endswith(" worker"))
    where = f"libk.so+0x{int(address, 16):x}"
    found = faults.places([Fault("bounds", "op", where, 1)], [tmp_path])
    assert found[where] == ("worker", "kernel.c:1")
    assert faults.places([Fault("bounds", "op", "gone.so+0x1", 1)], [tmp_path]) == {}


# -- expected failures -------------------------------------------------------------------------


def known(tmp_path: Path, text: str) -> tuple[knownfail.Entry, ...]:
    file = tmp_path / "known.yaml"
    file.write_text("version: 1\nfailures:\n" + text)
    return knownfail.load(file)


def test_the_packages_list_is_valid() -> None:
    knownfail.load()


def test_entries_hold_for_a_target_bases_and_settings(tmp_path: Path) -> None:
    entries = known(
        tmp_path,
        "  - {target: 'sim:sm7*', op: ADD, reason: a, since: b9842, until: b10361}\n"
        "  - {target: sim:sm7750, op: MUL, reason: b, env: ['GGML_HEXAGON_NHMX=0']}\n",
    )
    trees = {e.name: e.tree for e in catalogue.entries()}

    def ops(target: str, base: str, **env: str) -> list[str]:
        return [e.op for e in knownfail.applying(entries, target, trees.get(base, base), env)]

    assert ops("sim:sm7750", "b10068") == ["ADD"]
    assert ops("sim:sm7750", "b8390") == []
    assert ops("sim:sm7750", "v0.5.0") == []
    assert ops("sim:sm7750", "0" * 40) == []
    assert ops("sim:sm8650", "b10068") == []
    assert ops("sim:sm7750", "b10068", GGML_HEXAGON_NHMX="0") == ["MUL"]
    assert entries[0].place == "known.yaml:3"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("  - {target: x, op: ADD}\n", "known.yaml:3:5: reason is missing"),
        ("  - {target: x, op: add, reason: y}\n", "op add does not match"),
        ("  - {target: x, op: ADD, reason: y, params: '('}\n", "is not a regex"),
        ("  - {target: x, op: ADD, reason: y, since: b1}\n", "since b1 is no snapshot's name"),
        ("  - {target: x, op: ADD, reason: y, count: 0}\n", "count 0 does not match"),
        ("  - {target: x, op: ADD, reason: y, when: z}\n", "unknown key when"),
    ],
)
def test_a_wrong_entry_is_said_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidSeries, match=says):
        known(tmp_path, text)


def test_nearness_to_the_limit() -> None:
    def case(error: str) -> CaseVerdict:
        return CaseVerdict("ADD", "n=1", "FAIL", None, "failed", error)

    assert nearness(case("[ADD] ERR = 0.0002 > 0.0001")) == pytest.approx(2)
    assert nearness(case("[ADD] NaN at index 3")) == float("inf")


# -- estimates ---------------------------------------------------------------------------------


def test_an_estimate_is_a_range() -> None:
    phone = devices.find("sm7750")
    counters = {"hvx_alu": 8_000_000, "hmx_tiles_i": 737_280, "dma_bytes": 27_000_000}
    found = estimate.estimate(phone, {**counters, "dispatches": 10, "vtcm_scalar": 1000})
    assert found.terms["HVX"] == pytest.approx(8e6 / 4 / 1497.6)
    assert found.terms["HMX"] == pytest.approx(737_280 * 8 / 1497.6)
    assert found.terms["DMA"] == pytest.approx(1000)
    assert found.terms["dispatch"] == pytest.approx(80)
    assert found.dominant == "HMX"
    assert found.low == pytest.approx(found.terms["HMX"] + 80)
    assert found.high == pytest.approx(sum(found.terms.values()))
    assert estimate.estimate(phone, {}).high == 0
    rows = estimate.estimate(phone, {"dma_rows": 8192})
    assert (rows.low, rows.high) == (pytest.approx(61.44), pytest.approx(245.76))


def test_every_rate_says_where_it_comes_from() -> None:
    lines = estimate.sources(devices.find("sm7750"))
    assert len(lines) == len(devices.RATES)
    assert all(re.search(": (assumed|published|derived)", line) for line in lines)


# -- inspect -----------------------------------------------------------------------------------


def function(name: str, packets: int, spills: int = 0) -> FunctionReport:
    loop = Loop(1, 1, True, packets // 2, packets, 0, 0)
    return FunctionReport("a.c", name, 1, packets, 0, spills, spills, 0, loops=(loop,))


def test_what_inspect_shows() -> None:
    same = Compared("a.c", "same", function("same", 10), function("same", 10))
    longer = Compared("a.c", "longer", function("longer", 10), function("longer", 14, 2))
    new = Compared("a.c", "new", None, function("new", 3))
    assert shown([same, longer, new], alone=False, every=False) == [longer, new]
    assert shown([same, longer], alone=True, every=False) == [longer]
    assert shown([same], alone=False, every=True) == [same]
    rows = table([longer, new], alone=False)
    assert rows[1][:5] == ["a.c", "longer", "10 > 14", "5 > 7", "0 > 2"]
    assert rows[2][2] == "- > 3"


def test_runs_side_by_side_keep_their_reports_apart(tmp_path: Path) -> None:
    """Cases of `bench` run at the same time, each by a program of its own with the same seed."""
    script = tmp_path / "program"
    script.write_text(
        "#!/bin/sh\nsleep 0.$1\n"
        'echo "{\\"op\\": \\"op_x\\", \\"n\\": {\\"hvx_alu\\": $1}}" >>"$HEXPATCH_SIM_REPORT"\n'
        "sleep 0.2\n"
    )
    script.chmod(0o755)
    machine = devices.find("sm7750")
    whole = simrun.SimProgram(script, machine=machine, room=tmp_path / "room", counting=True)
    own = [whole.with_seed(1) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: own[n].run(str(n + 1), timeout=20), range(4)))
    assert [[op.counters for op in p.heard.ops] for p in own] == [
        [{"hvx_alu": n + 1}] for n in range(4)
    ]


@pytest.mark.slow
def test_ctrl_c_ends_the_compilers_of_inspect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that run, and those that would come next."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "hvx_hexagon_protos.h").touch()
    clang = tmp_path / "clang"
    clang.write_text(
        f"#!/bin/sh\ncase $1 in --print-targets) echo hexagon;; --print-res*) echo {tmp_path};;"
        f" *) touch {tmp_path}/began.$$; sleep 20;; esac\n"
    )
    clang.chmod(0o755)
    htp = tmp_path / "ggml" / "src" / "ggml-hexagon" / "htp"
    htp.mkdir(parents=True)
    for n in range(8):
        (htp / f"{n}.c").touch()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 1.5)
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            inspect(tmp_path, arch=73, clang=str(clang), jobs=2)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 10
    assert len(list(tmp_path.glob("began.*"))) <= 2
