"""series.lock: what the last apply saw and made. Generated, one patch per line."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from hexpatch.errors import HexpatchError
from hexpatch.series import Base, Patch, Series

FILE = "series.lock"
VERSION = 1
LINE_ENDS = (
    "write `* -text` into .gitattributes, delete them and `git checkout` them again; "
    "if it is meant, delete series.lock"
)
HINT = f"delete {FILE} and run `hexpatch apply`"

Placement: TypeAlias = tuple[str, str, int]  # path, hunk header, line it went to instead

_SHA1 = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class LockedPatch(NamedTuple):
    """One patch: sums of its files, the tree after it, hunks that moved."""

    name: str
    sha256: str
    files: tuple[tuple[str, str], ...]
    tree: str
    commit: str
    placed: tuple[Placement, ...] = ()


class Lock(NamedTuple):
    """The stack as it was made: base, patches in order, tip commit and its tree."""

    base: Base
    patches: tuple[LockedPatch, ...]
    tip: str
    tree: str


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read(root: Path) -> Lock | None:
    """The lock of the series in this directory, if it has one."""
    try:
        data = (root / FILE).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HexpatchError(f"cannot read {root / FILE}: {error.strerror}", HINT) from error
    return parse(data)


def true(series: Series) -> Lock | None:
    """The lock, if the base, the order and every file of the series are as it says."""
    try:
        lock = read(series.root)
    except HexpatchError:
        return None
    if lock is None or [p.name for p in lock.patches] != [p.name for p in series.active]:
        return None
    if series.base.tree is None or lock.base.tree != series.base.tree:
        return None
    return None if changed(lock, series, series.read) else lock


def render(lock: Lock) -> bytes:
    """The bytes of a lock. Inverse of parse."""
    base = {"name": lock.base.name, "commit": lock.base.commit, "tree": lock.base.tree}
    patches = ",\n".join("  " + json.dumps(_patch_data(patch)) for patch in lock.patches)
    lines = [
        "{",
        f' "version": {VERSION},',
        f' "base": {json.dumps(base)},',
        f' "patches": [\n{patches}\n ],' if patches else ' "patches": [],',
        f' "tip": {json.dumps(lock.tip)}, "tree": {json.dumps(lock.tree)}',
        "}",
    ]
    return ("\n".join(lines) + "\n").encode()


def parse(data: bytes) -> Lock:
    """A lock from bytes; whatever is not one is refused."""
    try:
        top = json.loads(data.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        marks = any(line.startswith(b"<<<<<<<") for line in data.splitlines())
        raise _bad("holds merge conflict marks" if marks else f"is not JSON: {error}") from error
    if not isinstance(top, dict):
        raise _bad("is not a mapping")
    if top.get("version") != VERSION or isinstance(top["version"], bool):
        raise _bad(f"has version {json.dumps(top.get('version'))[:40]}, this tool knows {VERSION}")
    _keys(top, "the file", ("version", "base", "patches", "tip", "tree"))
    base = _keys(top["base"], "base", ("name", "commit", "tree"))
    if not isinstance(top["patches"], list):
        raise _bad("patches is not a list")
    patches = tuple(_patch(item, f"patch {n}") for n, item in enumerate(top["patches"], 1))
    if len({patch.name for patch in patches}) != len(patches):
        raise _bad("has a patch twice")
    return Lock(
        base=Base(
            name=_text(base["name"], "base name"),
            commit=_id_or_none(base["commit"], "base commit"),
            tree=_id_or_none(base["tree"], "base tree"),
        ),
        patches=patches,
        tip=_text(top["tip"], "tip", _SHA1),
        tree=_text(top["tree"], "tree", _SHA1),
    )


def changed(lock: Lock, series: Series, read_bytes: Callable[[str], bytes]) -> tuple[str, ...]:
    """Active patches whose files do not have the locked sums, then locked ones that are gone.

    `read_bytes` takes a path inside the repository; a file it cannot read counts as changed.
    """
    locked = {patch.name: patch for patch in lock.patches}
    active = {patch.name: patch for patch in series.active}
    differing = [
        name
        for name, patch in active.items()
        if name not in locked or not _same(locked[name], patch, series, read_bytes)
    ]
    return (*differing, *(name for name in locked if name not in active))


def line_ends(lock: Lock, series: Series) -> tuple[str, ...]:
    """Files that would be as locked if their CRLF were LF, which a clone can make of them."""

    def converted(path: str) -> bytes:
        data = series.read(path)
        plain = data.replace(b"\r\n", b"\n")
        if plain != data:
            found.append(path)
        return plain

    names: list[str] = []
    locked = {patch.name: patch for patch in lock.patches}
    for patch in series.active:
        found: list[str] = []
        if patch.name in locked and _same(locked[patch.name], patch, series, converted):
            names += found
    return tuple(names)


def owned_sum(upstream_path: str, executable: bool, data: bytes) -> str:
    """Sum of an owned file: where it goes and whether it is executable are part of it."""
    return sha256(f"{'x' if executable else '-'} {upstream_path}\0".encode() + data)


def _same(
    locked: LockedPatch, patch: Patch, series: Series, read_bytes: Callable[[str], bytes]
) -> bool:
    files = dict(locked.files)
    if files.keys() != set(patch.files):
        return False
    try:
        return sha256(read_bytes(f"patches/{patch.file}")) == locked.sha256 and all(
            owned_sum(
                series.upstream_path(file), os.access(series.root / file, os.X_OK), read_bytes(file)
            )
            == known
            for file, known in files.items()
        )
    except OSError:
        return False


def _patch_data(patch: LockedPatch) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": patch.name,
        "sha256": patch.sha256,
        "files": dict(patch.files),
        "tree": patch.tree,
        "commit": patch.commit,
    }
    return {**data, "placed": patch.placed} if patch.placed else data


def _patch(item: Any, what: str) -> LockedPatch:
    keys = ("name", "sha256", "files", "tree", "commit")
    _keys(item, what, (*keys, "placed") if isinstance(item, dict) and "placed" in item else keys)
    files = item["files"]
    if not isinstance(files, dict):
        raise _bad(f"{what}: files is not a mapping")
    placed = item.get("placed", [])
    if not isinstance(placed, list):
        raise _bad(f"{what}: placed is not a list")
    return LockedPatch(
        name=_text(item["name"], f"{what}: name"),
        sha256=_text(item["sha256"], f"{what}: sha256", _SHA256),
        files=tuple(
            (path, _text(known, f"{what}: {path}", _SHA256)) for path, known in files.items()
        ),
        tree=_text(item["tree"], f"{what}: tree", _SHA1),
        commit=_text(item["commit"], f"{what}: commit", _SHA1),
        placed=tuple(_placement(place, what) for place in placed),
    )


def _placement(item: Any, what: str) -> Placement:
    if isinstance(item, list) and len(item) == 3 and type(item[2]) is int:
        return _text(item[0], f"{what}: placed"), _text(item[1], f"{what}: placed"), item[2]
    raise _bad(f"{what}: placed holds something else than [path, hunk, line]")


def _keys(item: Any, what: str, keys: tuple[str, ...]) -> dict[str, Any]:
    if isinstance(item, dict) and item.keys() == set(keys):
        return item
    raise _bad(f"{what} does not have exactly the keys {', '.join(keys)}")


def _text(item: Any, what: str, pattern: re.Pattern[str] | None = None) -> str:
    if isinstance(item, str) and item and (pattern is None or pattern.fullmatch(item)):
        return item
    raise _bad(f"{what} is not what it should be")


def _id_or_none(item: Any, what: str) -> str | None:
    return None if item is None else _text(item, what, _SHA1)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def crlf(files: tuple[str, ...]) -> str:
    """What is said of such files."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{files[0]}{more} differ from series.lock in nothing but line ends: they have got CRLF"


def _bad(text: str) -> HexpatchError:
    return HexpatchError(f"{FILE}: {text}", HINT)
