"""What build and validate look at: the stack, its base, the stack up to a patch, or a group."""

from __future__ import annotations

from typing import NamedTuple

from hexpatch import stack
from hexpatch.errors import HexpatchError, UsageError
from hexpatch.prbranch import Cutter, find_group
from hexpatch.series import Patch, Series
from hexpatch.session import Session


class Choice(NamedTuple):
    """What was asked for; where nothing was, the whole stack."""

    base_only: bool = False
    upto: str | None = None
    group: str | None = None


class Part(NamedTuple):
    """A tree, the patches whose ops it is judged by, and where it is not the whole: what it is."""

    tree: str
    patches: tuple[Patch, ...]
    name: str = ""
    text: str = ""
    notes: tuple[str, ...] = ()


def choice(*, base_only: bool, upto: str | None, group: str | None) -> Choice:
    """At most one of the three may be given."""
    if base_only + (upto is not None) + (group is not None) > 1:
        raise UsageError("give only one of --base, --upto PATCH, --group NAME")
    return Choice(base_only, upto, group)


def find(session: Session, which: Choice) -> Part:
    """The part's tree, in the store; no ref is written."""
    if which.upto is not None:
        part = _upto(session, which.upto)
    elif which.group is not None:
        part = _group(session, which.group)
    else:
        tree = session.base.tree if which.base_only else session.stack.tree
        part = Part(tree, session.series.active)
    session.store.flush()
    if not which.base_only:
        tell_unrefreshed(session)
    return part


def tell_unrefreshed(session: Session) -> None:
    """The files are what is built: say so where the checkout has more."""
    if not session.checkout.exists:
        return
    what = ""
    if session.commits_changed():
        what = "commits that are not in the files yet"
    elif session.checkout.dirty():
        what = "uncommitted changes"
    if what:
        session.say(
            f"note: the checkout has {what}; what is built are the files (`hexpatch refresh`)"
        )


def _upto(session: Session, name: str) -> Part:
    """The stack as far as this patch; those behind it need not even apply."""
    series, base = session.series, session.base
    active = series.active
    patches = active[: active.index(_in_stack(series, name)) + 1]
    sources = (stack.read_source(series, p) for p in patches)
    made = stack.build(session.store, sources, base.commit, base.tree, series.base.name)
    text = f"the stack up to {name}, {len(patches)} of {len(active)} patches"
    return Part(made.tree, patches, f"up to {name}", text)


def _in_stack(series: Series, name: str) -> Patch:
    patch, active = series.patch(name), series.active
    if patch in active:
        return patch
    state = "on hold" if patch.out == "hold" else "landed"
    before = [p.name for p in series.patches[: series.patches.index(patch)] if p in active]
    instead = f"--upto {before[-1]}" if before else "--base"
    raise HexpatchError(
        f"{name} is {state}: it is not part of the stack", f"`{instead}` is the stack before it"
    )


def _group(session: Session, name: str) -> Part:
    """The branch that `export` cuts: the group's patches and those they need, on the base."""
    group = find_group(session.series, name, "{} is a patch, not a group", "--group")
    branch = Cutter(session, session.base).cut(group)
    patches = tuple(session.series.patch(made.name) for made in branch.commits)
    held = ", ".join(p.name for p in patches)
    text = f"group {name} on the base, without the rest of the stack: {held}"
    return Part(branch.tree, patches, f"group {name}", text, branch.notes)
