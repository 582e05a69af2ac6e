"""Surgery on the text of a YAML file: places, cuts, and steps that each read their result again.

What a cut does not touch stays as it is: comments, blank lines, quoting, line ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from hexpatch import yamltree
from hexpatch.errors import HexpatchError, InvalidSeries
from hexpatch.series import FILE
from hexpatch.yamlquote import quote
from hexpatch.yamltree import Document, ListNode, MapNode, Node, TextNode

Value: TypeAlias = str | Sequence[str]
Path: TypeAlias = tuple[str | int, ...]
Cut: TypeAlias = tuple[int, int, str]  # text[start:end] becomes the third

HINT = f"edit {FILE} by hand"


def to_bytes(text: str, bom: bool) -> bytes:
    """The file's bytes, with the byte order mark it had."""
    return (b"\xef\xbb\xbf" if bom else b"") + text.encode()


def cut(document: Document, cuts: list[Cut]) -> Document:
    """The document with pieces replaced, read again."""
    text = document.text
    for start, end, new in sorted(cuts, reverse=True):
        text = text[:start] + new + text[end:]
    try:
        return yamltree.parse(to_bytes(text, document.bom))
    except InvalidSeries as error:
        raise HexpatchError(f"cannot edit {FILE}: the result would be wrong", HINT) from error


# --- places


def items(node: Node | None) -> tuple[Node, ...]:
    """A list's items; none where there is no list."""
    return node.items if isinstance(node, ListNode) else ()


def _map(document: Document, path: Path) -> MapNode:
    node = document.at(*path)
    if not isinstance(node, MapNode):
        raise HexpatchError(f"cannot edit {FILE}: no mapping at {path}", HINT)
    return node


def key_of(holder: MapNode, name: str | int) -> TextNode:
    """The place of a key that the mapping has."""
    return next(key for key, _ in holder.pairs if key.text == name)


def in_flow(document: Document, path: Path) -> bool:
    """Whether what is at a path stands inside brackets."""
    above = (document.at(*path[:end]) for end in range(len(path)))
    return any(node.flow for node in above if isinstance(node, MapNode | ListNode))


def end_of(document: Document, node: Node) -> int:
    """Behind the last character of a node; block scalars otherwise end a line later."""
    end = node.end.offset
    while end > node.start.offset and document.text[end - 1] in " \t\r\n":
        end -= 1
    return end


def _colon(document: Document, key: TextNode) -> int:
    """Behind the colon of a key; behind the key where there is none."""
    found = re.compile(r"[ \t]*:").match(document.text, key.end.offset)
    return found.end() if found else key.end.offset


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    """Behind the line that holds a place, its line end included."""
    return (text.find("\n", at) + 1) or len(text)


def _comment(text: str, at: int) -> int | None:
    """The indent of the comment that is alone on the line starting here."""
    line = text[at : _line_end(text, at)]
    bare = line.lstrip(" ")
    return len(line) - len(bare) if bare.startswith("#") else None


def _blank(text: str, at: int) -> bool:
    return at < len(text) and not text[at : _line_end(text, at)].strip()


def _below(document: Document, node: Node, indent: int) -> int:
    """Behind the lines of a node and the comments attached below that are deeper than indent."""
    text = document.text
    at = _line_end(text, end_of(document, node))
    while at < len(text) and (_comment(text, at) or 0) > indent:
        at = _line_end(text, at)
    return at


def _dash(document: Document, node: ListNode, at: int) -> int:
    """Where the dash of a block list's item is."""
    text, indent = document.text, node.start.column - 1
    if at == 0:
        return node.start.offset
    start = _line_start(text, node.items[at].start.offset)
    while start > node.start.offset:
        if (
            text[start + indent : start + indent + 1] == "-"
            and not text[start : start + indent].strip()
        ):
            return start + indent
        start = _line_start(text, start - 1)
    raise HexpatchError(
        f"cannot edit {FILE}: no dash before line {node.items[at].start.line}", HINT
    )


