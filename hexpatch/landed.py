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
from hexpatch.objects import GITLINK
from hexpatch.pick import Change, Laid
from hexpatch.repo import NULL, Blob, Repo
from hexpatch.textmerge import merge_text
from hexpatch.trace import Trace
from hexpatch.tree import Content, Entry, Store, Tree

# history beyond this is not walked: the tip alone is judged then
MAX_COMMITS = 20000
_SHORT, _LONG, _NEAR = 5, 24, 20  # letters, letters, lines

_Span = dict[bytes, tuple[Change, Change]]  # by path, the first and the last change of it


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
    blobs: dict[bytes, tuple[Blob, Blob]]  # path -> before, after


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
            _note(found, _squashed(store, members, steps))
    _note_chains(store, laid, steps, found)
    return found


def _note(found: dict[str, Landing], more: Sequence[Landing]) -> None:
    for landing in more:
        found.setdefault(landing.name, landing)


def _walk(repo: Repo, base: str, onto: str) -> list[_Step]:
    """Upstream's commits and what they touch, oldest first; one step if history is unknown."""
    if repo.is_ancestor(base, onto):
        return [
            _Step(f"{made.commit}^", *made) for made in repo.walked(base, onto, most=MAX_COMMITS)
        ]
    changes = {
        c.path: ((c.old_mode, c.old_id), (c.new_mode, c.new_id))
        for c in repo.raw_diff(repo.tree_of(base), repo.tree_of(onto))
    }
    subject = repo.commit(onto).message.split("\n", 1)[0]
    return [_Step(repo.tree_of(base), onto, subject, changes)]


def _entry(store: Store, blob: Blob) -> Entry | None:
    mode, oid = blob
    # a Content of its own: thousands of versions must not stay in memory
    return None if oid == NULL or mode == GITLINK else Entry(mode, Content(store, oid=oid))


# -- one patch -------------------------------------------------------------------------------


class _Follower:
    """One patch on its way along upstream's history."""

    def __init__(self, item: Laid) -> None:
        self.name = item.name
        self.where = {c.path: Trace(c) for c in item.changes if not c.moved}
        if len(self.where) != len(item.changes):
            self.where = {}  # a rename is not looked for
        self.have: set[Trace] = set()
        self.landing: Landing | None = None

    def go(self, store: Store, step: _Step, files: _Files) -> None:
        """Look at the next commit."""
        mine = self.where.keys() & step.blobs.keys()
        for path in mine:
            trace = self.where[path]
            now = path
            if step.blobs[path][1][1] == NULL:
                moved = files.moves.get(path)
                if moved is not None and moved not in self.where:
                    now = moved
                    self.where[now] = self.where.pop(path)
            if trace not in self.have:
                if trace.may_stand(files.data(now)) and trace.stands(files.entry(now)):
                    self.have.add(trace)
            elif trace.taken_back(files.before(path), files.entry(now)):
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

    @cached_property
    def moves(self) -> dict[bytes, bytes]:
        """Where the commit moved files to."""
        return _moves(self._store.repo, self._step)

    def entry(self, path: bytes) -> Entry | None:
        """The file after the commit."""
        if path not in self._entries:
            mode, oid = blob = self._step.blobs[path][1]
            entry = _entry(self._store, blob)
            if entry is not None and self._keep:
                entry = Entry(mode, self._store.content(oid))
            self._entries[path] = entry
        return self._entries[path]

    def before(self, path: bytes) -> Entry | None:
        """The file before the commit."""
        return _entry(self._store, self._step.blobs[path][0])

    def data(self, path: bytes) -> bytes | None:
        """Its bytes, for a quick no."""
        entry = self.entry(path)
        if entry is None:
            return None
        text = entry.content.text
        return entry.content.data if text is None else text.data


def _moves(repo: Repo, step: _Step) -> dict[bytes, bytes]:
    """Where a commit moved files to, by their old paths."""
    return {
        change.path: change.new_path
        for change in repo.raw_diff(step.before, step.commit, renames=True)
        if change.status == "R" and change.new_path in step.blobs
    }


def _exact(store: Store, blobs: tuple[Blob, Blob], change: Change) -> bool:
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


def _note_chains(
    store: Store, laid: Sequence[Laid], steps: Sequence[_Step], found: dict[str, Landing]
) -> None:
    """Patches whose lines a later one has changed again: upstream may have both in one commit."""
    for at, item in enumerate(laid):
        if item.name in found:
            continue
        ends: dict[str, list[Laid]] = {}  # the commit a later patch came in with: all up to it
        members, paths = [item], {c.path for c in item.changes}
        for later in laid[at + 1 :]:
            touched = {c.path for c in later.changes}
            if paths.isdisjoint(touched):
                continue
            members = [*members, later]
            paths |= touched
            landing = found.get(later.name)
            if landing is not None and landing.how != "exactly" and not landing.reverted_by:
                ends[landing.commit] = members
        for number, step in enumerate(steps):
            if step.commit in ends and item.name not in found:
                _note(found, _squashed(store, ends[step.commit], steps[number:], 1))


def _squashed(
    store: Store, members: Sequence[Laid], steps: Sequence[_Step], most: int | None = None
) -> list[Landing]:
    """Patches taken as one commit: their first state to their last, merged onto that commit.

    `most`: only so many of the steps may be the first such commit.
    """
    span: _Span = {}
    for item in members:
        for change in item.changes:
            if change.moved:
                return []
            path = change.path
            first = span[path][0] if path in span else change
            span[path] = (first, change)
    landing: Landing | None = None
    for number, step in enumerate(steps):
        if landing is not None and not landing.reverted_by:
            if _taken_back(store, span, step):
                by = f"{step.commit[:10]} `{step.subject}`"
                landing = landing._replace(reverted_by=by)
        elif (landing or most is None or number < most) and _taken(store, span, step):
            landing = Landing("", "squashed", step.commit, step.subject)
    return [landing._replace(name=m.name) for m in members] if landing is not None else []


def _taken(store: Store, span: _Span, step: _Step) -> bool:
    """Has this commit brought in all of it?"""
    if not span.keys() <= step.blobs.keys():
        return False
    gone = [p for p, (_, last) in span.items() if last.post is None]
    moves = _moves(store.repo, step) if gone else {}
    if any(moves.get(p, p) not in span for p in gone):
        return False  # what the patches delete lives on
    return all(
        _net(store, _entry(store, step.blobs[p][1]), a.pre, b.post) for p, (a, b) in span.items()
    )


def _taken_back(store: Store, span: _Span, step: _Step) -> bool:
    """Has this commit taken one of the files back? One that it moved is followed."""
    touched = span.keys() & step.blobs.keys()
    gone = [p for p in touched if step.blobs[p][1][1] == NULL and span[p][1].post is not None]
    moves = _moves(store.repo, step) if gone else {}
    for path in touched:
        first, last = span[path]
        now = moves.get(path, path) if path in gone else path
        if now != path and now not in span:
            span[now] = span.pop(path)
        if _net(store, _entry(store, step.blobs[now][1]), last.post, first.pre):
            return True
    return False


def _net(store: Store, entry: Entry | None, pre: Entry | None, post: Entry | None) -> bool:
    """Has this version of a file the change from `pre` to `post`?"""
    if post is None or entry is None:
        return entry is None and post is None
    if entry.same(post):
        return True
    if pre is None or pre.content.binary() or pre.content.same(post.content):
        return False
    data = entry.content.data
    merged, conflicts = merge_text(store.repo, pre.content.data, data, post.content.data)
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
