"""A patch that needs a person: lay it out in the checkout, take the answer, remember it."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from hexpatch import objects, refresh, resolutions
from hexpatch.checkout import Layout, Shown, Stage
from hexpatch.errors import HexpatchError
from hexpatch.merge import Picked
from hexpatch.objects import EXECUTABLE, FILE, Commit
from hexpatch.pick import Change, Conflict, text
from hexpatch.repo import Repo
from hexpatch.session import Session
from hexpatch.textmerge import merge_text
from hexpatch.tree import Store, Tree
from hexpatch.walk import Item
from hexpatch.workspace import FileState

_REMEMBERED = ("content", "add/add", "modify/delete", "delete/modify", "mode")


def layout(session: Session, item: Item, picked: Picked) -> Layout:
    """The half-merged patch the way `git cherry-pick` would leave it."""
    stages: list[Stage] = []
    files: list[Shown] = []
    met = {conflict.path for conflict in picked.conflicts}
    for change in picked.clean:
        _clean(change, met, stages, files)
    for conflict in picked.conflicts:
        _conflict(session.store, conflict, item.name, stages, files)
    original = next(a.commit for a in session.stack.patches if a.name == item.name)
    return Layout(tuple(stages), tuple(files), original, item.source.patch.message)


def _clean(change: Change, met: Container[bytes], stages: list[Stage], files: list[Shown]) -> None:
    if change.gone is not None:
        stages.append(Stage(0, "", 0, change.gone))
        files.append(Shown(change.gone, 0, None))
    if change.post is not None and change.path not in met:  # it would take away what it meets
        entry = change.post
        stages.append(Stage(entry.mode, entry.content.oid, 0, change.path))
        files.append(Shown(change.path, entry.mode, entry.content.oid))


def _conflict(
    store: Store, conflict: Conflict, name: str, stages: list[Stage], files: list[Shown]
) -> None:
    sides = (conflict.base, conflict.ours, conflict.theirs)
    stages.append(Stage(0, "", 0, conflict.path))
    for number, side in enumerate(sides, 1):
        if side is not None:
            stages.append(Stage(side.mode, side.content.oid, number, conflict.path))
    merged = _marked(store.repo, conflict, name)
    shown = conflict.ours or conflict.theirs
    if shown is not None and conflict.kind not in ("directory", "submodule"):
        oid = shown.content.oid if merged is None else store.add("blob", merged)
        files.append(Shown(conflict.path, shown.mode, oid))


def _marked(repo: Repo, conflict: Conflict, name: str) -> bytes | None:
    """The file with conflict marks, where there are two texts to show."""
    ours, theirs = conflict.ours, conflict.theirs
    if conflict.merged is not None or conflict.kind != "add/add" or not ours or not theirs:
        return conflict.merged
    if ours.content.binary() or theirs.content.binary():
        return None
    labels = ("upstream", "nothing", name)
    return merge_text(repo, b"", ours.content.data, theirs.content.data, labels)[0]


def take(session: Session, pending: dict[str, Any]) -> str:
    """The resolved patch: a commit people made with git, or what they have staged."""
    checkout, repo = session.checkout, session.repo
    head = checkout.head()
    assert head is not None
    if head != pending["head"]:
        return _adopt(session, pending, head)
    unmerged = checkout.unmerged()
    if unmerged:
        names = " ".join(text(p) for p in unmerged)
        raise HexpatchError(
            f"{pending['current']} still has conflicts: {names}",
            f"resolve them in {session.ws.checkout}, `git add` them, run this again",
        )
    _no_marks(session, pending)
    unstaged = checkout.repo.git("diff", "--name-only", "-z").split(b"\0")[:-1]
    if unstaged:
        raise HexpatchError(
            f"changes that are not staged: {', '.join(text(p) for p in unstaged[:5])}",
            f"`git add` (or `git checkout`) them in {session.ws.checkout}, run this again",
        )
    tree = checkout.staged_tree()
    if tree == repo.tree_of(head):
        raise HexpatchError(
            f"nothing is left of {pending['current']}",
            "`hexpatch rebase --skip` drops it, `--abort` goes back",
        )
    item = next(a for a in session.stack.patches if a.name == pending["current"])
    commit = repo.commit(item.commit)
    fixed = commit._replace(tree=tree, parents=(head,))
    return session.store.add("commit", objects.format_commit(fixed))


def _no_marks(session: Session, pending: dict[str, Any]) -> None:
    """Refuse marks that were staged or committed unseen, unless either side had them before."""
    name = str(pending["current"])
    item = next(a for a in session.stack.patches if a.name == name)
    store, head = session.store, str(pending["head"])
    staged = session.checkout.staged_tree()
    sides = [Tree(store, store.read_tree_of(head)), Tree(store, item.tree)]
    marked = []
    for change in session.repo.raw_diff(store.read_tree_of(head), staged):
        if change.new_mode not in (FILE, EXECUTABLE):
            continue
        before = [entry for side in sides if (entry := side.get(change.path))]
        known = {line for entry in before for line in resolutions.plain(entry.content.data)}
        if resolutions.marks(store.read(change.new_id, "blob").split(b"\n"), known):
            marked.append(text(change.path))
    if marked:
        raise HexpatchError(
            f"{name} still has conflict marks: {' '.join(marked)}",
            f"edit them in {session.ws.checkout}, `git add` them, run this again",
        )


def _adopt(session: Session, pending: dict[str, Any], head: str) -> str:
    """Commits made with git on top of the stop: their tree and messages are the patch now."""
    try:
        made = refresh.linear(session.repo, pending["head"], head)
    except HexpatchError:
        raise HexpatchError(
            f"the checkout is at {head[:12]}, which is not built on {pending['head'][:12]}",
            "`hexpatch rebase --abort` goes back to the stack as it was",
        ) from None
    if session.checkout.dirty():
        raise HexpatchError(
            "the checkout has uncommitted changes on top of your commit",
            "`git commit --amend` or `git stash` them, run this again",
        )
    _no_marks(session, pending)
    messages = [commit.message for _, commit in refresh.titled(made)]
    if len(made) > 1:
        titles = ", ".join(f"`{message.strip().partition(chr(10))[0]}`" for message in messages)
        session.say(f"{pending['current']} is made of {len(made)} commits: {titles}")
    item = next(a for a in session.stack.patches if a.name == pending["current"])
    author = session.repo.commit(item.commit)
    fixed = Commit(
        tree=session.repo.tree_of(head),
        parents=(pending["head"],),
        author_name=author.author_name,
        author_email=author.author_email,
        author_date=author.author_date,
        message=_joined(messages),
    )
    return session.store.add("commit", objects.format_commit(fixed))


def _joined(messages: Sequence[str]) -> str:
    """As git squashes: one after the other; `fixup!` says nothing, `amend!` all anew."""
    kept: list[str] = []
    for message in map(refresh.clean_message, messages):
        how, _, rest = message.partition("! ")
        body = refresh.clean_message(rest.partition("\n")[2])
        if kept and how == "fixup":
            continue
        if kept and how == "amend":
            kept = [body]
        elif kept and how == "squash":
            kept.append(body)
        elif message not in kept:
            kept.append(message)
    return "\n".join(message for message in kept if message.strip())


def remember(session: Session, name: str, picked: Picked | None, head: str) -> FileState:
    """The person's answers as files, for whoever meets the same conflicts."""
    files: FileState = {}
    resolved = Tree(session.store, session.store.read_tree_of(head))
    for conflict in picked.conflicts if picked else ():
        if conflict.kind in _REMEMBERED:
            entry = resolved.get(conflict.path)
            resolutions.remember(session.store, files, name, conflict, entry)
    return files
