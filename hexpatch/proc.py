"""Runs programs: one place for environment, logs, time-outs and progress."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from hexpatch.errors import HexpatchError


class Finished(NamedTuple):
    """A program that ended: exit status (negative = signal, as in subprocess) and its output."""

    status: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False


_live: set[subprocess.Popen[bytes]] = set()


def stop_all() -> None:
    """Kill what other threads have started with a time limit; each of them then returns."""
    for child in list(_live):
        kill_group(child)


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
    if timeout is not None:
        _live.add(child)
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
    finally:
        _live.discard(child)
    return Finished(child.returncode, out, err)


@contextlib.contextmanager
def reading(argv: Sequence[str], env: Mapping[str, str], stdin: bytes) -> Iterator[IO[bytes]]:
    """Output of a program while it runs, for what is too large to be captured whole.

    Its failure is told first, for what went wrong for the reader follows from it.
    """
    import tempfile

    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as errors:
        source.write(stdin)
        source.seek(0)
        with subprocess.Popen(
            argv, env=env, stdin=source, stdout=subprocess.PIPE, stderr=errors
        ) as child:
            assert child.stdout is not None
            failed: Exception | None = None
            try:
                yield child.stdout
            except HexpatchError as error:
                failed = error
            finally:
                if child.stdout.read(1):
                    child.kill()  # whoever reads has had enough
        if child.returncode > 0:
            errors.seek(0)
            text = errors.read().decode("utf-8", "replace").strip()
            raise HexpatchError(f"{argv[0]} failed: {text}")
        if failed is not None:
            raise failed


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
