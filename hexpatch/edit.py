"""Change the series itself: start one, add patches from anywhere, take patches out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hexpatch import mail, objects, oplog, proc, refresh, seriesedit, stack, walk, workspace
from hexpatch.drift import Drift
from hexpatch.errors import HexpatchError, UsageError
from hexpatch.merge import pick
from hexpatch.objects import Commit
from hexpatch.oplog import Step
from hexpatch.patchfile import PatchFile, parse_patch, render_patch, slug
from hexpatch.pick import Conflict, Laid, Source, lay
from hexpatch.refresh import Named
from hexpatch.repo import Repo, environment
from hexpatch.series import Base, Series, parse
from hexpatch.seriesrules import name_fault
from hexpatch.session import Session
from hexpatch.sources import Found
from hexpatch.stack import Stack
from hexpatch.tree import Entry, Tree
from hexpatch.workspace import SERIES, FileState


@dataclass
class Edited:
    """What a change of the series did."""

    stack: Stack
    operation: str | None
    fate: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


# -- init -----------------------------------------------------------------------------------


def init(session: Session, text: bytes, base_rev: str) -> Found:
    """Write series.yaml with its base resolved; `text` is the template with a base by name."""
    session.__dict__["series"] = parse(text, session.ws.root, disk=False)
    found = session.upstream.resolve(base_rev)
    entry = Base(found.name, found.commit, found.tree)
    if found.snapshot:
        entry = Base(found.name, None, found.tree, found.snapshot)
    text = seriesedit.set_base(text, entry)
    before = workspace.durable(session.ws.root)
    files = {**before, SERIES: (text, False)}
    oplog.perform(session.ws, session.store, Step(session.command, files), before)
    (session.ws.root / "patches").mkdir(exist_ok=True)
    (session.ws.root / "src").mkdir(exist_ok=True)
    return found


# -- adding ---------------------------------------------------------------------------------


def _current(session: Session) -> list[Named]:
    named = []
    session.store.flush()
    for applied in session.stack.patches:
        commit = objects.parse_commit(session.store.read(applied.commit, "commit"))
        known = session.series.patch(applied.name)
        named.append(Named(applied.name, applied.commit, commit, known))
    return named


def _ready(session: Session) -> None:
    session.no_pending()
    session.in_sync()
    session.clean()


def add_patches(
    session: Session, patches: list[Callable[[], PatchFile]], names: Sequence[str]
) -> Edited:
    """Append patches to the series, all of them or none.

    Each is parsed when it is its turn, and let go then: `patches` is used up.
    """
    _ready(session)
    for name in filter(None, names):
        _a_name(name)
    named = _current(session)
    tree = Tree(session.store, session.stack.tree)
    parent = session.stack.tip
    taken = [p.name for p in session.series.patches]
    notes: list[str] = []
    assert len(patches) == len(names)
    for wanted in names:
        patch = patches.pop(0)()
        name = wanted or slug(patch.subject, taken)
        if name in taken:
            raise HexpatchError(f"there is a patch named {name} already", "use --name")
        taken.append(name)
        source = Source(name, patch)
        _place(session, tree, source, notes)
        tree_id = tree.write()
        oid = stack.commit_patch(session.store, source, parent, tree_id)
        commit = objects.parse_commit(session.store.read(oid, "commit"))
        named.append(Named(name, oid, commit, None))
        parent = oid
        del patch, source  # a large patch must be gone before the next one comes
    files = workspace.durable(session.ws.root)
    return _commit(session, session.series, files, files, named, notes)


def _place(session: Session, tree: Tree, source: Source, notes: list[str]) -> None:
    laid = lay(tree, source)
    if isinstance(laid, Laid):
        for path, hunk, line in laid.moved_hunks:
            where = path.decode("utf-8", "replace")
            notes.append(f"{source.name}: {where}: hunk {hunk} sits at line {line}")
        return
    merged = _three_way(session, tree, source, laid)
    if merged:
        raise HexpatchError(
            f"{source.name} does not apply on {session.series.base.name}\n"
            + "\n".join(f"  {c.line}" for c in merged),
            "nothing was changed; start from the commit it was made for: "
            "`hexpatch init --base REV`, import, then `hexpatch rebase --onto`",
        )
    notes.append(f"{source.name}: merged three-way, its context has changed")


def _three_way(
    session: Session, tree: Tree, source: Source, laid: list[Conflict]
) -> list[Conflict]:
    """As `git am -3`: the ancestor is the blob that the index line names, if the store has it."""
    there = tree.fork()
    found = False
    for diff in source.patch.diffs:
        if diff.old_path is None or not diff.old_id.strip("0"):
            continue
        blob = session.repo.lookup(diff.old_id)
        now = there.get(diff.old_path)
        if now is not None and blob is not None and blob[1] == "blob":
            mode = diff.old_mode or now.mode
            there.put(diff.old_path, Entry(mode, session.store.content(blob[0])))
            found = True
    on_ancestor = lay(there, source) if found else laid
    if not isinstance(on_ancestor, Laid):
        return on_ancestor
    drift = Drift(session.repo, session.stack.tree, session.stack.tree)
    picked = pick(tree, on_ancestor, drift, source.name)
    if picked.status == "landed":
        raise HexpatchError(
            f"{source.name}: all of it is there already",
            "nothing was imported; `hexpatch series` lists what is in the stack",
        )
    return picked.conflicts


def _commit(
    session: Session,
    series: Series,
    before: FileState,
    files: FileState,
    named: Sequence[Named],
    notes: Sequence[str] = (),
    *,
    anew: bool = False,
) -> Edited:
    """Refresh the files from these commits, prove the round trip, record and carry out.

    `files` is what the series starts from; `before`, how it lies on the disk.
    """
    session.store.flush()
    out = refresh.to_files(session.store, series, files, session.base.commit, named, anew=anew)
    for item in named:
        if item.known is None:
            out.files[SERIES] = (_trailers(out.files[SERIES][0], item), False)
    made = out.stack
    session.room_for(made.tip)
    final = session.with_lock(out.files, made)
    operation = session.step(final, made, before=before)
    return Edited(made, operation, out.fate, [*notes, *out.notes])


def _trailers(yaml: bytes, item: Named) -> bytes:
    """`Topic: X` puts a new patch into group X, `Export: no` marks it private."""
    for line in item.commit.message.splitlines()[1:]:
        key, _, value = line.partition(": ")
        if key == "Export" and value.strip().lower() == "no":
            yaml = seriesedit.set_patch(yaml, item.name, "state", "private")
        elif key == "Topic" and value.strip():
            yaml = seriesedit.add_to_group(yaml, value.strip(), item.name)
    return yaml


def read_mails(paths: Sequence[Path], say: object) -> list[Callable[[], PatchFile]]:
    """Patches from patch files and mailboxes, in the order given."""
    assert callable(say)
    patches: list[Callable[[], PatchFile]] = []
    for path in paths:
        found, notes = mail.read_series(path.read_bytes(), os.fspath(path))
        for note in notes:
            say(f"{path}: {note}")
        patches += [one.parse for one in found]
    if not patches:
        names = ", ".join(os.fspath(p) for p in paths)
        raise HexpatchError(f"{names}: only a cover letter, no patch", "name the patches too")
    return patches


def read_range(session: Session, spec: str) -> list[Callable[[], PatchFile]]:
    """Patches from commits: `A..B` as git means it, or a branch counted from the pinned base."""
    start, dots, end = spec.partition("..")
    tip = session.upstream.resolve(end if dots else start).commit
    from_ = session.upstream.resolve(start).commit if dots and start else session.base.commit
    commits = refresh.linear(session.repo, _fork_point(session, from_, tip), tip)
    if not commits:
        raise HexpatchError(f"{spec} has no commits", "name a branch or a range BASE..TIP")
    diffs = session.repo.patches([oid for oid, _ in commits], "-C")

    def next_one(oid: str, commit: Commit) -> PatchFile:
        kept = commit._replace(message=refresh.clean_message(commit.message))
        shown = refresh.patch_of(kept, next(diffs)[1])
        return parse_patch(render_patch(shown), oid[:12], bare=True)

    for oid, commit in commits:
        if "\n" in commit.message.strip("\n").partition("\n\n")[0]:
            session.say(f"{oid[:12]}: its title has two lines; both are kept")
    return [partial(next_one, oid, commit) for oid, commit in commits]


def _fork_point(session: Session, base: str, tip: str) -> str:
    if session.repo.is_ancestor(base, tip):
        return base
    out = session.repo.git("merge-base", base, tip, ok=(0, 1)).decode().strip()
    if not out:
        raise HexpatchError(
            f"{tip[:12]} and {base[:12]} have no common history", "name the range: BASE..TIP"
        )
    return out


def new(session: Session, name: str, message: str, everything: bool, empty: bool = False) -> Edited:
    """The checkout's uncommitted changes as a new patch on top; with `empty`, none will do."""
    session.no_pending()
    session.in_sync()
    session.on_stack()
    if session.checkout.exists:
        session.files_applied()
    _a_name(name)
    if name in {p.name for p in session.series.patches}:
        raise UsageError(f"there is a patch named {name} already")
    if not message.strip():
        raise UsageError("the message is empty: a patch needs a title")
    tree = session.stack.tree
    if session.checkout.exists:
        tree = _tree_of_changes(session.checkout.repo, everything)
    if tree == session.stack.tree and not empty:
        raise HexpatchError("nothing to take: no changes in the checkout", _what_else(session))
    who = identity(session)
    commit = Commit(
        tree=tree,
        parents=(session.stack.tip,),
        author_name=who[0],
        author_email=who[1],
        author_date=f"{oplog.now()} +0000",
        message=refresh.clean_message(message),
    )
    session.store.flush()
    oid = session.store.add("commit", objects.format_commit(commit))
    named = [*_current(session), Named(name, oid, commit, None)]
    before = workspace.durable(session.ws.root)
    session.store.flush()
    out = refresh.to_files(session.store, session.series, before, session.base.commit, named)
    made = out.stack
    final = session.with_lock(out.files, made)
    operation = session.step(final, made, before=before, index_only=True)
    return Edited(made, operation, out.fate, out.notes)


