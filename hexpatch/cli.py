"""The command line: `cli` with all commands registered."""

from hexpatch import cliproof, cliseries, clistack
from hexpatch.cliroot import cli

__all__ = ["cli", "cliproof", "cliseries", "clistack"]
