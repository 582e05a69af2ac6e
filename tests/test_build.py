"""Trees on disk, and builds that are made once, go on after a kill, and say why they failed."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import World

from hexpatch import build, proc
from hexpatch.errors import HexpatchError
from hexpatch.repo import Repo, init_bare

FILES = {
    "ggml/CMakeLists.txt": "one",
    "ggml/src/ggml.c": "int one;",
    "ggml/src/run.sh": "#!/bin/sh",
    "ggml/src/link.c": "ggml.c",
    "tests/test-backend-ops.cpp": "int main() {}",
    "tests/other.cpp": "",
    "src/llama.cpp": "",
    "LICENSE": "MIT",
}
MODES = {"ggml/src/run.sh": "100755", "ggml/src/link.c": "120000"}

# Stands in for cmake: configuring makes the cache, building makes the products of its targets.
CMAKE = """
import os, sys, pathlib
args = sys.argv[1:]
if args == ["--version"]:
    print("cmake version 3.25.1")
    sys.exit(0)
with open(os.environ["BUILD_LOG"], "a") as log:
    log.write("build\\n" if "--build" in args else "configure\\n")
if "--build" not in args:
    out = pathlib.Path(args[args.index("-B") + 1])
    out.mkdir(parents=True)
    sys.exit(0)
out = pathlib.Path(args[args.index("--build") + 1]) / "bin"
mode = os.environ.get("BUILD_DOES", "")
print(os.environ.get("BUILD_SAYS", ""))
if mode == "fail":
    for n in range(40):
        print(f"note {n}")
    print("ops.cpp:7: error: expected ';'")
    sys.exit(1)
out.mkdir(exist_ok=True)
for n in range(1, 30):
    print(f"[{n}/30] Building CXX object ggml/src/ops.cpp.o")
for target in args[args.index("--target") + 1:]:
    (out / ("libggml-cpu.so" if target == "ggml-cpu" else target)).write_text("built")
"""


def tree_of(repo: Repo, files: dict[str, str]) -> str:
    env = {"GIT_INDEX_FILE": os.fspath(repo.git_dir / "index.test")}
    repo.git("read-tree", "--empty", env=env)
    for path, text in files.items():
        oid = repo.git("hash-object", "-w", "--stdin", stdin=text.encode()).decode().strip()
        entry = f"{MODES.get(path, '100644')},{oid},{path}"
        repo.git("update-index", "--add", "--cacheinfo", entry, env=env)
    return repo.git("write-tree", env=env).decode().strip()


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with init_bare(tmp_path / "repo.git") as made:
        yield made


# -- export ------------------------------------------------------------------------------


def test_export_writes_ggml_and_the_test_only(repo: Repo, tmp_path: Path) -> None:
    build.export_tree(repo, tree_of(repo, FILES), tmp_path / "out")
    found = {
        p.relative_to(tmp_path / "out").as_posix()
        for p in (tmp_path / "out").rglob("*")
        if not p.is_dir()
    }
    assert found == {p for p in FILES if not p.startswith(("src/", "tests/other"))} | {".exported"}
    assert os.access(tmp_path / "out/ggml/src/run.sh", os.X_OK)
    assert (tmp_path / "out/ggml/src/link.c").readlink() == Path("ggml.c")


def test_a_second_export_touches_only_what_differs(repo: Repo, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build.export_tree(repo, tree_of(repo, FILES), out)
    old = 1_000_000_000
    for path in ("ggml/CMakeLists.txt", "ggml/src/ggml.c"):
        os.utime(out / path, (old, old))
    changed = {**FILES, "ggml/src/ggml.c": "int two;", "ggml/src/new/a.c": "int a;"}
    del changed["ggml/src/run.sh"]
    build.export_tree(repo, tree_of(repo, changed), out)
    assert (out / "ggml/CMakeLists.txt").stat().st_mtime == old
    assert (out / "ggml/src/ggml.c").stat().st_mtime != old
    assert (out / "ggml/src/ggml.c").read_text() == "int two;"
    assert (out / "ggml/src/new/a.c").exists()
    assert not (out / "ggml/src/run.sh").exists()


def test_a_file_that_becomes_a_directory(repo: Repo, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build.export_tree(repo, tree_of(repo, {**FILES, "ggml/x": "file"}), out)
    build.export_tree(repo, tree_of(repo, {**FILES, "ggml/x/y": "below"}), out)
    assert (out / "ggml/x/y").read_text() == "below"
    build.export_tree(repo, tree_of(repo, {**FILES, "ggml/x": "file"}), out)
    assert (out / "ggml/x").read_text() == "file"


def test_a_deleted_file_is_written_again(repo: Repo, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tree = tree_of(repo, FILES)
    build.export_tree(repo, tree, out)
    (out / "ggml/src/ggml.c").unlink()
    build.export_tree(repo, tree, out)
    assert (out / "ggml/src/ggml.c").exists()


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../x", "../../.."])
def test_a_link_that_leads_out_is_refused(repo: Repo, tmp_path: Path, target: str) -> None:
    tree = tree_of(repo, {**FILES, "ggml/src/link.c": target})
    with pytest.raises(HexpatchError, match="leads out of the tree"):
        build.export_tree(repo, tree, tmp_path / "out")


def test_a_tree_that_is_not_llama_cpp(repo: Repo, tmp_path: Path) -> None:
    with pytest.raises(HexpatchError, match=r"has no tests/test-backend-ops\.cpp"):
        build.export_tree(repo, tree_of(repo, {"a": "b"}), tmp_path / "out")


# -- build, with a stand-in for cmake ------------------------------------------------------


@pytest.fixture
def tool_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A PATH with a scripted cmake, a compiler, ninja; programs can be removed from it."""
    box = tmp_path / "box"
    box.mkdir()
    (box / "cmake").write_text(f"#!{sys.executable} -ES\n{CMAKE}")
    for name in ("cc", "c++", "ninja"):
        (box / name).write_text("#!/bin/sh\necho tool 1.0\n")
    for file in box.iterdir():
        file.chmod(0o755)
    (box / "git").symlink_to(shutil.which("git") or "git")
    monkeypatch.setenv("PATH", os.fspath(box))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("BUILD_LOG", os.fspath(tmp_path / "steps"))
    build.tools.cache_clear()
    yield box
    build.tools.cache_clear()


