"""Where things are, one lock per workspace, files written whole, and a journal of the last step."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hexpatch import litter
from hexpatch.errors import HexpatchError

SERIES = "series.yaml"
LOCK = "series.lock"
BRANCH = "refs/heads/stack"  # what people edit in the checkout
BASE = "refs/hexpatch/base"  # base and tip as the last apply, refresh or rebase left them
TIP = "refs/hexpatch/tip"


class Workspace:
    """A folder with series.yaml; everything that can be made again lies in `.hexpatch/`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def state(self) -> Path:
        """Working data: deleting it loses the undo log and what was not refreshed, no more."""
        return self.root / ".hexpatch"

    @property
    def store(self) -> Path:
        """The bare repository that holds upstream's objects and the stack's."""
        return self.state / "upstream.git"

    @property
    def checkout(self) -> Path:
        """The working tree people edit and build in."""
        return self.state / "llama.cpp"

    @property
    def pending(self) -> Path:
        """Says that a rebase waits for a person, and where it is."""
        return self.state / "pending.json"

    @property
    def journal(self) -> Path:
        """The step that is being carried out; left behind only by a killed run."""
        return self.state / "journal.json"

    @property
    def stage(self) -> Path:
        """New files before they are renamed into place."""
        return self.state / "stage"

    @property
    def _holder(self) -> Path:
        """Locked and written to by the run that changes things; empty again when it ends."""
        return self.state / "lock"

    def died(self) -> bool:
        """Was the last run that changed things killed? Not asked of one that is still at work."""
        try:
            with self._holder.open() as handle:
                if not handle.read(1):
                    return False
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return True
        except (FileNotFoundError, PermissionError, BlockingIOError):
            return False

    @contextlib.contextmanager
    def locked(self, command: str) -> Iterator[None]:
        """Hold the workspace for one command; a second run is told who holds it.

        What a killed run has left lying about goes first.
        """
        self.state.mkdir(parents=True, exist_ok=True)
        ignore = self.state / ".gitignore"
        if not ignore.exists():
            write_atomic(ignore, b"*\n")
        with self._holder.open("a+") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                handle.seek(0)
                holder = handle.read().strip() or "another run"
                raise HexpatchError(
                    f"{self.root} is in use by {holder}", "wait for it to end and run again"
                ) from None
            handle.seek(0)
            killed = os.fstat(handle.fileno()).st_mtime if handle.read(1) else None
            handle.truncate(0)
            handle.write(f"`{command}` (process {os.getpid()})")
            handle.flush()
            for left in self.state.glob(".*.tmp"):
                left.unlink(missing_ok=True)
            litter.break_stale_locks(
                self.store.glob("*.lock"), 0.0
            )  # nobody else works in the store
            if killed is not None:
                litter.break_stale_locks(self.store.rglob("*.lock"), killed)
            litter.forget_half_made(self.store)
            try:
                yield
            finally:
                handle.truncate(0)


def find(start: Path) -> Workspace:
    """The nearest folder upwards that has a series.yaml, or had one: `undo` takes back an init."""
    for folder in (start, *start.parents):
        made = Workspace(folder)
        if (folder / SERIES).exists() or made.store.is_dir():
            return made
    raise HexpatchError(
        f"no {SERIES} in {start} or above it", "`hexpatch init` makes one, -C DIR goes elsewhere"
    )


