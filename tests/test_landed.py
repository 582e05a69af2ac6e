"""What upstream has already: found along its history, told apart, never lost, never twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import World, git
from fieldworld import Files, Story, numbered, rows, state

pytestmark = pytest.mark.slow  # the rest of the suite stays quick without it

KERNEL = "int kernel(void) {\n    return 1;\n}\n"
HOOK = "    register_kernel(KERNEL_OP);\n"


def host(*hooks: str, **instead: str) -> str:
    """A host file with lines after line 10."""
    lines = numbered("host", 40, **instead).splitlines(True)
    return "".join([*lines[:10], *hooks, *lines[10:]])


def hooked(root: Path) -> Story:
    """One patch: a hook in the host, and a new file."""
    story = Story(root, {"host.c": host(), "other.c": numbered("other", 20)})
    story.patch("hexagon : hook", {"host.c": host(HOOK), "kernel.c": KERNEL})
    return story


def told(world: World) -> dict[str, object]:
    """The row of the one patch."""
    (row,) = rows(world, "check", "--onto", "main").values()
    return row


def lands(story: Story, *words: str) -> World:
    """The patch is landed: it goes out of the stack, and nothing of it is applied."""
    world = story.world()
    row = told(world)
    assert row["status"] == "landed", row
    for word in words:
        assert word in str(row["detail"])
    world.ok("rebase", "--onto", "main")
    assert world.git("rev-parse", "HEAD") == git(story.up, "rev-parse", "main")
    (patch,) = world.status()["patches"]
    assert patch["state"] == "landed"
    return world


def stays(story: Story, status: str, *words: str) -> World:
    """The patch stays in the stack."""
    world = story.world()
    row = told(world)
    assert row["status"] == status, row
    for word in words:
        assert word in str(row["detail"])
    return world


def test_exactly(tmp_path: Path) -> None:
    story = hooked(tmp_path)
    story.upstream("other work", {"other.c": numbered("other", 20, _3="three")})
    story.upstream("hexagon : hook (#7)", {"host.c": host(HOOK), "kernel.c": KERNEL})
    lands(story, "exactly", "hexagon : hook (#7)")


def test_exactly_and_moved_by_lines_above(tmp_path: Path) -> None:
    story = hooked(tmp_path)
    story.upstream("above", {"host.c": "top\n" + host()})
    story.upstream("hook (#7)", {"host.c": "top\n" + host(HOOK), "kernel.c": KERNEL})
    lands(story, "exactly", "hook (#7)")


@pytest.mark.parametrize("extra", ["before", "after", "elsewhere", "another file"])
def test_in_other_words(tmp_path: Path, extra: str) -> None:
    story = hooked(tmp_path)
    note = "    // registered late\n"
    files: dict[str, Files] = {
        "before": {"host.c": host(note, HOOK)},
        "after": {"host.c": host(HOOK, note)},
        "elsewhere": {"host.c": host(HOOK, _30="host thirty")},
        "another file": {"host.c": host(HOOK), "other.c": numbered("other", 20, _3="three")},
    }
    story.upstream("hexagon : hook (#7)", {"kernel.c": KERNEL, **files[extra]})
    lands(story, "in other words", "hexagon : hook (#7)")


def test_landed_then_edited_again(tmp_path: Path) -> None:
    story = hooked(tmp_path)
    story.upstream("hook (#7)", {"host.c": host(HOOK), "kernel.c": KERNEL})
    story.upstream("rename (#8)", {"host.c": host(HOOK.replace("KERNEL_OP", "OP_KERNEL"))})
    story.upstream("two (#9)", {"kernel.c": KERNEL.replace("1", "2")})
    lands(story, "exactly", "hook (#7)")


def test_landed_then_file_moved(tmp_path: Path) -> None:
    story = hooked(tmp_path)
    story.upstream("hook (#7)", {"host.c": host(HOOK), "kernel.c": KERNEL})
    story.upstream("move (#8)", move="host.c>host/host.c kernel.c>host/kernel.c")
    lands(story, "exactly", "hook (#7)")


@pytest.mark.parametrize("after", ["at once", "after other work"])
def test_taken_and_then_reverted(tmp_path: Path, after: str) -> None:
    story = hooked(tmp_path)
    story.upstream("hook (#7)", {"host.c": host(HOOK), "kernel.c": KERNEL})
    if after == "after other work":
        story.upstream("work (#8)", {"host.c": "top\n" + host(HOOK, _30="thirty")})
        story.upstream('Revert "hook"', {"host.c": "top\n" + host(_30="thirty"), "kernel.c": None})
    else:
        story.upstream('Revert "hook"', {"host.c": host(), "kernel.c": None})
    world = stays(story, "offset" if after != "at once" else "ok", "taken back by", "Revert")
    world.ok("rebase", "--onto", "main")
    assert HOOK in (world.checkout / "host.c").read_text()
    assert (world.checkout / "kernel.c").read_text() == KERNEL
    assert len(world.git("log", "--format=%H", "refs/hexpatch/base..").split()) == 1


def test_reverted_with_its_neighbours_changed(tmp_path: Path) -> None:
    story = hooked(tmp_path)
    story.upstream("hook (#7)", {"host.c": host(HOOK), "kernel.c": KERNEL})
    story.upstream("near (#8)", {"host.c": host(HOOK, _9="nine", _13="thirteen")})
    story.upstream("out (#9)", {"host.c": host(_9="nine", _13="thirteen"), "kernel.c": None})
    world = story.world()
    row = told(world)
    assert row["status"] in ("ok", "offset", "three-way")
    assert "was upstream" in str(row["detail"])
    world.ok("rebase", "--onto", "main")
    assert HOOK in (world.checkout / "host.c").read_text()


LINES = numbered("line", 20)
ENDS = {
    "below the end": LINES + "our own last line\n",
    "above the top": "our own first line\n" + LINES,
    "without the end": LINES.replace("line 19\nline 20\n", ""),
    "without the top": LINES.replace("line 1\nline 2\n", ""),
    "without a newline": LINES[:-1],
    "into an empty file": "one\ntwo\n",
}


@pytest.mark.parametrize("how", ENDS)
def test_at_the_ends_of_a_file(tmp_path: Path, how: str) -> None:
    """Upstream goes on there, so nothing but its history tells that it has the patch."""
    base = "" if how.startswith("into") else LINES
    story = Story(tmp_path, {"a.c": base})
    story.patch("mine", {"a.c": ENDS[how]})
    story.upstream("mine (#7)", {"a.c": ENDS[how]})
    story.upstream("more (#8)", {"a.c": f"the very first\n{ENDS[how]}\nthe very last\n"})
    lands(story, "exactly", "mine (#7)")


def test_more_at_the_end_in_the_same_commit(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a.c": LINES})
    story.patch("mine", {"a.c": LINES + "our own last line\n"})
    story.upstream("both (#7)", {"a.c": LINES + "theirs\nour own last line\n"})
    lands(story, "in other words", "both (#7)")


@pytest.mark.parametrize("how", ["added", "changed", "deleted", "added at the end"])
def test_taken_back_after_its_neighbour_changed(tmp_path: Path, how: str) -> None:
    """The file is not what it was around the hunk: a conflict, and never lost without a word."""
    mine, theirs, back = {
        "added": ("line 10\nour_own();\n", "line 10\nour_own();\nx\n", "line 10\nx\n"),
        "changed": ("ten\n", "ten\nx\n", "line 10\nx\n"),
        "deleted": ("", "x\n", "line 10\nx\n"),
        "added at the end": ("our_own();\n", "our_own();\nx\n", "x\n"),
    }[how]

    def file(text: str) -> Files:
        if how == "added at the end":
            return {"a.c": LINES + text}
        return {"a.c": LINES.replace("line 10\n", text)}

    story = Story(tmp_path, {"a.c": LINES})
    story.patch("mine", file(mine))
    story.upstream("mine (#7)", file(mine))
    story.upstream("near (#8)", file(theirs))
    story.upstream("back out (#9)", file(back))
    stays(story, "conflict", "was upstream", "taken back by", "back out (#9)")


def test_reverted_and_taken_again(tmp_path: Path) -> None:
    story = hooked(tmp_path)
    story.upstream("hook (#7)", {"host.c": host(HOOK), "kernel.c": KERNEL})
    story.upstream('Revert "hook"', {"host.c": host(), "kernel.c": None})
    story.upstream("hook again (#9)", {"host.c": host(HOOK), "kernel.c": KERNEL})
    lands(story, "hook again (#9)")


def test_only_one_file_of_two(tmp_path: Path) -> None:
    story = hooked(tmp_path)
    story.upstream("kernel only (#7)", {"kernel.c": KERNEL})
    world = stays(story, "partly", "kernel.c: upstream has it already")
    world.ok("rebase", "--onto", "main")
    assert HOOK in (world.checkout / "host.c").read_text()
    assert world.git("show", "--format=", "--name-only", "HEAD") == "host.c"


def test_a_look_alike_elsewhere_is_not_the_patch(tmp_path: Path) -> None:
    """The same line stands in another block already; upstream touches the file."""
    block = "f() {\n  begin\n  step\n  end\n}\n"
    hooked_block = "f() {\n  begin\n  step\n  my_own_hook_here\n  end\n}\n"
    story = Story(tmp_path, {"a.c": f"{hooked_block}{block}{block}// tail\n" + numbered("x", 9)})
    mine = f"{hooked_block}{hooked_block}{block}// tail\n" + numbered("x", 9)
    story.patch("hook the second", {"a.c": mine})
    base = f"{hooked_block}{block}{block}// tail\n" + numbered("x", 9, _5="five")
    story.upstream("five (#7)", {"a.c": base})
    want = story.by_git()
    assert want is not None
    world = story.world()
    assert told(world)["status"] in ("ok", "offset", "three-way")
    world.ok("rebase", "--onto", "main")
    assert world.git("rev-parse", "HEAD^{tree}") == want


def test_two_patches_with_the_same_lines(tmp_path: Path) -> None:
    """Upstream has taken one of two patches that add the same text at different places."""
    lines = numbered("x", 60).splitlines(True)
    hook = "    the_same_hook_for_both();\n"
    one = "".join([*lines[:10], hook, *lines[10:]])
    both = "".join([*lines[:10], hook, *lines[10:50], hook, *lines[50:]])
    second = "".join([*lines[:50], hook, *lines[50:]])
    story = Story(tmp_path, {"a.c": "".join(lines)})
    story.patch("at ten", {"a.c": one})
    story.patch("at fifty", {"a.c": both})
    story.upstream("at fifty (#7)", {"a.c": second})
    world = story.world()
    first, last = rows(world, "check", "--onto", "main").values()
    assert last["status"] == "landed"
    assert first["status"] in ("ok", "offset", "three-way", "twice")


def test_it_still_applies_but_is_there(tmp_path: Path) -> None:
    """Upstream took the lines a little further down: applied once more they would be double."""
    lines = numbered("host", 40).splitlines(True)
    mine = "".join([*lines[:10], HOOK, *lines[10:]])
    theirs = "".join([*lines[:14], HOOK, *lines[14:]])
    story = Story(tmp_path, {"host.c": "".join(lines)})
    story.patch("hook", {"host.c": mine})
    story.upstream("hook, lower (#7)", {"host.c": theirs})
    world = story.world()
    row = told(world)
    assert row["status"] == "twice"
    assert "line 15 has the added lines already" in str(row["detail"])
    before = state(world)
    world.conflicts("rebase", "--onto", "main")
    world.ok("rebase", "--abort")
    assert state(world) == before
    world.conflicts("rebase", "--onto", "main")
    world.ok("rebase", "--skip")
    assert (world.checkout / "host.c").read_text() == theirs


BETTER = HOOK.replace("KERNEL_OP", "KERNEL_OP, FAST")


def two_for_one(root: Path) -> Story:
    """The second patch edits lines of the first."""
    story = Story(root, {"host.c": host(), "other.c": numbered("other", 20)})
    story.patch("hook", {"host.c": host(HOOK), "kernel.c": KERNEL})
    story.patch("faster", {"host.c": host(BETTER)})
    return story


def as_a_group(world: World) -> None:
    """All patches become one pull request."""
    names = ", ".join(p["name"] for p in world.status()["patches"])
    series = world.root / "series.yaml"
    group = f"groups:\n  - name: g\n    title: t\n    patches: [{names}]\n"
    series.write_text(series.read_text().replace("groups: []\n", group))


@pytest.mark.parametrize("later", [False, True], ids=["last", "edited later"])
@pytest.mark.parametrize("grouped", [True, False], ids=["group", "no group"])
def test_patches_squashed_by_upstream(tmp_path: Path, grouped: bool, later: bool) -> None:
    """Upstream has one commit for both, and what the first one wrote is nowhere in it."""
    story = two_for_one(tmp_path)
    story.upstream("hook, fast (#7)", {"host.c": host(BETTER), "kernel.c": KERNEL})
    if later:
        story.upstream("two (#8)", {"kernel.c": KERNEL.replace("1", "2")})
    world = story.world()
    if grouped:
        as_a_group(world)
    first, last = rows(world, "check", "--onto", "main").values()
    assert [first["status"], last["status"]] == ["landed", "landed"]
    assert "squashed" in str(first["detail"])
    assert all("hook, fast (#7)" in str(r["detail"]) for r in (first, last))
    world.ok("rebase", "--onto", "main")
    assert world.git("rev-parse", "HEAD") == git(story.up, "rev-parse", "main")


@pytest.mark.parametrize("grouped", [True, False], ids=["group", "no group"])
@pytest.mark.parametrize("what", ["all", "one file"])
def test_squashed_and_taken_back(tmp_path: Path, what: str, grouped: bool) -> None:
    """The kernel is gone again: it must not be lost with the stack's own."""
    story = two_for_one(tmp_path)
    story.upstream("hook, fast (#7)", {"host.c": host(BETTER), "kernel.c": KERNEL})
    back: Files = {"host.c": host()} if what == "all" else {}
    story.upstream("back out (#8)", {"kernel.c": None, **back})
    world = story.world()
    if grouped:
        as_a_group(world)
    first = next(iter(rows(world, "check", "--onto", "main").values()))
    assert first["status"] == ("ok" if what == "all" else "conflict")
    assert "taken back by" in str(first["detail"]) or not grouped
    if what == "all":
        world.ok("rebase", "--onto", "main")
        assert (world.checkout / "kernel.c").read_text() == KERNEL
        assert BETTER in (world.checkout / "host.c").read_text()


