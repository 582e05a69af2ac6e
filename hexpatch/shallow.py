"""Commits whose parents may be missing: git's `shallow` file of a store, kept true.

A snapshot's commit comes without the one before it, upstream's own commit without its history,
and a clone we borrow objects from may have an edge of its own.
"""

from __future__ import annotations

from pathlib import Path

from hexpatch import catalogue, objects, workspace
from hexpatch.catalogue import Entry
from hexpatch.repo import Repo


def write_alone(repo: Repo, oid: str, data: bytes) -> None:
    """Write a commit whose parents may be missing: listed as shallow before it exists.

    So a crash at any point leaves a store that fsck takes; mend drops needless lines.
    """
    if repo.present([oid]):
        return
    path = repo.git_dir / "shallow"
    workspace.write_atomic(path, _text(listed(path) | {oid}))
    repo.close()
    repo.write_objects([("commit", data)])


def mend(repo: Repo, borrowed: frozenset[str] | None = None) -> None:
    """Rewrite `shallow`: the commits in the store whose parents are not.

    These are snapshots whose predecessor is not installed, upstream commits that came alone, what
    clones we borrow objects from list (`borrowed`; None: as last time), and git's own lines.
    """
    path, note = repo.git_dir / "shallow", repo.git_dir / "hexpatch-shallow-clone"
    now = listed(path)
    lent_before = listed(note)
    lent = lent_before if borrowed is None else borrowed
    table = catalogue.entries()
    line = [catalogue.commit_id(e) for e in table]
    own = [e.upstream for e in table if e.upstream]
    there = repo.present([*line, *own, *(e.tree for e in table)])
    needed = set(lent)
    before: tuple[str, str] | None = None
    for commit, entry in zip(line, table, strict=True):
        if commit in there and before is not None and not set(before) <= there:
            needed.add(commit)
        before = commit, entry.tree
    for entry in table:
        if entry.upstream in there and not _has_parents(repo, entry):
            needed.add(entry.upstream)
    ours = {*line, *own, *lent_before}
    wanted = (now - ours) | needed
    if lent != lent_before:
        workspace.write_atomic(note, _text(lent | (lent_before & now)))
    if wanted != now:
        if wanted:
            workspace.write_atomic(path, _text(wanted))
        else:
            path.unlink(missing_ok=True)
        repo.close()  # a running reader has the old list
    if lent != lent_before:
        workspace.write_atomic(note, _text(lent))


def upstream_edge(repo: Repo) -> frozenset[str]:
    """Upstream's own commits that are in the store without their history."""
    own = {e.upstream for e in catalogue.entries() if e.upstream}
    return listed(repo.git_dir / "shallow") & own


def _has_parents(repo: Repo, entry: Entry) -> bool:
    parents = objects.parse_commit(entry.upstream_object).parents
    return repo.present(parents) == set(parents)


def listed(path: Path) -> frozenset[str]:
    """The ids in a file of them; none where there is no file."""
    try:
        return frozenset(path.read_text("ascii").split())
    except FileNotFoundError:
        return frozenset()


def _text(lines: set[str] | frozenset[str]) -> bytes:
    return "".join(f"{line}\n" for line in sorted(lines)).encode()
