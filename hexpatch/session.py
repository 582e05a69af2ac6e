"""One run of the tool on one workspace: its files, its store, upstream, and the stack they make."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hexpatch import series, workspace
from hexpatch.errors import HexpatchError, InvalidSeries, MissingObject
from hexpatch.series import Series
from hexpatch.workspace import BASE, BRANCH, LOCK, TIP, FileState, Workspace

# the engine is loaded by the first property that needs it: looking is quick
if TYPE_CHECKING:
    from hexpatch.checkout import Checkout
    from hexpatch.repo import Repo
    from hexpatch.sources import Found, Upstream
    from hexpatch.stack import Stack
    from hexpatch.tree import Store

Say = Callable[[str], None]
_WAIT = 0.3  # seconds: more than another run needs to replace the files


class Session:
    """Everything a command needs. Made by `opened`, which takes the lock and mends a killed run."""

    def __init__(self, ws: Workspace, command: str, say: Say, offline: bool = False) -> None:
        self.ws = ws
        self.command = command
        self.say = say
        self.offline = offline

    @cached_property
    def repo(self) -> Repo:
        """The object store."""
        from hexpatch.repo import init_bare

        return init_bare(self.ws.store)

    @cached_property
    def store(self) -> Store:
        """Objects of the store and those that are about to be written."""
        from hexpatch.tree import Store

        return Store(self.repo)

    @cached_property
    def series(self) -> Series:
        """series.yaml, checked."""
        try:
            loaded = series.load(self.ws.root)
        except HexpatchError as error:
            if not self.ws.journal.exists():
                if not isinstance(error, InvalidSeries):
                    raise
                from hexpatch import putback

                raise InvalidSeries(error.problems, putback.hint(self)) from None
            time.sleep(_WAIT)  # another run is just replacing the files
            loaded = series.load(self.ws.root)
        strays = series.orphans(loaded)
        if strays:
            names = ", ".join(strays[:5]) + (" ..." if len(strays) > 5 else "")
            self.say(f"warning: in patches/ but not in the series: {names}")
        return loaded

    @cached_property
    def upstream(self) -> Upstream:
        """Where commits of upstream come from."""
        from hexpatch.sources import Upstream

        return Upstream(self.repo, self.series, self.say, offline=self.offline)

    @cached_property
    def base(self) -> Found:
        """The pinned base, present in the store and checked against its tree id."""
        return self.upstream.base(self.series.base)

    @property
    def base_tree(self) -> str:
        """Tree of the pinned base. Where the store has it, upstream's sources need no look."""
        pin = self.series.base
        if pin.tree is None or self.series.upstream.repo is not None or not self.ws.store.is_dir():
            return self.base.tree
        at = self.repo.lookup(pin.commit or pin.tree)
        there = at is not None and (pin.commit is None or self.repo.tree_of(pin.commit) == pin.tree)
        return pin.tree if there else self.base.tree

    @cached_property
    def stack(self) -> Stack:
        """The series on its base; raises DoesNotApply."""
        try:
            return self._build()
        except FileNotFoundError:
            time.sleep(_WAIT)  # another run is just replacing the files
            self.forget()
            return self._build()

    def _build(self) -> Stack:
        from hexpatch import stack

        base = self.base
        return stack.build(
            self.store, stack.sources(self.series), base.commit, base.tree, self.series.base.name
        )

    @cached_property
    def checkout(self) -> Checkout:
        """The workspace's own working tree."""
        from hexpatch.checkout import Checkout

        made = Checkout(self.repo, self.ws.checkout)
        made.mend()
        return made

    def close(self) -> None:
        """End helper processes."""
        for name in ("upstream", "repo", "checkout"):
            if (held := self.__dict__.get(name)) is not None:
                held.close()

    def forget(self) -> None:
        """Drop what was computed from files that have changed since."""
        for name in ("series", "upstream", "base", "stack"):
            self.__dict__.pop(name, None)

    # -- state -----------------------------------------------------------------------------

    def applied_tip(self) -> str | None:
        """The stack's tip as apply, refresh or rebase last left it."""
        return self.repo.ref(TIP)

    def branch_tip(self) -> str | None:
        """The tip people have in the checkout: branch `stack`."""
        return self.repo.ref(BRANCH)

    def commits_changed(self) -> bool:
        """Has somebody committed in the checkout since?"""
        return self.branch_tip() not in (None, self.applied_tip())

    def no_pending(self) -> None:
        """Refuse to start something while a rebase waits."""
        if self.ws.pending.exists():
            raise HexpatchError(
                "a rebase is waiting for you",
                "finish it with `hexpatch rebase --continue`, `--skip` or `--abort`",
            )

    def lost(self) -> dict[str, str]:
        """The names of the stack's commits that are in the store no more, and their ids.

        A crash may have eaten them; an older version left them to the clone, and its `gc`.
        """
        from hexpatch.oplog import OPS

        names = (BRANCH, TIP, OPS)
        named: dict[str, str] = {}
        if self.repo.partial or None in [self.repo.ref(name) for name in names]:
            named = self.repo.refs(*names)
        head = self.checkout.lost() if self.checkout.exists else None
        if head:
            named["HEAD"] = head
        there = self.repo.present(list(named.values()))
        return {name: oid for name, oid in named.items() if oid not in there}

    def whole(self) -> None:
        """Refuse to go on from commits that the store has lost."""
        from hexpatch.checkout import REPAIR

        lost = self.lost()
        if lost:
            what = ", ".join(f"{name.split('/')[-1]} {oid[:12]}" for name, oid in lost.items())
            hint = "`hexpatch rebase --abort` makes the stack again, from the files"
            raise MissingObject(
                f"commits of the stack are not in the store any more: {what}",
                hint if self.ws.pending.exists() else REPAIR,
            )

    def made_again(self) -> bool:
        """Write the stack's lost commits again, from the files; a lost log ends. Is all there?"""
        from hexpatch.oplog import OPS

        assert self.stack.tip
        self.store.flush()
        if OPS in self.lost():
            self.repo.update_refs({OPS: None})
            self.say("the log of operations is lost: `hexpatch undo` starts from here")
        return not self.lost()

    def in_reach(self) -> None:
        """Refuse to start where the user's clone has moved away: its objects are needed."""
        from hexpatch.sources import Upstream

        try:
            loaded = series.load(self.ws.root)
        except HexpatchError:
            return  # nobody needs a valid series to undo what broke it
        if loaded.upstream.repo is not None:
            Upstream(self.repo, loaded, self.say, offline=self.offline)

    def idle(self) -> None:
        """Refuse to cut into a `git rebase` in the checkout, or to start from lost commits."""
        self.whole()
        self.no_git_waits()

    def no_git_waits(self, but: Container[str] = ()) -> None:
        """Refuse what a git command or a conflict has left half done in the checkout."""
        if not self.checkout.exists:
            return
        busy = self.checkout.busy()
        unmerged = [p.decode("utf-8", "replace") for p in self.checkout.unmerged()]
        if busy and (unmerged or busy not in but):
            raise HexpatchError(
                f"a `git {busy}` is not finished in {self.ws.checkout}",
                f"`git {busy} --continue` or `git {busy} --abort` there",
            )
        if unmerged:  # of `git stash pop`, say: git takes no commit and no stash of it
            raise HexpatchError(
                f"{self.ws.checkout} has conflicts: {', '.join(unmerged[:5])}",
                "resolve and `git add` them there, or drop them by `git reset --merge`",
            )

    def alone(self) -> None:
        """Refuse to move branch `stack` under another work tree."""
        there = self.checkout.elsewhere()
        if there is not None:
            raise HexpatchError(
                f"branch stack is checked out in {there} too",
                f"`git -C {shlex.quote(os.fspath(there))} switch --detach` frees it",
            )

    def clean(self) -> None:
        """Refuse to overwrite uncommitted work in the checkout, or to cut into a `git rebase`."""
        self.idle()
        self.alone()
        dirty = self.checkout.dirty(note=True) if self.checkout.exists else []
        if dirty:
            names = ", ".join(p.decode("utf-8", "replace") for p in dirty[:5])
            raise HexpatchError(
                f"{self.ws.checkout} has uncommitted changes: {names}",
                "commit them there and run `hexpatch refresh`, or `git stash`",
            )

    def in_sync(self) -> None:
        """Refuse to move a stack whose commits and files tell different things."""
        self.mend_refs()
        if self.commits_changed():
            hint = "`hexpatch refresh` takes them over, `hexpatch apply --force` drops them"
            if self.applied_tip() is None or self.repo.ref(BASE) != self.base.commit:
                hint = (
                    "the stack is not on the pinned base there: `hexpatch apply --force` puts it "
                    "there and names your commits: `git cherry-pick` them again"
                )
            raise HexpatchError("the checkout has commits that are not in patches/ yet", hint)
        stray = self.stray()
        if stray:
            raise HexpatchError(
                f"{self.ws.checkout} is at {stray[:12]}, a commit that is on no branch",
                "`git switch -c NAME` there keeps it, `git switch -C stack` makes it the stack",
            )

    def mend_refs(self) -> None:
        """Note base and tip again where one is lost, if branch `stack` is built on them."""
        branch, noted = self.branch_tip(), self.applied_tip()
        if None in (branch, noted):
            self.whole()  # not there, or there no more?
        if branch is None or (noted is not None and self.repo.ref(BASE) is not None):
            return
        tip, base = noted or self._made(), self.base.commit
        if tip is None:
            return
        self.store.flush()
        built = self.repo.is_ancestor(base, tip) and self.repo.is_ancestor(base, branch)
        if built and (noted or self.repo.is_ancestor(tip, branch)):
            self.repo.update_refs({BASE: base, TIP: tip})

    def stray(self) -> str | None:
        """A commit in the checkout that no branch holds: HEAD is detached there."""
        checkout = self.checkout
        if not checkout.exists or checkout.branch() is not None:
            return None
        head = checkout.head()
        if head is None or head in self.repo.refs("refs/").values() or head == self._made():
            return None
        seen = self.repo.git("for-each-ref", "--count=1", "--contains", head)
        return None if seen else head

    def say_kept(self, oid: str) -> None:
        """Name commits that are on no branch any more: the store never drops them."""
        self.say(f"the checkout's commits are kept as {oid[:12]}")

    def _made(self) -> str | None:
        try:
            return self.stack.tip
        except HexpatchError:
            return None

    def on_stack(self) -> None:
        """Refuse to take commits from elsewhere than branch `stack`."""
        checkout = self.checkout
        if not checkout.exists:
            return
        branch, head = checkout.branch(), checkout.head()
        if branch == BRANCH or head == self.branch_tip():
            return
        back = "`git switch stack` goes back there"
        if self.branch_tip() is None:
            back = "there is none: `hexpatch apply` makes it from the files"
        where = f"on branch {branch.removeprefix('refs/heads/')}" if branch else f"at {head}"
        raise HexpatchError(
            f"{self.ws.checkout} is {where}, not on branch stack",
            f"{back}, `git switch -C stack` makes this the stack",
        )

    def files_applied(self) -> None:
        """Refuse to write commits over files that were edited since they were applied."""
        self.mend_refs()
        again = "and names your commits: `git cherry-pick` them there again"
        if self.applied_tip() is None:
            hint = "run `hexpatch apply`"
            if self.commits_changed():
                hint = f"`hexpatch apply --force` puts it into the checkout {again}"
            raise HexpatchError("the series is not applied yet", hint)
        if self.repo.ref(BASE) != self.base.commit:
            hint = "`hexpatch apply` puts it there"
            if self.commits_changed():
                hint = f"`hexpatch apply --force` puts it there {again}"
            raise HexpatchError("the checkout is not on the pinned base", hint)
        from hexpatch import lockfile

        lock = lockfile.true(self.series)  # it knows what these very files make
        if (
            lock is None or lock.tip != self.applied_tip()
        ) and self.stack.tip != self.applied_tip():
            hint = "`hexpatch apply` puts them into the checkout"
            if self.commits_changed():
                hint = f"`hexpatch apply --force` puts them into the checkout {again}"
            raise HexpatchError("the series' files have changed since the last apply", hint)

    def room_for(self, target: str, *, hidden: bool = True, more: Sequence[bytes] = ()) -> None:
        """Refuse to overwrite untracked files in the checkout, or edits that git does not see.

        `more` are files that are written beside those of the target.
        """
        if not self.checkout.exists:
            return
        self.store.flush()
        names = self.checkout.in_the_way(target, more)
        if names:
            shown = ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
            raise HexpatchError(
                f"untracked files are in the way: {shown}",
                f"move them out of {self.ws.checkout} and run again",
            )
        unseen = self.checkout.hidden(target) if hidden else {}
        if unseen:
            import shlex

            shown = ", ".join(sorted({n for names in unseen.values() for n in names})[:5])
            show = " && ".join(
                shlex.join(["git", "update-index", option, "--", *names])
                for option, names in unseen.items()
            )
            raise HexpatchError(
                f"{self.ws.checkout} has edits that git was told not to look at: {shown}",
                f"`{show}` there shows them to git: commit or stash them then",
            )

    # -- changing --------------------------------------------------------------------------

    def step(
        self,
        files: FileState,
        new: Stack,
        *,
        before: FileState | None = None,
        force: bool = False,
        index_only: bool = False,
        keep: Sequence[str] = (),
    ) -> None:
        """Record and carry out: these files, this stack, the checkout on its tip."""
        from hexpatch import oplog
        from hexpatch.oplog import Step

        step = Step(
            command=self.command,
            files=files,
            refs={BASE: new.base, TIP: new.tip, BRANCH: new.tip},
            checkout=new.tip,
            force=force,
            index_only=index_only,
            keep=tuple(keep),
        )
        oplog.perform(self.ws, self.store, step, before)

    def with_lock(self, files: FileState, made: Stack) -> FileState:
        """The files with the series.lock that fits them."""
        from hexpatch import lockfile, stack

        parsed = series.parse(files[workspace.SERIES][0], self.ws.root, disk=False)
        lock = stack.make_lock(parsed, made, files)
        return {**files, LOCK: (lockfile.render(lock), False)}


@contextmanager
def opened(
    start: Path, command: str, say: Say, *, offline: bool = False, write: bool = True
) -> Iterator[Session]:
    """A session on the workspace around `start`. Writers lock it; a killed run is finished."""
    ws = workspace.find(start)
    session = Session(ws, command, say, offline)
    try:
        with ExitStack() as held:
            if write or ws.journal.exists() or ws.died():
                held.enter_context(ws.locked(command))
                _recover(session, write)
            yield session
    except FileNotFoundError as error:
        gone = Path(os.fsdecode(error.filename or ""))
        if write or ws.root not in gone.parents or ws.state in gone.parents:
            raise
        raise HexpatchError(
            f"{gone} went away: the series is being changed by another run", "run again"
        ) from None
    finally:
        session.close()


def _recover(session: Session, write: bool) -> None:
    if not session.ws.journal.exists():
        return
    from hexpatch import oplog

    workspace.read_json(session.ws.journal)  # a damaged one is an error for everybody
    try:
        for line in oplog.recover(session.ws, session.repo):
            session.say(line)
    except (HexpatchError, OSError) as error:
        if write:
            raise
        why = " ".join(str(error).split())
        session.say(f"warning: an unfinished step can neither be completed nor taken back: {why}")
