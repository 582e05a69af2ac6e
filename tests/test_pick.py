"""A patch on another tree: as `git rebase` would have it, or a conflict."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from conftest import World
from fieldworld import Story, numbered, rows, state
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mergelab import Lab, changed_tree, some_tree, three_texts

from hexpatch.objects import FILE
from hexpatch.textmerge import merge_text

pytestmark = pytest.mark.slow  # the rest of the suite stays quick without it

# -- the laws -------------------------------------------------------------------------------

quick = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
    database=None,
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = Lab(tmp_path_factory.mktemp("lab"))
    yield made
    made.repo.close()


@quick
@given(st.integers(0, 1 << 40))
def test_a_file_is_merged_as_git_merges_it(lab: Lab, seed: int) -> None:
    base, upstream, mine = three_texts(random.Random(seed))
    commits = lab.three(*({b"f": (FILE, data)} for data in (base, upstream, mine)))
    want = lab.by_git(*commits[1:])
    picked, tree = lab.picked(*commits)
    assert (None if picked.conflicts else tree) == want


@quick
@given(st.integers(0, 1 << 40))
def test_a_tree_is_merged_as_git_merges_it(lab: Lab, seed: int) -> None:
    """But we also ask a person where two added files, or two files made of a link, differ."""
    rng = random.Random(seed)
    base = some_tree()
    commits = lab.three(base, changed_tree(rng, base), changed_tree(rng, base))
    want = lab.by_git(*commits[1:])
    picked, tree = lab.picked(*commits, "-C")
    if want is None:
        assert picked.conflicts
    elif picked.conflicts:
        assert {c.kind for c in picked.conflicts} <= {"add/add", "type", "location"}
    else:
        assert tree == want


def test_marks_name_the_sides(lab: Lab) -> None:
    text, count = merge_text(
        lab.repo, b"a\nb\nc\n", b"a\nB\nc\n", b"a\nbb\nc\n", ("upstream", "base", "my-patch")
    )
    assert count == 1
    assert text == (b"a\n<<<<<<< upstream\nB\n||||||| base\nb\n=======\nbb\n>>>>>>> my-patch\nc\n")


def test_merging_writes_nothing_into_the_store(lab: Lab) -> None:
    def objects() -> set[Path]:
        return set((lab.repo.git_dir / "objects").rglob("*"))

    before = objects()
    merge_text(lab.repo, b"1\n2\n3\n4\n", b"one\n2\n3\n4\n", b"1\n2\n3\nfour\n")
    assert objects() == before


# -- stories --------------------------------------------------------------------------------


def moves(story: Story) -> World:
    """The story's stack is moved to main and gives git's tree."""
    want = story.by_git()
    assert want is not None
    world = story.world()
    assert all(
        r["status"] not in ("conflict", "twice", "blocked")
        for r in rows(world, "check", "--onto", "main").values()
    )
    world.ok("rebase", "--onto", "main")
    assert world.git("rev-parse", "HEAD^{tree}") == want
    before = world.files()
    world.ok("refresh")
    assert world.files() == before
    return world


def stops(story: Story, kind: str, *words: str) -> World:
    """The story's first patch conflicts, as it does for git; nothing is lost on the way back."""
    assert story.by_git() is None
    world = story.world()
    row = next(iter(rows(world, "check", "--onto", "main").values()))
    assert row["status"] == "conflict"
    assert kind in str(row["detail"])
    for word in words:
        assert word in str(row["detail"])
    before = state(world)
    world.conflicts("rebase", "--onto", "main")
    world.ok("rebase", "--abort")
    assert state(world) == before
    assert world.git("status", "--porcelain", "--ignored") == ""
    return world


def test_upstream_renamed_the_file(tmp_path: Path) -> None:
    story = Story(tmp_path, {"src/old.c": numbered("x", 30)})
    story.upstream("move", move="src/old.c>src/new.c")
    story.patch("edit", {"src/old.c": numbered("x", 30, _20="twenty")})
    world = moves(story)
    assert "twenty" in (world.checkout / "src/new.c").read_text()
    assert not (world.checkout / "src/old.c").exists()
    text = next((world.root / "patches").glob("*.patch")).read_text()
    assert "src/new.c" in text
    assert "src/old.c" not in text


def test_upstream_renamed_and_edited_the_file(tmp_path: Path) -> None:
    story = Story(tmp_path, {"src/old.c": numbered("x", 30)})
    story.upstream("edit", {"src/old.c": "head\n" + numbered("x", 30, _5="five")})
    story.upstream("move", move="src/old.c>lib/new.c")
    story.patch("edit", {"src/old.c": numbered("x", 30, _20="twenty")})
    story.patch("again", {"src/old.c": numbered("x", 30, _20="twenty", _28="twenty-eight")})
    moves(story)


def test_upstream_renamed_the_file_and_changed_the_same_line(tmp_path: Path) -> None:
    story = Story(tmp_path, {"src/old.c": numbered("x", 30)})
    story.upstream("move", {"src/old.c": numbered("x", 30, _20="zwanzig")})
    story.upstream("move", move="src/old.c>src/new.c")
    story.patch("edit", {"src/old.c": numbered("x", 30, _20="twenty")})
    stops(story, "content", "src/new.c")


