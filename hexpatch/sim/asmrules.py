"""The asm idioms that the simulator knows: RULES and HOOKS here, HMX in asmhmx. Add new ones.

`rewrite` replaces every asm statement of a preprocessed text by calls of hexsim.h's functions.
Texts are compared without blanks; in a pattern {d} is what is written, {s} and {t} what is read: an
operand (`%0`, `%[name]`), an immediate (`#255`) or a register that the same statement has set.
COUNT(name) and COUNT(name, n) add to a counter of hexsim.h, or do nothing in the fast flavour.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hexpatch.sim import asmhmx
from hexpatch.sim.asmtext import AsmError, Statement, statements

HERE = "hexpatch/sim/asmrules.py"

# text without blanks -> C. A vector register that is only reloaded to wait stands as v0.
RULES = (
    ("{d}=dmpoll", "{d} = sim_dmpoll()"),
    ("{d}=dmwait", "{d} = sim_dmwait()"),
    ("{d}=dmpause", "{d} = sim_dmpause()"),
    ("dmstart({s})", "sim_dmstart((void *) {s})"),
    ("dmlink({s},{t})", "sim_dmlink((void *) {s}, (void *) {t})"),
    ("dmresume({s})", "sim_dmresume((void *) {s})"),
    ("pause({s})", "sim_pause()"),
    ("{d}=c15:14", "{d} = sim_cycles()"),
    ("{d}=upcycle", "{d} = sim_cycles()"),
    ("{d}=c19:18", "{d} = sim_packets()"),
    ("{d}=upmucnt0", "{d} = sim_pmu(0)"),
    ("{d}=upmucnt1", "{d} = sim_pmu(1)"),
    ("{d}=upmucnt2", "{d} = sim_pmu(2)"),
    ("{d}=upmucnt3", "{d} = sim_pmu(3)"),
    ("{d}=upmucnt4", "{d} = sim_pmu(4)"),
    ("{d}=upmucnt5", "{d} = sim_pmu(5)"),
    ("{d}=upmucnt6", "{d} = sim_pmu(6)"),
    ("{d}=upmucnt7", "{d} = sim_pmu(7)"),
    ("syncht", "__sync_synchronize()"),
    ("barrier", "__sync_synchronize()"),
    ("isync", "__sync_synchronize()"),
    ("release({s}):at", "__atomic_thread_fence(3)"),
    ("release({s}):st", "__atomic_thread_fence(3)"),
    ("l2fetch({s},{t})", "COUNT(l2fetch)"),
    ("dcfetch({s})", "(void) 0"),
    ("dcfetch({s}+{t})", "(void) 0"),
    ("dccleana({s})", "(void) 0"),
    ("dcinva({s})", "(void) 0"),
    ("dccleaninva({s})", "(void) 0"),
    ("l2cleaninva({s})", "(void) 0"),
    # gathers and scatters are done when their instruction is: nothing to wait for
    ("vmem({s}+#0):scatter_release", "COUNT(hvx_st)"),
    ("v0=vmem({s}+#0)", "COUNT(hvx_ld)"),
    ("{d}={s}", "{d} = {s}"),
    ("nop", "(void) 0"),
)

# Put at the beginning of these functions in the checked flavour, external or inline: {0} = the
# first parameter.
HOOKS = {
    "work_queue_run_async": "COUNT(dispatches); COUNT(jobs, {3}); COUNT(barriers);",
    "worker_pool_run_jobs": "COUNT(dispatches); COUNT(jobs, {2}); COUNT(barriers);",
    # 1..3 are the queue's own signals, not work
    "hmx_queue_push": "const _Bool sim_job = (uintptr_t) {1}.func > 3; "
    "COUNT(hmx_jobs, sim_job); sim_hmx_push(sim_job);",
    "hmx_queue_pop": "COUNT(barriers);",
    "hmx_queue_pop_one": "sim_hmx_pop();",
}

_VALUE = r"(%\d+|#%\d+|#-?(?:0x[0-9a-f]+|\d+)|r\d+)"
_MODS = r"((?::\w+)*)"
_LOAD = re.compile(rf"(activation|weight)\.(\w+)=mxmem\({_VALUE},{_VALUE}\){_MODS}")
_BIAS = re.compile(rf"bias=(mxmem2?)\({_VALUE}\)")
_BIAS_OUT = re.compile(rf"(mxmem2?)\({_VALUE}\)=bias")
_STORE = re.compile(rf"mxmem\({_VALUE},{_VALUE}\){_MODS}(?:\.(\w+))?=(acc{_MODS}|cvt)")
_CVT = re.compile(rf"cvt\.(\w+)=acc\({_VALUE}\){_MODS}")
_WORD = re.compile(r"\.(?:word|long)(0x[0-9a-f]+)")
_OPERAND = re.compile(r"%(?:(\d+)|\[(\w+)\])")


def _compile(pattern: str) -> re.Pattern[str]:
    text = re.escape(pattern)
    for name in "dst":
        value = _VALUE if name != "d" else r"(%\d+|r\d+)"
        text = text.replace(rf"\{{{name}\}}", value.replace("(", f"(?P<{name}>", 1))
    return re.compile(text)


_RULES = [(_compile(pattern), pattern, call) for pattern, call in RULES]


# -- one statement ----------------------------------------------------------------------------


@dataclass
class _Packet:
    """What one packet becomes; the two loads of a multiply are put together at its end."""

    calls: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    activation: tuple[int, str, str] | None = None
    weight: tuple[int, str, str] | None = None
    first: str = ""


class _Translator:
    """Turns the instructions of one asm statement into C."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        operands = (*statement.outputs, *statement.inputs)
        self.names = {op.name: i for i, op in enumerate(operands) if op.name}
        self.operands = operands
        self.registers: set[str] = set()
        self.packet = _Packet()

    def run(self) -> str:
        """The C block."""
        calls: list[str] = []
        for packet in self.packets():
            self.packet = _Packet(first=" ; ".join(packet))
            for text in packet:
                self.instruction(text)
            self.close()
            calls += self.packet.calls
            self.registers |= self.packet.written
        return self.block(calls)

    def block(self, calls: list[str]) -> str:
        """Operands are read once, before; results are written after."""
        outs = self.statement.outputs
        before, after = [], []
        for i, op in enumerate(self.operands):
            if set(op.constraint) & set("vq"):
                raise AsmError(f'asm operand "{op.constraint}" is not modelled; see {HERE}')
            written = i < len(outs)
            given = not written or "+" in op.constraint
            start = f"(uintptr_t) ({op.expression})" if given else "0"
            if op.constraint.isdigit():  # starts with an input, ends as that output
                before.append(f"sim_{op.constraint} = {start};")
            before.append(f"uintptr_t sim_{i} = {start}; (void) sim_{i};")
            if written:
                after.append(f"{op.expression} = (__typeof__({op.expression})) sim_{i};")
        before += [f"uintptr_t sim_{r};" for r in sorted(self.registers)]
        return " ".join(("do {", *before, *(f"{c};" for c in calls), *after, "} while (0)"))

    # -- texts --

    def packets(self) -> list[list[str]]:
        """Canonical instruction texts, by packet; words of one packet go by their parse bits."""
        found: list[list[str]] = []
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", self.statement.template, flags=re.S)
        for part in re.findall(r"\{[^}]*\}(?:\s*:\w+)*|[^{}\n;]+", text):
            inner = part
            if part[0] == "{":
                inner, _, tail = part[1:].partition("}")
                if tail.strip() not in ("", ":mem_noshuf"):
                    raise self.unknown(part)
            texts = [self.canonical(t) for t in re.split(r"[\n;]", inner) if t.strip()]
            if part[0] == "{" or not texts:
                found += [texts] if texts else []
            elif found and _unfinished(found[-1][-1]):
                found[-1] += texts
            else:
                found.append(texts)
        return found

    def canonical(self, text: str) -> str:
        """Operands by number, no blanks, small letters."""

        def number(found: re.Match[str]) -> str:
            i = int(found[1]) if found[1] else self.names.get(found[2], len(self.operands))
            if i >= len(self.operands):
                raise AsmError(f'asm "{text.strip()}" has no operand {found[0]}')
            return f"%{i}"

        return re.sub(r"\s+", "", _OPERAND.sub(number, text).lower().replace("%%", ""))

    def unknown(self, text: str) -> AsmError:
        """The error for what no rule knows."""
        return AsmError(f'asm "{text.strip()}" is not modelled; add it to {HERE}')

    def value(self, text: str) -> str:
        """C for something read."""
        if text[0] == "#":
            return self.value(text[1:]) if text[1] == "%" else f"(uintptr_t) {text[1:]}"
        if text[0] == "r":
            if text in self.packet.written or text not in self.registers:
                raise AsmError(f"asm reads {text}, which no earlier packet of the statement sets")
            return f"sim_{text}"
        return f"sim_{text[1:]}"

    def target(self, text: str) -> str:
        """C for something written."""
        if text[0] == "r":
            self.packet.written.add(text)
            return f"sim_{text}"
        if int(text[1:]) >= len(self.statement.outputs):
            raise AsmError(f"asm writes its operand {text}, which is an input")
        return f"sim_{text[1:]}"

    # -- instructions --

    def instruction(self, text: str) -> None:
        """One instruction of the current packet."""
        if self.hmx(text):
            return
        for pattern, _, call in _RULES:
            if found := pattern.fullmatch(text):
                read = {k: self.value(v) for k, v in found.groupdict().items() if k != "d"}
                if "d" in found.groupdict():
                    read["d"] = self.target(found["d"])
                self.packet.calls.append(call.format(**read))
                return
        raise self.unknown(text)

    def hmx(self, text: str) -> bool:
        """An HMX instruction as text or word; False when it is none."""
        calls = self.packet.calls
        if text in asmhmx.PLAIN:
            calls.append(f"sim_hmx_op(0, {asmhmx.PLAIN[text]:#x}, 0, 0)")
        elif found := _LOAD.fullmatch(text):
            mods = _mods(found[5])
            table = asmhmx.ACTIVATION if found[1] == "activation" else asmhmx.WEIGHT
            op = table.get((found[2], mods))
            if op is None:
                raise self.unknown(text)
            self.load(found[1], op, self.value(found[3]), self.value(found[4]))
        elif found := _BIAS.fullmatch(text):
            calls.append(f"sim_hmx_bias({asmhmx.BIAS[found[1]]:#x}, {self.value(found[2])})")
        elif found := _BIAS_OUT.fullmatch(text):
            call = "cvt(0" if found[1] == "mxmem" else "op(0, 0x16"
            end = ")" if found[1] == "mxmem" else ", 0)"
            calls.append(f"sim_hmx_{call}, {self.value(found[2])}{end}")
        elif found := _STORE.fullmatch(text):
            rs, rt, mods, kind, source, outs = found.groups()
            if source == "cvt":
                store = {None: asmhmx.CVT_STORE, "f8": asmhmx.CVT_STORE_F8}.get(kind, {}).get(
                    _mods(mods)
                )
                w, op = 0, store
            else:
                w, op = asmhmx.STORE.get((kind or "", _mods(mods, outs)), (0, None))
            if op is None:
                raise self.unknown(text)
            calls.append(f"sim_hmx_op({w}, {op:#x}, {self.value(rs)}, {self.value(rt)})")
        elif (
            found := _CVT.fullmatch(text)
        ) and f"{found[1]} {_mods(found[3])}".strip() in asmhmx.CVT:
            sub = asmhmx.CVT[f"{found[1]} {_mods(found[3])}".strip()]
            calls.append(f"sim_hmx_cvt({sub}, {self.value(found[2])})")
        elif found := _WORD.fullmatch(text):
            self.word(int(found[1], 16), text)
        else:
            return False
        return True

    def word(self, word: int, text: str) -> None:
        """An encoded instruction; its registers must have been set in this statement."""
        rs, w, rt = f"r{word >> 16 & 31}", word >> 13 & 1, word >> 8 & 31
        calls = self.packet.calls
        if word >> 21 == 0x92000000 >> 21:
            op = word & 0xFF
            if not w and op in asmhmx.BIAS.values() and rt == 3:
                calls.append(f"sim_hmx_bias({op:#x}, {self.value(rs)})")
            elif op in (asmhmx.WEIGHT if w else asmhmx.ACTIVATION).values():
                kind = "weight" if w else "activation"
                self.load(kind, op, self.value(rs), self.value(f"r{rt}"))
            else:
                raise self.unknown(text)
            return
        op = word & 0x3F
        if word >> 21 != 0xA6E00000 >> 21 or word & 0xC0:
            raise self.unknown(text)
        if not w and op == 0x10:
            calls.append(f"sim_hmx_cvt({rt}, {self.value(rs)})")
        elif not w and op in asmhmx.PLAIN.values():
            calls.append(f"sim_hmx_op(0, {op:#x}, 0, 0)")
        elif not w and op == 0x16:
            calls.append(f"sim_hmx_op(0, 0x16, {self.value(rs)}, 0)")
        elif (w, op) in _WORD_STORES:
            at = f"{self.value(rs)}, {self.value(f'r{rt}')}"
            calls.append(f"sim_hmx_op({w}, {op:#x}, {at})")
        else:
            raise self.unknown(text)

    def load(self, kind: str, op: int, rs: str, rt: str) -> None:
        """Half of a multiply."""
        if getattr(self.packet, kind) is not None:
            raise AsmError(f'asm packet "{self.packet.first}" has two {kind} loads')
        setattr(self.packet, kind, (op, rs, rt))

    def close(self) -> None:
        """The end of a packet: activation and weight make one multiply."""
        act, wgt = self.packet.activation, self.packet.weight
        if act and wgt:
            both = ", ".join(f"{op:#x}, {rs}, {rt}" for op, rs, rt in (act, wgt))
            self.packet.calls.append(f"sim_hmx_load({both})")
        elif act or wgt:
            has, lacks = ("activation", "weight") if act else ("weight", "activation")
            raise AsmError(
                f'asm packet "{self.packet.first}" has an HMX {has} load without its {lacks} load; '
                "both must stand in one packet { ... }"
            )


