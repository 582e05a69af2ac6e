"""Pull requests to hand out: a local branch per group, and a folder of facts beside it.

Nothing is pushed. A second export of the same thing changes neither refs nor files.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hexpatch import changelog, checklist, content, oplog, titles, workspace
from hexpatch.checklist import REVIEW_LIMIT, Evidence, Facts
from hexpatch.content import Cut, History
from hexpatch.errors import HexpatchError
from hexpatch.exportdir import TICKED, Files, Folder, make_mails, outside_series
from hexpatch.oplog import Step
from hexpatch.patchfile import parse_diff
from hexpatch.prbranch import Branch, Cutter, NothingLeft, find_group, message_notes
from hexpatch.repo import Repo
from hexpatch.series import Group
from hexpatch.session import Session
from hexpatch.sources import Found
from hexpatch.tree import Tree
from hexpatch.workspace import BRANCH

HEADS = "refs/heads/"


@dataclass(frozen=True)
class Exported:
    """One group as it lies there now. `changed` is False where nothing at all was written."""

    name: str
    branch: str
    base: str
    tip: str
    tree: str
    mails: tuple[Path, ...]
    folder: Path
    version: int
    changed: bool
    patches: tuple[str, ...]
    stacked_on: tuple[str, ...]
    lines: int
    push: str
    warnings: tuple[str, ...]


def as_json(exported: Exported) -> dict[str, Any]:
    """For --json."""
    data = dataclasses.asdict(exported)
    data.update(mails=[os.fspath(m) for m in exported.mails], folder=os.fspath(exported.folder))
    return data


def run(
    session: Session,
    names: Sequence[str] = (),
    *,
    onto: str | None = None,
    out: Path | None = None,
    force: bool = False,
) -> list[Exported]:
    """Export these groups (none named: all). One that fails leaves all of them as they were."""
    session.no_pending()
    session.in_sync()
    folder = (out or session.ws.state / "export").absolute()
    groups = _groups(session, names)
    for group in groups:
        outside_series(session.ws, folder / content.escaped(group.name))
    if not names:
        _say_ungrouped(session, groups)
    found = session.upstream.resolve(onto) if onto else session.base
    branches = _cut(session, groups, found, named=bool(names), force=force)
    plans = [_plan(session, branch, folder) for branch in branches]
    for plan in plans:
        plan.folder.stage()
    refs = {name: oid for plan in plans for name, oid in plan.refs.items()}
    files = workspace.durable(session.ws.root)
    lost = [(b.group.branch, tip) for b in branches if (tip := _foreign(session, b))]
    folders = tuple(plan.folder.path for plan in plans if plan.folder.differs)
    step = Step(session.command, files, refs, folders=folders)
    oplog.perform(session.ws, session.store, step, files)
    for name, tip in lost:
        session.say(f"the commits of branch {name} are kept as {tip[:12]}")
    for folder in folders:
        workspace.swap_in(folder)  # where the step could not, this says why
    return [plan.exported for plan in plans]


def _say_ungrouped(session: Session, groups: Sequence[Group]) -> None:
    grouped = {n for g in groups for n in g.patches}
    alone = [p.name for p in session.series.active if p.name not in grouped]
    if alone:
        session.say(f"in no group, not exported: {', '.join(alone)}")


def _cut(
    session: Session, groups: Sequence[Group], onto: Found, *, named: bool, force: bool
) -> list[Branch]:
    """The branches of all groups, or one error with what is wrong with each.

    A group with nothing left to export is left out, unless somebody has named it.
    """
    cutter = Cutter(session, onto)
    branches: list[Branch] = []
    errors: list[HexpatchError] = []
    for group in groups:
        try:
            branch = cutter.cut(group)
            _check_titles(branch, force)
            branches.append(branch)
        except HexpatchError as error:
            if isinstance(error, NothingLeft) and not named:
                session.say(f"left out: {error.message}")
            else:
                errors.append(error)
    if not errors:
        session.store.flush()
        errors = list(_refused(session, branches, force))
    if errors:
        raise _all(errors)
    return branches


def _all(errors: Sequence[HexpatchError]) -> HexpatchError:
    if len(errors) == 1:
        return errors[0]
    hints = dict.fromkeys(e.hint for e in errors if e.hint)
    return HexpatchError("\n".join(e.message for e in errors), "\n".join(hints) or None)


# -- what may be exported -------------------------------------------------------------------


def _groups(session: Session, names: Sequence[str]) -> list[Group]:
    series, wrong = session.series, "{} is a patch, and groups are exported"
    found = [find_group(series, name, wrong, "hexpatch export") for name in dict.fromkeys(names)]
    return found or list(series.groups)


def _check_titles(branch: Branch, force: bool) -> None:
    """The title that upstream will see must have its form; a commit must be finished."""
    where, title = _title(branch)
    wrong = [
        f"{where} `{title}`: {text}"
        for severity, text in titles.check_title(title)
        if severity == "error"
    ]
    for made in branch.commits:
        why = titles.unfinished(made.subject) if made.name in branch.group.patches else None
        if why:
            wrong.append(f"{made.name} `{made.subject}`: {why}")
    if wrong and not force:
        raise HexpatchError(
            "\n".join(f"{branch.group.name}: {line}" for line in dict.fromkeys(wrong)),
            "change it in the patch (or `title:` in series.yaml), or use --force",
        )


def _title(branch: Branch) -> tuple[str, str]:
    """The pull request's title: the group's, or its first commit's, as GitHub would take it."""
    if branch.group.title:
        return "title", branch.group.title
    first = next(m for m in branch.commits if m.name in branch.group.patches)
    return first.name, first.subject


