"""Edits of series.yaml by surgery on its text: bytes in, bytes out, comments stay.

Every edit knows the meaning it wants; the result is read again and must have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from hexpatch import yamltree
from hexpatch.errors import HexpatchError, InvalidSeries
from hexpatch.series import DEFAULT_URL, FILE, PATCH_KEYS, Base
from hexpatch.yamltree import Document, ListNode, MapNode, Node, TextNode, plain, shown, similar

Value: TypeAlias = str | Sequence[str]
Path: TypeAlias = tuple[str | int, ...]
Cut: TypeAlias = tuple[int, int, str]  # text[start:end] becomes the third

_BASE_KEYS = ("name", "commit", "tree", "snapshot")
_HINT = f"edit {FILE} by hand"


# --- edits


def set_base(text: bytes, base: Base) -> bytes:
    """Pin another base, in the form, short or mapping, the file has if that can hold it."""
    document, want = _open(text)
    values = {key: getattr(base, key) for key in _BASE_KEYS}
    given = {key: value for key, value in values.items() if value is not None}
    root, node = document.root, document.at("base")
    if node is None:
        raise HexpatchError(f"{FILE} has no base", _HINT)
    if isinstance(node, MapNode) and node.pairs:
        others = {key: value for key, value in want["base"].items() if key not in values}
        want["base"] = given | others
        for key, value in values.items():
            document = _set(document, ("base",), key, value, _BASE_KEYS)
    elif len(given) == 1:
        want["base"] = base.name
        document = _set(document, (), "base", base.name, ())
    else:
        want["base"] = given
        place = _key(root, "base")
        indent = " " * (place.start.column + 1)
        lines = [f"{indent}{key}: {quote(value)}" for key, value in given.items()]
        flat = _put(document, place, node, _flow_map(given))
        cuts = flat if root.flow else _fill(document, place, node, lines)
        document = _cut(document, cuts)
    return _close(document, want)


def add_patch(text: bytes, entry: Mapping[str, object], after: str | None = None) -> bytes:
    """Insert an entry behind another, else at the end, in the style of its neighbours."""
    document, want = _open(text)
    given = {key: _listed(value) for key, value in entry.items() if value is not None}
    names = _names(want)
    name = _name(given)
    if not name:
        raise HexpatchError("an entry has neither name nor file")
    if name in names:
        raise HexpatchError(f"{FILE} already has a patch {shown(name)}")
    at = len(names) if after is None else _find(names, after) + 1
    short = list(given) == ["name"] and bool(names) and all(isinstance(e, str) for e in _all(want))
    item: Any = name if short else given
    document = _insert(document, ("patches",), at, item)
    want["patches"] = [*_all(want)[:at], item, *_all(want)[at:]]
    return _close(document, want)


def remove_patch(text: bytes, name: str) -> bytes:
    """Take out an entry with the comment attached to it, and every mention of it."""
    document, want = _open(text)
    _find(_names(want), name)
    while mentions := _mentions(document, name):
        document = _cut(document, [cut for path in mentions for cut in _removal(document, path)])
    for entry in _all(want):
        _drop(entry, "needs", name)
    groups = _all(want, "groups")
    emptied = [g for g in groups if _drop(g, "patches", name) and not g["patches"]]
    for at in range(len(groups) - 1, -1, -1):
        if groups[at] in emptied:
            document = _cut(document, _removal(document, ("groups", at)))
            del groups[at]
    at = _find(_names(want), name)
    document = _cut(document, _removal(document, ("patches", at)))
    del want["patches"][at]
    return _close(document, want)


def set_patch(text: bytes, name: str, key: str, value: Value | None) -> bytes:
    """Set a key of an entry, or with None remove it."""
    document, want = _open(text)
    at = _find(_names(want), name)
    node = document.at("patches", at)
    if isinstance(node, TextNode):
        if value is None:
            return text
        flow = _in_flow(document, ("patches", at))
        start, end = node.start.offset, _end(document, node)
        old = document.text[start:end]
        indent = document.newline + " " * (node.start.column - 1)
        written = f"name: {old}{indent}{key}: {_value(value)}"
        if flow:
            written = f"{{name: {old}, {key}: {_value(value, True)}}}"
        document = _cut(document, [(start, end, written)])
        want["patches"][at] = {"name": name}
    else:
        document = _set(document, ("patches", at), key, value, PATCH_KEYS)
    if value is None:
        want["patches"][at].pop(key, None)
    else:
        want["patches"][at][key] = _listed(value)
    return _close(document, want)


def rename_patch(text: bytes, old: str, new: str) -> bytes:
    """Rename an entry, its file and every mention of it."""
    document, want = _open(text)
    names = _names(want)
    at = _find(names, old)
    if new in names:
        raise HexpatchError(f"{FILE} already has a patch {shown(new)}")
    changed: list[tuple[Path, str]] = []
    entry = want["patches"][at]
    if isinstance(entry, str):
        changed.append((("patches", at), new))
    else:
        if "name" in entry:
            changed.append((("patches", at, "name"), new))
        if entry.get("file"):
            file = entry["file"].rpartition("/")
            changed.append((("patches", at, "file"), f"{file[0]}{file[1]}{new}.patch"))
    for path in _all_mentions(document, old):
        changed.append((path, new))
    cuts = []
    for path, name in changed:
        node = document.at(*path)
        if isinstance(node, TextNode):
            style = node.style if node.style in ("'", '"') else ""
            written = quote(name, _in_flow(document, path), style)
            cuts.append((node.start.offset, _end(document, node), written))
        *way, last = path
        holder = want
        for step in way:
            holder = holder[step]
        holder[last] = name
    return _close(_cut(document, cuts), want)


def add_to_group(text: bytes, group: str, name: str) -> bytes:
    """Add a patch to a group, which is made if there is none of this name."""
    document, want = _open(text)
    _find(_names(want), name)
    for item in _all(want, "groups"):
        if name in (item.get("patches") or ()) and item.get("name") != group:
            raise HexpatchError(f"{name} is already in group {item.get('name')}")
    for at, item in enumerate(_all(want, "groups")):
        if item.get("name") == group:
            members = item.get("patches") or []
            if name in members:
                return text
            document = _insert(document, ("groups", at, "patches"), len(members), name)
            item["patches"] = [*members, name]
            return _close(document, want)
    entry = {"name": group, "patches": [name]}
    document = _insert(document, ("groups",), len(_all(want, "groups")), entry)
    want["groups"] = [*_all(want, "groups"), entry]
    return _close(document, want)


def template(
    url: str | None,
    branch: str,
    repo: str | None,
    base: Base,
    src: Mapping[str, str] | None = None,
) -> bytes:
    """A fresh series.yaml that teaches its form. Without a URL the well-known one counts."""
    clone = f"repo: {quote(repo)}" if repo else "# repo: ../llama.cpp"
    lines = [f"  {key}: {quote(getattr(base, key))}" for key in _BASE_KEYS if getattr(base, key)]
    mapping = [f"  {quote(own)}: {quote(up)}" for own, up in (src or {}).items()]
    written = _TEMPLATE.format(
        url=f"url: {quote(url)}" if url else f"# url: {DEFAULT_URL}",
        branch=quote(branch),
        repo=clone,
        base="\n".join(lines),
        src="\n".join(["src:", *mapping] if mapping else ["# src:", *_SRC_EXAMPLE]),
    )
    yamltree.parse(written.encode())
    return written.encode()


_SRC_EXAMPLE = ("#   htp: ggml/src/ggml-hexagon/htp",)
_TEMPLATE = """\
# The series: which patches, in which order, on which upstream commit.
# hexpatch edits this file in place; comments and order stay.
version: 1

