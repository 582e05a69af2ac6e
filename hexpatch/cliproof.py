"""Commands that use the stack: build, validate, export, changelog; and two small lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from hexpatch.cliroot import cli, complete, json_option, opened, revision

_target = click.option("--target", default="cpu", metavar="NAME", help="What to build for [cpu].")


@cli.command()
@_target
@click.option("--base", "base_only", is_flag=True, help="Build the base instead of the stack.")
@click.pass_context
def build(ctx: click.Context, target: str, base_only: bool) -> None:
    """Build ggml and test-backend-ops of the stack.

    Each tree has its own build folder in .hexpatch/build; ccache is shared. The log is a file,
    its last lines are shown on failure.
    """
    from hexpatch import prove, render

    with opened(ctx) as session:
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
@json_option
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
    """Compare base and stack by test-backend-ops.

    Case by case, with upstream's own test program.

    Target cpu loads the stack's CPU backend into the unpatched build as a second device, so a
    wrong result can't be compared with itself. Results are kept with the trees they belong to.
    Exit status 1 if a case broke or got lost, or nothing could be judged.
    """
    from hexpatch import prove, render

    with opened(ctx) as session:
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
@click.argument("groups", nargs=-1, shell_complete=complete("groups"))
@revision("Start the branches from REV instead of the base.")
@click.option("--out", "folder", metavar="DIR", help="Where mails and facts go.")
@click.option("-f", "--force", is_flag=True, help="Overwrite branches that hexpatch did not make.")
@json_option
@click.pass_context
def export(
    ctx: click.Context,
    groups: Sequence[str],
    onto: str | None,
    folder: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Cut one local branch per pull-request group.

    With mails, facts and a checklist beside it.

    Nothing is pushed and no prose is written: that is a person's part. Changes: the branches
    and the output folder. If a group does not stand alone, the patch it lacks is named and
    nothing is changed.
    """
    from hexpatch import export as exporting
    from hexpatch import render

    with opened(ctx) as session:
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
    """Say what changed in the series.

    Patch by patch: new, changed, dropped, landed.

    A plain move to another base changes nothing here. Facts only.
    """
    from hexpatch import changelog as changes
    from hexpatch import render

    with opened(ctx, write=False) as session:
        text = changes.text(session, since)
    render.file("", text)


@cli.command()
@click.pass_context
def upstream(ctx: click.Context) -> None:
    """List the snapshots of llama.cpp in registries.

    Oldest first.

    Any of these names goes with --base and --onto; `*` is installed here, `+` is in the cache.
    """
    from hexpatch import render

    with opened(ctx, write=False) as session:
        known = session.upstream.known()
    rows = []
    for one in known:
        mark = "*" if one.installed else "+" if one.cached else " "
        rows.append(
            [mark, one.entry.name, str(one.entry.date), str(one.entry.spec), one.entry.tree]
        )
    render.table(rows)


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script.

    Use it as: eval "$(hexpatch completion bash)"
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "hexpatch", "_HEXPATCH_COMPLETE").source())
