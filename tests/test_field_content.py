"""Field cases about what is in a patch: line ends, bytes, titles, binary data, shapes of files."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import World, git, hexpatch
from fieldworld import inputs, listed, messages, patches, rows, started, state, trees


def hunks(data: bytes) -> list[bytes]:
    """The lines of a patch's diff, without the mail's signature and the ids' lengths."""
    lines = data[data.index(b"diff --git ") :].rsplit(b"-- \n", 1)[0].split(b"\n")
    return [line for line in lines if not line.startswith(b"index ")]


def counts(world: World) -> dict[str, dict[str, tuple[int, int]]]:
    listing = world.ok("series", "--json").json["patches"]
    return {p["name"]: {f["path"]: (f["added"], f["removed"]) for f in p["files"]} for p in listing}


@pytest.fixture(params=["import", "by hand"])
def filled(request: pytest.FixtureRequest, field: Any, tmp_path: Path) -> Any:
    """filled(case): the case's patches in a series, imported or put there by hand, applied."""

    def build(case: str) -> World:
        world = started(tmp_path / "work", field(case)[0])
        if request.param == "import":
            world.ok("import", *map(str, patches(case)))
        else:
            listed(world, patches(case))
            world.ok("apply")
        return world

    return build


# -- 01 -------------------------------------------------------------------------------------


def test_line_ends_survive(filled: Any) -> None:
    world = filled("01")
    assert trees(world) == [
        "e3e31443de0480dcfa83cd5943b147d77dc15d87",
        "cc3deb4762915309fd4e90584cc335ebd2142a70",
    ]
    assert (world.checkout / "VERSION").read_bytes() == b"b101\n"
    first, second = counts(world).values()
    assert first == {"VERSION": (1, 1), "docs/win.txt": (2, 1), "src/mixed.c": (3, 2)}
    assert second == {"VERSION": (1, 1), "docs/unix.txt": (3, 3), "src/mixed.c": (1, 1)}


def test_files_put_there_by_hand_keep_their_bytes(field: Any, tmp_path: Path) -> None:
    for case in ("01", "02", "06", "07"):
        world = started(tmp_path / f"work{case}", field(case, f"up{case}")[0])
        names = listed(world, patches(case))
        world.ok("apply")
        before = world.files()
        world.ok("refresh")
        assert world.files() == before
        for name, file in zip(names, patches(case), strict=True):
            assert before[f"patches/{name}.patch"] == file.read_bytes()


def test_imported_hunks_are_the_hunks_of_the_file(field: Any, tmp_path: Path) -> None:
    world = started(tmp_path / "work", field("01")[0])
    world.ok("import", *map(str, patches("01")))
    mine = [world.root / "patches" / f"{n}.patch" for n in counts(world)]
    for file, want in zip(mine, patches("01"), strict=True):
        assert hunks(file.read_bytes()) == hunks(want.read_bytes())


# -- 02 -------------------------------------------------------------------------------------


def test_bytes_that_are_not_utf8(filled: Any) -> None:
    world = filled("02")
    assert trees(world)[-1] == "e0b157aa009a25cee28aa27b9e28f89d154d88b7"
    data = (world.checkout / "src/names.c").read_bytes()
    assert bytes(b for b in data if b > 0x7F) == b"\xe9\xef\xfc\xe4"
    authors = world.git("log", "--reverse", "--format=%an", "refs/hexpatch/base..").splitlines()
    assert authors == ["Dev One", "Dév Ün", "Dév Ün"]
    assert messages(world) == [
        "names: widen the table comment",
        "names: note the ä row",
        "names: café tail – last row",
    ]
    assert world.git("log", "-1", "--format=%b", "HEAD~1") == "The ä row was missing."
    listing = world.ok("series", "--json").json["patches"]
    assert [p["title"] for p in listing] == messages(world)
    world.ok("changelog")
    world.ok("check")


