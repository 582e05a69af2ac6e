"""Which objects the store has itself, and which a clone only lends: its `gc` may drop those.

Format of the index of a pack: gitformat-pack(5), version 2.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from hexpatch.errors import HexpatchError
from hexpatch.repo import Repo

_FAN, _NAMES = 8, 1032  # offsets of the fan-out and of the sorted ids


def lent(repo: Repo, oids: Iterable[str]) -> set[str]:
    """Those of these objects that lie in no file of the store's own."""
    if not _borrows(repo):
        return set()
    asked = set(oids)
    rest = asked - _loose(repo, asked)
    if not rest:
        return set()
    with _indexes(repo.git_dir / "objects" / "pack") as packs:
        return {oid for oid in rest if not any(_has(p, bytes.fromhex(oid)) for p in packs)}


def keep(repo: Repo, tips: Sequence[str], bases: Sequence[str]) -> None:
    """Copy what a clone lends of the commits up to `tips` but not of `bases`.

    git in the checkout does not write what a clone has already.
    """
    if not tips or not _borrows(repo):
        return
    stdin = "".join(f"{oid}\n" for oid in tips) + "".join(f"^{oid}\n" for oid in bases)
    args = ("rev-list", "--objects", "--no-object-names", "--stdin")
    try:
        found = repo.git(*args, stdin=stdin.encode()).decode().split()
    except HexpatchError:
        return  # something of it is gone already
    borrowed = lent(repo, found)
    if borrowed:
        where = repo.git_dir / "objects" / "pack" / "pack"
        ids = "".join(f"{oid}\n" for oid in sorted(borrowed))
        repo.git("pack-objects", "-q", str(where), stdin=ids.encode())


def drop_broken(repo: Repo, missing: Set[str]) -> None:
    """Remove files of objects that git can't read, such as a crash leaves: else git keeps them."""
    for oid in _loose(repo, missing) & missing:
        (repo.git_dir / "objects" / oid[:2] / oid[2:]).unlink(missing_ok=True)


def _borrows(repo: Repo) -> bool:
    try:
        return (repo.git_dir / "objects" / "info" / "alternates").stat().st_size > 0
    except FileNotFoundError:
        return False


def _loose(repo: Repo, oids: Set[str]) -> set[str]:
    """The objects with a file of their own in the folders where these would be."""
    found: set[str] = set()
    for folder in {oid[:2] for oid in oids}:
        with suppress(FileNotFoundError):
            entries = os.scandir(repo.git_dir / "objects" / folder)
            found.update(folder + entry.name for entry in entries)
    return found


@contextmanager
def _indexes(folder: Path) -> Iterator[list[mmap.mmap]]:
    """The indexes of all packs here, while they are looked into."""
    with ExitStack() as held:
        packs = []
        for path in folder.glob("*.idx"):
            file = held.enter_context(path.open("rb"))
            data = held.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            if data[:8] == b"\xfftOc\0\0\0\2":
                packs.append(data)
        yield packs


def _has(pack: mmap.mmap, oid: bytes) -> bool:
    def below(first: int) -> int:
        at = _FAN + 4 * first
        return int.from_bytes(pack[at : at + 4], "big") if first >= 0 else 0

    def name(n: int) -> bytes:
        return pack[_NAMES + 20 * n : _NAMES + 20 * n + 20]

    ids = range(below(oid[0] - 1), below(oid[0]))
    at = bisect_left(ids, oid, key=name)
    return at < len(ids) and name(ids[at]) == oid
