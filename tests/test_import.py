"""import: mailboxes (field case 05), files one by one, three-way; all of it or nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import World, commit, edit, git, hexpatch
from fieldworld import inputs, messages, started, state, trees

RIGHT = "32c1219864f0c70ef408fefdf691bf1a71bfb7fe"


@pytest.fixture
def conf(field: Any, tmp_path: Path) -> World:
    return started(tmp_path / "work", field("05")[0])


def mbox(name: str) -> str:
    return str(inputs("05") / f"{name}.mbox")


@pytest.mark.parametrize("name", ["series", "nocover", "series-crlf", "shuffled"])
def test_a_mailbox_becomes_two_patches(conf: World, name: str) -> None:
    ran = conf.ok("import", mbox(name))
    assert trees(conf)[-1] == RIGHT
    assert messages(conf) == ["conf : raise a", "conf : raise b"]
    format_ = "%an <%ae> %at"
    authors = conf.git("log", "--reverse", f"--format={format_}", "refs/hexpatch/base..")
    first, second = authors.splitlines()
    assert first.startswith("Dev One <dev@example.org>")
    assert second == "Dev Two <two@example.org> 1704013200"  # 2023-12-31T09:00:00Z
    body = conf.git("log", "-1", "--format=%b", "HEAD~1")
    assert body.startswith("A ten is what")
    everything = b"".join(conf.files().values())
    assert b"Thanks for the hint" not in everything
    assert b"\r" not in everything
    assert len(conf.status()["patches"]) == 2
    if name != "nocover":
        assert "skipped cover letter: conf: two knobs" in ran.err
    if name == "shuffled":
        assert "out of order" in ran.err


def test_a_mailbox_with_a_hole_is_refused(conf: World) -> None:
    before = state(conf)
    conf.fails("import", mbox("missing-one"), says="1/2 is missing")
    assert state(conf) == before
    conf.ok("import", mbox("nocover"))
    before = state(conf)
    conf.fails("import", mbox("missing-one"), says="1/2 is missing")
    assert state(conf) == before
    assert not (conf.upstream / ".git" / "rebase-apply").exists()


def test_cover_letter_alone(conf: World, tmp_path: Path) -> None:
    cover = tmp_path / "cover.patch"
    raw = (inputs("05") / "series.mbox").read_bytes()
    cover.write_bytes(raw.split(b"\n\nFrom 0000")[0] + b"\n")
    before = state(conf)
    conf.fails("import", str(cover), says="only a cover letter")
    assert state(conf) == before


def exported(world: World, folder: Path, *args: str) -> list[str]:
    """Mails of the upstream's HEAD by plain git."""
    out = git(world.upstream, "format-patch", "-q", "-o", str(folder), *args)
    assert out == ""
    return [str(p) for p in sorted(folder.iterdir())]


def test_one_patch_of_many_fails_and_none_is_taken(world: World, tmp_path: Path) -> None:
    git(world.upstream, "checkout", "-q", "-b", "w", "v1")
    readme = world.upstream / "README.md"
    for text in ("one\n", "two\n"):
        readme.write_text(text)
        git(world.upstream, "commit", "-q", "-am", f"readme : {text.strip()}")
    files = exported(world, tmp_path / "mails", "-2")
    before = state(world)
    world.fails("import", files[1], files[0], says="readme-two does not apply")
    assert state(world) == before


def test_import_uses_the_ancestor_that_the_index_line_names(world: World, tmp_path: Path) -> None:
    """A patch made on v1 goes onto v2, where its context has changed, as with `git am -3`."""
    git(world.upstream, "checkout", "-q", "-b", "w", "v1")
    host = world.upstream / "ggml/src/ggml-hexagon/ggml-hexagon.cpp"
    edit(host, "host 48\n", "host forty-eight\n")
    git(world.upstream, "commit", "-q", "-am", "hexagon : forty-eight")
    mail = exported(world, tmp_path / "mails", "-1", "--full-index")
    other = started(tmp_path / "other", world.upstream, "v2")
    ran = other.ok("import", *mail)
    assert "merged three-way" in ran.err
    git(world.upstream, "checkout", "-q", "-B", "w2", "v2")
    git(world.upstream, "cherry-pick", "w")
    assert trees(other)[-1] == git(world.upstream, "rev-parse", "w2^{tree}")


def test_a_name_can_be_given_and_must_be_free(stacked: World, tmp_path: Path) -> None:
    git(stacked.upstream, "checkout", "-q", "-b", "w", "v1")
    (stacked.upstream / "README.md").write_text("other\n")
    git(stacked.upstream, "commit", "-q", "-am", "readme : other")
    mail = exported(stacked, tmp_path / "mails", "-1")
    taken = stacked.status()["patches"][0]["name"]
    before = state(stacked)
    stacked.fails("import", "--name", taken, *mail, says="already")
    assert state(stacked) == before
    stacked.ok("import", "--name", "mine", *mail)
    assert stacked.status()["patches"][-1]["name"] == "mine"


