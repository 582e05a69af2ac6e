"""The YAML that series.yaml usually is, read without PyYAML: to load that takes as long as a check.

Block mappings and lists of short texts, flow lists of them on one line, comments. Whatever else is
in a file, or might be read in another way, is left to PyYAML.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hexpatch.yamlnode import ListNode, MapNode, Mark, Node, TextNode

# a plain text: a colon only inside a word, # not at a word's begin, and no sign at its own
_CHAR = r"(?:[!-9;-~]|:(?=[!-~]))"
_PLAIN = rf"[A-Za-z0-9_/.~^+(]{_CHAR}*(?: +(?!#){_CHAR}+)*"
_KEY = r"[A-Za-z_][A-Za-z0-9_.-]{0,99}(?::[A-Za-z0-9_.-]{1,99})?"
_LINE = re.compile(
    rf"(?P<dash>- )?(?:(?P<key>{_KEY})(?P<colon>:)(?= |$) *)?"
    rf"(?:(?P<flow>[\[{{][^#\"']*[\]}}])|(?P<quoted>\"[^\"\\]*\"|'[^']*')|(?P<plain>{_PLAIN}))?"
    r"(?: +#.*| *)"
)
_ITEM = re.compile(r"[A-Za-z0-9_/.~^+][A-Za-z0-9_/.~^+@=-]*")
_BLANKS = re.compile(" *")
_DEEP = 8


class _Unusual(Exception):
    """Something that PyYAML should judge."""


class _Line(NamedTuple):
    """A line that says something, and the indentation of its first character."""

    indent: int
    number: int
    offset: int  # of the line's begin in the file
    match: re.Match[str]

    def mark(self, column: int) -> Mark:
        return Mark(self.offset + column, self.number, column + 1)

    def text(self, start: int, end: int) -> TextNode:
        return TextNode(self.match.string[start:end], "", self.mark(start), self.mark(end))

    def value(self) -> Node | None:
        """What stands behind the key or the dash."""
        if self.match["plain"] is not None:
            return self.text(*self.match.span("plain"))
        if self.match["quoted"] is not None:
            node = self.text(*self.match.span("quoted"))
            return node._replace(text=node.text[1:-1], style=node.text[0])
        if self.match["flow"] is None:
            return None
        start, end = self.match.span("flow")
        value, at = self.flow(start, 0)
        if at != end:
            raise _Unusual
        return value

    def flow(self, at: int, depth: int) -> tuple[Node, int]:
        """What begins here inside of brackets, and where the next thing does."""
        text = self.match.string
        if text[at] not in "[{" or depth > _DEEP:
            item = _ITEM.match(text, at)
            if item is None:
                raise _Unusual
            return self.text(*item.span()), _after_blanks(text, item.end())
        items: list[Node] = []
        pairs: dict[str, tuple[TextNode, Node]] = {}
        start, mapping = at, text[at] == "{"
        closing = "}" if mapping else "]"
        at = _after_blanks(text, at + 1)
        while text[at] != closing:
            node, at = self.flow(at, depth + 1)
            if mapping:
                if not isinstance(node, TextNode) or not text.startswith(": ", at):
                    raise _Unusual
                if node.text in pairs:
                    raise _Unusual
                value, at = self.flow(_after_blanks(text, at + 1), depth + 1)
                pairs[node.text] = node, value
            else:
                items.append(node)
            if text[at] == ",":
                at = _after_blanks(text, at + 1)
            elif text[at] != closing:
                raise _Unusual
        marks = self.mark(start), self.mark(at + 1)
        at = _after_blanks(text, at + 1) if depth else at + 1
        if mapping:
            return MapNode(tuple(pairs.values()), True, *marks), at
        return ListNode(tuple(items), True, *marks), at


def _after_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    assert match is not None
    if match.end() == len(text):
        raise _Unusual
    return match.end()


def read(text: str) -> MapNode | None:
    """The tree of a usual file, as PyYAML would have it; None for any other file."""
    if not text.isascii() or "\r" in text:
        return None
    lines: list[_Line] = []
    offset = 0
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.lstrip(" ")
        if bare and bare[0] != "#":
            indent = len(line) - len(bare)
            match = _LINE.fullmatch(line, indent)
            if match is None or (match["key"] is None and match["dash"] is None):
                return None
            lines.append(_Line(indent, number, offset, match))
        offset += len(line) + 1
    try:
        tree, at = _block(lines, 0, 0, 0) if lines else (None, 0)
    except _Unusual:
        return None
    return tree if isinstance(tree, MapNode) and at == len(lines) else None


def _block(lines: list[_Line], at: int, indent: int, depth: int) -> tuple[Node, int]:
    """The mapping or list whose first line this is, and the index of the line after it."""
    if lines[at].indent != indent or depth > _DEEP:
        raise _Unusual
    if lines[at].match["dash"] is not None:
        return _list(lines, at, indent, depth)
    return _map(lines, at, indent, depth)


def _map(lines: list[_Line], at: int, indent: int, depth: int) -> tuple[MapNode, int]:
    """A mapping whose keys are indented so; the first one may stand behind the dash of an item."""
    pairs: dict[str, tuple[TextNode, Node]] = {}
    while at < len(lines):
        line = lines[at]
        behind_dash = not pairs and line.match["dash"] is not None
        if not behind_dash and (line.indent != indent or line.match["dash"] is not None):
            break
        key, value = line.text(*line.match.span("key")), line.value()
        if key.text in pairs:
            raise _Unusual
        at += 1
        deeper = lines[at].indent if at < len(lines) else -1
        if value is None and deeper > indent:
            value, at = _block(lines, at, deeper, depth + 1)
        elif value is None and deeper == indent and lines[at].match["dash"] is not None:
            value, at = _list(lines, at, indent, depth + 1)
        elif value is None:
            nothing = line.mark(line.match.end("colon"))
            value = TextNode("", "", nothing, nothing)
        if at < len(lines) and lines[at].indent > indent:
            raise _Unusual  # the text goes on, or nothing fits
        pairs[key.text] = key, value
    entries = tuple(pairs.values())
    return MapNode(entries, False, entries[0][0].start, entries[-1][1].end), at


def _list(lines: list[_Line], at: int, indent: int, depth: int) -> tuple[ListNode, int]:
    items: list[Node] = []
    start = lines[at].mark(indent)
    while at < len(lines) and lines[at].indent == indent and lines[at].match["dash"] is not None:
        line = lines[at]
        value = line.value()
        if line.match["key"] is not None:
            value, at = _map(lines, at, indent + 2, depth + 1)
        else:
            at += 1
        if value is None or (at < len(lines) and lines[at].indent > indent):
            raise _Unusual
        items.append(value)
    return ListNode(tuple(items), False, start, items[-1].end), at
