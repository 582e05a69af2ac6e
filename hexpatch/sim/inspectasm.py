"""Reads Hexagon assembly text: functions, packets, loops, and what is bad in a loop.

Loops come from the flow graph (labels, jumps, hardware loops, jump tables), so blocks that the
compiler moved out of a loop do not count as in it. A stack access is one through r29, r30 or a
register that holds one of them plus a constant: spills, and local arrays, which cost the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_LABEL = re.compile(r"^(\.?[A-Za-z_$][\w.$]*):")
_JUMP = re.compile(r"\bjump(?::n?t)?\s+(?:##)?([\w.$]+)")
_SETUP = re.compile(r"\b(?:sp\d)?loop([01])\((?:##)?([\w.$]+)")
_CALL = re.compile(r"\bcall(r)?\s+(?:##)?([\w.$]+)")
_TABLE = re.compile(r"^\s+\.(?:word|long)\s+(\.LBB\w+)-")
_LOC = re.compile(r"^\s+\.loc\s+(\d+)\s+(\d+)")
_OWN = re.compile(r'^\s+\.file\s+"(?:[^"]*/)?([^"]+)"', re.M)
_FILE = re.compile(r'^\s+\.file\s+(\d+)\s+"[^"]*"\s+"(?:[^"]*/)?([^"]+)"', re.M)
_FRAME = re.compile(r"\ballocframe\((?:r29,)?#(\d+)\)")
_DEEPER = re.compile(r"\br29 = add\(r29,#+-(\d+)\)")
_WRITTEN = re.compile(r"^(?:if \([^)]*\) )?r(\d+)(?::(\d+))? [-+*&|^]?=")
_FROM_FRAME = re.compile(r"^r(\d+) = (?:(?:add|and)\((r\d+),#+-?\d+\)|(r29|r30))$")
_VECTOR = re.compile(r"\bvmemu?\((r\d+)\b")
_SCALAR = re.compile(r"\bmem(?:u?[bh]|w|d)(?:_fifo)?\((r\d+)\b")
# Calls and instructions that compute in double, or convert half precision in software.
PROMOTION = re.compile(
    r"__hexagon_(?:fast\d?_)?\w*df\w*|__\w*df2|__\w*df\w*[sd]i|__extend\w+2|__trunc\w+2"
    r"|(?:pow|exp|exp2|log|log2|log10|sin|cos|tan|tanh|sqrt|floor|ceil|round|fmod|fabs|erf)"
)
_DOUBLE = re.compile(r"\b(?:convert_\w*df\w*|df(?:add|sub|mpy\w*|cmp\w*|max|min|make))\b")
DIVIDE = re.compile(r"__(?:hexagon_)?(?:fast\d?_)?u?(?:div|mod|divmod)\w*|__hexagon_divsf3")


@dataclass(frozen=True)
class Loop:
    """One loop: its own numbers, inner loops included."""

    where: str  # file:line of its first packet from the source itself, or else from a header
    depth: int
    inner: bool  # holds no other loop
    packets: int
    instructions: int
    vector_stack: int  # vmem to or from the stack
    scalar_stack: int
    promotions: dict[str, int] = field(default_factory=dict)
    divides: dict[str, int] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Function:
    """One function; `*_in_loops` count each instruction once however deep it is."""

    name: str
    where: str
    packets: int
    stack: int  # bytes
    vector_stack: int
    vector_stack_in_loops: int
    scalar_stack_in_loops: int
    promotions: dict[str, int] = field(default_factory=dict)
    promotions_in_loops: dict[str, int] = field(default_factory=dict)
    divides_in_loops: dict[str, int] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()


@dataclass
class _Packet:
    instructions: list[str]
    where: str
    end: str  # what stands behind the brace
    vector_stack: int = 0
    scalar_stack: int = 0
    calls: list[str] = field(default_factory=list)
    doubles: list[str] = field(default_factory=list)


@dataclass
class _Block:
    packets: list[_Packet] = field(default_factory=list)
    to: set[int] = field(default_factory=set)


def functions(text: str) -> Iterator[Function]:
    """The functions of an assembly file, in order."""
    name, body = "", list[str]()
    files = dict(_FILE.findall(text))
    own = _OWN.search(text)
    files[""] = own[1] if own else ""
    kinds = set(re.findall(r"^\s+\.type\s+([\w.$]+),@function", text, re.M))
    for line in text.split("\n"):
        label = _LABEL.match(line)
        if label is not None and label[1] in kinds:
            if name:
                yield _function(name, body, files)
            name, body = label[1], []
        elif name:
            body.append(line)
    if name:
        yield _function(name, body, files)


def _function(name: str, body: list[str], files: dict[str, str]) -> Function:
    blocks, first, stack = _blocks(body, files)
    nests = list(_loops(blocks))
    packets = [p for b in blocks for p in b.packets]
    covered = sorted({i for nest, _ in nests for i in nest})
    looped = [p for i in covered for p in blocks[i].packets]
    return Function(
        name=name,
        where=first,
        packets=len(packets),
        stack=stack,
        vector_stack=sum(p.vector_stack for p in packets),
        vector_stack_in_loops=sum(p.vector_stack for p in looped),
        scalar_stack_in_loops=sum(p.scalar_stack for p in looped),
        promotions=_named(packets, PROMOTION),
        promotions_in_loops=_named(looped, PROMOTION),
        divides_in_loops=_named(looped, DIVIDE),
        loops=tuple(_loop(blocks, nest, depth, nests, files[""]) for nest, depth in nests),
    )


def _loop(
    blocks: list[_Block],
    nest: set[int],
    depth: int,
    nests: list[tuple[set[int], int]],
    own: str,
) -> Loop:
    packets = [p for i in sorted(nest) for p in blocks[i].packets]
    places = [p.where for p in packets if p.where]
    return Loop(
        where=next((w for w in places if w.startswith(f"{own}:")), (*places, "")[0]),
        depth=depth,
        inner=not any(other < nest for other, _ in nests),
        packets=len(packets),
        instructions=sum(len(p.instructions) for p in packets),
        vector_stack=sum(p.vector_stack for p in packets),
        scalar_stack=sum(p.scalar_stack for p in packets),
        promotions=_named(packets, PROMOTION),
        divides=_named(packets, DIVIDE),
        calls=_named(packets, re.compile(r".*"), doubles=False),
    )


def _named(
    packets: Iterable[_Packet], pattern: re.Pattern[str], *, doubles: bool = True
) -> dict[str, int]:
    found: Counter[str] = Counter()
    for packet in packets:
        found.update(c for c in packet.calls if pattern.fullmatch(c))
        if doubles and pattern is PROMOTION:
            found.update(packet.doubles)
    return dict(sorted(found.items()))


# -- text to blocks ---------------------------------------------------------------------------


def _blocks(body: list[str], files: dict[str, str]) -> tuple[list[_Block], str, int]:
    """The basic blocks with their edges, the function's first line, its stack."""
    blocks, labels = [_Block()], dict[str, int]()
    where = first = ""
    stack = 0
    frame = {"r29", "r30"}
    for text, end in _units(body):
        if (label := _LABEL.match(end)) is not None and not text:
            if blocks[-1].packets:
                blocks.append(_Block())
            labels[label[1]] = len(blocks) - 1
        elif (loc := _LOC.match(end)) is not None and not text:
            if loc[2] != "0":
                where = f"{files.get(loc[1], '')}:{loc[2]}"
                first = first or where
        elif text:
            packet = _Packet(text, where, end)
            blocks[-1].packets.append(packet)
            stack += _look(packet, frame)
            if _leaves(packet):
                blocks.append(_Block())
    tables = {m[1] for t in body if (m := _TABLE.match(t))}
    _edges(blocks, labels, tables)
    return blocks, first, stack


