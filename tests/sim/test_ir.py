"""Vector accesses in LLVM's IR get Hexagon's addresses; the checked flavour hears of each once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from toolchain_lab import CLANGS, Toolchain, hexagon_clang, toolchain

from hexpatch.sim.irmask import mask

__all__ = ["toolchain"]
pytestmark = pytest.mark.sim

# -- text -------------------------------------------------------------------------------------


def body(*lines: str, checked: bool = False) -> list[str]:
    """The instructions of a function after masking."""
    text = "\n".join(["define void @f() {", *(f"  {line}" for line in lines), "}"])
    made = mask(text, checked=checked).split("\n")
    return [line.strip() for line in made[1 : made.index("}")]]


def test_loads_and_stores_of_opaque_and_typed_pointers() -> None:
    assert body(
        "%1 = load <32 x i32>, ptr %p, align 128, !dbg !7, !tbaa !5",
        "store <128 x i8> %v, <128 x i8>* %q, align 128",
    ) == [
        "%sim.1.a = ptrtoint ptr %p to i64, !dbg !7",
        "%sim.1.m = and i64 %sim.1.a, -128, !dbg !7",
        "%sim.1.p = inttoptr i64 %sim.1.m to ptr, !dbg !7",
        "%1 = load <32 x i32>, ptr %sim.1.p, align 128, !dbg !7, !tbaa !5",
        "%sim.2.a = ptrtoint <128 x i8>* %q to i64",
        "%sim.2.m = and i64 %sim.2.a, -128",
        "%sim.2.p = inttoptr i64 %sim.2.m to <128 x i8>*",
        "store <128 x i8> %v, <128 x i8>* %sim.2.p, align 128",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "%1 = load <32 x i32>, ptr %p, align 4",  # HVX_UVector
        "%1 = load <32 x i32>, ptr %p, align 64",
        "%1 = load <8 x i32>, ptr %p, align 128",  # no whole vector
        "%1 = load <33 x i32>, ptr %p, align 128",
        "%1 = load i32, ptr %p, align 128",
        "store i32 %v, ptr %p, align 128",
        "store <4 x ptr> %v, ptr %p, align 128",
        "%1 = load atomic i32, ptr %p seq_cst, align 128",
        "%1 = atomicrmw add ptr %p, i32 1 seq_cst, align 4",
        "%2 = add <32 x i32> %0, %1",
        'call void asm sideeffect "load <32 x i32>", ""()',
    ],
)
def test_everything_else_stays(line: str) -> None:
    assert body(line) == [line]
    assert body(line, checked=True) == [line]


@pytest.mark.parametrize(
    ("before", "pointer", "after"),
    [
        ("%1 = load volatile <64 x half>, ptr ", "%p.addr", ", align 128"),
        ("%1 = load <16 x double>, ptr ", '@"odd name"', ", align 128, !nontemporal !1"),
        ("store volatile <32 x float> zeroinitializer, ptr ", "%p", ", align 256"),
        ("store <2 x i512> <i512 1, i512 2>, ptr ", "%p", ", align 128"),
        (
            "%5 = load <32 x i32>, <32 x i32>* ",
            "getelementptr inbounds ([3 x <32 x i32>], [3 x <32 x i32>]* @g, i64 0, i64 1)",
            ", align 128",
        ),
        (
            "store <32 x i32> <i32 1, i32 2>, <32 x i32>* ",
            "bitcast (i8* getelementptr (i8, i8* bitcast (<32 x i32>* @g to i8*), i64 5) to "
            "<32 x i32>*)",
            ", align 128",
        ),
        (
            "%5 = load <32 x i32>, ptr ",
            "getelementptr inbounds inrange(-16, 112) (i8, ptr @g, i64 128)",
            ", align 128, !dbg !53",
        ),
    ],
)
def test_odd_operands(before: str, pointer: str, after: str) -> None:
    made = body(before + pointer + after)
    assert len(made) == 4
    assert f" {pointer} to i64" in made[0]
    assert made[3] == f"{before}%sim.1.p{after}"


def test_copies_of_structures_do_not_fault() -> None:
    call = (
        "call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align {} dereferenceable(512) %a, "
        "ptr noundef nonnull align {} %p, i64 512, i1 false), !dbg !3"
    )
    assert body(call.format(128, 16)) == [call.format(1, 16)]
    assert body(call.format(4, 256), checked=True) == [call.format(4, 1)]


def test_the_frame_is_a_register() -> None:
    slots = ("%b = alloca [4 x <32 x i32>], align 128", "%a = alloca <32 x i32>, align 128")
    load = "%1 = load <32 x i32>, ptr %a, align 128"
    assert body(*slots, load) == [*slots, load]
    inside = "%e = getelementptr [4 x <32 x i32>], ptr %b, i64 0, i64 %i"
    made = body(*slots, inside, "%1 = load <32 x i32>, ptr %e, align 128", checked=True)
    assert not any("sim_vld" in line for line in made)
    assert made[-1] == "%1 = load <32 x i32>, ptr %sim.1.p, align 128"
    calls = (
        "%k = bitcast [4 x <32 x i32>]* %b to i8*",
        "%n = ptrtoint i8* %k to i64",
        "call void @__asan_store4_noabort(i64 %n), !dbg !4",
        "%m = ptrtoint ptr %p to i64",
        "call void @__asan_store4_noabort(i64 %m)",
    )
    made = body(*slots, *calls, checked=True)
    assert made == [*slots, calls[0], calls[1], calls[3], calls[4]]
    # the next function's names are its own
    two = f"define void @f() {{\n  {slots[1]}\n}}\ndefine void @g() {{\n  {load}\n}}"
    assert "%sim.1.m" in mask(two, checked=False)


@pytest.mark.parametrize(
    "parameters",
    [
        "ptr dead_on_unwind noalias nocapture writable sret(<32 x i32>) align 128 %r, i32 %n, "
        "ptr noundef byval(<32 x i32>) align 128 %v",
        "<32 x i32>* noalias sret(<32 x i32>) align 128 %r, i32 %n, "
        "<32 x i32>* byval(<32 x i32>) align 128 %v",
    ],
)
def test_a_vector_in_a_call_is_a_register(parameters: str) -> None:
    text = "\n".join(
        [
            f"define internal fastcc void @f({parameters}, ptr noundef %p) #3 !dbg !5 {{",
            "  %1 = load <32 x i32>, ptr %v, align 128",
            "  %2 = load <32 x i32>, ptr %p, align 128",
            "  store <32 x i32> %1, ptr %r, align 128",
            "}",
        ]
    )
    made = mask(text, checked=True)
    assert re.findall(r"@sim_v\w+\(i64 (\S+)\)", made.partition("}")[0]) == ["%sim.2.a"]


def test_checked_reports_once() -> None:
    made = body(
        "%0 = ptrtoint ptr %p to i64, !dbg !1",
        "call void @__asan_loadN_noabort(i64 %0, i64 256), !dbg !1",
        "%1 = load <64 x i32>, ptr %p, align 128, !dbg !1",
        "%2 = ptrtoint ptr %q to i64",
        "call void @__asan_loadN_noabort(i64 %2, i64 128)",
        "store <32 x i32> %v, ptr %r, align 128",
        checked=True,
    )
    calls = [line for line in made if line.startswith("call")]
    assert calls == [
        "call void @sim_vld(i64 %sim.1.a), !dbg !1",
        "call void @sim_vld(i64 %sim.1.1), !dbg !1",
        "call void @__asan_loadN_noabort(i64 %2, i64 128)",  # another pointer's
        "call void @sim_vst(i64 %sim.2.a)",
    ]
    assert "%sim.1.1 = add i64 %sim.1.a, 128, !dbg !1" in made
    constant = body(
        "call void @__asan_storeN_noabort(i64 ptrtoint (ptr @g to i64), i64 128)",
        "store <32 x i32> %v, ptr @g, align 128",
        checked=True,
    )
    assert [line for line in constant if "call" in line] == ["call void @sim_vst(i64 %sim.1.a)"]
    text = mask("define void @f() {\n  ret void\n}\n", checked=True)
    assert "declare void @sim_vld(i64)" in text
    assert "sim_vld" not in mask("define void @f() {\n  ret void\n}\n", checked=False)


# -- compiled and run -------------------------------------------------------------------------

KERNEL = """\
#include <stdint.h>
#include <string.h>
typedef int V __attribute__((vector_size(128), aligned(128), may_alias));
typedef int W __attribute__((vector_size(256), aligned(128), may_alias));
typedef int U __attribute__((vector_size(128), aligned(1), may_alias));
static uint8_t data[1024] __attribute__((aligned(4096)));
uint8_t out[1024] __attribute__((aligned(4096)));
static const V lut[2] = {{1, 2}, {3, 4}};
volatile int at;

