"""What changed between two states of the series, or two versions of a pull request.

Content counts: the lines a patch removes and adds, and its public message. Where they stand, and
on which base, does not; so a plain rebase changes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hexpatch import oplog, proc, series, workspace
from hexpatch.checklist import code, fenced
from hexpatch.content import EXPORTS, Content, History, compare, contents, history, of_patch, ref
from hexpatch.errors import HexpatchError
from hexpatch.objects import EXECUTABLE, FILE
from hexpatch.repo import Repo, environment
from hexpatch.series import Patch, Series
from hexpatch.session import Session
from hexpatch.tree import Store, Tree
from hexpatch.workspace import SERIES, FileState

# -- versions of an export ------------------------------------------------------------------


def export_text(repo: Repo, group: str, past: History) -> tuple[str, str]:
    """changelog.md of an exported group, and the range-diff of its last step ("" if first)."""
    assert past.last is not None
    lines = [f"# {group}: changes", ""]
    span = ""
    for number in range(len(past.versions), 0, -1):
        newest = number == len(past.versions)
        cut = past.last if newest else past.versions[number - 1]
        old = past.versions[number - 2] if number > 1 else None
        lines += [f"## v{number}", "", f"On base {cut.base}.", ""]
        if newest and cut != past.versions[-1]:
            first = past.versions[-1]
            lines += [f"Rebased from {first.base} since v{number} was made; nothing changed.", ""]
        if old is not None and old.base != cut.base:
            lines += [f"v{number - 1} was on {old.base}.", ""]
        before = contents(repo, old) if old else []
        rows = compare(before, contents(repo, cut))
        lines += [f"- {word}: {code(subject)}" for word, subject in rows]
        lines.append("")
        if newest and past.previous is not None:
            back = past.previous
            span = repo.range_diff(back.base, back.tip, cut.base, cut.tip)
            lines += ["range-diff:", "", *fenced(span.rstrip("\n")), ""]
    return "\n".join(lines), span


# -- states of the series -------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """What became of one patch: new, changed, unchanged, landed or dropped."""

    name: str
    status: str
    subject: str
    detail: str = ""


@dataclass(frozen=True)
class Changes:
    """From one state of the series to another. `hidden` patches are private and not listed."""

    title: str
    base_before: str
    base_after: str
    entries: tuple[Entry, ...]
    hidden: int = 0

    def of(self, status: str) -> tuple[Entry, ...]:
        """The patches with this status."""
        return tuple(entry for entry in self.entries if entry.status == status)


def between(
    session: Session,
    old: FileState,
    new: FileState,
    *,
    title: str = "",
    only: Collection[str] | None = None,
    private: bool = False,
) -> Changes:
    """Compare two states by patch name and content. A patch that turns private counts as gone."""
    states = []
    hidden: set[str] = set()
    for files in (old, new):
        parsed = parse(session.ws.root, files)
        found: dict[str, tuple[Patch, Content]] = {}
        for patch in parsed.patches if parsed else ():
            if only is not None and patch.name not in only:
                continue
            if patch.state == "private" and not private:
                hidden.add(patch.name)
            elif parsed and f"patches/{patch.file}" in files:
                # files of a landed patch may be gone
                there = patch._replace(files=tuple(f for f in patch.files if f in files))
                found[patch.name] = (
                    patch,
                    of_patch(parsed, there if _landed(patch) else patch, files),
                )
        states.append((parsed.base.name if parsed else "", found))
    (base_before, before), (base_after, after) = states
    entries = _entries(before, after)
    return Changes(title, base_before, base_after, tuple(entries), len(hidden))


def _landed(patch: Patch) -> bool:
    return patch.landed is not None or patch.state == "landed"


def parse(root: Path, files: FileState) -> Series | None:
    """The series of a state; None before there was one."""
    return series.parse(files[SERIES][0], root, disk=False) if SERIES in files else None


def _entries(
    before: dict[str, tuple[Patch, Content]], after: dict[str, tuple[Patch, Content]]
) -> Iterator[Entry]:
    gone = {name: content for name, (_, content) in before.items() if name not in after}
    for name, (patch, content) in after.items():
        was = before.get(name)
        if _landed(patch):
            if was is not None and not _landed(was[0]):
                where = f"in {patch.landed}" if patch.landed else ""
                yield Entry(name, "landed", content.subject, where)
            continue
        if was is None:
            twin = next((n for n, c in gone.items() if c == content), None)
            if twin is None:
                yield Entry(name, "new", content.subject)
            else:
                del gone[twin]
                yield Entry(name, "unchanged", content.subject, f"was {twin}")
        elif was[1] == content:
            yield Entry(name, "unchanged", content.subject)
        else:
            yield Entry(name, "changed", content.subject, _what(was[1], content))
    yield from (
        Entry(name, "dropped", content.subject)
        for name, content in gone.items()
        if not _landed(before[name][0])
    )


def _what(old: Content, new: Content) -> str:
    parts = ("files", old.files != new.files), ("message", old.message != new.message)
    return ", ".join(name for name, differs in parts if differs) or "author"


# -- since when -----------------------------------------------------------------------------


def since(session: Session, rev: str | None = None, *, private: bool = False) -> list[Changes]:
    """Changes up to now since `rev`: an export (v2), a commit of the user's repository, or an
    operation. Without it: since each group's last export, and what was never exported.
    """
    now = workspace.durable(session.ws.root)
    if rev is None:
        return _since_exports(session, now, None, private)
    if re.fullmatch(r"v[1-9][0-9]*", rev):
        found = _since_exports(session, now, rev, private)
        if found:
            return found
    old = _from_house(session.ws.root, rev)
    if old is None and re.fullmatch(r"[0-9a-f]{4,40}", rev):
        op = next((o for o in oplog.history(session.repo) if o.oid.startswith(rev)), None)
        old = oplog.files_of(session.store, op, "after") if op else None
    if old is None:
        raise HexpatchError(
            f"{rev} is no export, no commit of {session.ws.root} and no operation",
            "`hexpatch log` lists the operations",
        )
    return [between(session, old, now, title=f"since {rev}", private=private)]


def _since_exports(
    session: Session, now: FileState, version: str | None, private: bool
) -> list[Changes]:
    parsed = parse(session.ws.root, now)
    assert parsed is not None
    refs = session.repo.refs(EXPORTS)
    ops = list(oplog.history(session.repo))
    found: list[Changes] = []
    covered: set[str] = set()
    for group in parsed.groups:
        name = ref(group.name, version or "tip")
        tip = refs.get(name)
        op = next((o for o in ops if _set_by(o, name, tip)), None) if tip else None
        if op is None:
            continue
        old = oplog.files_of(session.store, op, "after")
        number = version or f"v{len(history(session.repo, group.name).versions)}"
        was = parse(session.ws.root, old)
        members = {
            n for g in (was.groups if was else ()) if g.name == group.name for n in g.patches
        }
        only = {*group.patches, *members}
        covered |= only
        title = f"{group.name}, since {number}"
        found.append(between(session, old, now, title=title, only=only, private=private))
    if version is not None:
        return found
    rest = {patch.name for patch in parsed.patches} - covered
    if rest:
        title = "never exported" if found else "the whole series"
        part = between(session, {}, now, title=title, only=rest, private=private)
        found += [part] if part.entries or not found else []
    return found


def _set_by(op: oplog.Operation, name: str, tip: str | None) -> bool:
    return op.refs_after.get(name) == tip and op.refs_before.get(name) != tip


def _from_house(root: Path, rev: str) -> FileState | None:
    """The series as a commit of the user's own repository has it."""
    args: list[str | Path] = ["git", "-C", root, "rev-parse", "--absolute-git-dir", "--show-prefix"]
    done = proc.run(args, env=environment(user_config=True))
    if b"safe.directory" in done.stderr:
        trust = next(x.strip() for x in done.stderr.split(b"\n") if b"safe.directory" in x)
        raise HexpatchError(
            f"{root} is in a repository that another user owns", f"`{os.fsdecode(trust)}`"
        )
    if done.status:
        return None
    git_dir, prefix = os.fsdecode(done.stdout).split("\n")[:2]
    with Repo(Path(git_dir)) as repo:
        commit = repo.resolve(rev)
        if commit is None:
            return None
        tree = Tree(Store(repo), repo.tree_of(commit))
        files: FileState = {}
        top = os.fsencode(prefix)
        one = tree.get(top + SERIES.encode())
        if one is None:
            raise HexpatchError(f"{rev} has no {prefix}{SERIES}", "name a later commit")
        files[SERIES] = (one.content.data, False)
        for folder in (b"patches", b"src"):
            for path, entry in tree.files(top + folder):
                if entry.mode in (FILE, EXECUTABLE):
                    name = os.fsdecode(path[len(top) :])
                    files[name] = (entry.content.data, entry.mode == EXECUTABLE)
        return files


