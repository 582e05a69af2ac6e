"""What a change leaves in a file, so that it is known again in any later version of it."""

from __future__ import annotations

from functools import cached_property

from hexpatch import place
from hexpatch.merge import core
from hexpatch.patchfile import Hunk
from hexpatch.pick import Change
from hexpatch.tree import Entry

_TELLING = 16  # letters in lines that are known again without their neighbours
_EDGE, _CUT = b"\n", b"\n\n"  # stand for both ends of a file, and for no newline there


class Trace:
    """What a change leaves in a file: per hunk, blocks of lines that get more, and one less.

    Counted against the file the patch was made from, for look-alike blocks may have stood there
    before. A block is the new lines with one line of context on one side: upstream may have
    written more beside them.
    """

    def __init__(self, change: Change) -> None:
        self.change = change

    @cached_property
    def hunks(self) -> list[Hunk]:
        """Its hunks; where one reaches an end of the file, that is a line of context."""
        if self.change.pre is None or self.change.post is None:
            return []
        lines = self.change.pre.content.lines
        return [_edged(hunk, at, lines) for at, hunk in self.change.hunks]

    @cached_property
    def blocks(self) -> list[list[list[bytes]]]:
        """Per hunk, the blocks that the change brings in; cheap to look for."""
        return [_blocks(hunk) for hunk in self.hunks]

    @cached_property
    def marks(self) -> list[tuple[list[tuple[list[bytes], int]], list[bytes], int]]:
        """Per hunk, its blocks and its old lines, and how often they stood there before."""
        if not self.hunks or self.change.pre is None:
            return []
        lines = _lines(self.change.pre)
        marks = []
        for hunk, blocks in zip(self.hunks, self.blocks, strict=True):
            old, _ = core(hunk)
            more = [(block, place.count(lines, block)) for block in blocks]
            marks.append((more, old, place.count(lines, old)))
        return marks

    def may_stand(self, data: bytes | None) -> bool:
        """A quick no: none of the blocks of a hunk is there."""
        return data is None or all(
            any(b"\n".join(x for x in block if x not in (_EDGE, _CUT)) in data for block in more)
            for more in self.blocks
            if more
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
        lines = _lines(entry)
        return all(
            (not more or any(place.count(lines, block, n + 1) > n for block, n in more))
            and (not old or place.count(lines, old, n_old) < n_old)
            for more, old, n_old in self.marks
        )

    def taken_back(self, before: Entry | None, entry: Entry | None) -> bool:
        """Has this version of the file none of the change any more, or lost a hunk since `before`?

        A hunk is lost where its old lines stand again between the neighbours the new ones had.
        """
        pre, post = self.change.pre, self.change.post
        if pre is None or entry is None:
            return entry is None and pre is None
        if post is None or not self.marks:
            return entry.same(pre)
        lines = _lines(entry)
        if all(
            all(place.count(lines, block, n + 1) <= n for block, n in more)
            and (not old or place.count(lines, old, n_old) >= n_old)
            for more, old, n_old in self.marks
        ):
            return True
        if before is None:
            return False
        was = _lines(before)
        return any(
            not any(place.count(lines, block, n + 1) > n for block, n in more)
            and _put_back(hunk, was, lines)
            for hunk, (more, _, _) in zip(self.hunks, self.marks, strict=True)
        )


def _lines(entry: Entry) -> list[bytes]:
    """The lines of a file with its two ends."""
    lines = entry.content.lines
    if lines[-1] == b"":
        return [_EDGE, *lines[:-1], _EDGE]
    return [_EDGE, *lines, _CUT, _EDGE]


def _edged(hunk: Hunk, at: int, lines: list[bytes]) -> Hunk:
    """The hunk as it stands in these lines, with the ends of the file that it reaches."""
    if at == 0 and not hunk.lead:
        hunk = hunk._replace(old=[_EDGE, *hunk.old], new=[_EDGE, *hunk.new], lead=1)
        at = -1
    if at + len(hunk.old) == len(lines) - (lines[-1] == b"") and not hunk.trail:
        old, new = ([_CUT, _EDGE] if cut else [_EDGE] for cut in (hunk.old_eof, hunk.new_eof))
        trail = 2 if hunk.old_eof and hunk.new_eof else 1
        hunk = hunk._replace(old=hunk.old + old, new=hunk.new + new, trail=trail)
    return hunk


def _put_back(hunk: Hunk, was: list[bytes], now: list[bytes]) -> bool:
    """Do a hunk's old lines stand again where its new ones were, whatever is around them?"""
    old = hunk.old[hunk.lead : len(hunk.old) - hunk.trail]
    new = hunk.new[hunk.lead : len(hunk.new) - hunk.trail]
    before, after = hunk.old[hunk.lead - 1 : hunk.lead] if hunk.lead else [], []
    if hunk.trail:
        after = hunk.old[len(hunk.old) - hunk.trail :][:1]
    around = []
    if not new:
        around = [before + old, old + after]
    for at in place.standing(was, new):
        one, two = was[at - 1 : at], was[at + len(new) : at + len(new) + 1]
        if one == before or two == after or sum(len(x.strip()) for x in new) >= _TELLING:
            around.append(one + old + two)
    return any(place.count(now, lines) > place.count(was, lines) for lines in around)


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
