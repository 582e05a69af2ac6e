"""Moving the series: what is written, what is said, what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import CASES, HOST, World, commit, edit, git


def upstream_commit(world: World, message: str, **edits: tuple[str, str, str]) -> str:
    """Another commit on upstream's master: (path, old, new) under any keyword."""
    for path, old, new in edits.values():
        edit(world.upstream / path, old, new)
    git(world.upstream, "commit", "-qam", message)
    return git(world.upstream, "rev-parse", "HEAD")


def rows(world: World, *args: str) -> dict[str, Any]:
    ran = world.ok("rebase", "--json", *args).json
    return {p["name"]: p for p in ran["patches"]}


def test_only_the_base_changes(stacked: World) -> None:
    before = stacked.files()
    fates = rows(stacked, "--onto", "v2")
    assert {p["fate"] for p in fates.values()} == {"unchanged"}
    after = stacked.files()
    assert {n for n in after if after[n] != before[n]} == {"series.yaml", "series.lock"}
    old = before["series.yaml"].decode().splitlines()
    new = after["series.yaml"].decode().splitlines()
    assert len(old) == len(new)
    assert [b.split(":")[0] for a, b in zip(old, new, strict=True) if a != b] == [
        "  name",
        "  commit",
        "  tree",
    ]
    assert stacked.git("rev-parse", "HEAD~3") == git(stacked.upstream, "rev-parse", "v2")
    assert "new head" in (stacked.checkout / HOST).read_text()


def test_fates(stacked: World) -> None:
    """Context that moved, lines that changed, and what is as it was."""
    upstream_commit(stacked, "hexagon : near (#3)", a=(HOST, "host 8\n", "host eight\n"))
    fates = rows(stacked, "--onto", "master")
    assert fates["hexagon-hook-a"]["fate"] == "context moved"
    assert fates["tests-add-a-case"]["fate"] == "unchanged"
    said = stacked.ok("undo"), stacked.ok("rebase", "--onto", "master").out
    assert "hexagon-hook-a        context moved" in said[1]


def test_a_file_that_upstream_moved(stacked: World) -> None:
    git(stacked.upstream, "mv", CASES, "tests/backend-ops.cpp")
    git(stacked.upstream, "commit", "-qm", "tests : rename (#3)")
    before = stacked.world()
    stacked.ok("rebase", "--onto", "master")
    assert "case new" in (stacked.checkout / "tests/backend-ops.cpp").read_text()
    patch = (stacked.root / "patches/tests-add-a-case.patch").read_text()
    assert "diff --git a/tests/backend-ops.cpp b/tests/backend-ops.cpp" in patch
    stacked.ok("undo")
    assert stacked.world() == before


def test_landed_is_marked_and_told(stacked: World) -> None:
    landed = upstream_commit(
        stacked, "hexagon : hook a (#3)", a=(HOST, "host 10\n", "host 10\nhook a\n")
    )
    row = rows(stacked, "--onto", "master")["hexagon-hook-a"]
    assert (row["status"], row["fate"]) == ("landed", "landed")
    assert landed[:10] in row["detail"][0]
    assert "    landed: " in (stacked.root / "series.yaml").read_text()
    assert (stacked.root / "patches/hexagon-hook-a.patch").exists()
    assert stacked.status()["sync"] == "in sync"


def test_an_unknown_revision(stacked: World) -> None:
    before = stacked.world()
    ran = stacked.fails("rebase", "--onto", "v99", says="v99")
    assert "hint:" in ran.err
    stacked.fails("rebase", "--onto", "v99", "--dry-run", says="v99")
    assert stacked.world() == before


def test_dry_run_writes_nothing(stacked: World) -> None:
    before, log = stacked.world(), stacked.ok("log").out
    store = stacked.root / ".hexpatch/upstream.git"
    objects = git(store, "count-objects", "-v")
    stacked.ok("rebase", "--onto", "v2", "--dry-run")
    assert (stacked.world(), stacked.ok("log").out) == (before, log)
    assert git(store, "count-objects", "-v") == objects


def test_dry_run_predicts_a_clean_rebase(stacked: World) -> None:
    upstream_commit(stacked, "hexagon : hook a (#3)", a=(HOST, "host 10\n", "host 10\nhook a\n"))
    dry = rows(stacked, "--onto", "master", "--dry-run")
    real = rows(stacked, "--onto", "master")
    keys = ("status", "detail")
    assert {n: [p[k] for k in keys] for n, p in dry.items()} == {
        n: [p[k] for k in keys] for n, p in real.items()
    }


def test_wrong_usage(stacked: World) -> None:
    stacked.usage_error("rebase", says="either --onto REV")
    stacked.usage_error("rebase", "--onto", "v2", "--continue", says="either --onto REV")
    stacked.usage_error("rebase", "--abort", "--dry-run", says="--dry-run goes with --onto")


def test_commits_that_are_not_in_files(stacked: World) -> None:
    commit(stacked, "docs : a page", docs="x\n")
    ran = stacked.fails("rebase", "--onto", "v2", says="not in patches/ yet")
    assert "`hexpatch refresh`" in ran.err


def test_uncommitted_changes(stacked: World) -> None:
    edit(stacked.checkout / CASES, "case 5\n", "case five\n")
    stacked.fails("rebase", "--onto", "v2", says=f"uncommitted changes: {CASES}")


