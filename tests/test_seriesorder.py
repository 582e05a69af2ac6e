"""The order of series.yaml: entries move whole, comments and foreign entries stay."""

from __future__ import annotations

from itertools import permutations

import pytest

from hexpatch.errors import HexpatchError
from hexpatch.seriesorder import add_many, order, reorder

TEXT = b"""\
version: 1
patches:
  # the first
  - name: a  # short
    files: [src/a.c]
  - b

  # the third,
  # with two lines
  - name: c
    why: because
  - file: sub/d.patch
groups: []  # none
"""


def test_order_reads_every_way_to_write_an_entry() -> None:
    assert order(TEXT) == ["a", "b", "c", "d"]
    assert order(b"patches: []\n") == []
    assert order(b"version: 1\n") == []


def test_every_order_and_back() -> None:
    for names in permutations("abcd"):
        moved = reorder(TEXT, names)
        assert order(moved) == list(names)
        assert reorder(moved, "abcd") == TEXT
        for block in (b"  # the first\n  - name: a  # short\n    files: [src/a.c]\n", b"because\n"):
            assert block in moved
        assert moved.startswith(b"version: 1\npatches:\n")
        assert moved.endswith(b"groups: []  # none\n")


def test_the_others_keep_their_places() -> None:
    assert order(reorder(TEXT, ["c", "a"])) == ["c", "b", "a", "d"]


def test_without_a_newline_at_the_end() -> None:
    text = b"patches:\n  - a\n  - b"
    assert reorder(text, ["b", "a"]) == b"patches:\n  - b\n  - a\n"


def test_windows_line_ends() -> None:
    text = b"patches:\r\n  - a\r\n  # two\r\n  - b\r\n"
    assert reorder(text, ["b", "a"]) == b"patches:\r\n  # two\r\n  - b\r\n  - a\r\n"


def test_a_flow_list_is_refused() -> None:
    with pytest.raises(HexpatchError, match="not a block list"):
        reorder(b"patches: [a, b]\n", ["b", "a"])


def test_many_entries_are_added_like_one() -> None:
    text = b"base: v1\npatches:\n  - name: a # first\n  # about b\n  - name: b\ngroups: []\n"
    made = add_many(text, ["c", "d", "e"])
    assert made == text.replace(
        b"  - name: b\n", b"  - name: b\n  - name: c\n  - name: d\n  - name: e\n"
    )
    assert add_many(b"base: v1\npatches: [a, b]\n", ["c", "d", "e"]) is None
