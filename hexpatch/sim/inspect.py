"""Compiles upstream's DSP sources for the real Hexagon and reports what the assembly shows.

Needs a clang that has the Hexagon target and its HVX headers (clang 22 has). It is not Qualcomm's
compiler: numbers are for comparing versions of a kernel and for finding spills, not cycles.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hexpatch import proc
from hexpatch.errors import HexpatchError
from hexpatch.sim import idl, idlread
from hexpatch.sim.inspectasm import Loop
from hexpatch.sim.inspectasm import functions as read_functions
from hexpatch.sim.root import NEWEST, SDK

OLDEST = 22
HTP = Path("ggml/src/ggml-hexagon/htp")
LIBC = SDK / "Tools" / "target" / "hexagon" / "include"
# Upstream's own flags, as far as clang has them; assembly as text, for clang 22 knows no HMX.
FLAGS = ("-O2", "-fvectorize", "-gline-tables-only", "-DNDEBUG=1", "-w", "-ferror-limit=0")
ERRORS = ("-Werror=implicit-function-declaration",)
_ERROR = re.compile(r"^[^\n]*: (?:fatal )?error: [^\n]*|^[^\n]*error: [^\n]*", re.M)


@dataclass(frozen=True)
class FunctionReport:
    """One function of one file; `error` instead when the file could not be compiled."""

    file: str
    name: str = ""
    where: str = ""  # file:line
    packets: int = 0
    stack: int = 0
    vector_stack: int = 0
    vector_stack_in_loops: int = 0
    scalar_stack_in_loops: int = 0
    promotions: dict[str, int] = field(default_factory=dict)
    promotions_in_loops: dict[str, int] = field(default_factory=dict)
    divides_in_loops: dict[str, int] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()
    error: str = ""

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def inspect(
    src: Path,
    *,
    arch: int,
    functions: str | re.Pattern[str] | None = None,
    clang: str | None = None,
    jobs: int | None = None,
) -> tuple[FunctionReport, ...]:
    """Report on a source file, a folder of them, or a tree's htp folder.

    `functions` is searched in the names. Order: file, then as in the file.
    """
    compiler = find_clang(clang)
    sources = _sources(src)
    wanted = re.compile(functions) if isinstance(functions, str) else functions
    with tempfile.TemporaryDirectory(prefix="hexpatch-inspect-") as name:
        room = Path(name)
        flags = _flags(compiler, arch, sources, room)

        def one(source: Path) -> list[FunctionReport]:
            return _report(compiler, flags, source, room, wanted)

        with proc.pool(jobs or len(os.sched_getaffinity(0))) as pool:
            return tuple(report for part in pool.map(one, sources) for report in part)


@functools.cache
def find_clang(wanted: str | None = None) -> str:
    """A clang with the Hexagon target and HVX headers, or an error that says how to get one."""
    named = wanted or os.environ.get("HEXPATCH_HEXAGON_CLANG")
    versions = [f"clang-{n}" for n in range(NEWEST, OLDEST - 1, -1)]
    for name in [named] if named else [*versions, "clang"]:
        path = shutil.which(name)
        if path is None:
            continue
        targets = proc.run([path, "--print-targets"], timeout=60)
        where = proc.run([path, "--print-resource-dir"], timeout=60)
        if targets.status or b"hexagon" not in targets.stdout:
            continue
        if (Path(where.stdout.decode().strip()) / "include" / "hvx_hexagon_protos.h").exists():
            return path
    lacks = f"{named} lacks" if named else "no clang here has"
    raise HexpatchError(
        f"{lacks} the Hexagon target and its HVX headers",
        f"`apt-get install clang-{OLDEST}` (or later, e.g. from apt.llvm.org)",
    )


def _sources(src: Path) -> list[Path]:
    if src.is_file():
        return [src]
    folder = src / HTP if (src / HTP).is_dir() else src
    found = sorted(folder.glob("*.c"))
    if not found:
        raise HexpatchError(f"no C sources in {folder}")
    return found


def _flags(compiler: str, arch: int, sources: Sequence[Path], room: Path) -> list[str]:
    """The command line; SDK headers of a name that the compiler has itself stay out."""
    resource = proc.run([compiler, "--print-resource-dir"], timeout=60).stdout.decode().strip()
    own = {p.name for p in (Path(resource) / "include").iterdir()}
    incs = room / "incs"
    incs.mkdir()
    for header in (SDK / "incs").iterdir():
        if header.name not in own and not header.name.startswith("hvx_"):
            (incs / header.name).symlink_to(header)
    htp = sources[0].resolve().parent
    for description in htp.glob("*.idl"):
        made = idlread.parse(description.read_text(encoding="utf-8"), str(description))
        (room / f"{description.stem}.h").write_text(idl.header(made), encoding="utf-8")
    hexagon = [
        "--target=hexagon",
        f"-mv{arch}",
        f"-mhvx=v{arch}",
        "-mhvx-length=128B",
        *(["-mhvx-ieee-fp"] if arch >= 79 else []),
    ]
    places = [htp, htp.parent, htp.parents[1], htp.parents[2] / "include", room]
    return [
        *hexagon,
        *FLAGS,
        *ERRORS,
        "-nostdlibinc",
        *(f"-I{p}" for p in places),
        *(part for p in (LIBC, incs, incs / "stddef") for part in ("-isystem", str(p))),
        *("-include", "stdio.h", "-include", "stdlib.h", "-fno-integrated-as", "-S"),
    ]


def _report(
    compiler: str,
    flags: list[str],
    source: Path,
    room: Path,
    wanted: re.Pattern[str] | None,
) -> list[FunctionReport]:
    made = room / f"{source.stem}.s"
    done = proc.run([compiler, *flags, str(source), "-o", str(made)], timeout=proc.COMPILE_SECONDS)
    if done.status:
        text = done.stderr.decode("utf-8", "replace")
        found = _ERROR.search(text)
        return [FunctionReport(source.name, error=found[0] if found else text.strip()[-300:])]
    reports = []
    for f in read_functions(made.read_text(encoding="utf-8", errors="replace")):
        if wanted is None or wanted.search(f.name):
            reports.append(FunctionReport(file=source.name, **vars(f)))
    made.unlink()
    return reports
