"""asm statements: found in preprocessed C, taken apart, turned into calls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hexpatch.sim import asmhmx, asmrules, asmtext
from hexpatch.sim.asmtext import AsmError

HERE = Path(__file__).parent
SITES = (HERE / "asm-sites.txt").read_text().splitlines()


def calls(text: str, outs: int = 0, ins: int = 0) -> list[str]:
    """The calls that an asm text becomes; its operands are o0.. and i0.."""
    outputs = ", ".join(f'"=r"(o{i})' for i in range(outs))
    inputs = ", ".join(f'"r"(i{i})' for i in range(ins))
    quoted = text.replace("\n", "\\n")
    block = asmrules.rewrite(
        f'void f() {{ asm volatile("{quoted}" : {outputs} : {inputs}); }}', count=True
    )
    inner = block[block.index("do {") + 4 : block.index("} while (0)")]
    parts = [part.strip() for part in inner.split(";")]
    plumbing = re.compile(r"|uintptr_t .*|\(void\) sim_\d+|\w+ = \(__typeof__.*")
    return [part for part in parts if not plumbing.fullmatch(part)]


def fails(text: str, outs: int = 0, ins: int = 0) -> str:
    with pytest.raises(AsmError) as bad:
        calls(text, outs, ins)
    return bad.value.message


# -- finding and parsing ----------------------------------------------------------------------


def test_finds_statements_and_leaves_the_rest_alone() -> None:
    text = """# 1 "/usr/include/x.h" 1 3
extern int sys(void) __asm__ ("" "__isoc99");
static void in_system(void) { __asm__ ("nop"); }
# 7 "kernel.h" 2
int label(void) asm("other");
register int r asm("r5");
const char * s = "asm volatile(\\"nop\\")"; char c = '"';
void f(int x) {
    int y __asm__("r1") = 0;
    if (x) asm("nop"); else __asm__ __volatile__ ("syncht" ::: "memory");
    do asm goto inline ("barrier" : : : ); while (0);
}
"""
    found = list(asmtext.statements(text))
    assert [(s.template, s.path, s.line) for s in found] == [
        ("nop", "kernel.h", 12),
        ("syncht", "kernel.h", 12),
        ("barrier", "kernel.h", 13),
    ]
    assert found[1].clobbers == ("memory",)


def test_takes_a_statement_apart() -> None:
    text = r"""
