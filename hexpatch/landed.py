"""Which patches upstream has already, found along its history and not only at its tip.

A patch is landed when every file has got the patch's new lines and lost its old ones by some
upstream commit; a later upstream edit on top does not change that, taking it out again does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from hexpatch import place
from hexpatch.merge import core
from hexpatch.objects import GITLINK
from hexpatch.patchfile import Hunk
from hexpatch.pick import Change, Laid
from hexpatch.repo import NULL, Repo
from hexpatch.textmerge import merge_text
from hexpatch.tree import Content, Entry, Store, Tree

# history beyond this is not walked: the tip alone is judged then
MAX_COMMITS = 20000
_TELLING = 16  # letters in lines that are known again without their neighbours
_SHORT, _LONG, _NEAR = 5, 24, 20  # letters, letters, lines

_Blob = tuple[int, str]  # mode and id


class Landing(NamedTuple):
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


class _Step(NamedTuple):
    before: str
    commit: str
    subject: str
    blobs: dict[bytes, tuple[_Blob, _Blob]]  # path -> before, after


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
    steps = _walk(store.repo, base, onto)
    followers = [_Follower(item) for item in laid]
    for step in steps:
        files = _Files(store, step, keep=len(steps) == 1)
        for follower in followers:
            follower.go(store, step, files)
    found = {f.name: f.landing for f in followers if f.landing is not None}
    by_name = {item.name: item for item in laid}
    for group in groups:
        members = [by_name[n] for n in group if n in by_name]
        if len(members) > 1 and not all(m.name in found for m in members):
            for landing in _squashed(store, members, steps):
                found.setdefault(landing.name, landing)
    return found


def _walk(repo: Repo, base: str, onto: str) -> list[_Step]:
    """Upstream's commits and what they touch, oldest first; one step if history is unknown."""
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
        return [_step(block) for block in out.split(b"\x01")[1:]]
    changes = {
        c.path: ((c.old_mode, c.old_id), (c.new_mode, c.new_id))
        for c in repo.raw_diff(repo.tree_of(base), repo.tree_of(onto))
    }
    subject = repo.commit(onto).message.split("\n", 1)[0]
    return [_Step(repo.tree_of(base), onto, subject, changes)]


def _step(block: bytes) -> _Step:
    fields = block.split(b"\0")
    blobs: dict[bytes, tuple[_Blob, _Blob]] = {}
    at = 2
    while at + 1 < len(fields):
        head = fields[at].lstrip(b"\n")
        if not head.startswith(b":"):
            at += 1
            continue
        old_mode, new_mode, old, new, _ = head[1:].decode().split(" ")
        blobs[fields[at + 1]] = (int(old_mode, 8), old), (int(new_mode, 8), new)
        at += 2
    commit = fields[0].decode()
    return _Step(f"{commit}^", commit, fields[1].decode("utf-8", "replace"), blobs)


def _entry(store: Store, blob: _Blob) -> Entry | None:
    mode, oid = blob
    # a Content of its own: thousands of versions must not stay in memory
    return None if oid == NULL or mode == GITLINK else Entry(mode, Content(store, oid=oid))


# -- one file -------------------------------------------------------------------------------


class _Trace:
    """What a change leaves in a file: per hunk, blocks of lines that get more, and one less.

    Counted against the file the patch was made from, for look-alike blocks may have stood there
    before. A block is the new lines with one line of context on one side: upstream may have
    written more beside them.
    """

    def __init__(self, change: Change) -> None:
        self.change = change

    @cached_property
    def blocks(self) -> list[list[list[bytes]]]:
        """Per hunk, the blocks that the change brings in; cheap to look for."""
        if self.change.pre is None or self.change.post is None:
            return []
        return [_blocks(hunk) for _, hunk in self.change.hunks]

    @cached_property
    def marks(self) -> list[tuple[list[tuple[list[bytes], int]], list[bytes], int]]:
        """Per hunk, its blocks and its old lines, and how often they stood there before."""
        if self.change.pre is None or self.change.post is None:
            return []
        lines = self.change.pre.content.lines
        marks = []
        for (_, hunk), blocks in zip(self.change.hunks, self.blocks, strict=True):
            old, _ = core(hunk)
            more = [(block, place.count(lines, block)) for block in blocks]
            marks.append((more, old, place.count(lines, old)))
        return marks

    def may_stand(self, data: bytes | None) -> bool:
        """A quick no: none of the blocks of a hunk is there."""
        return data is None or all(
            any(b"\n".join(block) in data for block in more) for more in self.blocks if more
        )

    def stands(self, entry: Entry | None) -> bool:
        """Does this version of the file have all of the change?"""
        pre, post = self.change.pre, self.change.post
        if post is None or entry is None:
            return entry is None and post is None
        if pre is None or not self.marks:
            return entry.same(post)
        if post.mode not in (pre.mode, entry.mode):
            return False
        lines = entry.content.lines
        return all(
            (not more or any(place.count(lines, block, n + 1) > n for block, n in more))
            and (not old or place.count(lines, old, n_old) < n_old)
            for more, old, n_old in self.marks
        )

    def taken_back(self, entry: Entry | None) -> bool:
        """Does this version of the file have none of the change any more?"""
        pre, post = self.change.pre, self.change.post
        if pre is None or entry is None:
            return entry is None and pre is None
        if post is None or not self.marks:
            return entry.same(pre)
        lines = entry.content.lines
        return all(
            all(place.count(lines, block, n + 1) <= n for block, n in more)
            and (not old or place.count(lines, old, n_old) >= n_old)
            for more, old, n_old in self.marks
        )


