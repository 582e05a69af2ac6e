"""What upstream's .gitattributes say of merging a file; git reads them, out of a tree in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hexpatch.objects import EXECUTABLE, FILE
from hexpatch.textmerge import Loose
from hexpatch.tree import Tree

_NAME = b".gitattributes"
_ASK_GIT = (b"merge", b"binary")  # words without which no rule speaks of merging


def merge_rule(tree: Tree, path: bytes) -> str:
    """`union`, `binary` (a change on both sides is for a person), or nothing special: `text`."""
    found = _files(tree, path)
    if not any(
        word in line for data in found.values() for line in _rules(data) for word in _ASK_GIT
    ):
        return "text"
    said = _asked(tree, found, path)
    return {b"unset": "binary", b"binary": "binary", b"union": "union"}.get(said, "text")


def _files(tree: Tree, path: bytes) -> dict[bytes, bytes]:
    """The .gitattributes of the folders that a file is in."""
    found = {}
    folder = path
    while folder:
        folder = folder.rpartition(b"/")[0]
        name = folder + b"/" + _NAME if folder else _NAME
        entry = tree.get(name)
        if entry is not None and entry.mode in (FILE, EXECUTABLE):
            found[name] = entry.content.data
    return found


def _rules(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if not line.lstrip().startswith(b"#")]


def _asked(tree: Tree, files: dict[bytes, bytes], path: bytes) -> bytes:
    repo = tree.store.repo
    with tempfile.TemporaryDirectory(prefix="hexpatch-") as scratch:
        loose = Loose(Path(scratch))
        env = {"GIT_OBJECT_DIRECTORY": scratch, "GIT_INDEX_FILE": f"{scratch}/index"}
        listed = b"".join(
            b"%o %s\t%s\0" % (FILE, loose.add("blob", data).encode(), name)
            for name, data in files.items()
        )
        repo.git("update-index", "-z", "--index-info", stdin=listed, env=env)
        out = repo.git(
            "check-attr", "--cached", "-z", "--stdin", "merge", stdin=path + b"\0", env=env
        )
    return out.split(b"\0")[2]
