"""The command line: reads arguments, opens a session, calls one function, renders what it gives.

Heavy modules are imported inside the commands, so that `--help` and completion stay quick.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hexpatch import __version__
from hexpatch.errors import HexpatchError, UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from hexpatch.session import Session

_ORDER = [
    "init",
    "import",
    "new",
    "drop",
    "series",
    "status",
    "check",
    "apply",
    "refresh",
    "rebase",
    "undo",
    "log",
    "build",
    "validate",
    "export",
    "changelog",
    "completion",
]


class _Cli(click.Group):
    """Commands in the order of a day's work; errors become text here and nowhere else."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return _ORDER

    def main(self, *args: Any, **extra: Any) -> Any:
        from hexpatch import render

        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra)
            sys.stdout.flush()
        except click.exceptions.Abort:
            click.echo("interrupted: nothing was changed after the last finished step", err=True)
            sys.exit(130)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except HexpatchError as error:
            render.fail(error)
            sys.exit(error.exit_code)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(141)
        sys.exit(code if isinstance(code, int) else 0)


def _command_line() -> str:
    return "hexpatch " + shlex.join(sys.argv[1:])


def _session(ctx: click.Context, *, write: bool = True) -> AbstractContextManager[Session]:
    from hexpatch import render, session

    options = ctx.find_root().params
    start = Path(options["directory"] or ".").resolve()
    return session.opened(
        start, _command_line(), render.say, offline=options["offline"], write=write
    )


_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


def _revision(help_text: str) -> Callable[[Any], Any]:
    return click.option("--onto", metavar="REV", help=help_text)


