"""Commits -> files: split commits into hunks and owned files. The exact inverse of apply.

A patch file is written anew only if it says something else than before: placed on the parent, the
old text must fail to give the same tree, author and message. So a refresh never causes churn.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hexpatch import objects, resolutions, seriesedit, seriesorder
from hexpatch.difftree import RawChange
from hexpatch.errors import HexpatchError
from hexpatch.objects import EXECUTABLE, FILE, Commit
from hexpatch.patchfile import PatchFile, parse_diff, render_patch, slug
from hexpatch.pick import Laid, Source, lay, text
from hexpatch.repo import NULL, Repo
from hexpatch.series import Base, Patch, Series
from hexpatch.stack import Applied, Stack, parse_once
from hexpatch.tree import Store, Tree
from hexpatch.workspace import SERIES, FileState


class Named(NamedTuple):
    """A commit of the stack and the patch it is; `known` is the entry it had before."""

    name: str
    oid: str
    commit: Commit
    known: Patch | None


@dataclass
class Refreshed:
    """New files, the stack they make, and each patch's fate: unchanged, changed, new, dropped."""

    files: FileState
    stack: Stack = field(default_factory=lambda: Stack("", "", ()))
    fate: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def linear(repo: Repo, base: str, tip: str) -> list[tuple[str, Commit]]:
    """Commits of base..tip, oldest first; merges and foreign histories are refused by name."""
    if tip == base:
        return []
    found: list[tuple[str, Commit]] = []
    at = tip
    while at != base:
        commit = repo.commit(at)
        if len(commit.parents) > 1:
            title = commit.message.partition("\n")[0]
            raise HexpatchError(
                f"{at[:12]} `{title}` is a merge; its own content would be lost in a linear series"
                + _merge_content(repo, at),
                f"make the history linear first: `git rebase {base[:12]}`",
            )
        found.append((at, commit))
        if not commit.parents or len(found) > 20000:
            raise HexpatchError(
                f"{tip[:12]} is not built on the base {base[:12]}",
                f"`git rebase --onto {base[:12]} COMMIT` moves what comes after COMMIT there, "
                "or `hexpatch apply --force` drops all of it",
            )
        at = commit.parents[0]
    return found[::-1]


def titled(commits: list[tuple[str, Commit]]) -> list[tuple[str, Commit]]:
    """The commits, if each has a message."""
    for oid, commit in commits:
        if not commit.message.strip():
            raise HexpatchError(
                f"{oid[:12]} has no message; a patch needs a title",
                "`git commit --amend` or `git rebase -i` gives it one",
            )
    return commits


def _merge_content(repo: Repo, merge: str) -> str:
    out = repo.git("diff-tree", "--cc", "-r", "--name-only", "-z", "--no-commit-id", merge)
    names = [text(p) for p in out.split(b"\0") if p]
    return f" ({', '.join(names[:10])})" if names else ""