asm volatile("a\n" /**/ "b\t\x41\101\\" : [out] "=&r"(p->a[f(1, 2)]), "+r" ( y )
  : "r"((x) ? (a, b) : c), "0"(1), [n]"i"(sizeof("):,")) : "v0", "memory");""".replace("/**/", "")
    (one,) = asmtext.statements(text)
    assert one.template == "a\nb\tAA\\"
    assert [(o.constraint, o.expression, o.name) for o in one.outputs] == [
        ("=&r", "p->a[f(1, 2)]", "out"),
        ("+r", " y ".strip(), ""),
    ]
    assert [(o.constraint, o.expression, o.name) for o in one.inputs] == [
        ("r", "(x) ? (a, b) : c", ""),
        ("0", "1", ""),
        ("i", 'sizeof("):,")', "n"),
    ]
    assert one.clobbers == ("v0", "memory")


def test_lines_stay_where_they_were() -> None:
    text = '# 5 "k.c"\nvoid f() {\nasm volatile(\n"syncht"\n:::\n"memory");\nint bad;\n}\n'
    made = asmrules.rewrite(text, count=False)
    assert [i for i, line in enumerate(made.split("\n")) if "int bad" in line] == [6]
    # markers inside the statement (a macro's arguments on several lines)
    marked = '# 5 "k.c"\nvoid f() {\nasm volatile("syncht"\n# 7 "k.c"\n);\nint bad;\n}\n'
    made = asmrules.rewrite(marked, count=False)
    before = made[: made.index("int bad")]
    number, rest = re.findall(r'# (\d+) "k.c"\n(?!.*# \d)(.*)', before, re.S)[-1]
    assert int(number) + rest.count("\n") == 8


# -- rules ------------------------------------------------------------------------------------

PLAIN = {
    ("%0 = dmpoll", 1, 0): ["sim_0 = sim_dmpoll()"],
    ("%0=dmwait", 1, 0): ["sim_0 = sim_dmwait()"],
    ("%0 = dmpause", 1, 0): ["sim_0 = sim_dmpause()"],
    (" dmstart(%0)", 0, 1): ["sim_dmstart((void *) sim_0)"],
    (" dmlink(%0, %1)", 0, 2): ["sim_dmlink((void *) sim_0, (void *) sim_1)"],
    ("dmresume(%0)", 0, 1): ["sim_dmresume((void *) sim_0)"],
    (" pause(#255)\n", 0, 0): ["sim_pause()"],
    (" %0 = c15:14\n", 1, 0): ["sim_0 = sim_cycles()"],
    ("%0 = upcycle", 1, 0): ["sim_0 = sim_cycles()"],
    (" %0 = c19:18\n", 1, 0): ["sim_0 = sim_packets()"],
    **{(f"%0 = upmucnt{i}", 1, 0): [f"sim_0 = sim_pmu({i})"] for i in range(8)},
    ("syncht", 0, 0): ["__sync_synchronize()"],
    ("barrier", 0, 0): ["__sync_synchronize()"],
    ("isync", 0, 0): ["__sync_synchronize()"],
    ("release(%0):at", 0, 1): ["__atomic_thread_fence(3)"],
    ("release(%0):st", 0, 1): ["__atomic_thread_fence(3)"],
    ("l2fetch(%0, %1)", 0, 2): ["(void) (sim_self.n[SIM_l2fetch] += 1)"],
    ("dcfetch(%0)", 0, 1): ["(void) 0"],
    ("dcfetch(%0+#64)", 0, 1): ["(void) 0"],
    ("dccleana(%0)", 0, 1): ["(void) 0"],
    ("dcinva(%0)", 0, 1): ["(void) 0"],
    ("dccleaninva(%0)", 0, 1): ["(void) 0"],
    ("l2cleaninva(%0)", 0, 1): ["(void) 0"],
    ("vmem(%0+#0):scatter_release\nv0 = vmem(%0+#0)\n", 0, 1): [
        "(void) (sim_self.n[SIM_hvx_st] += 1)",
        "(void) (sim_self.n[SIM_hvx_ld] += 1)",
    ],
    ("%0 = %1", 1, 1): ["sim_0 = sim_1"],
    ("nop", 0, 0): ["(void) 0"],
}


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case[0].strip())
def test_plain_rules(case: tuple[str, int, int]) -> None:
    assert calls(*case) == PLAIN[case]


def test_every_rule_has_a_case() -> None:
    used = set()
    for text, _, _ in PLAIN:
        for line in text.split("\n"):
            short = re.sub(r"\s+", "", line)
            used |= {p for pattern, p, _ in asmrules._RULES if pattern.fullmatch(short)}
    assert used == {pattern for pattern, _ in asmrules.RULES}


@pytest.mark.parametrize("site", SITES, ids=range(len(SITES)))
def test_upstreams_sites_are_all_known(site: str) -> None:
    made = asmrules.rewrite(f"void f(void) {{ {site} }}", count=True)
    assert "sim_" in made or "__sync" in made or "fence" in made
    assert "asm" not in made


def test_operands_are_read_once_and_written_after() -> None:
    text = """void f() { asm("%[o] = %1\\n %0 = dmpoll" : [o] "=r"(a[i]) : "r"(next(p))); }"""
    made = asmrules.rewrite(text, count=False)
    assert made.count("next(p)") == 1
    assert made.index("sim_dmpoll") < made.index("a[i] = (__typeof__(a[i])) sim_0")
    both = asmrules.rewrite('void f() { asm("%0=dmpoll" : "+r"(x) : "0"(y)); }', count=False)
    assert "uintptr_t sim_0 = (uintptr_t) (x)" in both
    assert "sim_0 = (uintptr_t) (y);" in both


def test_the_fast_flavour_does_not_count() -> None:
    text = 'void f() { asm("l2fetch(%0,%1)" :: "r"(a), "r"(b)); }'
    assert "sim_self" not in asmrules.rewrite(text, count=False)
    assert "sim_self" in asmrules.rewrite(text, count=True)


# -- HMX --------------------------------------------------------------------------------------

# text with r0..r3 as address and range, its words: the known pairs
WORDS = {
    "{activation.hf=mxmem(r0,r1):deep; weight.hf=mxmem(r2,r3)}": (0x920041E2, 0x9202E3EF),
    "{activation.hf=mxmem(r0,r1); weight.hf=mxmem(r2,r3)}": (0x920041E4, 0x9202E3EF),
    "{activation.ub=mxmem(r0,r1):deep; weight.b=mxmem(r2,r3)}": (0x920041E0, 0x9202E3E0),
    "bias=mxmem2(r0)": (0x9200C3FE,),
    "bias=mxmem(r0)": (0x9200C3FF,),
    "mxclracc": (0xA6E0C011,),
    "mxclracc.hf": (0xA6E0C013,),
    "mxswapacc": (0xA6E0C014,),
    "mxmem(r0,r1):after.hf=acc": (0xA6E0E104,),
    "mxmem(r0,r1):after.uh=acc:2x1": (0xA6E0E10B,),
    "mxmem(r0,r1):after:retain.uh=acc:2x1": (0xA6E0E10F,),
    "mxmem(r0,r1):after:sat.uh=acc:2x1": (0xA6E0E10A,),
    "mxmem(r0,r1):after:cm:sat.ub=acc": (0xA6E0C105,),
    "cvt.ub=acc(r0)": (0xA6E0D710,),
    "cvt.uh=acc(r0):2x2": (0xA6E0D910,),
    "mxmem(r0,r1)=cvt": (0xA6E0C118,),
}
SETUP = "r0=%0\nr1=%1\nr2=%2\nr3=%3\n"


@pytest.mark.parametrize("text", WORDS)
def test_words_and_texts_are_the_same_instruction(text: str) -> None:
    words = "\n".join(f".word {word:#x}" for word in WORDS[text])
    assert calls(SETUP + words, 0, 4) == calls(SETUP + text, 0, 4)
    assert len(calls(SETUP + text, 0, 4)) == 5


def test_tables_agree_with_the_encoding() -> None:
    """No op code stands for two instructions, and all of the two forms' numbers are there."""
    activation, weight = asmhmx.ACTIVATION, asmhmx.WEIGHT
    assert len(set(activation.values())) == len(activation) == 20
    assert len(set(weight.values())) == len(weight) == 60
    assert len(set(asmhmx.STORE.values())) == len(asmhmx.STORE)
    ub = {op for w, op in asmhmx.STORE.values() if not w}
    rest = {op for w, op in asmhmx.STORE.values() if w}
    assert ub == set(range(0x10))
    assert rest == {*range(0x10), 0x12, 0x13, 0x16, 0x17, 0x1A, 0x1B, 0x1E, 0x1F}


