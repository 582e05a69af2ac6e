"""Every change is an operation: recorded first, then carried out, and undone the same way.

An operation is a commit on refs/hexpatch/ops. Its tree holds the series' files before and after
and the refs before and after; its parents keep every object of both states alive.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hexpatch import objects, owned, workspace
from hexpatch.checkout import Checkout, Layout, layout_from
from hexpatch.errors import HexpatchError
from hexpatch.objects import EXECUTABLE, FILE, Commit
from hexpatch.repo import Repo
from hexpatch.tree import Entry, Store, Tree
from hexpatch.workspace import BASE, BRANCH, TIP, FileState, Move, Workspace

OPS = "refs/hexpatch/ops"
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

# refs that belong to a state; the log itself and upstream's names do not
_STATE_REFS = (BASE, TIP, BRANCH, "refs/heads/", "refs/hexpatch/export/")


@dataclass(frozen=True)
class Operation:
    """One entry of the log."""

    oid: str
    parent: str | None
    when: int
    command: str
    undoes: str | None
    index_only: bool = False  # the files of the checkout stayed as they were
    refs_before: dict[str, str] = field(default_factory=dict)
    refs_after: dict[str, str] = field(default_factory=dict)


def now() -> int:
    """Seconds; SOURCE_DATE_EPOCH stops the clock for tests."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return int(fixed) if fixed.isdigit() else int(time.time())


def state_refs(repo: Repo) -> dict[str, str]:
    """Refs that make up the present state."""
    found = repo.refs("refs/heads/", "refs/hexpatch/")
    return {
        name: oid
        for name, oid in found.items()
        if any(name == p or (p.endswith("/") and name.startswith(p)) for p in _STATE_REFS)
    }


@dataclass
class Step:
    """What an operation will change. Refs set to None are deleted."""

    command: str
    files: FileState
    refs: dict[str, str | None] = field(default_factory=dict)
    checkout: str | None = None  # commit the checkout goes to
    detach: bool = False
    force: bool = False
    index_only: bool = False  # the files of the checkout stay as they are
    remove_checkout: bool = False
    pending: dict[str, Any] | None = None  # a waiting rebase after this step
    layout: Layout | None = None  # its half-merged patch
    undoes: str | None = None
    folders: tuple[Path, ...] = ()  # staged, to be swapped in
    keep: tuple[str, ...] = ()  # more commits to keep alive: enough to make it an operation


def perform(ws: Workspace, store: Store, step: Step, before: FileState | None = None) -> None:
    """Record and carry out a step, if it would change anything.

    Order: objects, the record, staged files, the journal (from here on the new state wins, a
    killed run is completed by the next command), files, checkout, refs, an export's folders.
    """
    repo = store.repo
    old = workspace.durable(ws.root) if before is None else before
    refs_before = state_refs(repo)
    moved = {**refs_before, **step.refs}
    refs_after = {name: oid for name, oid in moved.items() if oid is not None}
    changes = old != step.files or refs_before != refs_after or bool(step.undoes or step.keep)
    try:
        waiting = workspace.read_json(ws.pending)
    except HexpatchError:
        waiting = {}  # damaged: `rebase --abort` takes it away
    if not (changes or step.checkout or step.folders) and step.pending == waiting:
        return
    workspace.room_for_files(ws.root, old, step.files)
    store.flush()
    _keep_alive(repo, step, refs_before, refs_after)
    op = _record(store, step, old, refs_before, refs_after) if changes else None
    store.flush()
    touched = step.checkout or step.remove_checkout
    journal = {
        "op": op,
        "moves": [move._asdict() for move in workspace.stage_files(ws, old, step.files)],
        "refs": {n: o for n, o in step.refs.items() if refs_before.get(n) != o},
        **_as_journal(step),
        "was": {
            "pending": waiting,
            "checkout": Checkout(repo, ws.checkout).snapshot(dirty=step.force) if touched else None,
        },
    }
    with _uninterrupted():
        workspace.write_json(ws.journal, journal)
        try:
            _carry_out(ws, repo, journal, force=step.force)
        except Exception as error:
            with contextlib.suppress(OSError):
                workspace.write_json(ws.journal, {**journal, "failed": True})
            left = _roll_back(ws, repo, journal)
            if left is None or not isinstance(error, (HexpatchError, OSError)):
                raise
            raise HexpatchError(f"{error}\n{left}", getattr(error, "hint", None)) from error


def _as_journal(step: Step) -> dict[str, Any]:
    """What a later run needs of a step, to complete it."""
    return {
        "command": step.command,
        "checkout": step.checkout,
        "detach": step.detach,
        "index_only": step.index_only,
        "remove_checkout": step.remove_checkout,
        "pending": step.pending,
        "layout": step.layout.as_json() if step.layout else None,
        "folders": [os.fspath(folder) for folder in step.folders],
    }


