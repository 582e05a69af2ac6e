"""Runs programs: one place for environment, logs, time-outs and progress."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hexpatch.errors import HexpatchError


@dataclass(frozen=True)
class Finished:
    """A program that ended: exit status (negative = signal, as in subprocess) and its output."""

    status: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout: float | None = None,
) -> Finished:
    """Run to the end and capture both streams. A missing program is a HexpatchError."""
    try:
        child = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=timeout is not None,
        )
    except FileNotFoundError:
        raise HexpatchError(
            f"{os.fspath(argv[0])} is not installed", f"install {os.fspath(argv[0])} and run again"
        ) from None
    try:
        out, err = child.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        kill_group(child)
        out, err = child.communicate()
        return Finished(child.returncode, out, err, timed_out=True)
    except BaseException:
        child.kill()
        child.wait()
        raise
    return Finished(child.returncode, out, err)


def run_logged(
    argv: Sequence[str | os.PathLike[str]],
    log: Path,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> int:
    """Run with both streams appended to `log`, each line also given to `on_line`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        sink.write(("$ " + " ".join(os.fspath(a) for a in argv) + "\n").encode())
        sink.flush()
        try:
            child = subprocess.Popen(
                argv,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except FileNotFoundError:
            raise HexpatchError(
                f"{os.fspath(argv[0])} is not installed",
                f"install {os.fspath(argv[0])} and run again",
            ) from None
        assert child.stdout is not None
        try:
            for line in child.stdout:
                sink.write(line)
                if on_line is not None:
                    on_line(line.decode("utf-8", "replace").rstrip("\n"))
            return child.wait()
        except BaseException:
            child.terminate()
            child.wait()
            raise


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a child started in its own session, with all it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def tail(log: Path, lines: int = 20) -> str:
    """The last lines of a log, for an error message."""
    text = log.read_bytes()[-64 * 1024 :].decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-lines:])