def test_files_edited_but_not_applied_are_what_is_moved(stacked: World) -> None:
    edit(stacked.root / "src/htp/kernel.c", "return 1", "return 2")
    stacked.ok("rebase", "--onto", "v2")
    kernel = stacked.checkout / "ggml/src/ggml-hexagon/htp/kernel.c"
    assert "return 2" in kernel.read_text()
    assert stacked.status()["sync"] == "in sync"
    stacked.ok("undo")
    assert "return 2" in (stacked.root / "src/htp/kernel.c").read_text()


def test_before_the_first_apply(stacked: World, tmp_path: Any) -> None:
    for name, data in stacked.files().items():
        target = tmp_path / "fresh" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    fresh = World(tmp_path / "fresh", stacked.upstream)
    fresh.ok("rebase", "--onto", "v2")
    stacked.ok("rebase", "--onto", "v2")
    assert fresh.world() == stacked.world()


def test_an_untracked_file_in_the_way(stacked: World) -> None:
    (stacked.upstream / "NEWS").write_text("news\n")
    git(stacked.upstream, "add", "-A")
    git(stacked.upstream, "commit", "-qm", "news (#3)")
    (stacked.checkout / "NEWS").write_text("mine\n")
    before = stacked.world()
    stacked.fails("rebase", "--onto", "master", says="untracked files are in the way: NEWS")
    assert stacked.world() == before
    (stacked.checkout / "NEWS").rename(stacked.checkout / "OLDS")
    stacked.ok("rebase", "--onto", "master")
    assert (stacked.checkout / "OLDS").read_text() == "mine\n"


def test_an_untracked_folder_where_a_file_comes(stacked: World) -> None:
    (stacked.upstream / "NEWS").write_text("news\n")
    (stacked.upstream / "deep").mkdir()
    (stacked.upstream / "deep/file").write_text("x\n")
    git(stacked.upstream, "add", "-A")
    git(stacked.upstream, "commit", "-qm", "news (#3)")
    (stacked.checkout / "NEWS").mkdir()
    (stacked.checkout / "NEWS/mine").write_text("mine\n")
    (stacked.checkout / "deep").write_text("mine\n")
    before = stacked.world()
    stacked.fails("rebase", "--onto", "master", says="in the way: NEWS/mine, deep")
    assert stacked.world() == before


def test_an_empty_series_moves_too(world: World) -> None:
    world.ok("apply")
    before = world.world()
    world.ok("rebase", "--onto", "v2")
    assert world.status()["base"]["name"] == "v2"
    assert "new head" in (world.checkout / HOST).read_text()
    world.ok("rebase", "--onto", "v1")
    assert world.world() == before


@pytest.mark.parametrize("name", ["series.yaml", "series.lock"])
def test_a_file_of_the_series_that_is_a_link(stacked: World, tmp_path: Path, name: str) -> None:
    """A link is not written through, for it may lead anywhere, and not replaced unasked."""
    link, real = stacked.root / name, tmp_path / "a conf"
    link.rename(real)
    link.symlink_to(real)
    before = stacked.files()
    ran = stacked.fails("rebase", "--onto", "v2", says=f"{link} is a symbolic link")
    assert link.is_symlink()
    assert stacked.files() == before
    assert stacked.git("rev-parse", "HEAD~3") == git(stacked.upstream, "rev-parse", "v1")
    typed = ran.err.split("hint: `")[1].split("`")[0]
    subprocess.run(typed, shell=True, check=True)
    stacked.ok("rebase", "--onto", "v2")
    assert not link.is_symlink()
    assert real.read_bytes() == before[name]


def test_the_log_names_what_was_typed(stacked: World) -> None:
    stacked.ok("rebase", "--onto", "v2")
    assert stacked.ok("log", "--json").json[0]["command"] == "hexpatch rebase --onto v2"


def test_from_another_branch_of_the_checkout(stacked: World) -> None:
    stacked.git("switch", "-q", "-c", "topic")
    stacked.ok("rebase", "--onto", "v2")
    assert stacked.git("symbolic-ref", "HEAD") == "refs/heads/stack"
    assert stacked.git("log", "-1", "--format=%s", "topic") == "tests : add a case"


def test_what_a_person_put_on_hold_stays_there(stacked: World) -> None:
    name = "  - name: tests-add-a-case\n"
    edit(stacked.root / "series.yaml", name, f"{name}    state: hold\n")
    stacked.ok("apply")
    before = stacked.world()
    for base in ("v1", "v2"):
        assert rows(stacked, "--onto", base)["tests-add-a-case"]["status"] == "hold"
        assert "    state: hold\n" in (stacked.root / "series.yaml").read_text()
    stacked.ok("rebase", "--onto", "v1")
    assert stacked.world() == before


def test_commits_are_looked_at_before_anything_is_fetched(
    stacked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hexpatch.sources import Upstream

    def fetched(*_: object) -> None:
        raise AssertionError("asked for the target")

    commit(stacked, "tests : a note", tests__note="x\n")
    monkeypatch.setattr(Upstream, "resolve", fetched)
    for command in ("rebase", "apply"):
        stacked.fails(command, "--onto", "v2", says="not in patches/ yet")