void fill(void) { for (int i = 0; i < 1024; i++) ((volatile uint8_t *) data)[i] = i / 4; }
void copy(void * to, const void * from) { *(V *) to = *(const V *) from; }
void both(void * to, const void * from) { *(W *) to = *(const W *) from; }
void loose(void * to, const void * from) { *(U *) to = *(const U *) from; }
void lanes(int * to, const V * from) { V v = *from; to[0] = v[0] + v[31]; }
void one(V * at) { V v = *at; v[3] = 99; *at = v; }
void table(V * to) { *to = lut[at]; }
void constant(V * to) { *to = (V) {7}; }
struct x4 { V v[4]; };
void wide(struct x4 * to, const struct x4 * from) { *to = *from; }
void again(volatile V * p) { V v = *p; *p = v; }
int  local(int k) {
    int t[64] __attribute__((aligned(128)));
    for (int i = 0; i < 64; i++) t[i] = i * k;
    V v = *(V *) (t + (at & 32));
    return v[1];
}
void plain(int * p, char * c, double * d) { *p += 1; c[1] = c[0]; *d = 0.5; }
uint8_t * input(void) { return data; }
"""

DRIVER = """\
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
rt = ctypes.CDLL(sys.argv[2] + "/libcdsprpc.so")
lib.input.restype = ctypes.c_void_p
noted = (ctypes.c_char * 65536).in_dll(rt, "noted")
src = lib.input()
out = ctypes.addressof((ctypes.c_char * 1024).in_dll(lib, "out"))
lib.fill()
def base(a):
    return src if src <= a < src + 1024 else out if out <= a < out + 1024 else 0
