"""kill -9 at every point of every command: the old state or the new one, after one command.

A wrapper kills the process at its N-th step (a git process, a rename, a removal), for N = 1, 2,
.. until the command ends by itself. After each kill one ordinary command runs, and the world has
to be one of the two known ones.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import World, commit, edit, git

HOST = "ggml/src/ggml-hexagon/ggml-hexagon.cpp"
CASES = "tests/test-backend-ops.cpp"

# argv: the step to die at, "git" to let git processes die half-way too, then the command line
WRAPPER = """
import os, signal, sys, subprocess
from pathlib import Path
limit, half = int(sys.argv[1]), sys.argv[2] == "half"
count = 0

def at_step(function):
    def wrapped(*args, **kwargs):
        global count
        count += 1
        if count >= limit:
            if half and function is popen:
                child = function(*args, **kwargs)
                os.kill(child.pid, signal.SIGKILL)
                child.wait()
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return wrapped

popen = subprocess.Popen.__init__
def counted(self, *args, **kwargs):
    global count
    count += 1
    if count >= limit:
        if half:
            popen(self, *args, **kwargs)
            self.kill() if count % 2 else None
            if not count % 2:
                os.sched_yield()
                self.kill()
            self.wait()
        os.kill(os.getpid(), signal.SIGKILL)
    popen(self, *args, **kwargs)
subprocess.Popen.__init__ = counted
for name in ("replace", "unlink", "rename", "rmdir"):
    setattr(os, name, at_step(getattr(os, name)))
for name in ("replace", "unlink", "rename", "rmdir", "symlink_to", "write_bytes", "write_text"):
    setattr(Path, name, at_step(getattr(Path, name)))

sys.argv = ["hexpatch", *sys.argv[3:]]
from hexpatch.cli import cli
cli()
"""


def killed_at(world: World, step: int, *args: str, half: bool = False) -> bool:
    """Run a command that dies at a step; False if it ended before."""
    argv = [sys.executable, "-c", WRAPPER, str(step), "half" if half else "whole", *args]
    done = subprocess.run(argv, cwd=world.root, capture_output=True, check=False)
    assert done.returncode in (-signal.SIGKILL, 0, 3), done.stderr.decode()
    return done.returncode == -signal.SIGKILL


def sound(world: World) -> None:
    """The store is whole and nothing is left that would stop the next command."""
    store = world.root / ".hexpatch/upstream.git"
    if store.exists():
        git(store, "fsck", "--strict", "--no-dangling")
    assert not list(store.rglob("*.lock"))
    assert not (world.root / ".hexpatch/journal.json").exists()
    if world.checkout.exists():
        world.git("status")


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
) -> int:
    """Kill a command at its every step. Returns the number of steps."""
    start = tmp_path / "start"
    save(world, start)
    old = view(world)
    ran = world.run(*args)
    assert ran.code in (0, 3), ran.err
    new = view(world)
    assert old != new
    seen, step = {old: 0, new: 0}, 0
    while True:
        step += 1
        load(world, start)
        if not killed_at(world, step, *args, half=half):
            break
        world.ok("status")  # the one ordinary command
        now = view(world)
        assert now in seen, f"in between after {step} steps of {args}"
        seen[now] += 1
        sound(world)
        if now == old:
            # and nothing stands in the way of doing it again
            again = world.run(*args)
            assert again.code == ran.code, f"step {step}: {again.err}"
            assert view(world) == new, f"step {step}"
    assert seen[old] and seen[new], seen
    return step


def waits(world: World) -> str:
    """The world while a conflict waits: with the half-merged files."""
    lines = [world.world(), str(world.status()["waiting"])]
    if world.checkout.exists():
        lines.append(world.git("diff"))
        lines.append(world.git("rev-parse", "-q", "--verify", "CHERRY_PICK_HEAD", check=False))
    return "\n".join(lines)


def files_only(world: World) -> str:
    """A world before there was a series has no status."""
    return world.world() if (world.root / "series.yaml").exists() else "nothing"


@pytest.fixture
def clash(stacked: World) -> World:
    """Upstream's master conflicts with the last patch."""
    edit(stacked.upstream / CASES, "case 20\n", "CASE TWENTY\n")
    git(stacked.upstream, "commit", "-qam", "tests : shout (#4)")
    return stacked


def resolve(world: World) -> None:
    file = world.checkout / CASES
    before, rest = file.read_text().split("<<<<<<< upstream\n")
    after = rest.partition(">>>>>>> ")[2].partition("\n")[2]
    file.write_text(before + "CASE TWENTY\ncase new\n" + after)
    world.git("add", CASES)


# -- at every step ------------------------------------------------------------------------------

HALF = pytest.mark.parametrize("half", [False, True], ids=["whole", "half"])
pytestmark = pytest.mark.slow


@HALF
def test_the_first_apply(stacked: World, tmp_path: Path, half: bool) -> None:
    shutil.rmtree(stacked.root / ".hexpatch")
    survive(stacked, tmp_path, "apply", half=half)