def test_squashed_then_moved_and_taken_back(tmp_path: Path) -> None:
    story = two_for_one(tmp_path)
    story.upstream("hook, fast (#7)", {"host.c": host(BETTER), "kernel.c": KERNEL})
    story.upstream("move (#8)", move="host.c>host/host.c")
    world = story.world()
    assert [r["status"] for r in rows(world, "check", "--onto", "main").values()] == ["landed"] * 2
    story.upstream("back out (#9)", {"host/host.c": host()})
    first = next(iter(rows(world, "check", "--onto", "main").values()))
    assert "taken back by" in str(first["detail"])


def test_a_patch_between_two_that_were_squashed(tmp_path: Path) -> None:
    """Upstream has not taken the one in the middle, so the first is a person's to judge."""
    story = Story(tmp_path, {"host.c": host()})
    story.patch("hook", {"host.c": host(HOOK)})
    story.patch("thirty", {"host.c": host(HOOK, _30="host thirty")})
    story.patch("faster", {"host.c": host(BETTER, _30="host thirty")})
    story.upstream("hook, fast (#7)", {"host.c": host(BETTER)})
    said = [r["status"] for r in rows(story.world(), "check", "--onto", "main").values()]
    assert said[0] == "conflict" and said[1] != "landed"


@pytest.mark.parametrize("also", [False, True], ids=["alone", "with an edit"])
@pytest.mark.parametrize("edited", [False, True], ids=["moved", "moved and edited"])
def test_a_deleted_file_that_upstream_moved_lives_on(
    tmp_path: Path, edited: bool, also: bool
) -> None:
    """The file is gone from its place, not from the tree."""
    story = Story(tmp_path, {"old.c": host(), "other.c": numbered("other", 20)})
    more: Files = {"other.c": numbered("other", 20, _3="three")} if also else {}
    story.patch("drop the old route", {"old.c": None, **more})
    story.upstream("move (#7)", more, move="old.c>lib/old.c")
    if edited:
        story.upstream("edit", {"lib/old.c": host(_5="five")})
    stays(story, "conflict", "old.c")


