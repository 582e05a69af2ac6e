"""Laws of the state: inverse, pure, idempotent, reversible. Whole worlds are compared."""

from __future__ import annotations

import shutil
from pathlib import Path

from conftest import CASES, HOST, World, commit, copy_of, edit, git

KERNEL = "ggml/src/ggml-hexagon/htp/kernel.c"


def operations(world: World) -> int:
    return len(world.ok("log", "--json", "-n", "1000").json)


def versioned(world: World) -> None:
    """The series' folder is a git repository of its own, everything committed."""
    git(world.root, "init", "-q")
    git(world.root, "add", "-A")
    git(world.root, "commit", "-qm", "the series")


def test_refresh_is_the_inverse_of_apply(stacked: World) -> None:
    versioned(stacked)
    files, count = stacked.files(), operations(stacked)
    for _ in range(2):
        stacked.ok("apply")
        assert "nothing changed" in stacked.ok("refresh").out
        assert stacked.files() == files
        assert git(stacked.root, "status", "--porcelain") == ""
    assert operations(stacked) == count


def test_apply_is_a_pure_function_of_the_files(stacked: World, tmp_path: Path) -> None:
    tips = {stacked.ok("apply", "--json").json["tip"]}
    for n in range(2):
        other = copy_of(stacked, tmp_path / f"copy{n}")
        tips.add(other.ok("apply", "--json").json["tip"])
        assert other.files() == stacked.files()
        assert other.world() == stacked.world()
    assert len(tips) == 1


def test_apply_twice_is_apply_once(stacked: World) -> None:
    edit(stacked.root / "src/htp/kernel.c", "return 1", "return 2")
    stacked.ok("apply")
    world, count = stacked.world(), operations(stacked)
    stacked.ok("apply")
    assert (stacked.world(), operations(stacked)) == (world, count)


def test_rebase_to_the_same_base_is_nothing(stacked: World) -> None:
    world, count = stacked.world(), operations(stacked)
    for name in ("v1", git(stacked.upstream, "rev-parse", "v1")):
        stacked.ok("rebase", "--onto", name)
        assert (stacked.world(), operations(stacked)) == (world, count)
    stacked.ok("rebase", "--onto", "v2")
    world, count = stacked.world(), operations(stacked)
    stacked.ok("rebase", "--onto", "v2")
    assert (stacked.world(), operations(stacked)) == (world, count)


def test_there_and_back_again_is_nothing(stacked: World) -> None:
    edit(stacked.root / "series.yaml", "patches:\n", "patches:\n  # first things first\n")
    stacked.ok("apply")
    world = stacked.world()
    stacked.ok("rebase", "--onto", "v2")
    assert stacked.world() != world
    stacked.ok("rebase", "--onto", "v1")
    assert stacked.world() == world


def test_landed_patches_come_back(stacked: World) -> None:
    """Upstream takes the hook as it is, and the kernel with its owned file."""
    world = stacked.world()
    edit(stacked.upstream / HOST, "host 10\n", "host 10\nhook a\n")
    git(stacked.upstream, "commit", "-qam", "hexagon : hook a (#8)")
    git(stacked.upstream, "tag", "v3")
    edit(stacked.upstream / HOST, "host 30\n", "host thirty\n")
    (stacked.upstream / KERNEL).write_text("int kernel(void) {\n    return 1;\n}\n")
    git(stacked.upstream, "add", "-A")
    git(stacked.upstream, "commit", "-qm", "hexagon : add a kernel (#9)")
    git(stacked.upstream, "tag", "v4")

    assert "landed" in stacked.ok("rebase", "--onto", "v3").out
    yaml = (stacked.root / "series.yaml").read_text()
    assert "- name: hexagon-hook-a\n    landed: v3\n" in yaml
    stacked.ok("rebase", "--onto", "v4")
    yaml = (stacked.root / "series.yaml").read_text()
    assert yaml.count("landed: v") == 2
    assert stacked.git("rev-parse", "HEAD~1") == git(stacked.upstream, "rev-parse", "v4")
    there = stacked.world()
    stacked.ok("rebase", "--onto", "v4")
    assert stacked.world() == there
    stacked.ok("rebase", "--onto", "v1")
    assert stacked.world() == world