def test_import_needs_a_stack_in_sync(stacked: World, tmp_path: Path) -> None:
    git(stacked.upstream, "checkout", "-q", "-b", "w", "v1")
    (stacked.upstream / "README.md").write_text("other\n")
    git(stacked.upstream, "commit", "-q", "-am", "readme : other")
    mail = exported(stacked, tmp_path / "mails", "-1")
    commit(stacked, "not refreshed", notes="new\n")
    before = state(stacked)
    stacked.fails("import", *mail, says="hexpatch refresh")
    assert state(stacked) == before


def test_a_range_means_what_git_means_by_it(world: World) -> None:
    """master..feature, forked before master's newest commit, is what is on feature only."""
    git(world.upstream, "switch", "-q", "-c", "feature", "v1")
    (world.upstream / "feature.txt").write_text("one\n")
    git(world.upstream, "add", "-A")
    git(world.upstream, "commit", "-q", "-m", "feature : one")
    world.ok("import", "master..feature")
    assert [p["name"] for p in world.status()["patches"]] == ["feature-one"]


def test_a_cover_letter_in_its_own_file_is_skipped(world: World, tmp_path: Path) -> None:
    """`format-patch --cover-letter` writes 0000-cover-letter.patch beside the patches."""
    git(world.upstream, "switch", "-q", "-c", "feature", "v1")
    for n in (1, 2):
        (world.upstream / "feature.txt").write_text(f"{n}\n")
        git(world.upstream, "add", "-A")
        git(world.upstream, "commit", "-q", "-m", f"feature : {n}")
    git(world.upstream, "format-patch", "-q", "--cover-letter", "-o", str(tmp_path / "m"), "v1")
    mails = sorted(str(p) for p in (tmp_path / "m").iterdir())
    ran = world.ok("import", *mails)
    assert "skipped cover letter" in ran.err
    assert len(world.status()["patches"]) == 2


def test_what_is_there_already_is_not_imported_again(stacked: World, tmp_path: Path) -> None:
    patch = tmp_path / "again.patch"
    patch.write_bytes((stacked.root / "patches" / "tests-add-a-case.patch").read_bytes())
    before = stacked.files()
    stacked.fails("import", str(patch), says="all of it is there already")
    assert stacked.files() == before


def test_a_mail_that_lost_its_diff_is_refused(world: World, tmp_path: Path) -> None:
    (world.upstream / "README.md").write_text("changed\n")
    git(world.upstream, "commit", "-q", "-am", "readme : changed")
    args = ["format-patch", "-1", "--color=always", "--stdout"]
    (tmp_path / "c.patch").write_text(git(world.upstream, *args))
    world.fails("import", str(tmp_path / "c.patch"), says="coloured")
    whole = git(world.upstream, "format-patch", "-1", "--stdout")
    (tmp_path / "d.patch").write_text(whole.partition("diff --git")[0])
    world.fails("import", str(tmp_path / "d.patch"), says="diffstat, but no diff")
    world.fails("import", "missing.patch", says="no such file")
    ran = world.fails("import", str(tmp_path), says=f"{tmp_path} is a directory")
    assert f"{tmp_path}/*.patch" in ran.err


def test_a_name_no_disk_can_take_is_refused(world: World, tmp_path: Path) -> None:
    before = world.files()
    name = "n" * 300
    (tmp_path / "n.patch").write_text(
        "From: A <a@example.org>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\n"
        f"Subject: [PATCH] x : n\n\n---\ndiff --git a/{name} b/{name}\nnew file mode 100644\n"
        f"index 0000000..5626abf\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+one\n"
    )
    world.fails("import", str(tmp_path / "n.patch"), says="longer than 255 bytes")
    assert world.files() == before


def test_a_mail_without_title(stacked: World) -> None:
    """git writes one of a commit without message."""
    mail = stacked.git("format-patch", "--stdout", "-1", "HEAD")
    title = stacked.git("log", "-1", "--format=%s")
    file = stacked.root / "untitled.patch"
    file.write_text(mail.replace(title, "") + "\n")
    stacked.ok("drop", stacked.status()["patches"][-1]["name"])
    before = stacked.files()
    stacked.fails("import", str(file), says="its Subject: is empty; a patch needs a title")
    assert stacked.files() == before


