"""Builds ggml and test-backend-ops of a tree, apart from the user's checkout, and keeps the result.

A build is `<state>/build/<target>/<tree id>/{src,build}`: the path alone says what is in it. The
layout is alike for all trees of a target, which lets ccache share objects between them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hexpatch import proc, workspace
from hexpatch.errors import HexpatchError
from hexpatch.repo import Repo

Say = Callable[[str], None]

TEST_SOURCE = "tests/test-backend-ops.cpp"
EXPORTED = ("ggml", TEST_SOURCE, "LICENSE")
SECOND = "stack/test-backend-ops.cpp"  # beside src/: the stack's test, built against the base
TEST = "test-backend-ops"
STACK_TEST = "test-backend-ops-stack"
CPU_LIBRARY = "libggml-cpu.so"  # a module has this suffix on macOS too
FLAGS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=ON",
    "-DGGML_BACKEND_DL=ON",
    "-DGGML_NATIVE=OFF",  # the machine's own level: objects of one ccache may run elsewhere
    "-DGGML_CCACHE=OFF",
)
HARNESS = Path(__file__).parent / "harness"
_PROGRESS = re.compile(r"^\[\s*(\d+(?:/\d+|%))\]\s+(.*)$")
_FIRST = re.compile(r"error:|undefined reference|CMake Error|No space left|Killed")
_ERROR = re.compile(rf"{_FIRST.pattern}|required from|In function")  # lines that may name a file
_PLACE = re.compile(r"\b(?:src/((?:ggml|tests)/[^\s:]+)|(stack/test-backend-ops\.cpp)):")
_MODES = {"100644": 0o644, "100755": 0o755, "120000": 0}


class BuildFailed(HexpatchError):
    """A build of a tree failed; the compiler found something in `files` of the tree, or SECOND."""

    def __init__(self, message: str, hint: str, tree: str, files: Sequence[str]) -> None:
        super().__init__(message, hint)
        self.tree, self.files = tree, tuple(files)


@dataclass(frozen=True)
class Built:
    """A finished build: its directory, where programs and libraries are, the log, and the cost."""

    dir: Path
    bin: Path
    log: Path
    seconds: float


@dataclass(frozen=True)
class Tools:
    """What builds here: versions decide whether an older build can be kept."""

    cmake: str
    c: str
    cxx: str
    compiler: str
    generator: str
    ccache: str
    more: str = ""  # the user's flags

    def lines(self) -> dict[str, str]:
        """Name and version of each tool, for evidence."""
        found = {"cmake": self.cmake, "compiler": self.compiler, "generator": self.generator}
        flags = f"{' '.join(FLAGS)} {self.more}".rstrip()
        return {**found, "ccache": self.ccache or "none", "flags": flags}


# -- export ------------------------------------------------------------------------------


def export_tree(repo: Repo, tree: str, into: Path) -> None:
    """Write ggml/, the test and LICENSE of a tree to disk; unchanged files are left untouched.

    The files' blob ids are noted in `<into>/.exported`, so a second export costs one listing.
    """
    wanted = _listing(repo, tree, EXPORTED)
    for needed in (TEST_SOURCE, "ggml/CMakeLists.txt"):
        if needed not in wanted:
            raise HexpatchError(
                f"tree {tree[:12]} has no {needed}", "is it a tree of llama.cpp? see `base:`"
            )
    note = into / ".exported"
    before = _noted(note)
    into.mkdir(parents=True, exist_ok=True)
    stale = [path for path, entry in before.items() if wanted.get(path) != entry]
    fresh = [p for p, entry in wanted.items() if before.get(p) != entry or not _there(into / p)]
    if not stale and not fresh:
        return
    note.unlink(missing_ok=True)  # an interrupted export is no export
    for path in stale:
        _remove(into / path)
    for path in fresh:
        mode, oid = wanted[path]
        _write(into / path, path, mode, repo.read(oid, "blob"))
    keep(note, {p: list(entry) for p, entry in sorted(wanted.items())})


def blob_at(repo: Repo, tree: str, path: str) -> str | None:
    """Id of a path's blob or subtree in a tree; None when it is absent."""
    found = repo.git("ls-tree", "-z", tree, "--", path)
    return found.split(b"\t")[0].split(b" ")[2].decode() if found else None


def _listing(repo: Repo, tree: str, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
    out = repo.git("ls-tree", "-r", "-z", "--full-tree", tree, "--", *paths)
    entries = {}
    for record in filter(None, out.split(b"\0")):
        head, _, raw = record.partition(b"\t")
        mode, _, oid = head.decode().split(" ")
        path = os.fsdecode(raw)
        if mode not in _MODES:
            continue  # a submodule
        if any(part.lower() in ("", ".", "..", ".git") for part in path.split("/")):
            raise HexpatchError(f"tree {tree[:12]} holds an unsafe path: {path!r}")
        entries[path] = (mode, oid)
    return entries


def _noted(note: Path) -> dict[str, tuple[str, str]]:
    with contextlib.suppress(OSError, ValueError):
        return {path: (mode, oid) for path, (mode, oid) in json.loads(note.read_text()).items()}
    return {}


def _there(file: Path) -> bool:
    return file.is_symlink() or file.is_file()


def _remove(file: Path) -> None:
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file)
    else:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            file.unlink()