@click.group(cls=_Cli, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-C", "directory", metavar="DIR", help="Work in DIR instead of here.")
@click.option("--offline", is_flag=True, envvar="HEXPATCH_OFFLINE", help="Never ask the network.")
@click.option("-q", "--quiet", is_flag=True, help="Only answers and errors.")
@click.version_option(__version__, "-V", "--version", prog_name="hexpatch")
def cli(directory: str | None, offline: bool, quiet: bool) -> None:
    """Keep a stack of patches on llama.cpp: apply it, move it, build it, prove it, export it.

    The stack is files: series.yaml (order and base), patches/ (hunks) and src/ (whole new
    files). `apply` makes commits of them in .hexpatch/llama.cpp; edit there with plain git,
    then `refresh` writes the files again. Every change can be taken back with `undo`.

    Exit status: 0 done, 1 failed, 2 wrong usage, 3 a conflict waits for you.
    """
    from hexpatch import render

    render.quiet = quiet


# -- the series -----------------------------------------------------------------------------


@cli.command()
@click.option("--repo", metavar="PATH", help="Your own clone of llama.cpp; it is only read.")
@click.option("--url", metavar="URL", help="Upstream's repository.")
@click.option("--branch", metavar="NAME", default="master", help="Upstream's branch [master].")
@click.option("--base", metavar="REV", default="master", help="Commit to start from [master].")
@click.option(
    "--src",
    metavar="DIR=PATH",
    multiple=True,
    help="New files below PATH upstream live in src/DIR here.",
)
@click.pass_context
def init(
    ctx: click.Context,
    repo: str | None,
    url: str | None,
    branch: str,
    base: str,
    src: Sequence[str],
) -> None:
    """Start a series: write series.yaml, pinned to a base.

    Changes: series.yaml, patches/ and src/ in this folder. Refuses where a series is already.
    """
    from hexpatch import edit, render, seriesedit, session, workspace
    from hexpatch.series import DEFAULT_URL, Base

    options = ctx.find_root().params
    root = Path(options["directory"] or ".").resolve()
    if (root / workspace.SERIES).exists():
        raise HexpatchError(f"{root} has a {workspace.SERIES} already")
    mapping = {}
    for pair in src:
        name, sep, target = pair.partition("=")
        if not sep or not name or not target:
            raise UsageError(f"--src {pair}: not of the form DIR=PATH")
        mapping[name] = target
    if not src and repo is None and url is None:
        mapping = {"htp": "ggml/src/ggml-hexagon/htp"}
    text = seriesedit.template(
        url=url or DEFAULT_URL,
        branch=branch,
        repo=repo,
        base=Base(base),
        src=mapping,
    )
    root.mkdir(parents=True, exist_ok=True)
    ws = workspace.Workspace(root)
    with ws.locked(_command_line()):
        run = session.Session(ws, _command_line(), render.say, options["offline"])
        try:
            found = edit.init(run, text, base)
        finally:
            run.close()
    render.out(f"base  {found.name}  tree {found.tree}")
    render.say("next: `hexpatch import PATCH...` or `hexpatch apply`, edit, `hexpatch new NAME`")


@cli.command(name="import")
@click.argument("what", nargs=-1, required=True)
@click.option("--name", metavar="NAME", help="Name of the patch (one patch only).")
@click.pass_context
def import_(ctx: click.Context, what: Sequence[str], name: str | None) -> None:
    """Add patches from patch files, mailboxes, a branch or a range A..B.

    Changes: series.yaml, patches/, src/ and the checkout; all of it or nothing. A patch that
    does not apply is refused by name. Cover letters are skipped and named.
    """
    from hexpatch import edit, render

    with _session(ctx) as session:
        files = [Path(w) for w in what]
        if all(f.is_file() for f in files):
            patches = edit.read_mails(files, render.say)
        elif len(what) == 1 and not files[0].exists():
            patches = edit.read_range(session, what[0])
        else:
            missing = next(f for f in files if not f.is_file())
            raise HexpatchError(f"{missing}: no such file", "name patch files, or one range A..B")
        if name and len(patches) != 1:
            raise UsageError(f"--name goes with one patch, {len(patches)} were given")
        edited = edit.add_patches(session, patches, [name or ""] * len(patches))
    _edited(edited)


@cli.command()
@click.argument("name")
@click.option("-m", "--message", metavar="TEXT", required=True, help="Title and message.")
@click.option("-A", "--all", "everything", is_flag=True, help="Take untracked files too.")
@click.pass_context
def new(ctx: click.Context, name: str, message: str, everything: bool) -> None:
    """Make the checkout's uncommitted changes a new patch on top.

    Takes what is staged; if nothing is, all changes to tracked files. Changes: series.yaml,
    patches/, src/ and the checkout.
    """
    from hexpatch import edit

    with _session(ctx) as session:
        edited = edit.new(session, name, message, everything)
    _edited(edited)


@cli.command()
@click.argument("names", nargs=-1, required=True)
@click.pass_context
def drop(ctx: click.Context, names: Sequence[str]) -> None:
    """Take patches out of the series.

    Changes: series.yaml, patches/, src/ and the checkout. If another patch builds on one of
    them, it is named and nothing is changed.
    """
    from hexpatch import edit

    with _session(ctx) as session:
        edited = edit.drop(session, names)
    _edited(edited)


def _edited(edited: Any) -> None:
    from hexpatch import render

    for note in edited.notes:
        render.say(note)
    shown = [(n, f, ()) for n, f in edited.fate.items() if f != "unchanged"]
    render.fates(shown)
    if not shown and not edited.notes:
        render.out("nothing changed")
    render.out(f"tip   {edited.stack.tip}")
    render.out(f"tree  {edited.stack.tree}")


@cli.command()
@_json
@click.pass_context
def series(ctx: click.Context, as_json: bool) -> None:
    """List the patches in order, with what each one touches.

    Changes nothing and needs no network.
    """
    from hexpatch import render, report

    with _session(ctx, write=False) as session:
        listing = report.listing(session.series)
    if as_json:
        render.as_json(listing)
        return
    rows = []
    for n, patch in enumerate(listing["patches"], 1):
        counts = f"+{patch['added']} -{patch['removed']}"
        rows.append([str(n), patch["name"], patch["state"], counts, patch["title"]])
    render.table(rows)
    for patch in listing["patches"]:
        for line in patch["shapes"]:
            render.say(f"{patch['name']}: {line}")


@cli.command()
@_json
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Say where the stack is: base, tip, whether files and commits agree, what waits.

    Changes nothing.
    """
    from hexpatch import render, report

    with _session(ctx, write=False) as session:
        state = report.status(session)
    if as_json:
        render.as_json(state)
        return
    render.out(f"base    {state['base']['name']}  tree {state['base']['tree']}")
    if state["tip"]:
        render.out(f"tip     {state['tip']}")
        render.out(f"tree    {state['tree']}")
    render.out(f"state   {state['sync']}")
    if state["hint"]:
        render.say(f"hint: {state['hint']}")
    render.table([[f"  {p['name']}", p["state"], p["title"]] for p in state["patches"]])


@cli.command()
@_revision("Ask for another upstream commit.")
@_json
@click.pass_context
def check(ctx: click.Context, onto: str | None, as_json: bool) -> None:
    """Say of every patch whether it fits: on its base, or on another commit.

    ok, offset, three-way, partly (upstream has some of it), landed, conflict, twice (its lines
    are there already), blocked (builds on one that does not fit). Writes nothing. Exit status 1
    if a patch does not fit.
    """
    from hexpatch import render, report

    with _session(ctx, write=False) as session:
        name, rows = report.check(session, onto)
    bad = [r for r in rows if not r.fits and r.status not in ("landed", "hold")]
    if as_json:
        render.as_json({"onto": name, "patches": [r.as_json() for r in rows]})
    else:
        render.out(f"on {name}:")
        render.fates((r.name, r.status, r.detail) for r in rows)
        fit = sum(r.fits for r in rows)
        render.out(f"{fit} of {len(rows)} patches fit" + (f", {len(bad)} do not" if bad else ""))
    if bad:
        ctx.exit(1)


# -- the stack ------------------------------------------------------------------------------


@cli.command()
@_revision("Put the stack on REV for once; the series stays pinned where it is.")
@click.option("--into", metavar="PATH", help="Check out into PATH instead of .hexpatch/llama.cpp.")
@click.option(
    "-f", "--force", is_flag=True, help="Drop what is in the checkout but not in patches/."
)
@click.option("--locked", is_flag=True, help="Fail if series.lock would change (for CI).")
@_json
@click.pass_context
def apply(
    ctx: click.Context,
    onto: str | None,
    into: str | None,
    force: bool,
    locked: bool,
    as_json: bool,
) -> None:
    """Put the stack on its base: one commit per patch, checked out in .hexpatch/llama.cpp.

    The same files give the same commit ids everywhere. Changes: the checkout and series.lock.
    If a patch does not apply, it is named and nothing is changed.
    """
    from hexpatch import apply as applying
    from hexpatch import render

    with _session(ctx) as session:
        result = applying.run(
            session, onto, Path(into) if into else None, force=force, locked=locked
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
    render.out(f"applied {len(made.patches)} patches on {result.base_name}")
    render.out(f"tip       {made.tip}")
    render.out(f"tree      {made.tree}")
    render.out(f"checkout  {os.fspath(result.where)}")


@cli.command()
@click.pass_context
def refresh(ctx: click.Context) -> None:
    """Write the checkout's commits back to series.yaml, patches/ and src/.

    The inverse of apply: `git commit --fixup`, `git rebase -i`, new and dropped commits are all
    taken over. A patch that says the same as before keeps its bytes. Merges are refused.
    """
    from hexpatch import edit

    with _session(ctx) as session:
        edited = edit.take_commits(session)
    _edited(edited)


@cli.command()
@_revision("Upstream commit to move to: a tag, branch, id, or snapshot.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would become of every patch.")
@click.option("-k", "--keep-going", is_flag=True, help="Leave out what conflicts (state: hold).")
@click.option("--continue", "how", flag_value="continue", help="Go on after a resolved conflict.")
@click.option("--skip", "how", flag_value="skip", help="Drop the conflicting patch and go on.")
@click.option("--abort", "how", flag_value="abort", help="Back to the state before.")
@_json
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
    git is fine too. Patches that upstream has taken are marked `landed:` and reported.
    """
    from hexpatch import rebase as rebasing
    from hexpatch import render

    if (onto is None) == (how is None):
        raise UsageError("give either --onto REV, or one of --continue, --skip, --abort")
    if dry_run and how:
        raise UsageError("--dry-run goes with --onto")
    with _session(ctx, write=not dry_run) as session:
        if how == "abort":
            rebasing.abort(session)
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
            found = session.upstream.resolve(onto)
            outcome = rebasing.start(session, found, keep_going=keep_going)
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
    return [r for r in outcome.rows if not r.fits and r.status not in ("landed", "hold", "skipped")]


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
        render.fates((r.name, outcome.fate.get(r.name, r.status), _said(r)) for r in outcome.rows)
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


def _said(row: Any) -> Sequence[str]:
    if row.status in ("ok", "offset"):
        return ()
    return [f"{row.status}: {row.detail[0]}", *row.detail[1:]] if row.detail else [row.status]


@cli.command()
@click.argument("operation", required=False)
@click.pass_context
def undo(ctx: click.Context, operation: str | None) -> None:
    """Restore the state before an operation (the last one, or OPERATION from `hexpatch log`).

    Run it again to go further back. It is an operation itself: undo it by its id. Changes the
    files, the branches the operation moved, and the checkout.
    """
    from hexpatch import render, undoing

    with _session(ctx) as session:
        op = undoing.undo(session, operation)
    render.out(f"undid {op.oid[:12]}  {op.command}")


@cli.command()
@click.option("-n", "--max-count", "limit", type=int, default=20, help="How many [20].")
@_json
@click.pass_context
def log(ctx: click.Context, limit: int, as_json: bool) -> None:
    """List the operations, newest first.

    Each is a commit on refs/hexpatch/ops that holds the files before and after.
    """
    from hexpatch import render, undoing

    with _session(ctx, write=False) as session:
        entries = undoing.entries(session, limit)
    if as_json:
        render.as_json(entries)
        return
    render.table([[e["id"][:12], e["when"], e["note"], e["command"]] for e in entries])
    if not entries:
        render.say("no operations yet")


# -- proof ----------------------------------------------------------------------------------

_target = click.option("--target", default="cpu", metavar="NAME", help="What to build for [cpu].")


@cli.command()
@_target
@click.option("--base", "base_only", is_flag=True, help="Build the base instead of the stack.")
@click.pass_context
def build(ctx: click.Context, target: str, base_only: bool) -> None:
    """Build ggml, its CPU backend and test-backend-ops of the stack's tree.

    Each tree has its own build folder in .hexpatch/build; ccache is shared. The log is a file,
    its last lines are shown on failure.
    """
    from hexpatch import prove, render

    with _session(ctx) as session:
        built = prove.build(session, target, base_only=base_only)
    render.out(f"built  {built.bin}  ({built.seconds:.0f} s)")
    render.out(f"log    {built.log}")


@cli.command()
@_target
@click.option("-o", "ops", multiple=True, metavar="OP", help="Ops, as for test-backend-ops.")
@click.option("-p", "params", metavar="REGEX", help="Parameters, as for test-backend-ops.")
@click.option("--base", "base_only", is_flag=True, help="Judge the base alone.")
@click.option("-j", "--jobs", type=int, help="Parallel cases.")
@click.option("--timeout", type=float, default=900.0, help="Seconds per op [900].")
@click.option("--fresh", is_flag=True, help="Run again although the result is known.")
@_json
@click.pass_context
def validate(
    ctx: click.Context,
    target: str,
    ops: Sequence[str],
    params: str | None,
    base_only: bool,
    jobs: int | None,
    timeout: float,
    fresh: bool,
    as_json: bool,
) -> None:
    """Run upstream's test-backend-ops on base and stack and compare, case by case.

    Target cpu loads the stack's CPU backend into the unpatched build as a second device, so a
    wrong result can't be compared with itself. Results are kept with the trees they belong to.
    Exit status 1 if a case broke or got lost, or nothing could be judged.
    """
    from hexpatch import prove, render

    with _session(ctx) as session:
        report, page = prove.validate(
            session,
            target,
            ops=ops,
            params=params,
            base_only=base_only,
            jobs=jobs,
            timeout=timeout,
            fresh=fresh,
        )
    if as_json:
        click.echo(prove.to_json(report))
    else:
        for line in prove.lines(report):
            render.out(line)
        render.out(f"evidence  {page}")
    if not report.green:
        ctx.exit(1)


@cli.command()
@click.argument("groups", nargs=-1)
@_revision("Start the branches from REV instead of the base.")
@click.option("--out", "folder", metavar="DIR", help="Where mails and facts go.")
@click.option("-f", "--force", is_flag=True, help="Overwrite branches that hexpatch did not make.")
@_json
@click.pass_context
def export(
    ctx: click.Context,
    groups: Sequence[str],
    onto: str | None,
    folder: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Cut one local branch per pull-request group, with mails, facts and a checklist beside it.

    Nothing is pushed and no prose is written: that is a person's part. Changes: the branches
    and the output folder. If a group does not stand alone, the patch it lacks is named and
    nothing is changed.
    """
    from hexpatch import export as exporting
    from hexpatch import render

    with _session(ctx) as session:
        made = exporting.run(
            session, groups, onto=onto, out=Path(folder) if folder else None, force=force
        )
    if as_json:
        render.as_json({"groups": [exporting.as_json(m) for m in made]})
        return
    for group in made:
        for warning in group.warnings:
            render.say(f"warning: {group.name}: {warning}")
        state = f"v{group.version}" if group.changed else f"v{group.version}, unchanged"
        render.out(f"{group.name}  ({state})")
        render.out(f"  branch  {group.branch}  {group.tip}")
        render.out(f"  folder  {group.folder}")
        render.out(f"  push    {group.push}")
    if not made:
        render.say("no groups in series.yaml: nothing to export")


@cli.command()
@click.option("--since", metavar="REV", help="A commit of this repository, or an operation.")
@click.pass_context
def changelog(ctx: click.Context, since: str | None) -> None:
    """What changed in the series, patch by patch: new, changed, dropped, landed.

    A plain move to another base changes nothing here. Facts only.
    """
    from hexpatch import changelog as changes
    from hexpatch import render

    with _session(ctx, write=False) as session:
        text = changes.text(session, since)
    render.file("", text)


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script: eval "$(hexpatch completion bash)"."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "hexpatch", "_HEXPATCH_COMPLETE").source())
