"""new: the changes in the checkout as a patch on top."""

from __future__ import annotations

import os
from pathlib import Path

from hexpatch import objects, oplog, proc, refresh, workspace
from hexpatch.edited import Edited, check_name, current, write
from hexpatch.errors import HexpatchError, UsageError
from hexpatch.objects import Commit
from hexpatch.refresh import Named
from hexpatch.repo import Repo, environment
from hexpatch.session import Session

_TAKEN = ("cherry-pick", "revert")  # `-n` leaves their changes to be taken


def new(session: Session, name: str, message: str, everything: bool, empty: bool = False) -> Edited:
    """The checkout's uncommitted changes as a new patch on top; with `empty`, none will do."""
    session.no_pending()
    session.no_git_waits(but=_TAKEN)
    session.alone()
    session.in_sync()
    session.on_stack()
    if session.checkout.exists:
        session.files_applied()
    check_name(name)
    if name in {p.name for p in session.series.patches}:
        raise UsageError(f"there is a patch named {name} already")
    if not message.strip():
        raise UsageError("the message is empty: a patch needs a title")
    if not message.isascii() and any("\ud800" <= char <= "\udfff" for char in message):
        raise UsageError("the message is not UTF-8")  # bytes of another encoding, says Python
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
    named = [*current(session), Named(name, oid, commit, None)]
    files = workspace.durable(session.ws.root)
    return write(session, session.series, files, files, named, index_only=True)


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
