"""Names that are not UTF-8: branches, files and arguments of another encoding are no traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import CASES, HOST, World, edit, git

ODD = os.fsdecode(b"gr\xfcn")


def test_a_branch_in_the_checkout(stacked: World) -> None:
    stacked.git("branch", ODD)
    stacked.git("branch", "next\u0085line")
    stacked.git("switch", "-q", ODD)
    stacked.git("commit", "-q", "--allow-empty", "-m", "x : mine")
    stacked.fails("refresh", says="not on branch stack")
    assert "not on branch stack" in stacked.status()["sync"]
    stacked.git("switch", "-q", "stack")
    before = stacked.world()
    stacked.ok("drop", "tests-add-a-case")
    stacked.git("branch", "-D", ODD)
    stacked.ok("undo")
    assert stacked.world() == before
    stacked.ok("rebase", "--onto", "v2")
    stacked.ok("undo")
    assert stacked.world() == before


def test_a_branch_of_the_clone(stacked: World) -> None:
    git(stacked.upstream, "branch", ODD, "v2")
    stacked.fails("check", "--onto", "gron", says="no upstream revision 'gron' is known")
    stacked.ok("rebase", "--onto", ODD)
    assert stacked.status()["sync"] == "in sync"


@pytest.mark.parametrize(
    "args",
    [
        ("import", f"{ODD}.patch"),
        ("import", f"{ODD}..v1"),
        ("rebase", "--onto", f"{ODD}~"),
        ("apply", "--onto", f"{ODD}~"),
        ("drop", ODD),
        ("undo", ODD),
        ("export", ODD),
        ("new", ODD, "-m", "x : x"),
        ("new", "x", "-m", f"x : {ODD}"),
    ],
)
def test_an_argument(stacked: World, args: tuple[str, ...]) -> None:
    edit(stacked.checkout / HOST, "host 45\n", "host 45!\n")
    if args[0] != "new":
        stacked.git("commit", "-qam", "hexagon : more")
        stacked.ok("refresh")
    before = stacked.files()
    ran = stacked.run(*args)
    assert ran.code in (1, 2)
    assert "error: " in ran.err
    assert stacked.files() == before


def test_the_folder_of_the_workspace(stacked: World) -> None:
    world = World(stacked.root.rename(stacked.root.with_name(ODD)), stacked.upstream)
    assert world.status()["sync"] == "in sync"
    edit(world.checkout / HOST, "host 45\n", "host 45!\n")
    world.ok("new", "more", "-m", "hexagon : more")
    world.ok("drop", "more")
    world.ok("rebase", "--onto", "v2")
    world.ok("undo")
    world.ok("apply", "--into", f"../{ODD}-2")
    world.ok("check", "--fresh")


def test_a_file_that_is_imported(stacked: World, tmp_path: Path) -> None:
    edit(stacked.checkout / CASES, "case 70\n", "case seventy\n")
    stacked.git("commit", "-qam", "tests : seventy")
    mail = tmp_path / f"{ODD}.patch"
    mail.write_text(stacked.git("format-patch", "-1", "--stdout") + "\n")
    stacked.ok("apply", "--force")
    stacked.ok("import", str(mail))
    assert rf"import {tmp_path}" in stacked.ok("log").out.replace("'", "")
    assert r"gr\xfcn.patch" in stacked.ok("log").out
    stacked.ok("undo")
