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


# -- small stories --------------------------------------------------------------------------

Files = dict[str, str | bytes | None]


def numbered(word: str, count: int, **instead: str) -> str:
    """Lines `word 1` .. `word N`, some of them replaced (_7="text")."""
    return "".join(instead.get(f"_{n}", f"{word} {n}") + "\n" for n in range(1, count + 1))


def put(repo: Path, message: str, files: Files, **how: str) -> str:
    """Commit these files (None deletes; `how` is link= or mode= for one path)."""
    for name, data in files.items():
        target = repo / name
        if data is None:
            git(repo, "rm", "-q", "-r", name)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            target.unlink()
        target.write_bytes(data if isinstance(data, bytes) else data.encode())
    for old, new in (pair.split(">") for pair in how.get("move", "").split()):
        (repo / new).parent.mkdir(parents=True, exist_ok=True)
        git(repo, "mv", old, new)
    for name, to in (pair.split(">") for pair in how.get("link", "").split()):
        (repo / name).unlink(missing_ok=True)
        (repo / name).symlink_to(to)
    for name in how.get("executable", "").split():
        (repo / name).chmod(0o755)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "--allow-empty", "-m", message)
    return git(repo, "rev-parse", "HEAD")


class Story:
    """An upstream with `base`, `main` and `stack` (our commits on base), and a series of them."""

    def __init__(self, root: Path, base: Files, **how: str) -> None:
        self.root = root
        self.up = root / "upstream"
        self.up.mkdir()
        git(self.up, "init", "-q", "-b", "main")
        put(self.up, "base tree", base, **how)
        git(self.up, "tag", "base")
        git(self.up, "branch", "stack")

    def upstream(self, message: str, files: Files | None = None, **how: str) -> str:
        git(self.up, "checkout", "-q", "main")
        return put(self.up, message, files or {}, **how)

    def patch(self, message: str, files: Files | None = None, **how: str) -> str:
        git(self.up, "checkout", "-q", "stack")
        return put(self.up, message, files or {}, **how)

    def world(self) -> World:
        """The patches in a series on the base, applied."""
        git(self.up, "checkout", "-q", "main")
        world = started(self.root / "work", self.up)
        world.ok("import", "stack")
        return world

    def by_git(self) -> str | None:
        """Tree of `git rebase main`, or None if it stops."""
        git(self.up, "checkout", "-q", "-B", "rebased", "stack")
        git(self.up, "rebase", "main", check=False)
        stopped = (self.up / ".git" / "rebase-merge").exists()
        if stopped:
            git(self.up, "rebase", "--abort")
        tree = git(self.up, "rev-parse", "HEAD^{tree}")
        git(self.up, "checkout", "-q", "main")
        return None if stopped else tree
