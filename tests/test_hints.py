"""What an error tells to type works when typed; what a person can cause is never a traceback."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import CASES, HOST, World, commit, edit, git, hexpatch

from hexpatch import changelog


def hints(text: str) -> list[str]:
    """The commands in an error's hint."""
    return re.findall(r"`([^`]+)`", text.split("hint: ")[1].split("\n", maxsplit=1)[0])


def typed(world: World, command: str) -> None:
    """A person types it, in the checkout."""
    if command.startswith("hexpatch "):
        world.ok(*command.split()[1:])
        return
    env = {**os.environ, "GIT_EDITOR": "true"}
    subprocess.run(["sh", "-c", command], cwd=world.checkout, env=env, check=True)


# -- the checkout -------------------------------------------------------------------------------


def half_done(world: World, how: str) -> None:
    """A git command that stopped in the checkout."""
    world.git("checkout", "-q", "-b", "mine", "HEAD~3")
    edit(world.checkout / HOST, "host 10\n", "host ten\n")
    world.git("commit", "-qam", "hexagon : ten")
    world.git("checkout", "-q", "stack")
    if how == "am":
        world.git("format-patch", "-q", "-o", "..", "mine~..mine")
        world.git("am", "../0001-hexagon-ten.patch", check=False)
    elif how == "revert":
        commit(world, "hexagon : again", note="x\n")
        edit(world.checkout / HOST, "hook a\n", "hook b\n")
        world.git("commit", "-qam", "hexagon : b")
        world.git("revert", "--no-edit", "HEAD~4", "HEAD~1", check=False)
        world.git("checkout", "-f", "HEAD", "--", ".")
        edit(world.checkout / HOST, "hook b\n", "hook c\n")
        world.git("commit", "-qam", "hexagon : c")
    elif how == "rebase":
        world.git("rebase", "mine", check=False)
    else:
        world.git(how, "mine", check=False)


@pytest.mark.parametrize("how", ["am", "revert", "rebase", "merge", "cherry-pick"])
def test_a_git_command_that_is_half_done(stacked: World, how: str) -> None:
    half_done(stacked, how)
    ran = stacked.fails("refresh", says=f"a `git {how}` is not finished")
    (abort,) = (h for h in hints(ran.err) if h.endswith("--abort"))
    assert abort == f"git {how} --abort"
    if how == "revert":  # git keeps the commit that was made meanwhile
        stacked.git("revert", "--quit")
    else:
        typed(stacked, abort)
    assert "is not finished" not in stacked.status()["sync"]


@pytest.mark.parametrize("how", ["am", "rebase", "merge", "cherry-pick"])
def test_new_in_a_git_command_that_is_half_done(stacked: World, how: str) -> None:
    half_done(stacked, how)
    before = stacked.files()
    conflict = "" if how == "am" else "UU "
    assert stacked.git("status", "--porcelain").startswith(conflict)
    ran = stacked.fails("new", "more", "-m", "hexagon : more", says=f"a `git {how}` is not")
    (abort,) = (h for h in hints(ran.err) if h.endswith("--abort"))
    if how == "cherry-pick":
        typed(stacked, abort)
        stacked.git("cherry-pick", "-n", "mine", check=False)  # a conflict, and no command waits
        ran = stacked.fails("new", "more", "-m", "hexagon : more", says=f"has conflicts: {HOST}")
        (abort,) = (h for h in hints(ran.err) if h.endswith("--merge"))
    assert stacked.files() == before
    typed(stacked, abort)
    assert stacked.status()["sync"] == "in sync"


def test_new_takes_what_a_revert_without_commit_leaves(stacked: World) -> None:
    commit(stacked, "hexagon : note", note="x\n")
    stacked.ok("refresh")
    stacked.git("revert", "-n", "HEAD")
    stacked.ok("new", "back", "-m", "hexagon : no note")
    assert stacked.status()["sync"] == "in sync"


