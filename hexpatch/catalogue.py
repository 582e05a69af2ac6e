"""The upstream snapshots that package registries hold: one entry per distinct tree, by date.

The table is append-only: the commit of an entry names the commit of the entry before it, so a
line put in between would change the ids of all that follow.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path

from hexpatch import objects
from hexpatch.objects import Commit

PACKAGES = {"npm": "node-llama-cpp", "pypi": "llama-cpp-python"}
_JOINT = {"npm": "@", "pypi": "=="}
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]*")

AUTHOR = ("llama.cpp snapshots", "snapshots@hexpatch.invalid")
UNDATED = date(2000, 1, 1)
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Spec:
    """One release of one package; `str()` is the form series.yaml keeps."""

    kind: str
    version: str

    @property
    def package(self) -> str:
        """The package's name in its registry."""
        return PACKAGES[self.kind]

    @property
    def requirement(self) -> str:
        """What the registry's client takes."""
        return f"{self.package}{_JOINT[self.kind]}{self.version}"

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.package} {self.version}"

    @property
    def name(self) -> str:
        """A name for a snapshot that is not in the catalogue."""
        return f"{self.kind}-{self.version}"

    def __str__(self) -> str:
        return f"{self.kind}:{self.requirement}"


def parse_spec(text: str) -> Spec | None:
    """`npm:node-llama-cpp@V` or `pypi:llama-cpp-python==V`, the prefix optional; else None."""
    for kind, package in PACKAGES.items():
        rest = text.strip().removeprefix(f"{kind}:").replace("_", "-")
        name, joint, version = rest.partition(_JOINT[kind])
        if joint and name == package and _VERSION.fullmatch(version):
            return Spec(kind, version)
    return None


@dataclass(frozen=True, eq=False)  # by identity: tables of entries are keys of a cache
class Entry:
    """A snapshot: upstream's name for it, its tree, and the archive that carries it.

    `upstream` is upstream's own commit of that tree, id and object bytes, where it is known: the
    PyPI archives hold it, the npm ones don't.
    """

    date: date
    name: str
    spec: Spec
    tree: str
    size: int
    integrity: str
    aliases: tuple[Spec, ...] = ()
    upstream: str | None = None
    upstream_object: bytes = b""

    @property
    def label(self) -> str:
        """For people: `0c1e57098 (llama-cpp-python 0.3.36)`."""
        return f"{self.name} ({self.spec.label})"


def parse(text: str) -> tuple[Entry, ...]:
    """The table: tab-separated columns, `-` for none, `#` starts a comment line."""
    rows = (row for row in text.splitlines() if row and not row.startswith("#"))
    return tuple(_entry(row.split("\t")) for row in rows)


def _entry(fields: list[str]) -> Entry:
    day, name, spec, tree, size, integrity, aliases, upstream, raw = fields
    data = b"" if raw == "-" else zlib.decompress(base64.b64decode(raw))
    if data and objects.object_id("commit", data) != upstream:
        raise ValueError(f"catalogue: the bytes of commit {upstream} are not that commit's")
    others = () if aliases == "-" else tuple(_known(a) for a in aliases.split(","))
    return Entry(
        date.fromisoformat(day),
        name,
        _known(spec),
        tree,
        int(size),
        integrity,
        others,
        None if upstream == "-" else upstream,
        data,
    )


def _known(text: str) -> Spec:
    spec = parse_spec(text)
    if spec is None:
        raise ValueError(f"catalogue: {text} is not a snapshot")
    return spec


@lru_cache(maxsize=1)
def entries() -> tuple[Entry, ...]:
    """The whole table, oldest first."""
    from pkgutil import get_data  # a tenth of importlib.resources, which brings in archives

    data = get_data(__package__, "catalogue.tsv")
    assert data is not None
    return parse(data.decode())


def newest() -> Entry:
    """The youngest tree known here."""
    return entries()[-1]


def by_spec(spec: Spec) -> Entry | None:
    """The entry whose archive, or an alias of it, this is."""
    return next((e for e in entries() if spec == e.spec or spec in e.aliases), None)


def by_tree(tree: str) -> Entry | None:
    """The entry with this tree."""
    return next((e for e in entries() if e.tree == tree), None)


def by_upstream(commit: str) -> Entry | None:
    """The entry made of this upstream commit."""
    return next((e for e in entries() if e.upstream == commit), None)


def by_name(name: str) -> Entry | None:
    """By upstream's name, or by seven or more digits of an upstream commit's id."""
    exact = next((e for e in entries() if e.name == name), None)
    if exact or not re.fullmatch(r"[0-9a-f]{7,40}", name):
        return exact
    found = [e for e in entries() if (e.upstream or "").startswith(name)]
    return found[0] if len(found) == 1 else None


# -- the line of commits -----------------------------------------------------------------------


def commit_bytes(name: str, tree: str, day: date, parent: str | None, spec: str | None) -> bytes:
    """A snapshot's commit object: a pure function of what is given."""
    message = f"llama.cpp {name}\n"
    if spec is not None:
        message += f"\nSnapshot: {spec}\n"
    seconds = (day - _EPOCH).days * 24 * 3600
    parents = (parent,) if parent else ()
    return objects.format_commit(Commit(tree, parents, *AUTHOR, f"{seconds} +0000", message))


def undated_commit(name: str, tree: str) -> bytes:
    """The parentless commit that stands for a tree the catalogue doesn't know."""
    return commit_bytes(name, tree, UNDATED, None, None)


@lru_cache(maxsize=4)
def line(table: tuple[Entry, ...]) -> dict[str, tuple[str, bytes]]:
    """Tree of each entry -> id and bytes of its commit, whose parent is the entry before."""
    made: dict[str, tuple[str, bytes]] = {}
    parent = None
    for entry in table:
        data = commit_bytes(entry.name, entry.tree, entry.date, parent, str(entry.spec))
        parent = objects.object_id("commit", data)
        made[entry.tree] = parent, data
    return made


def commit_id(entry: Entry) -> str:
    """Id of an entry's commit, from the table alone."""
    return line(entries())[entry.tree][0]


def commit_data(entry: Entry) -> bytes:
    """Bytes of an entry's commit."""
    return line(entries())[entry.tree][1]


# -- integrity ---------------------------------------------------------------------------------


def digest(path: Path, integrity: str) -> str:
    """The file's sum in the form of `integrity`: `sha256:HEX`, or `sha512-BASE64` as npm has it."""
    kind = re.split("[:-]", integrity, maxsplit=1)[0]
    made = hashlib.new(kind)
    with path.open("rb") as source:
        while chunk := source.read(1 << 20):
            made.update(chunk)
    if integrity.startswith(f"{kind}:"):
        return f"{kind}:{made.hexdigest()}"
    return f"{kind}-{base64.b64encode(made.digest()).decode()}"


def names(table: Iterable[Entry]) -> list[str]:
    """All that a user may type for these entries."""
    return [text for e in table for text in (e.name, str(e.spec))]