def test_a_deleted_file_that_upstream_moved_and_then_deleted(tmp_path: Path) -> None:
    story = Story(tmp_path, {"old.c": host(), "other.c": numbered("other", 20)})
    story.patch("drop the old route", {"old.c": None})
    story.upstream("move (#7)", move="old.c>lib/old.c")
    story.upstream("drop it (#8)", {"lib/old.c": None})
    lands(story, "drop it (#8)")


def test_a_group_that_deletes_what_upstream_moved(tmp_path: Path) -> None:
    story = Story(tmp_path, {"old.c": host(), "other.c": numbered("other", 20)})
    story.patch("hook", {"old.c": host(HOOK)})
    story.patch("drop it after all", {"old.c": None})
    story.upstream("move (#7)", move="old.c>lib/old.c")
    world = story.world()
    names = [p["name"] for p in world.status()["patches"]]
    series = world.root / "series.yaml"
    group = f"groups:\n  - name: g\n    title: t\n    patches: [{', '.join(names)}]\n"
    series.write_text(series.read_text().replace("groups: []\n", group))
    said = rows(world, "check", "--onto", "main")
    assert "landed" not in [r["status"] for r in said.values()]


def test_mode_is_part_of_a_patch(tmp_path: Path) -> None:
    story = Story(tmp_path, {"run.sh": numbered("x", 9)})
    story.patch("make it run", executable="run.sh")
    story.upstream("edit", {"run.sh": numbered("x", 9, _3="three")})
    world = story.world()
    world.ok("rebase", "--onto", "main")
    assert world.git("ls-files", "-s", "run.sh").startswith("100755")
    (tmp_path / "again").mkdir()
    other = Story(tmp_path / "again", {"run.sh": numbered("x", 9)})
    other.patch("make it run", executable="run.sh")
    other.upstream("run (#7)", executable="run.sh")
    lands(other, "exactly")


