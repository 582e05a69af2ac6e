"""Trees and file contents in memory, over a git store that is only read until `flush`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hexpatch import objects, owned, place
from hexpatch.errors import HexpatchError
from hexpatch.objects import TREE, object_id
from hexpatch.patchfile import Hunk
from hexpatch.repo import Repo
from hexpatch.splices import Text, joined

FLUSH_BYTES = 24 * 1024 * 1024
LARGE = 8 * 1024 * 1024


class Content:
    """One file's bytes, known by id, as data, spliced or as lines; each is derived when asked.

    Lines are the data split at newlines: `a\\nb\\n` is [a, b, ""], `a\\nb` is [a, b]. So the last
    element is never a complete line, and joining gives the data back.
    """

    __slots__ = ("_data", "_lines", "_oid", "_size", "_text", "name", "store")

    def __init__(
        self,
        store: Store,
        *,
        oid: str | None = None,
        data: bytes | None = None,
        lines: list[bytes] | None = None,
        text: Text | None = None,
    ) -> None:
        self.store = store
        self._oid = oid
        self._data = data
        self._lines = lines
        self._text = text
        self._size = -1
        self.name = ""  # the id that the patch which made it states; spares hashing it

    def is_called(self, oid: str) -> bool:
        """Is this the file of that (abbreviated) id, as computed or as its patch stated?"""
        if self._oid is None and self.name:
            return self.name.startswith(oid) or oid.startswith(self.name)
        return self.oid.startswith(oid)

    @property
    def lines(self) -> list[bytes]:
        """The data, split; callers never change the list."""
        if self._lines is None:
            text = self.text
            assert text is not None
            self._lines = text.lines
            if self.size > LARGE:
                self._data = self._text = None  # both at once is too much
        return self._lines

    @property
    def text(self) -> Text | None:
        """The bytes as what hunks are spliced into; None where only lines are at hand."""
        if self._text is None and self._lines is None:
            self._text = Text(self.data)
        return self._text

    def spliced(self, hunks: Sequence[Hunk], places: Sequence[int]) -> Content:
        """The file after the hunks, which stand at these lines."""
        text = self.text.spliced(hunks, places) if self.text is not None else None
        if text is not None:
            return self.store.from_text(text)
        return self.store.from_lines(place.splice(self.lines, hunks, places))

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        if self._data is not None:
            return self._data
        if self._lines is not None:
            return joined(self._lines, eof=True)
        if self._text is not None:
            return self._text.data
        assert self._oid is not None
        # kept once: as lines when somebody asks for lines, else not at all
        return self.store.read(self._oid, "blob")

    @property
    def size(self) -> int:
        """Number of bytes."""
        if self._size < 0:
            text = self.text
            self._size = text.size if text is not None else len(self.data)
        return self._size

    @property
    def oid(self) -> str:
        """Blob id; new content is queued for the next flush."""
        if self._oid is None and self._text is not None and not self.store.keep:
            self._oid = self._text.oid  # in pieces: nobody wants it put together
        if self._oid is None:
            data = self.data
            self._size = len(data)
            self._oid = self.store.add("blob", data)
            self.store.note(self._oid, self)
            if self.store.keep:
                self._data = None  # the store has it now
                if len(data) > LARGE:
                    # made again if somebody asks: rare, and memory counts
                    self._lines = self._text = None
        return self._oid

    def is_blob(self, oid: str) -> bool:
        """Is this the file of that full id?"""
        if self._oid is None:
            text, twin = self._text, self.store.content(oid)._text
            if text is not None:
                same = (twin is not None and twin.alike(text)) or text.oid == oid
            else:
                same = object_id("blob", self.data) == oid
            if not same:
                return False
            self._oid = oid  # a known file: there is nothing to add to the store
            self._data = None
        return self._oid == oid

    def same(self, other: Content) -> bool:
        """Equal bytes? Compared by identity and id first."""
        if self is other:
            return True
        if self._oid is not None and other._oid is not None:
            return self._oid == other._oid
        if self._text is not None and other._text is not None and self._text.alike(other._text):
            return True
        if self._lines is not None and other._lines is not None:
            return self._lines == other._lines
        return self.size == other.size and self.data == other.data

    def binary(self) -> bool:
        """git's rule: a NUL in the first 8000 bytes."""
        if self.text is not None:
            return b"\0" in self.text.head(8000)
        return _nul(self.lines[:8001])  # so many newlines alone fill the window


