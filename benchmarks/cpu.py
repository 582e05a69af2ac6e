"""Time whole commands: CPU (user + system, with children), wall and peak memory, interleaved."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """One run: seconds and MB (peak of the largest single process)."""

    cpu: float
    wall: float
    peak: float
    status: int


def run(argv: Sequence[str], cwd: Path, env: dict[str, str] | None = None) -> Cost:
    """Run a command to its end and account for it with wait4."""
    start = time.monotonic()
    with (
        Path(os.devnull).open("w") as null,
        subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=null, stderr=null
        ) as child,
    ):
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, child.returncode)


@dataclass(frozen=True)
class Contender:
    """A command and what has to be done before each run."""

    name: str
    argv: Sequence[str]
    cwd: Path
    prepare: Callable[[], None]
    ok: Sequence[int] = (0,)


def compare(title: str, contenders: Sequence[Contender], rounds: int = 5) -> None:
    """Run all in turn, `rounds` times after one warm-up; print medians and ratios to the first."""
    costs: dict[str, list[Cost]] = {c.name: [] for c in contenders}
    for number in range(rounds + 1):
        for one in contenders:
            one.prepare()
            cost = run(one.argv, one.cwd, ENV)
            if cost.status not in one.ok:
                sys.exit(f"{one.name} ended with status {cost.status}: {' '.join(one.argv)}")
            if number:
                costs[one.name].append(cost)
    print(f"\n{title} (median of {rounds})")
    print(f"{'':42} {'CPU s':>8} {'wall s':>8} {'peak MB':>8}   CPU ratio (median of pairs)")
    first = costs[contenders[0].name]
    for one in contenders:
        mine = costs[one.name]
        ratio = statistics.median(a.cpu / b.cpu for a, b in zip(first, mine, strict=True))
        print(
            f"{one.name:42} {statistics.median(c.cpu for c in mine):8.3f} "
            f"{statistics.median(c.wall for c in mine):8.3f} {max(c.peak for c in mine):8.0f}"
            f"   {ratio:5.1f}x"
        )


ENV = {
    **{k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "PYTHONDONT"))},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "bench",
    "GIT_AUTHOR_EMAIL": "bench@example.org",
    "GIT_COMMITTER_NAME": "bench",
    "GIT_COMMITTER_EMAIL": "bench@example.org",
}
