"""What a validation is asked for: the command line's wishes, filled up with those of the series."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """What to run (these ops, the quick set, all; or else what the patches name), and how."""

    ops: tuple[str, ...] = ()
    params: str | None = None
    quick: bool = False
    full: bool = False
    base_only: bool = False
    checks: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    jobs: int | None = None
    timeout: float | None = None
    fresh: bool = False

    @property
    def limit(self) -> float:
        """Seconds that a run of an op may take."""
        return self.timeout or 900.0