_WORD_STORES = {
    *asmhmx.STORE.values(),
    *((0, op) for op in (*asmhmx.CVT_STORE.values(), *asmhmx.CVT_STORE_F8.values())),
}


def _mods(*texts: str | None) -> str:
    return " ".join(sorted(m for text in texts for m in (text or "").split(":") if m))


def _unfinished(text: str) -> bool:
    found = _WORD.fullmatch(text)
    return found is not None and int(found[1], 16) >> 14 & 3 == 1


# -- a whole text -----------------------------------------------------------------------------


def rewrite(text: str, *, count: bool) -> str:
    """Replace all asm statements; AsmError (with path and line) for the first unknown one."""
    made, at = [], 0
    for found in statements(text):
        try:
            block = _Translator(found).run()
        except AsmError as bad:
            raise AsmError(bad.message, found.path, found.line) from None
        made += [text[at : found.start], _counted(block, count)]
        replaced = text[found.start : found.end]
        if "\n#" in replaced:  # its line markers are gone
            made.append(f'\n# {found.line + 1} "{found.path}"\n')
        else:
            made.append("\n" * replaced.count("\n"))
        at = found.end
    made.append(text[at:])
    return "".join(made)


_DEFINITION = re.compile(rf"\b({'|'.join(HOOKS)})\s*\(([^(){{}};]*)\)\s*\{{")


def hook(text: str) -> str:
    """Put HOOKS into the functions that they name."""

    def one(found: re.Match[str]) -> str:
        names = [(re.findall(r"\w+", part) or [""])[-1] for part in found[2].split(",")]
        try:
            added = HOOKS[found[1]].format(*names)
        except IndexError:
            raise AsmError(
                f"{found[1]} has {len(names)} parameters, HOOKS in {HERE} expects more"
            ) from None
        return f"{found[0]} {_counted(added, True)}"

    return _DEFINITION.sub(one, text)


def _counted(code: str, count: bool) -> str:
    """COUNT as C; hexsim.h's own macros are gone after preprocessing."""

    def one(found: re.Match[str]) -> str:
        return f"(void) (sim_self.n[SIM_{found[1]}] += {found[2] or 1})" if count else "(void) 0"

    return re.sub(r"COUNT\((\w+)(?:, (\w+))?\)", one, code)
