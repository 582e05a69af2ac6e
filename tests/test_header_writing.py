"""Patch files as we write them: nothing is lost, and `git am` takes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_header import DIFF, git

from hexpatch.errors import HexpatchError
from hexpatch.patchfile import PatchFile, marked, parse_patch, parse_patch_headers, render_patch

# -- writing --------------------------------------------------------------------------------

NO_NUL = st.characters(exclude_characters="\0", exclude_categories=["Cs"])  # no commit has one
WORDS = st.text(NO_NUL, max_size=30).filter(lambda t: "\n" not in t)
LINES = st.lists(
    st.sampled_from(
        [
            "", "A line.", "---", "--- a/f", "---  ", "diff --git a/x b/x", "diff -u", "Index: x",
            "-- ", "-- >8 --",
            "From: x", "From: Two <t@x.org>", "from:", "Subject: [PATCH] y", "Date: x",
            "[PATCH] z", ">From: x", ">>---",
            "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001",
            "From abc Mon Sep 17 00:00:00 2001",
            ">From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001", "ä", "x ",
            " x", "\tx", "x\r",
            "2.39.5", "> quoted", ">diff", "@@ -1 +1 @@", "--- a/f\n+++ b/f\n@@ -1 +1 @@",
            "=?utf-8?q?=20?=", "x\x0c", "\x85",
            "<<<<<<< a", "=======", ">>>>>>> b",
        ]
    )
)  # fmt: skip
NAMES = st.one_of(WORDS, st.sampled_from(
    ["Dev One", "Li", "Dév Ün", "One, Dev", 'De"v', "a@b", "D (x) E", "(x)", "", " x ", "x  y",
     "é" * 40, "=?utf-8?q?x?=", "<", "a\\b", '"', "A" * 90, "word " * 20, "X."]))  # fmt: skip
MAILBOXES = st.sampled_from(
    ["d@x.org", "", "local", "é@x.org", "a b@c", "d@x.org" * 12, "@", "a@b@c"]
)
STAMPS = st.sampled_from(
    [
        "1704070060 +0000",
        "0 +0000",
        "-5 -0330",
        "1704070060 -0000",
        "1704070060 +9959",
        "99999999999999 +0100",
    ]
)
PATCHES = st.builds(
    lambda name, email, date, subject, body, diff, glued: PatchFile(
        f"{name} <{email}>", name, email, date, subject, body, (), diff, glued
    ),
    NAMES,
    MAILBOXES,
    STAMPS,
    st.one_of(
        WORDS,
        st.sampled_from(
            ["Re: x", "[PATCH] x", "[v75] x", " x", "x  y", "é" * 90, "w " * 90, "", ":"]
        ),
    ),
    st.one_of(st.text(NO_NUL), LINES.map("\n".join)),
    st.sampled_from([b"", DIFF]),
    st.booleans(),
)


def plain(**changes: object) -> PatchFile:
    patch = PatchFile(
        "Dev One <dev@example.org>", "Dev One", "dev@example.org", "1704070060 +0100", "htp : x",
        "", (), DIFF
    )  # fmt: skip
    name = changes.get("author_name", patch.author_name)
    changes.setdefault("author", f"{name} <dev@example.org>")
    return patch._replace(**changes)  # type: ignore[arg-type]


@given(PATCHES)
@settings(max_examples=400, deadline=None)
@example(plain(body="x\n\n"))
@example(plain(body="\n"))
@example(plain(subject="Re: [PATCH] x"))
def test_nothing_is_lost(patch: PatchFile) -> None:
    data = render_patch(patch)
    for scissors in (False, True):
        again = parse_patch(data, "p", scissors=scissors)
        assert again._replace(diffs=()) == patch
    assert render_patch(again) == data
    assert data.startswith(
        b"From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
    )
    assert data.endswith(patch.diff)
    assert marked(data.removesuffix(patch.diff)) is None
    assert parse_patch_headers(data, "p") == patch._replace(diff=b"")


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("upstream")
    who = {
        "GIT_AUTHOR_NAME": "x",
        "GIT_AUTHOR_EMAIL": "x",
        "GIT_COMMITTER_NAME": "x",
        "GIT_COMMITTER_EMAIL": "x",
    }
    git(folder, "init", "-q")
    (folder / "f.txt").write_text("one\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "base", **who)
    for key, value in (("user.name", "x"), ("user.email", "x")):
        git(folder, "config", key, value)
    git(folder, "tag", "base")
    return folder


def am(folder: Path, data: bytes) -> list[str]:
    git(folder, "reset", "-q", "--hard", "base")
    git(folder, "am", "-q", "--keep-cr", "--keep-non-patch", data=data)
    return (
        git(folder, "log", "-1", "--date=raw", "--format=%an%x01%ae%x01%ad%x01%B")
        .decode()[:-1]
        .split("\x01")
    )


@pytest.mark.parametrize(
    "patch",
    [
        plain(),
        plain(body="A body.\n\nSecond."),
        plain(subject="[hexagon][v75] htp : keep the tags"),
        plain(subject="x" * 90 + " " + "word " * 60 + "end"),
        plain(subject="ünïcode and “quotes” 🐢 " + "é" * 120, body="Ä body."),
        plain(subject="a =?utf-8?q?x?= b"),
        plain(author_name="One, Dev"),
        plain(author_name="Dév (x) Ün"),
        plain(author_name="A " + "word " * 10 + "end"),
        plain(author_date="1704070060 -0330"),
        plain(body="> quoted\n\n>From: x"),
    ],
)  # fmt: skip
def test_git_am_restores_it_exactly(upstream: Path, patch: PatchFile) -> None:
    data = render_patch(patch)
    assert b"X-Hexpatch" not in data
    assert am(upstream, data) == [
        patch.author_name,
        patch.author_email,
        patch.author_date,
        patch.message,
    ]


@pytest.mark.parametrize(
    "patch",
    [
        plain(subject="htp : the index", body=" - glued item\n\nA body.", glued=True),
        plain(body="---\ndiff --git a/x b/x\nIndex: x\n-- >8 --\n-- \n2.39.5"),
        plain(body="From: Two <two@x.org>\n\nx"),
        plain(body="x\n\nFrom abc Mon Sep 17 00:00:00 2001\ny"),
        plain(subject="Re: [PATCH] x  y"),
        plain(author_name="Li"),
        plain(body="x \n\n\ny"),
    ],
)
def test_git_am_takes_what_it_cannot_carry(upstream: Path, patch: PatchFile) -> None:
    data = render_patch(patch)
    *_, message = am(upstream, data)
    assert message.startswith(("htp", "x"))
    assert git(upstream, "show", "HEAD:f.txt") == b"one\ntwo\n"
    again = parse_patch(data, "p")
    assert (again.message, again.author) == (patch.message, patch.author)


def test_the_form_is_format_patchs(upstream: Path) -> None:
    for patch in (
        plain(),
        plain(body="A body.\n\nSecond."),
        plain(subject="htp : " + "a word of the title " * 9 + "end", body="Ä body"),
        plain(subject="ünïcode and “quotes” 🐢 (x_y?) " + "é" * 120),
        plain(author_name="Dév Ün-é_(x)", body="é"),
        plain(author_name="One, Dev"),
        plain(
            author_name="A " + "word " * 14 + "end",
        ),
    ):
        data = render_patch(patch)
        am(upstream, data)
        told = git(upstream, "format-patch", "-1", "--stdout", "--no-signature", "--zero-commit")
        without_stat = re.sub(rb"\n---\n.*?\n\ndiff", b"\n---\n\ndiff", told, flags=re.DOTALL)
        if len(patch.author_name) <= 60:
            assert without_stat.rstrip(b"\n") + b"\n" == data


def test_an_edit_by_hand_wins_over_what_was_said_again() -> None:
    data = render_patch(plain(subject="Re: x", author_name="a@b"))
    assert parse_patch(data, "p").subject == "Re: x"
    edited = data.replace(b"Subject: [PATCH] Re: x", b"Subject: [PATCH] other")
    assert parse_patch(edited, "p").subject == "other"
    assert parse_patch(edited, "p").author_name == "a@b"


def test_two_line_titles() -> None:
    patch = plain(subject="htp: add the index", body=" - and a list item\n\nA body.", glued=True)
    assert patch.message == "htp: add the index\n - and a list item\n\nA body.\n"
    again = parse_patch(render_patch(patch), "p")
    assert again.glued
    assert again.message == patch.message


def test_text_that_is_none() -> None:
    with pytest.raises(HexpatchError, match="not valid text"):
        render_patch(plain(body="\udcff"))
