"""Splices that wait give what lists of lines give, whatever hunks follow each other."""

from __future__ import annotations

import random
from difflib import SequenceMatcher

import pytest

from hexpatch import place
from hexpatch.patchfile import Hunk
from hexpatch.splices import Text


def hunk(old: list[bytes], new: list[bytes], at: int, old_eof: bool, new_eof: bool) -> Hunk:
    return Hunk(at + 1, len(old), at + 1, len(new), b"", old, new, old_eof, new_eof, 0, 0, 1, 1)


def hunks_of(before: bytes, after: bytes, context: int) -> list[Hunk]:
    """The hunks of a diff, with a newline at the end of a file or without."""
    one, two = before.split(b"\n"), after.split(b"\n")
    ends = [not lines[-1] and bool(lines.pop() == b"") for lines in (one, two)]
    found = []
    groups = SequenceMatcher(None, *_marked(one, two, ends), autojunk=False)
    for group in groups.get_grouped_opcodes(context):
        at, end = group[0][1], group[-1][2]
        start, stop = group[0][3], group[-1][4]
        last = end == len(one) and stop == len(two)
        eofs = [last and not newline for newline in ends]
        found.append(hunk(one[at:end], two[start:stop], at, *eofs))
    return found


def _marked(
    one: list[bytes], two: list[bytes], ends: list[bool]
) -> tuple[list[bytes], list[bytes]]:
    """A last line without a newline is another line."""
    marked = []
    for lines, newline in zip((one, two), ends, strict=True):
        marked.append(lines if newline or not lines else [*lines[:-1], lines[-1] + b"\\"])
    return marked[0], marked[1]


def some_lines(rng: random.Random, size: int) -> list[bytes]:
    words = [b"", b"}", b"a", b"b", *(b"line %d" % n for n in range(size))]
    return [rng.choice(words) for _ in range(size)]


def edited(rng: random.Random, lines: list[bytes]) -> list[bytes]:
    lines = list(lines)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(lines) + 1)
        lines[at : at + rng.randrange(4)] = some_lines(rng, rng.choice([0, 0, 1, 2, 9]))
    return lines


def as_bytes(rng: random.Random, lines: list[bytes]) -> bytes:
    data = b"\n".join(lines)
    return data + b"\n" if data and rng.random() < 0.8 else data


@pytest.mark.parametrize("seed", range(60))
def test_many_versions_of_a_file(seed: int) -> None:
    rng = random.Random(seed)
    lines = some_lines(rng, rng.choice([0, 1, 5, 40, 2000 if seed % 20 == 0 else 60]))
    data = as_bytes(rng, lines)
    text = Text(data)
    for _ in range(8):
        lines = edited(rng, data.split(b"\n") if data else [])
        after = as_bytes(rng, lines)
        hunks = hunks_of(data, after, rng.choice([0, 1, 3]))
        split = data.split(b"\n")
        found = place.place(split, hunks, lambda: True) if hunks else []
        spliced = text.spliced(hunks, [place.stated(h) for h in hunks])
        if spliced is None:  # no old lines, or the end of the file was cut off before
            assert any(not h.old or h.old_eof or h.new_eof for h in hunks)
            text, data = Text(after), after
            continue
        assert isinstance(found, list)
        assert b"\n".join(place.splice(split, hunks, found)) == after
        assert (spliced.data, spliced.size) == (after, len(after))
        assert spliced.lines == after.split(b"\n")
        assert spliced.head(100) == after[:100]
        text, data = spliced, after


@pytest.mark.parametrize("seed", range(60))
def test_hunks_that_stand_elsewhere(seed: int) -> None:
    """A wrong line, another file than they were made from: never spliced against `place`."""
    rng = random.Random(seed)
    data = as_bytes(rng, some_lines(rng, rng.choice([5, 40])))
    text = Text(data)
    for _ in range(6):
        after = as_bytes(rng, edited(rng, data.split(b"\n")))
        right = hunks_of(data, after, 2)
        move = rng.choice([0, 1, -1, 7])
        hunks = [h._replace(old_start=h.old_start + rng.choice([0, move, move])) for h in right]
        split = data.split(b"\n")
        stated = [place.stated(h) for h in hunks]
        spliced = text.spliced(hunks, stated)
        if spliced is not None and hunks:
            assert place.place(split, hunks, lambda: True) == stated
            assert spliced.data == b"\n".join(place.splice(split, hunks, stated))
        only = text.only(hunks)
        if only is not None and hunks:
            assert place.place(split, hunks, lambda: False) == only
            assert place.place(split, hunks, lambda: True) == only
            moved = text.spliced(hunks, only)
            assert moved is not None
            assert moved.data == b"\n".join(place.splice(split, hunks, only))
        changed = text.spliced(right, [place.stated(h) for h in right])
        text, data = (changed, after) if changed is not None else (Text(after), after)
