"""The stand-in for hexagon-clang: command lines, objects, links, what it says when it can't."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toolchain_lab import CLANGS, Toolchain, hexagon_clang, toolchain

from hexpatch.sim import cc, cclink, root

__all__ = ["toolchain"]
pytestmark = pytest.mark.sim

# What upstream's toolchain file passes.
ARCH = ["-mcpu=v73", "-mv73", "-mhvx=v73", "-mhmx"]
FLAGS = [*ARCH, "-fvectorize", "-flto", "-Wall", "-Werror", "-fno-zero-initialized-in-bss", "-G0"]
FLAGS += ["-fdata-sections", "-fpic", "-O2"]
WRAPS = [f"-Wl,--wrap={name}" for name in ("malloc", "calloc", "free", "realloc", "memalign")]


class Shop:
    """A folder with a compiler."""

    def __init__(self, folder: Path, made: root.Root) -> None:
        self.folder, self.made = folder, made

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def cc(self, *argv: str, ok: bool = True, tool: str = "hexagon-clang") -> str:
        """Standard error (after success: with standard output before it)."""
        done = subprocess.run(
            [Path(hexagon_clang(self.made)).with_name(tool), *argv],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode == 0) == ok, done.stderr
        return done.stdout + done.stderr if ok else done.stderr

    def compiles(self, text: str, *more: str) -> str:
        self.write("k.c", text)
        return self.cc(*FLAGS, *more, "-c", "k.c", "-o", "k.o")

    def refuses(self, text: str, *more: str) -> str:
        self.write("k.c", text)
        return self.cc(*FLAGS, *more, "-c", "k.c", "-o", "k.o", ok=False)

    def links(self, *objects: str, ok: bool = True) -> str:
        """As upstream's CMAKE_C_CREATE_SHARED_LIBRARY."""
        return self.cc(
            *(*ARCH, "-G0", "-fpic", "-Wl,-Bsymbolic", "-Wl,-L/none/G0/pic", "-Wl,--no-threads"),
            *(*WRAPS, "-shared", "-o", "k.so", "-Wl,-soname,k.so"),
            *("-Wl,--start-group", *objects, "-Wl,--end-group", "-lc"),
            ok=ok,
        )

    def runs(self, code: str) -> str:
        """What Python code that has `lib` and `noted()` prints."""
        head = (
            "import ctypes, sys\n"
            "lib = ctypes.CDLL('./k.so')\n"
            "rt = ctypes.CDLL(sys.argv[1])\n"
            "noted = lambda: (ctypes.c_char * 65536).in_dll(rt, 'noted').value.decode()\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", head + code, str(self.made.lib / "libcdsprpc.so")],
            cwd=self.folder,
            env={"LD_LIBRARY_PATH": str(self.made.lib)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


@pytest.fixture
def shop(toolchain: Toolchain, tmp_path: Path) -> Shop:
    return Shop(tmp_path, toolchain())


@pytest.fixture
def checked(toolchain: Toolchain, tmp_path: Path) -> Shop:
    return Shop(tmp_path, toolchain(checked=True))


# -- command lines ----------------------------------------------------------------------------


def test_flags_are_sorted() -> None:
    more = [
        "-mv81",
        "-G",
        "8",
        "-Iinc",
        "-isystem",
        "sys",
        "-DX=1",
        "-MD",
        "-MF",
        "d",
        "-MT",
        "t",
        "-o",
        "k.o",
        "-c",
        "a.c",
    ]
    job = cc.Job([*FLAGS, *more])
    assert job.arch == 81
    kept = ["-Wall", "-Werror", "-fdata-sections", "-fpic", "-Iinc", "-isystem", "sys", "-DX=1"]
    assert job.flags == kept
    assert (job.output, job.mode, job.optimise) == ("k.o", "c", "-O2")
    assert job.deps == ["-MD", "-MF", "d", "-MT", "t"]
    assert job.sources == [("a.c", "c")]
    assert cc.Job(["-mcpu=hexagonv68", "x.o"]).arch == 68
    link = cc.Job(["-shared", "-Wl,--no-threads", "a.o", "-Lx", "-lc", "-Wl,--wrap=free"])
    assert link.link == ["-shared", "a.o", "-Lx", "-lc", "-Wl,--wrap=free"]
    assert [cc.Job(["-c", name]).sources[0][1] for name in ("a.cxx", "a.S", "a.cc")] == [
        "c++",
        "asm",
        "c++",
    ]


def test_questions_are_answered(shop: Shop) -> None:
    assert "clang version" in shop.cc(*FLAGS, "--version")
    assert "clang version" in shop.cc("--version", tool="hexagon-clang++")
    assert "resource" in shop.cc("-print-resource-dir") or "lib" in shop.cc("-print-search-dirs")
    assert shop.cc("--version", tool="hexagon-ar")


def test_what_a_hexagon_compiler_predefines(shop: Shop) -> None:
    shop.write("k.c", "__hexagon__ __HEXAGON_ARCH__ __HVX_ARCH__ __HVX_LENGTH__ __HEXAGON_V75__\n")
    said = shop.cc("-mv75", "-E", "k.c")
    assert said.split("\n")[-2] == "1 75 75 128 1"
    shop.compiles("char c = -1; int f(void) { return c > 0; }")
    shop.links("k.o")
    assert shop.runs("print(lib.f())") == "1\n"


def test_cmakes_probes(shop: Shop) -> None:
    shop.write("p.cxx", "#include <vector>\nint main() { return std::vector<int>().size(); }\n")
    shop.write("p.c", "int main(void) { return 0; }\n")
    shop.write("p.S", ".text\n")
    shop.write("with space/q.c", "int q(void) { return 0; }\n")
    assert shop.cc(*FLAGS, "p.cxx", "-o", "p", tool="hexagon-clang++") == ""
    assert shop.cc("-isystem", ".", "p.c") == ""
    assert (shop.folder / "a.out").exists()
    assert shop.cc("-mv73", "-c", "p.S", "-o", "p.o") == ""
    assert shop.cc("-mv73", "-S", "p.c", "-o", "p.s") == ""
    assert "main:" in (shop.folder / "p.s").read_text()
    assert shop.cc("-c", "with space/q.c") == ""
    assert cclink.defined(shop.folder / "q.o", "q") == {"q"}
    assert shop.cc("qc", "libq.a", "q.o", tool="hexagon-ar") == ""


def test_dependencies_are_right(shop: Shop) -> None:
    shop.write("a/x.h", '#include "y.h"\n')
    shop.write("a/y.h", "#define Y 1\n")
    shop.write("k.c", '#include "x.h"\nint k = Y;\n')
    shop.cc("-mv73", "-Ia", "-MD", "-MT", "dir/k.o", "-MF", "k.dep", "-c", "k.c", "-o", "k.o")
    target, _, found = (shop.folder / "k.dep").read_text().replace("\\\n", " ").partition(":")
    assert target == "dir/k.o"
    names = found.split()
    assert names[0] == "k.c"
    assert {"a/x.h", "a/y.h", str(shop.made.sdk / "incs" / "hexsim.h")} <= set(names)
    shop.cc("-mv73", "-Ia", "-MD", "-c", "k.c", "-o", "k.o")
    assert (shop.folder / "k.d").read_text().startswith("k.o:")


# -- code -------------------------------------------------------------------------------------


def test_host_noise_is_quiet(shop: Shop) -> None:
    assert (
        shop.compiles("""\
#include <math.h>
#include <stdint.h>
#include <string.h>
#define M_PI 3.0
#define POLL 1
struct s { uint64_t base; void * p; } s;
uint32_t low(void * p) { return (uint32_t) p & ~127; }
void *   back(uint32_t a) { return (void *) a; }
void     none(void) { s.base = NULL; s.p = NULL; }
int      say(char * to, size_t n) { return snprintf(to, n, "%u %llu", (uint32_t) n, n); }
int      poll(int n) { return n > POLL && n == 1; }
_Float16 half(float x) { return (_Float16) x; }
void *   heap(void) { return memalign(128, 256); }
""")
        == ""
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("int f(void) { return g(); }", "'g'"),
        ("int f(void) { int unused; return 0; }", "unused"),
        ("int f(int * p) { return p; }", "int"),
        ("int f(void) { }", "non-void"),
        ("f(void) { return 0; }", "k.c:1:1"),
        ("struct x; void f(long * p); void g(int * p) { f(p); }", "incompatible"),
    ],
)
def test_mistakes_are_errors(shop: Shop, text: str, says: str) -> None:
    assert says in shop.refuses(text)


