"""Where a hunk goes: the stated line, or the only other place it fits. Never a guess."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from hexpatch.patchfile import Hunk


class Misfit(NamedTuple):
    """A hunk that can't be placed: `ambiguous` (fits at several lines) or `hunk` (at none)."""

    kind: str
    hunk: Hunk
    places: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """One line for people; lines are 1-based."""
        where = hunk_name(self.hunk)
        if self.kind == "ambiguous":
            at = ", ".join(str(p + 1) for p in self.places)
            return f"hunk {where} fits at several places (lines {at})"
        if self.kind == "overlap":
            return f"hunk {where} overlaps the hunk before it"
        if self.kind == "bare":
            return f"hunk {where} has no context to check its place by"
        return f"hunk {where} does not match the file"


def hunk_name(hunk: Hunk) -> str:
    """The @@ line, with the function it names."""
    head = f"@@ -{hunk.old_start},{hunk.old_len} +{hunk.new_start},{hunk.new_len} @@"
    section = hunk.section.decode("utf-8", "replace").strip()
    return f"{head} {section}" if section else head


def fits(lines: Sequence[bytes], at: int, hunk: Hunk) -> bool:
    """Does the hunk's old side stand at this index of the split lines?"""
    size = len(hunk.old)
    if at < 0 or lines[at : at + size] != hunk.old:
        return False
    if hunk.old_eof:
        return at + size == len(lines)
    if hunk.new_eof:
        return at + size == len(lines) - 1 and lines[-1] == b""
    return at + size <= len(lines) - 1


def stated(hunk: Hunk) -> int:
    """Index that the @@ line states; an insertion without context counts from the line before."""
    return hunk.old_start - 1 if hunk.old_len else hunk.old_start


def standing(lines: list[bytes], block: list[bytes]) -> Iterator[int]:
    """Indices at which a block of lines stands, ascending; an empty block stands nowhere."""
    if not block:
        return
    key = max(range(len(block)), key=lambda i: len(block[i]))
    at = key
    try:
        while True:
            at = lines.index(block[key], at)
            if lines[at - key : at - key + len(block)] == block:
                yield at - key
            at += 1
    except ValueError:
        return


def find(lines: list[bytes], block: list[bytes]) -> list[int]:
    """Indices at which a block of lines stands, at most three."""
    return list(islice(standing(lines, block), 3))


def count(lines: list[bytes], block: list[bytes], most: int = 50) -> int:
    """How often a block of lines stands there; counting ends at `most`."""
    return sum(1 for _ in islice(standing(lines, block), most))


def find_hunk(lines: list[bytes], hunk: Hunk) -> list[int]:
    """Indices at which a hunk fits, at most three."""
    return list(islice((p for p in standing(lines, hunk.old) if fits(lines, p, hunk)), 3))


def place(
    lines: list[bytes], hunks: Sequence[Hunk], origin: Callable[[], bool | None] = lambda: None
) -> list[int] | Misfit:
    """Index of every hunk in the split lines.

    The stated line wins, unless the file is known to be another than the patch was made from
    (`origin` says False; None: not known) and the hunk fits elsewhere too. Else the hunk must fit
    at exactly one other line, or at the one line that all uniquely placed hunks of the file agree
    on by their offset. A hunk without old lines needs the very file (`origin` says True).
    """
    at: list[int | None] = []
    several: list[tuple[int, list[int]]] = []
    offsets: set[int] = set()
    for number, hunk in enumerate(hunks):
        want = stated(hunk)
        if not hunk.old:
            if not fits(lines, want, hunk) or (lines != [b""] and not origin()):
                return Misfit("bare", hunk)
            at.append(want)
            continue
        fitting = fits(lines, want, hunk)
        if fitting and origin() is not False:
            at.append(want)
            offsets.add(0)
            continue
        found = find_hunk(lines, hunk)
        if fitting and len(found) == 1:
            at.append(want)
            offsets.add(0)
        elif not found:
            return Misfit("hunk", hunk)
        elif len(found) > 1:
            several.append((number, found))
            at.append(None)
        else:
            offsets.add(found[0] - want)
            at.append(found[0])
    for number, found in several:
        want = stated(hunks[number])
        agreed = want + next(iter(offsets)) if len(offsets) == 1 else None
        if agreed is None or not fits(lines, agreed, hunks[number]):
            return Misfit("ambiguous", hunks[number], tuple(found))
        at[number] = agreed
    placed = [p for p in at if p is not None]
    end = 0
    for position, hunk in zip(placed, hunks, strict=True):
        if position < end:
            return Misfit("overlap", hunk)
        end = position + len(hunk.old)
    return placed


def splice(lines: list[bytes], hunks: Sequence[Hunk], places: Sequence[int]) -> list[bytes]:
    """The lines after the hunks, which stand at `places` (ascending, from `place`)."""
    out: list[bytes] = []
    done = 0
    for at, hunk in zip(places, hunks, strict=True):
        out += lines[done:at]
        out += hunk.new
        done = at + len(hunk.old)
        if hunk.old_eof and not hunk.new_eof:
            out.append(b"")
        elif hunk.new_eof and not hunk.old_eof:
            done += 1  # the empty element that stood for the final newline
    out += lines[done:]
    return out or [b""]


def reversed_hunk(hunk: Hunk) -> Hunk:
    """The hunk that takes this one back."""
    return Hunk(
        old_start=hunk.new_start,
        old_len=hunk.new_len,
        new_start=hunk.old_start,
        new_len=hunk.old_len,
        section=hunk.section,
        old=hunk.new,
        new=hunk.old,
        old_eof=hunk.new_eof,
        new_eof=hunk.old_eof,
        lead=hunk.lead,
        trail=hunk.trail,
        added=hunk.removed,
        removed=hunk.added,
    )
