"""YAML as written: a small tree of text with places, never resolved to numbers or dates.

Only what series.yaml needs is let in. Anchors, aliases, tags, merge keys, duplicate keys and
deep nesting are refused, so a tree is never larger than its file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from hexpatch.errors import InvalidSeries, Problem
from hexpatch.yamlnode import ListNode, MapNode, Mark, Node, TextNode

if TYPE_CHECKING:
    import yaml

__all__ = ["Document", "ListNode", "MapNode", "Mark", "Node", "Reader", "TextNode", "parse", "read"]

MAX_DEPTH = 20
MAX_SHOWN = 20  # problems worth a closer look: more lines are not shown
CONTROL = ("Cc", "Cs", "Zl", "Zp")

# what must not be there is listed: the regex of all that may be there takes 7 ms to compile
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]"
)
_CONFLICT = re.compile(r"^(?:<{7}|={7}|>{7}|\|{7})(?: .*)?\r?$", re.MULTILINE)


Rule: TypeAlias = Callable[[str], str | None]  # what is wrong with a text
Plain: TypeAlias = "str | list[Plain] | dict[str, Plain] | None"


class Document(NamedTuple):
    """A parsed file; `text` is without the byte order mark that `bom` tells of."""

    text: str
    root: MapNode
    bom: bool

    @property
    def newline(self) -> str:
        """The line end of the first line, which new lines get too."""
        first = self.text.find("\n")
        return "\r\n" if first > 0 and self.text[first - 1] == "\r" else "\n"

    def at(self, *steps: str | int) -> Node | None:
        """The node under these keys and positions."""
        node: Node | None = self.root
        for step in steps:
            if isinstance(step, str):
                node = node.get(step) if isinstance(node, MapNode) else None
            else:
                node = node.items[step] if isinstance(node, ListNode) else None
        return node


def parse(data: bytes, path: str = "series.yaml") -> Document:
    """The tree of a file, or InvalidSeries with everything that is wrong with it."""
    document, problems = read(data, path)
    if problems or document is None:
        raise InvalidSeries(tuple(problems))
    return document


def read(data: bytes, path: str = "series.yaml") -> tuple[Document | None, list[Problem]]:
    """The tree as far as there is one, and the problems found on the way."""
    document, problems = _read(data, path)
    return document, list(problems)


@lru_cache(maxsize=4)  # an edit reads again what the one before has written
def _read(data: bytes, path: str) -> tuple[Document | None, list[Problem]]:
    text, problems = _decode(data, path)
    if problems:
        return None, problems
    root = _Builder(path, problems).build(text)
    if root is None:
        return None, problems
    if not isinstance(root, MapNode):
        if isinstance(root, TextNode) and root.null:
            problems.append(Problem(path, 0, 0, "is empty"))
        else:
            kind = "a list" if isinstance(root, ListNode) else "text"
            message = f"must be a mapping (lines of `key: value`), not {kind}"
            problems.append(Problem(path, root.start.line, root.start.column, message))
        return None, problems
    return Document(text, root, data.startswith(b"\xef\xbb\xbf")), problems


def plain(node: Node | None) -> Plain:
    """The meaning of a node as dict, list, text and None."""
    if isinstance(node, MapNode):
        return {key.text: plain(value) for key, value in node.pairs}
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return None if node is None or node.null else node.text


def _decode(data: bytes, path: str) -> tuple[str, list[Problem]]:
    """UTF-8 text without control characters and conflict marks, or why it is not that."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "", [Problem(path, 1, 1, "is UTF-16; save it as UTF-8")]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = len(data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode()) + 1
        place = f"byte 0x{data[error.start]:02x} at position {error.start}"
        return "", [Problem(path, line, column, f"not UTF-8: {place}")]
    problems = [
        Problem(path, *_line_column(text, found.start()), f"control character {found[0]!a}")
        for found, _ in zip(_FORBIDDEN.finditer(text), range(20), strict=False)
    ]
    conflict = _CONFLICT.search(text)
    if conflict:
        line, column = _line_column(text, conflict.start())
        problems.append(Problem(path, line, column, "holds merge conflict marks"))
    return text, problems


def _line_column(text: str, index: int) -> tuple[int, int]:
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


