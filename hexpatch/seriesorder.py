"""The order of series.yaml: read it, and move whole entries with their comments."""

from __future__ import annotations

from collections.abc import Sequence

from hexpatch import seriesedit, yamledit, yamltree
from hexpatch.errors import HexpatchError
from hexpatch.series import FILE
from hexpatch.yamltree import ListNode, MapNode, Node, TextNode


def order(text: bytes) -> list[str]:
    """Names of the patches, top to bottom."""
    node = yamltree.parse(text).at("patches")
    return [_name(item) for item in node.items] if isinstance(node, ListNode) else []


def _name(item: Node) -> str:
    if isinstance(item, TextNode):
        return item.text
    if isinstance(item, MapNode):
        for key in ("name", "file"):
            value = item.get(key)
            if isinstance(value, TextNode):
                return value.text.rpartition("/")[2].removesuffix(".patch")
    return ""


def add_many(text: bytes, names: Sequence[str]) -> bytes | None:
    """Append many entries that have only a name; None if the form of the list is not plain.

    The first is added as any entry is, the others are written like it: one edit, not hundreds.
    """
    if len(names) < 3:
        return None
    first = seriesedit.add_patch(text, {"name": names[0]})
    mark = f"- name: {names[0]}".encode()
    lines = [line for line in first.splitlines(keepends=True) if line.strip() == mark]
    if len(lines) != 1:
        return None
    more = b"".join(lines[0].replace(names[0].encode(), name.encode()) for name in names[1:])
    result = first.replace(lines[0], lines[0] + more, 1)
    return result if order(result) == [*order(text), *names] else None


def reorder(text: bytes, names: Sequence[str]) -> bytes:
    """Put these entries into this order; the others keep their places."""
    document = yamltree.parse(text)
    node = document.at("patches")
    if not isinstance(node, ListNode) or node.flow:
        raise HexpatchError(
            f"cannot reorder {FILE}: patches is not a block list",
            "write one `- name: X` per line and run again",
        )
    spans = [yamledit.item_lines(document, node, n) for n in range(len(node.items))]
    blocks = {
        _name(item): document.text[a:b] for item, (a, b) in zip(node.items, spans, strict=True)
    }
    wanted = iter(names)
    moving = set(names)
    new = [next(wanted) if _name(item) in moving else _name(item) for item in node.items]
    out, done = [], 0
    for (start, end), name in zip(spans, new, strict=True):
        block = blocks[name]
        if not block.endswith("\n"):
            block += document.newline
        out += [document.text[done:start], block]
        done = end
    changed = "".join([*out, document.text[done:]])
    result = yamledit.to_bytes(changed, document.bom)
    if order(result) != new:
        raise HexpatchError(f"cannot reorder {FILE}", "move the entries by hand and run again")
    return result