def _units(body: list[str]) -> Iterator[tuple[list[str], str]]:
    """Packets as (instructions, text behind the brace); other lines as ([], line)."""
    inside: list[str] | None = None
    for raw in body:
        if raw.lstrip().startswith(".loc") or _LABEL.match(raw):
            if inside is None:
                yield [], raw
            continue
        text = raw.split("//")[0].strip()
        if inside is None:
            if text.startswith("{"):
                inside, text = [], text[1:].strip()
            elif text and text[0] not in ".#" and not raw.startswith(("//", ".")):
                yield [text], ""  # one instruction alone, from inline assembly
                continue
            else:
                continue
        if inside is not None:
            before, brace, behind = text.partition("}")
            inside += [part.strip() for part in before.split(";") if part.strip()]
            if brace:
                yield inside or ["nop"], behind.strip()
                inside = None


def _look(packet: _Packet, frame: set[str]) -> int:
    """Note stack accesses and calls; follow which registers point into the frame."""
    grown = 0
    for text in packet.instructions:
        packet.vector_stack += sum(m[1] in frame for m in _VECTOR.finditer(text))
        packet.scalar_stack += sum(m[1] in frame for m in _SCALAR.finditer(text))
        packet.doubles += [m[0] for m in _DOUBLE.finditer(text)]
        for call in _CALL.finditer(text):
            packet.calls.append("(indirect)" if call[1] else call[2])
        for size in (*_FRAME.findall(text), *_DEEPER.findall(text)):
            grown += int(size)
    for text in packet.instructions:
        made = _FROM_FRAME.match(text)
        if made is not None and (made[2] or made[3]) in frame:
            frame.add(f"r{made[1]}")
        elif (written := _WRITTEN.match(text)) is not None:
            frame -= {f"r{n}" for n in written.groups() if n} - {"r29", "r30"}
    return grown


