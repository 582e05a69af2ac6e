"""kill -9 at every point of every command: the old state or the new one, after one command.

A run is killed at its N-th step (a git process, a rename, a removal), for N = 1, 2, .. until the
command ends by itself. After each kill one ordinary command runs, and the world has to be one of
the two known ones.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import CASES, HOST, World, commit, edit, git, hears_ctrl_c, resolve, sound

pytestmark = pytest.mark.slow  # the rest of the suite stays quick without it


def die_at(limit: int, half: bool) -> None:
    """From its N-th step on this process is dead. half: so is the git it has just started."""
    count = 0

    def step() -> bool:
        nonlocal count
        count += 1
        return count >= limit

    def deadly(function: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*args: object, **kwargs: object) -> object:
            if step():
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return wrapped

    start = subprocess.Popen.__init__

    def started(child: subprocess.Popen[bytes], *args: Any, **kwargs: Any) -> None:
        if step():
            if half:
                start(child, *args, **kwargs)
                time.sleep(0.002 * (limit % 3))
                child.kill()
                child.wait()
            os.kill(os.getpid(), signal.SIGKILL)
        start(child, *args, **kwargs)

    subprocess.Popen.__init__ = started  # type: ignore[method-assign]
    for name in ("replace", "unlink", "rename", "rmdir"):
        setattr(os, name, deadly(getattr(os, name)))
    for name in ("unlink", "symlink_to", "write_bytes", "write_text"):
        setattr(Path, name, deadly(getattr(Path, name)))


def killed_at(world: World, step: int, *args: str, half: bool = False) -> bool:
    """Run a command that dies at a step, in a fork of this process; False if it ended before."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            die_at(step, half)
            code = world.run(*args).code
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (-signal.SIGKILL, 0, 3)
    return status == -signal.SIGKILL


def save(world: World, folder: Path) -> None:
    shutil.copytree(world.root, folder, symlinks=True)


def load(world: World, folder: Path) -> None:
    shutil.rmtree(world.root)
    shutil.copytree(folder, world.root, symlinks=True)
    if world.checkout.exists():
        git(world.checkout, "update-index", "-q", "--refresh", check=False)


def survive(
    world: World,
    tmp_path: Path,
    *args: str,
    half: bool = False,
    view: Callable[[World], str] = World.world,
    stride: int = 1,
) -> None:
    """Kill a command at its every step."""
    start = tmp_path / "start"
    shutil.rmtree(start, ignore_errors=True)
    save(world, start)
    old = view(world)
    ran = world.run(*args)
    assert ran.code in (0, 3), ran.err
    new = view(world)
    assert old != new
    seen = {old: 0, new: 0}
    for step in range(1, 10_000, stride):
        load(world, start)
        if not killed_at(world, step, *args, half=half):
            break
        world.ok("status")  # the one ordinary command
        now = view(world)
        assert now in seen, f"in between after {step} steps of {args}"
        seen[now] += 1
        if step % 3 == 0:
            sound(world)
        if now == old and step % 3 == 1:
            # and nothing stands in the way of doing it again
            again = world.run(*args)
            assert again.code == ran.code, f"step {step}: {again.err}"
            assert view(world) == new, f"step {step}"
    assert seen[old] and seen[new], seen


def waits(world: World) -> str:
    """The world while a conflict waits: with the half-merged files."""
    lines = [world.world(), str(world.status()["waiting"])]
    if world.checkout.exists():
        lines.append(world.git("diff"))
        lines.append(world.git("rev-parse", "-q", "--verify", "CHERRY_PICK_HEAD", check=False))
    return "\n".join(lines)


@pytest.fixture
def late_clash(stacked: World) -> World:
    """Upstream's master conflicts with the last patch."""
    edit(stacked.upstream / CASES, "case 20\n", "CASE TWENTY\n")
    git(stacked.upstream, "commit", "-qam", "tests : shout (#4)")
    return stacked


# -- at every step ------------------------------------------------------------------------------