def match(
    commits: Sequence[tuple[str, Commit]],
    old: Sequence[tuple[Patch, str, Commit]],
    repo: Repo | None = None,
) -> list[Patch | None]:
    """Which patch each commit is. Author and author date survive amend, reword and rebase.

    A title, or an author and date, that several have is settled by what the commits change, then
    by their order. Commits made in the same second by a script have one author and date: those
    are only paired where they change a file in common.
    """
    free = dict(enumerate(old))
    got: list[Patch | None] = [None] * len(commits)
    diffs: dict[str, _Changed] = {}

    def changed(oid: str) -> _Changed:
        if repo is not None and not diffs:
            left = [o for i, (o, _) in enumerate(commits) if got[i] is None]
            left += [o for _, o, _ in free.values()]
            diffs.update((o, _changed(d)) for o, d in repo.patches(left))
        return diffs.get(oid, (frozenset(), ""))

    def kin(one: str, two: str) -> bool:
        mine, theirs = changed(one)[0], changed(two)[0]
        return repo is None or bool(mine & theirs) or mine == theirs

    def sweep(key_of: _Key, *, in_order: bool = False, related: bool = False) -> None:
        olds: dict[object, list[int]] = {}
        for i, (_, oid, commit) in free.items():
            olds.setdefault(key_of(oid, commit), []).append(i)
        news: dict[object, list[int]] = {}
        for i, (oid, commit) in enumerate(commits):
            if got[i] is None:
                news.setdefault(key_of(oid, commit), []).append(i)
        for key, wanted in news.items():
            have = olds.get(key, [])
            if not in_order and (len(have) != 1 or len(wanted) != 1):
                continue
            for mine in wanted:
                fits = (i for i in have if not related or kin(commits[mine][0], old[i][1]))
                if (found := next(fits, None)) is not None:
                    have.remove(found)
                    got[mine] = free.pop(found)[0]

    def title(commit: Commit) -> str:
        return commit.message.split("\n", 1)[0]

    sweep(lambda oid, commit: oid)
    sweep(lambda oid, commit: (commit.author, title(commit)))
    sweep(lambda oid, commit: title(commit))
    if free and None in got:
        sweep(lambda oid, commit: (title(commit), changed(oid)), in_order=True)
        sweep(lambda oid, commit: title(commit), in_order=True)
        sweep(lambda oid, commit: (commit.author, changed(oid)), in_order=True)
        sweep(lambda oid, commit: commit.author, in_order=True, related=True)
    return got


_Key = Callable[[str, Commit], object]


_Changed = tuple[frozenset[bytes], str]  # the files by their `diff --git` lines, and a sum


def _changed(diff: bytes) -> _Changed:
    """What a diff changes, whatever lines are around it and wherever it stands."""
    files = set()
    made = hashlib.sha256()
    for line in io.BytesIO(diff):
        if line.startswith(b"diff --git "):
            files.add(line)
        if line.startswith((b"diff --git ", b"+", b"-")):
            made.update(line)
    return frozenset(files), made.hexdigest()


def to_files(
    store: Store,
    series: Series,
    before: FileState,
    base: str,
    named: Sequence[Named],
    new_base: Base | None = None,
    anew: bool = False,
) -> Refreshed:
    """The series' files for these commits on `base`, starting from the files as they are.

    The commits stand one on the other. Each patch file is proved: placed on its parent it gives
    the very commit, else it is written anew and proved again (`anew`: every file is).
    """
    repo = store.repo
    out = Refreshed(dict(before))
    base_tree = Tree(store, repo.tree_of(base))
    changes = repo.raw_changes([item.oid for item in named])
    owned = _ownership(series, base_tree, named, changes)
    proof = _Proof(store, base_tree, owned)
    rewrite: list[Named] = []
    _put_owned(out, store, named, owned)
    for item, change in zip(named, changes, strict=True):
        data = before.get(f"patches/{_file(item)}") if item.known else None
        kept = data is not None and not anew and proof.holds(item, change, data[0])
        if not kept:
            _no_marks(store, item, change, before)
            rewrite.append(item)
            proof.go_to(item)
        if item.known is None:
            title = item.commit.message.partition("\n")[0]
            if title.startswith(("fixup! ", "squash! ", "amend! ")):
                out.notes.append(f"{item.name}: `git rebase -i --autosquash` would fold `{title}`")
    _rewrite(out, repo, rewrite, owned)
    for item in named:
        out.fate[item.name] = _fate(item, set(owned[item.name]), before, out.files)
    _prove_rewritten(out, proof, base_tree, named, changes, rewrite)
    out.stack = Stack(
        base,
        base_tree.write(),
        tuple(
            Applied(item.name, item.oid, item.commit.tree, proof.moved.get(item.name, ()))
            for item in named
        ),
    )
    _edit_series(out, series, named, owned, new_base)
    return out


