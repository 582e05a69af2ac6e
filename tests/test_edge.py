"""How a command ends when somebody ends it, whatever it is doing at that moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import World, hears_ctrl_c

from hexpatch import edge
from hexpatch.errors import HexpatchError

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])


@pytest.fixture(autouse=True)
def _handlers_are_as_python_has_them() -> Iterator[None]:
    """Whatever started the tests: nohup and a script's & make deaf."""
    usual = dict.fromkeys((signal.SIGTERM, signal.SIGHUP), signal.SIG_DFL)
    usual[signal.SIGINT] = signal.default_int_handler
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    assert {number: signal.getsignal(number) for number in usual} == usual
    for number, handler in before.items():
        signal.signal(number, handler)


def plainly(number: int) -> None:
    os.kill(os.getpid(), number)


def while_a_class_is_made(number: int) -> None:
    """A module that is imported late: Python makes a RuntimeError of it there (before 3.12)."""

    class Attribute:
        def __set_name__(self, owner: type, name: str) -> None:
            plainly(number)

    type("Late", (), {"attribute": Attribute()})


def while_git_dies_of_it(number: int) -> None:
    try:
        plainly(number)
    except KeyboardInterrupt:
        raise HexpatchError("git read-tree was killed by a signal") from None


def while_an_object_dies(number: int) -> None:
    """Python prints what is raised there, and goes on."""

    class Dying:
        def __del__(self) -> None:
            plainly(number)

    Dying()
    time.sleep(20)


def while_it_exits(number: int) -> None:
    try:
        plainly(number)
    finally:
        sys.exit(7)


@SIGNALS
@pytest.mark.parametrize(
    "at",
    [plainly, while_a_class_is_made, while_git_dies_of_it, while_an_object_dies, while_it_exits],
)
def test_a_signal_is_an_interrupt_whatever_it_hits(
    at: Callable[[int], None], number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> int:
        at(number)
        return 0

    assert edge.ending(command) == 128 + number
    said = capsys.readouterr()
    assert said.err == "interrupted: nothing was changed after the last finished step\n"
    assert said.out == ""


def test_a_bug_stays_a_bug() -> None:
    def command() -> int:
        raise RuntimeError("of ours")

    with pytest.raises(RuntimeError, match="of ours"):
        edge.ending(command)


@SIGNALS
def test_who_is_deaf_to_it_stays_so(number: signal.Signals) -> None:
    """`nohup`, and a script's `&`."""
    before = signal.signal(number, signal.SIG_IGN)
    try:

        def command() -> int:
            plainly(number)
            return 5

        assert edge.ending(command) == 5
    finally:
        signal.signal(number, before)


@pytest.mark.slow
@SIGNALS
def test_no_traceback_at_any_time(stacked: World, tmp_path: Path, number: signal.Signals) -> None:
    """From our first line to the last: by the signal, or by itself with the signal's status."""

    def hears() -> None:
        hears_ctrl_c()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    run = "import signal; from hexpatch.__main__ import main; print(flush=True); main()"
    codes = set()
    for n in range(40):
        child = subprocess.Popen(
            [sys.executable, "-c", run, "check", "--onto", "v2"],
            cwd=stacked.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=hears,
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.002 + n * 0.008)
        if child.poll() is None:
            os.killpg(child.pid, number)
        _, said = child.communicate()
        codes.add(child.returncode)
        assert child.returncode in (0, 128 + number, -number), said.decode()
        assert b"Traceback" not in said, said.decode()
    assert codes - {0}