HALF = pytest.mark.parametrize("half", [False, True], ids=["whole", "half"])


def test_a_changed_apply_in_large_steps(stacked: World, tmp_path: Path) -> None:
    edit(stacked.root / "src/htp/kernel.c", "return 1", "return 2")
    survive(stacked, tmp_path, "apply", stride=7)


@pytest.mark.slow
@HALF
def test_the_first_apply(stacked: World, tmp_path: Path, half: bool) -> None:
    shutil.rmtree(stacked.root / ".hexpatch")
    survive(stacked, tmp_path, "apply", half=half)


@pytest.mark.slow
@HALF
def test_a_changed_apply(stacked: World, tmp_path: Path, half: bool) -> None:
    edit(stacked.root / "src/htp/kernel.c", "return 1", "return 2")
    survive(stacked, tmp_path, "apply", half=half)


@pytest.mark.slow
@HALF
def test_refresh(stacked: World, tmp_path: Path, half: bool) -> None:
    edit(stacked.checkout / HOST, "hook a\n", "hook A\n")
    stacked.git("commit", "-qam", "hexagon : louder")
    commit(stacked, "hexagon : more", ggml__x="x\n")
    survive(stacked, tmp_path, "refresh", half=half)


@pytest.mark.slow
@HALF
def test_rebase(stacked: World, tmp_path: Path, half: bool) -> None:
    survive(stacked, tmp_path, "rebase", "--onto", "v2", half=half)


@pytest.mark.slow
@HALF
def test_rebase_that_stops(late_clash: World, tmp_path: Path, half: bool) -> None:
    survive(late_clash, tmp_path, "rebase", "--onto", "master", half=half, view=waits)


@pytest.mark.slow
@HALF
def test_rebase_continue(late_clash: World, tmp_path: Path, half: bool) -> None:
    late_clash.conflicts("rebase", "--onto", "master")
    resolve(late_clash, CASES, "CASE TWENTY\ncase new\n")
    survive(late_clash, tmp_path, "rebase", "--continue", half=half, view=waits)


@pytest.mark.slow
@HALF
def test_rebase_abort(late_clash: World, tmp_path: Path, half: bool) -> None:
    late_clash.conflicts("rebase", "--onto", "master")
    survive(late_clash, tmp_path, "rebase", "--abort", half=half, view=waits)


@pytest.mark.slow
@HALF
def test_undo(stacked: World, tmp_path: Path, half: bool) -> None:
    stacked.ok("rebase", "--onto", "v2")
    survive(stacked, tmp_path, "undo", half=half)


@pytest.mark.slow
def test_undo_of_the_first_apply(world: World, tmp_path: Path) -> None:
    world.ok("apply")
    survive(world, tmp_path, "undo")


@pytest.mark.slow
def test_import(stacked: World, tmp_path: Path) -> None:
    mail = tmp_path / "one.patch"
    mail.write_bytes((stacked.root / "patches/tests-add-a-case.patch").read_bytes())
    stacked.ok("drop", "tests-add-a-case")
    survive(stacked, tmp_path, "import", str(mail))


@pytest.mark.slow
def test_drop(stacked: World, tmp_path: Path) -> None:
    survive(stacked, tmp_path, "drop", "hexagon-add-a-kernel")


