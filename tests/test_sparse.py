"""A checkout that shows only a part of the tree (`git sparse-checkout`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import CASES, HOST, World, edit, git


def names(world: World) -> list[str]:
    """What the commit on top touches."""
    return world.git("show", "--format=", "--name-only", "HEAD").split()


@pytest.mark.parametrize("index", ["--no-sparse-index", "--sparse-index"])
def test_what_is_not_shown_is_not_deleted(stacked: World, index: str) -> None:
    stacked.git("sparse-checkout", "set", index, str(Path(HOST).parent))
    hidden = stacked.checkout / CASES
    assert not hidden.exists()
    before = stacked.world()
    for number in (44, 47):
        edit(stacked.checkout / HOST, f"host {number}\n", f"host {number}!\n")
        stacked.ok("new", f"h{number}", "-m", f"hexagon : {number}")
        assert names(stacked) == [HOST]
        assert stacked.git("status", "--porcelain") == ""
    stacked.ok("undo")
    assert stacked.git("status", "--porcelain") == f"M {HOST}"
    stacked.git("checkout", "-q", ".")
    stacked.ok("undo")
    stacked.git("checkout", "-q", ".")
    assert stacked.world() == before
    assert not hidden.exists()


def test_a_conflict_in_a_file_that_is_not_shown(stacked: World) -> None:
    stacked.git("sparse-checkout", "set", "ggml")
    patch = (stacked.root / "patches" / "tests-add-a-case.patch").read_text().split("\n")
    added = next(n for n, x in enumerate(patch) if x[:1] == "+" and x[:3] != "+++")
    above = patch[added - 1][1:]
    edit(stacked.upstream / CASES, f"{above}\n", f"{above}\nmore\n")
    git(stacked.upstream, "commit", "-qam", "tests : edit (#9)")
    stacked.conflicts("rebase", "--onto", "master")
    assert "<<<<<<<" in (stacked.checkout / CASES).read_text()
    stacked.ok("rebase", "--abort")
    assert stacked.git("status", "--porcelain") == ""
    assert stacked.status()["sync"] == "in sync"