class _Frame:
    """A list or mapping that is still open: for a mapping, `nodes` alternates key and value."""

    def __init__(self, is_map: bool, flow: bool, start: Mark) -> None:
        self.is_map = is_map
        self.flow = flow
        self.start = start
        self.nodes: list[Node] = []


class _Builder:
    """Turns events into nodes with a list of open frames, no recursion."""

    def __init__(self, path: str, problems: list[Problem]) -> None:
        self.path = path
        self.problems = problems
        self.frames: list[_Frame] = []
        self.root: Node | None = None

    def fault(self, mark: Mark, text: str) -> None:
        self.problems.append(Problem(self.path, mark.line, mark.column, text))

    def build(self, text: str) -> Node | None:
        """The root node; None after a problem that leaves nothing to look at."""
        import yaml

        try:
            whole = self._feed(_events(text))
        except yaml.MarkedYAMLError as error:
            self._syntax(error, text)
            return None
        except yaml.YAMLError as error:  # pragma: no cover - _decode has seen all of these
            self.problems.append(Problem(self.path, 0, 0, f"not valid YAML: {error}"))
            return None
        if whole and self.root is None:
            self.problems.append(Problem(self.path, 0, 0, "is empty"))
        return self.root

    def _feed(self, events: Iterator[yaml.Event]) -> bool:
        """Eat events; False when the rest isn't worth reading."""
        import yaml

        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                start = _mark(event.start_mark)
                if not self._allowed(event, start):
                    return False
                node = TextNode(event.value, event.style or "", start, _mark(event.end_mark))
                self._add(node)
            elif isinstance(event, yaml.CollectionStartEvent):
                start = _mark(event.start_mark)
                if not self._allowed(event, start):
                    return False
                if len(self.frames) >= MAX_DEPTH:
                    self.fault(start, f"nested deeper than {MAX_DEPTH} levels")
                    return False
                is_map = isinstance(event, yaml.MappingStartEvent)
                self.frames.append(_Frame(is_map, bool(event.flow_style), start))
            elif isinstance(event, yaml.CollectionEndEvent):
                self._close(_mark(event.end_mark))
            elif isinstance(event, yaml.AliasEvent):
                self.fault(
                    _mark(event.start_mark),
                    f"aliases are not allowed (*{shown(str(event.anchor))})",
                )
                return False
            elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
                self.fault(_mark(event.start_mark), "more than one document")
                return True
        return True

    def _allowed(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, start: Mark) -> bool:
        """Anchors end the reading, tags are reported and their node read as if without."""
        if event.anchor is not None:
            self.root = None
            self.fault(start, f"anchors are not allowed (&{shown(str(event.anchor))})")
            return False
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!", 1)
            self.fault(start, f"tags are not allowed ({shown(tag)})")
        return True

    def _add(self, node: Node) -> None:
        if self.frames:
            self.frames[-1].nodes.append(node)
        else:
            self.root = node

    def _close(self, end: Mark) -> None:
        frame = self.frames.pop()
        if not frame.flow and frame.nodes:
            end = frame.nodes[-1].end
        if frame.is_map:
            self._add(MapNode(self._pairs(frame.nodes), frame.flow, frame.start, end))
        else:
            self._add(ListNode(tuple(frame.nodes), frame.flow, frame.start, end))

    def _pairs(self, nodes: list[Node]) -> tuple[tuple[TextNode, Node], ...]:
        """Keys with values; the first of two equal keys stays, the other is reported."""
        pairs: dict[str, tuple[TextNode, Node]] = {}
        for key, value in zip(nodes[::2], nodes[1::2], strict=True):
            if not isinstance(key, TextNode):
                self.fault(key.start, "a key must be text")
            elif key.text == "<<" and not key.style:
                self.fault(key.start, "merge keys are not allowed (<<)")
            elif key.text in pairs:
                lines = f"lines {pairs[key.text][0].start.line} and {key.start.line}"
                self.fault(key.start, f"key {shown(key.text)} twice ({lines})")
            else:
                pairs[key.text] = (key, value)
        return tuple(pairs.values())

    def _syntax(self, error: yaml.MarkedYAMLError, text: str) -> None:
        mark = error.problem_mark or error.context_mark
        if mark is None:
            self.problems.append(Problem(self.path, 0, 0, f"not valid YAML: {error.problem}"))
            return
        if text[mark.index : mark.index + 1] == "\t":
            self.fault(_mark(mark), "a tab cannot indent; use blanks")
            return
        if "nesting" in str(error.problem):  # libyaml reads ahead and meets its own limit first
            self.fault(_mark(mark), f"nested deeper than {MAX_DEPTH} levels")
            return
        context = f" {error.context}" if error.context else ""
        self.fault(_mark(mark), f"not valid YAML{context}: {error.problem}")