def test_a_stash_that_does_not_fit(stacked: World) -> None:
    edit(stacked.checkout / HOST, "host 45\n", "host forty\n")
    stacked.git("stash", "-q")
    edit(stacked.checkout / HOST, "host 45\n", "host 45!\n")
    stacked.git("commit", "-qam", "hexagon : thirty")
    stacked.ok("refresh")
    stacked.git("stash", "pop", check=False)
    before = stacked.files()
    for args in (("apply",), ("refresh",), ("new", "x", "-m", "x : x"), ("undo",)):
        ran = stacked.fails(*args, says=f"has conflicts: {HOST}")
    assert stacked.files() == before
    assert "has conflicts" in stacked.status()["sync"]
    add, drop = hints(ran.err)
    assert add == "git add"
    typed(stacked, drop)
    assert stacked.status()["sync"] == "in sync"


def test_continue_without_the_checkout(stacked: World) -> None:
    before = stacked.world()
    edit(stacked.upstream / HOST, "host 30\n", "host 30!\n")
    git(stacked.upstream, "commit", "-qam", "hexagon : thirty")
    stacked.conflicts("rebase", "--onto", "master")
    shutil.rmtree(stacked.checkout)
    ran = stacked.fails("rebase", "--continue", says="hexagon-add-a-kernel is gone")
    (hint,) = hints(ran.err)
    typed(stacked, hint)
    assert stacked.world() == before


def test_branch_stack_in_another_work_tree(stacked: World, tmp_path: Path) -> None:
    """git would not switch to it; a move of the branch would look like edits there."""
    stacked.git("checkout", "-q", "--detach")
    stacked.git("worktree", "add", "-q", str(tmp_path / "my tree"), "stack")
    edit(stacked.checkout / HOST, "host 45\n", "host 45!\n")
    commands = [("new", "x", "-m", "x : x"), ("drop", "tests-add-a-case"), ("undo",), ("apply",)]
    for command in commands:
        ran = stacked.fails(*command, says=f"branch stack is checked out in {tmp_path}/my tree too")
    (free,) = hints(ran.err)
    typed(stacked, free)
    for command in commands[:3]:
        stacked.ok(*command)
    assert git(tmp_path / "my tree", "status", "--porcelain") == ""
    shutil.rmtree(tmp_path / "my tree")
    stacked.git("checkout", "-q", ".")
    stacked.ok("apply")


def test_a_merge_in_the_checkout(stacked: World) -> None:
    stacked.git("checkout", "-q", "-b", "side", "hexpatch/base")
    commit(stacked, "tests : side", tests__side="x\n")
    stacked.git("checkout", "-q", "stack")
    stacked.git("merge", "-q", "--no-edit", "side")
    ran = stacked.fails("refresh", says="is a merge")
    (rebase,) = hints(ran.err)
    typed(stacked, rebase)
    stacked.ok("refresh")
    assert [p["title"] for p in stacked.status()["patches"]][-1] == "tests : side"


def test_commits_on_nothing_of_upstream(stacked: World) -> None:
    stacked.git("checkout", "-q", "--orphan", "mine", "hexpatch/base")
    stacked.git("commit", "-q", "-m", "x : all")
    root = stacked.git("rev-parse", "HEAD")
    stacked.git("rm", "-q", CASES)
    stacked.git("commit", "-q", "-m", "tests : none")
    stacked.git("checkout", "-q", "-B", "stack")
    ran = stacked.fails("refresh", says="is not built on the base")
    move, _ = hints(ran.err)
    typed(stacked, move.replace("COMMIT", root))
    stacked.ok("refresh")
    assert [p["title"] for p in stacked.status()["patches"]] == ["tests : none"]


def test_branch_stack_was_renamed(stacked: World) -> None:
    for chosen in (0, 1):
        stacked.git("branch", "-m", "stack", f"mine{chosen}")
        ran = stacked.fails("refresh", says=f"is on branch mine{chosen}, not on branch stack")
        assert len(hints(ran.err)) == 2
        typed(stacked, hints(ran.err)[chosen])
        assert stacked.status()["sync"] == "in sync"


