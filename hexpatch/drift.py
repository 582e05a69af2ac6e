"""What upstream's movement does to the lines of a file: equal blocks of base and onto.

A three-way merge of a hunk whose region lies inside an equal block is a plain splice; that is
nearly every hunk, so only the rest pays for a real merge.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hexpatch import place
from hexpatch.patchfile import parse_diff
from hexpatch.repo import Repo
from hexpatch.tree import Entry, Tree

if TYPE_CHECKING:
    from hexpatch.pick import Change

Block = tuple[int, int, int]  # first line at the base, first line at onto, number of lines

_MANY_PATHS = 1500


class Drift:
    """Equal blocks per path, and upstream's renames; follows the stack patch by patch."""

    def __init__(self, repo: Repo, base: str, onto: str, paths: Iterable[bytes] = ()) -> None:
        self._repo = repo
        self._base = base
        self._onto = onto
        self._blocks: dict[bytes, list[Block]] = {}
        self._renames: dict[bytes, bytes] | None = None
        self._wanted = sorted(set(paths))
        self._read = base == onto

    def renamed(self, path: bytes, tree: Tree) -> bytes:
        """Where upstream moved a file that is not at its path any more; else the path itself."""
        if self._base == self._onto or tree.get(path) is not None:
            return path
        if self._renames is None:
            self._renames = {
                change.path: change.new_path
                for change in self._repo.raw_diff(self._base, self._onto, renames=True)
                if change.status == "R"
            }
        return self._renames.get(path, path)

    def splice(self, change: Change, ours: Entry) -> tuple[list[bytes], int] | None:
        """The file after the hunks and their common offset, or None if a real merge is needed."""
        blocks = self._of(change, ours)
        if blocks is None or not change.hunks:
            return None
        lines = ours.content.lines
        places = []
        for at, hunk in change.hunks:
            there = _inside(blocks, at, len(hunk.old), hunk.lead, hunk.trail)
            if there is None or not place.fits(lines, there, hunk):
                return None
            places.append(there)
        offset = places[0] - change.hunks[0][0]
        return place.splice(lines, [h for _, h in change.hunks], places), offset

    def follow(self, change: Change, after: Change, *, spliced: bool) -> None:
        """Keep the blocks true after a patch changed the path on both sides."""
        if change.old_path is None or after.post is None or change.moved:
            self._blocks.pop(change.path, None)
            return
        blocks = self._blocks.get(change.path)
        if spliced and blocks is not None and change.hunks:
            for at, hunk in reversed(change.hunks):
                grow = len(hunk.new) - len(hunk.old)
                blocks = [_shift(b, at, grow) for b in blocks]
            self._blocks[change.path] = blocks
        elif blocks is not None or not spliced:
            self._blocks.pop(change.path, None)

    def forget(self, change: Change) -> None:
        """The path changed on one side only."""
        self._blocks.pop(change.path, None)

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
        data = self._repo.diff(self._base, self._onto, paths, context=0)
        for diff in parse_diff(data, "upstream's diff") if data else ():
            if diff.kind == "modify" and diff.binary is None and not diff.binary_missing:
                self._blocks[diff.path] = _from_hunks(
                    [(place.stated(h), len(h.old), len(h.new)) for h in diff.hunks]
                )


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


def _inside(blocks: list[Block], at: int, size: int, lead: int, trail: int) -> int | None:
    """Index at onto of a region that lies in one equal block; None if it does not.

    A changed line may not touch the block's edge, for git calls neighbours a conflict; the edge
    of the file is no edge.
    """
    for one, two, count in blocks:
        if one <= at and at + size <= one + count:
            if at == one and not lead and (one or two):
                return None
            if at + size == one + count and not trail and count < 1 << 50:
                return None
            return two + at - one
    return None


def _shift(block: Block, at: int, grow: int) -> Block:
    one, two, count = block
    if one > at:
        return one + grow, two + grow, count
    if one <= at < one + count:
        return one, two, count + grow
    return block
