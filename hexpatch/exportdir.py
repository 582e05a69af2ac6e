"""An export's folder: replaced whole, only if it differs, and never a person's own words in it."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from hexpatch import workspace
from hexpatch.errors import HexpatchError

MARK = ".hexpatch-export.json"  # names the files of a folder that are ours, with their sums
TICKED = "checklist.md"  # a person writes into it
RENEWED = "checklist.new.md"

Files = dict[str, bytes]


@dataclass
class Folder:
    """What a folder will hold. `stage` writes it aside, `finish` renames it into place."""

    path: Path
    files: Files
    differs: bool = False

    def stage(self) -> None:
        """The new folder beside the old one, unless they are the same."""
        aside, new = _aside(self.path, "old"), _aside(self.path, "new")
        if aside.exists() and not self.path.exists():
            aside.replace(self.path)  # a run was killed between two renames
        shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(new, ignore_errors=True)
        self.files = _merged(self.path, self.files)
        self.differs = _read(self.path) != self.files
        if self.differs:
            for name, data in self.files.items():
                workspace.write_atomic(new / name, data)

    def finish(self) -> None:
        """Rename the new folder into place. A run killed before is repaired by the next one."""
        if not self.differs:
            return
        aside = _aside(self.path, "old")
        if self.path.exists():
            self.path.replace(aside)
        _aside(self.path, "new").replace(self.path)
        shutil.rmtree(aside, ignore_errors=True)


def _aside(folder: Path, what: str) -> Path:
    return folder.with_name(f".{folder.name}.{what}")


def _read(folder: Path) -> Files:
    """All files of a folder."""
    if not folder.is_dir():
        return {}
    paths = sorted(p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in paths}


def _merged(folder: Path, files: Files) -> Files:
    """What the folder will hold: our files anew, and whatever a person put or wrote there."""
    present = _read(folder)
    if not present and not folder.exists():
        return _marked(files, {})
    try:
        sums = json.loads(present.get(MARK, b""))
        assert isinstance(sums, dict)
    except (ValueError, AssertionError):
        if present:
            raise HexpatchError(
                f"{folder} is not an export of this tool", "move it away, or use another --out"
            ) from None
        sums = {}
    kept = {n: d for n, d in present.items() if n not in sums and n not in files and n != MARK}
    made = dict(files)
    known: dict[str, str] = {}
    written = present.get(TICKED)
    if written is not None and sums.get(TICKED) != _sum(written) and written != files[TICKED]:
        made[TICKED] = written  # a person's words are never overwritten
        known[TICKED] = sums.get(TICKED, "")
        if known[TICKED] != _sum(files[TICKED]):
            known[RENEWED] = _sum(files[TICKED])
            # once offered and removed it does not come back
            if RENEWED in present or sums.get(RENEWED) != known[RENEWED]:
                made[RENEWED] = files[TICKED]
    return {**kept, **_marked(made, known)}


def _marked(files: Files, known: dict[str, str]) -> Files:
    sums = {name: _sum(data) for name, data in files.items()} | known
    mark = json.dumps(sums, indent=1, sort_keys=True).encode() + b"\n"
    return {**files, MARK: mark}


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
