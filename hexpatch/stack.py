"""The series as commits: read its files, place each patch, hash one commit per patch.

A pure function of the files and the base: the same input gives the same ids everywhere, for the
committer is the author and no clock is read.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hexpatch import lockfile, objects, place
from hexpatch.errors import HexpatchError
from hexpatch.objects import EXECUTABLE, FILE, Commit
from hexpatch.patchfile import Hunk, PatchFile, merged, parse_patch
from hexpatch.pick import Change, Conflict, Laid, Source, lay
from hexpatch.series import Base, Patch, Series
from hexpatch.tree import Content, Store, Tree
from hexpatch.workspace import FileState


class Applied(NamedTuple):
    """One patch as a commit, and the hunks that sit at another line than they state."""

    name: str
    commit: str
    tree: str
    moved_hunks: tuple[tuple[bytes, str, int], ...] = ()


class Stack(NamedTuple):
    """A series on a base: one commit per patch."""

    base: str
    base_tree: str
    patches: tuple[Applied, ...]

    @property
    def tip(self) -> str:
        """The last commit, or the base of an empty series."""
        return self.patches[-1].commit if self.patches else self.base

    @property
    def tree(self) -> str:
        """Tree of the tip."""
        return self.patches[-1].tree if self.patches else self.base_tree


class Failed(NamedTuple):
    """A patch that could not be placed; `blocked_by` names the failed patch it builds on."""

    name: str
    conflicts: tuple[Conflict, ...]
    blocked_by: str = ""


class DoesNotApply(HexpatchError):
    """The series does not fit its own base."""

    def __init__(self, failed: Failed, base_name: str) -> None:
        lines = [f"{failed.name} does not apply on {base_name}"]
        lines += [f"  {c.line}" for c in failed.conflicts]
        super().__init__(
            "\n".join(lines),
            f"nothing was changed; edit patches/{failed.name}.patch (`hexpatch check` shows every "
            "patch), or write `held: REV` into its entry in series.yaml, REV a commit it fits on: "
            "`hexpatch rebase --onto REV` brings it back there",
        )
        self.failed = failed


LARGE = 1 << 20
_PARSED: dict[bytes, PatchFile] = {}


def parse_once(data: bytes, name: str, *, whole: bool = False) -> PatchFile:
    """parse_patch, remembered for small files: one command reads the same patch several times.

    A large one comes without the bytes of its diff, but for `whole`: its hunks say the same.
    """
    if len(data) > LARGE:
        return parse_patch(data, name, bare=not whole)
    found = _PARSED.get(data)
    if found is None:
        found = _PARSED[data] = parse_patch(data, name)
    return found


def read_source(series: Series, patch: Patch, *, once: bool = False) -> Source:
    """Parse a patch file and read the owned files of one patch; `once`: it is not remembered."""
    name = f"patches/{patch.file}"
    data = merged(series.read(name), name)
    parsed = parse_patch(data, name, bare=True) if once else parse_once(data, name)
    owned = []
    for file in patch.files:
        mode = EXECUTABLE if (series.root / file).stat().st_mode & stat.S_IXUSR else FILE
        owned.append((series.upstream_path(file).encode(), mode, series.read(file)))
    return Source(patch.name, parsed, tuple(owned))


def sources(series: Series, *, once: bool = False) -> Iterator[Source]:
    """The active patches of a series, parsed one at a time."""
    for patch in series.active:
        yield read_source(series, patch, once=once)


def commit_patch(store: Store, source: Source, parent: str, tree: str) -> str:
    """Id of the commit that a patch makes on a parent."""
    patch = source.patch
    commit = Commit(
        tree=tree,
        parents=(parent,),
        author_name=patch.author_name,
        author_email=patch.author_email,
        author_date=patch.author_date,
        message=patch.message,
    )
    return store.add("commit", objects.format_commit(commit))


def build(
    store: Store, series: Iterable[Source], base: str, base_tree: str, base_name: str
) -> Stack:
    """Place the whole series strictly on its base and hash its commits; nothing is written."""
    tree = Tree(store, base_tree)
    parent = base
    done: list[Applied] = []
    for source in series:
        laid = lay(tree, source)
        if isinstance(laid, list):
            raise DoesNotApply(Failed(source.name, tuple(laid)), base_name)
        tree_id = tree.write()
        parent = commit_patch(store, source, parent, tree_id)
        done.append(Applied(source.name, parent, tree_id, laid.moved_hunks))
        del source, laid  # a large patch must be gone before the next one comes
    return Stack(base, base_tree, tuple(done))


def lay_all(tree: Tree, series: Iterable[Source]) -> Iterator[Laid | Failed]:
    """Place patch after patch strictly, going on past those that fail."""
    failed: list[tuple[Source, Failed]] = []
    for source in series:
        laid: Laid | Failed | list[Conflict] = lay(tree, source)
        if isinstance(laid, list):
            laid = Failed(source.name, tuple(laid), _blocked_on_base(laid, failed))
            failed.append((source, laid))
        yield laid
        del source, laid  # a large patch must be gone before the next one comes


def _blocked_on_base(conflicts: Sequence[Conflict], failed: list[tuple[Source, Failed]]) -> str:
    """The failed patch whose new lines (or new file) this one wants to change."""
    for source, verdict in reversed(failed):
        for conflict in conflicts:
            if any(path == conflict.path for path, _, _ in source.owned):
                return verdict.blocked_by or verdict.name
            for diff in source.patch.diffs:
                if diff.path != conflict.path:
                    continue
                if diff.kind == "add" and conflict.kind == "missing":
                    return verdict.blocked_by or verdict.name
                if conflict.hunk is not None and builds_on(conflict.hunk.old, diff.hunks):
                    return verdict.blocked_by or verdict.name
    return ""


def builds_on(old: list[bytes], hunks: Sequence[Hunk]) -> bool:
    """Does a hunk's old side hold lines that these hunks add (and not only blank or short ones)?"""
    have = set(old)
    for hunk in hunks:
        added = hunk.new[hunk.lead : len(hunk.new) - hunk.trail]
        removed = set(hunk.old[hunk.lead : len(hunk.old) - hunk.trail])
        if any(line in have and line.strip() and line not in removed for line in added):
            return True
    return False