def item_lines(document: Document, node: ListNode, at: int) -> tuple[int, int]:
    """The lines of an item, with the comments attached: above like the dash, below deeper."""
    text, indent = document.text, node.start.column - 1
    start = _line_start(text, _dash(document, node, at))
    while start and _comment(text, _line_start(text, start - 1)) == indent:
        start = _line_start(text, start - 1)
    return start, _below(document, node.items[at], indent)


# --- cuts


def _lines_at(document: Document, at: int, lines: list[str]) -> Cut:
    """New lines at the start of a line, or at the end of the file."""
    new = document.newline
    if at and document.text[at - 1] != "\n":
        return at, at, new + new.join(lines)
    return at, at, "".join(line + new for line in lines)


def fill(document: Document, key: TextNode, node: Node, lines: list[str]) -> list[Cut]:
    """Put lines below a key in place of its text or empty value."""
    colon, end = _colon(document, key), end_of(document, node)
    below = _lines_at(document, _line_end(document.text, end), lines)
    return [(colon, max(colon, end), ""), below]


def put(document: Document, key: TextNode, node: Node, written: str) -> list[Cut]:
    """Write a value in one line in place of another."""
    colon = _colon(document, key)
    if isinstance(node, ListNode) and not node.flow:
        ranges = [item_lines(document, node, at) for at in range(len(node.items))]
        return [(colon, colon, f" {written}"), *((*lines, "") for lines in ranges)]
    if node.start.offset < node.end.offset:
        return [(node.start.offset, end_of(document, node), written)]
    return [(colon, colon, f" {written}" if colon > key.end.offset else f": {written}")]


def removal(document: Document, path: Path) -> list[Cut]:
    """Take an item out of a list; an emptied list becomes []."""
    *way, name, at = path
    node = document.at(*way, name)
    if not isinstance(node, ListNode) or not isinstance(at, int):
        raise HexpatchError(f"cannot edit {FILE}: no list at {path}", HINT)
    if node.flow:
        spans = [(item.start.offset, end_of(document, item)) for item in node.items]
        return _flow_removal(document, node, spans, at)
    text = document.text
    start, end = item_lines(document, node, at)
    if len(node.items) == 1:
        colon = _colon(document, key_of(_map(document, tuple(way)), name))
        return [(colon, colon, " []"), (start, end, "")]
    if at == 0 or _blank(text, _line_start(text, start - 1)):
        while _blank(text, end):
            end = _line_end(text, end)
    return [(start, end, "")]


def _flow_removal(
    document: Document, node: Node, spans: list[tuple[int, int]], at: int
) -> list[Cut]:
    """Take one of several pieces out of brackets, with one comma."""
    text = document.text
    start, end = spans[at]
    after = _skip(text, end)
    if text[after] == ",":
        if after > end and text[end:after].strip():
            return [(start, end, ""), (after, after + 1, "")]
        after += 1 + len(text[after + 1 :]) - len(text[after + 1 :].lstrip(" \t"))
        if text[after - 1 : after + 1] == " #":  # a comment needs a blank before it
            after -= 1
        return [_whole_line(text, start, after)]
    if at == 0:
        inside = text[node.start.offset + 1 : start] + text[end : node.end.offset - 1]
        if not inside.strip():
            return [(node.start.offset + 1, node.end.offset - 1, "")]
        return [_whole_line(text, start, end)]
    comma = _skip(text, spans[at - 1][1])
    if text[comma + 1 : start].strip():
        return [(comma, comma + 1, ""), _whole_line(text, start, end)]
    return [(comma, end, "")]


def _whole_line(text: str, start: int, end: int) -> Cut:
    """A cut that takes its line with it where nothing would be left on that."""
    line, rest = _line_start(text, start), text[end : _line_end(text, end)]
    if text[line:start].strip() or rest.strip() or not rest.endswith("\n"):
        return start, end, ""
    return line, end + len(rest), ""


def _skip(text: str, at: int) -> int:
    """Over blanks, line ends and comments inside brackets."""
    found = re.compile(r"(?:[ \t\r\n]|(?<=\s)#[^\n]*)*").match(text, at)
    return found.end() if found else at