@pytest.mark.parametrize(
    ("kind", "mods", "op"),
    [
        *(
            ("ub", m, o)
            for m, o in zip(
                ("", ":above", ":single", ":dilate", ":deep"),
                (0xEC, 0xEE, 0xF0, 0xE8, 0xE0),
                strict=True,
            )
        ),
        *(
            ("ub", m, o)
            for m, o in zip(
                (":cm", ":above:cm", ":single:cm", ":dilate:cm", ":deep:cm"),
                (0xED, 0xEF, 0xF1, 0xE9, 0xE1),
                strict=True,
            )
        ),
        *(
            ("hf", m, o)
            for m, o in zip(
                ("", ":above", ":single", ":dilate", ":deep"),
                (0xE4, 0xE6, 0xF8, 0xFA, 0xE2),
                strict=True,
            )
        ),
        *(
            ("f8", m, o)
            for m, o in zip(
                ("", ":above", ":single", ":dilate", ":deep"),
                (0xE5, 0xE7, 0xF9, 0xFB, 0xE3),
                strict=True,
            )
        ),
    ],
)
def test_activations(kind: str, mods: str, op: int) -> None:
    text = f"{{ activation.{kind} = mxmem(%0, %1){mods} ; weight.b = mxmem(%2, %1) }}"
    assert calls(text, 0, 3) == [f"sim_hmx_load({op:#x}, sim_0, sim_1, 0xe0, sim_2, sim_1)"]