def write_atomic(
    path: Path, data: bytes, *, executable: bool = False, durable: bool = True
) -> None:
    """Write a file whole: a reader (or a crash) sees the old one or the new one.

    Not durable: for what can be made again, it is left to the system when it gets to the disk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temp = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temp.open("wb") as handle:
            handle.write(data)
            handle.flush()
            if durable:
                os.fsync(handle.fileno())
        if executable:
            temp.chmod(0o755)
        temp.replace(path)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file whole."""
    write_atomic(path, json.dumps(value, indent=1, sort_keys=True).encode() + b"\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object, or None when the file is not there."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        raise HexpatchError(f"{path} is damaged", f"remove {path} and run again") from None
    if not isinstance(value, dict):
        raise HexpatchError(f"{path} is damaged", f"remove {path} and run again")
    return value


def read_pending(ws: Workspace) -> dict[str, Any] | None:
    """The rebase that waits, or None; one that nobody can read can still be aborted."""
    try:
        found = read_json(ws.pending)
    except HexpatchError:
        found = {}
    if found is not None and not found.keys() >= _PENDING:
        raise HexpatchError(
            f"{ws.pending} is damaged", "`hexpatch rebase --abort` goes back to the stack as it was"
        )
    return found


_PENDING = {"onto", "tip", "head", "done", "rows", "current", "conflicts", "resolutions"}

FileState = dict[str, tuple[bytes, bool]]


def durable(root: Path) -> FileState:
    """The files that are the series: path -> (bytes, executable)."""
    files: FileState = {}
    for name in (SERIES, LOCK):
        path = root / name
        if path.is_file():
            files[name] = (path.read_bytes(), False)
    for folder in ("patches", "src"):
        for name in sorted(_regular(f"{root}/{folder}", f"{folder}/")):
            files[name] = (read_bytes(f"{root}/{name}"), os.access(f"{root}/{name}", os.X_OK))
    return files


def _regular(top: str, prefix: str) -> Iterator[str]:
    """Regular files below a folder, and no links: they may lead anywhere."""
    try:
        entries = list(os.scandir(top))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _regular(entry.path, f"{prefix}{entry.name}/")
        elif entry.is_file(follow_symlinks=False):
            yield prefix + entry.name


def read_bytes(path: str) -> bytes:
    """A file's bytes; where there are many, a Path for each costs more than the reading."""
    with open(path, "rb", 0) as file:  # noqa: PTH123
        return file.read()


def no_link(path: Path) -> None:
    """Refuse a file of the series that is a symbolic link."""
    if path.is_symlink():
        real = os.path.realpath(path)
        how = f"cp --remove-destination {shlex.quote(real)} {shlex.quote(os.fspath(path))}"
        if not Path(real).is_file():
            how = f"rm {shlex.quote(os.fspath(path))}"
        raise HexpatchError(
            f"{path} is a symbolic link: the file itself has to be there", f"`{how}`, and run again"
        )


class Move(NamedTuple):
    """One file on its way: where it goes, its name in the stage ("" = removal), its old sum.

    `kept` is the old version's name in the stage ("" = there was none), for the way back.
    """

    path: str
    staged: str
    old: str
    kept: str = ""


def _sum(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def stage_files(ws: Workspace, old: FileState, new: FileState) -> list[Move]:
    """Write what differs aside, to be replayed; nothing is changed yet.

    A link is refused: its file may be anywhere, and a rename would put another in its place.
    """
    for path in new:
        if old.get(path) != new[path]:
            no_link(ws.root / path)
    clear_stage(ws)
    ws.stage.mkdir(parents=True)
    moves: list[Move] = []
    for path in sorted(set(old) | set(new)):
        if old.get(path) == new.get(path):
            continue
        before = kept = name = ""
        if path in old:
            data, executable = old[path]
            before, kept = _sum(data), f"old-{len(moves)}"
            write_atomic(ws.stage / kept, data, executable=executable)
        if path in new:
            data, executable = new[path]
            name = f"{len(moves)}"
            write_atomic(ws.stage / name, data, executable=executable)
        moves.append(Move(path, name, before, kept))
    return _removals_first(moves)


def room_for_files(root: Path, old: FileState, new: FileState) -> None:
    """Refuse to begin where a folder, or what is no folder, stands in a file's place."""
    going = old.keys() - new.keys()
    for path in sorted(p for p in new if old.get(p) != new[p]):
        target = root / path
        names = [os.fspath(p) for p in Path(path).parents][:-1]
        blocked = [root / n for n in names if n not in going and _no_folder(root / n)]
        if target.is_dir() and not target.is_symlink():
            below = set(_regular(os.fspath(target), f"{path}/"))
            if not below or not below <= going:
                blocked.append(target)
        if blocked:
            raise HexpatchError(
                f"{blocked[-1]} is in the way: {path} of the series goes there",
                f"move {blocked[-1]} away and run again",
            )


def _no_folder(path: Path) -> bool:
    return os.path.lexists(path) and not path.is_dir()


def _removals_first(moves: Sequence[Move]) -> list[Move]:
    """A file may come where a folder was: that one's files have to go before."""
    return sorted(moves, key=lambda move: bool(move.staged))


def rescue_edits(ws: Workspace, moves: Sequence[Move]) -> list[Path]:
    """Copy files aside that somebody has edited between a kill and the replay of its journal."""
    kept = []
    for move in moves:
        target = ws.root / move.path
        if not target.is_file() or (move.staged and not (ws.stage / move.staged).exists()):
            continue
        data = target.read_bytes()
        if _sum(data) != move.old:
            kept.append(rescue(ws, move.path, data))
    return kept


def rescue(ws: Workspace, path: str, data: bytes) -> Path:
    """Keep a file that is about to be overwritten within reach."""
    copy = ws.state / "rescued" / path
    write_atomic(copy, data)
    return copy


def replay_files(ws: Workspace, moves: Sequence[Move]) -> None:
    """Rename staged files into place; a file that is gone from the stage was renamed before."""
    for move in moves:
        target = ws.root / move.path
        if not move.staged:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                target.unlink()
            _prune(target.parent, ws.root)
            continue
        staged = ws.stage / move.staged
        if staged.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            staged.replace(target)


def put_back_files(ws: Workspace, moves: Sequence[Move]) -> None:
    """The old files again; doing it twice is doing it once, like replay_files."""
    replay_files(ws, _removals_first([Move(move.path, move.kept, "") for move in moves]))


def aside(folder: Path, what: str) -> Path:
    """Where a folder's `new` or `old` version lies while it is replaced."""
    return folder.with_name(f".{folder.name}.{what}")


def swap_in(folder: Path) -> None:
    """Rename the new version of a folder into place, if one lies aside."""
    old, new = aside(folder, "old"), aside(folder, "new")
    if not new.exists():
        return
    if folder.exists():
        folder.replace(old)
    new.replace(folder)
    shutil.rmtree(old, ignore_errors=True)


def clear_stage(ws: Workspace) -> None:
    """The step is over."""
    import shutil  # brings in all compressors

    shutil.rmtree(ws.stage, ignore_errors=True)


def _prune(folder: Path, root: Path) -> None:
    while folder not in (root, root / "patches", root / "src") and root in folder.parents:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