def _write(file: Path, path: str, mode: str, data: bytes) -> None:
    for parent in list(file.parents)[: path.count("/")]:
        if parent.is_symlink() or parent.is_file():
            parent.unlink()
    file.parent.mkdir(parents=True, exist_ok=True)
    _remove(file)
    if mode == "120000":
        target = PurePosixPath(path).parent / os.fsdecode(data)
        if target.is_absolute() or os.path.normpath(target).split("/")[0] == "..":
            raise HexpatchError(f"the link {path} leads out of the tree: {os.fsdecode(data)!r}")
        file.symlink_to(os.fsdecode(data))
        return
    file.write_bytes(data)
    file.chmod(_MODES[mode])


def keep(file: Path, data: object) -> None:
    """Write a note, as JSON, that only saves work."""
    workspace.write_atomic(file, json.dumps(data).encode(), durable=False)


# -- tools -------------------------------------------------------------------------------


@functools.cache
def tools() -> Tools:
    """Find cmake, compilers, ninja and ccache; what can't be done without is an error."""
    hint = "install a compiler and cmake: `apt-get install g++ cmake ninja-build ccache`"
    cmake = _version("cmake")
    if not cmake:
        raise HexpatchError("cmake is not installed", hint)
    c = os.environ.get("CC") or _first("cc", "gcc", "clang")
    cxx = os.environ.get("CXX") or _first("c++", "g++", "clang++")
    compiler = _version(cxx.split()[0]) if c and cxx else ""
    if (asked := os.environ.get("CXX")) and not compiler:
        raise HexpatchError(f"CXX={asked} is no compiler that can be run", "name one, or unset CXX")
    if not c or not cxx or not compiler:
        raise HexpatchError("no C and C++ compiler is installed", hint)
    generator = "Ninja" if shutil.which("ninja") else "Unix Makefiles"
    if generator != "Ninja" and not shutil.which("make"):
        raise HexpatchError("neither ninja nor make is installed", hint)
    names = ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
    more = " ".join(f"{name}={value}" for name in names if (value := os.environ.get(name)))
    return Tools(cmake, c, cxx, compiler, generator, _version("ccache"), more)


def harness() -> list[tuple[str, str]]:
    """Names and texts of what is built beside upstream's sources."""
    files = sorted(p for p in HARNESS.iterdir() if p.suffix in {".txt", ".h", ".cpp"})
    return [(path.name, path.read_text()) for path in files]


def cores() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _first(*names: str) -> str | None:
    return next((found for name in names if (found := shutil.which(name))), None)


def _version(program: str) -> str:
    if not shutil.which(program):
        return ""
    done = proc.run([program, "--version"], timeout=30)
    text = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return text[0] if text and done.status == 0 else ""


# -- build -------------------------------------------------------------------------------


def tree_dir(state: Path, target: str, tree: str) -> Path:
    """Where a tree's build is."""
    return state / "build" / target / tree


def build(
    repo: Repo,
    state: Path,
    tree: str,
    *,
    target: str = "cpu",
    library_only: bool = False,
    stack_test: str | None = None,
    jobs: int | None = None,
    say: Say,
) -> Built:
    """Build a tree's CPU backend and, unless `library_only`, its test-backend-ops.

    `stack_test` is the blob of another test-backend-ops.cpp, compiled against this tree's headers
    as test-backend-ops-stack. What is up to date is not looked at again; what was killed goes on.
    """
    began = time.monotonic()
    with_tools = tools()
    home = tree_dir(state.resolve(), target, tree)
    log = state.resolve() / "logs" / f"build-{target}-{tree[:12]}.log"
    out = home / "build"
    built = Built(home, out / "bin", log, 0.0)
    # the folder's name is in what is built: in a moved one it would use the libraries of the old
    parts = [str(home), FLAGS, vars(with_tools), (HARNESS / "CMakeLists.txt").read_text()]
    config = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    goals = {"ggml-cpu": tree}
    if not library_only:
        goals[TEST] = tree
    if stack_test is not None:
        goals[STACK_TEST] = stack_test
    stamp = home / "built.json"
    done = stamped(stamp, config)
    if all(done.get(goal) == source for goal, source in goals.items()) and all(
        (built.bin / _product(goal)).exists() for goal in goals
    ):
        return built
    _make(repo, tree, built, goals, config=config, target=target, jobs=jobs, say=say)
    keep(stamp, {"config": config, "goals": {**done, **goals}})
    return Built(built.dir, built.bin, built.log, time.monotonic() - began)


