"""Commands that make and move the stack: apply, refresh, rebase, undo, log."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hexpatch.cliroot import cli, json_option, opened, path_of, revision, show_edited
from hexpatch.errors import UsageError


@cli.command()
@revision("Put the stack on REV for once; the series stays pinned where it is.")
@click.option("--into", metavar="PATH", help="Check out into PATH instead of .hexpatch/llama.cpp.")
@click.option(
    "-f", "--force", is_flag=True, help="Drop what is in the checkout but not in patches/."
)
@click.option("--locked", is_flag=True, help="Fail if series.lock would change (for CI).")
@json_option
@click.pass_context
def apply(
    ctx: click.Context,
    onto: str | None,
    into: str | None,
    force: bool,
    locked: bool,
    as_json: bool,
) -> None:
    """Put the stack on its base, in a checkout.

    One commit per patch, checked out in .hexpatch/llama.cpp.

    The same files give the same commit ids everywhere. Changes: the checkout and series.lock.
    If a patch does not apply, it is named and nothing is changed.
    """
    from hexpatch import apply as applying
    from hexpatch import render

    with opened(ctx) as session:
        result = applying.run(
            session, onto, path_of(ctx, into) if into else None, force=force, locked=locked
        )
    made = result.stack
    if as_json:
        render.as_json(
            {
                "base": {"name": result.base_name, "commit": made.base, "tree": made.base_tree},
                "tip": made.tip,
                "tree": made.tree,
                "checkout": os.fspath(result.where),
                "patches": [
                    {"name": a.name, "commit": a.commit, "tree": a.tree} for a in made.patches
                ],
            }
        )
        return
    for row in result.rows:
        if row.status not in ("ok", "offset"):
            render.say(f"{row.name}: {row.status}: {'; '.join(row.detail)}")
    for applied in made.patches:
        for path, hunk, line in applied.moved_hunks:
            where = path.decode("utf-8", "replace")
            render.say(f"{applied.name}: {where}: hunk {hunk} sits at line {line}")
    count = len(made.patches)
    render.out(f"applied {count} patch{'es' * (count != 1)} on {result.base_name}")
    render.out(f"tip       {made.tip}")
    render.out(f"tree      {made.tree}")
    render.out(f"checkout  {os.fspath(result.where)}")


@cli.command()
@click.option("--anew", is_flag=True, help="Write every patch file again, with exact line numbers.")
@click.pass_context
def refresh(ctx: click.Context, anew: bool) -> None:
    """Write the checkout's commits back to the files.

    The inverse of apply: `git commit --fixup`, `git rebase -i`, new and dropped commits are all
    taken over. A patch that says the same as before keeps its bytes. Merges are refused. Changes:
    series.yaml, series.lock, patches/, src/, and the commits' committer (it is the author).
    """
    from hexpatch import taking

    with opened(ctx) as session:
        edited = taking.take_commits(session, anew=anew)
    show_edited(edited)


@cli.command()
@revision("Upstream commit to move to: a tag, branch, id, or snapshot.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would become of every patch.")
@click.option("-k", "--keep-going", is_flag=True, help="Leave out what conflicts (held:).")
@click.option("--continue", "how", flag_value="continue", help="Go on after a resolved conflict.")
@click.option("--skip", "how", flag_value="skip", help="Drop the conflicting patch and go on.")
@click.option("--abort", "how", flag_value="abort", help="Back to the state before.")
@json_option
@click.pass_context
def rebase(
    ctx: click.Context,
    onto: str | None,
    dry_run: bool,
    keep_going: bool,
    how: str | None,
    as_json: bool,
) -> None:
    """Move the series to another upstream commit.

    Merges in memory, then rewrites the files that changed, the base in series.yaml and the
    checkout. A conflict stops it (exit status 3) with the half-merged patch in the checkout:
    edit, `git add`, `hexpatch rebase --continue`; or --skip, or --abort. Committing there with
    git is fine too. Patches that upstream has taken are marked `landed:` and reported; what
    --keep-going leaves out is marked `held:`, and a later rebase brings it back where it fits.
    """
    from hexpatch import rebase as rebasing
    from hexpatch import render

    if (onto is None) == (how is None):
        raise UsageError("give either --onto REV, or one of --continue, --skip, --abort")
    if dry_run and how:
        raise UsageError("--dry-run goes with --onto")
    with opened(ctx, write=not dry_run) as session:
        if how == "abort":
            tip = rebasing.abort(session)
            if as_json:
                render.as_json({"aborted": True, "tip": tip, "tree": session.repo.tree_of(tip)})
            else:
                render.out("rebase aborted: the stack is as it was before")
            return
        if dry_run:
            assert onto is not None
            found = session.upstream.resolve(onto)
            outcome = rebasing.Outcome(rebasing.plan(session, found), found)
        elif how:
            outcome = rebasing.resume(session, skip=how == "skip", keep_going=keep_going)
        else:
            assert onto is not None
            outcome = rebasing.start(session, onto, keep_going=keep_going)
        where = session.ws.checkout
    if as_json:
        _rebase_json(outcome)
    else:
        _rebase_text(outcome, where, dry_run)
    if outcome.waiting:
        ctx.exit(3)
    if outcome.held or (dry_run and _unfit(outcome)):
        ctx.exit(1)


def _unfit(outcome: Any) -> list[Any]:
    return [r for r in outcome.rows if r.unfit]


def _rebase_json(outcome: Any) -> None:
    from hexpatch import render

    render.as_json(
        {
            "onto": {"name": outcome.onto.name, "commit": outcome.onto.commit},
            "tip": outcome.tip,
            "tree": outcome.tree,
            "waiting": outcome.waiting,
            "conflicts": outcome.conflicts,
            "patches": [
                {**r.as_json(), "fate": outcome.fate.get(r.name, "")} for r in outcome.rows
            ],
        }
    )


def _rebase_text(outcome: Any, where: Path, dry_run: bool) -> None:
    from hexpatch import render

    for note in outcome.notes:
        render.say(note)
    if outcome.waiting or dry_run:
        render.fates((r.name, r.status, r.detail) for r in outcome.rows)
    else:
        fates = [outcome.fate.get(r.name, r.status) for r in outcome.rows]
        render.fates((r.name, f, _said(r, f)) for r, f in zip(outcome.rows, fates, strict=True))
    if outcome.waiting:
        render.say("")
        render.say(f"{outcome.waiting} needs you: {', '.join(outcome.conflicts) or 'look at it'}")
        render.say(f"  in {where}: edit, `git add`, then `hexpatch rebase --continue`")
        render.say("  or `hexpatch rebase --skip` (drop the patch), `--abort` (go back)")
    elif not dry_run:
        render.out(f"base  {outcome.onto.name}")
        render.out(f"tip   {outcome.tip}")
        render.out(f"tree  {outcome.tree}")
    if outcome.held:
        render.say(f"on hold, not in the stack now: {', '.join(outcome.held)}")
        render.say("  a later rebase brings back what fits; `hexpatch undo` takes this one back")


def _said(row: Any, fate: str) -> Sequence[str]:
    """What there is to say of a patch beside its fate."""
    if row.status in ("ok", "offset"):
        return ()
    if row.status == fate:
        return list(row.detail)
    return [f"{row.status}: {row.detail[0]}", *row.detail[1:]] if row.detail else [row.status]


@cli.command()
@click.argument("operation", required=False)
@click.pass_context
def undo(ctx: click.Context, operation: str | None) -> None:
    """Restore the state before the last operation.

    Or before OPERATION, an id from `hexpatch log`: what came after it is undone with it. Run it
    again to go further back; it is an operation itself, and undoing it by its id is redo.
    Changes the files, the branches the operation moved, and the checkout. No work is lost: the
    changes `new` took are uncommitted again, commits that were not refreshed are named, and
    patches/resolutions/ stays.
    """
    from hexpatch import render, undoing

    with opened(ctx) as session:
        op = undoing.undo(session, operation)
    render.out(f"undid {op.oid[:12]}  {op.command}")


@cli.command()
@click.option(
    "-n", "--max-count", "limit", type=click.IntRange(1), default=20, help="How many [20]."
)
@json_option
@click.pass_context
def log(ctx: click.Context, limit: int, as_json: bool) -> None:
    """List the operations, newest first.

    Each is a commit on refs/hexpatch/ops that holds the files before and after. Changes nothing.
    """
    from hexpatch import render, undoing

    with opened(ctx, write=False) as session:
        entries = undoing.entries(session, limit)
    if as_json:
        render.as_json(entries)
        return
    render.table([[e["id"][:12], e["when"], e["note"], e["command"]] for e in entries])
    if not entries:
        render.say("no operations yet")