def test_replaced_objects_are_not_looked_at(stacked: World) -> None:
    """Only git in the checkout shows them: the stack is what the commits say."""
    before = stacked.world()
    stacked.git("replace", "HEAD", "HEAD~3")
    git(stacked.upstream, "replace", "v1", "v2")
    assert stacked.status()["sync"] == "in sync"
    stacked.ok("refresh")
    stacked.ok("rebase", "--onto", "v2")
    stacked.ok("undo")
    stacked.git("replace", "-d", stacked.git("rev-parse", "stack"))
    assert stacked.world() == before


# -- upstream's commits -------------------------------------------------------------------------


@pytest.mark.parametrize("rev", ["^v2", "^v2^0", "v1...v2", "v2^!"])
def test_what_git_takes_for_more_than_a_commit(stacked: World, rev: str) -> None:
    for command in (("rebase", "--onto"), ("check", "--onto"), ("apply", "--onto"), ("import",)):
        stacked.fails(*command, rev, says="no upstream revision '")


@pytest.mark.parametrize("rev", ["treetag", "annotated", "v1^{tree}", "v1:README.md"])
def test_a_name_of_something_else_than_a_commit(stacked: World, rev: str) -> None:
    git(stacked.upstream, "tag", "treetag", "v1^{tree}")
    git(stacked.upstream, "tag", "-a", "-m", "x", "annotated", "v1^{tree}")
    kind = "blob" if ":" in rev else "tree"
    ran = stacked.fails("rebase", "--onto", rev, says=f"{rev!r} is a {kind} in {stacked.upstream}")
    assert "did you mean" not in ran.err


def test_a_clone_with_other_object_names(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256", "up")
    (tmp_path / "s").mkdir()
    ran = hexpatch(tmp_path / "s", "init", "--repo", "../up")
    assert ran.code == 1
    assert "names its objects by SHA256, which hexpatch does not support" in ran.err


def test_a_clone_whose_lender_is_gone(stacked: World, tmp_path: Path) -> None:
    """`git clone --shared`, and the other folder was moved away."""
    git(tmp_path, "clone", "-q", "--shared", str(stacked.upstream), "shared")
    series = stacked.root / "series.yaml"
    edit(series, "repo: ../upstream", "repo: ../shared")
    stacked.ok("apply")
    shutil.rmtree(stacked.upstream)
    lender = stacked.upstream / ".git" / "objects"
    ran = stacked.fails("rebase", "--onto", "v2", says=f"has objects in {lender}, which is not")
    ran = stacked.fails("check", "--onto", "v2", says="'v2' is known, but what it names is in no")
    assert "did you mean" not in ran.err
    (fsck,) = hints(ran.err)
    assert fsck == f"git -C {tmp_path}/shared fsck"


def test_a_clone_that_is_gone(stacked: World) -> None:
    """What the hint says is what helps: only `init` has --repo."""
    away = stacked.upstream.rename(stacked.upstream.with_name("away"))
    ran = stacked.fails("rebase", "--onto", "v2", says="is not a git repository")
    _, setting, above = hints(ran.err)
    assert (setting, above) == ("repo: PATH", "upstream:")
    edit(stacked.root / "series.yaml", "repo: ../upstream", setting.replace("PATH", str(away)))
    stacked.ok("rebase", "--onto", "v2")


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--base=", "the upstream commit is an empty text"),
        ("--base=-1", "no upstream revision '-1' is known"),
        ("--branch=", "upstream.branch ''"),
        ("--src=x=../a", "src: x: ../a leads out"),
    ],
)
def test_init_blames_no_file_that_is_not_there(
    tmp_path: Path, upstream: Path, option: str, text: str
) -> None:
    (tmp_path / "s").mkdir()
    ran = hexpatch(tmp_path / "s", "--offline", "init", "--repo", str(upstream), option)
    assert ran.code in (1, 2)
    assert f"error: {text}" in ran.err
    assert "series.yaml" not in ran.err
    assert not list((tmp_path / "s").iterdir())


