"""Runs programs: one place for environment, logs, time-outs and progress."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from hexpatch.errors import HexpatchError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


class Finished(NamedTuple):
    """A program that ended: exit status (negative = signal, as in subprocess) and its output."""

    status: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False


class Stopped(Exception):
    """A program was ended, or not started, because the whole ends."""


COMPILE_SECONDS = 3600.0  # of one file: with a limit a program is ended where the whole ends
END_SECONDS = 10.0  # for a build that is told to end

_live: set[subprocess.Popen[bytes]] = set()
_ending = False


@contextlib.contextmanager
def pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that run programs with a time limit; an error or Ctrl-C ends all, and none starts."""
    from concurrent.futures import ThreadPoolExecutor

    global _ending  # noqa: PLW0603
    threads = ThreadPoolExecutor(max(1, workers))
    try:
        yield threads
    except BaseException:
        _ending = True
        for child in list(_live):
            kill_group(child)
        raise
    finally:
        threads.shutdown(cancel_futures=True)
        _ending = False


def missing(error: FileNotFoundError, argv: Sequence[str | os.PathLike[str]]) -> HexpatchError:
    """What to say of a program that could not be started."""
    name = os.fspath(argv[0])
    if error.filename not in (None, name):
        return HexpatchError(f"{error.filename} went away", "run again from a folder that is there")
    return HexpatchError(
        f"{name} is needed: it is not installed, or not on your PATH",
        f"install {name} and run again",
    )


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout: float | None = None,
) -> Finished:
    """Run to the end and capture both streams. A missing program is a HexpatchError."""
    if timeout is not None and _ending:
        raise Stopped
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
    except FileNotFoundError as error:
        raise missing(error, argv) from None
    if timeout is not None:
        _live.add(child)
        if _ending:
            kill_group(child)
    try:
        out, err = child.communicate(stdin, timeout=timeout)
        if timeout is not None and _ending:
            raise Stopped
    except subprocess.TimeoutExpired:
        kill_group(child)
        out, err = child.communicate()
        return Finished(child.returncode, out, err, timed_out=True)
    except BaseException:
        if timeout is not None:
            kill_group(child)
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
        try:
            started = subprocess.Popen(
                argv, env=env, stdin=source, stdout=subprocess.PIPE, stderr=errors
            )
        except FileNotFoundError as error:
            raise missing(error, argv) from None
        with started as child:
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
    """Run with both streams appended to `log`, each line also given to `on_line`.

    Where this is ended, so is all that the program started.
    """
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
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise missing(error, argv) from None
        assert child.stdout is not None
        try:
            for line in child.stdout:
                sink.write(line)
                if on_line is not None:
                    on_line(line.decode("utf-8", "replace").rstrip("\n"))
            return child.wait()
        except BaseException:
            _end_group(child)
            raise


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """End a child's session. It is asked first: ninja's compilers are in groups only it knows."""
    try:
        os.killpg(child.pid, signal.SIGTERM)
        child.communicate(timeout=END_SECONDS)  # the pipe stays open as long as one of them lives
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass
    finally:
        kill_group(child)
        child.wait()


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a child started in its own session, with all it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def tail(log: Path, lines: int = 20) -> str:
    """The last lines of a log, for an error message."""
    text = log.read_bytes()[-64 * 1024 :].decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-lines:])
