"""Where upstream's objects come from: the user's clone, upstream's remote, registry snapshots.

All of them end up behind one object store, `.hexpatch/upstream.git`. The clone is only read: its
objects are borrowed through `alternates`, its names are resolved in it, nothing in it is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from hexpatch import catalogue, snapshots
from hexpatch.borrow import OwnClone, borrow, tag_at
from hexpatch.catalogue import Entry, Spec
from hexpatch.errors import NAME_A_CLONE, HexpatchError, UsageError
from hexpatch.remote import Remote
from hexpatch.repo import Repo
from hexpatch.snapshots import Cache, Client, Known, Say

_FULL = re.compile(r"[0-9a-f]{40}")
_SHORT = re.compile(r"[0-9a-f]{4,40}")
_STEPS = re.compile(r"(.+?)((?:[~^]|@\{).*)?", re.DOTALL)


class _Upstream(Protocol):
    @property
    def url(self) -> str | None: ...
    @property
    def branch(self) -> str: ...
    @property
    def repo(self) -> Path | None: ...


class _Series(Protocol):
    """What is needed of a series (series.Series fits)."""

    @property
    def root(self) -> Path: ...
    @property
    def upstream(self) -> _Upstream: ...
    @property
    def sources(self) -> tuple[str, ...]: ...


class _Base(Protocol):
    """What is needed of a base (series.Base fits)."""

    @property
    def name(self) -> str: ...
    @property
    def commit(self) -> str | None: ...
    @property
    def tree(self) -> str | None: ...
    @property
    def snapshot(self) -> str | None: ...


class Found(NamedTuple):
    """An upstream commit that is in the store now.

    `name` is for people and stays true: a tag, a snapshot or an id, never a branch. Where `real`
    is False the commit only stands for its tree, which `snapshot` (a package release) carries:
    series.yaml then pins tree and snapshot, not the commit.
    """

    commit: str
    tree: str
    name: str
    via: str
    snapshot: str | None = None
    real: bool = True


class UnknownRevision(HexpatchError):
    """No source knows what a user typed."""


class Upstream:
    """Upstream as this workspace sees it: one object store, filled on demand."""

    def __init__(
        self,
        store: Repo,
        series: _Series,
        say: Say,
        offline: bool = False,
        *,
        client: Client | None = None,
    ) -> None:
        self.store = store
        self.say = say
        self.offline = offline or os.environ.get("HEXPATCH_OFFLINE", "") not in ("", "0")
        self.url = series.upstream.url
        self.branch = series.upstream.branch
        self.cache = Cache(say, client=client, offline=self.offline)
        self._order = [s for s in series.sources if s in ("remote", "snapshot")]
        self._remote = Remote(store, self.url, say, self.offline)
        path = series.upstream.repo if "clone" in series.sources else None
        self._clone = None if path is None else OwnClone(Path(series.root, path.expanduser()))
        borrow(store, self._clone, say)

    def close(self) -> None:
        """End helper processes."""
        if self._clone is not None:
            self._clone.close()

    def _has(self, oid: str) -> bool:
        return bool(self.store.present([oid]))

    def _in_clone(self, commit: str) -> bool:
        return self._clone is not None and self._clone.has(commit)

    # -- the pinned base -------------------------------------------------------------------

    def base(self, base: _Base) -> Found:
        """The commit the series stands on. The same on every machine, whatever it came from.

        With `commit`: that commit. With a tree alone: the snapshot commit of this tree, even where
        a clone would know a real one. With neither: whatever `name` means today.
        """
        if base.commit is not None:
            found = self._pinned_commit(base, base.commit)
        elif base.tree is not None:
            found = self._pinned_tree(base, base.tree)
        else:
            found = self._named_base(base)
        if base.tree is not None and found.tree != base.tree:
            what = base.commit or base.snapshot or base.name
            raise HexpatchError(
                f"base: tree of {what} is {found.tree}, series.yaml pins {base.tree}",
                "a tag that moved, or another file than the pinned one: compare before you "
                "change the pin",
            )
        return found

    def _pinned_commit(self, base: _Base, commit: str) -> Found:
        tried: list[str] = []
        if self._has(commit):
            return self._real(commit, base.name, "clone" if self._in_clone(commit) else "store")
        entry = catalogue.by_upstream(commit)
        for source in self._order:
            if source == "remote":
                if self._remote.fetch_commit(commit, tried):
                    return self._real(commit, base.name, "remote")
            elif entry is not None and self._install(entry, tried):
                snapshots.adopt_upstream(self.store, entry)
                return self._real(commit, base.name, "snapshot")
        if base.tree is not None and self._tree(base, base.tree, tried):
            found = self._stand_in(base, base.tree)
            self.say(
                f"base {base.name}: commit {commit[:9]} is not to be had, its tree is: the stack "
                f"stands on {found.commit[:9]} with the same files, so commit ids differ from "
                "those on the real commit"
            )
            return found
        raise self._no_base(base, commit, tried)

    def _pinned_tree(self, base: _Base, tree: str) -> Found:
        tried: list[str] = []
        via = self._tree(base, tree, tried)
        if via is None:
            raise self._no_base(base, f"tree {tree}", tried)
        found = self._stand_in(base, tree)
        return Found(found.commit, tree, found.name, via, found.snapshot, real=False)

    def _stand_in(self, base: _Base, tree: str) -> Found:
        """The snapshot commit of a tree in the store; an undated one outside the catalogue."""
        entry = catalogue.by_tree(tree)
        if entry is not None:
            commit = snapshots.adopt(self.store, entry)
            return Found(commit, tree, entry.name, "snapshot", str(entry.spec), real=False)
        commit = snapshots.adopt_unlisted(self.store, base.name, tree)
        return Found(commit, tree, base.name, "snapshot", base.snapshot, real=False)

    def _tree(self, base: _Base, tree: str, tried: list[str]) -> str | None:
        """Get a tree into the store; through which source, or None."""
        if self._has(tree):
            return "clone" if self._in_clone(tree) else "store"
        entry = catalogue.by_tree(tree)
        for source in self._order:
            if source == "remote" and entry is None and base.snapshot is None:
                commit = self._remote.fetch_name(base.name, tried)
                if commit is not None and self.store.tree_of(commit) == tree:
                    return "remote"
                if commit is not None:
                    tried.append(f"{base.name} at {self.url} has another tree")
            elif source == "snapshot" and entry is not None:
                if self._install(entry, tried):
                    return "snapshot"
            elif source == "snapshot" and base.snapshot is not None:
                got = self._link(self._spec(base.snapshot), tried)
                if got == tree:
                    return "snapshot"
                if got is not None:
                    raise HexpatchError(
                        f"base: tree of {base.snapshot} is {got}, series.yaml pins {tree}",
                        "compare both before you change the pin",
                    )
        return None

    def _named_base(self, base: _Base) -> Found:
        try:
            return self.resolve(base.snapshot or base.name)
        except UnknownRevision:
            shallow = self._shallow(base.name)
            if shallow is not None:
                raise shallow from None
            raise

    def _no_base(self, base: _Base, what: str, tried: list[str]) -> HexpatchError:
        shallow = self._shallow(base.commit) if base.commit is not None else None
        if shallow is not None:
            return shallow
        lines = "".join(f"\n  {text}" for text in tried)
        return HexpatchError(
            f"the base {base.name} ({what}) is in no source that can be reached{lines}",
            NAME_A_CLONE,
        )

    def _shallow(self, what: str) -> HexpatchError | None:
        if self._clone is None or not self._clone.shallow:
            return None
        path = self._clone.path
        return HexpatchError(
            f"the clone {path} is shallow and lacks the pinned base {what}",
            f"`git -C {path} fetch --unshallow`, or fetch that commit",
        )

    # -- anything a user types -------------------------------------------------------------

    def resolve(self, rev: str) -> Found:
        """The commit that `rev` means: package release, branch, clone's name, snapshot, id.

        The clone's names win. What is in the store needs no network; for the rest the sources are
        asked in the series' order.
        """
        rev = rev.strip()
        if not rev:
            raise UsageError(
                "the upstream commit is an empty text", "name a tag, branch, id or snapshot"
            )
        tried: list[str] = []
        if rev.startswith(("npm:", "pypi:")) or catalogue.parse_spec(rev) is not None:
            return self._release(self._spec(rev))
        if rev in ("master", "main", "latest", self.branch):
            found = self._newest(rev, tried)
        else:
            found = self._in_the_clone(rev) or self._here(rev) or self._ask(rev, tried)
        if found is None:
            raise self._unknown(rev, tried)
        return found

    def _newest(self, rev: str, tried: list[str]) -> Found | None:
        """The tip of upstream's branch, as far as it can be seen from here."""
        branches = [b for b in dict.fromkeys((rev, self.branch)) if b != "latest"]
        tip = self._clone.tip(branches) if self._clone is not None else None
        if tip is not None:
            return self._real(tip, None, "clone")
        for source in self._order:
            if source == "remote":
                for branch in branches:
                    commit = self._remote.fetch_name(branch, tried, heads_only=True)
                    if commit is not None:
                        return self._real(commit, None, "remote")
                held = self._fetched_before(self.branch, rev)
                if held is not None:
                    return held
            else:
                entry = catalogue.newest()
                label = f"{self._why()}; {rev} means the newest snapshot known here: {entry.label}"
                self.say(label)
                return self._snapshot(entry)
        return None

    def _fetched_before(self, branch: str, rev: str) -> Found | None:
        """What a branch was when the remote could be asked last."""
        held = self.store.ref(f"refs/upstream/heads/{branch}")
        if held is None or not self._remote.lost:
            return None
        self.say(f"{self._why()}; {rev} means what it was when last fetched: {held[:9]}")
        return self._real(held, None, "store")

    def _why(self) -> str:
        if self.offline:
            return "offline"
        if self._remote.unreachable is not None:
            return "upstream can't be reached"
        return "no clone or remote has it"

    def tips(self) -> list[str]:
        """The newest commits of upstream that are known here, without asking anybody."""
        held = set(self.store.refs("refs/snapshots/", "refs/upstream/").values())
        own = self._clone.tip([self.branch]) if self._clone is not None else None
        return sorted(held | {own} if own else held)

    def _in_the_clone(self, rev: str) -> Found | None:
        commit = self._clone.resolve(rev) if self._clone is not None else None
        if self._clone is None or commit is None:
            return None
        return self._real(commit, rev if self._clone.is_tag(rev) else None, "clone")

    def _here(self, rev: str) -> Found | None:
        """What is in the store already, by snapshot name, fetched name or id."""
        head, steps = _split(rev)
        entry = None if _FULL.fullmatch(head) else catalogue.by_name(head)
        if entry is not None:
            held = self.store.ref(f"refs/snapshots/{entry.name}")
            if held != catalogue.commit_id(entry):
                return None
            return self._walk(self._snapshot(entry, "store"), steps)
        for place in ("refs/snapshots/", "refs/upstream/tags/", "refs/upstream/"):
            if self.store.ref(place + head):
                commit = self.store.resolve(place + rev)
                tag = head if place.endswith("tags/") and not steps else None
                return self._real(commit, tag, "store") if commit else None
        if _SHORT.fullmatch(head) and (not _FULL.fullmatch(head) or self._has(head)):
            commit = self.store.resolve(rev)
            return self._real(commit, None, "store") if commit else None
        if rev.startswith("refs/") and (commit := self.store.resolve(rev)):
            return self._real(commit, None, "store")
        return None

    def _ask(self, rev: str, tried: list[str]) -> Found | None:
        """Remote and snapshots, in the series' order."""
        head, steps = _split(rev)
        full = _FULL.fullmatch(head)
        for source in self._order:
            if source == "remote":
                commit = None
                if full:
                    commit = head if self._remote.fetch_commit(head, tried) else None
                else:
                    commit = self._remote.fetch_name(head, tried)
                    if commit is None and _SHORT.fullmatch(head) and not self._remote.lost:
                        # an abbreviation: only history can tell
                        self._remote.fetch_name(self.branch, tried, heads_only=True)
                        commit = self.store.resolve(head)
                if commit is not None:
                    tag = self.store.ref(f"refs/upstream/tags/{head}") is not None
                    return self._walk(self._real(commit, head if tag else None, "remote"), steps)
                held = self._fetched_before(head, head)
                if held is not None:
                    return self._walk(held, steps)
            elif (entry := catalogue.by_upstream(head)) is not None:
                snapshots.install(self.store, entry, self.cache)
                snapshots.adopt_upstream(self.store, entry)
                return self._walk(self._real(head, entry.name, "snapshot"), steps)
            elif (entry := catalogue.by_name(head)) is not None:
                return self._walk(self._snapshot(entry), steps)
        return None

    def _walk(self, found: Found, steps: str) -> Found | None:
        """`~2`, `^` and the like, from a commit."""
        if not steps:
            return found
        commit = self.store.resolve(found.commit + steps)
        return None if commit is None else self._real(commit, None, found.via)

    def _unknown(self, rev: str, tried: list[str]) -> HexpatchError:
        names = catalogue.names(catalogue.entries())
        if self._clone is not None:
            names += self._clone.names()
        names += [n.split("/", 3)[-1] for n in self.store.refs("refs/upstream/")]
        lines = "".join(f"\n  {text}" for text in tried)
        kind = self._clone.kind(rev) if self._clone is not None else None
        if self._clone is not None and kind not in (None, "commit"):
            return UnknownRevision(
                f"{rev!r} is a {kind} in {self._clone.path}, not a commit",
                "name a tag, branch or id of a commit there, or a snapshot",
            )
        if self._clone is not None and rev in names and not self._clone.shallow:
            return UnknownRevision(
                f"{rev!r} is known, but what it names is in no source that can be reached{lines}",
                f"`git -C {self._clone.path} fsck` says what is lost there",
            )
        from difflib import get_close_matches

        near = get_close_matches(rev, dict.fromkeys(names), n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else None
        if self._clone is not None and self._clone.shallow:
            path = self._clone.path
            hint = f"the clone {path} is shallow: `git -C {path} fetch --unshallow`"
        return UnknownRevision(
            f"no upstream revision {rev!r} is known{lines}",
            hint or f"`hexpatch upstream` lists the snapshots, or {NAME_A_CLONE}",
        )

    # -- snapshots -------------------------------------------------------------------------

    def _spec(self, text: str) -> Spec:
        spec = catalogue.parse_spec(text)
        if spec is None:
            raise HexpatchError(
                f"{text!r} is not a snapshot",
                "write npm:node-llama-cpp@VERSION or pypi:llama-cpp-python==VERSION",
            )
        return spec

    def _release(self, spec: Spec) -> Found:
        entry = catalogue.by_spec(spec)
        if entry is not None:
            return self._snapshot(entry)
        tree = self.cache.tree_of(spec)
        if tree is None or not self._has(tree):
            tree = snapshots.link_pack(self.store, self.cache, spec)
        entry = catalogue.by_tree(tree)
        if entry is not None:
            return self._snapshot(entry)
        commit = snapshots.adopt_unlisted(self.store, spec.name, tree)
        return Found(commit, tree, spec.name, "snapshot", str(spec), real=False)

    def _snapshot(self, entry: Entry, via: str = "snapshot") -> Found:
        commit = snapshots.install(self.store, entry, self.cache)
        return Found(commit, entry.tree, entry.name, via, str(entry.spec), real=False)

    def _install(self, entry: Entry, tried: list[str]) -> bool:
        return _attempt(lambda: snapshots.install(self.store, entry, self.cache), tried) is not None

    def _link(self, spec: Spec, tried: list[str]) -> str | None:
        return _attempt(lambda: snapshots.link_pack(self.store, self.cache, spec), tried)

    # -- for people ------------------------------------------------------------------------

    def _real(self, commit: str, name: str | None, via: str) -> Found:
        """A commit that is in the store; a snapshot's own commit is told apart."""
        tree = self.store.tree_of(commit)
        entry = catalogue.by_tree(tree)
        if entry is not None and commit == catalogue.commit_id(entry):
            return Found(commit, tree, entry.name, via, str(entry.spec), real=False)
        return Found(commit, tree, name or self.describe(commit), via)

    def describe(self, commit: str) -> str:
        """A name that stays true: snapshot, tag, or the first nine digits."""
        for entry in catalogue.entries():
            if commit in (entry.upstream, catalogue.commit_id(entry)):
                return entry.name
        tag = self._clone.tag_at(commit) if self._clone is not None else None
        tag = tag or tag_at(self.store, commit, "refs/upstream/tags")
        if tag is not None:
            return tag
        if f"refs/bases/{self.store.tree_of(commit)}" in self.store.refs("refs/bases"):
            subject = self.store.commit(commit).message.split("\n")[0]
            if subject.startswith("llama.cpp "):
                return subject.removeprefix("llama.cpp ")
        return commit[:9]

    def known(self) -> tuple[Known, ...]:
        """The catalogue, with what is in the store and in the user's cache."""
        return snapshots.known(self.store, self.cache)


def _attempt(action: Callable[[], str], tried: list[str]) -> str | None:
    """A source that fails is noted, and the next one is asked."""
    try:
        return action()
    except HexpatchError as error:
        tried.append(error.message)
        return None


def _split(rev: str) -> tuple[str, str]:
    """`v0.5.0~2` -> `v0.5.0`, `~2`."""
    match = _STEPS.fullmatch(rev)
    return (match[1], match[2] or "") if match else (rev, "")