def _roll_back(ws: Workspace, repo: Repo, journal: dict[str, Any]) -> str | None:
    """The state before a step that failed; says so. None: refs moved, or nobody knows it."""
    was = journal.get("was")
    if was is None or (journal["op"] and repo.ref(OPS) == journal["op"]):
        return None
    said = f"`{journal['command']}` was taken back: the series and its refs are as they were"
    with contextlib.suppress(OSError):
        workspace.write_json(ws.journal, {**journal, "back": True})
    with _standing_in(ws.root):
        workspace.put_back_files(ws, _moves(journal))
        if was["pending"] is None:
            ws.pending.unlink(missing_ok=True)
        else:
            workspace.write_json(ws.pending, was["pending"])
        target = journal["checkout"]
        if target or journal["remove_checkout"]:
            try:
                Checkout(repo, ws.checkout).put_back(
                    was["checkout"], target, index_only=journal["index_only"]
                )
            except (HexpatchError, OSError) as error:
                said += (
                    f", but the checkout is not, `git status` in {ws.checkout} shows how: {error}"
                )
        ws.journal.unlink(missing_ok=True)
        workspace.clear_stage(ws)
    return said


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the step is whole; programs started meanwhile don't get it either."""
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    held = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


@contextlib.contextmanager
def _standing_in(folder: Path) -> Iterator[None]:
    """Work from a folder that stays: a step may take away the one that a person stands in."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.chdir(here)


def _carry_out(ws: Workspace, repo: Repo, journal: dict[str, Any], *, force: bool) -> None:
    """Do what the journal says; doing it twice is doing it once."""
    with _standing_in(ws.root):
        _do(ws, repo, journal, force=force)


def _do(ws: Workspace, repo: Repo, journal: dict[str, Any], *, force: bool) -> None:
    workspace.replay_files(ws, _moves(journal))
    if journal["pending"] is None:
        ws.pending.unlink(missing_ok=True)
    else:
        workspace.write_json(ws.pending, journal["pending"])
    checkout = Checkout(repo, ws.checkout)
    if journal["checkout"]:
        checkout.move(
            journal["checkout"],
            detach=journal["detach"],
            force=force,
            index_only=journal["index_only"],
        )
    if journal["layout"]:
        checkout.lay_out(layout_from(journal["layout"]))
    if journal["remove_checkout"]:
        checkout.remove()
    refs = dict(journal["refs"])
    if journal["op"]:
        refs[OPS] = journal["op"]
    gone = {name for name, oid in refs.items() if oid is None}
    gone -= repo.refs("refs/").keys() if gone else set()
    repo.update_refs({name: oid for name, oid in refs.items() if name not in gone})
    for folder in journal.get("folders", ()):
        with contextlib.suppress(OSError):  # it may lie anywhere: the export itself will say so
            workspace.swap_in(Path(folder))
    ws.journal.unlink(missing_ok=True)
    workspace.clear_stage(ws)


def _moves(journal: dict[str, Any]) -> list[Move]:
    return [Move(**move) for move in journal["moves"]]


def recover(ws: Workspace, repo: Repo) -> list[str]:
    """Finish what a killed run had begun; returns what to tell about it."""
    journal = workspace.read_json(ws.journal)
    if journal is None:
        return []
    said = [
        f"{copy.relative_to(ws.state).relative_to('rescued')} was edited after a run was killed; "
        f"your version is kept as {copy}"
        for copy in workspace.rescue_edits(ws, _moves(journal))
    ]
    with _uninterrupted():
        if journal.get("back"):
            left = _roll_back(ws, repo, journal)
            if left is not None:
                return [*said, left]
        if _whole(repo, journal):
            try:
                _carry_out(ws, repo, journal, force=True)
            except (HexpatchError, OSError) as error:
                left = _roll_back(ws, repo, journal)
                if left is None:
                    raise
                return [*said, f"{error}", left]
            how = "failed half-way" if journal.get("failed") else "been killed"
            return [*said, f"completed `{journal['command']}`, which had {how}"]
        workspace.replay_files(ws, _moves(journal))
        ws.pending.unlink(missing_ok=True)
        ws.journal.unlink(missing_ok=True)
        workspace.clear_stage(ws)
    how = "failed half-way" if journal.get("failed") else "been killed"
    return [
        *said,
        f"`{journal['command']}` had {how}, and the commits it had made are gone; "
        "the files are whole: `hexpatch apply` makes the commits again",
    ]


def _whole(repo: Repo, journal: dict[str, Any]) -> bool:
    """Are all objects there that the journal names?"""
    wanted = {journal["op"], journal["checkout"], *journal["refs"].values()} - {None}
    if journal["layout"]:
        layout = layout_from(journal["layout"])
        wanted |= {s.oid for s in layout.stages if s.oid} | {f.oid for f in layout.files if f.oid}
    return repo.existing(wanted) == wanted


def _keep_alive(repo: Repo, step: Step, before: dict[str, str], after: dict[str, str]) -> None:
    """Own the commits of a person, too, that this step keeps: git may only have borrowed them."""
    ours = {refs[name] for refs in (before, after) for name in (BASE, TIP) if name in refs}
    previous = repo.ref(OPS)
    known = set(repo.commit(previous).parents) if previous else set()
    tips = {*before.values(), *after.values(), *step.keep} - ours - known
    owned.keep(repo, sorted(repo.existing(tips)), sorted(repo.existing(ours)))


def _record(
    store: Store, step: Step, old: FileState, before: dict[str, str], after: dict[str, str]
) -> str:
    tree = Tree(store, EMPTY_TREE)
    for side, files in (("before", old), ("after", step.files)):
        for path, (data, executable) in files.items():
            mode = EXECUTABLE if executable else FILE
            tree.put(os.fsencode(f"{side}/{path}"), Entry(mode, store.from_data(data)))
    refs = json.dumps({"before": before, "after": after}, indent=1, sort_keys=True).encode()
    tree.put(b"refs.json", Entry(FILE, store.from_data(refs + b"\n")))
    previous = store.repo.ref(OPS)
    parents = [previous] if previous else []
    wanted = [*before.values(), *after.values(), *step.keep]
    there = store.repo.existing(wanted)  # a lost one can't be kept
    parents += [oid for oid in dict.fromkeys(wanted) if oid in there and oid not in parents]
    message = f"{step.command}\n\nFirst-Parent-Is-Log: {'yes' if previous else 'no'}\n"
    if step.undoes:
        message += f"Undoes: {step.undoes}\n"
    if step.index_only:
        message += "Index-Only: yes\n"
    commit = Commit(
        tree=tree.write(),
        parents=tuple(parents),
        author_name="hexpatch",
        author_email="hexpatch@localhost",
        author_date=f"{now()} +0000",
        message=message,
    )
    return store.add("commit", objects.format_commit(commit))


def read(repo: Repo, oid: str) -> Operation:
    """One operation."""
    commit = repo.commit(oid)
    command, _, rest = commit.message.partition("\n")
    trailers = dict(line.split(": ", 1) for line in rest.strip().splitlines() if ": " in line)
    refs_file = repo.lookup(f"{oid}:refs.json")
    refs = json.loads(refs_file[2]) if refs_file else {"before": {}, "after": {}}
    parent = commit.parents[0] if trailers.get("First-Parent-Is-Log") == "yes" else None
    return Operation(
        oid,
        parent,
        int(commit.author_date.split(" ")[0]),
        command,
        trailers.get("Undoes"),
        trailers.get("Index-Only") == "yes",
        refs["before"],
        refs["after"],
    )


def history(repo: Repo) -> Iterable[Operation]:
    """Operations, newest first."""
    at = repo.ref(OPS)
    while at:
        op = read(repo, at)
        yield op
        at = op.parent


def to_undo(repo: Repo) -> Operation:
    """The operation that made the present state.

    After an undo that is the one before the undone: what came after it is undone with it. After
    the undo of an undo it is again the one that had been undone there.
    """
    at = repo.ref(OPS)
    while at:
        op = read(repo, at)
        if op.undoes is None:
            return op
        at = read(repo, op.undoes).parent
    raise HexpatchError("there is nothing to undo", "`hexpatch log` lists the operations")


def since(repo: Repo, op: Operation) -> list[Operation]:
    """The operations from the newest back to this one."""
    found = []
    for later in history(repo):
        found.append(later)
        if later.oid == op.oid:
            break
    return found


def find(repo: Repo, name: str) -> Operation:
    """An operation by (abbreviated) id."""
    hits = [op for op in history(repo) if op.oid.startswith(name)]
    if len(hits) != 1:
        what = "no operation" if not hits else "more than one operation"
        raise HexpatchError(f"{what} {name} in the log", "`hexpatch log` lists the operations")
    return hits[0]


def changed_paths(repo: Repo, op: Operation) -> set[str]:
    """The series' files that an operation made, changed or removed."""
    found = [repo.lookup(f"{op.oid}:{side}") for side in ("before", "after")]
    sides = [tree[0] if tree else EMPTY_TREE for tree in found]
    out = repo.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", *sides)
    return {os.fsdecode(name) for name in out.split(b"\0") if name}


def files_of(store: Store, op: Operation, side: str) -> FileState:
    """The series' files as an operation recorded them, `before` or `after` it."""
    tree = Tree(store, store.repo.tree_of(op.oid))
    return {
        os.fsdecode(path[len(side) + 1 :]): (entry.content.data, entry.mode == EXECUTABLE)
        for path, entry in tree.files(side.encode())
    }