@HALF
def test_a_changed_apply(stacked: World, tmp_path: Path, half: bool) -> None:
    edit(stacked.root / "src/htp/kernel.c", "return 1", "return 2")
    survive(stacked, tmp_path, "apply", half=half)


@HALF
def test_refresh(stacked: World, tmp_path: Path, half: bool) -> None:
    edit(stacked.checkout / HOST, "hook a\n", "hook A\n")
    stacked.git("commit", "-qam", "hexagon : louder")
    commit(stacked, "hexagon : more", ggml__x="x\n")
    survive(stacked, tmp_path, "refresh", half=half)


@HALF
def test_rebase(stacked: World, tmp_path: Path, half: bool) -> None:
    survive(stacked, tmp_path, "rebase", "--onto", "v2", half=half)


@HALF
def test_rebase_that_stops(clash: World, tmp_path: Path, half: bool) -> None:
    survive(clash, tmp_path, "rebase", "--onto", "master", half=half, view=waits)


@HALF
def test_rebase_continue(clash: World, tmp_path: Path, half: bool) -> None:
    clash.conflicts("rebase", "--onto", "master")
    resolve(clash)
    survive(clash, tmp_path, "rebase", "--continue", half=half, view=waits)


@HALF
def test_rebase_abort(clash: World, tmp_path: Path, half: bool) -> None:
    clash.conflicts("rebase", "--onto", "master")
    survive(clash, tmp_path, "rebase", "--abort", half=half, view=waits)


@HALF
def test_undo(stacked: World, tmp_path: Path, half: bool) -> None:
    stacked.ok("rebase", "--onto", "v2")
    survive(stacked, tmp_path, "undo", half=half)


def test_undo_of_the_first_apply(world: World, tmp_path: Path) -> None:
    world.ok("apply")
    survive(world, tmp_path, "undo")


def test_import(stacked: World, tmp_path: Path) -> None:
    mail = tmp_path / "one.patch"
    mail.write_bytes((stacked.root / "patches/tests-add-a-case.patch").read_bytes())
    stacked.ok("drop", "tests-add-a-case")
    survive(stacked, tmp_path, "import", str(mail))


def test_drop(stacked: World, tmp_path: Path) -> None:
    survive(stacked, tmp_path, "drop", "hexagon-add-a-kernel")


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


def test_export(stacked: World, tmp_path: Path) -> None:
    """The output folder is not part of the state: the next export makes it whole."""
    yaml = stacked.root / "series.yaml"
    group = "groups:\n  - name: hook\n    patches: [hexagon-hook-a]\n"
    yaml.write_text(yaml.read_text().replace("groups: []\n", group))
    stacked.ok("apply")

    def view(world: World) -> str:
        store = world.root / ".hexpatch/upstream.git"
        refs = git(store, "for-each-ref", "refs/heads", "refs/hexpatch/export")
        return f"{world.world()}\n{refs}"

    def folder() -> dict[str, bytes]:
        top = stacked.root / ".hexpatch/export"
        return {str(p.relative_to(top)): p.read_bytes() for p in top.rglob("*") if p.is_file()}

    start = tmp_path / "start"
    save(stacked, start)
    old = view(stacked)
    stacked.ok("export")
    new, files = view(stacked), folder()
    assert files
    for step in range(1, 1000):
        load(stacked, start)
        if not killed_at(stacked, step, "export"):
            break
        stacked.ok("status")
        assert view(stacked) in (old, new)
        sound(stacked)
        stacked.ok("export")
        assert (view(stacked), folder()) == (new, files)


# -- at any time --------------------------------------------------------------------------------


def test_at_random_times(clash: World, tmp_path: Path) -> None:
    start = tmp_path / "start"
    save(clash, start)
    worlds = {clash.world()}
    clash.ok("rebase", "--onto", "v2")
    worlds.add(clash.world())
    dice = random.Random(1)
    for _ in range(15):
        load(clash, start)
        child = subprocess.Popen(
            [sys.executable, "-m", "hexpatch", "rebase", "--onto", "v2"],
            cwd=clash.root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(dice.uniform(0.1, 0.8))
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)  # with its gits: a power cut
        child.wait()
        clash.ok("status")
        assert clash.world() in worlds
        clash.ok("rebase", "--onto", "v2")
        sound(clash)


def test_ctrl_c(stacked: World, tmp_path: Path) -> None:
    """The old state or, after the point of no return, the whole new one; and exit status 130."""
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
        )
        time.sleep(0.25 + n * 0.05)
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to all of the group
        _, said = child.communicate()
        codes.add(child.returncode)
        assert child.returncode in (0, 130), said.decode()
        assert not (stacked.root / ".hexpatch/journal.json").exists()
        assert stacked.world() == worlds[1] if child.returncode == 0 else stacked.world() in worlds
        sound(stacked)
    assert 130 in codes
