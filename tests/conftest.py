"""Hermetic tests on real git repositories: no user settings, a fixed clock, small worlds."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FIELD = HERE / "field"
REAL_CACHE = os.environ.get("HEXPATCH_CACHE") or ""
REAL_HOME = os.environ.get("HOME", "")
CLOCK = 1_700_000_000
# two files of the tiny upstream
HOST = "ggml/src/ggml-hexagon/ggml-hexagon.cpp"
CASES = "tests/test-backend-ops.cpp"


@pytest.fixture(autouse=True)
def hermetic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Nothing of the caller's git reaches a test, and nothing of a test reaches the caller."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "HEXPATCH_")):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Test Person\n\temail = test@example.org\n"
        '[protocol "file"]\n\tallow = always\n[init]\n\tdefaultBranch = main\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(CLOCK))
    if request.node.get_closest_marker("upstream"):
        cache = REAL_CACHE or str(Path(REAL_HOME, ".cache", "hexpatch"))
        monkeypatch.setenv("HEXPATCH_CACHE", cache)


def git(folder: Path, *args: str, check: bool = True, **env: str) -> str:
    """Standard output of git in a folder, stripped."""
    stamp = f"{CLOCK} +0000"
    done = subprocess.run(
        ["git", "-C", str(folder), *args],
        env={**os.environ, "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if check and done.returncode:
        raise AssertionError(f"git {args}: {done.stderr.decode('utf-8', 'replace')}")
    return done.stdout.decode("utf-8", "replace").strip()


@dataclass
class Ran:
    """A finished hexpatch run."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def hexpatch(folder: Path, *args: str) -> Ran:
    """Run the command line in this process."""
    from hexpatch.cli import cli

    out, err = io.StringIO(), io.StringIO()
    argv, here = sys.argv, Path.cwd()
    sys.argv = ["hexpatch", *args]
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                cli.main(args=list(args), prog_name="hexpatch")
                code: Any = 0
            except SystemExit as end:
                code = end.code or 0
    finally:
        sys.argv = argv
        os.chdir(here)
    return Ran(int(code), out.getvalue(), err.getvalue())


@dataclass
class World:
    """A workspace beside a tiny upstream."""

    root: Path
    upstream: Path

    def run(self, *args: str) -> Ran:
        return hexpatch(self.root, *args)

    def ok(self, *args: str) -> Ran:
        ran = self.run(*args)
        assert ran.code == 0, f"{args}: {ran.code}\n{ran.out}\n{ran.err}"
        return ran

    def fails(self, *args: str, says: str = "") -> Ran:
        return self._ends(1, *args, says=says)

    def conflicts(self, *args: str, says: str = "") -> Ran:
        return self._ends(3, *args, says=says)

    def usage_error(self, *args: str, says: str = "") -> Ran:
        return self._ends(2, *args, says=says)

    def _ends(self, code: int, *args: str, says: str = "") -> Ran:
        ran = self.run(*args)
        assert ran.code == code, f"{args}: {ran.code}\n{ran.out}\n{ran.err}"
        assert says in ran.out + ran.err, ran.out + ran.err
        return ran

    @property
    def checkout(self) -> Path:
        return self.root / ".hexpatch" / "llama.cpp"

    def git(self, *args: str, check: bool = True, **env: str) -> str:
        """git in the checkout."""
        return git(self.checkout, *args, check=check, **env)

    def status(self) -> Any:
        return self.ok("status", "--json").json

    def files(self) -> dict[str, bytes]:
        """The series' files as they are on disk."""
        names = [self.root / "series.yaml", self.root / "series.lock"]
        names += sorted((self.root / "patches").rglob("*")) + sorted((self.root / "src").rglob("*"))
        return {str(p.relative_to(self.root)): p.read_bytes() for p in names if p.is_file()}

    def world(self) -> str:
        """Stack, files, sync state and checkout in a few lines: compare it whole."""
        import hashlib

        state = self.status()
        lines = [f"base {state['base']['name']} {state['base']['tree'][:12]}"]
        lines.append(f"tip {state['tip'][:12]} tree {state['tree'][:12]} {state['sync']}")
        for name, data in self.files().items():
            lines.append(f"{hashlib.sha256(data).hexdigest()[:12]} {name}")
        if self.checkout.exists():
            lines.append(f"HEAD {self.git('rev-parse', 'HEAD')[:12]}")
            lines.append(self.git("status", "--porcelain"))
        return "\n".join(lines)


