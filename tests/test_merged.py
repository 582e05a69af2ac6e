"""Two people edit the same series and git merges their files: marks are named, never taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import World, git
from test_hints import hints

PATCH = "patches/hexagon-hook-a.patch"


def two_sides(world: World, name: str, mine: bytes, theirs: bytes) -> None:
    """The workspace is a repository, and a merge of two versions of a file stops in it."""
    file = world.root / name
    base = file.read_bytes()
    (world.root / ".gitignore").write_text(".hexpatch\n")
    git(world.root, "init", "-q")
    git(world.root, "add", "-A")
    git(world.root, "commit", "-q", "-m", "one")
    for branch, data in (("theirs", theirs), ("main", mine)):
        git(world.root, "checkout", "-q", "-B", branch, "main")
        file.write_bytes(data)
        git(world.root, "commit", "-q", "-am", branch)
        if branch == "theirs":
            git(world.root, "branch", "-f", "main", "HEAD~")
    git(world.root, "checkout", "-q", "-f", "main")
    git(world.root, "merge", "theirs", check=False)
    assert b"<<<<<<< " in file.read_bytes() != base


@pytest.mark.parametrize("where", ["title", "body", "index", "hunk", "above"])
def test_a_patch_with_marks(stacked: World, where: str) -> None:
    lines = (stacked.root / PATCH).read_bytes().split(b"\n")
    find = {
        "title": b"Subject",
        "body": b"---",
        "index": b"index",
        "hunk": b"+hook",
        "above": b"@@",
    }
    at = next(n for n, line in enumerate(lines) if line.startswith(find[where]))
    one, two = list(lines), list(lines)
    if where in ("body", "above"):
        one.insert(at, b"Mine.")
        two.insert(at, b"Theirs.")
    else:
        one[at], two[at] = lines[at] + b" mine", lines[at] + b" theirs"
    two_sides(stacked, PATCH, b"\n".join(one), b"\n".join(two))
    before, tip = stacked.files(), stacked.git("rev-parse", "stack")
    for command in ("status", "series", "check", "apply", "refresh", "export"):
        ran = stacked.fails(command, says=f"{PATCH}: line ")
        assert "holds merge conflict marks" in ran.err
    assert (stacked.files(), stacked.git("rev-parse", "stack")) == (before, tip)
    ours, _ = hints(stacked.fails("apply").err)
    git(stacked.root, *ours.split()[1:])
    assert (stacked.root / PATCH).read_bytes() == b"\n".join(one)


def test_a_new_file_with_marks(stacked: World) -> None:
    """It may hold anything, so it is said and not refused."""
    (name,) = (n for n in stacked.files() if n.startswith("src/"))
    two_sides(stacked, name, b"mine\n", b"theirs\n")
    assert f"{name}: line 1: holds merge conflict marks" in stacked.ok("apply").err
    (stacked.root / name).write_bytes(b"mine\n")
    assert "marks" not in stacked.ok("apply").err


def test_a_message_about_marks(stacked: World, tmp_path: Path) -> None:
    """A commit may say anything: it comes back as it was."""
    body = "x : how it looks\n\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs"
    stacked.git("commit", "-q", "--allow-empty", "-m", body)
    stacked.ok("refresh")
    made = stacked.git("rev-parse", "HEAD")
    stacked.ok("apply")
    assert stacked.git("log", "-1", "--format=%B") == body
    assert stacked.git("log", "-1", "--format=%T") == stacked.git("log", "-1", "--format=%T", made)
    stacked.ok("check", "--fresh")