def _blocks(hunk: Hunk) -> list[list[bytes]]:
    """The new lines of a hunk as they can be told from others."""
    end = len(hunk.new) - hunk.trail
    middle = hunk.new[hunk.lead : end]
    before, after = hunk.new[max(hunk.lead - 1, 0) : hunk.lead], hunk.new[end : end + 1]
    if not middle:
        return [before + after] if before + after else []
    found = [before + middle] if before else []
    if after:
        found.append(middle + after)
    if not found or sum(len(line.strip()) for line in middle) >= _TELLING:
        found.append(middle)
    return found


class _Follower:
    """One patch on its way along upstream's history."""

    def __init__(self, item: Laid) -> None:
        self.name = item.name
        self.where = {c.path: _Trace(c) for c in item.changes if not c.moved}
        if len(self.where) != len(item.changes):
            self.where = {}  # a rename is not looked for
        self.have: set[_Trace] = set()
        self.landing: Landing | None = None

    def go(self, store: Store, step: _Step, files: _Files) -> None:
        """Look at the next commit."""
        mine = self.where.keys() & step.blobs.keys()
        for path in mine:
            trace = self.where[path]
            now = path
            if step.blobs[path][1][1] == NULL and trace.change.post is not None:
                moved = _moved_to(store.repo, step, path)
                if moved is not None and moved not in self.where:
                    now = moved
                    self.where[now] = self.where.pop(path)
            if trace not in self.have:
                if trace.may_stand(files.data(now)) and trace.stands(files.entry(now)):
                    self.have.add(trace)
            elif trace.taken_back(files.entry(now)):
                self.have.discard(trace)
                if self.landing is not None and not self.landing.reverted_by:
                    by = f"{step.commit[:10]} `{step.subject}`"
                    self.landing = self.landing._replace(reverted_by=by)
        whole = bool(mine) and len(self.have) == len(self.where)
        if whole and (self.landing is None or self.landing.reverted_by):
            exact = step.blobs.keys() == self.where.keys() and all(
                _exact(store, step.blobs[p], t.change) for p, t in self.where.items()
            )
            how = "exactly" if exact else "in other words"
            self.landing = Landing(self.name, how, step.commit, step.subject)


class _Files:
    """The files of one upstream commit, read once for all patches."""

    def __init__(self, store: Store, step: _Step, *, keep: bool) -> None:
        self._store = store
        self._step = step
        self._keep = keep  # one step: these are the files that the stack will stand on
        self._entries: dict[bytes, Entry | None] = {}

    def entry(self, path: bytes) -> Entry | None:
        """The file after the commit."""
        if path not in self._entries:
            mode, oid = blob = self._step.blobs[path][1]
            entry = _entry(self._store, blob)
            if entry is not None and self._keep:
                entry = Entry(mode, self._store.content(oid))
            self._entries[path] = entry
        return self._entries[path]

    def data(self, path: bytes) -> bytes | None:
        """Its bytes, for a quick no."""
        entry = self.entry(path)
        if entry is None:
            return None
        text = entry.content.text
        return entry.content.data if text is None else text.data


def _moved_to(repo: Repo, step: _Step, path: bytes) -> bytes | None:
    """Where a commit renamed a file to."""
    for change in repo.raw_diff(step.before, step.commit, renames=True):
        if change.status == "R" and change.path == path and change.new_path in step.blobs:
            return change.new_path
    return None


def _exact(store: Store, blobs: tuple[_Blob, _Blob], change: Change) -> bool:
    before, after = _entry(store, blobs[0]), _entry(store, blobs[1])
    if change.pre is None or change.post is None or not change.hunks:
        return after.same(change.post) if after and change.post else after is change.post
    if before is None or after is None:
        return False
    hunks = [h for _, h in change.hunks]
    lines = before.content.lines
    places = place.place(lines, hunks)
    if isinstance(places, place.Misfit):
        return False
    return place.splice(lines, hunks, places) == after.content.lines


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
        if all(_net(store, _entry(store, step.blobs[p][1]), a, b) for p, (a, b) in span.items()):
            return [Landing(m.name, "squashed", step.commit, step.subject) for m in members]
    return []


def _net(store: Store, entry: Entry | None, first: Change, last: Change) -> bool:
    """Has this version the group's net change of one file?"""
    if last.post is None or entry is None:
        return entry is None and last.post is None
    if entry.same(last.post):
        return True
    if first.pre is None or first.pre.content.binary() or first.pre.content.same(last.post.content):
        return False
    data = entry.content.data
    merged, conflicts = merge_text(store.repo, first.pre.content.data, data, last.post.content.data)
    return not conflicts and merged == data


def applied_twice(before: Tree, after: Tree, item: Laid) -> list[str]:
    """Lines that upstream has brought in since the base, and the patch would add once more.

    A long block counts anywhere in the file, a short one only nearby.
    """
    findings = []
    for change in item.changes:
        ours, made = before.get(change.path), after.get(change.path)
        if change.pre is None or ours is None or made is None or ours.same(change.pre):
            continue
        for _, hunk in change.hunks:
            added = hunk.new[hunk.lead : len(hunk.new) - hunk.trail]
            size = sum(len(line.strip()) for line in added)
            if hunk.removed or size < _SHORT:
                continue
            there = place.find(ours.content.lines, added)
            if not there or place.find(change.pre.content.lines, added):
                continue
            now = place.find(made.content.lines, added)
            near = any(two - one < _NEAR + len(added) for one, two in pairwise(now))
            if len(now) > len(there) and (size >= _LONG or near):
                path = change.path.decode("utf-8", "backslashreplace")
                findings.append(f"{path}: line {there[0] + 1} has the added lines already")
    return findings
