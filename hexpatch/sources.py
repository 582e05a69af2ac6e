"""Where upstream's objects come from: the user's clone, upstream's remote, registry snapshots.

All of them end up behind one object store, `.hexpatch/upstream.git`. The clone is only read: its
objects are borrowed through `alternates`, its names are resolved in it, nothing in it is written.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hexpatch import catalogue, proc, snapshots
from hexpatch.catalogue import Entry, Spec
from hexpatch.errors import HexpatchError
from hexpatch.repo import PINNED, Clone, Repo, environment, open_clone
from hexpatch.snapshots import Cache, Client, Known, Say, present

# remotes of the store; not names that a user's own git settings would have something for
REMOTE = "hexpatch-upstream"
PROMISOR = "hexpatch-clone"
# a black hole must not hold a command for the minutes that git and ssh would wait
CONTACT_SECONDS = 20.0
STALL = ("http.lowSpeedLimit=1000", "http.lowSpeedTime=20")
SSH = "ssh -o ConnectTimeout=10 -o BatchMode=yes"

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


@dataclass(frozen=True)
class Found:
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
        clone: Path | None = None,
        client: Client | None = None,
    ) -> None:
        self.store = store
        self.say = say
        self.offline = offline or os.environ.get("HEXPATCH_OFFLINE", "") not in ("", "0")
        self.url = series.upstream.url
        self.branch = series.upstream.branch
        self.cache = Cache(say, client=client, offline=self.offline)
        self._sources = series.sources
        self._unreachable: str | None = None
        path = clone or (series.upstream.repo if "clone" in series.sources else None)
        self._path = None if path is None else Path(series.root, path.expanduser())
        self._names: Repo | None = None  # the clone, to resolve names in
        self._clone: Clone | None = None
        if self._path is not None:
            self._clone = open_clone(self._path)
            own = self._path / ".git"
            self._names = Repo(own if own.exists() else self._path)
        self._borrow()

    # -- the store -------------------------------------------------------------------------

    def _borrow(self) -> None:
        """Point the store at the clone's objects, its missing ones and its shallow edge."""
        path = self.store.git_dir / "objects" / "info" / "alternates"
        now = _unquoted(path)
        kept = [d for d in now if d.is_dir()]
        for gone in set(now) - set(kept):
            self.say(f"the clone with {gone} is gone: what was only there is looked for elsewhere")
        if self._clone is not None:
            mine = self._clone.git_dir / "objects"
            kept = [mine, *(d for d in kept if d != mine)]
        if kept != now:
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"alternates.{os.getpid()}.part")
            part.write_bytes(b"".join(_quoted(d) for d in kept))
            part.replace(path)
            self.store.close()
        if self._clone is not None and self._clone.promisor_url:
            self._promise(self._clone.promisor_url)
        edge: set[str] = set()
        for directory in kept:
            shallow = directory.parent / "shallow"
            if shallow.exists():
                edge.update(shallow.read_text("ascii").split())
        snapshots.mend_shallow(self.store, frozenset(edge))

    def _promise(self, url: str) -> None:
        """Let git fetch what the user's partial clone lacks, into the store."""
        assert self._path is not None
        wanted = {
            "core.repositoryFormatVersion": "1",
            f"remote.{PROMISOR}.url": _absolute_url(url, self._path),
            f"remote.{PROMISOR}.promisor": "true",
            f"remote.{PROMISOR}.partialclonefilter": "blob:none",
        }
        if not self._setting("extensions.partialClone"):
            wanted["extensions.partialClone"] = PROMISOR
        if self._configure(wanted):
            self.store.close()

    def _setting(self, key: str) -> str | None:
        status, out = self.store.git_status("config", "--local", "--get", key)
        return out.decode().rstrip("\n") if status == 0 else None

    def _configure(self, wanted: dict[str, str]) -> bool:
        changed = {k: v for k, v in wanted.items() if self._setting(k) != v}
        for key, value in changed.items():
            self.store.git("config", key, value)
        return bool(changed)

    def _has(self, oid: str) -> bool:
        return bool(present(self.store, [oid]))

    def _in_clone(self, commit: str) -> bool:
        return self._names is not None and bool(present(self._names, [commit]))

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
        for source in self._order():
            if source == "remote":
                if self._fetch_commit(commit, tried):
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
        for source in self._order():
            if source == "remote" and entry is None and base.snapshot is None:
                commit = self._fetch_name(base.name, tried)
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
            if self._clone is not None and self._clone.shallow:
                raise self._shallow(base.name) from None
            raise

    def _no_base(self, base: _Base, what: str, tried: list[str]) -> HexpatchError:
        if self._clone is not None and self._clone.shallow and base.commit is not None:
            return self._shallow(base.commit)
        lines = "".join(f"\n  {text}" for text in tried)
        return HexpatchError(
            f"the base {base.name} ({what}) is in no source that can be reached{lines}",
            "name a clone of llama.cpp that has it with --repo PATH",
        )

    def _shallow(self, what: str) -> HexpatchError:
        return HexpatchError(
            f"the clone {self._path} is shallow and lacks the pinned base {what}",
            f"`git -C {self._path} fetch --unshallow`, or fetch that commit",
        )

    # -- anything a user types -------------------------------------------------------------

    def resolve(self, rev: str) -> Found:
        """The commit that `rev` means: package release, branch, clone's name, snapshot, id.

        The clone's names win. What is in the store needs no network; for the rest the sources are
        asked in the series' order.
        """
        rev = rev.strip()
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
        for branch in branches if self._names is not None else ():
            assert self._names is not None
            for place in ("heads", "remotes/origin", "remotes/upstream"):
                commit = self._names.resolve(f"refs/{place}/{branch}")
                if commit is not None:
                    return self._real(commit, None, "clone")
        for source in self._order():
            if source == "remote":
                for branch in branches:
                    commit = self._fetch_name(branch, tried, heads_only=True)
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
        if held is None or not self._lost():
            return None
        self.say(f"{self._why()}; {rev} means what it was when last fetched: {held[:9]}")
        return self._real(held, None, "store")

    def _lost(self) -> bool:
        return self.offline or self._unreachable is not None

    def _why(self) -> str:
        if self.offline:
            return "offline"
        if self._unreachable is not None:
            return "upstream can't be reached"
        return "no clone or remote has it"

    def _in_the_clone(self, rev: str) -> Found | None:
        if self._names is None:
            return None
        if _FULL.fullmatch(rev) and not self._in_clone(rev):
            return None  # else a partial clone would try to fetch it, into itself
        commit = self._names.resolve(rev)
        if commit is None:
            return None
        name = rev if self._names.ref(f"refs/tags/{rev}") else None
        return self._real(commit, name, "clone")

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
        for source in self._order():
            if source == "remote":
                commit = None
                if full:
                    commit = head if self._fetch_commit(head, tried) else None
                else:
                    commit = self._fetch_name(head, tried)
                    if commit is None and _SHORT.fullmatch(head) and not self._lost():
                        # an abbreviation: only history can tell
                        self._fetch_name(self.branch, tried, heads_only=True)
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
        if self._names is not None:
            for prefix in ("refs/heads/", "refs/tags/", "refs/remotes/"):
                names += [n.removeprefix(prefix) for n in self._names.refs(prefix)]
        names += [n.split("/", 3)[-1] for n in self.store.refs("refs/upstream/")]
        lines = "".join(f"\n  {text}" for text in tried)
        near = difflib.get_close_matches(rev, dict.fromkeys(names), n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else None
        if self._clone is not None and self._clone.shallow:
            hint = f"the clone {self._path} is shallow: `git -C {self._path} fetch --unshallow`"
        return UnknownRevision(
            f"no upstream revision {rev!r} is known{lines}",
            hint or "`hexpatch upstream` lists the snapshots; --repo PATH names a clone",
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

    # -- the remote ------------------------------------------------------------------------

    def _order(self) -> Iterable[str]:
        return [s for s in self._sources if s in ("remote", "snapshot")]

    def _fetch_commit(self, commit: str, tried: list[str]) -> bool:
        """Fetch one commit by its full id, with the history below it."""
        ref = f"refs/upstream/commits/{commit}"
        return self._fetch(commit, ref, tried) and self._has(commit)

    def _fetch_name(self, name: str, tried: list[str], *, heads_only: bool = False) -> str | None:
        """Fetch a branch or tag of the remote; the commit it stands for."""
        listed = self._list(name, tried)
        for kind in ("heads",) if heads_only else ("tags", "heads"):
            oid = (listed or {}).get(f"refs/{kind}/{name}")
            if oid is None:
                continue
            ref = f"refs/upstream/{kind}/{name}"
            if self.store.ref(ref) == oid or self._fetch(f"refs/{kind}/{name}", ref, tried):
                return self.store.resolve(ref)
        if listed is not None:
            tried.append(f"{self.url} has no {name}")
        return None

    def _list(self, name: str, tried: list[str]) -> dict[str, str] | None:
        """The remote's branch and tag of a name -> ids; None when it can't be asked."""
        if not re.fullmatch(r"[^\s*?\[\\:^~-][^\s*?\[\\:^~]*", name):
            return {}
        patterns = [f"refs/heads/{name}", f"refs/tags/{name}"]
        out = self._network(["ls-remote", "--refs", REMOTE, *patterns], tried, CONTACT_SECONDS)
        if out is None:
            return None
        pairs = (line.split("\t") for line in out.decode("utf-8", "replace").splitlines())
        return {ref: oid for oid, ref in pairs if ref in patterns}

    def _fetch(self, what: str, ref: str, tried: list[str]) -> bool:
        if self.url is None or self.offline or self._unreachable is not None:
            return self._network([], tried, None) is not None
        if not _is_local(self.url):
            self.say(f"fetching {what.removeprefix('refs/')} from {self.url} ...")
        args = ["fetch", "--quiet", "--filter=blob:none", "--no-tags", "--no-write-fetch-head"]
        args += ["--no-auto-maintenance", "--no-recurse-submodules", "--update-shallow"]
        edge = snapshots.upstream_edge(self.store)
        if edge:  # commits that came alone from a snapshot would cut the history off there
            args.append("--unshallow")
        done = self._network([*args, REMOTE, f"+{what}:{ref}"], tried, None)
        self.store.close()
        snapshots.mend_shallow(self.store)
        return done is not None

    def _network(self, args: list[str], tried: list[str], limit: float | None) -> bytes | None:
        """Run one git command against the remote, with the user's own network settings."""
        if self.url is None:
            tried.append("no upstream url is set")
            return None
        if self.offline:
            tried.append(f"offline: {self.url} was not asked")
            return None
        if self._unreachable is not None:
            tried.append(self._unreachable)
            return None
        self._configure({f"remote.{REMOTE}.url": self.url})
        env = environment(user_config=True)
        if "GIT_SSH" not in env:
            env.setdefault("GIT_SSH_COMMAND", SSH)
        argv = ["git"]
        for setting in (*PINNED, *STALL):
            argv += ["-c", setting]
        argv += [f"--git-dir={self.store.git_dir}", *args]
        done = proc.run(argv, env=env, timeout=limit)
        if done.status == 0:
            return done.stdout
        said = done.stderr.decode("utf-8", "replace").strip()
        last = _telling(said) if not done.timed_out else f"no answer in {limit:.0f} s"
        if re.search(r"couldn't find remote ref|not our ref|unadvertised object", said):
            tried.append(f"{self.url}: {last}")
            return None
        self._unreachable = f"upstream {self.url} can't be reached: {last}"
        self.say(self._unreachable)
        tried.append(self._unreachable)
        return None

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
        for repo, prefix in ((self._names, "refs/tags"), (self.store, "refs/upstream/tags")):
            if repo is None:
                continue
            args = ("--points-at", commit, "--format=%(refname)", prefix)
            status, out = repo.git_status("for-each-ref", *args, ok=range(256))
            if status == 0 and out:
                return out.decode("utf-8", "replace").split("\n")[0].removeprefix(prefix + "/")
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


def _telling(said: str) -> str:
    """The line of git's words that says why: the first `fatal:`, else the last one."""
    lines = [line for line in said.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "ssh:", "error:"))]
    return (fatal or lines or ["git said nothing"])[0 if fatal else -1]


def _is_local(url: str) -> bool:
    return url.startswith(("/", "./", "../", "file:"))


def _absolute_url(url: str, base: Path) -> str:
    """A relative path in a clone's settings is relative to that clone."""
    if "://" in url or url.startswith("/") or re.match(r"[^/]+:", url):
        return url
    return str((base / url).resolve())


def _quoted(directory: Path) -> bytes:
    """A line of objects/info/alternates; git reads C quoting there."""
    text = os.fsencode(directory)
    if text[:1] in (b'"', b"#") or b"\n" in text:
        text = b'"' + re.sub(rb'(["\\])', rb"\\\1", text).replace(b"\n", b"\\n") + b'"'
    return text + b"\n"


def _unquoted(path: Path) -> list[Path]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        text = line
        if text.startswith(b'"'):
            text = text[1:-1].replace(b"\\n", b"\n")
            text = re.sub(rb"\\(.)", rb"\1", text)
        if text and not text.startswith(b"#"):
            found.append(Path(os.fsdecode(text)))
    return found