@pytest.mark.parametrize(
    ("text", "op"),
    [
        ("weight.b=mxmem(%2,%3):after", 0xE9),
        ("weight.sm=mxmem(%2,%3):dilate", 0xD3),
        ("weight.n=mxmem(%2,%3):deep", 0xEE),
        ("weight.n=mxmem(%2,%3):2x", 0x46),
        ("weight.n=mxmem(%2,%3):2x:deep", 0x43),
        ("weight.n=mxmem(%2,%3):after:2x", 0x45),
        ("weight.c=mxmem(%2,%3):drop", 0xFA),
        ("weight.sc=mxmem(%2,%3)", 0xF0),
        ("weight.ubit=mxmem(%2,%3):single", 0xC5),
        ("weight.sbit=mxmem(%2,%3)", 0xE4),
        ("weight.hf=mxmem(%2,%3):deep", 0xF4),
        ("weight.f8=mxmem(%2,%3):dilate", 0x4C),
    ],
)
def test_weights(text: str, op: int) -> None:
    both = f"{{ activation.ub=mxmem(%0,%1):deep\n {text}\n }}\n"
    assert calls(both, 0, 4) == [f"sim_hmx_load(0xe0, sim_0, sim_1, {op:#x}, sim_2, sim_3)"]
    swapped = f"{{ {text} ; activation.ub=mxmem(%0,%1):deep }}"
    assert calls(swapped, 0, 4) == calls(both, 0, 4)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("mxmem(%0,%1):before:sat.ub=acc", "op(0, 0x0"),
        ("mxmem(%0,%1):before:cm:sat.ub=acc", "op(0, 0x1"),
        ("mxmem(%0,%1):before.ub=acc", "op(0, 0x2"),
        ("mxmem(%0,%1):after:retain:cm.ub=acc", "op(0, 0xf"),
        ("mxmem(%0,%1):cm:after:retain.ub=acc", "op(0, 0xf"),
        ("mxmem(%0,%1):before.hf=acc", "op(1, 0x0"),
        ("mxmem(%0,%1):before:pos.hf=acc", "op(1, 0x1"),
        ("mxmem(%0,%1):before:retain.hf=acc", "op(1, 0x8"),
        ("mxmem(%0,%1):before:retain:pos.hf=acc", "op(1, 0x5"),
        ("mxmem(%0,%1):after:pos.hf=acc", "op(1, 0x9"),
        ("mxmem(%0,%1):after:retain.hf=acc", "op(1, 0xc"),
        ("mxmem(%0,%1):after:retain:pos.hf=acc", "op(1, 0xd"),
        ("mxmem(%0,%1):before:sat.uh=acc:2x1", "op(1, 0x2"),
        ("mxmem(%0,%1):before:retain.uh=acc:2x1", "op(1, 0x7"),
        ("mxmem(%0,%1):after:retain:sat.uh=acc:2x1", "op(1, 0xe"),
        ("mxmem(%0,%1):before.uh=acc:2x2", "op(1, 0x13"),
        ("mxmem(%0,%1):after:retain:sat.uh=acc:2x2", "op(1, 0x1e"),
        ("mxmem(%0,%1):cm=cvt", "op(0, 0x19"),
        ("mxmem(%0,%1):2x2=cvt", "op(0, 0x1a"),
        ("mxmem(%0,%1):deep=cvt", "op(0, 0x1b"),
        ("mxmem(%0,%1):cm:deep=cvt", "op(0, 0x1c"),
        ("mxmem(%0,%1).f8=cvt", "op(0, 0x1d"),
        ("mxmem(%0,%1):deep.f8=cvt", "op(0, 0x1e"),
    ],
)
def test_stores(text: str, call: str) -> None:
    assert calls(text, 0, 2) == [f"sim_hmx_{call}, sim_0, sim_1)"]


def test_other_hmx_instructions() -> None:
    assert calls("bias = mxmem2(%0)", 0, 1) == ["sim_hmx_bias(0xfe, sim_0)"]
    assert calls("mxmem(%0) = bias", 0, 1) == ["sim_hmx_cvt(0, sim_0)"]
    assert calls("mxmem2(%0) = bias", 0, 1) == ["sim_hmx_op(0, 0x16, sim_0, 0)"]
    assert calls("acc = mxshl(acc, #16)") == ["sim_hmx_op(0, 0x17, 0, 0)"]
    assert calls("mxswapacc.hf") == ["sim_hmx_op(0, 0x15, 0, 0)"]
    subs = {"ub": 23, "uh:2x1": 24, "uh:2x2": 25, "hf": 26, "f8": 27, "ub:sc0": 28, "ub:sc1": 29}
    for name, sub in subs.items():
        kind, _, mod = name.partition(":")
        text = f"cvt.{kind} = acc(%0)" + (f":{mod}" if mod else "")
        assert calls(text, 0, 1) == [f"sim_hmx_cvt({sub}, sim_0)"]