def _flow_insert(document: Document, node: ListNode | MapNode, at: int, written: str) -> Cut:
    """Put a piece between brackets."""
    ends = (
        [_pair_end(document, *p) for p in node.pairs]
        if isinstance(node, MapNode)
        else [end_of(document, item) for item in node.items]
    )
    start = node.start.offset + 1
    if at and ends:
        return ends[at - 1], ends[at - 1], f", {written}"
    if ends:
        first = node.pairs[0][0] if isinstance(node, MapNode) else node.items[0]
        return first.start.offset, first.start.offset, f"{written}, "
    inside = document.text[start : node.end.offset - 1]
    return start, start if inside.strip() else node.end.offset - 1, written


def _pair_end(document: Document, key: TextNode, value: Node) -> int:
    written = value.start.offset < value.end.offset
    return max(_colon(document, key), end_of(document, value) if written else 0)


# --- steps: each reads its result again


def insert(
    document: Document,
    path: Path,
    at: int,
    entry: str | Mapping[str, Value],
    before: Sequence[str] = (),
) -> Document:
    """Put an item into a list that may be empty or, then put behind keys `before`, missing."""
    *way, name = path
    holder = _map(document, tuple(way))
    flat = quote(entry, True) if isinstance(entry, str) else flow_map(entry)
    node = holder.get(str(name))
    if isinstance(node, ListNode) and node.flow and (node.items or "#" in _inside(document, node)):
        return cut(document, [_flow_insert(document, node, at, flat)])
    if isinstance(node, ListNode) and node.items:
        return cut(document, [_block_insert(document, node, at, entry)])
    lines = _block_lines(entry, _indent(holder), 2)
    flow = holder.flow or in_flow(document, path)
    if node is None:
        text = f"{name}: [{flat}]"
        lines = [text] if flow else [f"{name}:", *lines]
        return _add_pair(document, tuple(way), lines, before)
    key = key_of(holder, name)
    if flow:
        return cut(document, put(document, key, node, f"[{flat}]"))
    return cut(document, fill(document, key, node, lines))


def _inside(document: Document, node: Node) -> str:
    return document.text[node.start.offset : node.end.offset]


def _indent(holder: MapNode) -> int:
    """The indent of dashes in a mapping: as in a list it has, else two more than its keys."""
    for _, value in holder.pairs:
        if isinstance(value, ListNode) and not value.flow:
            return value.start.column - 1
    return holder.start.column + 1


def _block_insert(
    document: Document, node: ListNode, at: int, entry: str | Mapping[str, Value]
) -> Cut:
    """Put an item into a block list, formed like the one before it."""
    text, indent = document.text, node.start.column - 1
    near = node.items[max(at - 1, 0)]
    dash = _dash(document, node, max(at - 1, 0))
    pad = near.start.offset - dash
    pad = pad if 2 <= pad <= 8 and "\n" not in text[dash : near.start.offset] else 2
    lines = _block_lines(entry, indent, pad)
    if isinstance(near, MapNode) and near.flow and not isinstance(entry, str):
        lines = [" " * indent + "-" + " " * (pad - 1) + flow_map(entry)]
    if at == 0:
        return _lines_at(document, item_lines(document, node, 0)[0], lines)
    spaced = [
        number
        for number in range(1, len(node.items))
        if _blank(text, _line_start(text, item_lines(document, node, number)[0] - 1))
    ]
    if spaced and (at in spaced or at - 1 in spaced or at == len(node.items)):
        lines.insert(0, "")
    return _lines_at(document, item_lines(document, node, at - 1)[1], lines)


def _block_lines(entry: str | Mapping[str, Value], indent: int, pad: int) -> list[str]:
    if isinstance(entry, str):
        pieces = [quote(entry)]
    else:
        pieces = [f"{quote(key)}: {in_line(value)}" for key, value in entry.items()]
    first = " " * indent + "-" + " " * (pad - 1)
    return [(" " * (indent + pad) if number else first) + p for number, p in enumerate(pieces)]


