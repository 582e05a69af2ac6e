"""Answers to conflicts are remembered: who is asked once is not asked again, here or elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import CASES, HOST, World, colleague, edit, resolve, without_answers


def test_resolutions_are_remembered(two: World, tmp_path: Path) -> None:
    before = two.world()
    two.conflicts("rebase", "--onto", "v3")
    resolve(two)
    two.conflicts("rebase", "--continue")
    resolve(two, CASES, "CASE TWENTY\ncase new\n")
    two.ok("rebase", "--continue")
    after = two.world()
    kept = sorted((two.root / "patches/resolutions").iterdir())
    assert len(kept) == 4  # two, and what the way back would ask
    assert "+hook a\n" in "".join(p.read_text() for p in kept)
    saved = {p.name: p.read_bytes() for p in kept}

    # with them, here or in a colleague's clone, it is no conflict any more
    two.ok("undo")
    assert {p.name: p.read_bytes() for p in kept} == saved  # an undo does not forget answers
    assert without_answers(two) == before
    other = colleague(two, tmp_path)
    dry = other.ok("rebase", "--onto", "v3", "--dry-run", "--json").json["patches"]
    real = other.ok("rebase", "--onto", "v3", "--json").json["patches"]
    rows = [(p["name"], p["status"], p["detail"]) for p in dry]
    assert rows == [(p["name"], p["status"], p["detail"]) for p in real]
    assert [p["status"] for p in real] == ["resolved", "three-way", "resolved"]
    other.ok("apply")
    assert other.world() == after


def answered(world: World) -> list[Path]:
    """The one conflict of v3 answered, and the move taken back: the files of the answer stay."""
    world.conflicts("rebase", "--onto", "v3")
    resolve(world)
    world.ok("rebase", "--continue")
    world.ok("undo")
    return sorted((world.root / "patches/resolutions").iterdir())


DAMAGE = {
    "blank": lambda data: b"",
    "garbage": lambda data: b"garbage\n",
    "head only": lambda data: data[: data.index(b"diff --git ")],
    "cut in the diff": lambda data: data[: len(data) // 2],
    "without its last line": lambda data: data[: data[:-1].rindex(b"\n") + 1],
    "edited": lambda data: data.replace(b"+hook a\n", b"+hook b\n"),
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "binary": lambda data: b"\0\xff" * 99,
    "for another file": lambda data: data.replace(HOST.encode(), b"README.md"),
    "merged by git": lambda data: data.replace(b"+hook a\n", b"<<<<<<< a\n+hook a\n>>>>>>> b\n"),
}


@pytest.mark.slow  # test_regions.py has one for every day
@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("old", [False, True], ids=["", "before result:"])
def test_a_damaged_answer_is_named_and_not_used(clash: World, how: str, old: bool) -> None:
    files = answered(clash)
    for path in files:
        data = path.read_bytes()
        if old:
            data = without_result(data)
        path.write_bytes(DAMAGE[how](data))
    if how == "head only" and old:
        for path in files:  # for lack of anything better that was how upstream's side was noted
            path.write_bytes(path.read_bytes()[:-1])
    says = f"warning: patches/resolutions/{files[0].name} is damaged and is not used: "
    others = f"warning: patches/resolutions/{files[1].name} is damaged and is not used: "
    for command in (["check"], ["rebase", "--dry-run"]):
        ran = clash.fails(*command, "--onto", "v3")
        assert (says in ran.err) != (others in ran.err), ran.err
        assert "conflict" in ran.out
    clash.conflicts("rebase", "--onto", "v3", says="is damaged and is not used")
    resolve(clash)
    clash.ok("rebase", "--continue")  # the new answer takes the place of the damaged one
    clash.ok("undo")
    assert "resolved" in clash.ok("rebase", "--onto", "v3").out


def without_result(data: bytes) -> bytes:
    """An answer as it was written before answers said what comes out, and of places."""
    before, _, rest = data.partition(b"result: ")
    before = before.partition(b"region: ")[0]
    return before + rest.partition(b"\n")[2]


def test_an_answer_of_old_is_used(clash: World) -> None:
    for path in answered(clash):
        data = without_result(path.read_bytes())
        assert data.count(b"\n\ndiff --git ") == 1
        path.write_bytes(data)
    assert "resolved" in clash.ok("rebase", "--onto", "v3").out
    assert "HOST TEN\nhook a\n" in (clash.checkout / HOST).read_text()


def test_an_answer_that_is_upstreams_side(clash: World) -> None:
    """A patch of two files keeps the other one."""
    edit(clash.checkout / CASES, "case 60\n", "case sixty\n")
    clash.git("commit", "-q", "-a", "--fixup=HEAD~2")
    clash.git("rebase", "-q", "-i", "--autosquash", "hexpatch/base", GIT_SEQUENCE_EDITOR="true")
    clash.ok("refresh")
    clash.conflicts("rebase", "--onto", "v3")
    resolve(clash, line="HOST TEN\n")
    clash.ok("rebase", "--continue")
    tree = clash.status()["tree"]
    for old in (False, True):
        clash.ok("undo")
        for path in (clash.root / "patches/resolutions").iterdir():
            if old:
                path.write_bytes(without_result(path.read_bytes()))
        assert "remembered resolution" in clash.ok("rebase", "--onto", "v3").out
        assert clash.status()["tree"] == tree


def test_an_answer_that_leaves_nothing_is_for_a_person(clash: World) -> None:
    """As it is where a person gives it: who means it skips the patch."""
    (path,) = [p for p in answered(clash) if b"the way back" not in p.read_bytes()]
    head, _, diff = path.read_bytes().partition(b"diff --git ")
    mode, blob = diff.split(b"index ")[1].split(b"\n")[0].split(b" ")[::-1]
    blob = blob.partition(b"..")[0]
    path.write_bytes(without_result(head)[:-1] + b"result: " + mode + b" " + blob + b"\n\n")
    clash.conflicts("rebase", "--onto", "v3", says="answer leaves nothing of the patch")
    resolve(clash, line="HOST TEN\n")
    clash.fails("rebase", "--continue", says="nothing is left of hexagon-hook-a")
    clash.ok("rebase", "--skip")


def test_a_file_where_the_answers_go(clash: World) -> None:
    folder = clash.root / "patches/resolutions"
    folder.write_text("notes\n")
    before = clash.world()
    ran = clash.fails("rebase", "--onto", "v3", says=f"{folder} is in the way")
    assert f"hint: move {folder} away" in ran.err
    assert clash.world() == before
    folder.unlink()
    clash.conflicts("rebase", "--onto", "v3")
    folder.write_text("notes\n")
    resolve(clash)
    clash.fails("rebase", "--continue", says=f"{folder} is in the way")
    folder.rename(clash.root / "notes")
    clash.ok("rebase", "--continue")


def test_there_and_back_is_resolved_once(two: World) -> None:
    """Back at the base the stack is what it was, and the next way there asks nothing either."""
    old, tree = two.status()["base"]["name"], two.status()["tree"]
    two.conflicts("rebase", "--onto", "v3")
    resolve(two)
    two.conflicts("rebase", "--continue")
    resolve(two, CASES, "CASE TWENTY\ncase new\n")
    two.ok("rebase", "--continue")
    there = two.status()["tree"]
    kept = sorted((two.root / "patches/resolutions").iterdir())
    back = two.ok("rebase", "--onto", old, "--json").json["patches"]
    assert "resolved" in [p["status"] for p in back]
    assert two.status()["tree"] == tree
    two.ok("rebase", "--onto", "v3")
    assert two.status()["tree"] == there
    assert sorted((two.root / "patches/resolutions").iterdir()) == kept
