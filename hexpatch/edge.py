"""What every command has at its edge: what it is called, where it starts, and how it ends."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hexpatch import render
from hexpatch.errors import HexpatchError

# troubles of the disk, not of this program; so is what befalls a file that has a name
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EIO}
_ACCESS = {errno.EROFS, errno.EACCES, errno.EPERM}


def command_line() -> str:
    """What a person typed."""
    import shlex

    typed = shlex.join(sys.argv[1:]).replace("\n", "\\n")
    return "hexpatch " + os.fsencode(typed).decode("utf-8", "backslashreplace")


def start_folder(directory: str | None = None) -> Path:
    """Where a command starts: -C, or the current folder, which may be gone."""
    try:
        return Path.cwd().joinpath(directory or ".").resolve()
    except FileNotFoundError:
        raise HexpatchError(
            "the current folder is gone", "`cd` to a folder that is there, and run again"
        ) from None


class _Stop:
    """While a command runs, a request to end stops it as Ctrl-C does: no child goes on alone.

    What comes out of the command need not be the KeyboardInterrupt: Python wraps what is raised
    while a class is made. So `number` tells, not the error. What is raised while an object dies
    is lost: then it is raised again.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _Stop:
        with contextlib.suppress(ValueError):  # not in the main thread
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                # what nohup or a script's & has made deaf stays so
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._before[number] = signal.signal(number, self)
        self._unraisable, sys.unraisablehook = sys.unraisablehook, self._lost
        return self

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self._unraisable
        if signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, before in self._before.items():
            signal.signal(number, before)

    def __call__(self, number: int, frame: object) -> None:
        if number != signal.SIGALRM:
            self.number = number
        raise KeyboardInterrupt

    def _lost(self, what: Any) -> None:
        if self.number is None or not issubclass(what.exc_type, KeyboardInterrupt):
            self._unraisable(what)
        else:
            if signal.SIGALRM not in self._before:
                self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self)
            signal.setitimer(signal.ITIMER_REAL, 0.001)


def ending(command: Callable[[], int]) -> int:
    """The exit status of a command; its errors become text here and nowhere else."""
    with _Stop() as stop:
        try:
            return _flushed(command())
        except BaseException as error:
            if stop.number is None and not isinstance(error, KeyboardInterrupt):
                return _told(error)
    with contextlib.suppress(OSError):  # the terminal may be what went away
        render.warn("interrupted: nothing was changed after the last finished step")
    return 128 + (stop.number or signal.SIGINT)


def _told(error: BaseException) -> int:
    """The exit status of an error that a person can cause. All others are bugs, and go on."""
    if isinstance(error, HexpatchError):
        render.fail(error)
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    if isinstance(error, OSError) and (error.filename or error.errno in _DISK | _ACCESS):
        what = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
        render.fail(HexpatchError(what, f"{_remedy(error)}, and run again"))
        return 1
    raise error


def _remedy(error: OSError) -> str:
    if error.errno in _DISK:
        return "make room there"
    if error.errno in _ACCESS:
        return "give access there, or name another place"
    if error.errno in (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY):
        return "move what is in the way there, or name another place"
    return "look at that path, or name another"


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