def test_packets_stay_apart() -> None:
    pair = "{{ activation.hf=mxmem({},%0); weight.hf=mxmem({},%0) }}\n"
    found = calls(pair.format("%1", "%2") + pair.format("%3", "%4") + "mxclracc.hf", 0, 5)
    assert [call[:12] for call in found] == ["sim_hmx_load", "sim_hmx_load", "sim_hmx_op(0"]
    assert found[0].endswith("sim_2, sim_0)")
    assert found[1].endswith("sim_4, sim_0)")


# -- errors -----------------------------------------------------------------------------------


def test_unknown_mnemonic_says_where() -> None:
    text = '# 40 "src/k.h" 2\n\nvoid f() {\n  asm("frobnicate(%0)" :: "r"(x));\n}\n'
    with pytest.raises(AsmError) as bad:
        asmrules.rewrite(text, count=False)
    assert (bad.value.path, bad.value.line) == ("src/k.h", 42)
    assert bad.value.message == (
        'asm "frobnicate(%0)" is not modelled; add it to hexpatch/sim/asmrules.py'
    )


@pytest.mark.parametrize(
    ("text", "ins", "says"),
    [
        ("activation.hf=mxmem(%0,%0)\nweight.hf=mxmem(%0,%0)", 1, "without its weight load"),
        ("{ weight.hf=mxmem(%0,%0) }", 1, "without its activation load"),
        ("{activation.hf=mxmem(%0,%0);activation.hf=mxmem(%0,%0)}", 1, "two activation loads"),
        ("{activation.xx=mxmem(%0,%0);weight.hf=mxmem(%0,%0)}", 1, "activation.xx"),
        ("{activation.hf=mxmem(%0,%0):cm;weight.hf=mxmem(%0,%0)}", 1, ":cm"),
        ("mxmem(%0,%0):after.uh=acc", 1, "not modelled"),
        ("mxmem(%0,%0):before:cm.hf=acc", 1, "not modelled"),
        (".word 0x12345678", 0, "not modelled"),
        (".word 0x9200C3FE", 0, "asm reads r0"),
        ("{ r0=%0 ; %0=r0 }", 1, "asm reads r0"),
        ("dmstart(%3)", 1, "has no operand %3"),
        ("dmstart(%[no])", 1, "has no operand %[no]"),
        ("%0 = dmpoll", 1, "which is an input"),
        ("{ nop }:endloop0", 0, "not modelled"),
    ],
)
def test_what_is_wrong_is_said(text: str, ins: int, says: str) -> None:
    assert says in fails(text, 0, ins)


def test_what_cannot_be_taken_apart_is_said() -> None:
    for text, says in (
        ('void f() { asm volatile("nop" ', "without end"),
        ("void f() { asm volatile(TEXT); }", "no string"),
        ('void f() { asm volatile("nop" : "=r" x); }', "operand not understood"),
        ("void f() { asm volatile; }", "without parenthesis"),
        ('void f() { asm volatile("nop" : : "v"(x)); }', 'operand "v" is not modelled'),
    ):
        with pytest.raises(AsmError, match=re.escape(says)):
            asmrules.rewrite(text, count=False)


# -- hooks ------------------------------------------------------------------------------------


def test_hooks_go_into_definitions_only() -> None:
    text = """bool work_queue_run_async(work_queue_t q, func_t func, void * data, unsigned int n);
bool work_queue_run_async(work_queue_t q, func_t func, void * data, unsigned int count) {
    return work_queue_run_async(q, func, data, count - 1); }
static inline bool hmx_queue_push(hmx_queue_t q, struct hmx_queue_desc d) { return true; }
static struct hmx_queue_desc hmx_queue_pop_one(hmx_queue_t q)
{ return q->d; }
"""
    made = asmrules.hook(text)
    assert made.count("SIM_dispatches") == 1
    assert "n[SIM_jobs] += count)" in made
    assert "const _Bool sim_job = (uintptr_t) d.func > 3;" in made
    assert "n[SIM_hmx_jobs] += sim_job); sim_hmx_push(sim_job);" in made
    assert made.count("sim_hmx_pop()") == 1
    assert made.count("\n") == text.count("\n")
    with pytest.raises(AsmError, match="has 1 parameters"):
        asmrules.hook("int work_queue_run_async(int x) { }")
