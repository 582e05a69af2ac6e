"""Where upstream has a submodule and a patch a file: a conflict, and nothing of it is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import World, git
from fieldworld import Files, Story, numbered, rows

FILES: Files = {"s": numbered("s", 20), "other.c": numbered("other", 20)}
PATCHES: dict[str, tuple[Files, Files, str]] = {
    "changes": (FILES, {"s": numbered("s", 20, _3="three")}, "where the patch changes a file"),
    "deletes": (FILES, {"s": None, "new": "new\n"}, "where the patch deletes a file"),
    "adds": ({"other.c": FILES["other.c"]}, {"s": "new\n"}, "where the patch adds a file"),
    "adds below": ({"other.c": FILES["other.c"]}, {"s/x": "new\n"}, "upstream has s where the"),
}


def submodule(story: Story, commit: str) -> None:
    """Upstream has a submodule at `s`."""
    git(story.up, "checkout", "-q", "main")
    git(story.up, "rm", "-rq", "--ignore-unmatch", "s")
    git(story.up, "update-index", "--add", "--cacheinfo", f"160000,{commit},s")
    git(story.up, "commit", "-q", "-m", "submodule (#7)")


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False], ids=["commit is here", "commit is elsewhere"])
@pytest.mark.parametrize("what", PATCHES)
def test_a_patch_where_upstream_has_a_submodule(tmp_path: Path, what: str, known: bool) -> None:
    base, edit, says = PATCHES[what]
    story = Story(tmp_path, base)
    story.patch("s : edit", edit)
    story.patch("other : edit", {"other.c": numbered("other", 20, _9="nine")})
    submodule(story, git(story.up, "rev-parse", "base") if known else "1" * 40)
    world = story.world()
    predicted = rows(world, "check", "--onto", "main")
    assert [r["status"] for r in predicted.values()] == ["conflict", "ok"]
    assert says in str(predicted["s-edit"]["detail"])
    assert says in world.conflicts("rebase", "--onto", "main").out
    assert "s" in world.git("ls-files", "-u", check=False) or what == "adds below"
    skipped(world)
    assert world.git("rev-parse", "HEAD:s") == git(story.up, "rev-parse", "main:s")


def skipped(world: World) -> None:
    """Without that patch, the rest of the stack stands on the submodule."""
    world.ok("rebase", "--skip")
    assert "nine" in (world.checkout / "other.c").read_text()
    assert [p["name"] for p in world.status()["patches"]] == ["other-edit"]
    assert world.status()["sync"] == "in sync"
    assert world.git("status", "--porcelain") == ""


def test_the_folder_of_a_submodule_stays(tmp_path: Path) -> None:
    """The half-merged file lay in it, and went with the folder."""
    story = Story(tmp_path, {"s/x": numbered("x", 20), "other.c": FILES["other.c"]})
    story.patch("x : edit", {"s/x": numbered("x", 20, _3="three")})
    story.patch("other : edit", {"other.c": numbered("other", 20, _9="nine")})
    submodule(story, "1" * 40)
    world = story.world()
    world.conflicts("rebase", "--onto", "main")
    skipped(world)
    world.ok("undo")
    assert world.status()["sync"] == "in sync"


def test_back_from_there(tmp_path: Path) -> None:
    base, edit, _ = PATCHES["changes"]
    story = Story(tmp_path, base)
    story.patch("s : edit", edit)
    submodule(story, "1" * 40)
    world = story.world()
    before = world.files(), world.git("rev-parse", "HEAD")
    world.conflicts("rebase", "--onto", "main")
    world.ok("rebase", "--abort")
    assert (world.files(), world.git("rev-parse", "HEAD")) == before
    assert world.git("status", "--porcelain") == ""
    assert "three" in (world.checkout / "s").read_text()
