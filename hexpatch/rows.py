"""What becomes of one patch, as a row of a report."""

from __future__ import annotations

from typing import Any, NamedTuple

FITS = ("ok", "offset", "three-way", "resolved", "partly", "revived")
OUT = ("landed", "hold", "skipped")  # not in the stack, and rightly so


class Row(NamedTuple):
    """What becomes of one patch.

    status: ok, offset, three-way, resolved, partly, revived (it fits); landed (upstream has it);
    conflict, twice (a person decides); blocked (builds on a patch that does not fit); hold.
    """

    name: str
    status: str
    detail: tuple[str, ...] = ()
    blocked_by: str = ""

    @property
    def fits(self) -> bool:
        """Will it be in the moved stack?"""
        return self.status in FITS

    @property
    def unfit(self) -> bool:
        """Does a person have to do something about it?"""
        return not self.fits and self.status not in OUT

    def as_json(self) -> dict[str, Any]:
        """For --json."""
        out: dict[str, Any] = {"name": self.name, "status": self.status}
        out["detail"] = list(self.detail)
        if self.blocked_by:
            out["blocked_by"] = self.blocked_by
        return out