def _fate(item: Named, files: set[str], before: FileState, after: FileState) -> str:
    """What became of a patch: its text and its files of src/ are looked at alike."""
    if item.known is None:
        return "new"
    same = set(item.known.files) == files and all(
        before.get(name) == after.get(name) for name in (*files, f"patches/{_file(item)}")
    )
    return "unchanged" if same else "changed"


def _no_marks(store: Store, item: Named, changes: Sequence[RawChange], before: FileState) -> None:
    """Refuse a conflict that was committed into a known patch as it lay there, marks and all."""
    for change in changes if item.known else ():
        if change.new_mode not in (FILE, EXECUTABLE):
            continue
        now = store.content(change.new_id).data
        if b"<<<<<<<" not in now or not resolutions.marks(now.split(b"\n"), ()):
            continue
        old = b"" if change.old_id == NULL else store.read(change.old_id, "blob")
        known = set(resolutions.plain(old))
        for path, (data, _) in before.items():
            cut = 1 if path.startswith("patches/") else 0  # the "+" of a line
            known.update(line[cut:] for line in resolutions.plain(data))
        left = resolutions.marks(now.split(b"\n"), known)
        if {b"<", b">"} <= {line[:1] for line in left}:  # a whole block, not a text about marks
            raise HexpatchError(
                f"{item.name} has conflict marks: {text(change.path)}",
                f"resolve them in the commit `{item.commit.message.partition(chr(10))[0]}` "
                "(`git commit --amend`, `git rebase -i`) and run again",
            )


class _Proof:
    """Places patch texts commit by commit and compares what they change with what git says."""

    def __init__(self, store: Store, base: Tree, owned: dict[str, dict[str, RawChange]]) -> None:
        self.store = store
        self.tree = base.fork()
        self.owned = owned
        self.moved: dict[str, tuple[tuple[bytes, str, int], ...]] = {}

    def go_to(self, item: Named) -> None:
        """Stand on a commit."""
        self.tree = Tree(self.store, item.commit.tree)

    def holds(self, item: Named, changes: Sequence[RawChange], data: bytes) -> bool:
        """Does this patch file give this very commit on the tree? Then the tree moves on."""
        patch = parse_once(data, _file(item))
        author = (patch.author_name, patch.author_email, patch.author_date)
        if author != item.commit.author or patch.message != item.commit.message:
            return False
        mine = tuple(
            (change.path, change.new_mode, self.store.read(change.new_id, "blob"))
            for change in self.owned[item.name].values()
        )
        trial = self.tree.fork()
        laid = lay(trial, Source(item.name, patch, mine))
        if isinstance(laid, list):
            return False
        wanted = {change.path: (change.new_mode, change.new_id) for change in changes}
        if not _gives(self.tree, trial, laid, wanted):
            return False
        self.tree = trial
        self.moved[item.name] = laid.moved_hunks
        return True


def _gives(before: Tree, after: Tree, laid: Laid, wanted: dict[bytes, tuple[int, str]]) -> bool:
    """Does a placed patch change what is wanted, path by path (mode and blob), and no more?"""
    left = set(wanted)
    for path in {p for c in laid.changes for p in (c.path, c.old_path) if p is not None}:
        old, new = before.get(path), after.get(path)
        if new is old or (new is not None and new.same(old)):
            continue
        mode, oid = wanted.get(path, (-1, ""))
        if (new.mode if new is not None else 0) != mode:
            return False
        if new is not None and not new.content.is_blob(oid):
            return False
        left.discard(path)
    return not left


def _prove_rewritten(
    out: Refreshed,
    proof: _Proof,
    base: Tree,
    named: Sequence[Named],
    changes: Sequence[Sequence[RawChange]],
    rewrite: Sequence[Named],
) -> None:
    """A text just written must give its commit; if not, nothing may be changed."""
    again = {item.name for item in rewrite}
    before: Named | None = None
    for item, change in zip(named, changes, strict=True):
        if item.name in again:
            proof.tree = base.fork()
            if before is not None:
                proof.go_to(before)
            data = out.files[f"patches/{_file(item)}"][0]
            if not proof.holds(item, change, data):
                raise AssertionError(f"round trip failed: {item.name} does not give {item.oid}")
        before = item


