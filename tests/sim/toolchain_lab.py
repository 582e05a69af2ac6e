"""SDK roots for tests of the toolchain, and what makes them quick."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

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
