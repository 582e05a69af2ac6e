"""Writes a Hexagon SDK, as far as upstream's CMake looks at it, whose compiler makes host code.

    <into>/<key>/sdk                    HEXAGON_SDK_ROOT: headers, build/cmake, tools/qaic
    <into>/<key>/tools                  HEXAGON_TOOLS_ROOT
    <into>/<key>/tools/Tools/bin        hexagon-clang, hexagon-clang++, hexagon-ar
    <into>/<key>/tools/Tools/lib        their Python code and settings.json
    <into>/<key>/lib/libcdsprpc.so      the runtime

The key is a hash of everything that decides what the tools produce. A root is complete when it is
there (it is renamed into place) and is never changed; another version of hexpatch makes another.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import platform
import py_compile
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hexpatch import proc
from hexpatch.errors import HexpatchError
from hexpatch.sim import cclink

HERE = Path(__file__).parent
SDK = HERE / "sdk"
RUNTIME = HERE / "runtime"
# What runs in the root, by its path below the package.
TOOLS = ("cc", "cclink", "asmtext", "asmrules", "asmhmx", "irmask", "idl", "idlread")
OLDEST, NEWEST = 14, 30
RUNTIME_FLAGS = ("-O2", "-g1", "-fPIC", "-pthread", "-std=gnu11", "-ffp-contract=off")
RUNTIME_LINK = ("-shared", "-Wl,-soname,libcdsprpc.so", "-Wl,-Bsymbolic-functions", "-Wl,-z,defs")
BASE = 0x1000_0000  # where a DSP library goes when it can: below 4 GiB, under the runtime's memory
_LAUNCHER = """\
import os, sys
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "hexsim"))
name = os.path.basename(sys.argv[1])
if name == "qaic":
    from hexpatch.sim.idl import main
    sys.exit(main(sys.argv[2:]))
from hexpatch.sim.cc import main
sys.exit(main(os.path.join(here, "settings.json"), sys.argv[2:], cxx=name.endswith("++")))
"""


@dataclass(frozen=True)
class Root:
    """A written root: the folders for CMake and the loader, and what made it."""

    sdk: Path
    tools: Path
    lib: Path
    clang: str
    key: str


@dataclass(frozen=True)
class Compiler:
    """A clang that can be used: where, which, and what this machine lets it use."""

    path: str
    version: str
    major: int


def materialise(into: Path, *, checked: bool, clang: str | None = None) -> Root:
    """Write the root below `into` unless it is there. `checked` = with counters and checks."""
    found = find_clang(clang)
    ccache = shutil.which("ccache") or ""
    cpu = cpu_flags()
    key = _key(found, checked, cpu)
    home = into.resolve() / key
    root = Root(home / "sdk", home / "tools", home / "lib", found.path, key)
    if home.is_dir():
        return root
    with _locked(into.resolve()):
        if home.is_dir():
            return root
        room = Path(tempfile.mkdtemp(prefix=".new-", dir=into))
        try:
            shutil.copytree(SDK, room / "sdk")
            library = _runtime(room, found, cpu, ccache)
            _tools(
                room,
                {
                    "key": key,
                    "clang": found.path,
                    "checked": checked,
                    "cpu": list(cpu),
                    "half": list(_half_flags(found)),
                    "base": list(_base_flags(found)),
                    "wrap": sorted(n[len("__wrap_") :] for n in cclink.defined(library, "__wrap_")),
                    "ccache": ccache,
                },
            )
            room.chmod(0o755)
            room.rename(home)
        finally:
            shutil.rmtree(room, ignore_errors=True)
    return root


@contextlib.contextmanager
def _locked(into: Path) -> Iterator[None]:
    into.mkdir(parents=True, exist_ok=True)
    with (into / ".lock").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


# -- what is used -----------------------------------------------------------------------------


@functools.cache
def find_clang(wanted: str | None = None) -> Compiler:
    """The asked for clang, $HEXPATCH_CLANG, or the first of clang, clang-30 .. clang-14."""
    wanted = wanted or os.environ.get("HEXPATCH_CLANG")
    newest_first = [f"clang-{n}" for n in range(NEWEST, OLDEST - 1, -1)]
    for name in [wanted] if wanted else ["clang", *newest_first]:
        path = shutil.which(name)
        if path is None:
            continue
        done = proc.run([path, "--version"], timeout=60)
        text = done.stdout.decode("utf-8", "replace")
        version = re.search(r"clang version (\d+)[^\n]*", text)
        if done.status == 0 and version and int(version[1]) >= OLDEST:
            return Compiler(path, version[0], int(version[1]))
    lacks = f"{wanted} is no clang >= {OLDEST}" if wanted else f"no clang >= {OLDEST} is installed"
    raise HexpatchError(
        f"the simulator needs clang: {lacks}", "`apt-get install clang`, or set HEXPATCH_CLANG"
    )


@functools.cache
def cpu_flags() -> tuple[str, ...]:
    """Options for the vector units of this machine."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return ()
    try:
        words = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return ()
    return tuple(f"-m{name}" for name in ("avx2", "fma", "f16c") if name in words)


