"""Field cases about what is around the tool: hostile settings, shallow clones, huge patches."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import FIELD, World, git, hexpatch
from fieldworld import inputs, listed, patches, started, trees

# -- 17 -------------------------------------------------------------------------------------


def fingerprint(folder: Path) -> str:
    """All files below a folder, with their bytes."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


STEPS = (
    ("init", "--repo", "../up", "--base", "base"),
    ("import", *(str(p) for p in patches("17"))),
    ("undo",),
    ("import", *(str(p) for p in patches("17"))),
    ("series", "--json"),
    ("series",),
    ("status", "--json"),
    ("check", "--json"),
    ("check", "--onto", "base~0", "--json"),
    ("apply", "--json"),
    ("refresh",),
    ("rebase", "--onto", "main", "--json"),
    ("export", "--json"),
    ("changelog",),
)


class Hostile:
    def __init__(self, root: Path, upstream: Path) -> None:
        self.root = root
        self.upstream = upstream
        self.env = Path(f"{upstream}.env")
        config = (self.env / "gitconfig").read_text()
        self.config = config
        self.decoy = fingerprint(self.env / "decoy")
        self.own = (upstream / ".git" / "config").read_text()

    def go(self, name: str, **env: str) -> list[tuple[int, object, object]]:
        """Every step in a fresh workspace; what each of them said."""
        folder = self.root / f"run-{name}"
        folder.mkdir()
        said: list[tuple[int, object, object]] = []
        with pytest.MonkeyPatch.context() as patched:
            for key, value in env.items():
                patched.setenv(key, value)
            for step in STEPS:
                ran = hexpatch(folder, *step)
                out = [x.replace(folder.name, "RUN") for x in (ran.out, ran.err)]
                said.append((ran.code, *out))
                assert "\x1b" not in ran.out
        for file in ("series.yaml", "series.lock"):
            said.append((0, (folder / file).read_bytes(), b""))
        for patch in sorted((folder / "patches").glob("*.patch")):
            said.append((0, patch.read_bytes(), patch.name.encode()))
        self.untouched()
        self.right(folder)
        return said

    def right(self, folder: Path) -> None:
        """Trees and messages are those of want.txt, unsigned."""
        checkout = folder / ".hexpatch" / "llama.cpp"
        tree = git(checkout, "rev-parse", "HEAD^{tree}")
        log = subprocess.run(
            ["git", "-C", checkout, "log", "--format=%B", "refs/hexpatch/base.."],
            capture_output=True,
            check=True,
        ).stdout
        sha = hashlib.sha1(b"blob %d\0" % len(log) + log).hexdigest()
        assert f"{tree} {sha}" == (inputs("17") / "want.txt").read_text().strip()
        assert "gpgsig" not in git(checkout, "cat-file", "commit", "HEAD")

    def untouched(self) -> None:
        """No hook ran, no setting was changed, the decoy is as it was."""
        assert not (self.env / "hooks.log").exists()
        assert (self.env / "gitconfig").read_text() == self.config
        assert (self.upstream / ".git" / "config").read_text() == self.own
        assert fingerprint(self.env / "decoy") == self.decoy
        assert not (self.env / "elsewhere").exists()


@pytest.fixture
def hostile(field: Any, tmp_path: Path) -> Hostile:
    return Hostile(tmp_path, field("17")[0])


def lines(env: Path) -> dict[str, str]:
    """The variables of hostile.env."""
    found = {}
    for line in (inputs("17") / "hostile.env").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.replace("$E", str(env)).partition("=")
            found[name] = value.strip('"')
    return found


@pytest.mark.slow
def test_hostile_settings_change_nothing(hostile: Hostile) -> None:
    clean = hostile.go("clean")
    assert [code for code, _, _ in clean] == [0] * len(clean)
    assert hostile.go("global", GIT_CONFIG_GLOBAL=str(hostile.env / "gitconfig")) == clean
    assert hostile.go("home", HOME=str(hostile.env / "home")) == clean
    together = lines(hostile.env)
    together["GIT_CONFIG_GLOBAL"] = str(hostile.env / "gitconfig")
    assert hostile.go("all", **together) == clean


@pytest.mark.slow
def test_each_hostile_variable_changes_nothing(hostile: Hostile) -> None:
    clean = hostile.go("clean")
    for number, (name, value) in enumerate(lines(hostile.env).items()):
        assert hostile.go(f"one{number}", **{name: value}) == clean, name


# -- 19 -------------------------------------------------------------------------------------

SHALLOW = "0734d3d6b0744e635ad605be51be68ba3b96ddc4"


def pinned(world: World, repo: Path) -> None:
    """Point the series at another clone, with a store of its own."""
    import shutil

    series = world.root / "series.yaml"
    text = series.read_text()
    series.write_text(text.replace(str(world.upstream), str(repo)))
    shutil.rmtree(world.root / ".hexpatch")
    world.upstream = repo


@pytest.mark.parametrize("kind", ["patches", "patches-full-index"])
def test_a_full_clone_merges_three_way(field: Any, tmp_path: Path, kind: str) -> None:
    folder, case = field("19")
    world = started(tmp_path / "work", folder / "up")
    listed(world, sorted((case / kind).glob("*.patch")))
    world.ok("apply")
    world.ok("rebase", "--onto", "main")
    assert trees(world)[-1] == SHALLOW


