"""What upstream's movement does to the lines of a file: equal blocks of base and onto.

A three-way merge of a hunk that lies inside an equal block, between lines that nothing else looks
like, is a plain splice; that is nearly every hunk, so only the rest pays for a real merge.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hexpatch import place
from hexpatch.objects import EMPTY_BLOB
from hexpatch.patchfile import Hunk, parse_diff
from hexpatch.repo import Repo
from hexpatch.tree import Content, Entry, Tree

if TYPE_CHECKING:
    from hexpatch.pick import Change

Counts = dict[bytes, int]
Block = tuple[int, int, int]  # first line at the base, first line at onto, number of lines

_MANY_PATHS = 1500
_FAR = 60  # lines
_SHORT = 4  # bytes: `}` and the like are not worth counting


class Drift:
    """Equal blocks per path, and upstream's renames; follows the stack patch by patch."""

    def __init__(self, repo: Repo, base: str, onto: str, paths: Iterable[bytes] = ()) -> None:
        self._repo = repo
        self._base = base
        self._onto = onto
        self._blocks: dict[bytes, list[Block]] = {}
        self._counts: dict[bytes, tuple[Content, Content, Counts, Counts]] = {}
        self._renames: dict[bytes, bytes] | None = None
        self._wanted = sorted(set(paths))
        self._read = base == onto

    def renamed(self, path: bytes, tree: Tree) -> bytes:
        """Where upstream moved a file that is not at its path any more; else the path itself."""
        if self._base == self._onto or tree.get(path) is not None:
            return path
        return self._renamed().get(path, path)

    def moved_folder(self, path: bytes, tree: Tree) -> tuple[bytes, list[bytes]] | None:
        """The folder that upstream moved with all it had, where `path` would be, and where to.

        Most of its files decide, by the folder they are in now; there may be a tie.
        """
        folder = path
        while self._base != self._onto and b"/" in folder:
            folder = folder.rpartition(b"/")[0]
            if next(iter(tree.in_the_way(folder)), None) is not None:
                return None  # it is still there
            to = Counter(
                home
                for old, new in self._renamed().items()
                if (home := _home(old, new, folder)) is not None
            )
            if to:
                most = max(to.values())
                return folder, [home for home, count in to.items() if count == most]
        return None

    def _renamed(self) -> dict[bytes, bytes]:
        if self._renames is None:
            self._renames = {
                change.path: change.new_path
                for change in self._repo.raw_diff(self._base, self._onto, renames=True)
                if change.status == "R" and change.old_id != EMPTY_BLOB
            }
        return self._renames

    def splice(self, change: Change, ours: Entry) -> tuple[Content, int] | None:
        """The file after the hunks and their common offset, or None if a real merge is needed."""
        blocks = self._of(change, ours)
        if blocks is None or not change.hunks:
            return None
        lines = ours.content.lines
        places: list[int] = []
        end = 0
        for at, hunk in change.hunks:
            there = _inside(blocks, at, len(hunk.old))
            if there is None or there < end or not place.fits(lines, there, hunk):
                return None
            places.append(there)
            end = there + len(hunk.old)
        if not _anchored(change, lines, places, *self._counted(change, ours.content)):
            return None
        offset = places[0] - change.hunks[0][0]
        return ours.content.spliced([h for _, h in change.hunks], places), offset

    def follow(self, change: Change, after: Change, *, spliced: bool) -> None:
        """Keep the blocks true after a patch changed the path on both sides.

        Where git has merged it they are a guess, which `splice` holds against the lines.
        """
        blocks = self._blocks.pop(change.path, None)
        if change.old_path is None or after.post is None or change.moved:
            return
        if blocks is None or not change.hunks:
            return
        blocks = _shifted(blocks, change.hunks)
        if spliced:
            self._recount(change, after)
        else:
            more = _growth(after) - _growth(change)  # upstream had a part of it
            last = change.hunks[-1][0]
            blocks = [(one, two + more if one > last else two, n) for one, two, n in blocks]
        self._blocks[change.path] = blocks

    def forget(self, change: Change) -> None:
        """The path changed on one side only."""
        self._blocks.pop(change.path, None)
        self._counts.pop(change.path, None)

    def _counted(self, change: Change, ours: Content) -> tuple[Counts, Counts]:
        """How often each line stands in both files; kept up from patch to patch."""
        assert change.pre is not None
        known = self._counts.get(change.path)
        if known is None or known[0] is not change.pre.content or known[1] is not ours:
            known = (change.pre.content, ours, _count(change.pre.content), _count(ours))
            self._counts[change.path] = known
        return known[2], known[3]

    def _recount(self, change: Change, after: Change) -> None:
        known = self._counts.pop(change.path, None)
        if known is None or change.post is None or after.post is None:
            return
        assert change.pre is not None
        assert after.pre is not None
        if known[0] is not change.pre.content or known[1] is not after.pre.content:
            return
        for counts in known[2:]:
            for _, hunk in change.hunks:
                for line in hunk.old:
                    counts[line] -= 1
                for line in hunk.new:
                    counts[line] = counts.get(line, 0) + 1
        self._counts[change.path] = (change.post.content, after.post.content, *known[2:])

    def _of(self, change: Change, ours: Entry) -> list[Block] | None:
        if not self._read:
            self._read = True
            self._read_diff()
        assert change.pre is not None
        found = self._blocks.get(change.path)
        if found is None:
            found = equal_blocks(change.pre.content.lines, ours.content.lines)
            self._blocks[change.path] = found
        return found

    def _read_diff(self) -> None:
        paths = self._wanted if len(self._wanted) <= _MANY_PATHS else ()
        # the line diff of git's merges
        data = self._repo.git(
            "diff-tree",
            "-r",
            "-U0",
            "--histogram",
            "--no-indent-heuristic",
            "--full-index",
            "--no-renames",
            self._base,
            self._onto,
            "--",
            *(os.fsdecode(b":(top,literal)" + p) for p in paths),
        )
        for diff in parse_diff(data, "upstream's diff") if data else ():
            if diff.kind == "modify" and diff.binary is None and not diff.binary_missing:
                self._blocks[diff.path] = _from_hunks(
                    [(place.stated(h), len(h.old), len(h.new)) for h in diff.hunks]
                )


