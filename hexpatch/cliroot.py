"""What all commands share: the group they are in, how they open a session, common options.

Each of them reads arguments, opens a session, calls one function and renders what it gives.

Heavy modules are imported inside the commands, so that `--help` and completion stay quick.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hexpatch import __version__, edge, render
from hexpatch.errors import HexpatchError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from hexpatch.session import Session

# The commands in the order of a day's work, and where they are: a module is loaded for the command
# that is asked for, all of them only for `--help`.
_COMMANDS = {
    "init": "cliseries",
    "import": "cliseries",
    "new": "cliseries",
    "drop": "cliseries",
    "series": "cliseries",
    "status": "cliseries",
    "check": "cliseries",
    "apply": "clistack",
    "refresh": "clistack",
    "rebase": "clistack",
    "undo": "clistack",
    "log": "clistack",
    "build": "cliproof",
    "validate": "cliproof",
    "bench": "cliproof",
    "inspect": "cliproof",
    "export": "cliproof",
    "changelog": "cliproof",
    "upstream": "cliproof",
    "completion": "cliproof",
}


class _Cli(click.Group):
    """The commands by name: a module is loaded for the one that is asked for. `edge` ends it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS:
            import_module(f"hexpatch.{_COMMANDS[cmd_name]}")
        return super().get_command(ctx, cmd_name)

    def main(self, *args: Any, **extra: Any) -> Any:
        extra["standalone_mode"] = False

        def command() -> int:
            try:
                code = super(_Cli, self).main(*args, **extra)
            except click.exceptions.Abort:
                raise KeyboardInterrupt from None
            except click.ClickException as error:
                error.show()
                return error.exit_code
            return code if isinstance(code, int) else 0

        sys.exit(edge.ending(command))


def opened(ctx: click.Context, *, write: bool = True) -> AbstractContextManager[Session]:
    from hexpatch import session

    options = ctx.find_root().params
    start = edge.start_folder(options["directory"])
    said = edge.command_line()
    return session.opened(start, said, render.say, offline=options["offline"], write=write)


def path_of(ctx: click.Context, typed: str) -> Path:
    """A path that somebody typed. With -C it starts in that folder, as it does for git."""
    return Path(ctx.find_root().params["directory"] or "", typed)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


def complete(kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Shell completion of `patches`, `groups`, `targets` or upstream commits (`onto`)."""

    def names(ctx: click.Context, param: click.Parameter, start: str) -> list[str]:
        from hexpatch import catalogue, series, workspace

        if kind == "targets":
            from hexpatch.sim import devices

            known = ["cpu", *(f"sim:{name}" for name in devices.load())]
        elif kind == "onto":
            known = ["master", *(entry.name for entry in catalogue.entries())]
        else:
            folder = Path(ctx.find_root().params.get("directory") or ".").resolve()
            try:
                found = series.load(workspace.find(folder).root)
            except (HexpatchError, OSError):
                return []
            known = [x.name for x in (found.patches if kind == "patches" else found.groups)]
        return [name for name in known if name.startswith(start)]

    return names


def revision(help_text: str) -> Callable[[Any], Any]:
    return click.option("--onto", metavar="REV", shell_complete=complete("onto"), help=help_text)


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
    render.quiet = quiet


def show_edited(edited: Any) -> None:
    """Render what a change of the series did."""
    for note in edited.notes:
        render.say(note)
    shown = [(n, f, ()) for n, f in edited.fate.items() if f != "unchanged"]
    render.fates(shown)
    if not shown and not edited.notes:
        render.out("nothing changed")
    render.out(f"tip   {edited.stack.tip}")
    render.out(f"tree  {edited.stack.tree}")
