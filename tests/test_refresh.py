"""Commits to files: whatever people do with plain git in the checkout is taken over."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import CASES, HOST, World, commit, edit, git

from hexpatch import series

HTP = "ggml/src/ggml-hexagon/htp"
NAMES = ["hexagon-hook-a", "hexagon-add-a-kernel", "tests-add-a-case"]


def names(world: World) -> list[str]:
    return [p["name"] for p in world.ok("series", "--json").json["patches"]]


def patch(world: World, name: str) -> str:
    return (world.root / f"patches/{name}.patch").read_text()


def changed(world: World, before: dict[str, bytes]) -> set[str]:
    """The files that a command has changed, without the lock."""
    after = world.files()
    differ = {n for n in {*before, *after} if before.get(n) != after.get(n)}
    return differ - {"series.lock"}


def todo(world: World, script: str) -> None:
    """`git rebase -i` with the todo list edited by sed."""
    base = world.status()["base"]["commit"]
    world.git("rebase", "-q", "-i", base, GIT_SEQUENCE_EDITOR=f"sed -i -e '{script}'")


def fold(world: World, into: str) -> None:
    """What was edited becomes part of an earlier commit."""
    world.git("commit", "-qa", "--fixup", into)
    base = world.status()["base"]["commit"]
    world.git("rebase", "-q", "-i", "--autosquash", base, GIT_SEQUENCE_EDITOR="true")


def taken(world: World) -> None:
    """refresh, and what it wrote gives the very tree that people committed."""
    tree = world.git("rev-parse", "HEAD^{tree}")
    world.ok("refresh")
    assert world.git("rev-parse", "HEAD^{tree}") == tree
    assert world.status()["sync"] == "in sync"
    files = world.files()
    world.ok("apply")
    world.ok("refresh")
    assert world.files() == files


# -- the daily work -----------------------------------------------------------------------------


def test_amend_changes_one_file(stacked: World) -> None:
    before = stacked.files()
    edit(stacked.checkout / CASES, "case new\n", "case NEW\n")
    stacked.git("commit", "-qa", "--amend", "--no-edit")
    taken(stacked)
    assert changed(stacked, before) == {"patches/tests-add-a-case.patch"}
    assert "+case NEW\n" in patch(stacked, "tests-add-a-case")


def test_an_edit_of_a_new_file_is_a_change_of_its_patch(stacked: World) -> None:
    before = stacked.files()
    edit(stacked.checkout / HTP / "kernel.c", "return 1", "return 2")
    fold(stacked, "HEAD~1")
    said = stacked.ok("refresh").out
    assert changed(stacked, before) == {"src/htp/kernel.c"}
    assert "hexagon-add-a-kernel  changed" in said and "nothing changed" not in said
    assert "hexagon-hook-a" not in said and "tests-add-a-case" not in said


def test_a_new_file_moves_to_another_patch_whole(stacked: World) -> None:
    """To an earlier one and back to the later one."""
    before = stacked.files()
    base = stacked.status()["base"]["commit"]
    kernel = f"{HTP}/kernel.c"
    again = "git commit -q --amend -C @"
    take, leave = f"git checkout -q stack {kernel} && {again}", f"git rm -q {kernel} && {again}"
    for owner, script in (
        ("hexagon-hook-a", f"1a exec {take}"),
        ("hexagon-add-a-kernel", f"1a exec {leave}\n2a exec {take}"),
    ):
        wanted = stacked.git("rev-parse", "HEAD^{tree}")
        stacked.git("rebase", "-q", "-i", base, GIT_SEQUENCE_EDITOR=f"sed -i -e '{script}'")
        assert stacked.git("rev-parse", "HEAD^{tree}") == wanted
        said = stacked.ok("refresh").out
        assert "hexagon-hook-a        changed" in said and "hexagon-add-a-kernel  changed" in said
        listed = {p["name"]: p["files"] for p in stacked.ok("series", "--json").json["patches"]}
        owners = [n for n, files in listed.items() if kernel in [f["path"] for f in files]]
        assert owners == [owner]
        assert stacked.files()["src/htp/kernel.c"] == before["src/htp/kernel.c"]
        assert stacked.status()["sync"] == "in sync"
    assert stacked.files() == before


def test_reword(stacked: World) -> None:
    before = stacked.files()
    stacked.git("commit", "-q", "--amend", "-m", "tests : add a better case\n\nWith a body.")
    taken(stacked)
    assert names(stacked) == NAMES
    assert changed(stacked, before) == {"patches/tests-add-a-case.patch"}
    assert "Subject: [PATCH] tests : add a better case\n\nWith a body.\n---" in patch(
        stacked, "tests-add-a-case"
    )


def test_fixup_and_autosquash(stacked: World) -> None:
    before = stacked.files()
    edit(stacked.checkout / HOST, "hook a\n", "hook A\n")
    fold(stacked, "HEAD~2")
    taken(stacked)
    assert names(stacked) == NAMES
    assert "patches/tests-add-a-case.patch" not in changed(stacked, before)
    assert "+hook A\n" in patch(stacked, "hexagon-hook-a")


def test_a_fixup_left_alone_is_told(stacked: World) -> None:
    edit(stacked.checkout / HOST, "hook a\n", "hook A\n")
    stacked.git("commit", "-qa", "--fixup", "HEAD~2")
    assert "git rebase -i --autosquash" in stacked.ok("refresh").err


def test_reorder(stacked: World) -> None:
    before = stacked.files()
    todo(stacked, "1{h;d};2{G}")
    taken(stacked)
    assert names(stacked) == [NAMES[1], NAMES[0], NAMES[2]]
    assert "patches/tests-add-a-case.patch" not in changed(stacked, before)


def test_split(stacked: World) -> None:
    todo(stacked, "2s/pick/edit/")
    stacked.git("reset", "-q", "HEAD~1")
    stacked.git("add", HOST)
    stacked.git("commit", "-qm", "hexagon : host of the kernel")
    stacked.git("add", "-A")
    stacked.git("commit", "-qm", "hexagon : add a kernel")
    stacked.git("rebase", "--continue")
    taken(stacked)
    assert names(stacked) == [NAMES[0], "hexagon-host-of-the-kernel", NAMES[1], NAMES[2]]
    assert "host thirty" in patch(stacked, "hexagon-host-of-the-kernel")
    assert (stacked.root / "src/htp/kernel.c").exists()


def test_squash(stacked: World) -> None:
    todo(stacked, "3s/pick/fixup/")
    taken(stacked)
    assert names(stacked) == NAMES[:2]
    assert not (stacked.root / "patches/tests-add-a-case.patch").exists()
    assert "+case new\n" in patch(stacked, "hexagon-add-a-kernel")


def test_drop_a_commit_with_an_owned_file(stacked: World) -> None:
    todo(stacked, "2s/pick/drop/")
    ran_before = stacked.files()
    taken(stacked)
    assert names(stacked) == [NAMES[0], NAMES[2]]
    assert {
        "patches/hexagon-add-a-kernel.patch",
        "src/htp/kernel.c",
        "series.yaml",
    } <= changed(stacked, ran_before)


def test_drop_all(stacked: World) -> None:
    stacked.git("reset", "-q", "--hard", "HEAD~3")
    taken(stacked)
    assert names(stacked) == []
    assert set(stacked.files()) == {"series.yaml", "series.lock"}
    commit(stacked, "tests : a note", tests__note="x\n")
    taken(stacked)
    assert names(stacked) == ["tests-a-note"]


@pytest.mark.parametrize("state", ["", "    state: hold\n"])
def test_a_group_that_goes_with_its_last_patch_is_named(stacked: World, state: str) -> None:
    yaml = stacked.root / "series.yaml"
    groups = (
        "groups:\n  - name: hook\n    title: 'hexagon : a hook'\n    patches: [hexagon-hook-a]\n"
    )
    edit(yaml, "groups: []\n", groups)
    if state:
        edit(yaml, "  - name: hexagon-hook-a\n", f"  - name: hexagon-hook-a\n{state}")
    stacked.ok("apply")
    ran = stacked.ok("drop", "hexagon-hook-a")
    said = ran.out + ran.err
    assert said.count("group hook goes with its last patch, and its title `hexagon : a hook`") == 1
    assert "hook" not in yaml.read_text()


def test_a_new_commit_in_the_middle(stacked: World) -> None:
    todo(stacked, "1s/pick/edit/")
    edit(stacked.checkout / "CMakeLists.txt", "cmake 5\n", "cmake five\n")
    stacked.git("commit", "-qam", "cmake : five")
    stacked.git("rebase", "--continue")
    taken(stacked)
    assert names(stacked) == [NAMES[0], "cmake-five", NAMES[1], NAMES[2]]


def test_an_empty_commit(stacked: World) -> None:
    stacked.git("commit", "-q", "--allow-empty", "-m", "tests : nothing yet")
    taken(stacked)
    assert names(stacked) == [*NAMES, "tests-nothing-yet"]


# -- which commit is which patch ----------------------------------------------------------------


def test_two_commits_with_one_title(stacked: World) -> None:
    for n in (40, 60):
        edit(stacked.checkout / CASES, f"case {n}\n", f"case number {n}\n")
        stacked.git("commit", "-qam", "tests : tweak")
    taken(stacked)
    assert names(stacked) == [*NAMES, "tests-tweak", "tests-tweak-2"]
    before = stacked.files()
    # below them something changes, so both have new ids, and still are who they were
    edit(stacked.checkout / HOST, "hook a\n", "hook A\n")
    fold(stacked, "HEAD~4")
    taken(stacked)
    assert {"patches/tests-tweak.patch", "patches/tests-tweak-2.patch"}.isdisjoint(
        changed(stacked, before)
    )
    # swapped, the names go with the content
    todo(stacked, "4{h;d};5{G}")
    taken(stacked)
    assert names(stacked) == [*NAMES, "tests-tweak-2", "tests-tweak"]
    assert "case number 40" in patch(stacked, "tests-tweak")


def test_two_rewords_of_commits_made_in_the_same_second(stacked: World) -> None:
    base = stacked.status()["base"]["commit"]
    stacked.git(
        "rebase", "-q", "-i", base, GIT_SEQUENCE_EDITOR="sed -i s/^pick/reword/", GIT_EDITOR=REWORD
    )
    taken(stacked)
    assert names(stacked) == NAMES
    assert "(reworded)" in patch(stacked, "hexagon-hook-a")


REWORD = "sed -i '1s/$/ (reworded)/'"


def test_a_dropped_and_a_new_commit_are_two_patches(stacked: World) -> None:
    """All commits of these tests have one author and date; that alone makes no pair."""
    stacked.git("reset", "-q", "--hard", "HEAD~1")
    edit(stacked.checkout / "CMakeLists.txt", "cmake 5\n", "cmake five\n")
    stacked.git("commit", "-qam", "cmake : five")
    taken(stacked)
    assert names(stacked) == [*NAMES[:2], "cmake-five"]


# -- owned files ----------------------------------------------------------------------------------


def test_a_new_file_under_a_mapped_prefix(stacked: World) -> None:
    (stacked.checkout / HTP / "deep").mkdir()
    commit(stacked, "hexagon : another", **{f"{HTP}/deep/more.c": "int more;\n"})
    taken(stacked)
    assert (stacked.root / "src/htp/deep/more.c").read_text() == "int more;\n"
    assert "    files: [src/htp/deep/more.c]\n" in (stacked.root / "series.yaml").read_text()
    assert "more.c" not in patch(stacked, "hexagon-another")


def test_a_new_file_elsewhere_stays_in_its_patch(stacked: World) -> None:
    commit(stacked, "docs : a page", **{"docs/page.md": "hello\n"})
    taken(stacked)
    assert "new file mode 100644" in patch(stacked, "docs-a-page")
    assert not (stacked.root / "src/docs").exists()


def test_an_owned_file_is_edited(stacked: World) -> None:
    before = stacked.files()
    edit(stacked.checkout / HTP / "kernel.c", "return 1", "return 2")
    fold(stacked, "HEAD~1")
    taken(stacked)
    assert changed(stacked, before) == {"src/htp/kernel.c"}


def test_an_owned_file_is_renamed(stacked: World) -> None:
    todo(stacked, "2s/pick/edit/")
    stacked.git("mv", f"{HTP}/kernel.c", f"{HTP}/kernels.c")
    stacked.git("commit", "-q", "--amend", "--no-edit")
    stacked.git("rebase", "--continue")
    before = stacked.files()
    taken(stacked)
    assert changed(stacked, before) == {"src/htp/kernel.c", "src/htp/kernels.c", "series.yaml"}
    assert "files: [src/htp/kernels.c]" in (stacked.root / "series.yaml").read_text()


def test_an_owned_file_is_deleted(stacked: World) -> None:
    todo(stacked, "2s/pick/edit/")
    stacked.git("rm", "-q", f"{HTP}/kernel.c")
    stacked.git("commit", "-q", "--amend", "--no-edit")
    stacked.git("rebase", "--continue")
    taken(stacked)
    assert not (stacked.root / "src/htp").exists()
    assert "src/htp/kernel.c" not in (stacked.root / "series.yaml").read_text()


def test_an_owned_file_moves_to_another_patch(stacked: World) -> None:
    todo(stacked, "2s/pick/edit/")
    text = (stacked.checkout / HTP / "kernel.c").read_text()
    stacked.git("rm", "-q", f"{HTP}/kernel.c")
    stacked.git("commit", "-q", "--amend", "--no-edit")
    stacked.git("rebase", "--continue")
    (stacked.checkout / HTP / "kernel.c").write_text(text)
    stacked.git("add", "-A")
    stacked.git("commit", "-q", "--amend", "--no-edit")
    before = stacked.files()
    taken(stacked)
    assert changed(stacked, before) == {"series.yaml"}
    assert (
        "- name: tests-add-a-case\n    files: [src/htp/kernel.c]\n"
        in (stacked.root / "series.yaml").read_text()
    )


def test_an_owned_file_that_two_patches_touch_becomes_hunks_and_back(stacked: World) -> None:
    before = stacked.files()
    edit(stacked.checkout / HTP / "kernel.c", "return 1", "return 2")
    stacked.git("commit", "-qam", "hexagon : a faster kernel")
    taken(stacked)
    assert not (stacked.root / "src/htp").exists()
    assert "new file mode" in patch(stacked, "hexagon-add-a-kernel")
    assert "-    return 1;\n+    return 2;\n" in patch(stacked, "hexagon-a-faster-kernel")
    stacked.git("reset", "-q", "--hard", "HEAD~1")
    taken(stacked)
    assert stacked.files() == before


def test_the_exec_bit(stacked: World) -> None:
    script = stacked.checkout / HTP / "gen.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    (stacked.checkout / "CMakeLists.txt").chmod(0o755)
    stacked.git("add", "-A")
    stacked.git("commit", "-qm", "hexagon : a generator")
    taken(stacked)
    assert (stacked.root / "src/htp/gen.sh").stat().st_mode & 0o111
    assert "new mode 100755" in patch(stacked, "hexagon-a-generator")
    script.chmod(0o644)
    stacked.git("commit", "-qa", "--amend", "--no-edit")
    taken(stacked)
    assert not (stacked.root / "src/htp/gen.sh").stat().st_mode & 0o111


def test_a_symbolic_link_stays_in_its_patch(stacked: World) -> None:
    (stacked.checkout / HTP / "link.c").symlink_to("kernel.c")
    stacked.git("add", "-A")
    stacked.git("commit", "-qm", "hexagon : a link")
    taken(stacked)
    assert "new file mode 120000" in patch(stacked, "hexagon-a-link")


def test_crlf_and_bytes_that_are_no_text(stacked: World) -> None:
    (stacked.checkout / HTP / "dos.c").write_bytes(b"int a;\r\nint b;\r\n")
    (stacked.checkout / "docs.txt").write_bytes(b"caf\xe9\r\nx\ry\nlast")
    (stacked.checkout / "blob.bin").write_bytes(bytes(range(256)))
    stacked.git("add", "-A")
    stacked.git("commit", "-qm", "hexagon : dos")
    taken(stacked)
    assert (stacked.root / "src/htp/dos.c").read_bytes() == b"int a;\r\nint b;\r\n"


def test_an_owned_file_named_like_a_temporary_one(stacked: World) -> None:
    commit(stacked, "hexagon : odd", **{f"{HTP}/odd.tmp": "x\n"})
    taken(stacked)
    assert (stacked.root / "src/htp/odd.tmp").exists()
    stacked.ok("undo")
    assert not (stacked.root / "src/htp/odd.tmp").exists()


# -- what must not change -------------------------------------------------------------------------


def test_comments_in_the_series_survive(stacked: World) -> None:
    path = stacked.root / "series.yaml"
    edit(path, "  - name: hexagon-hook-a\n", "  # the hook\n  - name: hexagon-hook-a  # short\n")
    edit(path, "  - name: tests-add-a-case\n", "  # the test\n  - name: tests-add-a-case\n")
    stacked.ok("apply")
    todo(stacked, "1{h;d};2{G}")
    commit(stacked, "docs : a page", **{"docs/page.md": "hello\n"})
    taken(stacked)
    stacked.ok("rebase", "--onto", "v2")
    text = path.read_text()
    for comment in ("  # the hook\n  - name: hexagon-hook-a  # short\n", "  # the test\n"):
        assert comment in text
    assert text.index("add-a-kernel") < text.index("# the hook") < text.index("# the test")


def test_a_patch_written_by_hand_keeps_its_bytes(stacked: World) -> None:
    """Diffstat, less context, offsets, no index line: it says the same, so it stays."""
    path = stacked.root / "patches/hexagon-hook-a.patch"
    path.write_text(
        "From: Test Person <test@example.org>\n"
        "Date: Tue, 14 Nov 2023 23:13:20 +0100\n"
        "Subject: hexagon : hook a\n\nNeeded by the kernel.\n---\n"
        f" {HOST} | 1 +\n 1 file changed, 1 insertion(+)\n\n"
        f"diff --git a/{HOST} b/{HOST}\n--- a/{HOST}\n+++ b/{HOST}\n"
        "@@ -14,2 +14,3 @@ odd\n host 10\n+hook a\n host 11\n"
    )
    stacked.ok("apply")
    before = stacked.files()
    assert "nothing changed" in stacked.ok("refresh").out
    edit(stacked.checkout / CASES, "case new\n", "case NEW\n")
    stacked.git("commit", "-qa", "--amend", "--no-edit")
    taken(stacked)
    assert changed(stacked, before) == {"patches/tests-add-a-case.patch"}
    stacked.ok("rebase", "--onto", "v2")
    assert path.read_bytes() == before["patches/hexagon-hook-a.patch"]


def test_user_settings_of_git_do_not_matter(stacked: World) -> None:
    config = Path.home() / ".gitconfig"
    before = stacked.files()
    with config.open("a") as handle:
        handle.write(
            "[core]\n\tautocrlf = true\n[diff]\n\tnoprefix = true\n\tmnemonicPrefix = true\n"
            "\tcontext = 1\n[commit]\n\tgpgSign = true\n[apply]\n\twhitespace = fix\n"
        )
    stacked.ok("apply")
    stacked.ok("refresh")
    assert stacked.files() == before


# -- what is refused ------------------------------------------------------------------------------


def test_a_merge_is_refused_by_name(stacked: World) -> None:
    stacked.git("switch", "-q", "-c", "side", "HEAD~1")
    commit(stacked, "docs : a page", **{"docs/page.md": "hello\n"})
    stacked.git("switch", "-q", "stack")
    stacked.git("merge", "-q", "--no-ff", "-m", "Merge the side", "side")
    before = stacked.files()
    ran = stacked.fails("refresh", says="`Merge the side` is a merge")
    assert "git rebase" in ran.err
    assert stacked.files() == before


def test_a_commit_without_message(stacked: World) -> None:
    before = stacked.files()
    page = stacked.checkout / "docs" / "page.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text("hello\n")
    stacked.git("add", "-A")
    stacked.git("commit", "-q", "--allow-empty-message", "-m", "")
    ran = stacked.fails("refresh", says="has no message; a patch needs a title")
    assert "git commit --amend" in ran.err
    assert stacked.files() == before


def test_a_stack_that_is_not_on_the_base(stacked: World) -> None:
    stacked.git("fetch", "-q", str(stacked.upstream), "v2")
    stacked.git("reset", "-q", "--hard", "FETCH_HEAD")
    commit(stacked, "docs : a page", **{"docs/page.md": "hello\n"})
    before = stacked.files()
    stacked.git("checkout", "-q", "--orphan", "alone")
    stacked.git("commit", "-qm", "alone")
    stacked.git("switch", "-q", "-C", "stack")
    stacked.fails("refresh", says="not built on the base")
    assert stacked.files() == before
    stacked.ok("apply", "--force")
    assert stacked.status()["sync"] == "in sync"


def test_uncommitted_changes(stacked: World) -> None:
    edit(stacked.checkout / CASES, "case new\n", "case NEW\n")
    stacked.fails("refresh", says=f"uncommitted changes: {CASES}")


def test_a_detached_head_is_not_the_stack(stacked: World) -> None:
    before = stacked.files()
    stacked.git("checkout", "-q", "HEAD~2")
    ran = stacked.fails("refresh", says="not on branch stack")
    assert "git switch stack" in ran.err
    assert stacked.files() == before
    stacked.git("switch", "-q", "stack")
    stacked.ok("refresh")
    stacked.git("checkout", "-q", "--detach")  # the same commit: no difference
    stacked.ok("refresh")
    assert stacked.files() == before


def test_another_branch_is_not_the_stack(stacked: World) -> None:
    before = stacked.files()
    stacked.git("switch", "-q", "-c", "topic", "HEAD~1")
    commit(stacked, "docs : a page", **{"docs/page.md": "hello\n"})
    stacked.fails("refresh", says="is on branch topic, not on branch stack")
    assert stacked.files() == before
    stacked.git("switch", "-q", "-C", "stack")
    taken(stacked)
    assert names(stacked) == [*NAMES[:2], "docs-a-page"]


def test_files_that_were_edited_are_not_overwritten(stacked: World) -> None:
    edit(stacked.root / "src/htp/kernel.c", "return 1", "return 2")
    stacked.fails("refresh", says="the series' files have changed since the last apply")
    made = commit(stacked, "docs : a page", **{"docs/page.md": "hello\n"})
    ran = stacked.fails("refresh", says="the series' files have changed")
    assert "`hexpatch apply --force`" in ran.err
    stacked.ok("apply", "--force")
    stacked.git("cherry-pick", made)
    taken(stacked)
    assert names(stacked) == [*NAMES, "docs-a-page"]
    assert "return 2" in (stacked.root / "src/htp/kernel.c").read_text()


def test_new_leaves_what_was_not_staged(stacked: World) -> None:
    edit(stacked.checkout / CASES, "case 60\n", "case sixty\n")
    stacked.git("add", CASES)
    edit(stacked.checkout / HOST, "host 5\n", "host five\n")
    stacked.ok("new", "sixty", "-m", "tests : sixty")
    assert stacked.git("status", "--porcelain") == f"M {HOST}"
    assert "host five" in (stacked.checkout / HOST).read_text()
    assert "host five" not in patch(stacked, "sixty")


@pytest.mark.parametrize("how", ["new", "refresh"])
def test_a_commit_says_its_group_and_that_it_is_private(stacked: World, how: str) -> None:
    for name, trailer in (("sixty", "Topic: cases"), ("seventy", "Export: no")):
        (stacked.checkout / name).write_text("x\n")
        stacked.git("add", name)
        if how == "new":
            stacked.ok("new", name, "-m", f"tests : {name}\n\n{trailer}")
        else:
            stacked.git("commit", "-qm", f"{name}\n\n{trailer}")
    if how == "refresh":
        stacked.ok("refresh")
    found = series.load(stacked.root)
    assert [(g.name, g.patches) for g in found.groups] == [("cases", ("sixty",))]
    assert (found.patch("sixty").state, found.patch("seventy").state) == ("draft", "private")


def test_without_a_checkout(world: World) -> None:
    world.fails("refresh", says="run `hexpatch apply`")


def test_in_a_versioned_folder_git_status_stays_clean(stacked: World) -> None:
    git(stacked.root, "init", "-q")
    git(stacked.root, "add", "-A")
    git(stacked.root, "commit", "-qm", "series")
    stacked.ok("apply")
    stacked.ok("refresh")
    done = subprocess.run(
        ["git", "status", "--porcelain"], cwd=stacked.root, capture_output=True, check=True
    )
    assert done.stdout == b""


@pytest.mark.parametrize("how", ["rebase", "reset"])
def test_upstream_s_own_commits_are_no_patches(stacked: World, how: str) -> None:
    stacked.ok("apply")
    before = stacked.world()
    theirs = git(stacked.upstream, "rev-parse", "v2")
    tip = stacked.git("rev-parse", "HEAD")
    if how == "rebase":
        stacked.git("rebase", "-q", theirs)
    else:
        stacked.git("reset", "-q", "--hard", theirs)
    ran = stacked.run("refresh")
    assert ran.code == 1
    assert theirs[:9] in ran.err
    assert f"hexpatch rebase --onto {theirs[:9]}" in ran.err
    if how == "rebase":  # the way that the message names
        stacked.git("rebase", "-q", "--onto", "hexpatch/base", theirs[:9])
        stacked.ok("refresh")
        stacked.ok("rebase", "--onto", theirs[:9])
        assert stacked.status()["base"]["tree"] == git(stacked.upstream, "rev-parse", "v2^{tree}")
    else:
        stacked.git("reset", "-q", "--hard", tip)
        stacked.ok("refresh")
        assert stacked.world() == before
