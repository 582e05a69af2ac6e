"""The link step of the stand-in for hexagon-clang.

A shared library gets: libcdsprpc.so as a needed library, no undefined symbols, a preferred address
below 4 GiB (kernels cast pointers to 32 bits), every `__wrap_NAME` that the runtime exports instead
of NAME, and a thunk around each external function `op_*` that tells the runtime which op runs.
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hexpatch.sim.cc import Job, Settings

_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:?) [`']?(\w+)'?")
_THUNK = """\
int __real_{0}(void *);
int __wrap_{0}(void * octx);
int __wrap_{0}(void * octx) {{
    sim_op_begin("{0}", octx);
    const int status = __real_{0}(octx);
    sim_op_end(status);
    return status;
}}
"""


def link(known: Settings, job: Job, room: Path, *, cxx: bool) -> int:
    """Link an executable (CMake's probes) or a DSP library."""
    argv = [known.clang, *(["--driver-mode=g++"] if cxx else [])]
    argv += [f for f in job.flags if f[:2] in ("-f", "-p", "-n") or f in ("-v",)]
    argv += job.link
    if "-shared" in job.link:
        ops = sorted({op for o in job.link if _is_object(o) for op in defined(o, "op_")})
        if ops:
            thunks = _thunks(known, ops, room)
            if thunks is None:
                return 1
            argv += [thunks, *(f"-Wl,--wrap={op}" for op in ops)]
        argv += [f"-Wl,--wrap={name}" for name in known.wrap]
        argv += ["-Wl,-z,defs", *known.base, f"-L{known.lib}", "-lcdsprpc", "-lm", "-lpthread"]
    argv += ["-o", job.output or "a.out"]
    done = subprocess.run(argv, capture_output=True, check=False)
    text = done.stderr.decode("utf-8", "replace")
    if done.returncode:
        for name in dict.fromkeys(_UNDEFINED.findall(text)):
            sys.stderr.write(
                f"{Path(job.output).name}: hexsim: nobody defines {name}; "
                "add it to hexpatch/sim/runtime/\n"
            )
    sys.stderr.write(text)
    return done.returncode


def _thunks(known: Settings, ops: list[str], room: Path) -> str | None:
    source = '#include "hexsim.h"\n' + "".join(_THUNK.format(op) for op in ops)
    path, made = room / "thunks.c", room / "thunks.o"
    path.write_text(source, encoding="utf-8")
    argv = [known.clang, "-O2", "-fPIC", "-isystem", known.incs, "-c", str(path), "-o", str(made)]
    return str(made) if subprocess.call(argv) == 0 else None


def _is_object(path: str) -> bool:
    return path.endswith((".o", ".obj")) and not path.startswith("-")


def defined(path: str | Path, prefix: str) -> set[str]:
    """Global functions with this prefix that an ELF64 object (or shared library) defines."""
    data = Path(path).read_bytes()
    if data[:5] != b"\x7fELF\x02" or data[5] != 1:
        return set()
    start, size, count = (
        struct.unpack_from("<Q", data, 0x28)[0],
        *struct.unpack_from("<HH", data, 0x3A),
    )
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
    found = set()
    for section in sections:
        if section[1] not in (2, 11):  # symbols, dynamic symbols
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            name, info, _, where = struct.unpack_from("<IBBH", data, at)
            if where == 0 or info >> 4 == 0 or info & 15 not in (2, 10):
                continue  # undefined, local or no code
            end = data.index(b"\0", names + name)
            text = data[names + name : end].decode("ascii", "replace")
            if text.startswith(prefix):
                found.add(text)
    return found