def test_asm_becomes_calls(shop: Shop) -> None:
    shop.compiles("""\
#include <stdint.h>
unsigned long long cycles(void) { uint64_t c; asm volatile(" %0 = c15:14\\n" : "=r"(c)); return c; }
void f(void * p, int n) {
    unsigned got;
    asm volatile(" release(%0):at" : : "r"(p));
    asm volatile(" dmstart(%0)" : : "r"(p));
    asm volatile(" %0 = dmpoll" : "=r"(got) : : "memory");
    asm volatile("{ activation.ub = mxmem(%0, %1):deep\\n weight.b = mxmem(%2, %1) }\\n"
                 "mxmem(%2, %3):after:retain.uh = acc:2x1" :: "r"(p), "r"(n), "r"(p + 8), "r"(got));
}
""")
    shop.links("k.o")
    said = shop.runs(
        "lib.cycles.restype = ctypes.c_uint64\n"
        "print(hex(lib.cycles())); lib.f(ctypes.c_void_p(0x30000000), 2047); print(noted())"
    )
    assert said.split("\n")[:5] == [
        "0x123456789abc",
        "dmstart 30000000",
        "dmpoll",
        "load e0 30000000 7ff e0 30000008 7ff",
        "op 1 f 30000008 7",
    ]


def test_counting_is_for_the_checked_flavour(shop: Shop, checked: Shop) -> None:
    text = """\
#include "hexsim.h"
bool work_queue_run_async(void * q, void * func, void * data, unsigned int n);
bool work_queue_run_async(void * q, void * func, void * data, unsigned int n) { return q; }
void f(void) { asm volatile("l2fetch(%0,%1)" :: "r"(0), "r"(0)); sim_count(hvx_alu); }
int l2(void) { return sim_self.n[SIM_l2fetch]; }
int alu(void) { return sim_self.n[SIM_hvx_alu]; }
int jobs(void) { return sim_self.n[SIM_jobs] * 10 + sim_self.n[SIM_dispatches]; }
"""
    code = "lib.f(); lib.work_queue_run_async(0, 0, 0, 4); print(lib.l2(), lib.alu(), lib.jobs())"
    for one, counts in ((shop, "0 0 0\n"), (checked, "1 1 41\n")):
        one.compiles(text)
        one.links("k.o")
        assert one.runs(code) == counts


