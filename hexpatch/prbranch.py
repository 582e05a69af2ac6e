"""The commits of one pull request: a group's patches and what they need, picked onto upstream."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hexpatch import objects, resolutions, walk
from hexpatch.drift import Drift
from hexpatch.errors import HexpatchError, UsageError
from hexpatch.objects import Commit
from hexpatch.pick import Laid
from hexpatch.rows import Row
from hexpatch.series import Group, Series
from hexpatch.session import Session
from hexpatch.sources import Found
from hexpatch.tree import Tree
from hexpatch.walk import Item, Walk
from hexpatch.yamltree import similar

# trailers that steer this tool or speak to the house; they stay at home
HOUSE = ("Topic", "Export", "Internal-Note", "Change-Id")

_TRAILER = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*) ?:(?: |\t|$)")
_KNOWN = ("signed-off-by", "assisted-by", "co-authored-by", "reviewed-by", "acked-by", "tested-by")


# -- messages -------------------------------------------------------------------------------


def public_message(message: str, extra: Iterable[str] = ()) -> str:
    """A message without the house's trailers, which are looked for in its trailing block only."""
    drop = {key.lower() for key in (*HOUSE, *extra)}
    head, *paragraphs = message.rstrip("\n").split("\n\n")
    kept: list[str] = []
    while paragraphs and _is_block(paragraphs[-1], drop, strict=bool(kept)):
        kept.insert(0, _without(paragraphs.pop(), drop))
    text = "\n\n".join([head, *paragraphs, *(block for block in kept if block)])
    return text.rstrip("\n") + "\n"


def _is_block(paragraph: str, drop: set[str], *, strict: bool) -> bool:
    """git's rule: all trailers, or a known one and no more than three parts of other lines."""
    lines = [line for line in paragraph.split("\n") if line.strip()]
    keys = [match[1].lower() for line in lines if (match := _TRAILER.match(line))]
    folded = sum(line[0] in " \t" for line in lines)
    if not keys or lines[0][0] in " \t":
        return not lines  # more than one blank line between paragraphs
    if len(keys) + folded == len(lines):
        return True
    known = any(key in drop or key in _KNOWN for key in keys)
    return not strict and known and len(keys) * 3 >= len(lines) - len(keys) - folded


def _without(block: str, drop: set[str]) -> str:
    kept, dropping = [], False
    for line in block.split("\n"):
        if not line.startswith((" ", "\t")):
            match = _TRAILER.match(line)
            dropping = match is not None and match[1].lower() in drop
        if not dropping:
            kept.append(line)
    return "\n".join(kept)


def left_over(message: str, extra: Iterable[str]) -> list[str]:
    """The house's keys that still start a line of a message, outside its trailers."""
    drop = {key.lower() for key in (*HOUSE, *extra)}
    keys = (m[1] for line in message.split("\n")[1:] if (m := _TRAILER.match(line)))
    return sorted({key for key in keys if key.lower() in drop})


# -- the branch -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """One commit of a branch."""

    name: str
    oid: str
    commit: Commit

    @property
    def subject(self) -> str:
        """Its title."""
        return self.commit.message.partition("\n")[0]


@dataclass(frozen=True)
class Branch:
    """A group as commits on upstream."""

    group: Group
    base: Found
    commits: tuple[Made, ...]
    stacked_on: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def tip(self) -> str:
        """The last commit."""
        return self.commits[-1].oid

    @property
    def tree(self) -> str:
        """Tree of the last commit."""
        return self.commits[-1].commit.tree


class NothingLeft(HexpatchError):
    """Upstream has the whole group, or all of it is set aside."""


def find_group(series: Series, name: str, wrong: str, how: str) -> Group:
    """The group of this name. For a patch's name, the words for that, and `how GROUP` as a hint."""
    known = {group.name: group for group in series.groups}
    if name in known:
        return known[name]
    patch = next((p for p in series.patches if p.name == name), None)
    if patch is None:
        every = f"known: {', '.join(known)}" if known else "series.yaml has no groups"
        raise UsageError(f"no group named {name}", similar(name, known) or every)
    if patch.state == "private":
        raise HexpatchError(f"{name} is private: it never leaves the house")
    owner = next((g.name for g in known.values() if name in g.patches), None)
    hint = f"`{how} {owner}`" if owner else "add it to a group in series.yaml"
    raise UsageError(wrong.format(name), hint)


@dataclass
class _Restart(Exception):
    """A patch turned out to build on one that had been left out."""

    needed: str
    by: str


