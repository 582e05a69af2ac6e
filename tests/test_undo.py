"""undo and log: further back, forward again, and never out of reach."""

from __future__ import annotations

import shutil

from conftest import World, commit, edit, git

KERNEL = "src/htp/kernel.c"


def ids(world: World) -> list[str]:
    """Ids of the operations, newest first."""
    return [e["id"] for e in world.ok("log", "--json").json]


def test_further_and_further_back(stacked: World) -> None:
    worlds = []
    for command in (
        ["rebase", "--onto", "v2"],
        ["drop", "tests-add-a-case"],
        ["rebase", "--onto", "v1"],
    ):
        worlds.append(stacked.world())
        stacked.ok(*command)
    for before in reversed(worlds):
        stacked.ok("undo")
        assert stacked.world() == before


def test_an_undo_by_id_is_redo(stacked: World) -> None:
    before = stacked.world()
    stacked.ok("rebase", "--onto", "v2")
    after = stacked.world()
    stacked.ok("undo")
    assert stacked.world() == before
    stacked.ok("undo", ids(stacked)[0])
    assert stacked.world() == after
    # the rebase is in force again, so it is what a plain undo takes back
    stacked.ok("undo")
    assert stacked.world() == before


def test_undo_names_what_it_undid(stacked: World) -> None:
    stacked.ok("rebase", "--onto", "v2")
    op = ids(stacked)[0]
    assert stacked.ok("undo").out == f"undid {op[:12]}  hexpatch rebase --onto v2\n"
    newest = stacked.ok("log", "--json").json[0]
    assert (newest["command"], newest["note"]) == ("hexpatch undo", f"undoes {op[:12]}")


def test_an_older_operation_by_its_id(stacked: World) -> None:
    before = stacked.world()
    stacked.ok("drop", "tests-add-a-case")
    op = ids(stacked)[0]
    stacked.ok("rebase", "--onto", "v2")
    stacked.ok("undo", op[:10])
    assert stacked.world() == before


def test_an_unknown_id(stacked: World) -> None:
    before = stacked.world()
    ran = stacked.fails("undo", "ffffffffffff", says="no operation ffffffffffff in the log")
    assert "`hexpatch log`" in ran.err
    assert stacked.world() == before


def test_the_first_apply_is_taken_back_whole(world: World) -> None:
    before = world.world()
    world.ok("apply")
    assert world.checkout.exists()
    after = world.world()
    world.ok("undo")
    assert not world.checkout.exists()
    assert world.world() == before
    world.ok("undo", ids(world)[0])
    assert world.world() == after


def test_the_first_apply_is_taken_back_but_for_a_persons_files(world: World) -> None:
    world.ok("apply")
    (world.checkout / "notes.txt").write_text("mine\n")
    world.ok("undo")
    assert (world.checkout / "notes.txt").read_text() == "mine\n"
    assert world.status()["sync"] == "not applied yet"
    world.ok("apply")
    assert (world.checkout / "notes.txt").read_text() == "mine\n"


def test_init_is_taken_back_and_again(world: World) -> None:
    yaml = (world.root / "series.yaml").read_bytes()
    world.ok("undo")
    assert not (world.root / "series.yaml").exists()
    world.fails("status", says="hexpatch init")
    world.ok("undo", ids(world)[0])
    assert (world.root / "series.yaml").read_bytes() == yaml
    world.ok("undo")
    world.fails("undo", says="nothing to undo")
    world.ok("init", "--repo", str(world.upstream), "--base", "v2")


def test_hand_edits_stay_within_reach(stacked: World) -> None:
    edit(stacked.root / KERNEL, "return 1", "return 99")
    made = commit(stacked, "tests : a note", tests__note="x\n")
    stacked.ok("undo")  # of the refresh: back to before there was a kernel
    assert not (stacked.root / KERNEL).exists()
    git(stacked.root / ".hexpatch/upstream.git", "gc", "-q", "--prune=now")
    stacked.ok("undo", ids(stacked)[0])
    assert "return 99" in (stacked.root / KERNEL).read_text()
    assert stacked.git("rev-parse", "HEAD") == made


def test_commits_on_a_detached_head_stay_within_reach(stacked: World) -> None:
    stacked.git("checkout", "-q", "--detach")
    made = commit(stacked, "tests : a note", tests__note="x\n")
    stacked.ok("undo")
    git(stacked.root / ".hexpatch/upstream.git", "gc", "-q", "--prune=now")
    assert stacked.git("cat-file", "-t", made) == "commit"


def test_uncommitted_work_is_not_overwritten(stacked: World) -> None:
    stacked.ok("rebase", "--onto", "v2")
    edit(stacked.checkout / "README.md", "tiny", "TINY")
    stacked.fails("undo", says="uncommitted changes: README.md")
    assert "TINY" in (stacked.checkout / "README.md").read_text()


def test_undo_where_a_person_did_it_already(stacked: World) -> None:
    """Nothing is left to restore, and still the next undo goes further back."""
    edit(stacked.root / KERNEL, "return 1", "return 2")
    stacked.ok("apply")
    stacked.ok("undo")
    first = ids(stacked)[0]
    stacked.ok("undo")
    assert ids(stacked)[0] != first
    assert not (stacked.root / KERNEL).exists()


def test_undo_without_a_checkout(stacked: World) -> None:
    files = stacked.files()
    stacked.ok("rebase", "--onto", "v2")
    shutil.rmtree(stacked.checkout)
    stacked.ok("undo")
    assert stacked.files() == files
    stacked.ok("apply")
    assert stacked.status()["sync"] == "in sync"


def test_branches_of_a_person_are_left_alone(stacked: World) -> None:
    stacked.git("branch", "topic")
    stacked.ok("rebase", "--onto", "v2")
    made = stacked.git("commit-tree", "-m", "mine", "HEAD^{tree}")
    stacked.git("branch", "-f", "topic", made)
    stacked.ok("undo")
    assert stacked.git("rev-parse", "topic") == made


def test_log_is_empty_before_anything_happened(world: World) -> None:
    shutil.rmtree(world.root / ".hexpatch")
    assert "no operations yet" in world.ok("log").err
    world.fails("undo", says="nothing to undo")
