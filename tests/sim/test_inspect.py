"""What is read from Hexagon assembly: packets, loops, stack accesses, promotions, divisions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hexpatch.errors import HexpatchError
from hexpatch.sim import inspect as looking
from hexpatch.sim.inspectasm import Function, functions

KERNEL = """\
	.file	"k.c"
	.file	1 "/src" "htp/k.c" md5 0x00
	.file	2 "/src" "htp/k.h"
	.file	3 "/src" "htp/l.h"
	.type	kernel,@function
kernel:                                 // @kernel
.Lfunc_begin0:
	.loc	1 10 0                          // k.c:10:0
// %bb.0:
	{
		r29 = add(r29,#-64)
		allocframe(#128)
	}
	{
		memd(r29+#8) = r17:16; loop1(.LBB0_1,r0)
	}                                       // 8-byte Folded Spill
.LBB0_1:                                // =>This Loop Header: Depth=1
	.loc	3 2 0
	{
		nop
	}
	.loc	1 20 5
	{
		r5 = add(r30,#-256)
		loop0(.LBB0_2,#16)
	}
.LBB0_2:                                //   Parent Loop BB0_1 Depth=1
	.loc	2 7 9
	{
		v0 = vmem(r1++#1)
		vmem(r5+#1) = v0
	}                                       // 128-byte Folded Spill
	{
		v1 = vmemu(r29+#0)
		r4 = memw(r2+#4)
		memw(r29+#4) = r4.new
	} :endloop0
.LBB0_3:
	{
		r5 = #0
		call __hexagon_udivsi3
	}
	{
		vmem(r5+#0) = v1
	} :endloop1
// %bb.4:
	{
		r17:16 = memd(r29+#8)
		r31:30 = dealloc_return(r30):raw
	}
.Lfunc_end0:
	.size	kernel, .Lfunc_end0-kernel
	.type	second,@function
second:
	{
		p0 = cmp.eq(r0,#0); if (p0.new) jump:nt .LBB1_3
	}
.LBB1_1:
	{
		call __extendsfdf2
	}
	{
		r1:0 = dfadd(r1:0,r3:2)
		p0 = cmp.gt(r4,#0); if (!p0.new) jump:t .LBB1_4
	}
	{
		jump .LBB1_1
	}
.LBB1_3:
	{
		callr r5
	}
	{
		jumpr r31
	}
.LBB1_4:                                // out of the way: no loop
	{
		call tanhf
		jump .LBB1_3
	}
"""


def test_a_kernel() -> None:
    kernel, second = functions(KERNEL)
    assert (kernel.name, kernel.where, kernel.packets, kernel.stack) == ("kernel", "k.c:10", 9, 192)
    assert (kernel.vector_stack, kernel.vector_stack_in_loops) == (2, 2)
    assert kernel.scalar_stack_in_loops == 1
    assert kernel.divides_in_loops == {"__hexagon_udivsi3": 1}
    assert kernel.promotions == {}
    outer, inner = kernel.loops
    assert (outer.where, outer.depth, outer.inner, outer.packets) == ("k.c:20", 1, False, 6)
    assert (outer.vector_stack, outer.calls) == (2, {"__hexagon_udivsi3": 1})
    assert (inner.where, inner.depth, inner.inner, inner.packets) == ("k.h:7", 2, True, 2)
    assert (inner.instructions, inner.vector_stack, inner.scalar_stack) == (5, 2, 1)
    assert second.promotions == {"__extendsfdf2": 1, "dfadd": 1}
    assert second.promotions_in_loops == {"__extendsfdf2": 1, "dfadd": 1}
    (loop,) = second.loops
    assert (loop.packets, loop.depth, loop.inner) == (3, 1, True)
    assert loop.calls == {"__extendsfdf2": 1}
    assert (second.where, second.stack) == ("", 0)


def one(body: str) -> Function:
    """A function of these lines."""
    lines = "".join(f"{line}\n" for line in body.split("\n"))
    (made,) = functions(f"\t.type\tf,@function\nf:\n{lines}")
    return made


def test_a_branch_back_from_cold_code_is_no_loop() -> None:
    made = one(
        "\t{\n\t\tif (p0) jump:nt .LBB0_9\n\t}\n.LBB0_1:\n\t{\n\t\tvmem(r29+#0) = v0\n\t}\n"
        "\t{\n\t\tjumpr r31\n\t}\n.LBB0_9:\n\t{\n\t\tjump .LBB0_1\n\t}"
    )
    assert made.loops == ()
    assert (made.vector_stack, made.vector_stack_in_loops) == (1, 0)


def test_a_jump_table_can_make_a_loop() -> None:
    body = (
        ".LBB0_1:\n\t{\n\t\tr1 = memw(r29+#4)\n\t\tjumpr r2\n\t}\n"
        ".LBB0_2:\n\t{\n\t\tjumpr r31\n\t}\n"
        ".LJTI0_0:\n\t.word\t.LBB0_1-.LJTI0_0\n\t.word\t.LBB0_2-.LJTI0_0"
    )
    (loop,) = one(body).loops
    assert (loop.packets, loop.scalar_stack) == (1, 1)


def test_registers_leave_the_frame_when_written() -> None:
    made = one(
        "\t{\n\t\tr3 = r29\n\t\tr7:6 = combine(r1,r0)\n\t}\n\t{\n\t\tr4 = add(r3,##1024)\n\t}\n"
        "\t{\n\t\tv0 = vmem(r4+#0)\n\t}\n\t{\n\t\tr4 = memw(r0+#0)\n\t}\n"
        "\t{\n\t\tv0 = vmem(r4+#0)\n\t}\n"
        "\t{\n\t\tif (p0) r3 = add(r0,#4)\n\t}\n\t{\n\t\tvmem(r3+#1) = v0\n\t}"
    )
    assert made.vector_stack == 1


def test_inline_assembly_and_hmx_packets() -> None:
    made = one(
        "\t//APP\n\t{\n    activation.hf = mxmem(r1, r0)\n    weight.hf = mxmem(r2, r0)\n}\n"
        "mxmem(r3, r4):after.hf = acc\n\n\t//NO_APP\n\t{\n\t\tnop\n\t}"
    )
    assert made.packets == 3


# -- compiled ---------------------------------------------------------------------------------

SOURCE = """\
#include <stdint.h>
#include <hexagon_types.h>
#include <hexagon_protos.h>
#include <HAP_farf.h>
#include <qurt.h>
#include "htp_iface.h"
static inline HVX_Vector sum(HVX_Vector a, HVX_Vector b) { return Q6_Vw_vadd_VwVw(a, b); }
void clean(HVX_Vector * restrict d, const HVX_Vector * restrict s, int n);
void clean(HVX_Vector * restrict d, const HVX_Vector * restrict s, int n) {
    for (int i = 0; i < n; i++) d[i] = sum(d[i], s[i]);
}
void spills(HVX_Vector * restrict d, const HVX_Vector * restrict s, int n);
void spills(HVX_Vector * restrict d, const HVX_Vector * restrict s, int n) {
    HVX_Vector a[48];
    for (int k = 0; k < 48; k++) a[k] = s[k];
    for (int i = 0; i < n; i++) {
#pragma unroll
        for (int k = 0; k < 48; k++) a[k] = sum(a[k], Q6_Vw_vasl_VwR(a[(k + 7) % 48], i));
    }
    for (int k = 0; k < 48; k++) d[k] = a[k];
}
float promotes(const float * x, int n);
float promotes(const float * x, int n) {
    float s = 0;
    for (int i = 0; i < n; i++) s += x[i] * 1.1;
    return s;
}
void matrix(void * a, void * w);
void matrix(void * a, void * w) {
    asm volatile("{ activation.hf = mxmem(%0, %1)\\n weight.hf = mxmem(%2, %1) }"
                 :: "r"(a), "r"(2047), "r"(w));
}
"""


def hexagon() -> bool:
    try:
        looking.find_clang(None)
    except HexpatchError:
        return False
    return True


@pytest.mark.sim
@pytest.mark.skipif(not hexagon(), reason="no clang with the Hexagon target")
@pytest.mark.parametrize("arch", [73, 79])
def test_a_real_compile(tmp_path: Path, arch: int) -> None:
    htp = tmp_path / "ggml" / "src" / "ggml-hexagon" / "htp"
    htp.mkdir(parents=True)
    (htp / "k.c").write_text(SOURCE)
    (htp / "bad.c").write_text("int f(void) {\n return Q6_R_nothing_R(1);\n}\n")
    (htp / "htp_iface.idl").write_text(
        "interface htp_iface : remote_handle64 { AEEResult stop(); };\n"
    )
    bad, *found = looking.inspect(tmp_path, arch=arch)
    assert (bad.file, bad.name) == ("bad.c", "")
    assert "bad.c:2:9: error: call to undeclared function 'Q6_R_nothing_R'" in bad.error
    by_name = {f.name: f for f in found}
    assert set(by_name) == {"clean", "spills", "promotes", "matrix"}
    clean, spills, promotes = by_name["clean"], by_name["spills"], by_name["promotes"]
    assert clean.vector_stack == 0
    assert clean.where == "k.c:10"
    assert {loop.where for loop in clean.loops} <= {"k.c:7", "k.c:10"}
    assert spills.vector_stack_in_loops > 20
    assert spills.stack > 20 * 128
    assert clean.promotions == spills.promotions == {}
    assert promotes.promotions_in_loops
    assert by_name["matrix"].packets >= 2
    (only,) = looking.inspect(htp / "k.c", arch=arch, functions="^cle")
    assert only == clean
    assert json.loads(json.dumps(only.as_dict()))["loops"][0]["depth"] == 1


def test_errors_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looking.find_clang.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HexpatchError, match="no clang here has the Hexagon target") as bad:
        looking.inspect(tmp_path, arch=73)
    assert "clang-22" in str(bad.value.hint)
    with pytest.raises(HexpatchError, match="clang-99 lacks the Hexagon target"):
        looking.inspect(tmp_path, arch=73, clang="clang-99")
    monkeypatch.setattr(looking, "find_clang", lambda wanted: "clang")
    with pytest.raises(HexpatchError, match="no C sources"):
        looking.inspect(tmp_path, arch=73)