def make_upstream(folder: Path) -> Path:
    """A tiny upstream, shaped like llama.cpp: tags v1, v2 (drifted); branch master = v2."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "master")

    def write(path: str, text: str) -> None:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def lines(word: str, count: int, **instead: str) -> str:
        return "".join(instead.get(f"_{n}", f"{word} {n}") + "\n" for n in range(1, count + 1))

    write("README.md", "# tiny llama.cpp\n")
    write("CMakeLists.txt", lines("cmake", 20))
    write("ggml/src/ggml-hexagon/ggml-hexagon.cpp", lines("host", 60))
    write("ggml/src/ggml-hexagon/htp/main.c", lines("main", 40))
    write("tests/test-backend-ops.cpp", lines("case", 80))
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "tiny : first")
    git(folder, "tag", "v1")
    write(
        "ggml/src/ggml-hexagon/ggml-hexagon.cpp", "new head\n" + lines("host", 60, _50="host fifty")
    )
    git(folder, "commit", "-q", "-am", "hexagon : move the host (#1)")
    write("tests/test-backend-ops.cpp", lines("case", 80, _40="case forty"))
    git(folder, "commit", "-q", "-am", "tests : forty (#2)")
    git(folder, "tag", "v2")
    return folder


_templates: dict[str, Path] = {}


@pytest.fixture(scope="session", autouse=True)
def templates(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where repositories that many tests start from are made once."""
    _templates["folder"] = tmp_path_factory.mktemp("templates")


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A copy of the tiny upstream: the same ids in every test."""
    made = _templates["folder"] / "upstream"
    if not made.exists():
        make_upstream(made)
    return Path(shutil.copytree(made, tmp_path / "upstream", symlinks=True))


@pytest.fixture
def world(tmp_path: Path, upstream: Path) -> World:
    """A started series on v1 with nothing in it."""
    root = tmp_path / "work"
    root.mkdir()
    made = World(root, upstream)
    made.ok(
        "init", "--repo", str(upstream), "--base", "v1", "--src", "htp=ggml/src/ggml-hexagon/htp"
    )
    return made


def edit(path: Path, old: str, new: str) -> None:
    """Replace one line's text in a file."""
    text = path.read_text()
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path}"
    path.write_text(text.replace(old, new))


def commit(world: World, message: str, **changes: str) -> str:
    """Write files (path with __ for /) in the checkout and commit them with plain git."""
    for name, text in changes.items():
        target = world.checkout / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    world.git("add", "-A")
    world.git("commit", "-q", "-m", message)
    return world.git("rev-parse", "HEAD")


@pytest.fixture
def stacked(tmp_path: Path, upstream: Path) -> World:
    """Three patches on v1: a hook in the host, a kernel (owned file) with its hook, a test."""
    made = _templates["folder"] / "stacked"
    if not made.exists():
        make_stacked(made / "work", made / "upstream")
    root = Path(shutil.copytree(made / "work", tmp_path / "work", symlinks=True))
    for name in PLACES:
        path = root / ".hexpatch" / name
        path.write_text(path.read_text().replace(str(made), str(tmp_path)))
    world = World(root, upstream)
    world.git("update-index", "-q", "--refresh")
    return world


# where git writes whole paths down; series.yaml names the clone by a relative one
PLACES = (
    "llama.cpp/.git",
    "upstream.git/objects/info/alternates",
    "upstream.git/worktrees/llama.cpp/gitdir",
)