def test_names_are_shown_in_the_c_locale(field: Any, tmp_path: Path) -> None:
    import os
    import sys

    world = started(tmp_path / "work", field("02")[0])
    world.ok("import", *map(str, patches("02")))
    for command in (["series"], ["status"], ["check"], ["changelog"], ["log"]):
        done = subprocess.run(
            [sys.executable, "-m", "hexpatch", *command],
            cwd=world.root,
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr
        if command == ["series"]:
            assert "names: note the ä row".encode() in done.stdout


def test_refreshed_files_apply_in_plain_git(filled: Any, tmp_path: Path) -> None:
    world = filled("02")
    names = [p["name"] for p in world.status()["patches"]]
    files = [str(world.root / "patches" / f"{n}.patch") for n in names]
    git(world.upstream, "checkout", "-q", "-B", "w", "base")
    git(world.upstream, "am", "-q", *files)
    assert git(world.upstream, "rev-parse", "HEAD^{tree}") == trees(world)[-1]


# -- 03 -------------------------------------------------------------------------------------


def test_titles(filled: Any) -> None:
    world = filled("03")
    want = (inputs("03") / "subjects.txt").read_text("utf-8").splitlines()
    assert messages(world) == want
    assert trees(world)[-1] == (inputs("03") / "tree.txt").read_text().strip()
    listing = world.ok("series", "--json").json["patches"]
    assert [p["title"] for p in listing] == want
    for title in want:
        assert title in world.ok("series").out.splitlines()[want.index(title)]


def test_names_made_of_titles_are_short_unique_and_plain(field: Any, tmp_path: Path) -> None:
    world = started(tmp_path / "work", field("03")[0])
    world.ok("import", *map(str, patches("03")))
    names = [p["name"] for p in world.status()["patches"]]
    assert len(set(names)) == 5
    for name in names:
        assert len(name) <= 63
        assert name.strip(".-") == name
        assert "/" not in name
        assert not name.endswith(".lock")
        git(world.upstream, "check-ref-format", "--branch", name)


def test_a_title_of_two_lines_keeps_both(field: Any, tmp_path: Path) -> None:
    world = started(tmp_path / "work", field("03")[0])
    ran = world.ok("import", "twoline")
    assert "two lines" in ran.err
    want = git(world.upstream, "log", "-1", "--format=%B", "twoline")
    assert world.git("log", "-1", "--format=%B") == want
    world.ok("apply", "--force")
    assert world.git("log", "-1", "--format=%B") == want


# -- 06 -------------------------------------------------------------------------------------

BINARY = ("06b9bc36d23a", "8c56d1549a70", "91f3ff812c46")


def test_binary_data(filled: Any) -> None:
    world = filled("06")
    assert tuple(t[:12] for t in trees(world)) == BINARY
    assert not (world.checkout / "tests/data/rope.bin").exists()
    assert (world.checkout / "tests/data/list.txt").read_text() == "tables: 1\n"
    shown = [p["shapes"] for p in world.ok("series", "--json").json["patches"]]
    assert shown == [
        ["tests/data/rope.bin: add (binary, 256 bytes)"],
        ["tests/data/table.bin: modify (binary)"],
        ["tests/data/rope.bin: delete (binary)"],
    ]
    made = [world.root / "patches" / f"{p['name']}.patch" for p in world.status()["patches"]]
    for file, want in zip(made, patches("06"), strict=True):
        assert hunks(file.read_bytes()) == hunks(want.read_bytes())


def test_a_binary_patch_without_its_data(field: Any, tmp_path: Path) -> None:
    upstream, case = field("06")
    world = started(tmp_path / "work", upstream)
    before = state(world)
    broken = case / "broken" / "0001-no-payload.patch"
    ran = world.fails("import", str(broken), says="tests/data/rope.bin")
    assert "binary data is not in the patch" in ran.err
    assert state(world) == before
    listed(world, [broken], ["no-payload"])
    ran = world.fails("apply", says="tests/data/rope.bin")
    assert "no-payload" in ran.err
    row = rows(world, "check")["no-payload"]
    assert row["status"] == "conflict"
    assert "binary data is not in the patch" in str(row["detail"])
    assert not world.checkout.exists()


def test_a_binary_patch_with_short_ids(field: Any, tmp_path: Path) -> None:
    upstream, case = field("06")
    world = started(tmp_path / "work", upstream)
    world.ok("import", str(patches("06")[0]))
    before = state(world)
    broken = case / "broken" / "0002-short-index.patch"
    world.fails("import", str(broken), says="tests/data/table.bin")
    assert state(world) == before
    listed(world, [patches("06")[0], broken], ["one", "short"])
    ran = world.fails("apply", "--force", says="tests/data/table.bin")
    assert "short" in ran.err
    assert world.git("status", "--porcelain") == ""


# -- 07 -------------------------------------------------------------------------------------


def test_shapes(filled: Any) -> None:
    world = filled("07")
    assert trees(world)[-1] == "e4b58cb827b5dd77943fadf88e938ad835b6cee9"
    assert len(trees(world)) == 8
    want = (inputs("07") / "ls-files.txt").read_text().strip()
    assert world.git("-c", "core.quotePath=false", "ls-files", "-s") == want
    listing = world.ok("series", "--json").json["patches"]
    shapes = [p["shapes"] for p in listing]
    assert shapes[2] == ["scripts/run.sh: mode 100755"]
    assert shapes[5] == ["docs/older notes.txt: rename of docs/old notes.txt"]
    assert [f["path"] for f in listing[5]["files"]] == ["docs/older notes.txt"]
    assert {f["path"] for f in listing[4]["files"]} == {"docs/latest", "src/htp/alias.c"}
    assert [len(p["files"]) for p in listing][7] == 2
    assert all(p["files"] for p in listing)


def test_shapes_do_not_depend_on_file_modes_of_the_user(
    field: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "gitconfig"
    config.write_text(
        "[core]\n\tfileMode = false\n\tautocrlf = true\n[apply]\n\twhitespace = fix\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    world = started(tmp_path / "work", field("07")[0])
    world.ok("import", *map(str, patches("07")))
    assert trees(world)[-1] == "e4b58cb827b5dd77943fadf88e938ad835b6cee9"
    world = started(tmp_path / "eol", field("01", "eol-up")[0])
    world.ok("import", *map(str, patches("01")))
    assert trees(world)[-1] == "cc3deb4762915309fd4e90584cc335ebd2142a70"


def test_shapes_in_plain_git(filled: Any) -> None:
    world = filled("07")
    files = [world.root / "patches" / f"{p['name']}.patch" for p in world.status()["patches"]]
    git(world.upstream, "checkout", "-q", "-B", "w", "base")
    git(world.upstream, "am", "-q", *map(str, files))
    assert git(world.upstream, "rev-parse", "HEAD^{tree}") == trees(world)[-1]


def test_the_two_ways_in_give_the_same_stack(field: Any, tmp_path: Path) -> None:
    for case in ("01", "02", "03", "06", "07"):
        upstream = field(case, f"up{case}")[0]
        one = started(tmp_path / f"one{case}", upstream)
        one.ok("import", *map(str, patches(case)))
        two = started(tmp_path / f"two{case}", upstream)
        listed(two, patches(case))
        assert hexpatch(two.root, "apply").code == 0
        assert one.git("rev-parse", "HEAD") == two.git("rev-parse", "HEAD")
