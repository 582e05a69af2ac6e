"""SDK roots for tests of the toolchain, and what makes them quick."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hexpatch.errors import HexpatchError
from hexpatch.sim import root

HERE = Path(__file__).parent
RUNTIME = HERE / "toolchain"  # a small runtime that notes what is called
CLANGS = [
    name
    for name in (*(f"clang-{n}" for n in range(root.NEWEST, root.OLDEST - 1, -1)), "clang")
    if shutil.which(name)
]
Toolchain = Callable[..., root.Root]


def hexagon_clang(made: root.Root) -> str:
    """The compiler of a root."""
    return str(made.tools / "Tools" / "bin" / "hexagon-clang")


@pytest.fixture
def toolchain(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Toolchain:
    """Makes a root; its runtime is the small one of toolchain/, not the simulator's."""
    shared = tmp_path_factory.getbasetemp().parent / "hexsim"
    monkeypatch.setattr(root, "RUNTIME", RUNTIME)
    monkeypatch.setenv("CCACHE_DIR", str(shared / "ccache"))

    def make(*, checked: bool = False, clang: str | None = None) -> root.Root:
        try:
            return root.materialise(shared / "roots", checked=checked, clang=clang)
        except HexpatchError as bad:
            if CLANGS:
                raise
            pytest.skip(bad.message)

    return make