def make_stacked(root: Path, upstream: Path) -> None:
    """The series that most tests start from, with its checkout."""
    shutil.copytree(_templates["folder"] / "upstream", upstream, symlinks=True)
    root.mkdir()
    world = World(root, upstream)
    world.ok("init", "--repo", "../upstream", "--base", "v1")
    world.ok("apply")
    host = world.checkout / "ggml/src/ggml-hexagon/ggml-hexagon.cpp"
    edit(host, "host 10\n", "host 10\nhook a\n")
    commit(world, "hexagon : hook a\n\nNeeded by the kernel.")
    edit(host, "host 30\n", "host thirty\n")
    kernel = world.checkout / "ggml/src/ggml-hexagon/htp/kernel.c"
    kernel.write_text("int kernel(void) {\n    return 1;\n}\n")
    commit(world, "hexagon : add a kernel")
    edit(world.checkout / "tests/test-backend-ops.cpp", "case 20\n", "case 20\ncase new\n")
    commit(world, "tests : add a case")
    world.ok("refresh")


@pytest.fixture
def clash(stacked: World) -> World:
    """Upstream's v3 rewrites the lines next to hook a: the first of the three patches conflicts."""
    edit(stacked.upstream / HOST, "host 10\n", "HOST TEN\n")
    git(stacked.upstream, "commit", "-qam", "hexagon : shout (#3)")
    git(stacked.upstream, "tag", "v3")
    return stacked


@pytest.fixture
def two(clash: World) -> World:
    """v3 conflicts with the first patch, and with the last."""
    edit(clash.upstream / CASES, "case 20\n", "CASE TWENTY\n")
    git(clash.upstream, "commit", "-qam", "tests : shout (#4)")
    git(clash.upstream, "tag", "-f", "v3")
    return clash


def resolve(world: World, path: str = HOST, line: str = "HOST TEN\nhook a\n") -> None:
    """Replace the marked block by a person's text, and stage it."""
    file = world.checkout / path
    before, rest = file.read_text().split("<<<<<<< upstream\n")
    file.write_text(before + line + rest.partition(">>>>>>> ")[2].partition("\n")[2])
    world.git("add", path)


def copy_of(world: World, root: Path) -> World:
    """The files of a series in another folder, as a clone of it has them."""
    for name, data in world.files().items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return World(root, world.upstream)


def colleague(world: World, tmp_path: Path) -> World:
    """Who has cloned the series."""
    return copy_of(world, tmp_path / "colleague")


def without_answers(world: World) -> str:
    """The world but for the remembered resolutions, which an undo keeps."""
    return "\n".join(x for x in world.world().split("\n") if "patches/resolutions/" not in x)


def sound(world: World) -> None:
    """The store is whole and nothing is left that would stop the next command."""
    store = world.root / ".hexpatch/upstream.git"
    if store.exists():
        git(store, "fsck", "--strict", "--no-dangling")
    assert not [p for p in store.rglob("*.lock") if p.name != "config.lock"]
    assert not (world.root / ".hexpatch/journal.json").exists()
    if world.checkout.exists():
        world.git("status")


def hears_ctrl_c() -> None:
    """Jobs in the background of a shell are started deaf to it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def field(tmp_path: Path) -> Any:
    """field(case): builds a case's repository; returns its folder and the case's inputs."""

    def build(case: str, name: str = "up") -> tuple[Path, Path]:
        source = next(FIELD.glob(f"{case}*"))
        target = tmp_path / name
        subprocess.run(
            ["sh", str(source / "make.sh"), str(target)], check=True, capture_output=True
        )
        return target, source

    return build


def completions(world: World, words: str) -> str:
    """What the completion script is told for a line that ends in these words."""
    env = {
        **os.environ,
        "_HEXPATCH_COMPLETE": "bash_complete",
        "COMP_WORDS": f"hexpatch {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    code = "from hexpatch.cli import cli; cli(prog_name='hexpatch')"
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, cwd=world.root, env=env, capture_output=True, check=False)
    return done.stdout.decode()