def test_nothing_is_left_after_a_merge(tmp_path: Path) -> None:
    """Two upstream commits took one hunk each: no single one has it all, the end has."""
    story = Story(tmp_path, {"a": numbered("x", 40)})
    story.patch("both", {"a": numbered("x", 40, _5="five is here", _30="thirty is here")})
    story.upstream("thirty (#7)", {"a": numbered("x", 40, _30="thirty is here")})
    story.upstream("five (#8)", {"a": numbered("x", 40, _5="five is here", _30="thirty is here")})
    lands(story)


def test_a_landed_patch_comes_back(tmp_path: Path) -> None:
    """Landed, moved past it; later upstream reverts it: the next rebase has it again."""
    story = hooked(tmp_path)
    story.upstream("hook (#7)", {"host.c": host(HOOK), "kernel.c": KERNEL})
    world = lands(story, "exactly")
    story.upstream('Revert "hook"', {"host.c": host(), "kernel.c": None})
    git(story.up, "checkout", "-q", "main")
    assert told(world)["status"] == "revived"
    world.ok("rebase", "--onto", "main")
    assert HOOK in (world.checkout / "host.c").read_text()
    (patch,) = world.status()["patches"]
    assert patch["state"] != "landed"


def test_there_and_back(tmp_path: Path) -> None:
    """A landed patch is in the stack again after going back to the old base."""
    story = hooked(tmp_path)
    story.upstream("hook (#7)", {"host.c": host(HOOK), "kernel.c": KERNEL})
    world = lands(story, "exactly")
    world.ok("rebase", "--onto", "base")
    assert world.git("rev-parse", "HEAD^{tree}") == git(story.up, "rev-parse", "stack^{tree}")


def test_history_that_is_not_known(tmp_path: Path) -> None:
    """Onto a commit without common history (a snapshot): judged by its tree."""
    story = hooked(tmp_path)
    git(story.up, "checkout", "-q", "--orphan", "snapshot", "base")
    (story.up / "host.c").write_text(host(HOOK))
    (story.up / "kernel.c").write_text(KERNEL)
    git(story.up, "add", "-A")
    git(story.up, "commit", "-q", "-m", "snapshot b1234")
    world = story.world()
    (row,) = rows(world, "check", "--onto", "snapshot").values()
    assert row["status"] == "landed"
