"""What a YAML file holds, as written: texts, lists and mappings with their places."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Mark(NamedTuple):
    """A place in the text: offset counts characters from 0, line and column from 1."""

    offset: int
    line: int
    column: int


class TextNode(NamedTuple):
    """A scalar, as text. `style` is '' for plain, else the character that opens it: ' " | >"""

    text: str
    style: str
    start: Mark
    end: Mark

    @property
    def null(self) -> bool:
        """Nothing written, or a plain `null` or `~`."""
        return not self.style and self.text in ("", "~", "null", "Null", "NULL")


class ListNode(NamedTuple):
    """A sequence. `end` is behind the last item, not at the next token."""

    items: tuple[Node, ...]
    flow: bool
    start: Mark
    end: Mark


class MapNode(NamedTuple):
    """A mapping in the order of the file; its keys keep their places."""

    pairs: tuple[tuple[TextNode, Node], ...]
    flow: bool
    start: Mark
    end: Mark

    def get(self, key: str) -> Node | None:
        return next((value for name, value in self.pairs if name.text == key), None)


Node: TypeAlias = TextNode | ListNode | MapNode