# -- files --------------------------------------------------------------------------------------


HOOKS = "groups:\n  - name: hooks\n    patches: [hexagon-hook-a]\n"


def test_a_name_that_nobody_has(stacked: World) -> None:
    """Where no name is near, the error says where the names are."""
    ran = stacked.usage_error("drop", "zzz", says="no patch named zzz")
    (command,) = hints(ran.err)
    assert "hexagon-hook-a" in stacked.ok(*command.split()[1:]).out
    assert "series.yaml has no groups" in stacked.usage_error("export", "zzz").err
    ran = stacked.ok("export")
    assert "no groups in series.yaml: nothing to export" in ran.err
    edit(stacked.root / "series.yaml", "groups: []\n", HOOKS)
    assert "known: hooks" in stacked.usage_error("export", "zzz").err


def test_a_group_on_hold_is_a_group(stacked: World) -> None:
    """Then there is nothing to export, but not for want of groups."""
    name = "name: hexagon-hook-a\n"
    edit(stacked.root / "series.yaml", name, f"{name}    state: hold\n")
    edit(stacked.root / "series.yaml", "groups: []\n", HOOKS)
    stacked.ok("apply")
    ran = stacked.ok("export")
    assert "left out: hooks: hexagon-hook-a is on hold" in ran.err
    assert ran.err.endswith("\nnothing to export\n")


def test_init_where_a_series_is(stacked: World) -> None:
    ran = stacked.fails("init", says="has a series.yaml already")
    (command,) = hints(ran.err)
    typed(stacked, command)


def test_a_patch_file_that_is_gone(stacked: World) -> None:
    """The log of operations has it; a series kept in git has it without the log, too."""
    before = stacked.files()
    gone = [stacked.root / name for name in before if name.startswith(("patches/h", "src/"))]
    assert len(gone) == 3
    for file in gone:
        file.unlink()
    ran = stacked.fails("apply", says="does not exist")
    typed(stacked, hints(ran.err)[0])
    assert stacked.files() == before
    git(stacked.root, "init", "-q")
    git(stacked.root, "add", "-A")
    git(stacked.root, "commit", "-qm", "series")
    shutil.rmtree(stacked.root / ".hexpatch")
    for file in gone:
        file.unlink()
    ran = stacked.fails("status", says="does not exist")
    stacked.checkout.mkdir(parents=True)
    typed(stacked, hints(ran.err)[0])
    assert stacked.files() == before
    shutil.rmtree(stacked.root / ".git")
    shutil.rmtree(stacked.root / ".hexpatch")
    gone[0].unlink()
    stacked.fails("check", says="take its entry out of series.yaml")


def in_the_way(world: World, what: str) -> Path:
    """Something where `hexpatch new mine` would write."""
    path = world.root / "patches/mine.patch"
    if what == "a folder":
        path.mkdir()
    elif what == "a folder with files":
        path.mkdir()
        (path / "x").write_text("x\n")
    else:
        path = world.root / "src/htp/kernels"
        path.write_text("x\n") if what == "a file" else path.symlink_to("nowhere")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("what", ["a folder", "a folder with files", "a file", "a dead link"])
def test_what_stands_where_a_file_goes(stacked: World, what: str) -> None:
    """Refused before anything starts, and nothing is left pending."""
    path = in_the_way(stacked, what)
    kernel = stacked.checkout / "ggml/src/ggml-hexagon/htp/kernels/k.c"
    kernel.parent.mkdir()
    kernel.write_text("k\n")
    stacked.git("add", "-A")
    before = stacked.world()
    ran = stacked.fails("new", "mine", "-m", "hexagon : mine", says=f"{path} is in the way")
    assert f"hint: move {path} away" in ran.err
    assert not (stacked.root / ".hexpatch/journal.json").exists()
    assert stacked.world() == before
    path.rename(stacked.root / "away")
    stacked.ok("new", "mine", "-m", "hexagon : mine")


