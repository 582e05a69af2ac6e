"""Makes LLVM's textual IR access vectors as Hexagon does: an aligned access drops low address bits.

Every load and store of a 128-byte vector (or several in one) that the compiler believes to be
aligned gets its address masked with -128. In the *checked* flavour sim_vld or sim_vst is told the
address before, once per 128 bytes, and the sanitizer's own call for that access is dropped, so that
it is not counted twice. Unaligned vectors (align < 128) keep that call. What is known to lie in the
function's own frame, or is a vector passed or returned in memory, is neither reported nor checked:
on the device it is a register or a spill.

A copy of a whole structure of vectors (llvm.memcpy) is not truncated; it only loses its alignment,
so that the host does not fault.

Reads the typed pointers of clang 14 and the opaque ones of 15 and later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

VECTOR = 128

_NAME = r'[%@](?:"[^"]*"|[-\w.$]+)'
_LOCAL = re.compile(_NAME)
_ACCESS = re.compile(r"  (?:%\S+ = )?(load|store) (?:volatile )?<(\d+) x (\w+)>")
_POINTER = re.compile(r", (ptr|<\d+ x \w+>\*) ")
_ALIGN = re.compile(r", align (\d+)")
_WIDE = re.compile(r"\balign (?:128|256|512)\b")
_DEBUG = re.compile(r", !dbg !\d+")
_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
_DERIVED = re.compile(rf"  ({_NAME}) = (alloca|bitcast|ptrtoint|getelementptr)\b")
_BASE = re.compile(rf"(?:\*|ptr) ({_NAME})")
# a parameter or result that the host's calling convention puts into the caller's frame
_PASSED = re.compile(rf"(?:byval|sret)(?:\([^()]*\))?(?: (?!{_NAME})[^\s,]+)* ({_NAME})[,)]")
_CALLBACK = re.compile(r"  (?:tail )?call void @__asan_(?:load|store)\w+_noabort\(i64 ")


def mask(text: str, *, checked: bool) -> str:
    """The module with its vector accesses masked and, when checked, reported."""
    done: list[str] = []
    function = _Function(checked)
    for line in text.split("\n"):
        if line.startswith("  "):
            function.line(line, done)
            continue
        if line.startswith("define "):
            function = _Function(checked, _PASSED.findall(line))
        done.append(line)
    if checked:
        done += ["declare void @sim_vld(i64)", "declare void @sim_vst(i64)", ""]
    return "\n".join(done)


class _Function:
    """Goes through one function's instructions."""

    def __init__(self, checked: bool, passed: Iterable[str] = ()) -> None:
        self.checked = checked
        self.made = 0
        self.frame = set(passed)  # values that are addresses in this frame or the caller's
        self.slots: set[str] = set()  # the allocas themselves: as aligned as they say
        self.integers: dict[str, str] = {}  # ptrtoint -> the pointer

    def line(self, line: str, done: list[str]) -> None:
        """Append the instruction, changed or with others before it."""
        if "load " in line or "store " in line:
            found = _ACCESS.match(line)
            if found is not None and self.access(line, found, done):
                return
        elif "@llvm.mem" in line:
            line = _WIDE.sub("align 1", line)
        elif " = " in line:
            if (made := _DERIVED.match(line)) is not None:
                self.derived(line, made)
        elif self.checked and (call := _CALLBACK.match(line)) is not None:
            address = _LOCAL.match(line, call.end())
            if address is not None and self.integers.get(address[0]) in self.frame:
                return
        done.append(line)

    def derived(self, line: str, found: re.Match[str]) -> None:
        """Note what points into the frame."""
        name, how = found[1], found[2]
        if how == "alloca":
            self.frame.add(name)
            self.slots.add(name)
        elif (base := _BASE.search(line, found.end())) is not None:
            if how == "ptrtoint":
                self.integers[name] = base[1]
            elif base[1] in self.frame:
                self.frame.add(name)
                if how == "bitcast" and base[1] in self.slots:
                    self.slots.add(name)

    def access(self, line: str, found: re.Match[str], done: list[str]) -> bool:
        """Mask one access; False when it is none of an aligned vector."""
        kind, element = found[1], found[3]
        bits = _BITS.get(element) or (int(element[1:]) if element[1:].isdigit() else 0)
        size = int(found[2]) * bits // 8
        if size < VECTOR or size % VECTOR:
            return False
        place = _operand(line, found.end())
        if place is None:
            return False
        typed, start, end, align = place
        if align < VECTOR:
            return False
        pointer = line[start:end]
        if pointer in self.slots and not self.checked:
            return False
        debug = _DEBUG.search(line, end)
        note = debug[0] if debug else ""
        self.made += 1
        name = f"%sim.{self.made}"
        if self.checked:
            self.drop_callback(pointer, done)
        done.append(f"  {name}.a = ptrtoint {typed} {pointer} to i64{note}")
        if self.checked and pointer not in self.frame:
            call = "@sim_vld" if kind == "load" else "@sim_vst"
            done.append(f"  call void {call}(i64 {name}.a){note}")
            for more in range(1, size // VECTOR):
                done.append(f"  {name}.{more} = add i64 {name}.a, {more * VECTOR}{note}")
                done.append(f"  call void {call}(i64 {name}.{more}){note}")
        done.append(f"  {name}.m = and i64 {name}.a, -{VECTOR}{note}")
        done.append(f"  {name}.p = inttoptr i64 {name}.m to {typed}{note}")
        done.append(f"{line[:start]}{name}.p{line[end:]}")
        return True

    def drop_callback(self, pointer: str, done: list[str]) -> None:
        """Take back the sanitizer's call for this access; it stands right before."""
        for back in range(1, min(4, len(done)) + 1):
            call = _CALLBACK.match(done[-back])
            if call is None:
                continue
            address = _LOCAL.match(done[-back], call.end())
            same = (
                self.integers.get(address[0]) == pointer
                if address is not None
                else f" {pointer} to i64)" in done[-back]
            )
            if same:
                del done[-back]
            return


def _operand(line: str, at: int) -> tuple[str, int, int, int] | None:
    """Type, start, end and alignment of an access's pointer operand; a constant may be long."""
    for found in _POINTER.finditer(line, at):
        end = _value_end(line, found.end())
        align = _ALIGN.match(line, end) if end else None
        if end and align:
            return found[1], found.end(), end, int(align[1])
    return None


def _value_end(line: str, at: int) -> int:
    """Where a value ends that starts here; 0 when there is none."""
    if (name := _LOCAL.match(line, at)) is not None:
        return name.end()
    depth = 0
    for i in range(at, len(line)):
        if line[i] == "(":
            depth += 1
        elif line[i] == ")":
            depth -= 1
            if depth == 0:
                rest = line[i + 1 : i + 3]
                if rest == " (":  # inrange(0, 16) (...)
                    continue
                return i + 1
        elif line[i] == "," and depth == 0:
            return 0
    return 0