def _foreign(session: Session, branch: Branch) -> str | None:
    """The tip of a group's branch, if no export has made it."""
    there = session.repo.ref(HEADS + branch.group.branch)
    past = content.history(session.repo, branch.group.name)
    ours = {branch.tip, *(cut.tip for cut in (*past.versions, past.last) if cut)}
    return None if there in ours else there


def _refused(session: Session, branches: Sequence[Branch], force: bool) -> Iterator[HexpatchError]:
    """Branches that must not be moved: somebody's own, checked out, or in the way of another."""
    heads = session.repo.refs(HEADS)
    taken = {*heads, *(HEADS + b.group.branch for b in branches)}
    listing = session.repo.git("worktree", "list", "--porcelain", "-z").split(b"\0")
    for branch in branches:
        full = HEADS + branch.group.branch
        there = heads.get(full)
        name, what = branch.group.name, f"branch {branch.group.branch}"
        if full == BRANCH or not session.repo.valid_branch(branch.group.branch):
            yield HexpatchError(f"{name}: no branch can be named {branch.group.branch}")
        for other in taken:
            if other.startswith(full + "/") or full.startswith(other + "/"):
                yield HexpatchError(
                    f"{name}: {what} can't stand beside branch {other.removeprefix(HEADS)}",
                    "give the group another `branch:` in series.yaml",
                )
        if there in (None, branch.tip):
            continue
        if not force and _foreign(session, branch):
            yield HexpatchError(
                f"{name}: {what} has other commits than the last export",
                f"`git branch -m {branch.group.branch} NAME` there keeps them, --force does not",
            )
        if b"branch " + full.encode() in listing:
            yield HexpatchError(
                f"{name}: {what} is checked out",
                "switch to another branch there: `git switch stack`",
            )


# -- one group's plan -----------------------------------------------------------------------


@dataclass
class _Plan:
    """What an export of one group will write."""

    done: Exported
    refs: dict[str, str | None]
    folder: Folder

    @property
    def exported(self) -> Exported:
        """What the export of the group has come to."""
        return dataclasses.replace(self.done, changed=self.done.changed or self.folder.differs)


def _plan(session: Session, branch: Branch, out: Path) -> _Plan:
    repo, group = session.repo, branch.group
    before = content.history(repo, group.name)
    cut = Cut(branch.tip, branch.base.commit)
    past = _next(repo, before, cut)
    number = len(past.versions)
    refs: dict[str, str | None] = {
        HEADS + group.branch: cut.tip,
        content.ref(group.name, "tip"): cut.tip,
        content.ref(group.name, "base"): cut.base,
        content.ref(group.name, f"v{number}"): past.versions[-1].tip,
        content.ref(group.name, f"v{number}-base"): past.versions[-1].base,
    }
    moved = repo.ref(HEADS + group.branch) != cut.tip or before != past
    mails, mail_notes = make_mails(repo, branch, number)
    diffs = dict(repo.patches([made.oid for made in branch.commits]))
    lines = sum(d.added + d.removed for o, diff in diffs.items() for d in parse_diff(diff, o))
    warnings = (*branch.notes, *_warnings(session, branch, diffs, lines), *mail_notes)
    evidence = checklist.evidence(session.ws.state / "results", _trees(session, branch))
    facts = _facts(session, branch, past, lines=lines, warnings=warnings, evidence=tuple(evidence))
    folder = out / content.escaped(group.name)
    done = Exported(
        name=group.name,
        branch=group.branch,
        base=cut.base,
        tip=cut.tip,
        tree=branch.tree,
        mails=tuple(folder / name for name in mails),
        folder=folder,
        version=number,
        changed=moved,
        patches=tuple(m.name for m in branch.commits),
        stacked_on=branch.stacked_on,
        lines=lines,
        push=_push(session, group.branch, past),
        warnings=warnings,
    )
    files = {**mails, **_papers(session, branch, past, facts)}
    return _Plan(done, refs, Folder(folder, files))


