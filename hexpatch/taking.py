"""refresh: the commits of the checkout become the files."""

from __future__ import annotations

from collections.abc import Sequence

from hexpatch import refresh, workspace
from hexpatch.edited import Edited, write
from hexpatch.errors import HexpatchError
from hexpatch.objects import Commit
from hexpatch.session import Session


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
    fresh = refresh.titled([c for c in commits if c[0] not in known])
    _none_of_upstream(session, base, tip, fresh)
    named = refresh.recommit(
        session.store, base, refresh.name_commits(commits, old, session.series, session.repo)
    )
    files = workspace.durable(session.ws.root)
    return write(session, session.series, files, files, named, anew=anew)
