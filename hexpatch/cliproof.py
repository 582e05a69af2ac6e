"""Commands that use the stack, or show what there is for it.

build, validate, bench, inspect, export, changelog, upstream, completion.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import click

from hexpatch import edge
from hexpatch.cliroot import cli, complete, json_option, opened, path_of, revision
from hexpatch.errors import HexpatchError

_target = click.option(
    "--target",
    default="cpu",
    metavar="NAME",
    shell_complete=complete("targets"),
    help="What to build for: cpu, or sim:NAME [cpu].",
)
_device = click.option(
    "--target",
    required=True,
    metavar="sim:NAME",
    shell_complete=complete("targets"),
    help="The device model.",
)
_checks = click.option(
    "--checks", metavar="LIST", help="Simulator: all, none, or some checks [none]."
)
_env = click.option(
    "--env", multiple=True, metavar="NAME=VALUE", help="Simulator: GGML_HEXAGON_NAME for the runs."
)
_upto = click.option(
    "--upto",
    metavar="PATCH",
    shell_complete=complete("patches"),
    help="The stack only as far as PATCH.",
)
_group = click.option(
    "--group",
    metavar="NAME",
    shell_complete=complete("groups"),
    help="A group's branch alone, as export cuts it from the base.",
)
_ops = click.option("-o", "ops", multiple=True, metavar="OP", help="Ops, as for test-backend-ops.")
_seconds = click.FloatRange(0, 1e6, min_open=True)


def _finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """No range leaves out what is no number."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is no time")
    return value


_params = click.option("-p", "params", metavar="REGEX", help="Parameters, as for test-backend-ops.")


@cli.command()
@_target
@click.option("--base", "base_only", is_flag=True, help="Build the base instead of the stack.")
@_upto
@_group
@_checks
@click.pass_context
def build(
    ctx: click.Context,
    target: str,
    base_only: bool,
    upto: str | None,
    group: str | None,
    checks: str | None,
) -> None:
    """Build ggml and test-backend-ops of the stack.

    Each tree has its own build folder in .hexpatch/build; ccache is shared. The log is a file,
    its last lines are shown on failure. Target sim:NAME builds upstream's Hexagon backend with a
    stand-in for the SDK; after a kernel edit only that kernel is compiled again. Changes nothing
    but the build folders.
    """
    from hexpatch import part, prove, render

    which = part.choice(base_only=base_only, upto=upto, group=group)
    with opened(ctx) as session:
        built = prove.build(session, target, which=which, checks=checks)
    render.out(f"built  {built.bin}  ({built.seconds:.0f} s)")
    render.out(f"log    {built.log}")


@cli.command()
@_target
@_ops
@_params
@click.option("--quick", is_flag=True, help="Every op, of the slow ones only telling cases.")
@click.option("--full", is_flag=True, help="Every case of every op.")
@click.option("--base", "base_only", is_flag=True, help="Judge the base alone.")
@_upto
@_group
@_checks
@_env
@click.option("-j", "--jobs", type=click.IntRange(1), help="Parallel cases, or simulated devices.")
@click.option("--timeout", type=_seconds, callback=_finite, help="Seconds per run of an op [900].")
@click.option("--fresh", is_flag=True, help="Run again although the result is known.")
@json_option
@click.pass_context
def validate(
    ctx: click.Context,
    target: str,
    ops: Sequence[str],
    params: str | None,
    quick: bool,
    full: bool,
    base_only: bool,
    upto: str | None,
    group: str | None,
    checks: str | None,
    env: Sequence[str],
    jobs: int | None,
    timeout: float | None,
    fresh: bool,
    as_json: bool,
) -> None:
    """Compare base and stack by test-backend-ops.

    Case by case, with upstream's own test program.

    Target cpu loads the stack's CPU backend into the unpatched build as a second device, so a
    wrong result can't be compared with itself. Target sim:NAME runs both trees' kernels on a
    device model, with fixed inputs; a case that fails with some inputs only is flaky, an expected
    failure is known. Without -o, the ops of the patches are run. Changes the build folders, and
    .hexpatch/results and .hexpatch/runs, where results are kept with the trees they belong to. Exit
    status 1 if a case broke or got lost, or nothing could be judged.
    """
    from hexpatch import evidence, part, prove, render
    from hexpatch.asked import Asked

    which = part.choice(base_only=base_only, upto=upto, group=group)
    asked = Asked(
        ops=tuple(ops),
        params=params,
        quick=quick,
        full=full,
        jobs=jobs,
        timeout=timeout,
        fresh=fresh,
    )
    with opened(ctx) as session:
        report, page = prove.validate(session, target, asked, which, checks=checks, env=env)
    if as_json:
        render.out(evidence.to_json(report))
    else:
        for line in prove.lines(report):
            render.out(line)
        render.out(f"evidence  {page}")
    if not report.green:
        ctx.exit(1)


