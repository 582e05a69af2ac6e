"""How cost grows: a patch of 50 MB of text and 25 MB of binary data, and long stacks.

Stacks of 500, 1000 and 2000 patches, beside git am.

    python benchmarks/scale.py [--work DIR]

Everything is made here, on a small repository: no network.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cpu import ENV, run

HEXPATCH = [sys.executable, "-m", "hexpatch"]


def sh(*argv: str, cwd: Path) -> None:
    """A command that has to work."""
    done = subprocess.run(argv, cwd=cwd, env=ENV, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{argv}: {done.stderr.decode()}")


def upstream(folder: Path, files: int) -> None:
    """A repository with `files` files of 300 lines, tag base."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sh("git", "init", "-q", "-b", "main", cwd=folder)
    for n in range(files):
        path = folder / f"src/{n // 50:02}/f{n:04}.c"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"int value_{n}_{i} = {i};\n" for i in range(300)))
    (folder / "table.h").write_text("start\n")
    sh("git", "add", "-A", cwd=folder)
    sh("git", "commit", "-q", "-m", "base", cwd=folder)
    sh("git", "tag", "base", cwd=folder)


def series(root: Path, up: Path, patches: list[Path]) -> None:
    """A series of these patch files on `up`."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    sh(*HEXPATCH, "init", "--repo", str(up), "--base", "base", cwd=root)
    if not patches:
        return
    text = (root / "series.yaml").read_text().replace("patches: []", "patches:")
    lines = []
    for path in patches:
        shutil.copy(path, root / "patches" / path.name)
        lines.append(f"  - file: {path.name}\n")
    (root / "series.yaml").write_text(text.replace("patches:\n", "patches:\n" + "".join(lines), 1))


def row(name: str, argv: list[str], cwd: Path) -> None:
    """One timed run."""
    cost = run(argv, cwd, ENV)
    if cost.status:
        sys.exit(f"{argv} ended with status {cost.status}")
    print(f"{name:34} {cost.cpu:8.2f} {cost.wall:8.2f} {cost.peak:8.0f}")


def big(work: Path) -> None:
    """A patch of 900,000 new lines, and one that adds 20 MB of random bytes."""
    up = work / "up"
    upstream(up, 10)
    with (up / "table.h").open("a") as out:
        for i in range(900_000):
            out.write(f'    {{ 0x{i * 2654435761 % 2**32:08x}, 0x{i:08x}, "row {i:07} of it" }},\n')
    sh("git", "commit", "-q", "-am", "table : add the big table", cwd=up)
    (up / "weights.bin").write_bytes(random.Random(1).randbytes(20_000_000))
    sh("git", "add", "weights.bin", cwd=up)
    sh("git", "commit", "-q", "-m", "weights : add", cwd=up)
    shutil.rmtree(work / "big", ignore_errors=True)
    options = ("--full-index", "--binary", "-o", str(work / "big"))
    sh("git", "format-patch", "-q", *options, "base", cwd=up)
    sh("git", "checkout", "-q", "-b", "next", "base", cwd=up)
    (up / "src/00/f0001.c").write_text("int moved;\n")
    sh("git", "commit", "-q", "-am", "src : move on", cwd=up)
    sh("git", "checkout", "-q", "--detach", "base", cwd=up)
    patches = sorted((work / "big").iterdir())
    size = " + ".join(f"{p.stat().st_size / 1e6:.0f}" for p in patches)
    root = work / "series-big"
    series(root, up, patches)
    print(f"\npatches of {size} MB{'':15} {'CPU s':>8} {'wall s':>8} {'peak MB':>8}")
    row("git am", ["git", "am", "-q", *map(str, patches)], up)
    for command in (["series"], ["check"], ["apply"]):
        row("hexpatch " + command[0], [*HEXPATCH, *command], root)
    checkout = root / ".hexpatch" / "llama.cpp"
    sh("git", "commit", "-q", "--amend", "-m", "weights : add them", cwd=checkout)
    row("hexpatch refresh", [*HEXPATCH, "refresh"], root)
    row("hexpatch rebase", [*HEXPATCH, "rebase", "--onto", "next"], root)
    series(root, up, [])
    row("hexpatch import", [*HEXPATCH, "import", *map(str, patches)], root)


def many(work: Path, count: int) -> None:
    """`count` one-hunk patches over 200 files."""
    up = work / f"up{count}"
    upstream(up, 200)
    for n in range(count):
        path = up / f"src/{n % 200 // 50:02}/f{n % 200:04}.c"
        line = 10 + n // 200 * 20
        old = f"int value_{n % 200}_{line} = {line};\n"
        path.write_text(path.read_text().replace(old, old + f"int extra_{n} = {n};\n"))
        sh("git", "commit", "-q", "-am", f"src : extra {n}", cwd=up)
    mails = work / f"mails{count}"
    shutil.rmtree(mails, ignore_errors=True)
    sh("git", "format-patch", "-q", "--full-index", "-o", str(mails), "base", cwd=up)
    sh("git", "checkout", "-q", "--detach", "base", cwd=up)
    root = work / f"series{count}"
    patches = sorted(mails.iterdir())
    series(root, up, patches)
    print(f"\n{count} patches{'':22} {'CPU s':>8} {'wall s':>8} {'peak MB':>8}")
    row("git am", ["git", "am", "-q", *map(str, patches)], up)
    for command in (["series"], ["check"], ["apply"]):
        row("hexpatch " + command[0], [*HEXPATCH, *command], root)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path)
    args = parser.parse_args()
    work = args.work or Path(tempfile.mkdtemp(prefix="hexpatch-scale-"))
    big(work)
    for count in (500, 1000, 2000):
        many(work, count)


if __name__ == "__main__":
    main()