def as_json(changes: Iterable[Changes]) -> list[dict[str, Any]]:
    """For --json: the parts of `since`, each with all its patches."""
    return [
        {
            "title": part.title,
            "base": {"before": part.base_before, "after": part.base_after},
            "patches": [
                {"name": e.name, "status": e.status, "title": e.subject, "detail": e.detail}
                for e in part.entries
            ],
            "hidden": part.hidden,
        }
        for part in changes
    ]


def to_markdown(changes: Iterable[Changes]) -> str:
    """Sections of lists; patches that did not change are counted, not listed."""
    lines: list[str] = []
    for part in changes:
        lines += [f"## {part.title or 'changes'}", ""]
        if part.base_before and part.base_before != part.base_after:
            lines += [f"- base: {part.base_before} -> {part.base_after}"]
        for status in ("new", "changed", "landed", "dropped"):
            for entry in part.of(status):
                detail = f" ({entry.detail})" if entry.detail else ""
                lines.append(f"- {status}: {entry.name}: {code(entry.subject)}{detail}")
        for entry in part.of("unchanged"):
            if entry.detail:
                lines.append(f"- renamed: {entry.name} {entry.detail}")
        quiet = len(part.of("unchanged"))
        lines += [f"- unchanged: {quiet}"] if quiet else []
        lines += [] if part.entries else ["- nothing"]
        lines.append("")
    return "\n".join(lines)