def test_no_vectors_but_the_kernels(checked: Shop) -> None:
    """A loop over scalars stays one: each access is heard of."""
    checked.compiles(
        "void f(int * restrict a, const int * restrict b) {"
        " for (int i = 0; i < 64; i++) a[i] = b[i] + 1; }"
    )
    checked.links("k.o")
    code = "a = (ctypes.c_int * 128)(); lib.f(a, ctypes.byref(a, 256)); print(noted())"
    said = checked.runs(code).split("\n")
    assert sum(line.startswith("ld4 ") for line in said) == 64
    assert sum(line.startswith("st4 ") for line in said) == 64


# -- links ------------------------------------------------------------------------------------

OPS = """\
#include <stdlib.h>
#include <stdio.h>
struct octx { int status; };
int op_first(struct octx * o);
int op_second(struct octx * o);
static int op_local(struct octx * o) { return o->status; }
"""


def test_ops_are_wrapped(shop: Shop) -> None:
    shop.write("a.c", OPS + "int run(struct octx * o) { return op_local(o) + op_first(o); }\n")
    shop.write(
        "b.c", OPS + "int op_first(struct octx * o) { return op_local(o) + op_second(o); }\n"
    )
    body = 'kept = malloc(11); free(kept); return puts("12");'
    shop.write("c.c", OPS + f"void * volatile kept;\nint op_second(struct octx * o) {{ {body} }}\n")
    for name in "abc":
        quiet = ["-Wno-unused-function"]
        shop.cc(*FLAGS, *quiet, "-c", f"{name}.c", "-o", f"{name}.c.obj")
    shop.links("a.c.obj", "b.c.obj", "c.c.obj")
    said = shop.runs("o = ctypes.c_int(5); print(lib.run(ctypes.byref(o))); print(noted())")
    lines = [line.split() for line in said.strip().split("\n")]
    assert [words[:2] for words in lines] == [
        ["10"],
        ["begin", "op_first"],
        ["begin", "op_second"],
        ["malloc", "11"],
        ["puts", "2"],
        ["end", "0"],
        ["end", "5"],
    ]
    # the loader was asked for a place below 4 GiB
    where = shop.runs("print(ctypes.cast(lib.run, ctypes.c_void_p).value < 1 << 32)")
    assert where == "True\n"


