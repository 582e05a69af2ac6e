"""Where hunks go: the very place, the only other one, or nowhere. Never a look-alike's."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from conftest import World, git
from fieldworld import Story, listed, numbered, rows, started, state
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mergelab import Lab, changed_tree, some_tree, three_texts

from hexpatch.objects import FILE
from hexpatch.pick import Laid

pytestmark = pytest.mark.slow  # the rest of the suite stays quick without it

OPTIONS = (
    ["-M"],
    ["-C"],
    ["-C", "--find-copies-harder"],
    ["-B", "-M"],
    ["-M10%"],
    ["--no-renames"],
    ["--patience"],
    ["--inter-hunk-context=3"],
    ["--function-context"],
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = Lab(tmp_path_factory.mktemp("lab"))
    yield made
    made.repo.close()


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
    database=None,
)
@given(st.integers(0, 1 << 40), st.sampled_from(OPTIONS), st.sampled_from([0, 0, 1, 2, 3, 5, 20]))
def test_every_diff_of_git_can_be_placed(
    lab: Lab, seed: int, options: list[str], context: int
) -> None:
    rng = random.Random(seed)
    if rng.random() < 0.5:
        one = some_tree()
        two = changed_tree(rng, one)
    else:
        first, second, _ = three_texts(rng)
        one, two = {b"f": (FILE, first)}, {b"f": (FILE, second)}
    base = lab.commit(one)
    mine = lab.commit(two, base)
    lab.store.flush()
    diff = lab.diff(base, mine, f"-U{context}", *options)
    if diff:
        result, tree = lab.laid(base, diff)
        assert isinstance(result, Laid), result
        assert tree == lab.repo.tree_of(mine)


# -- look-alike blocks ----------------------------------------------------------------------


def block(name: str = "f", body: str = "    step();\n") -> str:
    return f"void {name}() {{\n    begin();\n{body}    end();\n}}\n\n"


SAME = block("f", "    step();\n    step();\n    step();\n")
MARKED = SAME.replace("    step();\n" * 3, "    step();\n    mine();\n    step();\n    step();\n")


def three_alike(tmp_path: Path) -> Story:
    """A patch for the second of three identical blocks."""
    story = Story(tmp_path, {"a.c": "// top\n" + SAME * 3 + "// end\n"})
    story.patch("mine in the second", {"a.c": "// top\n" + SAME + MARKED + SAME + "// end\n"})
    return story


UPSTREAMS = {
    "lines above": "// one\n// two\n// three\n// top\n" + SAME * 3 + "// end\n",
    "a block above": "// top\n" + SAME * 4 + "// end\n",
    "another block between": "// top\n" + SAME + block("g") + SAME * 2 + "// end\n",
    "second deleted": "// top\n" + SAME * 2 + "// end\n",
    "all deleted": "// top\n// end\n",
    "first changed": "// top\n" + SAME.replace("begin", "start") + SAME * 2 + "// end\n",
    "second changed": "// top\n" + SAME + SAME.replace("begin", "start") + SAME + "// end\n",
    "third changed": "// top\n" + SAME * 2 + SAME.replace("begin", "start") + "// end\n",
    "lines of a block above": "void f() {\n    begin();\n// top\n" + SAME * 3 + "// end\n",
}


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_look_alikes_moved_by_rebase(tmp_path: Path, upstream: str) -> None:
    story = three_alike(tmp_path)
    story.upstream(upstream, {"a.c": UPSTREAMS[upstream]})
    want = story.by_git()
    world = story.world()
    row = next(iter(rows(world, "check", "--onto", "main").values()))
    ran = world.run("rebase", "--onto", "main")
    if want is None:
        assert row["status"] == "conflict"
        assert ran.code == 3
    else:
        assert ran.code == 0, ran.err
        assert row["status"] in ("ok", "offset", "three-way")
        assert world.git("rev-parse", "HEAD^{tree}") == want


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_look_alikes_on_a_base_moved_by_hand(tmp_path: Path, upstream: str) -> None:
    """Strict placement on a base the patch was not made for is right or refused."""
    story = three_alike(tmp_path)
    story.upstream(upstream, {"a.c": UPSTREAMS[upstream]})
    want = story.by_git()
    folder = tmp_path / "mails"
    git(story.up, "format-patch", "-q", "-o", str(folder), "base..stack")
    world = started(tmp_path / "hand", story.up, "main")
    listed(world, sorted(folder.iterdir()))
    before = state(world)
    ran = world.run("apply")
    if ran.code == 0:
        assert world.git("rev-parse", "HEAD^{tree}") == want
    else:
        assert ran.code == 1
        assert "p1 does not apply" in ran.err
        assert state(world) == before
    imported = started(tmp_path / "import", story.up, "main")
    ran = imported.run("import", *map(str, sorted(folder.iterdir())))
    if ran.code == 0:  # three-way from the blob that the index line names
        assert imported.git("rev-parse", "HEAD^{tree}") == want
    else:
        assert want is None


def test_look_alikes_on_the_pinned_base(tmp_path: Path) -> None:
    world = three_alike(tmp_path).world()
    assert (world.checkout / "a.c").read_text() == "// top\n" + SAME + MARKED + SAME + "// end\n"
    world.ok("apply", "--force")
    assert (world.checkout / "a.c").read_text() == "// top\n" + SAME + MARKED + SAME + "// end\n"


# -- odd hunks ------------------------------------------------------------------------------


def mails(story: Story, folder: Path, *options: str) -> list[Path]:
    git(story.up, "format-patch", "-q", *options, "-o", str(folder), "base..stack")
    return sorted(folder.iterdir())


@pytest.mark.parametrize("context", ["0", "1", "2", "8", "100"])
def test_patches_with_other_context(tmp_path: Path, context: str) -> None:
    story = Story(tmp_path, {"a": numbered("x", 60)})
    story.patch("one", {"a": "first\n" + numbered("x", 60, _30="thirty\nmore")})
    story.patch("two", {"a": "first\n" + numbered("x", 59, _30="thirty\nmore")})
    world = started(tmp_path / "work", story.up)
    listed(world, mails(story, tmp_path / "mails", f"-U{context}"))
    world.ok("apply")
    want = git(story.up, "rev-parse", "stack^{tree}")
    assert world.git("rev-parse", "HEAD^{tree}") == want
    before = world.files()
    world.ok("refresh")
    assert world.files() == before


def test_an_insertion_without_context_needs_the_very_file(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a": numbered("x", 60)})
    story.patch("one", {"a": numbered("x", 60, _30="x 30\ninserted")})
    files = mails(story, tmp_path / "mails", "-U0")
    story.upstream("above", {"a": "top\n" + numbered("x", 60)})
    world = started(tmp_path / "work", story.up, "main")
    listed(world, files)
    world.fails("apply", says="no context to check its place by")
    bare = files[0].read_text()
    files[0].write_text("".join(x for x in bare.splitlines(True) if not x.startswith("index ")))
    other = started(tmp_path / "other", story.up)
    listed(other, files)
    other.fails("apply", says="no context to check its place by")


def test_a_hunk_off_by_lines_is_placed_and_reported(world: World) -> None:
    text = (
        "From: A <a@b>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\nSubject: [PATCH] x\n\n---\n"
        "diff --git a/CMakeLists.txt b/CMakeLists.txt\n"
        "--- a/CMakeLists.txt\n+++ b/CMakeLists.txt\n"
        "@@ -2,2 +2,3 @@\n cmake 14\n+inserted\n cmake 15\n"
    )
    (world.root / "patches" / "off.patch").write_text(text)
    series = world.root / "series.yaml"
    series.write_text(series.read_text().replace("patches: []", "patches: [{name: off}]"))
    ran = world.ok("apply")
    assert "CMakeLists.txt: hunk @@ -2,2 +2,3 @@ sits at line 14" in ran.err
    assert rows(world, "check")["off"]["status"] == "offset"
    world.ok("refresh")
    assert (world.root / "patches" / "off.patch").read_text() == text


def test_a_deletion_must_know_the_whole_file(world: World) -> None:
    text = (
        "From: A <a@b>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\nSubject: [PATCH] x\n\n---\n"
        "diff --git a/CMakeLists.txt b/CMakeLists.txt\ndeleted file mode 100644\n"
        "--- a/CMakeLists.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-cmake 1\n-cmake 2\n"
    )
    mail = world.root / "delete.patch"
    mail.write_text(text)
    world.fails("import", str(mail), says="there is more in it")
