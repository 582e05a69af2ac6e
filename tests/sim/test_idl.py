"""The stand-in for qaic: what it reads and writes, and that both sides understand each other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from toolchain_lab import CLANGS

from hexpatch.sim import idl, idlread, root

INCS = root.SDK / "incs"

# Upstream's, newest first: start, mmap and the last methods changed.
NEWEST = """\
// FastRPC IDL interface for GGML HTP

#ifndef HTP_IDL
#define HTP_IDL

#include "AEEStdDef.idl"
#include "remote.idl"

struct htp_iface_pmu_conf {
    uint32 events[8];
};

interface htp_iface : remote_handle64 {
    AEEResult start(in uint32 sess_id, in uint64 dsp_queue_id, in uint32 n_hvx, in uint32 n_hmx, \
in uint64 max_vmem);
    AEEResult stop();
    AEEResult mmap(in uint32 fd, in uint64 size);
    AEEResult munmap(in uint32 fd);
    AEEResult profiler(in uint32 mode, in htp_iface_pmu_conf pmu);
    AEEResult etm(in uint32 enable);
    AEEResult hwinfo(rout uint32 n_threads, rout uint32 n_hvx, rout uint32 n_hmx, \
rout uint64 vtcm_size);
};

#endif /* HTP_IDL */
"""
OLDEST = """\
interface htp_iface : remote_handle64 {
    AEEResult start(in uint32 sess_id, in uint64 dsp_queue_id, in uint32 n_hvx);
    AEEResult stop();
    AEEResult enable_etm();
    AEEResult disable_etm();
};
"""


def test_reads_upstreams() -> None:
    made = idlread.parse(NEWEST)
    assert made.name == "htp_iface"
    assert made.structs == {"htp_iface_pmu_conf": ["uint32 events[8];"]}
    assert [(m.number, m.name, len(m.params)) for m in made.methods] == [
        (2, "start", 5),
        (3, "stop", 0),
        (4, "mmap", 2),
        (5, "munmap", 1),
        (6, "profiler", 2),
        (7, "etm", 1),
        (8, "hwinfo", 4),
    ]
    assert [m.name for m in idlread.parse(OLDEST).methods] == [
        "start",
        "stop",
        "enable_etm",
        "disable_etm",
    ]


def test_prototypes_are_those_that_upstream_implements() -> None:
    text = idl.header(idlread.parse(NEWEST))
    for line in (
        "AEEResult htp_iface_open(const char * uri, remote_handle64 * _h);",
        "AEEResult htp_iface_close(remote_handle64 _h);",
        "AEEResult htp_iface_start(remote_handle64 _h, uint32 sess_id, uint64 dsp_queue_id, "
        "uint32 n_hvx, uint32 n_hmx, uint64 max_vmem);",
        "AEEResult htp_iface_stop(remote_handle64 _h);",
        "AEEResult htp_iface_profiler(remote_handle64 _h, uint32 mode, "
        "const htp_iface_pmu_conf * pmu);",
        "AEEResult htp_iface_hwinfo(remote_handle64 _h, uint32 * n_threads, uint32 * n_hvx, "
        "uint32 * n_hmx, uint64 * vtcm_size);",
        "typedef struct htp_iface_pmu_conf htp_iface_pmu_conf;",
    ):
        assert line in text.split("\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("module x { };", "x.idl:1: 'module' not understood"),
        ("interface t {\n};", "x.idl:1: only interfaces that inherit remote_handle64"),
        ("interface t : other { };", "'other' not understood; 'remote_handle64' expected"),
        ("\ninterface t : remote_handle64 {\n AEEResult f(out long x);\n};", "x.idl:3: 'out' not"),
        ("interface t : remote_handle64 { AEEResult f(in widget x); };", "type widget not known"),
        ("interface t : remote_handle64 { void f(); };", "result void not known"),
        ("interface t : remote_handle64 { AEEResult f(rout string s); };", "only `in string`"),
        ("interface t : remote_handle64 { AEEResult f() };", "'}' not understood; ';' expected"),
        ("interface t : remote_handle64 { AEEResult f();", "'end of file' not understood"),
        ("struct s { uint32 x };", "';' expected"),
        ("struct s { uint32 x; };", "no interface"),
        ("interface t : remote_handle64 { AEEResult f(in uint32 = 1); };", "'=' not understood"),
        ("interface t : remote_handle64 { };\ninterface u : remote_handle64 { };", "a second"),
        (
            "interface t : remote_handle64 {"
            + "".join(f"AEEResult f{i}();" for i in range(31))
            + "};",
            "more than 30 methods",
        ),
    ],
)
def test_what_it_does_not_know_is_said(text: str, says: str) -> None:
    with pytest.raises(idlread.IdlError) as bad:
        idlread.parse(text, "x.idl")
    assert says in str(bad.value)
    assert str(bad.value).startswith("x.idl:")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.idl").write_text(OLDEST)
    assert idl.main([str(tmp_path / "t.idl"), str(tmp_path)]) == 0
    assert {p.name for p in tmp_path.glob("t*")} == {"t.idl", "t.h", "t_stub.c", "t_skel.c"}
    (tmp_path / "t.idl").write_text("enum { };")
    assert idl.main([str(tmp_path / "t.idl"), str(tmp_path)]) == 1
    assert "t.idl:1: 'enum' not understood" in capsys.readouterr().err


RICH = """\
struct point { short x; long long y[2]; };
interface rich : remote_handle64 {
    AEEResult mixed(in octet a, in uint64 b, inrout uint32 c, rout point p, in point q);
    AEEResult data(in string name, in sequence<uint16> from, rout sequence<octet> to,
                   inrout sequence<long> both);
    long nothing();
};
"""
# The host's stub and the DSP's skeleton in one program; the call between them as in the runtime.
PROGRAM = """\
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "rich.h"