def _make(
    repo: Repo,
    tree: str,
    into: Built,
    goals: Mapping[str, str],
    *,
    config: str,
    target: str,
    jobs: int | None,
    say: Say,
) -> None:
    home, log = into.dir, into.log
    src, out = home / "src", home / "build"
    say(f"export {tree[:12]}")
    export_tree(repo, tree, src)
    second = home / SECOND
    second.parent.mkdir(exist_ok=True)
    wanted = goals.get(STACK_TEST)
    if wanted is not None or not second.exists():
        data = repo.read(wanted, "blob") if wanted else (src / TEST_SOURCE).read_bytes()
        if not second.exists() or second.read_bytes() != data:
            second.write_bytes(data)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    run_cmake(
        Folder(f"tree {tree} for target {target}", home, out, home / "configured", log),
        _configure(src, out, second),
        list(goals),
        config=config,
        env=environment(home.parent, home),
        title=f"build {target} {tree[:12]}",
        jobs=jobs,
        say=say,
    )


@dataclass(frozen=True)
class Folder:
    """One CMake build: `what` it is of, for messages, and the file that notes its settings."""

    what: str
    home: Path
    out: Path
    mark: Path
    log: Path


def run_cmake(
    folder: Folder,
    configure: Sequence[str],
    goals: Sequence[str],
    *,
    config: str,
    env: Mapping[str, str],
    title: str,
    jobs: int | None,
    say: Say,
) -> None:
    """Configure where `config` is not what the folder was configured with, then build goals."""
    steps = []
    mark = hashlib.sha256(json.dumps([config, configure]).encode()).hexdigest()
    if not (folder.mark.exists() and folder.mark.read_text() == mark):
        # other flags, compilers or folders: CMake's cache would keep the old ones
        shutil.rmtree(folder.out, ignore_errors=True)
        steps.append(list(configure))
    workers = str(jobs or cores())
    targets = ["--target", *goals] if goals else []
    steps.append(["cmake", "--build", str(folder.out), "-j", workers, *targets])
    for step in steps:
        heard = _Progress(say, title)
        if proc.run_logged(step, folder.log, cwd=folder.home, env=env, on_line=heard.line) != 0:
            doing = "building" if "--build" in step else "configuring"
            raise _failed(f"{doing} {folder.what} failed", folder)
        if "--build" not in step:
            folder.mark.write_text(mark)


def _failed(what: str, folder: Folder) -> BuildFailed:
    """What the log of the last step says: first errors that its end does not show, and the end."""
    text = folder.log.read_bytes().rpartition(b"\n$ ")[2].decode("utf-8", "replace")
    end = proc.tail(folder.log, 25)
    errors = [line for line in text.splitlines() if _ERROR.search(line)]
    places = [found for line in errors for found in _PLACE.findall(line)]
    files = list(dict.fromkeys(file or SECOND for file, _ in places))
    unseen = [line for line in errors if _FIRST.search(line) and line not in end][:8]
    told = [what, *unseen, "..."] if unseen else [what]
    message = "\n".join(told) + f"; the end of its log:\n{end}"
    return BuildFailed(message, f"the whole log is {folder.log}", folder.home.name, files)


def _configure(src: Path, out: Path, second: Path) -> list[str]:
    found = tools()
    argv = ["cmake", "-S", str(HARNESS), "-B", str(out), "-G", found.generator, *FLAGS]
    argv += [f"-DHEXPATCH_SRC={src}", f"-DHEXPATCH_TESTS={STACK_TEST}={second}"]
    argv += ["-DHEXPATCH_BLAS=ON"]
    if found.ccache:
        argv += [f"-DCMAKE_{lang}_COMPILER_LAUNCHER=ccache" for lang in ("C", "CXX")]
    return argv


def environment(trees: Path, home: Path) -> dict[str, str]:
    """The user's, plus: objects shared between trees, no enclosing git repository looked at."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    found = tools()
    env.update(CC=found.c, CXX=found.cxx, NINJA_STATUS="[%f/%t] ", LC_ALL="C.UTF-8")
    env.update(CCACHE_BASEDIR=str(trees), CCACHE_NOHASHDIR="1")
    env["GIT_CEILING_DIRECTORIES"] = str(home)
    return env


def stamped(stamp: Path, config: str) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        noted = json.loads(stamp.read_text())
        if noted["config"] == config:
            return {str(goal): str(source) for goal, source in noted["goals"].items()}
    return {}


def _product(goal: str) -> str:
    return CPU_LIBRARY if goal == "ggml-cpu" else goal


class _Progress:
    """Thins a build's lines to about one a second: how far, and which file."""

    def __init__(self, say: Say, title: str) -> None:
        self.say, self.title, self.last = say, title, 0.0

    def line(self, text: str) -> None:
        found = _PROGRESS.match(text)
        now = time.monotonic()
        if found is None or now - self.last < 1.0:
            return
        self.last = now
        name = found[2].rsplit("/", 1)[-1].removesuffix(".o")
        self.say(f"{self.title}: [{found[1]}] {name}")
