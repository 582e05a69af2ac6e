"""The command line: `cli`, which loads its commands when they are asked for."""

from hexpatch.cliroot import cli

__all__ = ["cli"]