def test_undo_restores_the_world_after_every_command(world: World, tmp_path: Path) -> None:
    """A whole life of a series, then all of it backwards, each step compared byte for byte."""
    mail = tmp_path / "one.patch"
    seen: list[str] = []

    def step(*args: str, code: int = 0) -> None:
        before, count = world.world(), operations(world)
        ran = world.run(*args)
        assert ran.code == code, f"{args}: {ran.out}{ran.err}"
        if operations(world) > count:
            seen.append(before)

    step("apply")
    host = world.checkout / HOST
    edit(host, "host 20\n", "host 20\nhook\n")
    mail.write_text(git(world.checkout, "diff"))
    mail.write_text(
        "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
        "From: A <a@example.org>\nDate: Tue, 14 Nov 2023 22:13:20 +0000\n"
        "Subject: [PATCH] hexagon : hook\n\n---\n\n" + mail.read_text() + "\n"
    )
    git(world.checkout, "checkout", "-q", ".")
    step("import", str(mail))
    edit(world.checkout / CASES, "case 60\n", "case sixty\n")
    git(world.checkout, "stash", "-q")  # `new` starts from a clean world, to compare with
    before = world.world()
    git(world.checkout, "stash", "pop", "-q")
    world.ok("new", "cases", "-m", "tests : sixty")
    seen.append(before)
    made = len(seen)
    (world.root / "series.yaml").write_text(
        (world.root / "series.yaml")
        .read_text()
        .replace("groups: []", "groups:\n  - name: hook\n    patches: [hexagon-hook]")
    )
    step("apply")
    step("export")
    step("rebase", "--onto", "v2")
    step("drop", "cases")
    step("refresh")
    assert len(seen) == 6
    for number, before in enumerate(reversed(seen)):
        world.ok("undo")
        if len(seen) - number == made:  # what `new` took is uncommitted again
            assert "case sixty" in world.git("diff")
            world.git("checkout", "-q", ".")
        assert world.world() == before, f"{number} from the end"


def test_undo_of_refresh_and_of_an_edit_by_hand(stacked: World) -> None:
    world = stacked.world()
    commit(stacked, "tests : a note", tests__note="x\n")
    stacked.ok("refresh")
    stacked.ok("undo")
    # the stack as it was before the refresh: with the person's commit, which is not in files
    assert stacked.status()["sync"].startswith("commits have changed")
    stacked.ok("apply", "--force")
    assert stacked.world() == world
    stacked.ok("undo")
    stacked.ok("refresh")
    assert "tests-a-note" in stacked.ok("series").out


def test_undo_of_a_rebase_with_a_conflict(stacked: World) -> None:
    edit(stacked.upstream / CASES, "case 20\n", "CASE TWENTY\n")
    git(stacked.upstream, "commit", "-qam", "tests : shout (#4)")
    world = stacked.world()
    for way in ("--skip", "--continue"):
        stacked.conflicts("rebase", "--onto", "master")
        if way == "--continue":
            text = (stacked.checkout / CASES).read_text()
            before, _, rest = text.partition("<<<<<<< upstream\n")
            after = rest.partition(">>>>>>> ")[2].partition("\n")[2]
            (stacked.checkout / CASES).write_text(before + "CASE TWENTY\ncase new\n" + after)
            stacked.git("add", CASES)
        stacked.ok("rebase", way)
        assert stacked.world() != world
        stacked.ok("undo")
        answers = stacked.root / "patches/resolutions"
        assert answers.exists() == (way == "--continue")  # answers are kept, all else goes back
        shutil.rmtree(answers, ignore_errors=True)
        assert stacked.world() == world
