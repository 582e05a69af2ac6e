"""An export's folder: replaced whole, only if it differs, and never a person's own words in it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hexpatch import workspace
from hexpatch.errors import HexpatchError
from hexpatch.prbranch import Branch
from hexpatch.repo import Repo
from hexpatch.workspace import LOCK, SERIES, Workspace

MARK = ".hexpatch-export.json"  # names the files of a folder that are ours, with their sums
TICKED = "checklist.md"  # a person writes into it
RENEWED = "checklist.new.md"

Files = dict[str, bytes]


@dataclass
class Folder:
    """What a folder will hold. `stage` writes it aside, the step that it belongs to swaps it in."""

    path: Path
    files: Files
    differs: bool = False

    def stage(self) -> None:
        """The new folder beside the old one, unless they are the same."""
        old, new = workspace.aside(self.path, "old"), workspace.aside(self.path, "new")
        if old.exists() and not self.path.exists():
            old.replace(self.path)  # a run was killed between two renames
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(new, ignore_errors=True)
        self.files = _merged(self.path, self.files)
        self.differs = _read(self.path) != self.files
        if self.differs:
            for name, data in self.files.items():
                workspace.write_atomic(new / name, data)


def outside_series(ws: Workspace, folder: Path) -> None:
    """Refuse a folder among the series' files, or among the tool's own data."""
    place, state = _real(folder), _real(ws.state)
    if place.is_relative_to(state / "export"):
        return
    for own in (ws.root / "patches", ws.root / "src", ws.root / SERIES, ws.root / LOCK, state):
        if place.is_relative_to(_real(own)):
            raise HexpatchError(
                f"{folder} is in the way of {own}",
                "name another folder with --out, or none: it is .hexpatch/export then",
            )


def _real(path: Path) -> Path:
    # unlike Path.resolve, no RuntimeError at a link to itself
    return Path(os.path.realpath(path))


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
    sums = _sums(present.get(MARK, b""))
    if sums is None and present:
        raise HexpatchError(
            f"{folder} is not an export of this tool", "move it away, or use another --out"
        )
    sums = sums or {}
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


def _sums(mark: bytes) -> dict[str, str] | None:
    try:
        found = json.loads(mark)
    except ValueError:
        return None
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else None


def _marked(files: Files, known: dict[str, str]) -> Files:
    sums = {name: _sum(data) for name, data in files.items()} | known
    mark = json.dumps(sums, indent=1, sort_keys=True).encode() + b"\n"
    return {**files, MARK: mark}


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# -- mails -----------------------------------------------------------------------------------


def make_mails(repo: Repo, branch: Branch, version: int) -> tuple[Files, list[str]]:
    """The branch as mails, by name in the folder, and what `git am` would make of them.

    From the second version on their subjects and names say which one they are: `[PATCH v2 1/3]`.
    """
    with tempfile.TemporaryDirectory(prefix="hexpatch-") as scratch:
        paths = repo.format_patch(branch.base.commit, branch.tip, Path(scratch, "mails"), version)
        notes = prove(repo, branch, paths, Path(scratch))
        return {f"mails/{path.name}": path.read_bytes() for path in paths}, notes


def prove(repo: Repo, branch: Branch, mails: Sequence[Path], scratch: Path) -> list[str]:
    """Take the mails as plain `git am` does, in a scratch index, and compare what comes out."""
    env = {"GIT_INDEX_FILE": os.fspath(scratch / "index")}
    repo.git("read-tree", branch.base.tree, env=env)
    notes = []
    for made, mail in zip(branch.commits, mails, strict=True):
        taken, message = _taken(repo, mail, scratch, env)
        if taken != made.commit.tree:
            cr = b"\r\n" in mail.read_bytes()
            notes.append(
                f"mails/{mail.name}: " + ("needs `git am --keep-cr`" if cr else "fails in `git am`")
            )
            repo.git("read-tree", made.commit.tree, env=env)
        elif message != made.commit.message.rstrip("\n"):
            notes.append(f"mails/{mail.name}: plain `git am` changes the message")
    return notes


def _taken(repo: Repo, mail: Path, scratch: Path, env: dict[str, str]) -> tuple[str, str]:
    """Tree and message that one mail gives; no tree where it does not apply, or is not one mail."""
    split = scratch / "split"
    shutil.rmtree(split, ignore_errors=True)
    split.mkdir()
    repo.git("mailsplit", f"-o{split}", "--", os.fspath(mail))
    if [p.name for p in split.iterdir()] != ["0001"]:
        return "", ""
    raw, text, diff = (split / "0001").read_bytes(), split / "text", split / "diff"
    info = repo.git("mailinfo", "-u", os.fspath(text), os.fspath(diff), stdin=raw)
    args = ("apply", "--cached", "-p1", os.fspath(diff))
    if repo.git_status(*args, env=env, ok=(0, 1, 128))[0]:
        return "", ""
    # unchanged blobs of a partial store are not there, and need not be
    tree = repo.git("write-tree", "--missing-ok", env=env).decode().strip()
    subject = re.search(rb"^Subject: (.*)$", info, re.MULTILINE)
    title = subject[1] if subject else b""
    message = title + b"\n\n" + text.read_bytes().strip(b"\n")
    return tree, message.decode("utf-8", "replace").rstrip("\n")
