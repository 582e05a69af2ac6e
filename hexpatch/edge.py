"""What every command has at its edge: what it is called, where it starts, and how it ends."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

from hexpatch import render
from hexpatch.errors import HexpatchError

# troubles of the disk or of a path that somebody named, not of this program
_OUTSIDE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.EIO,
}


def command_line() -> str:
    """What a person typed."""
    import shlex

    return "hexpatch " + shlex.join(sys.argv[1:]).replace("\n", "\\n")


def start_folder(directory: str | None = None) -> Path:
    """Where a command starts: -C, or the current folder, which may be gone."""
    try:
        return Path.cwd().joinpath(directory or ".").resolve()
    except FileNotFoundError:
        raise HexpatchError(
            "the current folder is gone", "`cd` to a folder that is there, and run again"
        ) from None


def ending(command: Callable[[], int]) -> int:
    """The exit status of a command; its errors become text here and nowhere else."""
    try:
        status = command()
    except KeyboardInterrupt:
        render.warn("interrupted: nothing was changed after the last finished step")
        return 130
    except HexpatchError as error:
        render.fail(error)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno not in _OUTSIDE:
            raise
        what = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
        render.fail(HexpatchError(what, "make room or give access there, and run again"))
        return 1
    return _flushed(status)


def _flushed(status: int) -> int:
    """The answer that could not be written is a failure, though the work is done."""
    if sys.stdout is None:
        return status
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            return 141
        render.warn(f"error: the answer could not be written: {error.strerror}")
        return 1
    return status
