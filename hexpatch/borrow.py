"""The user's own clone: its names are resolved in it, its objects are borrowed from it.

The store reads its objects through `alternates`; nothing in it is written. What it lacks itself,
being partial, git fetches into the store; where it is shallow the store is too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from hexpatch import remote, shallow
from hexpatch.repo import Repo, open_clone
from hexpatch.snapshots import Say

# a remote of the store; not a name that a user's own git settings would have something for
PROMISOR = "hexpatch-clone"

_FULL = re.compile(r"[0-9a-f]{40}")


class OwnClone:
    """The clone a user named, of whatever kind: plain, bare, work tree, shallow, partial."""

    def __init__(self, path: Path) -> None:
        self.path = path
        found = open_clone(path)
        self.objects = found.git_dir / "objects"
        self.shallow = found.shallow
        self.promisor_url = found.promisor_url
        own = path / ".git"
        self._repo = Repo(own if own.exists() else path)

    def close(self) -> None:
        """End the process that reads it."""
        self._repo.close()

    def has(self, commit: str) -> bool:
        """Is the object in it?"""
        with self._repo as repo:  # asked anew each time: objects may have come
            return bool(repo.present([commit]))

    def tip(self, branches: Iterable[str]) -> str | None:
        """The commit of the first branch that it has, its own or upstream's."""
        for branch in branches:
            for place in ("heads", "remotes/origin", "remotes/upstream"):
                commit = self._repo.resolve(f"refs/{place}/{branch}")
                if commit is not None:
                    return commit
        return None

    def resolve(self, rev: str) -> str | None:
        """The commit that a name, expression or id means there."""
        if _FULL.fullmatch(rev) and not self.has(rev):
            return None  # else a partial clone would try to fetch it, into itself
        return self._repo.resolve(rev)

    def kind(self, rev: str) -> str | None:
        """What a name stands for there: a commit, tree or blob; None where it is no name."""
        if rev.startswith("-") or (_FULL.fullmatch(rev) and not self.has(rev)):
            return None
        found = self._repo.lookup(rev)
        if found and found[1] == "tag":
            found = self._repo.lookup(f"{rev}^{{}}")
        return found[1] if found else None

    def is_tag(self, name: str) -> bool:
        """Is it the name of a tag?"""
        return self._repo.ref(f"refs/tags/{name}") is not None

    def tag_at(self, commit: str) -> str | None:
        """The first tag of a commit."""
        return tag_at(self._repo, commit, "refs/tags")

    def names(self) -> list[str]:
        """Its branches and tags, as a user would type them."""
        return [
            name.removeprefix(prefix)
            for prefix in ("refs/heads/", "refs/tags/", "refs/remotes/")
            for name in self._repo.refs(prefix)
        ]


def tag_at(repo: Repo, commit: str, prefix: str) -> str | None:
    """The first ref below a prefix that stands for a commit, without the prefix."""
    args = ("--points-at", commit, "--format=%(refname)", prefix)
    status, out = repo.git_status("for-each-ref", *args, ok=range(256))
    if status != 0 or not out:
        return None
    return out.decode("utf-8", "replace").split("\n")[0].removeprefix(prefix + "/")


def borrow(store: Repo, clone: OwnClone | None, say: Say) -> None:
    """Point a store at a clone's objects, its missing ones and its shallow edge."""
    listing = store.git_dir / "objects" / "info" / "alternates"
    now = _unquoted(listing)
    kept = [d for d in now if d.is_dir()]
    for gone in set(now) - set(kept):
        say(f"the clone with {gone} is gone: what was only there is looked for elsewhere")
    if clone is not None:
        for gone in _lent(clone.objects):
            say(f"{clone.path} has objects in {gone}, which is not there: it lacks them now")
        kept = [clone.objects, *(d for d in kept if d != clone.objects)]
    if kept != now:
        listing.parent.mkdir(parents=True, exist_ok=True)
        part = listing.with_name(f"alternates.{os.getpid()}.part")
        part.write_bytes(b"".join(_quoted(d) for d in kept))
        part.replace(listing)
        store.close()
    if clone is not None and clone.promisor_url:
        _promise(store, _absolute_url(clone.promisor_url, clone.path))
    edge: set[str] = set()
    for directory in kept:
        file = directory.parent / "shallow"
        if file.exists():
            edge.update(file.read_text("ascii").split())
    shallow.mend(store, frozenset(edge))


def _lent(objects: Path) -> list[Path]:
    """Folders that a clone has objects in (`git clone --shared`), and that are gone."""
    lenders = [objects / d for d in _unquoted(objects / "info" / "alternates")]
    return [d for d in lenders if not d.is_dir()]


def _promise(store: Repo, url: str) -> None:
    """Let git fetch what the user's partial clone lacks, into the store."""
    wanted = {
        "core.repositoryFormatVersion": "1",
        f"remote.{PROMISOR}.url": url,
        f"remote.{PROMISOR}.promisor": "true",
        f"remote.{PROMISOR}.partialclonefilter": "blob:none",
    }
    if not remote.setting(store, "extensions.partialClone"):
        wanted["extensions.partialClone"] = PROMISOR
    if remote.configure(store, wanted):
        store.close()


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