def write(into: Path) -> None:
    """What `export_tree` writes that a build can't do without."""
    (into / "tests").mkdir(parents=True, exist_ok=True)
    (into / build.TEST_SOURCE).touch()


def steps(tmp_path: Path) -> list[str]:
    log = tmp_path / "steps"
    return log.read_text().split() if log.exists() else []


def make(repo: Repo, tmp_path: Path, tree: str, **options: Any) -> tuple[build.Built, list[str]]:
    said: list[str] = []
    return build.build(repo, tmp_path / "state", tree, say=said.append, **options), said


def test_a_build_is_made_once(repo: Repo, tmp_path: Path, tool_box: Path) -> None:
    tree = tree_of(repo, FILES)
    built, said = make(repo, tmp_path, tree)
    assert built.dir == tmp_path / "state/build/cpu" / tree
    assert built.log == tmp_path / f"state/logs/build-cpu-{tree[:12]}.log"
    assert (built.bin / "test-backend-ops").exists()
    assert said == [f"export {tree[:12]}", f"build cpu {tree[:12]}: [1/30] ops.cpp"]
    again, said = make(repo, tmp_path, tree)
    assert (again.bin, said, steps(tmp_path)) == (built.bin, [], ["configure", "build"])


def test_what_is_missing_is_added_without_configuring(
    repo: Repo, tmp_path: Path, tool_box: Path
) -> None:
    tree = tree_of(repo, FILES)
    make(repo, tmp_path, tree, library_only=True)
    built, _ = make(repo, tmp_path, tree)
    other = repo.git("hash-object", "-w", "--stdin", stdin=b"other").decode().strip()
    make(repo, tmp_path, tree, stack_test=other)
    assert (built.dir / "stack/test-backend-ops.cpp").read_text() == "other"
    assert steps(tmp_path) == ["configure", "build", "build", "build"]
    make(repo, tmp_path, tree, stack_test=other)
    make(repo, tmp_path, tree, library_only=True)
    assert len(steps(tmp_path)) == 4


def test_another_compiler_starts_anew(repo: Repo, tmp_path: Path, tool_box: Path) -> None:
    tree = tree_of(repo, FILES)
    built, _ = make(repo, tmp_path, tree)
    (built.dir / "build/old").touch()
    (tool_box / "c++").write_text("#!/bin/sh\necho tool 2.0\n")
    build.tools.cache_clear()
    make(repo, tmp_path, tree)
    assert steps(tmp_path) == ["configure", "build"] * 2
    assert not (built.dir / "build/old").exists()


def test_a_moved_workspace_is_built_anew(repo: Repo, tmp_path: Path, tool_box: Path) -> None:
    """Programs know their libraries, and CMake its sources, by the place they were built at."""
    tree = tree_of(repo, FILES)
    make(repo, tmp_path, tree)
    moved = tmp_path / "moved"
    moved.mkdir()
    (tmp_path / "state").rename(moved / "state")
    built, _ = make(repo, moved, tree)
    assert built.dir == moved / "state/build/cpu" / tree
    assert steps(tmp_path) == ["configure", "build"] * 2