def test_a_mail_from_before_1970(stacked: World) -> None:
    """A wrong clock; git am refuses it too, and a server refuses the push of such a commit."""
    mail = stacked.git("format-patch", "--stdout", "-1", "HEAD")
    file = stacked.root / "old.patch"
    text, found = re.subn(r"(?m)^Date: .*$", "Date: Fri, 1 Jan 1960 10:00:00 +0000", mail, count=1)
    assert found
    file.write_text(text + "\n")
    stacked.ok("drop", stacked.status()["patches"][-1]["name"])
    before = state(stacked)
    stacked.fails("import", str(file), says="its Date: is before 1970")
    assert state(stacked) == before


def one_more(world: World, *titles: str, start: str = "") -> None:
    """A branch `w` with a commit for each title."""
    git(world.upstream, "checkout", "-q", *(["-B", "w", start] if start else ["w"]))
    for title in titles:
        (world.upstream / f"{title}.txt").write_text(f"{title}\n")
        git(world.upstream, "add", "-A")
        git(world.upstream, "commit", "-q", "-m", f"x : {title}")


def hints(err: str) -> list[str]:
    """The import commands that an error offers."""
    return re.findall(r"`hexpatch import ([^`]*)`", err)


def test_a_branch_that_is_there_in_part_has_a_range_for_the_rest(world: World) -> None:
    one_more(world, "a", "b", start="v1")
    world.ok("import", "w")
    ran = world.fails("import", "w", says="all of it is there already")
    assert not hints(ran.err)
    one_more(world, "c", "d")
    before = state(world)
    ran = world.fails("import", "w", says="all of it is there already")
    assert state(world) == before
    (rest,) = hints(ran.err)
    world.ok("import", rest)
    assert [p["title"] for p in world.status()["patches"]] == [f"x : {t}" for t in "abcd"]


def test_a_commit_in_the_middle_that_is_there_is_left_out(world: World) -> None:
    one_more(world, "a", "b", "c", start="v1")
    world.ok("import", "w~2..w~1")
    ran = world.fails("import", "v1..w", says="all of it is there already")
    for range_ in hints(ran.err):
        world.ok("import", range_)
    assert [p["title"] for p in world.status()["patches"]] == [f"x : {t}" for t in "bac"]
    assert len(hints(ran.err)) == 2


def test_without_common_history_the_hint_is_not_what_was_typed(world: World) -> None:
    git(world.upstream, "checkout", "-q", "--orphan", "other")
    git(world.upstream, "commit", "-q", "-m", "other : root")
    ran = world.fails("import", "v1..other", says="no common history")
    assert "`git format-patch -1 other` in your clone" in ran.err
    (world.upstream / "b.txt").write_text("b\n")
    git(world.upstream, "add", "-A")
    git(world.upstream, "commit", "-q", "-m", "other : b")
    ran = world.fails("import", "other", says="no common history")
    assert hints(ran.err) == ["BASE..other"]
    ran = world.fails("import", "v1..other", says="no common history")
    (range_,) = hints(ran.err)
    world.ok("import", range_)
    assert [p["title"] for p in world.status()["patches"]] == ["other : b"]


def test_paths_start_in_the_folder_of_C(world: World, tmp_path: Path) -> None:
    """As for git: mails, the clone and a second checkout."""
    one_more(world, "a", start="v1")
    git(world.upstream, "format-patch", "-q", "-1", "-o", str(world.root / "mails"))
    new = tmp_path / "new"
    new.mkdir()
    at = ("-C", "new")
    assert hexpatch(tmp_path, *at, "init", "--repo", "../upstream", "--base", "v1").code == 0
    ran = hexpatch(tmp_path, *at, "import", "../work/mails/0001-x-a.patch")
    assert ran.code == 0, ran.err
    ran = hexpatch(tmp_path, *at, "import", "no.patch")
    assert "new/no.patch: no such file" in ran.err
    assert hexpatch(tmp_path, *at, "apply", "--into", "tree").code == 0
    assert (new / "tree" / "a.txt").is_file()


def test_an_added_file_that_is_there_in_other_words_is_a_conflict(world: World) -> None:
    """What `git am -3` says of it too; one that is there exactly is no trouble."""
    one_more(world, "a", start="v1")
    world.ok("import", "w")
    git(world.upstream, "checkout", "-q", "-B", "w", "v1")
    (world.upstream / "a.txt").write_text("other\n")
    git(world.upstream, "add", "-A")
    git(world.upstream, "commit", "-q", "-m", "x : other")
    before = state(world)
    world.fails("import", "w", says="a.txt: ")
    assert state(world) == before
    (world.upstream / "a.txt").write_text("a\n")
    (world.upstream / "b.txt").write_text("b\n")
    git(world.upstream, "add", "-A")
    git(world.upstream, "commit", "-q", "--amend", "-m", "x : both")
    world.ok("import", "w")
    world.ok("apply")
    assert trees(world)[-1] == git(world.upstream, "rev-parse", "w^{tree}")
