"""git's three-way merge of one file, by the engine and settings of `git rebase` and `cherry-pick`.

`git merge-file` has another diff algorithm (and no option for it before 2.44), and so puts edits
beside look-alike lines elsewhere. So this asks `git merge-tree` about three tiny commits, in an
object directory that is thrown away: the store is not written to.
"""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path

from hexpatch import objects
from hexpatch.errors import HexpatchError
from hexpatch.objects import FILE, Commit
from hexpatch.repo import Repo

_NAME = b"file"
_CLOCK = "1 +0000"


class Loose:
    """A directory of loose objects."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, kind: str, data: bytes) -> str:
        oid = objects.object_id(kind, data)
        path = self.folder / oid[:2] / oid[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(zlib.compress(b"%s %d\0" % (kind.encode(), len(data)) + data, 0))
        return oid

    def commit(self, data: bytes, *parents: str) -> str:
        tree = self.add("tree", objects.format_tree({_NAME: (FILE, self.add("blob", data))}))
        return self.add(
            "commit", objects.format_commit(Commit(tree, parents, "a", "a", _CLOCK, "merge\n"))
        )

    def read(self, oid: str) -> bytes:
        raw = zlib.decompress((self.folder / oid[:2] / oid[2:]).read_bytes())
        return raw.partition(b"\0")[2]


def merge_text(
    repo: Repo,
    base: bytes,
    ours: bytes,
    theirs: bytes,
    labels: tuple[str, str, str] = ("ours", "base", "theirs"),
    *,
    union: bool = False,
) -> tuple[bytes, int]:
    """The merged text and the number of conflicts in it, which are marked (zdiff3) and labelled.

    `union` takes the lines of both sides where they conflict.
    """
    with tempfile.TemporaryDirectory(prefix="hexpatch-") as scratch:
        loose = Loose(Path(scratch))
        attributes = Path(scratch, "attributes")
        attributes.write_bytes(_NAME + b" merge=union\n" if union else b"")
        root = loose.commit(base)
        one, two = loose.commit(ours, root), loose.commit(theirs, root)
        status, out = repo.git_status(
            "-c",
            f"merge.conflictStyle={'merge' if union else 'zdiff3'}",
            "-c",
            f"core.attributesFile={attributes}",
            "-c",
            "core.looseCompression=0",
            "merge-tree",
            "--write-tree",
            one,
            two,
            ok=range(128),
            env={"GIT_OBJECT_DIRECTORY": scratch},
        )
        tree = out[:40].decode("ascii", "replace")
        if status > 1 or len(tree) != 40:
            raise HexpatchError("git merge-tree failed: is git older than 2.38?")
        merged = loose.read(objects.parse_tree(loose.read(tree))[_NAME][1])
    if status == 0:
        return merged, 0
    return _labelled(merged, one.encode(), two.encode(), labels)


def _labelled(
    merged: bytes, one: bytes, two: bytes, labels: tuple[str, str, str]
) -> tuple[bytes, int]:
    """Names for people in place of the commit ids that git put at its marks."""
    ours, base, theirs = (label.encode() for label in labels)
    lines = merged.split(b"\n")
    count = 0
    inside = False
    for at, line in enumerate(lines):
        mark, _, rest = line.rstrip(b"\r").partition(b" ")
        end = b"\r" if line.endswith(b"\r") else b""
        if mark == b"<<<<<<<" and rest == one:
            lines[at] = b"<<<<<<< " + ours + end
            count += 1
            inside = True
        elif mark == b"|||||||" and inside:
            lines[at] = b"||||||| " + base + end
        elif mark == b">>>>>>>" and rest == two:
            lines[at] = b">>>>>>> " + theirs + end
            inside = False
    return b"\n".join(lines), max(count, 1)
