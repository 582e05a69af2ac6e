"""An answer to a conflict holds as long as the place where the sides differ stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import HOST, World, edit, git

from hexpatch import regions
from hexpatch.regions import Region

pytestmark = pytest.mark.slow  # the rest of the suite stays quick without it


def resolve(world: World, *texts: str) -> None:
    """Replace each marked block by a person's text, and stage the file."""
    file = world.checkout / HOST
    for line in texts:
        before, _, rest = file.read_text().partition("<<<<<<< upstream\n")
        file.write_text(before + line + rest.partition(">>>>>>> ")[2].partition("\n")[2])
    world.git("add", HOST)


def answered(world: World, *texts: str) -> str:
    """v3's conflict answered, and the move taken back; the tree it gave."""
    world.conflicts("rebase", "--onto", "v3")
    resolve(world, *(texts or ("HOST TEN\nhook a\n",)))
    world.ok("rebase", "--continue")
    tree: str = world.status()["tree"]
    world.ok("undo")
    return tree


def amend(world: World, old: str, new: str) -> None:
    """Edit the patch that conflicts."""
    edit(world.checkout / HOST, old, new)
    world.git("commit", "-q", "-a", "--fixup=HEAD~2")
    world.git("rebase", "-q", "-i", "--autosquash", "hexpatch/base", GIT_SEQUENCE_EDITOR="true")
    world.ok("refresh")


def test_the_patch_was_edited_elsewhere(clash: World) -> None:
    answered(clash)
    amend(clash, "host 40\n", "host forty\n")
    base = clash.status()["base"]["name"]
    tree = clash.status()["tree"]
    said = clash.ok("rebase", "--onto", "v3").out
    assert f"{HOST}: remembered resolution" in said
    text = (clash.checkout / HOST).read_text()
    assert "HOST TEN\nhook a\n" in text
    assert "host forty\n" in text
    # the way back asks nothing, either, and gives what was there
    clash.ok("rebase", "--onto", base)
    assert clash.status()["tree"] == tree


def test_upstream_went_on_elsewhere(clash: World) -> None:
    answered(clash)
    edit(clash.upstream / HOST, "host 40\n", "host 40, upstream\n")
    git(clash.upstream, "commit", "-qam", "hexagon : more (#5)")
    git(clash.upstream, "tag", "v4")
    assert "resolved" in clash.ok("rebase", "--onto", "v4").out
    text = (clash.checkout / HOST).read_text()
    assert "HOST TEN\nhook a\n" in text
    assert "host 40, upstream\n" in text


def test_the_place_itself_was_edited(clash: World) -> None:
    answered(clash)
    amend(clash, "hook a\n", "hook a, better\n")
    clash.conflicts("rebase", "--onto", "v3")


def test_one_place_of_two_is_known(clash: World) -> None:
    """Who has to look at the file looks at all of it."""
    answered(clash)
    amend(clash, "host 40\n", "host forty\n")
    edit(clash.upstream / HOST, "host 40\n", "HOST FORTY\n")
    git(clash.upstream, "commit", "-qam", "hexagon : shout more (#5)")
    git(clash.upstream, "tag", "v4")
    clash.conflicts("rebase", "--onto", "v4")
    resolve(clash, "HOST TEN\nhook a\n", "HOST FORTY!\n")
    clash.ok("rebase", "--continue")
    clash.ok("undo")
    amend(clash, "host 20\n", "host twenty\n")
    clash.ok("rebase", "--onto", "v4")
    text = (clash.checkout / HOST).read_text()
    assert all(line in text for line in ("HOST TEN\nhook a\n", "host twenty\n", "HOST FORTY!\n"))


def test_an_answer_that_edits_more_than_the_place_is_for_that_file_only(clash: World) -> None:
    clash.conflicts("rebase", "--onto", "v3")
    edit(clash.checkout / HOST, "host 3\n", "host three\n")
    resolve(clash, "HOST TEN\nhook a\n")
    clash.ok("rebase", "--continue")
    clash.ok("undo")
    assert "resolved" in clash.ok("rebase", "--onto", "v3").out
    clash.ok("undo")
    amend(clash, "host 40\n", "host forty\n")
    clash.conflicts("rebase", "--onto", "v3")


