"""The fold: each patch of a laid series onto another base, one row per patch.

`check` walks past conflicts and throws the result away; `rebase` stops at the first and keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hexpatch import landed, stack
from hexpatch.culprit import Culprits
from hexpatch.drift import Drift
from hexpatch.landed import Landing
from hexpatch.merge import Picked, Resolver, pick
from hexpatch.pick import Conflict, Laid, Source, lay, text
from hexpatch.rows import Row
from hexpatch.series import Series
from hexpatch.stack import Failed
from hexpatch.tree import Store, Tree


@dataclass
class Item:
    """One entry of the series on its way: how it lies at its own base."""

    source: Source
    laid: Laid | Failed | None  # None: landed or on hold, not part of the stack now
    needs: tuple[str, ...] = ()
    why_out: str = ""
    held: str = ""  # the base it last lay on, if a rebase has left it out
    returns: bool = True  # False: a person's hold, or a landed patch whose files are gone

    @property
    def name(self) -> str:
        """The patch's name."""
        return self.source.name


def items_of(series: Series, base: Tree) -> list[Item]:
    """Every entry of the series, the active ones placed on (a fork of) their base."""
    tree = base.fork()
    active = {p.name for p in series.active}
    whole = {p.name: all((series.root / f).is_file() for f in p.files) for p in series.patches}
    sources = [
        stack.read_source(series, p if whole[p.name] else p._replace(files=()))
        for p in series.patches
    ]
    laid = {r.name: r for r in stack.lay_all(tree, (s for s in sources if s.name in active))}
    items = []
    for patch, source in zip(series.patches, sources, strict=True):
        returns = whole[patch.name] and patch.state != "hold"
        items.append(
            Item(source, laid.get(patch.name), patch.needs, patch.out, patch.held or "", returns)
        )
    return items


@dataclass
class Walk:
    """State of the fold: the tree so far, and what failed on the way."""

    store: Store
    tree: Tree
    drift: Drift
    landings: Mapping[str, Landing]
    resolve: Resolver | None = None
    culprit: Culprits | None = None
    failed: list[Laid] = field(default_factory=list)
    out: set[str] = field(default_factory=set)
    on_hold: set[str] = field(default_factory=set)

    def step(self, item: Item) -> tuple[Row, Picked | None]:
        """One patch onto the tree. A patch that does not fit leaves the tree alone."""
        if item.laid is None:
            return self._revive(item), None
        if isinstance(item.laid, Failed):
            self.out.add(item.name)
            detail = tuple(c.line for c in item.laid.conflicts)
            status = "blocked" if item.laid.blocked_by else "conflict"
            return Row(item.name, status, detail, item.laid.blocked_by), None
        landing = self.landings.get(item.name)
        if landing is not None and not landing.reverted_by and not self._fits_again(item.laid):
            self._leave_out(item.laid)
            return Row(item.name, "landed", (landing.text,)), None
        for need in item.needs:
            if need in self.out:
                self._fail(item.laid)
                return Row(item.name, "blocked", (f"needs {need}",), need), None
        return self._pick(item.laid, landing)

    def _fits_again(self, laid: Laid) -> bool:
        """Would a landed patch change a file without a conflict? Then it is not there now.

        An added file says nothing: it may have been moved.
        """
        trial = self.tree.fork()
        picked = pick(trial, laid, self.drift, laid.name)
        if picked.conflicts or not any(change.pre for change in picked.clean):
            return False
        return not landed.applied_twice(self.tree, trial, laid)

    def _pick(self, laid: Laid, landing: Landing | None) -> tuple[Row, Picked]:
        before = self.tree.fork()
        picked = pick(self.tree, laid, self.drift, laid.name, self.resolve)
        notes: tuple[str, ...] = ()
        if landing is not None:
            back = "" if landing.reverted_by else ", not there any more"
            notes = (f"was upstream: {landing.text}{back}",)
        if picked.conflicts:
            blocker = stack.blocked_by(laid, picked.conflicts, self.failed)
            self._fail(laid)
            detail = tuple(self.explain(c) for c in picked.conflicts)
            status = "blocked" if blocker else "conflict"
            return Row(laid.name, status, detail + notes, blocker), picked
        if picked.status == "landed":
            detail = ("upstream has all of it; nothing is left",)
            return Row(laid.name, "landed", detail + notes), picked
        twice = landed.applied_twice(before, self.tree, laid)
        if twice and picked.status not in ("partly", "resolved"):
            self.tree = before
            self._fail(laid)
            return Row(laid.name, "twice", (*twice, *notes)), picked
        return Row(laid.name, picked.status, tuple(_details(picked)) + notes), picked

    def explain(self, conflict: Conflict) -> str:
        """A conflict on one line, with the upstream commit that stands in the way."""
        who = self.culprit.name(conflict) if self.culprit else ""
        kind = f"{conflict.kind}: " if conflict.kind not in conflict.detail else ""
        line = f"{text(conflict.path)}: {kind}{conflict.detail}"
        return line + (f"; upstream: {who}" if who else "")

    def _leave_out(self, laid: Laid) -> None:
        for change in laid.changes:
            self.drift.forget(change)

    def _fail(self, laid: Laid) -> None:
        self.failed.append(laid)
        self.out.add(laid.name)
        self._leave_out(laid)

    def _revive(self, item: Item) -> Row:
        """A patch that was out comes back if it fits strictly, and what it needs is there."""
        trial = self.tree.fork()
        returns = item.returns and not self.out.union(self.on_hold).intersection(item.needs)
        laid = lay(trial, item.source) if returns else None
        if (
            isinstance(laid, Laid)
            and laid.changes
            and not landed.applied_twice(self.tree, trial, laid)
        ):
            self.tree = trial
            self._leave_out(laid)
            was = f"on hold since {item.held}" if item.held else item.why_out
            return Row(item.name, "revived", (f"was {was}, fits again",))
        if item.why_out == "hold":
            self.on_hold.add(item.name)
        since = f" since {item.held}" if item.held else ""
        return Row(item.name, item.why_out, (f"not part of the stack{since}",))


def _details(picked: Picked) -> Iterable[str]:
    for placed in picked.placed:
        name = text(placed.path)
        if placed.how == "landed":
            yield f"{name}: upstream has it already"
        elif placed.landed_hunks:
            there = ", ".join(str(n + 1) for n in placed.landed_hunks)
            yield (
                f"{name}: partly upstream, {len(placed.landed_hunks)} of {placed.hunks} hunks "
                f"({there})"
            )
        elif placed.how == "three-way":
            yield f"{name}: merged three-way"
        elif placed.how == "resolved":
            yield f"{name}: remembered resolution"


def start(
    store: Store,
    series: Series,
    base: str,
    onto: str,
    items: Sequence[Item],
    resolve: Resolver | None = None,
) -> Walk:
    """A walk from `base` to `onto` for these items; landed patches are found first."""
    laid = [i.laid for i in items if isinstance(i.laid, Laid)]
    paths = {c.old_path or c.path for item in laid for c in item.changes}
    groups = [g.patches for g in series.groups]
    return Walk(
        store,
        Tree(store, store.repo.tree_of(onto)),
        Drift(store.repo, store.repo.tree_of(base), store.repo.tree_of(onto), paths),
        landed.find(store, base, onto, laid, groups) if base != onto else {},
        resolve,
        Culprits(store.repo, base, onto),
    )