def run(name, *args):
    noted.value = b""
    got = getattr(lib, name)(*(ctypes.c_void_p(a) for a in args))
    said = "; ".join(sorted(filter(None, noted.value.decode().split("\\n"))))
    words = (ctypes.c_uint8 * 1024).from_address(out)
    print(name, *(a - base(a) for a in args), "->",
          [words[i] for i in (0, 4, 128, 132, 256)], "|", said)
    ctypes.memset(out, 0, 1024)
    return got
"""

CALLS = """\
run("copy", out, src)
run("copy", out + 5, src + 128 + 77)
run("both", out + 128 + 4, src + 1)
run("loose", out + 2, src + 130)
run("lanes", out + 4, src + 128 + 64)
run("one", out + 3)
run("table", out)
run("constant", out + 127)
run("wide", out + 8, src + 4)
run("again", out + 9)
print(lib.local(3))
run("local", 3)
run("plain", src, src + 64, src + 128)
"""


@pytest.fixture(params=CLANGS or [None])
def clang(request: pytest.FixtureRequest) -> str | None:
    return request.param


def ran(toolchain: Toolchain, tmp_path: Path, clang: str | None, *, checked: bool) -> list[str]:
    """What the calls did, a line each."""
    made = toolchain(checked=checked, clang=clang)
    (tmp_path / "k.c").write_text(KERNEL)
    (tmp_path / "drive.py").write_text(DRIVER + CALLS)
    argv = [
        hexagon_clang(made),
        "-mv73",
        "-mhvx=v73",
        "-O2",
        "-Wall",
        "-Werror",
        "-shared",
        "k.c",
        "-o",
        "k.so",
    ]
    subprocess.run(argv, cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "drive.py", "./k.so", str(made.lib)],
        cwd=tmp_path,
        env={"LD_LIBRARY_PATH": str(made.lib)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


# address of the data, what was written where
DID = [
    "copy 0 0 -> [0, 1, 0, 0, 0]",
    "copy 5 205 -> [32, 33, 0, 0, 0]",
    "both 132 1 -> [0, 0, 0, 1, 32]",
    "loose 2 130 -> [0, 33, 64, 0, 0]",
    "lanes 4 192 -> [0, 95, 0, 0, 0]",
    "one 3 -> [0, 0, 0, 0, 0]",
    "table 0 -> [1, 2, 0, 0, 0]",
    "constant 127 -> [7, 0, 0, 0, 0]",
    "wide 8 4 -> [0, 0, 31, 32, 63]",
    "again 9 -> [0, 0, 0, 0, 0]",
    "3",
    "local 3 -> [0, 0, 0, 0, 0]",
    "plain 0 64 128 -> [0, 0, 0, 0, 0]",
]


def test_the_address_is_truncated(toolchain: Toolchain, tmp_path: Path, clang: str | None) -> None:
    lines = ran(toolchain, tmp_path, clang, checked=False)
    assert [line.split(" |")[0] for line in lines] == DID
    assert all(line.rstrip().endswith("|") for line in lines if "->" in line)


def test_checked_hears_of_each_access_once(
    toolchain: Toolchain, tmp_path: Path, clang: str | None
) -> None:
    lines = ran(toolchain, tmp_path, clang, checked=True)
    assert [line.split(" |")[0] for line in lines] == DID
    heard = {}
    for line in lines:
        if " -> " in line:
            heard[line.split(" -> ")[0]] = line.split("|")[1].strip()
    assert heard == {
        "copy 0 0": "vld 0; vst 0",
        "copy 5 205": "vld 205; vst 5",
        "both 132 1": "vld 1; vld 129; vst 132; vst 260",
        "loose 2 130": "ldN 130 128; stN 2 128",
        "lanes 4 192": "st4 4; vld 192",
        "one 3": "vld 3; vst 3",
        "table 0": heard["table 0"],  # where lut lies is the compiler's business
        "constant 127": "vst 127",
        "wide 8 4": "",  # a call of memcpy
        "again 9": "vld 9; vst 9",
        "local 3": "",
        "plain 0 64 128": "ld1 64; ld4 0; st1 65; st4 0; st8 128",
    }
    assert re.fullmatch(r"vld \d+; vst 0", heard["table 0"])