@cli.command()
@_device
@_ops
@_params
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="CASE",
    help="A case of your own: m=9216,n=512,k=2560,type_a=q4_0 or OP(name=value,...).",
)
@click.option("--base", "base_only", is_flag=True, help="Measure the base alone.")
@_env
@click.option("-j", "--jobs", type=click.IntRange(1), help="Simulated devices side by side.")
@click.option("--timeout", type=_seconds, callback=_finite, help="Seconds per case [900].")
@json_option
@click.pass_context
def bench(
    ctx: click.Context,
    target: str,
    ops: Sequence[str],
    params: str | None,
    shapes: Sequence[str],
    base_only: bool,
    env: Sequence[str],
    jobs: int | None,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Count what ops do on a simulated device.

    Base against stack: HVX instructions by class, HMX tiles, DMA, memory, dispatches.

    From the counters and the device model's rates follows an estimated time: a range, with the
    sources of the rates. No line of it is measured on a device, and every line says so. Changes
    nothing but the build folders. Exit status 1 if a case did not come to its end.
    """
    from hexpatch import bench as benching
    from hexpatch import prove, render

    wish = benching.Wish(
        ops=tuple(ops),
        params=params,
        shapes=tuple(shapes),
        base_only=base_only,
        jobs=jobs,
        timeout=timeout,
    )
    with opened(ctx) as session:
        rows, device = prove.bench(session, target, wish, env=env)
    if as_json:
        render.as_json(benching.to_json(rows, device))
    else:
        for line in benching.lines(rows, device):
            render.out(line)
    lost = benching.unmeasured(rows)
    for text in lost:
        render.warn(f"not measured: {text}")
    if lost:
        ctx.exit(1)


@cli.command()
@_device
@click.argument("functions", required=False, metavar="[REGEX]")
@click.option("--base", "base_only", is_flag=True, help="Look at the base alone.")
@click.option("--all", "every", is_flag=True, help="Every function, not only what differs.")
@click.option("-j", "--jobs", type=click.IntRange(1), help="Compilers side by side.")
@json_option
@click.pass_context
def inspect(
    ctx: click.Context,
    target: str,
    functions: str | None,
    base_only: bool,
    every: bool,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Show what a Hexagon compiler makes of the kernels.

    Packets, and of inner loops what should not be there: spills, promotions, divides.

    Compiles the DSP sources of base and stack for the real arch of the device model, with a clang
    that has the Hexagon target, and shows functions (matching REGEX) that came out differently. It
    is not Qualcomm's compiler: compare versions with it, don't count cycles. Exit status 1 if a
    file could not be compiled. Changes nothing but the build folders.
    """
    from hexpatch import inspecting, prove, render

    with opened(ctx) as session:
        found = prove.inspect(session, target, functions=functions, base_only=base_only, jobs=jobs)
    lost = inspecting.failed(found)
    for text in lost:
        render.warn(f"not compiled: {text}")
    chosen = inspecting.shown(found, alone=base_only, every=every or functions is not None)
    if as_json:
        render.as_json(inspecting.to_json(chosen))
    elif chosen:
        head, *rows = inspecting.table(chosen, alone=base_only)
        render.table(rows, head=head)
    else:
        what = "no function has spills in loops" if base_only else "no function differs"
        render.say(f"{what} ({len(found)} looked at; --all shows them)")
    if lost:
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
            session, groups, onto=onto, out=path_of(ctx, folder) if folder else None, force=force
        )
    if as_json:
        render.as_json({"groups": [exporting.as_json(m) for m in made]})
        return
    told = Counter(warning for group in made for warning in group.warnings)
    for warning, count in told.items():
        if count > 1:
            render.say(f"warning: {count} groups: {warning}")
    for group in made:
        for warning in group.warnings:
            if told[warning] == 1:
                render.say(f"warning: {group.name}: {warning}")
        state = f"v{group.version}" if group.changed else f"v{group.version}, unchanged"
        render.out(f"{group.name}  ({state})")
        render.out(f"  branch  {group.branch}  {group.tip}")
        render.out(f"  folder  {group.folder}")
        render.out(f"  push    {group.push}")
    if not made:
        none = "no groups in series.yaml: " if not session.series.groups else ""
        render.say(f"{none}nothing to export")


@cli.command()
@click.option(
    "--since", metavar="REV", help="A commit of this repository, an export (v2), an operation."
)
@json_option
@click.pass_context
def changelog(ctx: click.Context, since: str | None, as_json: bool) -> None:
    """Say what changed in the series.

    Patch by patch: new, changed, dropped, landed.

    A plain move to another base is no change of a patch. Without --since: since the last export of
    each group, and what was never exported. Facts only. Changes nothing.
    """
    from hexpatch import changelog as changes
    from hexpatch import render

    with opened(ctx, write=False) as session:
        parts = changes.since(session, since)
    if as_json:
        render.as_json(changes.as_json(parts))
    else:
        render.document(changes.to_markdown(parts))


@cli.command()
@click.pass_context
def upstream(ctx: click.Context) -> None:
    """List the snapshots of llama.cpp in registries.

    Oldest first.

    Any of these names goes with --base and --onto; `*` is installed here, `+` is in the cache.
    Changes nothing and needs no network.
    """
    from hexpatch import render, snapshots, workspace

    try:
        workspace.find(edge.start_folder(ctx.find_root().params["directory"]))
    except HexpatchError:  # to choose a base for `init`, no series is needed
        known = snapshots.known(None, snapshots.Cache(render.say, offline=True))
    else:
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

    from hexpatch import render

    found = get_completion_class(shell)
    assert found is not None
    render.out(found(cli, {}, "hexpatch", "_HEXPATCH_COMPLETE").source())