def _a_name(name: str) -> None:
    """Refuse what can't be a patch's name, before anything is computed."""
    fault = name_fault(name)
    if fault:
        raise UsageError(f"the name {name!r} {fault}")


def _what_else(session: Session) -> str:
    """What a person may have meant by a `new` that finds nothing."""
    if not session.checkout.exists:
        return "`hexpatch apply` makes the checkout: edit there"
    if session.checkout.repo.git("ls-files", "--others", "--exclude-standard", "-z"):
        return "`-A` takes untracked files, `--allow-empty` makes an empty patch"
    return f"edit in {session.ws.checkout}, or make an empty patch with `--allow-empty`"


def _tree_of_changes(repo: Repo, everything: bool) -> str:
    """Tree of what is staged; if nothing is, of all tracked changes (or all files)."""
    index = repo.git_path("index")
    scratch = index.with_name("hexpatch-index")
    scratch.write_bytes(index.read_bytes())
    try:
        env = {"GIT_INDEX_FILE": os.fspath(scratch)}
        staged = repo.git_status("diff", "--cached", "--quiet")[0] == 1
        if everything:
            repo.git("add", "-A", env=env)
        elif not staged:
            repo.git("add", "-u", env=env)
        return repo.git("write-tree", env=env).decode().strip()
    finally:
        scratch.unlink(missing_ok=True)