def _key(clang: Compiler, checked: bool, cpu: tuple[str, ...]) -> str:
    sums = []
    for what, top in (("sdk", SDK), ("runtime", RUNTIME)):
        found = (p for p in top.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        sums += sorted((what, p.relative_to(top).as_posix(), _sum(p)) for p in found)
    sums += [("", name, _sum(HERE / f"{name}.py")) for name in (*TOOLS, "root")]
    how = [vars(clang), checked, cpu, sys.executable, sys.version, platform.machine()]
    return hashlib.sha256(json.dumps([sums, how]).encode()).hexdigest()[:20]


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _base_flags(clang: Compiler) -> tuple[str, ...]:
    """How this linker is told an address; nothing when it can't be."""
    for option in (f"-Wl,-Ttext-segment={BASE:#x}", f"-Wl,--image-base={BASE:#x}"):
        argv = [clang.path, "-shared", "-fPIC", "-x", "c", "-", option, "-o", os.devnull]
        if proc.run(argv, stdin=b"int hexsim_probe;\n", timeout=60).status == 0:
            return (option,)
    return ()


def _half_flags(clang: Compiler) -> tuple[str, ...]:
    """x86 has _Float16 since clang 15; before, __fp16 (same bits, computed in float) must do."""
    argv = [clang.path, "-x", "c", "-fsyntax-only", "-"]
    if proc.run(argv, stdin=b"_Float16 f(_Float16 x) { return x; }\n", timeout=60).status == 0:
        return ()
    return ("-D_Float16=__fp16", "-Xclang", "-fallow-half-arguments-and-returns")


# -- what is written --------------------------------------------------------------------------


def _runtime(room: Path, clang: Compiler, cpu: tuple[str, ...], ccache: str) -> Path:
    """Compile hexpatch/sim/runtime to lib/libcdsprpc.so."""
    lib, objects = room / "lib", room / "objects"
    lib.mkdir()
    objects.mkdir()
    incs = SDK / "incs"
    flags = [*RUNTIME_FLAGS, *cpu, f"-I{incs}", f"-I{incs / 'stddef'}", f"-I{RUNTIME}"]

    def one(source: Path) -> Path:
        made = objects / f"{source.stem}.o"
        argv = [clang.path, *flags, "-c", str(source), "-o", str(made)]
        _ran([ccache, *argv] if ccache else argv)
        return made

    sources = sorted(RUNTIME.glob("*.c"))
    with proc.pool(len(os.sched_getaffinity(0))) as pool:
        made = list(pool.map(one, sources))
    library = lib / "libcdsprpc.so"
    argv = [clang.path, *RUNTIME_LINK, *map(str, made), "-o", str(library)]
    _ran([*argv, "-lm", "-ldl", "-lpthread"])
    shutil.rmtree(objects)
    return library


def _ran(argv: list[str]) -> None:
    done = proc.run(argv, timeout=proc.COMPILE_SECONDS)
    if done.status:
        text = done.stderr.decode("utf-8", "replace")
        raise HexpatchError(f"the simulator's runtime does not build:\n{text}", " ".join(argv))


def _tools(room: Path, settings: dict[str, object]) -> None:
    """Write the compiler scripts with a copy of the code they run."""
    lib = room / "tools" / "Tools" / "lib"
    package = lib / "hexsim" / "hexpatch"
    (package / "sim").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sim" / "__init__.py").write_text("")
    for name in TOOLS:
        shutil.copyfile(HERE / f"{name}.py", package / "sim" / f"{name}.py")
    for path in package.rglob("*.py"):
        py_compile.compile(str(path), doraise=True)
    (lib / "hexsim.py").write_text(_LAUNCHER)
    (lib / "settings.json").write_text(json.dumps(settings, indent=1) + "\n")
    archiver = shutil.which("ar") or shutil.which("llvm-ar") or "ar"
    scripts = {
        "tools/Tools/bin/hexagon-clang": _script("../lib/hexsim.py"),
        "tools/Tools/bin/hexagon-clang++": _script("../lib/hexsim.py"),
        "tools/Tools/bin/hexagon-ar": f'#!/bin/sh\nexec {_quoted(archiver)} "$@"\n',
        "sdk/tools/qaic/bin/qaic": _script("../../../../tools/Tools/lib/hexsim.py"),
    }
    for name, text in scripts.items():
        path = room / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)


def _script(launcher: str) -> str:
    python = _quoted(sys.executable)
    return f'#!/bin/sh\nexec {python} -I -S "${{0%/*}}/{launcher}" "$0" "$@"\n'


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"
