"""Builds C drivers with the kernels' own headers against the simulator's HVX and HMX models.

The kernels are those of ``src/htp``. Upstream's headers come from the base with the series applied.
A driver is preprocessed, its inline assembly is rewritten to calls, and that is compiled natively.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hexpatch.errors import HexpatchError
from hexpatch.sim import asmrules, root

HERE = Path(__file__).parent
REPO = HERE.parents[1]
KERNELS = REPO / "src" / "htp"
SIM = REPO / "hexpatch" / "sim"
INCS = SIM / "sdk" / "incs"
STUB = REPO / "tests" / "sim" / "hmx_stub.c"
SERIES = ("series.yaml", "series.lock", "patches", "src")
ARCHES = (73, 79)  # encoded qfloat and the new one, either layout of DMA descriptors
FLAGS = (
    "-O2", "-std=gnu11", "-fPIC", "-fno-vectorize", "-fno-slp-vectorize", "-ffp-contract=off",
    "-fno-strict-aliasing", "-Wno-everything",
)  # fmt: skip


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Alone with what the lock file stands for, among the processes of this run."""
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def ran(argv: list[str], **how: object) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False, **how)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{' '.join(argv[:2])} ...: {done.stderr[-5000:]}"
    return str(done.stdout)


@dataclass(frozen=True)
class Lab:
    """A compiler with its flags, and the folder where this run keeps what it makes once."""

    clang: str
    flags: tuple[str, ...]
    room: Path

    def once(self, name: str, make: Callable[[Path], object]) -> Path:
        """room/name: made by one process, waited for by the others."""
        to = self.room / name
        with locked(self.room / f".{name}.lock"):
            if not to.exists():
                part = self.room / f"new-{name}"
                shutil.rmtree(part, ignore_errors=True)
                make(part)
                part.rename(to)
        return to

    @property
    def tree(self) -> Path:
        """The base with the series applied."""
        return self.once("series", self._apply) / ".hexpatch" / "llama.cpp"

    @property
    def model(self) -> list[str]:
        """The objects of the matrix unit's model, and what they need of the runtime."""
        return sorted(map(str, self.once("model", self._model).glob("*.o")))

    def _apply(self, to: Path) -> None:
        to.mkdir()
        for name in SERIES:
            if (REPO / name).is_dir():
                shutil.copytree(REPO / name, to / name)
            else:
                shutil.copyfile(REPO / name, to / name)
        env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        ran([sys.executable, "-m", "hexpatch", "-C", str(to), "apply"], cwd=REPO, env=env)

    def _model(self, to: Path) -> None:
        to.mkdir()
        incs = (f"-I{SIM / 'runtime'}", f"-I{INCS}")
        for source in (*sorted((SIM / "runtime").glob("hmx*.c")), STUB):
            made = str(to / f"{source.stem}.o")
            ran([self.clang, *self.flags, *incs, "-c", str(source), "-o", made])

    def build(
        self,
        driver: Path,
        to: Path,
        arch: int = 73,
        *,
        first: Path | None = None,
        defines: tuple[str, ...] = (),
        model: bool = False,
        shared: bool = False,
    ) -> Path:
        """Compile a driver to a program, or to a library when ``shared``. ``first``: headers there
        go before all others. ``model``: with the matrix unit."""
        ggml = self.tree / "ggml"
        hexagon = ggml / "src" / "ggml-hexagon"
        places = [first] if first else []
        places += [KERNELS, hexagon / "htp", hexagon, ggml / "src", ggml / "include"]
        places += [SIM / "runtime", HERE]
        text = ran(
            [self.clang, "-E", *self.flags, f"-D__HVX_ARCH__={arch}", "-D__hexagon__=1",
             "-DHEXSIM_COUNT=1", *(f"-D{d}" for d in defines), "-isystem", str(INCS),
             "-isystem", str(INCS / "stddef"), "-include", "stdio.h", "-include", "hexsim.h",
             *(f"-I{p}" for p in places), str(driver)]
        )  # fmt: skip
        source = to.parent / f"{to.name}.i"
        source.write_text(asmrules.rewrite(text, count=True))
        objects = self.model if model else []
        kind = ["-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs"] if shared else []
        ran(
            [self.clang, *self.flags, *kind, "-x", "cpp-output", str(source), "-x", "none",
             *objects, "-o", str(to), "-lm", "-lpthread"]
        )  # fmt: skip
        return to

    def built(
        self, name: str, arch: int = 73, *, model: bool = False, shared: bool = False
    ) -> Path:
        """The program (or library) of ``name``.c beside this file, built once in a run."""

        def make(part: Path) -> None:
            self.build(HERE / f"{name}.c", part, arch, model=model, shared=shared)

        return self.once(f"{name}-{arch}", make)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """What builds the drivers; skips where no clang can."""
    try:
        clang = root.find_clang()
    except HexpatchError as lacks:
        pytest.skip(str(lacks))
    room = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each worker has its own below the run's
        room = room.parent
    room = room / "kernels"
    room.mkdir(exist_ok=True)
    return Lab(clang.path, (*FLAGS, *root.cpu_flags(), *root._half_flags(clang)), room)