def test_a_moved_program_configures_anew(
    repo: Repo, tmp_path: Path, tool_box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a new virtual environment: CMake holds on to the folder of its CMakeLists.txt."""
    tree = tree_of(repo, FILES)
    make(repo, tmp_path, tree, library_only=True)
    shutil.copytree(build.HARNESS, tmp_path / "harness")
    monkeypatch.setattr(build, "HARNESS", tmp_path / "harness")
    make(repo, tmp_path, tree)
    assert steps(tmp_path) == ["configure", "build"] * 2


def test_a_failure_shows_the_end_of_its_log_and_goes_on_later(
    repo: Repo, tmp_path: Path, tool_box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tree_of(repo, FILES)
    monkeypatch.setenv("BUILD_DOES", "fail")
    with pytest.raises(HexpatchError) as caught:
        make(repo, tmp_path, tree)
    told = caught.value.message
    assert told.startswith(f"building tree {tree} for target cpu failed")
    assert told.endswith("ops.cpp:7: error: expected ';'")
    assert "note 39" in told
    assert "note 14\n" not in told
    assert f"build-cpu-{tree[:12]}.log" in str(caught.value.hint)
    monkeypatch.setenv("BUILD_DOES", "")
    make(repo, tmp_path, tree)
    assert steps(tmp_path) == ["configure", "build", "build"]


SAYS = "../src/ggml/src/ggml-hexagon/ggml-hexagon.cpp:7:3: error: expected '}'"


def test_a_failed_build_names_the_patches_that_change_the_file(
    stacked: World, tool_box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler's first line of it too, though its notes have driven that from the end."""
    monkeypatch.setenv("BUILD_DOES", "fail")
    monkeypatch.setenv("BUILD_SAYS", SAYS)
    monkeypatch.setattr(build, "export_tree", lambda repo, tree, into: write(into))
    told = stacked.fails("build").err.splitlines()
    assert told[told.index(SAYS) - 1].startswith("error: building tree ")
    path = "ggml/src/ggml-hexagon/ggml-hexagon.cpp"
    assert f"{path} is changed by hexagon-hook-a, hexagon-add-a-kernel" in told
    told = stacked.fails("build", "--base").err.splitlines()
    assert "this is the base itself, without a patch" in told
    assert not any("is changed by" in line for line in told)


def test_checks_are_of_the_simulator(stacked: World) -> None:
    stacked.usage_error("build", "--checks", "all", says="--checks is for targets sim:NAME")


def test_a_wrong_compiler_is_named(tool_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nope/c++ -O2")
    with pytest.raises(HexpatchError, match=r"CXX=/nope/c\+\+ -O2 is no compiler") as caught:
        build.tools()
    assert "unset CXX" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        (["cmake"], "cmake is not installed"),
        (["c++"], "no C and C\\+\\+ compiler is installed"),
        (["ninja"], "neither ninja nor make is installed"),
    ],
)
def test_a_missing_tool_is_named(tool_box: Path, gone: list[str], message: str) -> None:
    for name in gone:
        (tool_box / name).unlink()
    with pytest.raises(HexpatchError, match=message) as caught:
        build.tools()
    assert "apt-get install" in str(caught.value.hint)


def test_make_does_where_ninja_is_missing(tool_box: Path) -> None:
    (tool_box / "ninja").rename(tool_box / "make")
    assert build.tools().generator == "Unix Makefiles"
    assert build.tools().ccache == ""


def test_an_interrupted_build_leaves_nothing_running(tmp_path: Path) -> None:
    """SIGTERM reaches only this program, and cmake does not pass it on to what it started."""
    script = 'sleep 300 & echo $!; sh -c "exec sleep 300" & wait'

    def stop(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        proc.run_logged(["sh", "-c", script], tmp_path / "log", on_line=stop)
    state = Path("/proc", (tmp_path / "log").read_text().split()[-1], "stat")
    ends = time.monotonic() + 60  # it is dying by now; its own end comes after 300 s
    while state.exists() and state.read_text().split()[2] != "Z" and time.monotonic() < ends:
        time.sleep(0.01)
    assert not state.exists() or state.read_text().split()[2] == "Z"


# -- the real thing ------------------------------------------------------------------------


TINY = {
    **FILES,
    "ggml/CMakeLists.txt": (
        "add_library(ggml src/ggml.c)\n"
        "add_library(ggml-cpu MODULE src/ggml.c)\n"
        "add_dependencies(ggml ggml-cpu)\n"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("ninja", [True, False])
def test_the_harness_builds(
    repo: Repo, tmp_path: Path, ninja: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real cmake and compiler on a few lines, with and without ninja and ccache."""
    if not ninja:
        real = shutil.which
        hidden = ("ninja", "ccache")
        monkeypatch.setattr(shutil, "which", lambda n, *a: None if n in hidden else real(n, *a))
    build.tools.cache_clear()
    tree = tree_of(repo, TINY)
    other = repo.git("hash-object", "-w", "--stdin", stdin=b"int main() { return 3; }")
    built, _ = make(repo, tmp_path, tree, stack_test=other.decode().strip())
    build.tools.cache_clear()
    assert {p.name for p in built.bin.iterdir()} >= {
        "libggml-cpu.so",
        "test-backend-ops",
        "test-backend-ops-stack",
    }
