"""`merge` attributes of upstream's .gitattributes: the outcome is that of `git rebase`."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import git
from fieldworld import Story, numbered
from test_pick import moves, stops

BASE = {"doc/log.md": numbered("x", 30), "keep": "k\n"}


def clash(root: Path, rules: dict[str, str], **upstream: str) -> Story:
    """Both sides change line 10; the rules are there at the base."""
    story = Story(root, {**BASE, **rules})
    story.upstream("change", {"doc/log.md": numbered("x", 30, _10="theirs", **upstream)})
    story.patch("change", {"doc/log.md": numbered("x", 30, _10="mine")})
    return story


@pytest.mark.parametrize(
    "rules",
    [
        {".gitattributes": "*.md merge=union\n"},
        {"doc/.gitattributes": "log.md merge=union\n", ".gitattributes": "*.md -merge\n"},
        {".gitattributes": "[attr]log merge=union\n", "doc/.gitattributes": "log.md log\n"},
    ],
)
def test_union_takes_both_sides(tmp_path: Path, rules: dict[str, str]) -> None:
    world = moves(clash(tmp_path, rules))
    text = (world.checkout / "doc/log.md").read_text()
    assert "x 9\ntheirs\nmine\nx 11\n" in text


@pytest.mark.parametrize("rule", ["-merge", "merge=binary", "binary"])
def test_a_file_that_is_not_to_be_merged(tmp_path: Path, rule: str) -> None:
    """Far apart or not: what both sides change is for a person."""
    story = Story(tmp_path, {**BASE, ".gitattributes": f"*.md {rule}\n"})
    theirs = numbered("x", 30, _2="theirs")
    story.upstream("change", {"doc/log.md": theirs})
    story.patch("change", {"doc/log.md": numbered("x", 30, _25="mine")})
    world = stops(story, "binary", "doc/log.md", ".gitattributes")
    world.conflicts("rebase", "--onto", "main")
    assert (world.checkout / "doc/log.md").read_text() == theirs
    answer = numbered("x", 30, _2="theirs", _25="mine")
    (world.checkout / "doc/log.md").write_text(answer)
    world.git("add", "doc/log.md")
    world.ok("rebase", "--continue")
    assert world.git("show", "HEAD:doc/log.md") + "\n" == answer


@pytest.mark.parametrize("rules", ["*.md merge\n", "# *.md -merge\n", "*.md merge=unheard\n"])
def test_other_rules_change_nothing(tmp_path: Path, rules: str) -> None:
    stops(clash(tmp_path, {".gitattributes": rules}), "content", "doc/log.md")


def test_the_rules_are_those_of_the_new_base(tmp_path: Path) -> None:
    story = clash(tmp_path, {".gitattributes": "*.md -merge\n"})
    story.upstream("rules", {".gitattributes": "*.md merge=union\n"})
    world = moves(story)
    assert "theirs\nmine\n" in (world.checkout / "doc/log.md").read_text()


def test_a_rule_that_an_earlier_patch_makes(tmp_path: Path) -> None:
    story = Story(tmp_path, BASE)
    story.upstream("change", {"doc/log.md": numbered("x", 30, _10="theirs")})
    story.patch("rules", {".gitattributes": "*.md merge=union\n"})
    story.patch("change", {"doc/log.md": numbered("x", 30, _10="mine")})
    moves(story)


def test_one_side_alone_needs_no_rule(tmp_path: Path) -> None:
    story = Story(tmp_path, {**BASE, ".gitattributes": "*.md -merge\n"})
    story.upstream("other", {"keep": "kk\n"})
    story.patch("change", {"doc/log.md": numbered("x", 30, _10="mine")})
    world = moves(story)
    assert git(story.up, "diff", "--name-only", "main~1", "main") == "keep"
    assert world.git("diff", "--name-only", "HEAD~1", "HEAD") == "doc/log.md"