def test_a_missing_function_is_named(shop: Shop) -> None:
    shop.compiles("void HAP_new_thing(void); void f(void) { HAP_new_thing(); }")
    said = shop.links("k.o", ok=False)
    assert said.startswith(
        "k.so: hexsim: nobody defines HAP_new_thing; add it to hexpatch/sim/runtime/\n"
    )


def test_defined_reads_symbols(shop: Shop) -> None:
    shop.compiles(
        "int op_data; int op_code(void) { return op_data; } int op_gone(void);"
        "__attribute__((unused)) static int op_own(void) { return op_gone(); }"
        "int (*keep)(void) = op_own;"
    )
    assert cclink.defined(shop.folder / "k.o", "op_") == {"op_code"}
    assert "sim_pause" in cclink.defined(shop.made.lib / "libcdsprpc.so", "sim_")
    (shop.folder / "text.o").write_text("no object")
    assert cclink.defined(shop.folder / "text.o", "") == set()


# -- errors -----------------------------------------------------------------------------------


def test_unknown_intrinsics_are_named_first_and_once(shop: Shop) -> None:
    shop.write("k.h", "\n\nstatic inline int f(int x) { return Q6_R_new_R(x) + Q6_R_new_R(2); }\n")
    said = shop.refuses('#include "k.h"\nint g(void) { return f(1) + Q6_P_other_P(2); }\n')
    lines = said.split("\n")
    assert lines[:2] == [
        "./k.h:3: hexsim: Q6_R_new_R is not modelled; add it to hexpatch/sim/sdk/incs/hvx_table.h",
        "k.c:2: hexsim: Q6_P_other_P is not modelled; add it to hexpatch/sim/sdk/incs/hvx_table.h",
    ]
    assert any("error:" in line for line in lines[2:])
    many = "".join(f"int f{i}(void) {{ return Q6_R_x{i}_R(1); }}\n" for i in range(60))
    said = shop.refuses(many)
    assert said.count("hexsim: ") == 60
    assert "lines left out" in said
    assert said.count("\n") < 60 + cc.LONG + 3