def test_upstream_moved_a_directory(tmp_path: Path) -> None:
    base = {f"old/{n}.c": numbered(n, 20) for n in "abc"}
    story = Story(tmp_path, dict(base))
    story.upstream("move", move="old>new")
    story.patch("edit", {"old/b.c": numbered("b", 20, _10="ten")})
    moves(story)


def test_a_new_file_in_a_directory_that_upstream_moved(tmp_path: Path) -> None:
    base = {f"old/{n}.c": numbered(n, 20) for n in "abc"}
    story = Story(tmp_path, dict(base))
    story.upstream("move", move="old>new")
    story.patch("add", {"old/d.c": "d\n"})
    world = stops(story, "location", "new/d.c", "upstream moved old/ to new/")
    world.conflicts("rebase", "--onto", "main")
    assert (world.checkout / "new/d.c").read_text() == "d\n"
    world.git("add", "new/d.c")
    world.ok("rebase", "--continue")
    assert world.git("show", "--format=", "--name-only", "HEAD") == "new/d.c"


@pytest.mark.parametrize("homes", ["new/x.c new/y.c", "x.c y.c", "new/s/x.c new/s/y.c"])
def test_a_new_file_in_a_directory_whose_files_upstream_renamed(tmp_path: Path, homes: str) -> None:
    story = Story(tmp_path, {f"old/s/{n}.c": numbered(n, 20) for n in "ab"})
    one, two = homes.split()
    story.upstream("move", move=f"old/s/a.c>{one}")
    story.upstream("move", move=f"old/s/b.c>{two}")
    story.patch("add", {"old/s/d.c": "d\n"})
    home = one.removesuffix("x.c")
    world = stops(story, "location", f"{home}d.c", f"moved old/s/ to {home or 'the top folder'}")
    world.conflicts("rebase", "--onto", "main")
    assert (world.checkout / f"{home}d.c").read_text() == "d\n"


def test_a_new_file_in_a_directory_that_upstream_split(tmp_path: Path) -> None:
    story = Story(tmp_path, {f"old/{n}.c": numbered(n, 20) for n in "ab"})
    story.upstream("move", move="old/a.c>one/a.c")
    story.upstream("move", move="old/b.c>two/b.c")
    story.patch("add", {"old/d.c": "d\n"})
    world = stops(story, "location", "old/d.c", "upstream moved old/ to one/ and two/")
    world.conflicts("rebase", "--onto", "main")
    assert (world.checkout / "old/d.c").read_text() == "d\n"
    world.git("add", "old/d.c")
    world.ok("rebase", "--continue")