def identity(session: Session) -> tuple[str, str]:
    """The user's name and mail, as git knows them: environment, checkout, series, user."""
    own = {n: os.environ[n] for n in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL") if n in os.environ}
    where: list[str | Path] = ["-C", session.ws.root]
    for key in ("user.name", "user.email"):
        status, value = session.repo.git_status("config", "--local", key, ok=(0, 1))
        if status == 0:
            where += ["-c", f"{key}={value.decode('utf-8', 'replace').rstrip()}"]
    done = proc.run(
        ["git", *where, "var", "GIT_AUTHOR_IDENT"], env={**environment(user_config=True), **own}
    )
    if done.status:
        raise HexpatchError(
            "git does not know your name", "`git config --global user.name NAME` and user.email"
        )
    name, _, rest = done.stdout.decode("utf-8", "replace").partition(" <")
    return name, rest.partition(">")[0]


# -- taking out -----------------------------------------------------------------------------


def drop(session: Session, names: Sequence[str]) -> Edited:
    """Take patches out of the series; those that build on them are named and nothing is done."""
    _ready(session)
    gone = {session.series.patch(name).name for name in names}
    base = session.base
    items = walk.items_of(session.series, Tree(session.store, base.tree))
    fold = walk.Walk(
        session.store, Tree(session.store, base.tree), Drift(session.repo, base.tree, base.tree), {}
    )
    parent, named = base.commit, []
    yaml = workspace.durable(session.ws.root)[SERIES][0]
    for item in items:
        if item.name in gone:
            if isinstance(item.laid, Laid):
                fold.failed.append(item.laid)
                fold.out.add(item.name)
            continue
        if item.laid is None:
            continue
        row, _ = fold.step(item)
        if not row.fits and row.status != "landed":
            who = row.blocked_by or ", ".join(sorted(gone))
            why = [d for d in row.detail if d != f"needs {who}"]
            raise HexpatchError(
                ": ".join([f"{item.name} needs {who}", *(["; ".join(why)] if why else [])]),
                f"drop both: `hexpatch drop {' '.join(names)} {item.name}`",
            )
        tree = fold.tree.write()
        oid = stack.commit_patch(session.store, item.source, parent, tree)
        commit = objects.parse_commit(session.store.read(oid, "commit"))
        named.append(Named(item.name, oid, commit, session.series.patch(item.name)))
        parent = oid
    before = workspace.durable(session.ws.root)
    files = dict(before)
    for name in gone:
        patch = session.series.patch(name)
        if patch not in session.series.active:
            yaml = seriesedit.remove_patch(yaml, name)
            files.pop(f"patches/{patch.file}", None)
            for file in patch.files:
                files.pop(file, None)
    files[SERIES] = (yaml, False)
    series = parse(yaml, session.ws.root, disk=False)
    edited = _commit(session, series, before, files, named)
    for name in gone:
        edited.fate[name] = "dropped"
    return edited


def _none_of_upstream(
    session: Session, base: str, tip: str, commits: Sequence[tuple[str, Commit]]
) -> None:
    """Refuse to make patches of upstream's commits: a raw `git rebase` or reset brings them."""
    if not commits:
        return
    ours = session.repo.not_in(base, tip, session.upstream.tips())
    theirs = [found for found in commits if found[0] not in ours]
    if theirs:
        last, commit = theirs[-1][0][:9], theirs[-1][1]
        count = f"{len(theirs)} commits" if len(theirs) > 1 else "a commit"
        title = commit.message.partition("\n")[0]
        raise HexpatchError(
            f"the checkout stands on {count} of upstream above the base, the last is "
            f"{last} ({title})",
            f"`hexpatch rebase --onto {last}` moves the base; before, take your commits back with "
            f"`git rebase --onto hexpatch/base {last}` there",
        )


def take_commits(session: Session, *, anew: bool = False) -> Edited:
    """refresh: the commits of the checkout become the files; `anew` writes all, lines exact."""
    session.no_pending()
    session.clean()
    session.on_stack()
    session.files_applied()
    tip = session.checkout.head() if session.checkout.exists else session.branch_tip()
    base = session.base.commit
    if tip is None:
        raise HexpatchError("there is no checkout to refresh from", "run `hexpatch apply`")
    pinned = session.repo.ref(workspace.BASE)
    if pinned != base:
        raise HexpatchError(
            "the checkout is not on the pinned base", "`hexpatch apply --force` puts it there"
        )
    commits = refresh.linear(session.repo, base, tip)
    applied = session.applied_tip() or base
    old_commits = refresh.linear(session.repo, base, applied)
    active = session.series.active
    old = [(patch, oid, commit) for patch, (oid, commit) in zip(active, old_commits, strict=False)]
    if len(old_commits) != len(active):
        raise HexpatchError(
            "series.yaml has other patches than the checkout was made from",
            "`hexpatch apply --force` takes the files, `hexpatch undo` goes back",
        )
    known = {oid for oid, _ in old_commits}
    _none_of_upstream(session, base, tip, [c for c in commits if c[0] not in known])
    named = refresh.recommit(
        session.store, base, refresh.name_commits(commits, old, session.series, session.repo)
    )
    files = workspace.durable(session.ws.root)
    return _commit(session, session.series, files, files, named, anew=anew)