def blocked_by(laid: Laid, conflicts: Sequence[Conflict], failed: Sequence[Laid]) -> str:
    """Name of the earlier, failed patch without which this one would not fit at its own base.

    Exact where the failed patch can be taken back from the file this one starts from; else it is
    assumed, for then other patches lie between them.
    """
    for earlier in reversed(failed):
        for conflict in conflicts:
            mine = _change_at(laid, conflict.path)
            theirs = _change_at(earlier, conflict.path)
            if mine is None or theirs is None or mine.pre is None:
                continue
            if theirs.pre is None or theirs.post is None or not theirs.hunks or not mine.hunks:
                return earlier.name
            without = _take_back(mine.pre.content, theirs)
            if without is None:
                return earlier.name
            if isinstance(place.place(without, [h for _, h in mine.hunks]), place.Misfit):
                return earlier.name
    return ""


def _change_at(laid: Laid, path: bytes) -> Change | None:
    for change in laid.changes:
        if path in (change.path, change.old_path):
            return change
    return None


def _take_back(content: Content, change: Change) -> list[bytes] | None:
    hunks = [place.reversed_hunk(h) for _, h in change.hunks]
    places = place.place(content.lines, hunks)
    if isinstance(places, place.Misfit):
        return None
    return place.splice(content.lines, hunks, places)


def make_lock(series: Series, stack: Stack, files: FileState) -> lockfile.Lock:
    """The lock that describes this stack and the files it came from."""
    by_name = {a.name: a for a in stack.patches}
    locked = []
    for patch in series.active:
        applied = by_name[patch.name]
        locked.append(
            lockfile.LockedPatch(
                name=patch.name,
                sha256=lockfile.sha256(files[f"patches/{patch.file}"][0]),
                files=tuple(
                    (f, lockfile.owned_sum(series.upstream_path(f), files[f][1], files[f][0]))
                    for f in patch.files
                ),
                tree=applied.tree,
                commit=applied.commit,
                placed=tuple(
                    (path.decode("utf-8", "backslashreplace"), head, line)
                    for path, head, line in applied.moved_hunks
                ),
            )
        )
    return lockfile.Lock(
        base=Base(series.base.name, stack.base, stack.base_tree),
        patches=tuple(locked),
        tip=stack.tip,
        tree=stack.tree,
    )