def test_both_rename_the_file(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a.c": numbered("x", 30)})
    story.upstream("move", move="a.c>theirs.c")
    story.patch("move", move="a.c>mine.c")
    stops(story, "rename/rename", "theirs.c", "mine.c")


def test_both_rename_the_file_to_the_same_name(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a.c": numbered("x", 30)})
    story.upstream("move", move="a.c>b.c")
    story.patch("move", {"a.c": numbered("x", 30, _3="three")})
    story.patch("move", move="a.c>b.c")
    moves(story)


def test_upstream_has_the_file_where_the_patch_moves_it(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a.c": numbered("x", 30), "keep": "k\n"})
    story.upstream("copy", {"b.c": numbered("x", 30)})
    story.patch("move", move="a.c>b.c")
    world = moves(story)
    assert not (world.checkout / "a.c").exists()
    assert len(world.status()["patches"]) == 1


def test_a_pure_rename_of_a_file_that_upstream_edited_is_not_lost(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a.c": numbered("x", 30), "keep": "k\n"})
    story.upstream("edit", {"a.c": numbered("x", 30, _3="three")})
    story.patch("move", move="a.c>b.c")
    world = moves(story)
    assert (world.checkout / "b.c").read_text() == numbered("x", 30, _3="three")
    assert len(world.status()["patches"]) == 1


@pytest.mark.parametrize("upstream", ["edit", "link", "nothing"])
def test_a_file_becomes_a_link(tmp_path: Path, upstream: str) -> None:
    story = Story(tmp_path, {"a.c": numbered("x", 9), "b": "b\n"})
    story.patch("link", link="a.c>b")
    if upstream == "nothing":
        story.upstream("other", {"b": "bb\n"})
        moves(story)
    elif upstream == "link":
        story.upstream("link too", link="a.c>elsewhere")
        stops(story, "type", "a.c")
    else:
        story.upstream("edit", {"a.c": numbered("x", 9, _3="three")})
        stops(story, "type", "a.c")


def test_a_link_becomes_a_file_and_back(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a.c": "a\n", "l": "x"}, link="l>a.c")
    story.upstream("other", {"a.c": "aa\n"})
    story.patch("file", {"l": "now a file\n"})
    story.patch("link", link="l>a.c")
    moves(story)


def test_mode_and_content_go_together(tmp_path: Path) -> None:
    story = Story(tmp_path, {"run.sh": numbered("x", 20)})
    story.upstream("executable", {"run.sh": numbered("x", 20, _2="two")}, executable="run.sh")
    story.patch("edit", {"run.sh": numbered("x", 20, _18="eighteen")})
    world = moves(story)
    assert world.git("ls-files", "-s", "run.sh").startswith("100755")


def test_a_file_gives_way_to_a_directory(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a": "a\n", "b": "b\n"})
    story.upstream("other", {"b": "bb\n"})
    story.patch("directory", {"a": None})
    story.patch("directory", {"a/one": "1\n", "a/two": "2\n"})
    moves(story)


def test_neighbouring_lines_are_a_conflict(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a": numbered("x", 20)})
    story.upstream("ten", {"a": numbered("x", 20, _10="ten")})
    story.patch("eleven", {"a": numbered("x", 20, _11="eleven")})
    stops(story, "content")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["with", "without"])
def test_both_ends_of_a_file(tmp_path: Path, newline: str, end: str) -> None:
    def text(**instead: str) -> bytes:
        data = numbered("x", 20, **instead).replace("\n", newline)
        return (data if end == "with" else data.removesuffix(newline)).encode()

    story = Story(tmp_path, {"a": text(), "keep": "k\n"})
    story.upstream("middle", {"a": text(_10="ten")})
    story.patch("first", {"a": b"new first" + newline.encode() + text()})
    story.patch("last", {"a": b"new first" + newline.encode() + text(_20="last")})
    moves(story)


def test_a_patch_that_empties_and_one_that_fills(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a": numbered("x", 5), "e": "", "b": "b\n"})
    story.upstream("other", {"b": "bb\n"})
    story.patch("empty it", {"a": ""})
    story.patch("fill the other", {"e": "full\n"})
    story.patch("delete", {"a": None})
    moves(story)


def test_upstream_changed_a_file_that_the_patch_deletes(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a": numbered("x", 5), "b": "b\n"})
    story.upstream("edit", {"a": numbered("x", 5, _2="two")})
    story.patch("delete", {"a": None})
    stops(story, "the patch deletes the file, upstream changed it")


def test_a_binary_file_changed_on_both_sides(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a": b"\0one"})
    story.upstream("edit", {"a": b"\0two"})
    story.patch("edit", {"a": b"\0three"})
    stops(story, "binary")


def test_far_away(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a": numbered("x", 200)})
    story.upstream("much above", {"a": numbered("y", 3000) + numbered("x", 200)})
    story.patch("edit", {"a": numbered("x", 200, _150="there")})
    world = moves(story)
    assert rows(world, "check")[world.status()["patches"][0]["name"]]["status"] == "offset"


def test_hundreds_of_hunks(tmp_path: Path) -> None:
    every = {f"_{n}": f"changed {n}" for n in range(5, 4000, 10)}
    story = Story(tmp_path, {"a": numbered("x", 4000)})
    story.upstream("between", {"a": "top\n" + numbered("x", 4000, _1000="thousand")})
    story.patch("many", {"a": numbered("x", 4000, **every)})
    moves(story)


# -- what hangs on what ---------------------------------------------------------------------


def test_blocked_chain(tmp_path: Path) -> None:
    lines = numbered("x", 40)
    story = Story(tmp_path, {"a": lines, "d": numbered("d", 20), "c": "c\n"})
    story.upstream("ten", {"a": numbered("x", 40, _10="zehn")})
    story.patch("a : ten", {"a": numbered("x", 40, _10="ten")})
    story.patch("b : on a's line", {"a": numbered("x", 40, _10="ten and more")})
    story.patch("c : elsewhere", {"c": "cc\n"})
    story.patch("d : alone", {"d": numbered("d", 20, _5="five")})
    world = story.world()
    names = [p["name"] for p in world.status()["patches"]]
    series = world.root / "series.yaml"
    entry = f"  - name: {names[2]}\n"
    assert entry in series.read_text()
    series.write_text(series.read_text().replace(entry, f"{entry}    needs: [{names[1]}]\n"))
    world.ok("apply")
    said = rows(world, "check", "--onto", "main")
    assert [said[n]["status"] for n in names] == ["conflict", "blocked", "blocked", "ok"]
    assert said[names[1]]["blocked_by"] == names[0]
    assert said[names[2]]["blocked_by"] == names[1]
    world.fails("rebase", "--onto", "main", "--keep-going")
    assert [p["state"] for p in world.status()["patches"]][:3] == ["hold"] * 3
    assert world.git("log", "-1", "--format=%s") == "d : alone"
    assert (world.checkout / "a").read_text() == numbered("x", 40, _10="zehn")


def test_two_sections_for_one_file_are_refused(world: World, tmp_path: Path) -> None:
    part = (
        "diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n"
        "@@ -1 +1,2 @@\n # tiny llama.cpp\n+{}\n"
    )
    mail = tmp_path / "double.patch"
    mail.write_text(
        "From: A <a@b>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\nSubject: [PATCH] x\n\n---\n"
        + part.format("one")
        + part.format("two")
    )
    world.fails("import", str(mail), says="two sections for this file")