def test_two_answers_to_one_place_are_none(clash: World) -> None:
    answered(clash)
    folder = clash.root / "patches/resolutions"
    first = {path: path.read_bytes() for path in folder.iterdir()}
    for path in first:
        path.unlink()
    answered(clash, "hook a\nHOST TEN\n")
    for path, data in first.items():
        path.with_name(f"0{path.name}").write_bytes(data)
    amend(clash, "host 40\n", "host forty\n")
    clash.conflicts("rebase", "--onto", "v3")


def test_a_place_that_was_tampered_with(clash: World) -> None:
    answered(clash)
    for path in (clash.root / "patches/resolutions").iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n+hook a\nresult", b"\n+hook b\nresult"))
    amend(clash, "host 40\n", "host forty\n")
    ran = clash.conflicts("rebase", "--onto", "v3", says="is damaged and is not used: its region ")
    assert "hook b" not in ran.out


# -- the text of a merge -------------------------------------------------------------------------

ONE = b"a\n<<<<<<< upstream\no\n||||||| base of the patch\nb\n=======\nt\n>>>>>>> x\nz\n"
PLACE = Region(b"o\n", b"b\n", b"t\n")


def test_places_of_a_merge() -> None:
    assert regions.split(ONE) == [b"a\n", PLACE, b"z\n"]
    assert regions.split(b"plain\n") == [b"plain\n"]
    crlf = ONE.replace(b"\n", b"\r\n")
    assert regions.split(crlf) == [b"a\r\n", Region(b"o\r\n", b"b\r\n", b"t\r\n"), b"z\r\n"]


@pytest.mark.parametrize(
    "merged",
    [
        ONE[:-2],  # the place is the end of the file
        ONE.replace(b"t\n", b"=======\n"),  # a heading's underline
        ONE.replace(b"o\n", b"<<<<<<< x\n"),
        ONE[: ONE.index(b">>>>>>>")],
    ],
)
def test_marks_that_cannot_be_told_from_text(merged: bytes) -> None:
    assert regions.split(merged) is None
    assert regions.answers(b"f", merged, b"a\nnew\nz\n") == {}
    assert regions.fill(b"f", merged, {PLACE.key(b"f"): b"new\n"}) is None


@pytest.mark.parametrize("text", [b"", b"new\n", b"a\nz\nz\n"])
def test_what_was_answered_is_filled_in(text: bytes) -> None:
    known = regions.answers(b"f", ONE, b"a\n" + text + b"z\n")
    assert known == {PLACE.key(b"f"): text}
    assert regions.fill(b"f", ONE, known) == b"a\n" + text + b"z\n"
    assert regions.fill(b"another", ONE, known) is None
    assert PLACE.key(b"f") != Region(b"o\nb\n", b"", b"t\n").key(b"f")


@pytest.mark.parametrize(
    "resolved", [b"A\nnew\nz\n", b"a\nnew\nZ\n", b"a\n", b"a\nnewz\n", b"", b"a\nnew\nz"]
)
def test_other_edits_are_no_answers_to_the_place(resolved: bytes) -> None:
    assert regions.answers(b"f", ONE, resolved) == {}


def test_places_that_cannot_be_told_apart() -> None:
    two = ONE + ONE[2:].replace(b"o\n", b"p\n")
    assert regions.split(two) == [b"a\n", PLACE, b"z\n", Region(b"p\n", b"b\n", b"t\n"), b"z\n"]
    assert len(regions.answers(b"f", two, b"a\none\nz\ntwo\nz\n")) == 2
    assert regions.answers(b"f", two, b"a\none\nz\nz\ntwo\nz\n") == {}
    same = ONE + ONE[2:]
    assert regions.answers(b"f", same, b"a\none\nz\ntwo\nz\n") == {}
    assert regions.answers(b"f", same, b"a\none\nz\none\nz\n") == {PLACE.key(b"f"): b"one\n"}


def test_the_answers_of_the_series_itself() -> None:
    """Each of them holds for its place, whatever becomes of the rest of the file."""
    from hexpatch.resolutions import _places

    folder = Path(__file__).parent.parent / "patches/resolutions"
    for path in folder.iterdir():
        assert _places(path.read_bytes()), path