def _nul(lines: list[bytes]) -> bool:
    start = b"\n".join(lines[:400])
    if len(start) < 8000:
        start = b"\n".join(lines)
    return b"\0" in start[:8000]


class Store:
    """Reads objects of a repository and queues new ones. Nothing is written before `flush`."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self._new: dict[str, tuple[str, bytes]] = {}
        self._bytes = 0
        self._written: set[str] = set()
        self._contents: dict[str, Content] = {}
        self.keep = True

    def read(self, oid: str, kind: str) -> bytes:
        """Data of a queued or stored object."""
        queued = self._new.get(oid)
        return queued[1] if queued is not None else self.repo.read(oid, kind)

    def read_tree_of(self, commit: str) -> str:
        """Tree id of a queued or stored commit."""
        return objects.parse_commit(self.read(commit, "commit")).tree

    def add(self, kind: str, data: bytes) -> str:
        """Queue an object; its id."""
        oid = object_id(kind, data)
        if self.keep and oid not in self._new and oid not in self._written:
            self._new[oid] = (kind, data)
            self._bytes += len(data)
            if self._bytes > FLUSH_BYTES:
                self.flush()
        return oid

    def content(self, oid: str) -> Content:
        """The one Content of a blob id, so that equal files are identical objects."""
        found = self._contents.get(oid)
        if found is None:
            found = self._contents[oid] = Content(self, oid=oid)
        return found

    def note(self, oid: str, content: Content) -> None:
        """A file that was made here has got its id."""
        self._contents.setdefault(oid, content)

    def from_data(self, data: bytes) -> Content:
        """New content from bytes."""
        return Content(self, data=data)

    def from_text(self, text: Text) -> Content:
        """New content from bytes and splices."""
        return Content(self, text=text)

    def from_lines(self, lines: list[bytes]) -> Content:
        """New content from split lines."""
        return Content(self, lines=lines)

    def flush(self) -> None:
        """Write the queued objects that the repository lacks itself. Unreferenced until refs move.

        What a clone only lends is written too: the clone's `gc` may drop it.
        """
        present = self.repo.existing(self._new)
        lent = owned.lent(self.repo, present)
        owned.drop_broken(self.repo, self._new.keys() - present)
        own = present - lent
        new = [obj for oid, obj in self._new.items() if oid not in own]
        self.repo.write_objects(new, copy=bool(lent))
        self._written.update(self._new)
        self._new.clear()
        self._bytes = 0


class Entry:
    """A file in a tree: mode and content. Never changed once made."""

    __slots__ = ("content", "mode")

    def __init__(self, mode: int, content: Content) -> None:
        self.mode = mode
        self.content = content

    def same(self, other: Entry | None) -> bool:
        """Equal mode and bytes?"""
        return self is other or (
            other is not None and self.mode == other.mode and self.content.same(other.content)
        )


class _Dir:
    __slots__ = ("entries", "oid", "owner")

    def __init__(self, entries: dict[bytes, Entry | _Dir | tuple[int, str]], owner: object) -> None:
        self.entries = entries
        self.oid: str | None = None
        self.owner = owner


class Tree:
    """A directory tree that can be changed in memory; `fork` gives an independent copy for free."""

    def __init__(self, store: Store, oid: str) -> None:
        self.store = store
        self._owner = object()
        self._root = self._load(oid)

    def _load(self, oid: str) -> _Dir:
        raw = objects.parse_tree(self.store.read(oid, "tree"))
        loaded = _Dir(dict(raw), None)
        loaded.oid = oid
        return loaded

    def fork(self) -> Tree:
        """A copy; both sides copy a directory before they change it."""
        copy = object.__new__(Tree)
        copy.store = self.store
        copy._root = self._root
        copy._owner = object()
        self._owner = object()
        return copy

    def _child(self, parent: _Dir, name: bytes) -> Entry | _Dir | None:
        found = parent.entries.get(name)
        if isinstance(found, tuple):
            mode, oid = found
            made: Entry | _Dir
            made = self._load(oid) if mode == TREE else Entry(mode, self.store.content(oid))
            # loading is invisible: it changes neither the tree nor its id
            parent.entries[name] = made
            return made
        return found

    def _find(self, path: bytes) -> Entry | _Dir | None:
        node: Entry | _Dir | None = self._root
        for name in path.split(b"/"):
            if not isinstance(node, _Dir):
                return None
            node = self._child(node, name)
        return node

    def get(self, path: bytes) -> Entry | None:
        """The file at a path, None when there is none (or a directory)."""
        found = self._find(path)
        return found if isinstance(found, Entry) else None

    def in_the_way(self, path: bytes) -> Iterator[bytes]:
        """What keeps a file from standing at `path`: a file above it, or all files below it."""
        parts = path.split(b"/")
        node: Entry | _Dir | None = self._root
        for depth, name in enumerate(parts):
            if not isinstance(node, _Dir):
                yield b"/".join(parts[:depth])
                return
            node = self._child(node, name)
            if node is None:
                return
        if isinstance(node, _Dir):
            for below, _ in self._files(node, path + b"/"):
                yield below

    def _own(self, node: _Dir) -> _Dir:
        if node.owner is self._owner:
            node.oid = None
            return node
        return _Dir(dict(node.entries), self._owner)

    def put(self, path: bytes, entry: Entry) -> None:
        """Set a file, making directories as needed. Something in the way is a HexpatchError."""
        *dirs, last = path.split(b"/")
        self._root = node = self._own(self._root)
        for name in dirs:
            child = self._child(node, name)
            if isinstance(child, Entry):
                raise HexpatchError(f"{path.decode('utf-8', 'replace')}: a file is in the way")
            child = _Dir({}, self._owner) if child is None else self._own(child)
            node.entries[name] = child
            node = child
        if isinstance(self._child(node, last), _Dir):
            raise HexpatchError(f"{path.decode('utf-8', 'replace')}: a directory is in the way")
        node.entries[last] = entry

    def remove(self, path: bytes) -> None:
        """Delete a file and the directories that get empty."""
        *dirs, last = path.split(b"/")
        self._root = node = self._own(self._root)
        trail = [node]
        for name in dirs:
            child = self._child(node, name)
            if not isinstance(child, _Dir):
                return
            child = self._own(child)
            node.entries[name] = child
            node = child
            trail.append(node)
        node.entries.pop(last, None)
        for parent, name in zip(reversed(trail[:-1]), reversed(dirs), strict=True):
            below = parent.entries[name]
            if isinstance(below, _Dir) and not below.entries:
                del parent.entries[name]
            else:
                break

    def _files(self, node: _Dir, prefix: bytes = b"") -> Iterator[tuple[bytes, Entry]]:
        for name in list(node.entries):
            child = self._child(node, name)
            if isinstance(child, _Dir):
                yield from self._files(child, prefix + name + b"/")
            elif child is not None:
                yield prefix + name, child

    def files(self, below: bytes = b"") -> Iterator[tuple[bytes, Entry]]:
        """All files (below a directory): path and entry."""
        node: Entry | _Dir | None = self._find(below) if below else self._root
        if isinstance(node, _Dir):
            yield from self._files(node, below + b"/" if below else b"")

    def write(self) -> str:
        """Tree id; new blobs and trees are queued in the store."""
        return self._write(self._root)

    def _write(self, node: _Dir) -> str:
        if node.oid is not None:
            return node.oid
        raw: dict[bytes, tuple[int, str]] = {}
        for name, child in node.entries.items():
            if isinstance(child, tuple):
                raw[name] = child
            elif isinstance(child, _Dir):
                raw[name] = (TREE, self._write(child))
            else:
                raw[name] = (child.mode, child.content.oid)
        node.oid = self.store.add("tree", objects.format_tree(raw))
        return node.oid