upstream:
  {url}
  branch: {branch}
  # A clone of your own: its objects are used, its branches and files are never touched.
  {repo}

# The upstream commit the patches stand on. `name` is for people, the ids lock the content.
# Moved by `hexpatch rebase --onto REV`.
base:
{base}

# Where to look for the base, in this order.
# sources: [clone, remote, snapshot]

# Where the directories of src/ go upstream.
{src}

# One entry per patch, in the order they are applied. The file is patches/NAME.patch.
#   - name: rope-f16             # kebab-case
#     why: one line of text
#     files: [src/htp/rope.c]    # new files this patch owns
#     needs: [other-patch]       # must stand before it
#     ops: [ROPE]                # what test-backend-ops should check
#     state: draft               # draft, ready, sent, landed, private or hold
#     pr: 12345
patches: []

# Patches that become one pull request.
#   - name: rope
#     title: "hexagon : add f16 ROPE"
#     patches: [rope-f16]
groups: []

# What to build and run.
# targets:
#   cpu: {{jobs: 4, timeout: 900}}
"""


# --- reading and writing back


def _open(data: bytes) -> tuple[Document, Any]:
    """The document, and its meaning to be turned into the wanted one."""
    document = yamltree.parse(data)
    return document, plain(document.root)


def _close(document: Document, want: Any) -> bytes:
    if plain(document.root) != want:
        raise HexpatchError(f"cannot edit {FILE} without changing something else", _HINT)
    return _bytes(document.text, document.bom)


def _bytes(text: str, bom: bool) -> bytes:
    return (b"\xef\xbb\xbf" if bom else b"") + text.encode()


def _cut(document: Document, cuts: list[Cut]) -> Document:
    """The document with pieces replaced, read again."""
    text = document.text
    for start, end, new in sorted(cuts, reverse=True):
        text = text[:start] + new + text[end:]
    try:
        return yamltree.parse(_bytes(text, document.bom))
    except InvalidSeries as error:
        raise HexpatchError(f"cannot edit {FILE}: the result would be wrong", _HINT) from error


# --- the meaning


def _all(want: Any, key: str = "patches") -> list[Any]:
    found = want.get(key)
    return found if isinstance(found, list) else []


def _name(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return entry or ""
    return entry.get("name") or (entry.get("file") or "").rpartition("/")[2].removesuffix(".patch")


def _names(want: Any) -> list[str]:
    return [_name(entry) for entry in _all(want)]


def _find(names: list[str], name: str) -> int:
    if name not in names:
        raise HexpatchError(f"no patch named {shown(name)}", similar(name, names))
    return names.index(name)


def _drop(entry: Any, key: str, name: str) -> bool:
    """Take a name out of a list of an entry; whether it was there."""
    members = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(members, list) or name not in members:
        return False
    entry[key] = [other for other in members if other != name]
    return True


def _listed(value: object) -> str | list[str]:
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and all(isinstance(item, str) for item in value):
        return list(value)
    raise HexpatchError(f"{FILE} holds text and lists of text, not {type(value).__name__}")


def _all_mentions(document: Document, name: str) -> Iterator[Path]:
    """Paths of every text in `needs` and in groups that names a patch."""
    for top, key in (("patches", "needs"), ("groups", "patches")):
        for at, entry in enumerate(_items(document.at(top))):
            found = entry.get(key) if isinstance(entry, MapNode) else None
            for number, item in enumerate(_items(found)):
                if isinstance(item, TextNode) and item.text == name:
                    yield (top, at, key, number)


def _mentions(document: Document, name: str) -> list[Path]:
    """At most one mention per list, so that they can be cut at once."""
    return list({path[:2]: path for path in _all_mentions(document, name)}.values())


# --- places


def _items(node: Node | None) -> tuple[Node, ...]:
    return node.items if isinstance(node, ListNode) else ()


def _map(document: Document, path: Path) -> MapNode:
    node = document.at(*path)
    if not isinstance(node, MapNode):
        raise HexpatchError(f"cannot edit {FILE}: no mapping at {path}", _HINT)
    return node


def _key(holder: MapNode, name: str | int) -> TextNode:
    return next(key for key, _ in holder.pairs if key.text == name)


def _in_flow(document: Document, path: Path) -> bool:
    """Whether what is at a path stands inside brackets."""
    above = (document.at(*path[:end]) for end in range(len(path)))
    return any(node.flow for node in above if isinstance(node, MapNode | ListNode))


def _end(document: Document, node: Node) -> int:
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
    at = _line_end(text, _end(document, node))
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
        f"cannot edit {FILE}: no dash before line {node.items[at].start.line}", _HINT
    )


def _item_lines(document: Document, node: ListNode, at: int) -> tuple[int, int]:
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


def _fill(document: Document, key: TextNode, node: Node, lines: list[str]) -> list[Cut]:
    """Put lines below a key in place of its text or empty value."""
    colon, end = _colon(document, key), _end(document, node)
    below = _lines_at(document, _line_end(document.text, end), lines)
    return [(colon, max(colon, end), ""), below]


def _put(document: Document, key: TextNode, node: Node, written: str) -> list[Cut]:
    """Write a value in one line in place of another."""
    colon = _colon(document, key)
    if isinstance(node, ListNode) and not node.flow:
        ranges = [_item_lines(document, node, at) for at in range(len(node.items))]
        return [(colon, colon, f" {written}"), *((*lines, "") for lines in ranges)]
    if node.start.offset < node.end.offset:
        return [(node.start.offset, _end(document, node), written)]
    return [(colon, colon, f" {written}" if colon > key.end.offset else f": {written}")]


def _removal(document: Document, path: Path) -> list[Cut]:
    """Take an item out of a list; an emptied list becomes []."""
    *way, name, at = path
    node = document.at(*way, name)
    if not isinstance(node, ListNode) or not isinstance(at, int):
        raise HexpatchError(f"cannot edit {FILE}: no list at {path}", _HINT)
    if node.flow:
        spans = [(item.start.offset, _end(document, item)) for item in node.items]
        return _flow_removal(document, node, spans, at)
    text = document.text
    start, end = _item_lines(document, node, at)
    if len(node.items) == 1:
        colon = _colon(document, _key(_map(document, tuple(way)), name))
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
        else [_end(document, item) for item in node.items]
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
    return max(_colon(document, key), _end(document, value) if written else 0)


# --- steps: each reads its result again


def _insert(document: Document, path: Path, at: int, entry: str | Mapping[str, Value]) -> Document:
    """Put an item into a list that may be empty or missing."""
    *way, name = path
    holder = _map(document, tuple(way))
    flat = quote(entry, True) if isinstance(entry, str) else _flow_map(entry)
    node = holder.get(str(name))
    if isinstance(node, ListNode) and node.flow and (node.items or "#" in _inside(document, node)):
        return _cut(document, [_flow_insert(document, node, at, flat)])
    if isinstance(node, ListNode) and node.items:
        return _cut(document, [_block_insert(document, node, at, entry)])
    lines = _block_lines(entry, _indent(document, holder), 2)
    flow = holder.flow or _in_flow(document, path)
    if node is None:
        text = f"{name}: [{flat}]"
        return _add_pair(
            document, tuple(way), [text] if flow else [f"{name}:", *lines], ("patches",)
        )
    key = _key(holder, name)
    if flow:
        return _cut(document, _put(document, key, node, f"[{flat}]"))
    return _cut(document, _fill(document, key, node, lines))


def _inside(document: Document, node: Node) -> str:
    return document.text[node.start.offset : node.end.offset]


def _indent(document: Document, holder: MapNode) -> int:
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
        lines = [" " * indent + "-" + " " * (pad - 1) + _flow_map(entry)]
    if at == 0:
        return _lines_at(document, _item_lines(document, node, 0)[0], lines)
    spaced = [
        number
        for number in range(1, len(node.items))
        if _blank(text, _line_start(text, _item_lines(document, node, number)[0] - 1))
    ]
    if spaced and (at in spaced or at - 1 in spaced or at == len(node.items)):
        lines.insert(0, "")
    return _lines_at(document, _item_lines(document, node, at - 1)[1], lines)


def _block_lines(entry: str | Mapping[str, Value], indent: int, pad: int) -> list[str]:
    if isinstance(entry, str):
        pieces = [quote(entry)]
    else:
        pieces = [f"{quote(key)}: {_value(value)}" for key, value in entry.items()]
    first = " " * indent + "-" + " " * (pad - 1)
    return [(" " * (indent + pad) if number else first) + p for number, p in enumerate(pieces)]


def _flow_map(entry: Mapping[str, Value]) -> str:
    return "{" + ", ".join(f"{key}: {_value(value, True)}" for key, value in entry.items()) + "}"


def _value(value: Value, flow: bool = False, style: str = "") -> str:
    if isinstance(value, str):
        return quote(value, flow, style)
    return "[" + ", ".join(quote(item, True) for item in value) + "]"


def _set(
    document: Document, way: Path, name: str, value: Value | None, order: Sequence[str]
) -> Document:
    """Set or, with None, remove a key of the mapping at a path."""
    holder = _map(document, way)
    node = holder.get(name)
    flow = holder.flow or _in_flow(document, (*way, name))
    if value is None:
        return document if node is None else _remove_pair(document, holder, name)
    if node is None:
        before = order[: order.index(name)] if name in order else order
        return _add_pair(document, way, [f"{name}: {_value(value, flow)}"], before)
    if isinstance(node, TextNode) and node.text == value and not node.null:
        safe = node.style or quote(node.text, flow) == node.text
        if safe:
            return document
    if isinstance(node, ListNode) and not isinstance(value, str):
        return _set_list(document, (*way, name), node, list(value))
    style = node.style if isinstance(node, TextNode) and node.style in ("'", '"') else ""
    return _cut(document, _put(document, _key(holder, name), node, _value(value, flow, style)))


def _set_list(document: Document, path: Path, node: ListNode, value: list[str]) -> Document:
    """Change a list item by item, so that what stays keeps its comments; else write it anew."""
    old = [item.text if isinstance(item, TextNode) else "" for item in node.items]
    stay = [text for text in old if text in value]
    if stay and stay == [text for text in value if text in old] and len({*value}) == len(value):
        for at in range(len(old) - 1, -1, -1):
            if old[at] not in value:
                document = _cut(document, _removal(document, (*path, at)))
        for at, text in enumerate(value):
            if text not in old:
                document = _insert(document, path, at, text)
        return document
    key = _key(_map(document, path[:-1]), path[-1])
    return _cut(document, _put(document, key, node, _value(value)))


def _add_pair(document: Document, way: Path, lines: list[str], before: Sequence[str]) -> Document:
    """Put a key behind the last of those that go before it."""
    holder = _map(document, way)
    places = [number for number, (key, _) in enumerate(holder.pairs, 1) if key.text in before]
    at = places[-1] if places else len(holder.pairs)
    if holder.flow:
        return _cut(document, [_flow_insert(document, holder, at, lines[0])])
    key, value = holder.pairs[at - 1]
    indent = key.start.column - 1
    lines = [" " * indent + lines[0], *lines[1:]]
    return _cut(document, [_lines_at(document, _below(document, value, indent), lines)])


def _remove_pair(document: Document, holder: MapNode, name: str) -> Document:
    """Take a key out; comments on lines of their own stay."""
    text = document.text
    at = [key.text for key, _ in holder.pairs].index(name)
    key, value = holder.pairs[at]
    end = _pair_end(document, key, value)
    if holder.flow:
        spans = [(k.start.offset, _pair_end(document, k, v)) for k, v in holder.pairs]
        return _cut(document, _flow_removal(document, holder, spans, at))
    start = _line_start(text, key.start.offset)
    if not text[start : key.start.offset].strip():
        return _cut(document, [(start, _line_end(text, end), "")])
    if at + 1 == len(holder.pairs):
        raise HexpatchError(f"cannot remove {name}, the only key there", _HINT)
    below = holder.pairs[at + 1][0].start.offset
    if text[_line_end(text, end) : below].strip():
        below = len(text[: _line_end(text, end)].rstrip())
        start = len(text[: key.start.offset].rstrip(" "))
        return _cut(document, [(start, below, "")])
    return _cut(document, [(key.start.offset, below, "")])


# --- quoting


# Words and numbers that some YAML 1.1 or 1.2 reader takes for something else than text.
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "=", "<<"))
_NUMBER = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)(?:e[-+]?[0-9]+)?"
    r"|[-+]?0[xob][0-9a-f_]+"
    r"|[-+]?[0-9][0-9_]*(?::[0-9]+)+(?:\.[0-9_]*)?"
    r"|[-+]?\.(?:inf|nan)"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*",
    re.IGNORECASE,
)
_FLOW_SIGNS = frozenset(",[]{}:")


def quote(text: str, flow: bool = False, style: str = "") -> str:
    """Text as a YAML scalar: plain where every reader sees text, else double-quoted.

    A quoting `style` that was there before is kept.
    """
    simple = text.isprintable() and "\ufeff" not in text
    if style == "'" and simple:
        return "'" + text.replace("'", "''") + "'"
    if style != '"' and simple and _plain_is_safe(text, flow):
        return text
    return '"' + "".join(map(_escape, text)) + '"'


def _plain_is_safe(text: str, flow: bool) -> bool:
    if text.lower() in _WORDS or _NUMBER.fullmatch(text) or text.startswith("..."):
        return False
    if not text or not (text[0].isalnum() or text[0] in "_./+(") or text[-1] in ": ":
        return False
    return not (": " in text or " #" in text or (flow and not _FLOW_SIGNS.isdisjoint(text)))


def _escape(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable() and char != "\ufeff":
        return char
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        raise HexpatchError("a lone surrogate cannot be written to YAML")
    if char in "\n\t\r":
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[char]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