@pytest.mark.slow
def test_init(upstream: Path, tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    world = World(root, upstream)
    args = ("init", "--repo", str(upstream), "--base", "v1")
    start = tmp_path / "start"
    save(world, start)
    world.ok(*args)
    new = world.world()
    for step in range(1, 1000):
        load(world, start)
        if not killed_at(world, step, *args):
            break
        world.run("status")
        if not (root / "series.yaml").exists():
            world.ok(*args)
        assert world.world() == new
        sound(world)


@pytest.mark.slow
@HALF
def test_export(stacked: World, tmp_path: Path, half: bool) -> None:
    yaml = stacked.root / "series.yaml"
    group = "groups:\n  - name: hook\n    patches: [hexagon-hook-a]\n"
    yaml.write_text(yaml.read_text().replace("groups: []\n", group))
    stacked.ok("apply")

    def view(world: World) -> str:
        store, top = world.root / ".hexpatch/upstream.git", world.root / ".hexpatch/export"
        refs = git(store, "for-each-ref", "refs/heads", "refs/hexpatch/export")
        shown = [p for p in top.glob("[!.]*/**/*") if p.is_file()]
        sums = [f"{hashlib.sha256(p.read_bytes()).hexdigest()} {p}" for p in sorted(shown)]
        return "\n".join([world.world(), refs, *sums])

    survive(stacked, tmp_path, "export", half=half, view=view)
    edit(stacked.root / "patches/hexagon-hook-a.patch", "+hook a\n", "+hook A\n")
    stacked.ok("apply")
    survive(stacked, tmp_path, "export", half=half, view=view)


# -- at any time --------------------------------------------------------------------------------


@pytest.mark.slow
def test_at_random_times(late_clash: World, tmp_path: Path) -> None:
    start = tmp_path / "start"
    save(late_clash, start)
    worlds = {late_clash.world()}
    late_clash.ok("rebase", "--onto", "v2")
    worlds.add(late_clash.world())
    dice = random.Random(1)
    for _ in range(15):
        load(late_clash, start)
        child = subprocess.Popen(
            [sys.executable, "-m", "hexpatch", "rebase", "--onto", "v2"],
            cwd=late_clash.root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(dice.uniform(0.1, 0.8))
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)  # with its gits: a power cut
        child.wait()
        late_clash.ok("status")
        assert late_clash.world() in worlds
        late_clash.ok("rebase", "--onto", "v2")
        sound(late_clash)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c(stacked: World, tmp_path: Path, number: signal.Signals) -> None:
    """The old state or, after the point of no return, the whole new one; and its exit status."""
    start = tmp_path / "start"
    save(stacked, start)
    worlds = [stacked.world()]
    stacked.ok("rebase", "--onto", "v2")
    worlds.append(stacked.world())
    codes = set()
    for n in range(12):
        load(stacked, start)
        child = subprocess.Popen(
            [sys.executable, "-m", "hexpatch", "rebase", "--onto", "v2"],
            cwd=stacked.root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=hears_ctrl_c,
        )
        time.sleep(0.1 + n * 0.05)
        if child.poll() is None:
            os.killpg(child.pid, number)  # as a terminal does: to all of the group
        _, said = child.communicate()
        codes.add(child.returncode)
        assert child.returncode in (0, 128 + number, -number), said.decode()
        assert not (stacked.root / ".hexpatch/journal.json").exists()
        assert stacked.world() in worlds[child.returncode == 0 :]
        sound(stacked)
    assert codes - {0}


# -- odd journals -------------------------------------------------------------------------------


def die_in_the_middle(world: World, *args: str) -> None:
    """Kill a command when its journal is written and the first file is in place."""
    for step in range(1, 1000):
        assert killed_at(world, step, *args)
        if (world.root / ".hexpatch/journal.json").exists():
            return


@pytest.mark.parametrize("command", ["status", "series", "log", "check", "apply"])
def test_any_command_completes_a_journal(stacked: World, command: str) -> None:
    die_in_the_middle(stacked, "rebase", "--onto", "v2")
    said = stacked.ok(command).err
    assert "completed `hexpatch rebase --onto v2`, which had been killed" in said
    assert (stacked.status()["base"]["name"], stacked.status()["sync"]) == ("v2", "in sync")


def test_edits_after_a_kill_are_kept(stacked: World) -> None:
    die_in_the_middle(stacked, "drop", "hexagon-add-a-kernel")
    kernel = stacked.root / "src/htp/kernel.c"
    if not kernel.exists():
        kernel.parent.mkdir(parents=True)
    kernel.write_text("int mine;\n")
    ran = stacked.ok("status")
    kept = stacked.root / ".hexpatch/rescued/src/htp/kernel.c"
    assert (
        f"src/htp/kernel.c was edited after a run was killed; your version is kept as {kept}"
        in (ran.err)
    )
    assert kept.read_text() == "int mine;\n"
    assert not kernel.exists()


def test_a_journal_whose_objects_are_gone(stacked: World) -> None:
    die_in_the_middle(stacked, "rebase", "--onto", "v2")
    shutil.rmtree(stacked.root / ".hexpatch/upstream.git")
    shutil.rmtree(stacked.checkout)
    ran = stacked.ok("status")
    assert "the files are whole: `hexpatch apply` makes the commits again" in ran.err
    assert stacked.status()["base"]["name"] == "v2"
    stacked.ok("apply", "--locked")
    assert stacked.status()["sync"] == "in sync"


def test_a_journal_that_is_no_journal(stacked: World) -> None:
    (stacked.root / ".hexpatch/journal.json").write_text("{")
    ran = stacked.fails("status", says="journal.json is damaged")
    assert "remove" in ran.err


def test_a_journal_that_cannot_be_completed(
    stacked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was done is taken back; where that can't be done either, looking goes on."""
    from hexpatch import workspace
    from hexpatch.checkout import Checkout
    from hexpatch.errors import HexpatchError

    def fails(*_: object, **__: object) -> None:
        raise HexpatchError("the disk is full")

    before = stacked.world()
    die_in_the_middle(stacked, "rebase", "--onto", "v2")
    monkeypatch.setattr(Checkout, "move", fails)
    with monkeypatch.context() as patched:
        patched.setattr(workspace, "put_back_files", fails)
        for command in ("status", "log", "series"):
            said = stacked.ok(command).err
            assert (
                "warning: an unfinished step can neither be completed nor taken back: "
                "the disk is full\n"
            ) in said
        stacked.fails("apply", says="the disk is full")
    said = stacked.ok("status").err
    assert "`hexpatch rebase --onto v2` was taken back" in said
    assert stacked.world() == before
    sound(stacked)


def test_a_file_that_vanishes_while_it_is_read(
    stacked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hexpatch import stack

    read, fail = stack.read_source, [1]

    def gone(*args: Any, **options: Any) -> Any:
        if fail:
            fail.pop()
            raise FileNotFoundError(2, "No such file", str(stacked.root / "patches/x.patch"))
        return read(*args, **options)

    monkeypatch.setattr(stack, "read_source", gone)
    assert stacked.status()["sync"] == "in sync"
    fail.extend([1, 1])
    stacked.fails("status", says="x.patch went away: the series is being changed by another run")


def test_a_half_done_checkout_is_repaired(stacked: World) -> None:
    """git read-tree died: some files are new, some are not, index.lock is there."""
    die_in_the_middle(stacked, "rebase", "--onto", "v2")
    (stacked.checkout / HOST).write_text("half a file")
    (stacked.checkout / CASES).unlink()
    Path(stacked.git("rev-parse", "--git-path", "index.lock")).write_text("")
    stacked.ok("status")
    assert stacked.git("status", "--porcelain") == ""
    assert stacked.status()["sync"] == "in sync"


def test_a_run_waits_for_a_git_that_outlived_its_parent(stacked: World) -> None:
    die_in_the_middle(stacked, "rebase", "--onto", "v2")
    lock = Path(stacked.git("rev-parse", "--git-path", "index.lock"))
    holder = subprocess.Popen(
        ["sh", "-c", 'exec 9>"$0"; sleep 1.5; rm "$0"', str(lock)], stdin=subprocess.DEVNULL
    )
    while not lock.exists():
        time.sleep(0.01)
    stacked.ok("status")
    assert holder.wait() == 0
    assert stacked.status()["sync"] == "in sync"


def test_locks_of_dead_gits_are_removed(stacked: World) -> None:
    store = stacked.root / ".hexpatch/upstream.git"
    for name in ("config.lock", "packed-refs.lock", "shallow.lock"):
        (store / name).write_text("")
    time.sleep(0.6)
    stacked.ok("rebase", "--onto", "v2")
    assert not list(store.glob("*.lock"))
