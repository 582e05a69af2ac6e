"""Commands that make and list the series: init, import, new, drop, series, status, check."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from hexpatch import edge
from hexpatch.cliroot import (
    cli,
    complete,
    json_option,
    opened,
    path_of,
    revision,
    show_edited,
)
from hexpatch.errors import HexpatchError, UsageError


@cli.command()
@click.option("--repo", metavar="PATH", help="Your own clone of llama.cpp; it is only read.")
@click.option("--url", metavar="URL", help="Upstream's repository.")
@click.option("--branch", metavar="NAME", default="master", help="Upstream's branch [master].")
@click.option("--base", metavar="REV", default="master", help="Commit to start from [master].")
@click.option(
    "--src",
    metavar="DIR=PATH",
    multiple=True,
    help="New files below PATH upstream live in src/DIR here [the Hexagon kernels in src/htp].",
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

    Changes: series.yaml, patches/ and src/ in this folder, and .gitattributes where there is none:
    the files are bytes, whatever core.autocrlf says. Refuses where a series is already.
    """
    from hexpatch import render, seriesedit, session, starting, workspace
    from hexpatch.series import DEFAULT_URL

    options = ctx.find_root().params
    root = edge.start_folder(options["directory"])
    if (root / workspace.SERIES).exists():
        raise HexpatchError(
            f"{root} has a {workspace.SERIES} already", "`hexpatch status` says where it stands"
        )
    mapping = {}
    for pair in src:
        name, sep, target = pair.partition("=")
        if not sep or not name or not target:
            raise UsageError(f"--src {pair}: not of the form DIR=PATH")
        mapping[name] = target
    template = partial(seriesedit.template, url=url or DEFAULT_URL, branch=branch, repo=repo)
    root.mkdir(parents=True, exist_ok=True)
    ws = workspace.Workspace(root)
    first = not ws.state.exists()
    with ws.locked(edge.command_line()):
        run = session.Session(ws, edge.command_line(), render.say, options["offline"])
        try:
            found = starting.init(run, template, base, mapping)
        except HexpatchError:
            if first and not ws.journal.exists():
                from shutil import rmtree

                rmtree(ws.state)
            raise
        finally:
            run.close()
    render.out(f"base  {found.name}  tree {found.tree}")
    render.say("next: `hexpatch import PATCH...` or `hexpatch apply`, edit, `hexpatch new NAME`")


@cli.command(name="import")
@click.argument("what", nargs=-1, required=True)
@click.option("--name", metavar="NAME", help="Name of the patch (one patch only).")
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="OLD=NEW",
    help="Mails made for another layout: where a folder or file lies here. src/=ggml/src/",
)
@click.pass_context
def import_(ctx: click.Context, what: Sequence[str], name: str | None, maps: Sequence[str]) -> None:
    """Add patches from mails, a branch or a range A..B.

    Changes: series.yaml, patches/, src/ and the checkout; all of it or nothing. A patch that
    does not apply is refused by name. Cover letters are skipped and named. With --map, the first
    that fits a path rewrites it, and a path that none fits is refused.
    """
    from hexpatch import adding, incoming, render

    rules = incoming.path_rules(maps)
    with opened(ctx) as session:
        files = [path_of(ctx, w) for w in what]
        if all(f.is_file() for f in files):
            patches = incoming.read_mails(files, render.say, rules)
        elif rules and not _like_a_file(what[0]):
            raise UsageError("--map is for mails", "`git format-patch` makes some of a range")
        elif len(what) == 1 and not files[0].exists() and not _like_a_file(what[0]):
            patches = incoming.read_range(session, what[0])
        else:
            raise _no_file(next(f for f in files if not f.is_file()))
        if name and len(patches) != 1:
            raise UsageError(f"--name goes with one patch, {len(patches)} were given")
        edited = adding.add_patches(session, patches, [name or ""] * len(patches))
    show_edited(edited)


def _no_file(path: Path) -> HexpatchError:
    if path.is_dir():
        return HexpatchError(f"{path} is a directory", f"name the files: {path}/*.patch")
    return HexpatchError(f"{path}: no such file", "name patch files, one branch, or one range A..B")


def _like_a_file(name: str) -> bool:
    return name.endswith((".patch", ".diff", ".mbox", ".eml", ".mail")) or name[:1] in "-./"


@cli.command()
@click.argument("name")
@click.option("-m", "--message", metavar="TEXT", required=True, help="Title and message.")
@click.option("-A", "--all", "everything", is_flag=True, help="Take untracked files too.")
@click.option("--allow-empty", "empty", is_flag=True, help="Make a patch without changes.")
@click.pass_context
def new(ctx: click.Context, name: str, message: str, everything: bool, empty: bool) -> None:
    """Make the checkout's changes a new patch on top.

    Takes what is staged; if nothing is, all changes to tracked files. Changes: series.yaml,
    patches/, src/ and the checkout.
    """
    from hexpatch import newpatch

    with opened(ctx) as session:
        edited = newpatch.new(session, name, message, everything, empty)
    show_edited(edited)


@cli.command()
@click.argument("names", nargs=-1, required=True, shell_complete=complete("patches"))
@click.pass_context
def drop(ctx: click.Context, names: Sequence[str]) -> None:
    """Take patches out of the series.

    Changes: series.yaml, patches/, src/ and the checkout. If another patch builds on one of
    them, it is named and nothing is changed.
    """
    from hexpatch import dropping

    with opened(ctx) as session:
        edited = dropping.drop(session, names)
    show_edited(edited)


@cli.command()
@json_option
@click.pass_context
def series(ctx: click.Context, as_json: bool) -> None:
    """List the patches and what each one touches.

    Changes nothing and needs no network.
    """
    from hexpatch import render, report

    with opened(ctx, write=False) as session:
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
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Say where the stack is and what waits.

    Base, tip, and whether files, commits and checkout agree.

    Changes nothing.
    """
    from hexpatch import render, report

    with opened(ctx, write=False) as session:
        state = report.status(session)
    if as_json:
        render.as_json(state)
        return
    render.out(f"base      {state['base']['name']}  tree {state['base']['tree']}")
    if state["tip"]:
        render.out(f"tip       {state['tip']}")
        render.out(f"tree      {state['tree']}")
    render.out(f"state     {state['sync']}")
    if state["checkout"]:
        render.out(f"checkout  {state['checkout']}")
    if state["hint"]:
        render.say(f"hint: {state['hint']}")
    render.table([[f"  {p['name']}", p["state"], p["title"]] for p in state["patches"]])


@cli.command()
@revision("Ask for another upstream commit.")
@click.option("--fresh", is_flag=True, help="Place every hunk again, whatever series.lock says.")
@json_option
@click.pass_context
def check(ctx: click.Context, onto: str | None, fresh: bool, as_json: bool) -> None:
    """Say of every patch whether it fits.

    On its base, or on another commit.

    It fits: ok, offset, three-way, resolved (by a remembered resolution), partly (upstream has some
    of it), revived (was out, fits again). It is out: landed, hold. It does not fit: conflict, twice
    (its lines are there already), blocked (builds on one that does not fit). Changes nothing. Exit
    status 1 if a patch does not fit.
    """
    from hexpatch import quick

    ctx.exit(quick.check(opened(ctx, write=False), onto, fresh=fresh, as_json=as_json))