def flow_map(entry: Mapping[str, Value]) -> str:
    """A mapping in braces, on one line."""
    return "{" + ", ".join(f"{key}: {in_line(value, True)}" for key, value in entry.items()) + "}"


def in_line(value: Value, flow: bool = False, style: str = "") -> str:
    """A text, or a list in brackets, on one line."""
    if isinstance(value, str):
        return quote(value, flow, style)
    return "[" + ", ".join(quote(item, True) for item in value) + "]"


def set_key(
    document: Document, way: Path, name: str, value: Value | None, order: Sequence[str]
) -> Document:
    """Set or, with None, remove a key of the mapping at a path."""
    holder = _map(document, way)
    node = holder.get(name)
    flow = holder.flow or in_flow(document, (*way, name))
    if value is None:
        return document if node is None else _remove_pair(document, holder, name)
    if node is None:
        before = order[: order.index(name)] if name in order else order
        return _add_pair(document, way, [f"{name}: {in_line(value, flow)}"], before)
    if isinstance(node, TextNode) and node.text == value and not node.null:
        safe = node.style or quote(node.text, flow) == node.text
        if safe:
            return document
    if isinstance(node, ListNode) and not isinstance(value, str):
        return _set_list(document, (*way, name), node, list(value))
    style = node.style if isinstance(node, TextNode) and node.style in ("'", '"') else ""
    return cut(document, put(document, key_of(holder, name), node, in_line(value, flow, style)))


def _set_list(document: Document, path: Path, node: ListNode, value: list[str]) -> Document:
    """Change a list item by item, so that what stays keeps its comments; else write it anew."""
    old = [item.text if isinstance(item, TextNode) else "" for item in node.items]
    stay = [text for text in old if text in value]
    if stay and stay == [text for text in value if text in old] and len({*value}) == len(value):
        for at in range(len(old) - 1, -1, -1):
            if old[at] not in value:
                document = cut(document, removal(document, (*path, at)))
        for at, text in enumerate(value):
            if text not in old:
                document = insert(document, path, at, text)
        return document
    key = key_of(_map(document, path[:-1]), path[-1])
    return cut(document, put(document, key, node, in_line(value)))


def _add_pair(document: Document, way: Path, lines: list[str], before: Sequence[str]) -> Document:
    """Put a key behind the last of those that go before it."""
    holder = _map(document, way)
    places = [number for number, (key, _) in enumerate(holder.pairs, 1) if key.text in before]
    at = places[-1] if places else len(holder.pairs)
    if holder.flow:
        return cut(document, [_flow_insert(document, holder, at, lines[0])])
    key, value = holder.pairs[at - 1]
    indent = key.start.column - 1
    lines = [" " * indent + lines[0], *lines[1:]]
    return cut(document, [_lines_at(document, _below(document, value, indent), lines)])


def _remove_pair(document: Document, holder: MapNode, name: str) -> Document:
    """Take a key out; comments on lines of their own stay."""
    text = document.text
    at = [key.text for key, _ in holder.pairs].index(name)
    key, value = holder.pairs[at]
    end = _pair_end(document, key, value)
    if holder.flow:
        spans = [(k.start.offset, _pair_end(document, k, v)) for k, v in holder.pairs]
        return cut(document, _flow_removal(document, holder, spans, at))
    start = _line_start(text, key.start.offset)
    if not text[start : key.start.offset].strip():
        return cut(document, [(start, _line_end(text, end), "")])
    if at + 1 == len(holder.pairs):
        raise HexpatchError(f"cannot remove {name}, the only key there", HINT)
    below = holder.pairs[at + 1][0].start.offset
    if text[_line_end(text, end) : below].strip():
        below = len(text[: _line_end(text, end)].rstrip())
        start = len(text[: key.start.offset].rstrip(" "))
        return cut(document, [(start, below, "")])
    return cut(document, [(key.start.offset, below, "")])