def _file(item: Named) -> str:
    return item.known.file if item.known else f"{item.name}.patch"


def _ownership(
    series: Series, base: Tree, named: Sequence[Named], changes: Sequence[Sequence[RawChange]]
) -> dict[str, dict[str, RawChange]]:
    """Per patch: repository file -> change, for new files that only this one patch touches."""
    touched: dict[bytes, list[tuple[str, RawChange]]] = {}
    for item, listed in zip(named, changes, strict=True):
        for change in listed:
            touched.setdefault(change.path, []).append((item.name, change))
    declared = {series.upstream_path(f).encode() for p in series.patches for f in p.files}
    owned: dict[str, dict[str, RawChange]] = {item.name: {} for item in named}
    for path, found in touched.items():
        name, change = found[0]
        if len(found) > 1 or change.old_id != NULL or change.new_mode not in (FILE, EXECUTABLE):
            continue
        if base.get(path) is not None:
            continue
        try:
            upstream = path.decode("utf-8")
        except UnicodeDecodeError:
            continue
        file = series.src_file(upstream)
        if file is None and path in declared:
            file = f"src/{upstream}"
        if file is not None:
            owned[name][file] = change
    return owned


def _put_owned(
    out: Refreshed, store: Store, named: Sequence[Named], owned: dict[str, dict[str, RawChange]]
) -> None:
    """The files of src/. All old ones go first: one may have moved to an earlier patch."""
    for item in named:
        for file in item.known.files if item.known else ():
            out.files.pop(file, None)
    for item in named:
        for file, change in owned[item.name].items():
            data = store.read(change.new_id, "blob")
            out.files[file] = (data, change.new_mode == EXECUTABLE)


def _rewrite(
    out: Refreshed,
    repo: Repo,
    items: Sequence[Named],
    owned: dict[str, dict[str, RawChange]],
) -> None:
    patches = repo.patches([item.oid for item in items])
    for item, (_, diff) in zip(items, patches, strict=True):
        skip = {change.path for change in owned[item.name].values()}
        if not skip and diff.startswith(b"diff --git "):
            out.files[f"patches/{_file(item)}"] = (render_patch(patch_of(item.commit, diff)), False)
            continue
        parts = parse_diff(diff, item.name) if diff.strip() else ()
        kept = [p for p in parts if p.kind not in ("add", "rename", "copy") or p.path not in skip]
        lost = skip - {p.path for p in parts if p.kind == "add"}
        body = diff
        if lost:
            # git paired an owned file with a deleted or copied one: ask again without pairing
            ((_, body),) = repo.patches([item.oid], "--no-renames")
            parts = parse_diff(body, item.name)
            kept = [p for p in parts if p.path not in skip]
        body = b"".join(body[p.start : p.end] for p in kept)
        data = render_patch(patch_of(item.commit, body))
        out.files[f"patches/{_file(item)}"] = (data, False)


def patch_of(commit: Commit, diff: bytes) -> PatchFile:
    """A commit's author and message with a diff, ready to be written."""
    subject, _, rest = commit.message.partition("\n")
    return PatchFile(
        author=f"{commit.author_name} <{commit.author_email}>",
        author_name=commit.author_name,
        author_email=commit.author_email,
        author_date=commit.author_date,
        subject=subject,
        body=rest.strip("\n"),
        diffs=(),
        diff=diff,
        glued=bool(rest) and not rest.startswith("\n"),
    )


def emptied(series: Series, gone: Collection[str]) -> list[str]:
    """What is said of groups that go with the last of their patches."""
    said = []
    for group in series.groups:
        if group.patches and set(group.patches) <= set(gone):
            title = f", and its title `{group.title}`" if group.title else ""
            said.append(f"group {group.name} goes with its last patch{title}")
    return said


