"""A conflict names the upstream commit that it came with, and not just the newest of the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import git
from fieldworld import Story, numbered, rows


def lines(**instead: str) -> str:
    return numbered("line", 60, **instead)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """Two patches on one file."""
    made = Story(tmp_path, {"a.c": lines()})
    made.patch("a : ten", {"a.c": lines(_10="ten")})
    made.patch("a : fifty", {"a.c": lines(_10="ten", _50="fifty")})
    return made


def told(story: Story) -> dict[str, str]:
    """What `check` says of every patch on main."""
    found = rows(story.world(), "check", "--onto", "main")
    return {name: str(row["detail"]) for name, row in found.items()}


def test_each_patch_has_its_own(story: Story) -> None:
    now: dict[str, str] = {}
    for number in (30, 10, 20, 50, 40, 9, 60):  # 9: in conflict with `ten` as well, but later
        now[f"_{number}"] = f"{number} (upstream)"
        story.upstream(f"a : line {number} (#{number})", {"a.c": lines(**now)})
    said = told(story)
    assert "`a : line 10 (#10)`" in said["a-ten"]
    assert "`a : line 50 (#50)`" in said["a-fifty"]


def test_what_was_taken_back_is_no_culprit(story: Story) -> None:
    story.upstream("a : ten, for a day (#1)", {"a.c": lines(_10="10")})
    story.upstream("a : no (#2)", {"a.c": lines()})
    story.upstream("a : eleven (#3)", {"a.c": lines(_11="11")})
    story.upstream("a : sixty (#4)", {"a.c": lines(_11="11", _60="60")})
    assert "`a : eleven (#3)`" in told(story)["a-ten"]


def test_a_branch_that_was_merged(story: Story) -> None:
    git(story.up, "checkout", "-q", "-b", "side", "base")
    git(story.up, "checkout", "-q", "main")
    story.upstream("a : first (#1)", {"a.c": lines(_1="1")})
    git(story.up, "checkout", "-q", "side")
    (story.up / "a.c").write_text(lines(_50="side"))
    git(story.up, "commit", "-q", "-am", "a : side")
    git(story.up, "checkout", "-q", "main")
    git(story.up, "merge", "-q", "--no-edit", "side")
    story.upstream("a : last (#2)", {"a.c": lines(_1="1", _50="side", _30="30")})
    assert "`a : side`" in told(story)["a-fifty"]


def test_a_file_that_goes(story: Story) -> None:
    story.upstream("a : ten (#1)", {"a.c": lines(_10="10")})
    story.upstream("a : gone (#2)", {"a.c": None, "b.c": "else\n"})
    assert "`a : gone (#2)`" in told(story)["a-ten"]