def _home(old: bytes, new: bytes, folder: bytes) -> bytes | None:
    """What a folder became, judged by one renamed file: below it, all folders keep their names."""
    if not old.startswith(folder + b"/"):
        return None
    below = old[len(folder) :].rpartition(b"/")[0]
    home = b"/" + new.rpartition(b"/")[0] if b"/" in new else b""
    return home[: len(home) - len(below)][1:] if home.endswith(below) else None


def _from_hunks(hunks: list[tuple[int, int, int]]) -> list[Block]:
    blocks: list[Block] = []
    one = two = 0
    for at, old, new in hunks:
        blocks.append((one, two, at - one))
        two += at - one + new
        one = at + old
    blocks.append((one, two, 1 << 60))
    return blocks


def equal_blocks(one: list[bytes], two: list[bytes]) -> list[Block]:
    """The common head and tail of two files: the equal runs that no line diff could dispute."""
    limit = min(len(one), len(two))
    head = 0
    while head < limit and one[head] == two[head]:
        head += 1
    tail = 0
    while tail < limit - head and one[-1 - tail] == two[-1 - tail]:
        tail += 1
    return [(0, 0, head), (len(one) - tail, len(two) - tail, tail)]


def _inside(blocks: list[Block], at: int, size: int) -> int | None:
    """Index at onto of a region that lies in one equal block; None if it does not."""
    for one, two, count in blocks:
        if one <= at and at + size <= one + count:
            return two + at - one
    return None


def _count(content: Content) -> Counts:
    return dict(Counter(content.lines))


def _anchored(
    change: Change, lines: list[bytes], places: list[int], in_before: Counts, in_lines: Counts
) -> bool:
    """Does each hunk stand between two lines that are equal and unique in all three files?

    Then every line diff pairs these lines, so git's merge puts the hunk there too. Where
    look-alike blocks leave a doubt, or changes touch each other, git is asked.
    """
    assert change.pre is not None
    before = change.pre.content.lines
    added = {line for _, h in change.hunks for line in h.new[h.lead : len(h.new) - h.trail]}
    for (at, hunk), there in zip(change.hunks, places, strict=True):
        first, last = at + hunk.lead, at + len(hunk.old) - hunk.trail
        shift = there - at
        for step, start in ((-1, first - 1), (1, last)):
            for near in range(_FAR):
                here = start + step * near
                if not 0 <= here < len(before) or not 0 <= here + shift < len(lines):
                    if here < 0 and here + shift < 0 and near == 0:
                        break  # the hunk begins the file on both sides
                    return False
                line = before[here]
                if lines[here + shift] != line:
                    return False
                if len(line) < _SHORT or line in added:
                    continue
                if in_before[line] == 1 and in_lines[line] == 1:
                    break
            else:
                return False
    return True


def _shifted(blocks: list[Block], hunks: Sequence[tuple[int, Hunk]]) -> list[Block]:
    """The blocks after the hunks went in on both sides: those further down move, theirs grow."""
    out: list[Block] = []
    moved = n = 0
    for one, two, count in blocks:
        while n < len(hunks) and hunks[n][0] < one:
            moved += _grows(hunks[n][1])
            n += 1
        inside = 0
        while n < len(hunks) and hunks[n][0] < one + count:
            inside += _grows(hunks[n][1])
            n += 1
        out.append((one + moved, two + moved, count + inside))
        moved += inside
    return out


def _grows(hunk: Hunk) -> int:
    return len(hunk.new) - len(hunk.old)


def _growth(change: Change) -> int:
    """How many lines a change adds to its file."""
    assert change.pre is not None
    assert change.post is not None
    return len(change.post.content.lines) - len(change.pre.content.lines)