def _drop_gone(
    out: Refreshed,
    series: Series,
    named: Sequence[Named],
    owned: dict[str, dict[str, RawChange]],
) -> bytes:
    """series.yaml without the patches that have no commit any more; their files go, too."""
    yaml = out.files[SERIES][0]
    gone = {p.name for p in series.active} - {item.known.name for item in named if item.known}
    for patch in series.patches:
        if patch.name in gone:
            yaml = seriesedit.remove_patch(yaml, patch.name)
            out.files.pop(f"patches/{patch.file}", None)
            for file in patch.files:
                if not any(file in mine for mine in owned.values()):
                    out.files.pop(file, None)
            out.fate[patch.name] = "dropped"
    out.notes += emptied(series, gone)
    return yaml


def _edit_series(
    out: Refreshed,
    series: Series,
    named: Sequence[Named],
    owned: dict[str, dict[str, RawChange]],
    new_base: Base | None,
) -> None:
    """series.yaml as the commits want it: dropped and new patches, their files, order, base."""
    yaml = _drop_gone(out, series, named, owned)
    after: str | None = None
    added = seriesorder.add_many(yaml, [n.name for n in named if n.known is None])
    yaml = added if added is not None else yaml
    for item in named:
        files = sorted(owned[item.name])
        if item.known is None:
            entry: dict[str, str | list[str] | None] = {"name": item.name}
            if files:
                entry["files"] = files
            if added is None:
                yaml = seriesedit.add_patch(yaml, entry, after=after)
            elif files:
                yaml = seriesedit.set_patch(yaml, item.name, "files", files)
        elif files != sorted(item.known.files):
            yaml = seriesedit.set_patch(yaml, item.name, "files", files or None)
        after = item.name
    order = [item.name for item in named]
    if [n for n in seriesorder.order(yaml) if n in order] != order:
        yaml = seriesorder.reorder(yaml, order)
        out.notes.append("order changed")
    if new_base is not None and new_base != series.base:
        yaml = seriesedit.set_base(yaml, new_base)
    out.files[SERIES] = (yaml, False)


def new_name(commit: Commit, taken: Sequence[str]) -> str:
    """Name of a patch that a commit nobody knows yet becomes."""
    return slug(commit.message.strip().partition("\n")[0], taken)


def name_commits(
    commits: Sequence[tuple[str, Commit]],
    old: Sequence[tuple[Patch, str, Commit]],
    series: Series,
    repo: Repo | None = None,
) -> list[Named]:
    """Pair commits with patches; what is left over is new and named after its title."""
    taken = [p.name for p in series.patches]
    named = []
    for (oid, commit), known in zip(commits, match(commits, old, repo), strict=True):
        name = known.name if known else new_name(commit, taken)
        if not known:
            taken.append(name)
        named.append(Named(name, oid, commit, known))
    return named


def recommit(store: Store, base: str, named: Sequence[Named]) -> list[Named]:
    """The same trees and messages as commits with fixed committers, on `base`."""
    parent = base
    out = []
    for item in named:
        fixed = item.commit._replace(
            parents=(parent,),
            committer_name="",
            committer_email="",
            committer_date="",
            message=clean_message(item.commit.message),
        )
        parent = store.add("commit", objects.format_commit(fixed))
        out.append(Named(item.name, parent, fixed, item.known))
    return out


def clean_message(message: str) -> str:
    """A message as a patch file can hold it: no blank lines at either end, one newline last."""
    subject, _, rest = message.strip("\n").partition("\n")
    body = rest.strip("\n")
    glued = rest and not rest.startswith("\n")
    if not body:
        return f"{subject}\n"
    return f"{subject}\n{body}\n" if glued else f"{subject}\n\n{body}\n"