def _events(text: str) -> Iterator[yaml.Event]:
    import yaml

    loader = getattr(yaml, "CLoader", yaml.Loader)
    events: Iterator[yaml.Event] = yaml.parse(text, Loader=loader)
    return events


def _mark(mark: Any) -> Mark:
    return Mark(mark.index, mark.line + 1, mark.column + 1)


def shown(text: str) -> str:
    """Text from a file for a message: escaped, and not longer than a line."""
    safe = text if text.isprintable() and text else ascii(text)
    return safe if len(safe) <= 80 else safe[:77] + "..."


def is_null(node: Node) -> bool:
    return isinstance(node, TextNode) and node.null


def has_control(text: str, kinds: tuple[str, ...] = CONTROL) -> bool:
    """Whether text holds characters of these Unicode categories."""
    if text.isprintable():
        return False
    import unicodedata

    return any(unicodedata.category(char) in kinds for char in text)


def similar(name: str, known: Iterable[str]) -> str | None:
    """A did-you-mean hint."""
    import difflib

    close = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {close[0]}?" if close else None


class Reader:
    """Reads nodes as what they should be, and notes a problem where they are not."""

    def __init__(self, path: str, problems: list[Problem]) -> None:
        self.path = path
        self.problems = problems

    def fault(self, node: Node, text: str) -> None:
        self.problems.append(Problem(self.path, node.start.line, node.start.column, text))

    def unknown(self, node: Node, text: str, word: str, known: Iterable[str]) -> None:
        """A fault with a did-you-mean, as long as it will be seen."""
        hint = similar(word, known) if len(self.problems) < MAX_SHOWN else None
        self.fault(node, f"{text} ({hint})" if hint else text)

    def fields(self, node: Node | None, what: str, known: tuple[str, ...]) -> dict[str, Node]:
        """The known keys of a mapping that have a value."""
        pairs = self.pairs(node, what)
        for key, _ in pairs:
            if known and key.text not in known:
                text = f"unknown key {shown(key.text)} in {what}"
                self.unknown(key, text, key.text, known)
        return {key.text: value for key, value in pairs if not is_null(value)}

    def pairs(self, node: Node | None, what: str) -> tuple[tuple[TextNode, Node], ...]:
        if isinstance(node, MapNode):
            return node.pairs
        if node is not None and not is_null(node):
            self.fault(node, f"{what} must be a mapping")
        return ()

    def items(self, node: Node | None, what: str) -> tuple[Node, ...]:
        if isinstance(node, ListNode):
            return node.items
        if node is not None and not is_null(node):
            self.fault(node, f"{what} must be a list")
        return ()

    def text(self, node: Node | None, what: str, rule: Rule | None = None) -> str:
        """One line of text that keeps the rule, else ''."""
        if node is None:
            return ""
        if not isinstance(node, TextNode) or node.null:
            self.fault(node, f"{what} must be text")
            return ""
        text = node.text.removesuffix("\n") if node.style in ("|", ">") else node.text
        wrong = "holds a control character" if has_control(text) else rule(text) if rule else None
        if wrong:
            self.fault(node, f"{what} {shown(text)} {wrong}")
        return "" if wrong else text

    def texts(self, node: Node | None, what: str, rule: Rule | None = None) -> dict[str, Node]:
        """A list of different texts, each with its place."""
        found: dict[str, Node] = {}
        for item in self.items(node, what):
            text = self.text(item, f"{what}:", rule)
            if text in found:
                self.fault(item, f"{what}: {shown(text)} twice")
            elif text:
                found[text] = item
        return found
