"""What the simulator's tests share: written SDK roots, one per compiler and flavour and session."""

from __future__ import annotations

import pytest
from toolchain_lab import CLANGS, RUNTIME, Toolchain

from hexpatch.errors import HexpatchError
from hexpatch.sim import root


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