def _next(repo: Repo, past: History, cut: Cut) -> History:
    """The history with this cut in it: a new version only if its content is new."""
    last = past.last
    if past.versions and last and (last == cut or content.same(repo, last, cut)):
        return History(past.versions, cut)
    return History((*past.versions, cut), cut)


def _trees(session: Session, branch: Branch) -> list[str]:
    """Trees whose results say something about a branch: its own, and the whole stack's."""
    try:
        return [branch.tree, session.stack.tree]
    except HexpatchError:
        return [branch.tree]


def _warnings(
    session: Session, branch: Branch, diffs: Mapping[str, bytes], lines: int
) -> list[str]:
    where, title = _title(branch)
    found = [f"{where} `{title}`: {text}" for _, text in titles.check_title(title)]
    places = {os.fspath(p) for p in (Path.home(), session.ws.root) if len(p.parts) > 2}
    for made in branch.commits:
        message = made.commit.message
        found += [
            f"{made.name} `{made.subject}`: {text}" for _, text in titles.check_title(made.subject)
        ]
        found += message_notes(made.name, message, session.series.strip_trailers)
        text = diffs[made.oid] + message.encode()
        held = sorted(place for place in places if os.fsencode(place) in text)
        found += [f"{made.name}: holds the path {place}" for place in held]
    if lines > REVIEW_LIMIT:
        found.append(f"{lines} changed lines; upstream wants a person to review all of them")
    found += sorted(
        f"{made.name}: its author {made.commit.author_email} can't be written to"
        for made in branch.commits
        if made.commit.author_email.endswith((".invalid", "@localhost"))
    )
    if not branch.base.real:
        found.append(
            f"the base {branch.base.name} stands in for a commit of upstream: "
            "for a pull request, export --onto a real one"
        )
    return list(dict.fromkeys(found))


def _facts(
    session: Session,
    branch: Branch,
    past: History,
    *,
    lines: int,
    warnings: tuple[str, ...],
    evidence: tuple[Evidence, ...],
) -> Facts:
    store, group = session.store, branch.group
    reference = past.versions[-2] if len(past.versions) > 1 else past.versions[-1]
    before = Tree(store, store.repo.tree_of(reference.base))
    after = Tree(store, branch.base.tree)
    sent = [
        f"{patch.name} (group {other.name}{', pull request ' + patch.pr if patch.pr else ''})"
        for other in session.series.groups
        if other.name != group.name
        for patch in map(session.series.patch, other.patches)
        if patch.state == "sent"
    ]
    return Facts(
        group=group.name,
        title=group.title,
        branch=group.branch,
        version=len(past.versions),
        base=f"{branch.base.commit} ({branch.base.name})",
        tip=branch.tip,
        tree=branch.tree,
        commits=tuple((m.name, m.subject) for m in branch.commits),
        lines=lines,
        stacked_on=branch.stacked_on,
        evidence=evidence,
        policy=checklist.policy_moves(before, after, reference.base, branch.base.commit),
        sent=tuple(sent),
        warnings=warnings,
    )


def _papers(session: Session, branch: Branch, past: History, facts: Facts) -> Files:
    """Everything beside the mails. A pure function of the history: a second run gives the same."""
    text, span = changelog.export_text(session.repo, branch.group.name, past)
    template, where = checklist.template_of(Tree(session.store, branch.base.tree))
    files = {
        "changelog.md": text.encode(),
        "evidence.md": checklist.evidence_text(facts.evidence, branch.tree).encode(),
        TICKED: checklist.checklist(facts, template, where),
    }
    if span:
        files["range-diff.txt"] = span.encode()
    for item in facts.evidence:
        for path in item.files:
            name = Path(item.name).with_suffix(path.suffix).name
            files[f"evidence/{name}"] = path.read_bytes()
    return files


def _push(session: Session, branch: str, past: History) -> str:
    """The command a person types. A branch that was rewritten needs a lease."""
    where = session.ws.checkout if session.checkout.exists else session.ws.store
    again = " --force-with-lease" if any(c != past.last for c in past.versions) else ""
    return f"git -C {shlex.quote(os.fspath(where))} push{again} <your-fork> {shlex.quote(branch)}"
