"""Which upstream commit stands in the way of a patch."""

from __future__ import annotations

from bisect import bisect_left

from hexpatch.errors import HexpatchError
from hexpatch.objects import EXECUTABLE, FILE
from hexpatch.pick import Conflict
from hexpatch.repo import NULL, PathChange, Repo
from hexpatch.textmerge import merge_text
from hexpatch.tree import LARGE

MAX_MERGES = 100  # a merge takes about 10 ms


class Culprits:
    """Names the upstream commit between `base` and `onto` that a conflict came with.

    Where merges of the versions in between do not tell, it is the newest that touched the file.
    """

    def __init__(self, repo: Repo, base: str, onto: str) -> None:
        self._repo, self._base, self._onto = repo, base, onto
        self._linear: bool | None = None
        self._newest: dict[bytes, str] = {}
        self._left = MAX_MERGES

    def name(self, conflict: Conflict) -> str:
        """The commit for people; empty where it is not known."""
        if self._linear is None:
            self._linear = bool(self._repo.is_ancestor(self._base, self._onto))
        if not self._linear:
            return ""
        try:
            found = self._first(conflict)
        except HexpatchError:
            found = ""  # a shallow or partial history can miss what it takes
        return found or self._last(conflict.path)

    def _last(self, path: bytes) -> str:
        if path not in self._newest:
            try:
                found = self._repo.last_change(self._base, self._onto, path)
            except HexpatchError:
                found = None
            self._newest[path] = _shown(*found) if found else ""
        return self._newest[path]

    def _first(self, conflict: Conflict) -> str:
        """The commit whose version of the file conflicts, and the one before does not."""
        base, theirs = conflict.base, conflict.theirs
        if conflict.kind != "content" or base is None or theirs is None:
            return ""
        if max(base.content.size, theirs.content.size) > LARGE:
            return ""
        changes = self._repo.changes_of(self._base, self._onto, conflict.path)
        if len(changes) < 2:
            return ""
        pre, post = base.content.data, theirs.content.data

        def breaks(change: PathChange, *, before: bool = False) -> bool:
            mode, oid = change.before if before else change.after
            if oid == NULL or mode not in (FILE, EXECUTABLE):
                return before is False
            if self._left <= 0:
                raise HexpatchError("too many merges")
            self._left -= 1
            return merge_text(self._repo, pre, self._repo.read(oid, "blob"), post)[1] > 0

        at = bisect_left(changes, True, key=breaks)
        if at == len(changes) or breaks(changes[at], before=True):
            return ""
        return _shown(changes[at].commit, changes[at].subject)


def _shown(commit: str, subject: str) -> str:
    if subject.startswith("llama.cpp ") and "#" not in subject:
        return f"a commit up to {subject} (a snapshot knows no closer)"
    return f"{commit[:10]} `{subject}`"