@dataclass
class Cutter:
    """Cuts branches off one laid stack. What is the same for all groups is computed once."""

    session: Session
    onto: Found
    items: list[Item] = field(init=False)
    first: Walk = field(init=False)

    def __post_init__(self) -> None:
        session, base = self.session, self.session.base
        self.items = walk.items_of(session.series, Tree(session.store, base.tree))
        resolve = resolutions.resolver(session.store, session.ws.root, session.say)
        self.first = walk.start(
            session.store, session.series, base.commit, self.onto.commit, self.items, resolve
        )

    @property
    def series(self) -> Series:
        """The series."""
        return self.session.series

    def cut(self, group: Group) -> Branch:
        """The group's branch; NothingLeft, or a HexpatchError that says what does not fit."""
        why: dict[str, str] = {}  # patch taken along -> who needs it
        self._close(group, group.patches, why)
        while True:
            try:
                return self._pick(group, why)
            except _Restart as found:
                why[found.needed] = found.by
                self._close(group, [found.needed], why)

    def _close(self, group: Group, start: Sequence[str], why: dict[str, str]) -> None:
        """Add what these patches need, and refuse what must not or can't go along."""
        todo = list(start)
        while todo:
            name = todo.pop()
            patch = self.series.patch(name)
            if patch.state == "private":
                raise HexpatchError(
                    f"{group.name}: {why.get(name, name)} builds on private patch {name}, "
                    "which never leaves the house",
                    f"make {why.get(name, name)} independent of {name}, or take state: private "
                    "from it",
                )
            if patch.out == "hold":
                hint = f"`hexpatch rebase` brings it back where it fits, as onto {patch.held}"
                if patch.state == "hold":
                    hint = f"take `state: hold` from {name} in series.yaml"
                raise NothingLeft(f"{group.name}: {name} is on hold", hint)
            for need in patch.needs:
                if need not in group.patches and need not in why:
                    why[need] = name
                    todo.append(need)

    def _walk(self) -> Walk:
        first, base = self.first, self.session.base
        paths = {
            change.old_path or change.path
            for item in self.items
            if isinstance(item.laid, Laid)
            for change in item.laid.changes
        }
        store = self.session.store
        drift = Drift(store.repo, base.tree, self.onto.tree, paths)
        tree = Tree(store, self.onto.tree)
        return Walk(store, tree, drift, first.landings, first.resolve, first.culprit)

    def _pick(self, group: Group, why: Mapping[str, str]) -> Branch:
        fold = self._walk()
        wanted = {*group.patches, *why}
        made: list[Made] = []
        notes: list[str] = []
        parent, tree = self.onto.commit, self.onto.tree
        for item in self.items:
            if item.name not in wanted:
                _leave_out(fold, item)
                continue
            if item.laid is None:
                notes.append(f"{item.name} is not part of it: {item.why_out}")
                continue
            row, _ = fold.step(item)
            if row.status == "landed":
                notes.append(f"{item.name} is not part of it: {'; '.join(row.detail)}")
                continue
            if not row.fits:
                raise self._misfit(group, item, row, wanted)
            after = fold.tree.write()
            if after == tree:
                notes.append(f"{item.name} is not part of it: it changes nothing")
                continue
            commit = self._commit(item, parent, after)
            parent = self.session.store.add("commit", objects.format_commit(commit))
            tree = after
            made.append(Made(item.name, parent, commit))
        if not any(m.name in group.patches for m in made):
            raise NothingLeft(
                f"{group.name}: nothing is left of it on {self.onto.name}: {'; '.join(notes)}"
            )
        along = [m.name for m in made if m.name in why]
        groups, along_notes = self._along(along, why)
        return Branch(group, self.onto, tuple(made), groups, (*along_notes, *notes))

    def _misfit(self, group: Group, item: Item, row: Row, wanted: set[str]) -> Exception:
        if isinstance(item.laid, Laid) and row.blocked_by and row.blocked_by not in wanted:
            return _Restart(row.blocked_by, item.name)
        lines = "\n".join(f"  {line}" for line in row.detail)
        return HexpatchError(
            f"{group.name}: {item.name} does not fit on {self.onto.name}\n{lines}",
            f"no branch was changed; `hexpatch rebase --onto {self.onto.name}` lets you resolve it",
        )

    def _commit(self, item: Item, parent: str, tree: str) -> Commit:
        patch = item.source.patch
        return Commit(
            tree=tree,
            parents=(parent,),
            author_name=patch.author_name,
            author_email=patch.author_email,
            author_date=patch.author_date,
            message=public_message(patch.message, self.series.strip_trailers),
        )

    def _along(
        self, along: Sequence[str], why: Mapping[str, str]
    ) -> tuple[tuple[str, ...], list[str]]:
        """The groups that patches taken along come from, and what to say about it."""
        owner = {name: g.name for g in self.series.groups for name in g.patches}
        groups = dict.fromkeys(owner[name] for name in along if name in owner)
        notes = [
            f"stacked on {other}, which has to go first: "
            + ", ".join(
                f"{why[name]} builds on {name}" for name in along if owner.get(name) == other
            )
            for other in groups
        ]
        notes += [
            f"{name} is in no group; taken along, for {why[name]} builds on it"
            for name in along
            if name not in owner
        ]
        return tuple(groups), notes


def _leave_out(fold: Walk, item: Item) -> None:
    """A patch of another group: the walk must know what is missing, and by whom."""
    if not isinstance(item.laid, Laid):
        return
    landing = fold.landings.get(item.name)
    if landing is None or landing.reverted_by:
        fold.failed.append(item.laid)
    for change in item.laid.changes:
        fold.drift.forget(change)


def message_notes(name: str, message: str, extra: Sequence[str]) -> Iterator[str]:
    """What a person should look at before a message goes out."""
    for key in left_over(message, extra):
        yield f"{name}: `{key}:` stands in the message's text, not in its trailers; it goes out"
    if "\n" in message.rstrip("\n").partition("\n\n")[0]:
        yield f"{name}: the title has two lines; `git am` makes one of them"
    machine = r"^co-authored-by:.*(claude|copilot|gpt|openai|anthropic|gemini|codex|cursor|devin)"
    if re.search(machine, message, re.IGNORECASE | re.MULTILINE):
        yield f"{name}: Co-authored-by names a machine; upstream wants Assisted-by"
