"""The stand-in for hexagon-clang: compiles upstream's DSP sources for this machine.

    clang -E -> asm statements rewritten (asmrules) -> clang -O2, textual IR -> vector addresses
    masked (irmask) -> code

The generated `Tools/bin/hexagon-clang` calls `main` with a settings file (see root.py) and the
command line that upstream's CMake made. Flags that only a Hexagon compiler knows are dropped; what
it predefines is defined. Links are in cclink.py. What can't be compiled because the simulator lacks
it is said in one line with the original file and line, before the compiler's own text.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from hexpatch.sim.asmtext import AsmError

INCS = "hexpatch/sim/sdk/incs"
DEFAULT_ARCH = 73
OBJECT = "-fhexsim-object"  # not for people: the step that ccache may skip

# Options whose value is the next argument.
_VALUED = {"-o", "-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros", "-D", "-U"}
_VALUED |= {"-x", "-L", "-l", "-MF", "-MT", "-MQ", "-Xlinker", "-Xclang", "-Xpreprocessor", "-T"}
_VALUED |= {"-mllvm", "-arch", "-u", "-z", "-target", "-isysroot", "-Xassembler", "-G"}
# What only a Hexagon compiler, or only its linker, understands; and what must not be on this side:
# vectorised host loops would look like the kernels' own vectors.
_DROPPED = re.compile(
    r"-mcpu=.*|-mtune=.*|-mv\d+t?|-mhvx.*|-mno-hvx.*|-mhmx.*|-mqdsp6.*|-G\d*|-flto.*|-fvectorize"
    r"|-ftree-vectorize|-fslp-vectorize|-fno-zero-initialized-in-bss|-mno-.*|-mpackets|-mnvj|-mnvs"
    r"|-msmall-data.*|-mieee-rnd-near|-ffixed-r\d+|-fuse-ld=.*|-Wl,--no-threads|-moslib=.*"
    r"|-fomit-frame-pointer|--target=.*|-march=.*|-g\d?|-ffp-contract=.*|-ffast-math"
)
_ARCH = re.compile(r"-mv(\d+)t?|-mcpu=(?:hexagon)?v(\d+)t?")
_INFO = re.compile(r"--version|-dump\w+|-print-.*|--print-.*|--help|-###|-V|--verify-.*")
_SUFFIX = {".c": "c", ".i": "c", ".cxx": "c++", ".cpp": "c++", ".cc": "c++", ".C": "c++"}
_SUFFIX |= {".s": "asm", ".S": "asm", ".asm": "asm", ".ll": "other", ".bc": "other"}

# Meaningful on a device of 32 bits, noise on a host of 64.
QUIET = (
    "-Wno-pointer-to-int-cast",
    "-Wno-int-to-pointer-cast",
    "-Wno-void-pointer-to-int-cast",
    "-Wno-int-to-void-pointer-cast",
    "-Wno-format",
    "-Wno-macro-redefined",  # M_PI
    "-Wno-psabi",
    "-Wno-unknown-warning-option",
    "-Wno-unused-command-line-argument",
)
# The compiler holds these back for code from macros, which it can't see in preprocessed text.
EXPANDED = (
    "-Wno-tautological-compare",
    "-Wno-parentheses-equality",
    "-Wno-constant-logical-operand",
    "-Wno-self-assign",
    "-Wno-empty-body",
    "-Wno-misleading-indentation",
    "-Wno-unused-value",
)
LOUD = (
    "-Werror=implicit-function-declaration",
    "-Werror=implicit-int",
    "-Werror=int-conversion",
    "-Werror=return-type",
)
# Declared without an #include: what rewritten asm calls, and what Hexagon's headers bring along.
BROUGHT = ("hexsim.h", "stdio.h", "stdlib.h", "malloc.h")
CODE = (
    "-g1",
    "-funsigned-char",  # as on Hexagon
    "-ferror-limit=0",
    "-fno-caret-diagnostics",  # the line is not the one in the source any more
    "-fno-unroll-loops",
    "-fPIC",
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-mllvm",
    "-disable-vector-combine",  # it makes scalar loads of a vector load whose lanes are used
)
CHECKED = (
    "-fsanitize=kernel-address",
    *("-mllvm", "-asan-instrumentation-with-call-threshold=0"),
    *("-mllvm", "-asan-stack=0"),
    *("-mllvm", "-asan-globals=0"),
    *("-mllvm", "-asan-opt-same-temp=0"),  # each access counts
)


class Settings:
    """What root.py wrote: the compiler and the flavour. The root may have been moved since."""

    def __init__(self, path: str) -> None:
        made = json.loads(Path(path).read_text(encoding="utf-8"))
        self.home = Path(path).parents[1]
        self.key: str = made["key"]
        self.clang: str = made["clang"]
        self.checked: bool = made["checked"]
        self.cpu: list[str] = made["cpu"]
        self.half: list[str] = made["half"]
        root = Path(path).parents[3]
        self.lib = str(root / "lib")
        self.incs = str(root / "sdk" / "incs")
        self.base: list[str] = made["base"]
        self.wrap: list[str] = made["wrap"]
        self.ccache: str = made["ccache"]


class Job:
    """A command line, sorted."""

    def __init__(self, argv: list[str]) -> None:
        self.flags: list[str] = []  # for preprocessing and compiling
        self.link: list[str] = []  # for the linker, objects in their places
        self.deps: list[str] = []
        self.sources: list[tuple[str, str]] = []  # path, language
        self.output = ""
        self.mode = "link"
        self.arch = DEFAULT_ARCH
        self.info = False
        self.optimise = "-O0"
        language = ""
        at = 0
        while at < len(argv):
            arg = argv[at]
            at += 1
            value = ""
            if arg in _VALUED and at < len(argv):
                value = argv[at]
                at += 1
            if found := _ARCH.fullmatch(arg):
                self.arch = int(found[1] or found[2])
            if _INFO.fullmatch(arg):
                self.info = True
                self.flags.append(arg)
            elif arg in ("-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"):
                self.mode = arg[1:]
                self.deps += [arg] if arg in ("-M", "-MM") else []
            elif arg in ("-MD", "-MMD", "-MP", "-MG") or (value and arg in ("-MF", "-MT", "-MQ")):
                self.deps += [arg, value] if value else [arg]
            elif arg == "-o":
                self.output = value
            elif arg == "-x":
                language = "" if value == "none" else value
            elif arg in ("-G",) or _DROPPED.fullmatch(arg):
                pass
            elif re.fullmatch(r"-O\w*", arg):
                self.optimise = arg
            elif arg in ("-L", "-l", "-Xlinker", "-u", "-z", "-T"):
                self.link += [arg, value]
            elif arg[:2] in ("-L", "-l") or arg[:4] == "-Wl," or arg in ("-shared", "-static"):
                self.link.append(arg)
            elif value:
                self.flags += [arg, value]
            elif arg[:1] == "-" and arg != "-":
                self.flags.append(arg)
            else:
                kind = language or _SUFFIX.get(Path(arg).suffix, "")
                if kind:
                    self.sources.append((arg, "asm" if "assembler" in kind else kind))
                self.link.append(arg)


def defines(arch: int) -> list[str]:
    """What a Hexagon compiler predefines."""
    names = {
        "__hexagon__": 1,
        "__qdsp6__": 1,
        "__HEXAGON_ARCH__": arch,
        f"__HEXAGON_V{arch}__": 1,
        "__QDSP6_ARCH__": arch,
        "__HEXAGON_PHYSICAL_SLOTS__": 4,
        "__HVX__": 1,
        "__HVX_ARCH__": arch,
        "__HVX_LENGTH__": 128,
        "__HMX__": 1,
        "__QURT": 1,
    }
    if arch >= 79:
        names["__HVX_IEEE_FP__"] = 1
    return [f"-D{name}={value}" for name, value in names.items()]


def main(settings: str, argv: list[str], *, cxx: bool = False) -> int:
    """Do what the command line asks; the exit status."""
    known = Settings(settings)
    if OBJECT in argv:
        return _object_command(known, argv)
    job = Job(argv)
    if job.info or (not job.sources and not job.link):
        return subprocess.call([known.clang, *(a for a in argv if not _DROPPED.fullmatch(a))])
    try:
        if job.mode == "link":
            return _link(known, job, cxx)
        return _each(known, job)
    except AsmError as bad:
        return _say(f"{bad.path}:{bad.line}: hexsim: {bad.message}" if bad.path else bad.message)


def _say(text: str) -> int:
    sys.stderr.write(text.rstrip("\n") + "\n")
    return 1


def _link(known: Settings, job: Job, cxx: bool) -> int:
    import shutil
    import tempfile

    from hexpatch.sim import cclink

    made: dict[str, str] = {}
    room = Path(tempfile.mkdtemp(prefix="hexsim-"))
    try:
        for number, (source, language) in enumerate(job.sources):
            made[source] = str(room / f"{number}.o")
            status = compile_one(known, job, source, language, made[source])
            if status:
                return status
        job.link = [made.get(arg, arg) for arg in job.link]
        return cclink.link(known, job, room, cxx=cxx or any(s[1] == "c++" for s in job.sources))
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _each(known: Settings, job: Job) -> int:
    for source, language in job.sources:
        output = job.output or Path(source).stem + (".s" if job.mode == "S" else ".o")
        if job.mode in ("E", "M", "MM", "fsyntax-only"):
            argv = [known.clang, *_common(known, job, language), f"-{job.mode}", *job.deps, source]
            status = subprocess.call(argv + (["-o", job.output] if job.output else []))
        else:
            status = compile_one(known, job, source, language, output)
        if status:
            return status
    return 0


def _common(known: Settings, job: Job, language: str) -> list[str]:
    """Flags of every step that sees source text."""
    named = {"c": "c", "c++": "c++", "asm": "assembler-with-cpp"}.get(language)
    common = [*(["-x", named] if named else []), *job.flags, *QUIET]
    common += [*defines(job.arch), f"-DHEXSIM_COUNT={int(known.checked)}", "-funsigned-char"]
    return [*common, *known.cpu, *known.half]


def compile_one(known: Settings, job: Job, source: str, language: str, output: str) -> int:
    """One source to an object (or, for -S, to assembly)."""
    last = "-S" if job.mode == "S" else "-c"
    if language != "c":
        argv = [known.clang, *_common(known, job, language), "-fPIC", job.optimise, *job.deps]
        return subprocess.call([*argv, last, source, "-o", output])
    deps = list(job.deps)
    if deps and not {"-MT", "-MQ"} & set(deps):
        deps += ["-MT", output]
    if deps and "-MF" not in deps:
        deps += ["-MF", str(Path(output).with_suffix(".d"))]
    argv = [known.clang, *_common(known, job, "c"), "-isystem", known.incs]
    argv += [part for name in BROUGHT for part in ("-include", name)] + [*LOUD]
    done = subprocess.run([*argv, "-E", *deps, source, "-o", "-"], capture_output=True, check=False)
    if done.returncode:
        return _explain(done.stderr, done.returncode)
    sys.stderr.buffer.write(done.stderr)
    text = done.stdout.decode("utf-8", "surrogateescape")

    from hexpatch.sim import asmrules

    # Hexagon's C library says 0 for NULL, and upstream gives NULL to integers
    text = text.replace("((void*)0)", "0L").replace("((void *)0)", "0L")
    text = asmrules.rewrite(text, count=known.checked)
    if known.checked:
        text = asmrules.hook(text)
    flags = [f for f in job.flags if f[:2] in ("-W", "-f", "-m", "-s", "-p") and f[:3] != "-Wp"]
    flags += [*QUIET, *EXPANDED, *LOUD, *known.cpu, *known.half]
    # -O0 would keep every vector in memory
    flags.append(job.optimise if job.optimise != "-O0" else "-O1")
    make = _cached if known.ccache and Path(known.ccache).exists() else _object
    return make(known, text, flags, last, output)


def _object(known: Settings, text: str, flags: list[str], last: str, output: str) -> int:
    """Preprocessed text to code."""
    from hexpatch.sim import irmask

    argv = [known.clang, "-x", "cpp-output", *flags, *CODE, *(CHECKED if known.checked else ())]
    done = subprocess.run(
        [*argv, "-S", "-emit-llvm", "-", "-o", "-"],
        input=text.encode("utf-8", "surrogateescape"),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        return _explain(done.stderr, done.returncode)
    sys.stderr.buffer.write(done.stderr)
    code = irmask.mask(done.stdout.decode("utf-8", "surrogateescape"), checked=known.checked)
    level = next((f for f in reversed(flags) if f[:2] == "-O"), "-O2")
    argv = [known.clang, "-x", "ir", level, "-fPIC", *known.cpu, "-Xclang", "-disable-llvm-passes"]
    done = subprocess.run(
        [*argv, "-Wno-override-module", last, "-", "-o", output],
        input=code.encode("utf-8", "surrogateescape"),
        capture_output=True,
        check=False,
    )
    sys.stderr.buffer.write(done.stderr)
    return done.returncode


def _cached(known: Settings, text: str, flags: list[str], last: str, output: str) -> int:
    """As _object, through ccache: it sees this script as a compiler of preprocessed text."""
    script = str(known.home / "bin" / "hexagon-clang")
    given = Path(f"{output}.{os.getpid()}.i")
    given.write_text(text, encoding="utf-8", errors="surrogateescape")
    env = dict(os.environ, CCACHE_COMPILERCHECK=f"string:{known.key}", CCACHE_COMPILERTYPE="clang")
    env["CCACHE_NODIRECT"] = "1"
    try:
        argv = [known.ccache, script, OBJECT, *flags, last, str(given), "-o", output]
        return subprocess.call(argv, env=env)
    finally:
        given.unlink(missing_ok=True)


def _object_command(known: Settings, argv: list[str]) -> int:
    """What ccache runs: the flags of _cached, perhaps with some of its own."""
    output, given, flags = "", "", []
    rest = iter(argv)
    for arg in rest:
        if arg == "-o":
            output = next(rest)
        elif arg.endswith(".i"):
            given = arg
        elif arg == "-x":
            next(rest)
        elif arg not in (OBJECT, "-c", "-S") and "diagnostics" not in arg:  # ccache asks for colour
            flags.append(arg)
    text = Path(given).read_text(encoding="utf-8", errors="surrogateescape")
    return _object(known, text, flags, "-S" if "-S" in argv else "-c", output)


# -- errors -----------------------------------------------------------------------------------

LONG = 40
_AT = r"^([^:\n]+:\d+)(?::\d+)?: (?:fatal )?error: "
_HEADER = re.compile(_AT + r"'([^'\n]+)' file not found", re.M)
_NAME = re.compile(
    _AT + r"(?:call to undeclared (?:library )?function|implicit declaration of function"
    r"|use of undeclared identifier|unknown type name|use of unknown builtin) '(\w+)'",
    re.M,
)
_PLACES = (
    (re.compile(r"Q6_\w+"), f"{INCS}/hvx_table.h"),
    (re.compile(r"(HVX|hvx|hexagon|__builtin_HEXAGON|__builtin_hexagon)_\w+"), f"{INCS}"),
    (re.compile(r"(qurt|QURT|HAP|FARF|dspqueue|DSPQUEUE|AEE|remote|rpcmem)_?\w*"), INCS),
)


def explain(text: str) -> list[str]:
    """One line for each thing that the simulator lacks, from the compiler's errors."""
    found = {}
    for match in _HEADER.finditer(text):
        found[match[2]] = f"{match[1]}: hexsim: header {match[2]} is not there; add it to {INCS}/"
    for match in _NAME.finditer(text):
        for pattern, place in _PLACES:
            if pattern.fullmatch(match[2]):
                said = f"{match[1]}: hexsim: {match[2]} is not modelled; add it to {place}"
                found.setdefault(match[2], said)
                break
    return list(found.values())


def _explain(stderr: bytes, status: int) -> int:
    text = stderr.decode("utf-8", "replace")
    lacking = explain(text)
    lines = text.rstrip("\n").split("\n")
    if lacking and len(lines) > LONG:  # what follows from a missing name is of little use
        lines[LONG - 1 : -1] = [f"... {len(lines) - LONG} lines left out"]
    _say("\n".join([*lacking, *lines]))
    return status