def test_a_shallow_clone_says_what_is_missing(field: Any, tmp_path: Path) -> None:
    folder, case = field("19")
    world = started(tmp_path / "work", folder / "up")
    listed(world, sorted((case / "patches").glob("*.patch")))
    pinned(world, folder / "shallow")
    before = world.files()
    for command in (("apply",), ("check", "--onto", "main"), ("rebase", "--onto", "main")):
        ran = world.run("--offline", *command)
        assert ran.code == 1
        assert "shallow" in ran.err
        assert "fetch --unshallow" in ran.err
        assert "conflict" not in ran.out + ran.err
    assert world.files() == before
    git(folder / "shallow", "fetch", "-q", "--unshallow")
    world.ok("apply")
    world.ok("rebase", "--onto", "main")
    assert trees(world)[-1] == SHALLOW
    assert git(folder / "shallow", "status", "--porcelain") == ""
    assert not (folder / "shallow" / ".git" / "rebase-apply").exists()


def test_a_partial_clone_fetches_what_it_needs(field: Any, tmp_path: Path) -> None:
    folder, case = field("19")
    world = started(tmp_path / "work", folder / "up")
    listed(world, sorted((case / "patches").glob("*.patch")))
    pinned(world, folder / "partial")
    world.ok("apply")
    world.ok("rebase", "--onto", "main")
    assert trees(world)[-1] == SHALLOW


def test_a_partial_clone_whose_remote_is_gone(field: Any, tmp_path: Path) -> None:
    folder, case = field("19")
    world = started(tmp_path / "work", folder / "up")
    listed(world, sorted((case / "patches").glob("*.patch")))
    pinned(world, folder / "partial")
    (folder / "up").rename(folder / "away")
    before = world.files()
    blob = git(folder / "away", "rev-parse", "base:src/rows.txt")
    for command in (("apply",), ("check",)):
        ran = world.run(*command)
        assert ran.code == 1
        assert blob in ran.err
        assert "conflict" not in ran.out + ran.err
    assert world.files() == before


# -- 22 -------------------------------------------------------------------------------------


def huge(tmp_path: Path, small: str) -> tuple[World, list[Path]]:
    target = tmp_path / "huge"
    env = {**os.environ, "SMALL": small}
    make = str(inputs("22") / "make.sh")
    subprocess.run(["sh", make, str(target)], env=env, check=True, capture_output=True)
    world = started(tmp_path / "work", target / "repo")
    files = sorted((target / "patches").glob("*.patch"))
    listed(world, files)
    return world, files


def test_large_patches(tmp_path: Path) -> None:
    world, files = huge(tmp_path, "1")
    world.ok("apply")
    assert trees(world)[-1] == (inputs("22") / "small-tree.txt").read_text().strip()
    listing = world.ok("series", "--json").json["patches"]
    sizes = [(len(p["files"]), p["added"], p["removed"]) for p in listing]
    assert sizes == [(1, 8000, 0), (1, 1, 0), (30, 30, 0)]
    for command in (("series",), ("check",), ("status",), ("changelog",)):
        ran = world.ok(*command)
        assert "x" * 1000 not in ran.out + ran.err
    for name, file in zip(("p1", "p2", "p3"), files, strict=True):
        assert (world.root / "patches" / f"{name}.patch").read_bytes() == file.read_bytes()


@pytest.mark.slow
def test_huge_patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FIELD.parent.parent))
    world, _ = huge(tmp_path, "")
    watch = (  # the program ends by os._exit, which runs nothing after it
        "import os, resource, runpy, sys\n"
        "sys.argv, end = ['hexpatch', *sys.argv[1:]], os._exit\n"
        "def told(code):\n"
        "    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "    print(peak, file=sys.stderr, flush=True)\n"
        "    end(code)\n"
        "os._exit = told\n"
        "runpy.run_module('hexpatch', run_name='__main__')\n"
    )

    def timed(*args: str, seconds: float) -> bytes:
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", watch, *args], cwd=world.root, capture_output=True, check=False
        )
        took = time.monotonic() - begin
        assert done.returncode == 0, done.stderr[-2000:]
        peak = int(done.stderr.split()[-1]) / 1024
        print(args, f"{took:.1f} s, {peak:.0f} MB, {len(done.stdout)} bytes")
        assert peak < 600, f"{args}: {peak:.0f} MB"
        assert took < seconds, f"{args}: {took:.1f} s"
        return done.stdout

    timed("apply", seconds=60)
    assert trees(world)[-1] == "eca2cc51b8639c8334cc7590d4ccbe5706d314a5"
    listing = timed("series", "--json", seconds=20)
    assert len(listing) < 5_000_000
    sizes = [(len(p["files"]), p["added"]) for p in json.loads(listing)["patches"]]
    assert sizes == [(1, 800000), (1, 1), (3000, 3000)]
    assert b"x" * 1000 not in timed("series", seconds=20)
    timed("check", seconds=60)
    timed("refresh", seconds=60)
    timed("changelog", seconds=60)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024 < 1200
