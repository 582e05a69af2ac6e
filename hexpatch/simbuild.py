"""Builds a tree for the simulator: upstream's host part once, its DSP library per arch and flavour.

A tree is `<state>/build/sim/<tree id>/{src,build,dsp/...}`, alike for all trees, so that ccache
shares objects between base and stack: after a kernel edit only that kernel is compiled.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hexpatch import build as builder
from hexpatch.build import FLAGS, HARNESS, SECOND, STACK_TEST, TEST, TEST_SOURCE, Folder, Say
from hexpatch.errors import HexpatchError
from hexpatch.repo import Repo
from hexpatch.sim.root import Root, materialise

HEXAGON = "ggml/src/ggml-hexagon"
WATCH, BENCH = "hexpatch-watch", "hexpatch-opbench"
PRODUCTS = {
    "ggml-cpu": "libggml-cpu.so",
    "ggml-hexagon": "libggml-hexagon.so",
    WATCH: f"lib{WATCH}.so",
}
_ARGS = re.compile(r"ExternalProject_Add\(\s*htp-\$\{V\}(.*?)\)[ \t]*\n", re.S)
_ARG = re.compile(r'-D([A-Za-z0-9_]+)=("[^"]*"|[^\s")]*)')
_OPTION = re.compile(r'option\(\s*(\w+)\s+"[^"]*"\s+(\w+)\s*\)')
_CACHED = re.compile(r'set\(\s*(\w+)\s+"?([^\s"]*)"?\s+CACHE\b')
_SHELL = re.compile(r"""[\s'"\\$&;|<>()*?`#~!\[\]{}]""")  # in an unquoted word
_SKEL = re.compile(r"build_htp_skel\((v\d+)\)")


@dataclass(frozen=True)
class SimBuilt:
    """A tree for the simulator: programs, the DSP library's folder, the runtime's folder."""

    dir: Path
    bin: Path
    dsp: Path
    runtime: Path
    log: Path
    seconds: float
    clang: str = ""
    key: str = ""  # of the simulator: another one may give other results

    @property
    def watch(self) -> Path:
        """The library that fixes seeds and notes errors."""
        return self.bin / PRODUCTS[WATCH]


def flavour(checked: bool) -> str:
    """The name of a DSP library's kind: with or without counters and checks."""
    return "checked" if checked else "fast"


def dsp_arguments(cmake: str, version: str, places: Mapping[str, str]) -> list[str]:
    """The -D arguments that upstream's own CMakeLists passes to the DSP library's project.

    Read from its text, so that a tree of another age gets what its kernels ask for.
    """
    skels = _SKEL.findall(cmake)
    if version not in skels:
        known = ", ".join(skels) or "none"
        raise HexpatchError(f"this tree builds no DSP library for {version} (it has: {known})")
    found = _ARGS.search(cmake)
    if found is None or "CMAKE_ARGS" not in found[1]:
        raise HexpatchError(
            f"{HEXAGON}/CMakeLists.txt does not build the DSP library as hexpatch knows it",
            "the simulator takes its arguments from ExternalProject_Add(htp-${V} ... CMAKE_ARGS",
        )
    values = {**dict(_OPTION.findall(cmake)), **dict(_CACHED.findall(cmake)), **places}
    values["V"] = version
    out = []
    for name, text in _ARG.findall(found[1].partition("CMAKE_ARGS")[2]):
        value = text.strip('"')
        for variable in re.findall(r"\$\{(\w+)\}", value):
            if variable not in values:
                raise HexpatchError(
                    f"{HEXAGON}/CMakeLists.txt passes -D{name}={value} to the DSP library, and "
                    f"hexpatch does not know {variable}"
                )
            value = value.replace("${" + variable + "}", values[variable])
        out.append(f"-D{name}={value}")
    return out


def build(
    repo: Repo,
    state: Path,
    tree: str,
    *,
    arch: int,
    checked: bool = False,
    bench: bool = False,
    stack_test: str | None = None,
    jobs: int | None = None,
    say: Say,
) -> SimBuilt:
    """Build a tree's host part and its DSP library. What is up to date is not looked at again."""
    began = time.monotonic()
    state = state.resolve()
    home = builder.tree_dir(state, "sim", tree)
    if builder.blob_at(repo, tree, f"{HEXAGON}/htp/CMakeLists.txt") is None:
        raise HexpatchError(
            f"tree {tree[:12]} has no {HEXAGON}/htp: it is older than the Hexagon backend",
            "the simulator needs a base of b6845 (October 2025) or later",
        )
    if odd := _SHELL.search(str(state)):
        raise HexpatchError(
            f"the simulator can't be built below {state}: upstream's toolchain file does not quote "
            f"paths, and {odd[0]!r} means something to a shell",
            "move the workspace to a folder whose path has no blanks and no such signs",
        )
    roots = {kind: _root(state, kind, say) for kind in {False, checked}}
    goals = dict.fromkeys((TEST, "ggml-cpu", "ggml-hexagon", WATCH), tree)
    if bench:
        goals[BENCH] = tree
    if stack_test is not None:
        goals[STACK_TEST] = stack_test
    log = state / "logs" / f"build-sim-{tree[:12]}.log"
    one = _Tree(repo, state, home, tree, log, jobs, say)
    one.host(roots[False], goals)
    dsp = one.dsp(roots[checked], f"v{arch}", flavour(checked))
    seconds = time.monotonic() - began
    root = roots[checked]
    return SimBuilt(home, home / "build" / "bin", dsp, root.lib, log, seconds, root.clang, root.key)


def _root(state: Path, checked: bool, say: Say) -> Root:
    """The SDK-shaped root of a flavour; another version of the simulator makes another one."""
    say(f"simulator ({flavour(checked)})")
    return materialise(state / "build" / "sim" / "root", checked=checked)


@dataclass(frozen=True)
class _Tree:
    """One tree's folders, and how they are built."""

    repo: Repo
    state: Path
    home: Path
    tree: str
    log: Path
    jobs: int | None
    say: Say

    def host(self, root: Root, goals: Mapping[str, str]) -> None:
        out = self.home / "build"
        config = _hashed(FLAGS, vars(builder.tools()), builder.harness(), str(root.sdk), root.clang)
        stamp, key = self.home / "built.json", _hashed(config, root.key)
        done = builder.stamped(stamp, key)
        if all(done.get(goal) == source for goal, source in goals.items()) and all(
            (out / "bin" / PRODUCTS.get(goal, goal)).exists() for goal in goals
        ):
            return
        second = self.export(goals.get(STACK_TEST))
        found = builder.tools()
        configure = ["cmake", "-S", str(HARNESS), "-B", str(out), "-G", found.generator, *FLAGS]
        configure += [f"-DHEXPATCH_SRC={self.home / 'src'}", "-DHEXPATCH_SIM=ON"]
        configure += [f"-DHEXPATCH_TESTS={STACK_TEST}={second}"]
        configure += _roots(root)
        if found.ccache:
            configure += [f"-DCMAKE_{lang}_COMPILER_LAUNCHER=ccache" for lang in ("C", "CXX")]
        what = f"tree {self.tree} for the simulator"
        # kernels' headers that the host includes have types (__fp16) that gcc has for ARM only
        compilers = {"CC": root.clang, "CXX": _cxx(root.clang)}
        self.make(what, out, configure, list(goals), config, compilers)
        builder.keep(stamp, {"config": key, "goals": {**done, **goals}})

    def export(self, stack_test: str | None) -> Path:
        """Write the tree to disk; where the stack's test file is, or would be."""
        self.say(f"export {self.tree[:12]}")
        self.log.unlink(missing_ok=True)
        builder.export_tree(self.repo, self.tree, self.home / "src")
        second = self.home / SECOND
        second.parent.mkdir(exist_ok=True)
        if stack_test is not None:
            data = self.repo.read(stack_test, "blob")
        elif second.exists():
            return second
        else:
            data = (self.home / "src" / TEST_SOURCE).read_bytes()
        if not second.exists() or second.read_bytes() != data:
            second.write_bytes(data)
        return second

    def dsp(self, root: Root, version: str, kind: str) -> Path:
        """The folder that holds libggml-htp-vNN.so of one arch and flavour."""
        out = self.home / "dsp" / f"{version}-{kind}"
        library = out / f"libggml-htp-{version}.so"
        text = (self.home / "src" / HEXAGON / "CMakeLists.txt").read_text("utf-8", "replace")
        source = self.home / "src" / HEXAGON
        places = {
            "HEXAGON_SDK_ROOT": str(root.sdk),
            "HEXAGON_TOOLS_ROOT": str(root.tools),
            "CMAKE_CURRENT_SOURCE_DIR": str(source),
            "CMAKE_CURRENT_BINARY_DIR": str(out),
        }
        arguments = dsp_arguments(text, version, places)
        found = builder.tools()
        config = _hashed(arguments, found.cmake, found.generator)
        stamp, key = out.with_name(f"{out.name}.json"), _hashed(config, root.key)
        if builder.stamped(stamp, key) == {library.name: self.tree} and library.exists():
            return out
        configure = ["cmake", "-S", str(source / "htp"), "-B", str(out), "-G", found.generator]
        configure += arguments
        what = f"the DSP library {version} ({kind}) of tree {self.tree}"
        self.make(what, out, configure, [], config)
        if not library.exists():
            raise HexpatchError(f"{what} was built, but there is no {library}")
        builder.keep(stamp, {"config": key, "goals": {library.name: self.tree}})
        return out

    def make(
        self,
        what: str,
        out: Path,
        configure: Sequence[str],
        goals: Sequence[str],
        config: str,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        """One CMake folder, with the log kept across the folders of a tree."""
        out.parent.mkdir(parents=True, exist_ok=True)
        mark = out.with_name(f"{out.name}.configured")
        builder.run_cmake(
            Folder(what, self.home, out, mark, self.log),
            configure,
            goals,
            config=config,
            env={**builder.environment(self.home.parent, self.home), **(extra or {})},
            title=f"build sim {self.tree[:12]} {out.name}",
            jobs=self.jobs,
            say=self.say,
        )


def _cxx(clang: str) -> str:
    """The C++ compiler that goes with a clang."""
    path = Path(clang)
    beside = path.with_name(path.name.replace("clang", "clang++", 1))
    return str(beside) if beside.exists() else f"{clang} --driver-mode=g++"


def _roots(root: Root) -> list[str]:
    return [f"-DHEXAGON_SDK_ROOT={root.sdk}", f"-DHEXAGON_TOOLS_ROOT={root.tools}"]


def _hashed(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
