"""Worlds made of the field cases: their repository as upstream, their patches as the series."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from conftest import FIELD, World, git, hexpatch


def inputs(case: str) -> Path:
    """The folder of a case."""
    return next(FIELD.glob(f"{case}-*"))


def patches(case: str) -> list[Path]:
    """The patch files of a case, in order."""
    return sorted((inputs(case) / "patches").glob("*.patch"))


def started(root: Path, upstream: Path, base: str = "base") -> World:
    """An empty series in `root` on a commit of upstream."""
    root.mkdir(exist_ok=True)
    ran = hexpatch(root, "init", "--repo", str(upstream), "--base", base)
    assert ran.code == 0, ran.err
    return World(root, upstream)


def listed(world: World, files: Iterable[Path], names: Iterable[str] = ()) -> list[str]:
    """Put patch files into patches/ and write the series by hand, in that order."""
    chosen = list(files)
    wanted = list(names) or [f"p{n}" for n in range(1, len(chosen) + 1)]
    folder = world.root / "patches"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    entries = ""
    for file, name in zip(chosen, wanted, strict=True):
        (folder / f"{name}.patch").write_bytes(file.read_bytes())
        entries += f"  - name: {name}\n"
    series = world.root / "series.yaml"
    head = series.read_text().split("\npatches:")[0]
    series.write_text(f"{head}\npatches:\n{entries}" if entries else f"{head}\npatches: []\n")
    return wanted


def messages(world: World, tip: str = "HEAD") -> list[str]:
    """Titles of the stack, oldest first."""
    return world.git("log", "--reverse", "--format=%s", f"refs/hexpatch/base..{tip}").splitlines()


def trees(world: World, base: str = "refs/hexpatch/base") -> list[str]:
    """Tree of each commit of the stack."""
    return world.git("log", "--reverse", "--format=%T", f"{base}..HEAD").split()


def rows(world: World, *args: str) -> dict[str, dict[str, object]]:
    """Rows of `check` or `rebase` by patch name, from --json, whatever the exit status."""
    return {row["name"]: row for row in world.run(*args, "--json").json["patches"]}


def state(world: World) -> tuple[dict[str, bytes], str, str]:
    """What a refused command must leave alone."""
    if not world.checkout.exists():
        return world.files(), "", ""
    return world.files(), world.git("rev-parse", "HEAD"), world.git("status", "--porcelain")


def made_by_git(upstream: Path, onto: str, files: Iterable[Path], branch: str = "by-git") -> str:
    """Tree that `git am -3` gives."""
    git(upstream, "checkout", "-q", "-B", branch, onto)
    git(upstream, "am", "-q", "-3", "--keep-cr", *map(str, files))
    tree = git(upstream, "rev-parse", "HEAD^{tree}")
    git(upstream, "checkout", "-q", "main")
    return tree
