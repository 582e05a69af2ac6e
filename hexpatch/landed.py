"""Which patches upstream has already, found along its history and not only at its tip.

A patch is landed when every file has the patch's new lines and not its old ones, from some
upstream commit on; a later upstream edit on top does not change that, taking it out again does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hexpatch import place
from hexpatch.merge import core
from hexpatch.pick import Change, Laid
from hexpatch.repo import NULL, Repo
from hexpatch.textmerge import merge_text
from hexpatch.tree import Store, Tree

# history beyond this is not walked: the tip alone is judged then
MAX_COMMITS = 20000


@dataclass(frozen=True)
class Landing:
    """A patch that upstream has, or had. how: exactly, in other words, squashed."""

    name: str
    how: str
    commit: str
    subject: str
    reverted_by: str = ""

    @property
    def text(self) -> str:
        """For people, e.g. `exactly, as 1a2b3c4d5e `htp : x (#7)``."""
        where = f"{self.how}, as {self.commit[:10]} `{self.subject}`"
        return f"{where}, taken back by {self.reverted_by}" if self.reverted_by else where


@dataclass(frozen=True)
class _Step:
    commit: str
    subject: str
    blobs: dict[bytes, tuple[str, str]]  # path -> blob before, after ("" = absent)


def find(
    store: Store,
    base: str,
    onto: str,
    laid: Sequence[Laid],
    groups: Sequence[Sequence[str]] = (),
) -> dict[str, Landing]:
    """Landings of these patches in base..onto, by patch name."""
    if base == onto or not laid:
        return {}
    wanted = {c.old_path or c.path for item in laid for c in item.changes}
    steps = _walk(store.repo, base, onto, wanted)
    found: dict[str, Landing] = {}
    for item in laid:
        landing = _follow(store, item, steps)
        if landing is not None:
            found[item.name] = landing
    by_name = {item.name: item for item in laid}
    for group in groups:
        members = [by_name[n] for n in group if n in by_name]
        if len(members) > 1 and not all(m.name in found for m in members):
            for landing in _squashed(store, members, steps):
                found.setdefault(landing.name, landing)
    return found


def _walk(repo: Repo, base: str, onto: str, wanted: set[bytes]) -> list[_Step]:
    """Upstream's commits that touch these paths, oldest first; one step where history is unknown."""
    if repo.is_ancestor(base, onto):
        out = repo.git(
            "log",
            "--reverse",
            "--topo-order",
            "--no-merges",
            "--no-renames",
            "--raw",
            "--no-abbrev",
            "-r",
            "-z",
            "--format=%x01%H%x00%s",
            f"--max-count={MAX_COMMITS}",
            f"{base}..{onto}",
        )
        return [s for s in map(_step, out.split(b"\x01")[1:]) if wanted & s.blobs.keys()]
    changes = {
        c.path: ("" if c.old_id == NULL else c.old_id, "" if c.new_id == NULL else c.new_id)
        for c in repo.raw_diff(repo.tree_of(base), repo.tree_of(onto))
    }
    subject = repo.commit(onto).message.split("\n", 1)[0]
    return [_Step(onto, subject, changes)] if wanted & changes.keys() else []


def _step(block: bytes) -> _Step:
    fields = block.split(b"\0")
    blobs: dict[bytes, tuple[str, str]] = {}
    at = 2
    while at + 1 < len(fields):
        head = fields[at].lstrip(b"\n")
        if not head.startswith(b":"):
            at += 1
            continue
        _, _, old, new, _ = head[1:].decode().split(" ")
        blobs[fields[at + 1]] = ("" if old == NULL else old, "" if new == NULL else new)
        at += 2
    return _Step(fields[0].decode(), fields[1].decode("utf-8", "replace"), blobs)


def _lines(store: Store, oid: str) -> list[bytes] | None:
    return store.read(oid, "blob").split(b"\n") if oid else None


def has_change(lines: list[bytes] | None, change: Change) -> bool:
    """Does this version of the file have all of the change?"""
    if change.post is None:
        return lines is None
    if lines is None:
        return False
    if change.pre is None or not change.hunks:
        return lines == change.post.content.lines
    for _, hunk in change.hunks:
        back = place.reversed_hunk(hunk)
        there = [p for p in place.find(lines, back.old) if place.fits(lines, p, back)]
        if back.old and not there:
            old, new = core(hunk)
            if not new or not place.find(lines, new) or place.find(lines, old):
                return False
    return not lacks_change(lines, change)


def lacks_change(lines: list[bytes] | None, change: Change) -> bool:
    """Would the change still fit on this version of the file?"""
    if change.pre is None:
        return lines is None
    if lines is None:
        return False
    if not change.hunks:
        return lines == change.pre.content.lines
    return not isinstance(place.place(lines, [h for _, h in change.hunks]), place.Misfit)


def _follow(store: Store, item: Laid, steps: Iterable[_Step]) -> Landing | None:
    changes = {c.old_path or c.path: c for c in item.changes if not c.moved}
    if len(changes) != len(item.changes):
        return None
    have: set[bytes] = set()
    landing: Landing | None = None
    for step in steps:
        mine = changes.keys() & step.blobs.keys()
        for path in mine:
            before, after = step.blobs[path]
            lines = _lines(store, after)
            if path not in have and has_change(lines, changes[path]):
                have.add(path)
            elif path in have and lacks_change(lines, changes[path]):
                have.discard(path)
                if landing is not None:
                    return Landing(
                        item.name,
                        landing.how,
                        landing.commit,
                        landing.subject,
                        f"{step.commit[:10]} `{step.subject}`",
                    )
        if mine and landing is None and have == changes.keys():
            exact = step.blobs.keys() == changes.keys() and all(
                _exact(store, step.blobs[p], c) for p, c in changes.items()
            )
            how = "exactly" if exact else "in other words"
            landing = Landing(item.name, how, step.commit, step.subject)
    return landing


def _exact(store: Store, blobs: tuple[str, str], change: Change) -> bool:
    before, after = _lines(store, blobs[0]), _lines(store, blobs[1])
    if change.pre is None or change.post is None or not change.hunks:
        return has_change(after, change)
    if before is None:
        return False
    hunks = [h for _, h in change.hunks]
    places = place.place(before, hunks)
    return not isinstance(places, place.Misfit) and place.splice(before, hunks, places) == after


def _squashed(store: Store, members: Sequence[Laid], steps: Sequence[_Step]) -> list[Landing]:
    """A whole group taken as one commit: its first state to its last, merged onto that commit."""
    span: dict[bytes, tuple[Change, Change]] = {}
    for item in members:
        for change in item.changes:
            if change.moved:
                return []
            path = change.path
            first = span[path][0] if path in span else change
            span[path] = (first, change)
    for step in steps:
        if not span.keys() <= step.blobs.keys():
            continue
        if all(_net(store, step.blobs[p][1], a, b) for p, (a, b) in span.items()):
            return [Landing(m.name, "squashed", step.commit, step.subject) for m in members]
    return []


def _net(store: Store, oid: str, first: Change, last: Change) -> bool:
    """Has this blob the group's net change of one file?"""
    if last.post is None:
        return not oid
    if not oid:
        return False
    data = store.read(oid, "blob")
    if data == last.post.content.data:
        return True
    if first.pre is None or first.pre.content.binary():
        return False
    merged, conflicts = merge_text(store.repo, first.pre.content.data, data, last.post.content.data)
    return not conflicts and merged == data


def applied_twice(tree: Tree, item: Laid) -> list[str]:
    """Lines a patch adds that upstream has brought in since its base: it may be there already."""
    findings = []
    for change in item.changes:
        ours = tree.get(change.path)
        if change.pre is None or ours is None or ours.same(change.pre):
            continue
        before, lines = change.pre.content.lines, ours.content.lines
        for _, hunk in change.hunks:
            added = hunk.new[hunk.lead : len(hunk.new) - hunk.trail]
            if hunk.removed or sum(len(line.strip()) for line in added) < 24:
                continue
            there = place.find(lines, added)
            if there and not place.find(before, added):
                path = change.path.decode("utf-8", "backslashreplace")
                findings.append(f"{path}: line {there[0] + 1} has the added lines already")
    return findings
