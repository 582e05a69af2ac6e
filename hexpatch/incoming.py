"""What import is given, as patches: mails, or the commits of a range."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hexpatch import mail, refresh
from hexpatch.errors import HexpatchError, UsageError
from hexpatch.objects import Commit
from hexpatch.patchfile import PatchFile, PathRule, parse_patch, render_patch
from hexpatch.session import Session

Read = Callable[[], PatchFile]


@dataclass(frozen=True)
class Picked:
    """A commit of the range that is imported, up to `end`: read when it is its turn."""

    oid: str
    parent: str
    end: str
    read: Read

    def __call__(self) -> PatchFile:
        return self.read()


def path_rules(texts: Sequence[str]) -> list[PathRule]:
    """`OLD=NEW` as the rules that rewrite paths."""
    rules = []
    for text in texts:
        old, sep, new = os.fsencode(text).partition(b"=")
        if not sep or not old or not new:
            raise UsageError(f"--map {text}: not of the form OLD=NEW", "as in src/=ggml/src/")
        if old.endswith(b"/") != new.endswith(b"/"):
            raise UsageError(f"--map {text}: a folder and no folder", "end both with /, or none")
        rules.append((old, new))
    return rules


def read_mails(paths: Sequence[Path], say: object, rules: Sequence[PathRule] = ()) -> list[Read]:
    """Patches from patch files and mailboxes, in the order given, their paths by `rules`."""
    assert callable(say)
    patches: list[Read] = []
    for path in paths:
        found, notes = mail.read_series(path.read_bytes(), os.fspath(path))
        for note in notes:
            say(f"{path}: {note}")
        patches += [partial(one.parse, rules) for one in found]
    if not patches:
        names = ", ".join(os.fspath(p) for p in paths)
        raise HexpatchError(f"{names}: only a cover letter, no patch", "name the patches too")
    return patches


def read_range(session: Session, spec: str) -> list[Read]:
    """Patches from commits: `A..B` as git means it, or a branch counted from the pinned base."""
    start, dots, end = spec.partition("..")
    tip = session.upstream.resolve(end if dots else start).commit
    from_ = session.upstream.resolve(start).commit if dots and start else session.base.commit
    end = end if dots else start
    fork = _fork_point(session, from_, tip, end, named=bool(dots))
    commits = refresh.linear(session.repo, fork, tip)
    if not commits:
        raise HexpatchError(f"{spec} has no commits", "name a branch or a range BASE..TIP")
    refresh.titled(commits)
    diffs = session.repo.patches([oid for oid, _ in commits], "-C")

    def next_one(oid: str, commit: Commit) -> PatchFile:
        kept = commit._replace(message=refresh.clean_message(commit.message))
        shown = refresh.patch_of(kept, next(diffs)[1])
        return parse_patch(render_patch(shown), oid[:12], bare=True)

    for oid, commit in commits:
        if "\n" in commit.message.strip("\n").partition("\n\n")[0]:
            session.say(f"{oid[:12]}: its title has two lines; both are kept")
    parents = [fork, *(oid for oid, _ in commits)]
    picked: list[Read] = []
    for (oid, commit), parent in zip(commits, parents, strict=False):
        picked.append(Picked(oid, parent, end, partial(next_one, oid, commit)))
    return picked


def _fork_point(session: Session, base: str, tip: str, end: str, *, named: bool) -> str:
    """Where `tip`, typed as `end`, left `base`. `named`: a person typed the base as well."""
    if session.repo.is_ancestor(base, tip):
        return base
    out = session.repo.git("merge-base", base, tip, ok=(0, 1)).decode().strip()
    if not out:
        hint = f"name where it starts: `hexpatch import BASE..{end}`"
        if not session.repo.commit(tip).parents:
            hint = f"`git format-patch -1 {end}` in your clone, and import the mail"
        elif named:
            hint = (
                f"start in the history of {end}: `hexpatch import {end}~1..{end}` takes one commit"
            )
        raise HexpatchError(f"{tip[:12]} and {base[:12]} have no common history", hint)
    return out