int rich_skel_handle_invoke(remote_handle64 h, uint32_t sc, remote_arg * pra);

#ifdef DSP
AEEResult rich_open(const char * uri, remote_handle64 * h) {
    printf("open %s\\n", uri);
    *h = 77;
    return 0;
}
AEEResult rich_close(remote_handle64 h) { printf("close %d\\n", (int) h); return 3; }
AEEResult rich_mixed(remote_handle64 h, uint8 a, uint64 b, uint32 * c, point * p, const point * q) {
    printf("mixed %d %d %llx %u %d\\n", (int) h, a, (unsigned long long) b, *c, (int) q->y[1]);
    *c += 1;
    *p = *q;
    p->x = -5;
    return 0;
}
AEEResult rich_data(remote_handle64 h, const char * name, const uint16 * from, int fromLen,
                    uint8 * to, int toLen, int32 * both, int bothLen) {
    printf("data %s %d:%d %d %d:%d\\n", name, fromLen, from[fromLen - 1], toLen, bothLen, both[0]);
    memset(to, 9, toLen);
    both[1] = both[0] * 2;
    return 0;
}
AEEResult rich_nothing(remote_handle64 h) { return 42; }
#else
int remote_handle64_open(const char * uri, remote_handle64 * h) {
    uint32_t   n = (uint32_t) strlen(uri) + 1;
    remote_arg pra[3] = { { .buf = { &n, sizeof(n) } }, { .buf = { (void *) uri, n } } };
    const int  rc = rich_skel_handle_invoke(0, REMOTE_SCALARS_MAKEX(0, 0, 2, 0, 0, 1), pra);
    *h = pra[2].h64;
    return rc;
}
int remote_handle64_close(remote_handle64 h) {
    return rich_skel_handle_invoke(h, REMOTE_SCALARS_MAKE(1, 0, 0), NULL);
}
int remote_handle64_invoke(remote_handle64 h, uint32_t sc, remote_arg * pra) {
    printf("sc %x\\n", sc);
    return rich_skel_handle_invoke(h, sc, pra);
}
int main(void) {
    remote_handle64 h = 0, direct = 0;
    assert(rich_open("file:///librich.so", &h) == 0);
    uint32 c = 6;
    point p, q = { 1, { 2, 3 } };
    assert(rich_mixed(h, 200, 0x123456789abcdefull, &c, &p, &q) == 0);
    printf("%u %d %d\\n", c, p.x, (int) p.y[1]);
    uint16 from[3] = { 1, 2, 65535 };
    uint8  to[5] = { 0 };
    int32  both[2] = { -21, 0 };
    assert(rich_data(h, "n", from, 3, to, 4, both, 2) == 0);
    printf("%d %d %d\\n", to[3], to[4], both[1]);
    printf("%d %d\\n", rich_nothing(h), rich_close(h));
    // what is malformed is refused, and open may answer into a buffer
    remote_arg none[4] = { { .buf = { NULL, 0 } } };
    printf("%d %d %d %d\\n", rich_skel_handle_invoke(h, REMOTE_SCALARS_MAKE(2, 0, 0), none),
           rich_skel_handle_invoke(h, REMOTE_SCALARS_MAKE(2, 1, 1), none),
           rich_skel_handle_invoke(h, REMOTE_SCALARS_MAKE(9, 0, 0), none),
           rich_skel_handle_invoke(h, REMOTE_SCALARS_MAKE(0, 0, 0), none));
    remote_arg pra[2] = { { .buf = { "uri", 4 } }, { .buf = { &direct, sizeof(direct) } } };
    printf("%d", rich_skel_handle_invoke(0, REMOTE_SCALARS_MAKE(0, 1, 1), pra));
    printf(" %d\\n", (int) direct);
}
#endif
"""


@pytest.mark.sim
@pytest.mark.skipif(not CLANGS, reason="no clang")
def test_both_sides_understand_each_other(tmp_path: Path) -> None:
    made = idlread.parse(RICH)
    (tmp_path / "rich.h").write_text(idl.header(made))
    (tmp_path / "rich_stub.c").write_text(idl.stub(made))
    (tmp_path / "rich_skel.c").write_text(idl.skel(made))
    (tmp_path / "program.c").write_text(PROGRAM)
    strict = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-std=gnu11"]
    strict += ["-fsanitize=undefined", "-fsanitize-trap=undefined"]
    # on the DSP the functions have the same names: one program needs others
    dsp = [f"-Drich_{m}=dsp_{m}" for m in ("open", "close", "mixed", "data", "nothing")]
    dsp += ["-D__hexagon__=1", "-DDSP"]
    objects = []
    for name, more in (("rich_stub", []), ("program", []), ("rich_skel", dsp), ("program", dsp)):
        out = f"{len(objects)}.o"
        argv = [CLANGS[-1], *strict, *more, f"-I{INCS}", f"-I{INCS / 'stddef'}", "-c", f"{name}.c"]
        subprocess.run([*argv, "-o", out], cwd=tmp_path, check=True)
        objects.append(out)
    subprocess.run([CLANGS[-1], *objects, "-o", "program"], cwd=tmp_path, check=True)
    done = subprocess.run(["./program"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "open file:///librich.so",
        "sc 2010100",
        "mixed 77 200 123456789abcdef 6 3",
        "7 -5 3",
        "sc 3040200",
        "data n 3:65535 4 2:-21",
        "9 0 -42",
        "sc 4000000",
        "close 77",
        "42 3",
        "14 14 14 14",
        "open uri",
        "0 77",
    ]