def test_unknown_header_type_and_mnemonic(shop: Shop) -> None:
    said = shop.refuses("#include <HAP_vtcm_mgr.h>\n")
    assert said.startswith(
        "k.c:1: hexsim: header HAP_vtcm_mgr.h is not there; add it to hexpatch/sim/sdk/incs/\n"
    )
    said = shop.refuses("\nqurt_new_t x;\n")
    assert said.startswith(
        "k.c:2: hexsim: qurt_new_t is not modelled; add it to hexpatch/sim/sdk/incs\n"
    )
    said = shop.refuses('\n\nvoid f(void) { asm volatile("vnew(%0)" :: "r"(1)); }\n')
    assert said == (
        'k.c:3: hexsim: asm "vnew(%0)" is not modelled; add it to hexpatch/sim/asmrules.py\n'
    )


def test_ordinary_mistakes_are_the_compilers_business(shop: Shop) -> None:
    said = shop.refuses("int f(void) { return nosuch; }")
    assert "hexsim" not in said
    assert "k.c:1:22: error: use of undeclared identifier 'nosuch'" in said


# -- ccache and CMake -------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("ccache"), reason="no ccache")
def test_ccache_skips_the_second_compile(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "ccache.log"
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CCACHE_LOGFILE", str(log))
    text = "int f(int x) { return x + __HVX_LENGTH__; }\n"
    for expected in ("cache_miss", "preprocessed_cache_hit"):
        log.unlink(missing_ok=True)
        (shop.folder / "k.o").unlink(missing_ok=True)
        assert shop.compiles(text) == ""
        assert f"Result: {expected}" in log.read_text()
        assert cclink.defined(shop.folder / "k.o", "f") == {"f"}
    log.unlink()
    shop.compiles(text, "-DX")  # not seen in the preprocessed text
    assert "Result: preprocessed_cache_hit" in log.read_text()
    log.unlink()
    shop.compiles(text, "-mv75")
    assert "Result: preprocessed_cache_hit" in log.read_text()
    log.unlink()
    shop.compiles(text, "-O1")
    assert "Result: cache_miss" in log.read_text()
    assert not list(shop.folder.glob("*.i"))


def test_without_ccache(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings say whether there is one, and not where they were written."""
    made = toolchain()
    copy = tmp_path / "root"
    shutil.copytree(made.sdk.parent, copy)
    settings = copy / "tools" / "Tools" / "lib" / "settings.json"
    text = settings.read_text()
    assert str(made.sdk.parent) not in text
    settings.write_text(text.replace('"ccache": "', '"ccache": "", "was": "'))
    places = (copy / "sdk", copy / "tools", copy / "lib")
    shop = Shop(tmp_path, root.Root(*places, made.clang, made.key))
    monkeypatch.setenv("CCACHE_LOGFILE", str(tmp_path / "log"))
    assert shop.compiles("int f(void) { return 1; }") == ""
    assert "hexsim: Q6_R_no" in shop.refuses("int f(void) { return Q6_R_no(); }")
    assert not (tmp_path / "log").exists()


CMAKE = """\
cmake_minimum_required(VERSION 3.22)
project(htp C CXX ASM)
include(${HEXAGON_SDK_ROOT}/build/cmake/hexagon_fun.cmake)
include_directories(${HEXAGON_SDK_ROOT}/incs ${HEXAGON_SDK_ROOT}/incs/stddef
    ${CMAKE_CURRENT_BINARY_DIR})
add_library(htp-${DSP_VERSION} SHARED main.c t_skel.c)
build_idl(sub/t.idl htp-${DSP_VERSION})
"""
TOOLCHAIN = """\
set(CMAKE_SYSTEM_NAME QURT)
set(CMAKE_SYSTEM_PROCESSOR Hexagon)
include(${HEXAGON_SDK_ROOT}/build/cmake/hexagon_arch.cmake)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HEXAGON_SDK_ROOT HEXAGON_TOOLS_ROOT)
set(V_ARCH ${HEXAGON_ARCH})
set(CMAKE_C_COMPILER ${HEXAGON_TOOLS_ROOT}/Tools/bin/hexagon-clang)
set(CMAKE_CXX_COMPILER ${HEXAGON_TOOLS_ROOT}/Tools/bin/hexagon-clang++)
set(CMAKE_AR ${HEXAGON_TOOLS_ROOT}/Tools/bin/hexagon-ar)
set(CMAKE_ASM_COMPILER ${HEXAGON_TOOLS_ROOT}/Tools/bin/hexagon-clang++)
set(CMAKE_SHARED_LIBRARY_SONAME_C_FLAG "-Wl,-soname,")
set(ARCH "-mcpu=${V_ARCH} -m${V_ARCH} -mhvx=${V_ARCH} -mhmx")
set(CMAKE_C_FLAGS_RELEASE "${ARCH} -fvectorize -flto -Wall -Werror -G0 -fpic -O2")
set(CMAKE_CXX_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")
set(CMAKE_C_CREATE_SHARED_LIBRARY "${CMAKE_C_COMPILER} ${ARCH} -G0 -fpic -Wl,--no-threads -shared \\
-o <TARGET> <SONAME_FLAG><TARGET_SONAME> <LINK_FLAGS> -Wl,--start-group <OBJECTS> \\
<LINK_LIBRARIES> -Wl,--end-group -lc")
"""
MAIN = """\
#include "t.h"
#include "local.h"
AEEResult t_open(const char * uri, remote_handle64 * h) { *h = 1; return 0; }
AEEResult t_close(remote_handle64 h) { return 0; }
AEEResult t_get(remote_handle64 h, uint32 * x) { *x = LOCAL + __HVX_ARCH__; return 0; }
"""
IDL = "interface t : remote_handle64 { AEEResult get(rout uint32 x); };\n"


@pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake")
def test_a_cmake_project_as_upstreams(shop: Shop) -> None:
    for name, text in (
        ("CMakeLists.txt", CMAKE),
        ("toolchain.cmake", TOOLCHAIN),
        ("main.c", MAIN),
        ("local.h", "#define LOCAL 1000\n"),
        ("sub/t.idl", IDL),
    ):
        shop.write(f"src/{name}", text)
    made = shop.made
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    argv = [
        *("cmake", "-S", "src", "-B", "out", *generator, "-DCMAKE_BUILD_TYPE=Release"),
        "-DCMAKE_TOOLCHAIN_FILE=toolchain.cmake",
        *(f"-DHEXAGON_SDK_ROOT={made.sdk}", f"-DHEXAGON_TOOLS_ROOT={made.tools}"),
        "-DDSP_VERSION=v79",
    ]
    env = {**os.environ, "LC_ALL": "C"}
    conf = subprocess.run(
        argv, cwd=shop.folder, env=env, capture_output=True, text=True, check=False
    )
    assert conf.returncode == 0, conf.stdout + conf.stderr
    assert "C compiler identification is Clang" in conf.stdout

    def build() -> str:
        again = ["cmake", "--build", "out", "-v"]
        done = subprocess.run(again, cwd=shop.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "-mhvx=v79" in build()
    library = shop.folder / "out" / "libhtp-v79.so"
    assert "t_skel_handle_invoke" in cclink.defined(library, "t_")
    code = "x = ctypes.c_uint32(); lib.t_get(ctypes.c_uint64(0), ctypes.byref(x)); print(x.value)"
    shutil.copy(library, shop.folder / "k.so")
    assert shop.runs(code) == "1079\n"
    shop.write("src/local.h", "#define LOCAL 2000\n")
    said = build()
    assert "main.c" in said
    assert "t_skel.c.o" not in said.replace("t_skel.c.obj ", "").replace("t_skel.c.o ", "")
    shutil.copy(library, shop.folder / "k.so")
    assert shop.runs(code) == "2079\n"
    assert "main.c" not in build()


def test_there_is_a_clang_to_test_with() -> None:
    assert CLANGS, "install clang to test the simulator"