def _leaves(packet: _Packet) -> bool:
    whole = " ; ".join(packet.instructions)
    return "jump" in whole or "dealloc_return" in whole or "endloop" in packet.end


def _edges(blocks: list[_Block], labels: dict[str, int], tables: set[str]) -> None:
    starts = sorted(
        {
            (setup[1], labels[setup[2]])
            for b in blocks
            for p in b.packets
            for t in p.instructions
            if (setup := _SETUP.search(t)) and setup[2] in labels
        }
    )
    for i, block in enumerate(blocks):
        falls = True
        for text in block.packets[-1].instructions if block.packets else []:
            taken = "if (" in text
            if (jump := _JUMP.search(text)) is not None:
                if jump[1] in labels:
                    block.to.add(labels[jump[1]])
            elif "jumpr" in text:
                if "jumpr r31" not in text and "jumpr:" not in text:
                    block.to |= {labels[t] for t in tables if t in labels}
            elif "dealloc_return" not in text:
                continue
            falls = falls and taken
        if block.packets:
            for which in re.findall(r"endloop([01])", block.packets[-1].end):
                before = [at for number, at in starts if number == which and at <= i]
                block.to |= {max(before)} if before else {i}
        if falls and i + 1 < len(blocks):
            block.to.add(i + 1)


# -- loops ------------------------------------------------------------------------------------


def _loops(blocks: list[_Block]) -> Iterator[tuple[set[int], int]]:
    """Sets of blocks that form loops, outer ones before those inside, with their depth."""
    edges = {i: set(b.to) for i, b in enumerate(blocks)}
    waiting = [(set(edges), 1)]
    while waiting:
        region, depth = waiting.pop()
        for part in _strong(edges, region):
            if len(part) == 1 and not edges[min(part)] & part:
                continue
            yield part, depth
            outside = {i for i in edges if i not in part}
            heads = {j for i in outside for j in edges[i] if j in part} or {min(part)}
            for i in part:  # without its back edges, only inner loops are left
                edges[i] -= heads
            waiting.append((part, depth + 1))


def _strong(edges: dict[int, set[int]], region: set[int]) -> list[set[int]]:
    """Strongly connected components within a region (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on: set[int] = set()
    found = []
    for root in sorted(region):
        if root in index:
            continue
        work = [(root, iter(sorted(edges[root] & region)))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            node, rest = work[-1]
            for to in rest:
                if to not in index:
                    index[to] = low[to] = len(index)
                    stack.append(to)
                    on.add(to)
                    work.append((to, iter(sorted(edges[to] & region))))
                    break
                if to in on:
                    low[node] = min(low[node], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = set()
                    while node not in part:
                        top = stack.pop()
                        on.discard(top)
                        part.add(top)
                    found.append(part)
    return found
