"""Finds asm statements in preprocessed C and takes them apart.

A statement is `asm [volatile|goto|inline] ("text" : outputs : inputs : clobbers)`, with `__asm__`
and `__asm` for asm. Asm labels of declarations (`int f(void) __asm__("g");`) and all asm in system
headers are left alone. Line markers (`# 12 "file.h" 3`) tell where a text came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WORD = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\b(?:asm|__asm__|__asm)\b')
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[()\[\]{},:;]')
_MARKER = re.compile(r'^# (\d+) "((?:\\.|[^"\\])*)"([ \d]*)$', re.M)
_QUALIFIER = re.compile(r"\s*(volatile|__volatile__|__volatile|goto|inline|__inline__|__inline)\b")
_STRING = re.compile(r'\s*"((?:\\.|[^"\\\n])*)"')
_OPERAND = re.compile(r'\s*(?:\[\s*(\w+)\s*\]\s*)?"([^"]*)"\s*\(')
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]+|[0-7]{1,3}|.)", re.S)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_OPEN = {"(": ")", "[": "]", "{": "}"}


class AsmError(Exception):
    """An asm statement that can't be taken apart or is not modelled; `line` counts in its file."""

    def __init__(self, message: str, path: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.message, self.path, self.line = message, path, line


@dataclass(frozen=True)
class Operand:
    """`[name] "constraint" (expression)`."""

    constraint: str
    expression: str
    name: str = ""


@dataclass(frozen=True)
class Statement:
    """One asm statement: text[start:end] is all of it but the closing semicolon."""

    start: int
    end: int
    path: str
    line: int
    template: str
    outputs: tuple[Operand, ...]
    inputs: tuple[Operand, ...]
    clobbers: tuple[str, ...]


def statements(text: str) -> Iterator[Statement]:
    """The asm statements of a preprocessed text, in order."""
    markers: list[re.Match[str]] | None = None
    at = 0
    for found in _candidates(text):
        if found.start() < at:
            continue
        if markers is None:
            markers = list(_MARKER.finditer(text))
        path, line, system = _place(text, markers, found.start())
        if system:
            continue
        qualified = found.end()
        while more := _QUALIFIER.match(text, qualified):
            qualified = more.end()
        if not _is_statement(text, found.start(), qualified > found.end()):
            continue
        try:
            made = _statement(text, found.start(), qualified, path, line)
        except AsmError as bad:
            raise AsmError(bad.message, path, line) from None
        yield made
        at = made.end


def _candidates(text: str) -> Iterator[re.Match[str]]:
    """The asm keywords outside strings. A line that has none is not looked at."""
    at = 0
    while (at := text.find("asm", at)) >= 0:
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        for found in _WORD.finditer(text, start, end):
            if found[0][0] not in "\"'":
                yield found
        at = end


def _place(text: str, markers: list[re.Match[str]], at: int) -> tuple[str, int, bool]:
    low, high = 0, len(markers)
    while low < high:
        middle = (low + high) // 2
        if markers[middle].start() <= at:
            low = middle + 1
        else:
            high = middle
    if not low:
        return "", text.count("\n", 0, at) + 1, False
    mark = markers[low - 1]
    line = int(mark[1]) + text.count("\n", mark.end() + 1, at)
    return unescape(mark[2]), line, "3" in mark[3].split()


def _is_statement(text: str, at: int, qualified: bool) -> bool:
    """Not a label: those follow a declarator, at file scope or after `register int x`."""
    before = text[:at].rstrip() if at < 200 else text[at - 200 : at].rstrip()
    while (lines := before.rsplit("\n", 1))[-1].startswith("# "):
        before = lines[0].rstrip() if len(lines) > 1 else ""  # a line marker
    last = before[-1:]
    if qualified or last in ("", ";", "{", "}", ":"):
        return True
    if re.search(r"\b(?:else|do)$", before):
        return True
    return last == ")" and _depth(text, at) > 0


def _depth(text: str, at: int) -> int:
    depth = 0
    for token in _TOKEN.finditer(text, 0, at):
        if token[0] in "{}":
            depth += 1 if token[0] == "{" else -1
    return depth


def _statement(text: str, start: int, at: int, path: str, line: int) -> Statement:
    opened = re.compile(r"\s*\(").match(text, at)
    if opened is None:
        raise AsmError("asm without parenthesis")
    sections, end = _split(text, opened.end())
    template = _strings(sections[0])
    if template is None:
        raise AsmError(f"asm text is no string: {sections[0].strip()[:60]}")
    while len(sections) < 4:
        sections.append("")
    return Statement(
        start,
        end,
        path,
        line,
        template,
        _operands(sections[1]),
        _operands(sections[2]),
        tuple(_strings(part) or "" for part in _commas(sections[3])),
    )


def _split(text: str, at: int) -> tuple[list[str], int]:
    """Split at colons until the parenthesis closes; the end is behind it."""
    sections, begin, stack = [], at, [")"]
    for token in _TOKEN.finditer(text, at):
        mark = token[0]
        if mark in _OPEN:
            stack.append(_OPEN[mark])
        elif mark in ")]}":
            if mark != stack.pop():
                break
            if not stack:
                sections.append(_MARKER.sub("", text[begin : token.start()]))
                return sections, token.end()
        elif mark == ":" and len(stack) == 1:
            sections.append(_MARKER.sub("", text[begin : token.start()]))
            begin = token.end()
    raise AsmError("asm statement without end")


def _commas(text: str) -> list[str]:
    parts, begin, depth = [], 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in _OPEN:
            depth += 1
        elif token[0] in ")]}":
            depth -= 1
        elif token[0] == "," and not depth:
            parts.append(text[begin : token.start()])
            begin = token.end()
    parts.append(text[begin:])
    return [part for part in parts if part.strip()]


def _operands(text: str) -> tuple[Operand, ...]:
    found = []
    for part in _commas(text):
        head = _OPERAND.match(part)
        if head is None or not part.rstrip().endswith(")"):
            raise AsmError(f"asm operand not understood: {part.strip()[:60]}")
        inner = part[head.end() : part.rstrip().rindex(")")]
        found.append(Operand(head[2], " ".join(inner.split()), head[1] or ""))
    return tuple(found)


def _strings(text: str) -> str | None:
    """Adjacent string literals as one text; None when there is anything else."""
    at, whole = 0, ""
    while found := _STRING.match(text, at):
        whole += unescape(found[1])
        at = found.end()
    return None if text[at:].strip() or not at else whole


def unescape(text: str) -> str:
    """The text that a C string literal stands for."""

    def one(found: re.Match[str]) -> str:
        mark = found[1]
        if mark[0] == "x":
            return chr(int(mark[1:], 16))
        return chr(int(mark, 8)) if mark[0] in "01234567" else _PLAIN.get(mark, mark)

    return _ESCAPE.sub(one, text) if "\\" in text else text