@pytest.mark.parametrize("out", ["/proc/x", "/dev/null/x", "link/x", "loop/x", "/proc/self/mem"])
def test_a_place_that_nobody_can_write_to(stacked: World, out: str) -> None:
    series = stacked.root / "series.yaml"
    group = "groups:\n  - name: kernel\n    patches: [hexagon-add-a-kernel]\n"
    edit(series, "groups: []\n", group)
    stacked.ok("apply")
    (stacked.root / "link").symlink_to("/proc/x")
    (stacked.root / "loop").symlink_to("loop")
    ran = stacked.fails("export", "--out", out)
    assert re.search(r"^hint: ", ran.err, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["status", "apply", "check --fresh", "log", "init --repo ../upstream"]
)
def test_without_git(stacked: World, command: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    folder = stacked.root
    if command.startswith("init"):
        folder = tmp_path / "fresh"
        folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "hexpatch", *command.split()],
        cwd=folder,
        env={**os.environ, "PATH": str(empty)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "error: git is needed" in done.stderr
    assert "Traceback" not in done.stderr


# -- the repository that holds the series -------------------------------------------------------


def test_a_repository_of_another_user(stacked: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared folder, or a container that runs as root."""
    git(stacked.root, "init", "-q")
    git(stacked.root, "add", "series.yaml", "patches", "src")
    git(stacked.root, "commit", "-q", "-m", "one")
    plain = changelog.environment

    def elsewhere(**how: bool) -> dict[str, str]:
        return {**plain(**how), "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}

    monkeypatch.setattr(changelog, "environment", elsewhere)
    ran = stacked.fails("changelog", "--since", "HEAD", says="another user owns")
    (trust,) = hints(ran.err)
    typed(stacked, trust)
    stacked.ok("changelog", "--since", "HEAD")


def test_an_import_again(stacked: World) -> None:
    """The way out names what is new, also behind an empty commit that is there."""
    git(stacked.upstream, "checkout", "-q", "-b", "mine", "v1")
    for number in (1, 2, 3):
        if number == 2:
            git(stacked.upstream, "commit", "-q", "--allow-empty", "-m", "tests : nothing")
        (stacked.upstream / "tests" / f"n{number}.cpp").write_text("x\n")
        git(stacked.upstream, "add", "-A")
        git(stacked.upstream, "commit", "-q", "-m", f"tests : add {number}")
    stacked.ok("import", "v1..mine~")
    ran = stacked.fails("import", "v1..mine", says="all of it is there already")
    (again,) = hints(ran.err)
    typed(stacked, again)
    titles = [p["title"] for p in stacked.status()["patches"]]
    assert titles[3:] == ["tests : add 1", "tests : nothing", "tests : add 2", "tests : add 3"]


# -- export -------------------------------------------------------------------------------------


def test_a_branch_with_commits_of_somebody(stacked: World) -> None:
    edit(
        stacked.root / "series.yaml",
        "groups: []",
        'groups:\n  - name: hook\n    title: "hexagon : add a hook"\n    patches: [hexagon-hook-a]',
    )
    stacked.ok("export")
    stacked.git("switch", "-q", "hook")
    mine = commit(stacked, "hexagon : mine", note="x\n")
    stacked.git("switch", "-q", "stack")
    ran = stacked.fails("export", says="branch hook has other commits than the last export")
    (rename,) = hints(ran.err)
    assert f"the commits of branch hook are kept as {mine[:12]}" in stacked.ok("export", "-f").err
    stacked.ok("undo")
    typed(stacked, rename)
    assert stacked.git("rev-parse", "NAME") == mine
    assert "kept as" not in stacked.ok("export").err
