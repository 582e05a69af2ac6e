"""check, apply and rebase of a 100-patch stack on real llama.cpp, beside git am and git rebase.

    python benchmarks/stack.py [--patches N] [--rounds N] [--work DIR]

The stack is cut from the difference of two real snapshots (base and CUT); it is rebased onto a
third (ONTO). Patches that conflict there are left out, for git rebase would stop at them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cpu import ENV, Contender, compare

BASE, CUT, ONTO = "npm:node-llama-cpp@3.19.1", "npm:node-llama-cpp@3.20.0", "e3546c794"
HEXPATCH = [sys.executable, "-m", "hexpatch"]


def sh(*argv: str, cwd: Path, stdin: bytes | None = None) -> bytes:
    """Output of a command that has to work."""
    done = subprocess.run(argv, cwd=cwd, env=ENV, input=stdin, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{argv}: {done.stderr.decode()}")
    return done.stdout


def cut(store: Path, base: str, target: str, count: int) -> list[bytes]:
    """`count` patches with a few hunks each, from the text changes between two commits."""
    from hexpatch.patchfile import PatchFile, parse_diff, render_patch

    diff = sh(
        "git", f"--git-dir={store}", "diff-tree", "-r", "-p", "--full-index", "--no-renames",
        "--diff-filter=M", base, target, "--", "ggml", "src", "common", "tools", "tests",
        cwd=store,
    )  # fmt: skip
    pieces: list[bytes] = []
    for file in parse_diff(diff, "cut"):
        if file.binary_missing or not file.hunks:
            continue
        section = diff[file.start : file.end]
        head, *hunks = section.split(b"\n@@ ")
        for hunk in hunks:
            body = b"@@ " + hunk
            pieces.append(
                head + b"\n" + body if body.endswith(b"\n") else head + b"\n" + body + b"\n"
            )
    per = max(1, min(11, len(pieces) // count))  # as many hunks as real commits have
    patches: list[bytes] = []
    for n in range(min(count, len(pieces) // per)):
        mine = pieces[n * per : (n + 1) * per]
        body = _joined(mine)
        mail = PatchFile(
            "b <b@example.org>", "b", "b@example.org", f"{1700000000 + n} +0000",
            f"bench : change number {n}", "", parse_diff(body, "piece"), body,
        )  # fmt: skip
        patches.append(render_patch(mail))
    return patches


def _joined(pieces: list[bytes]) -> bytes:
    files: dict[bytes, list[bytes]] = {}
    for piece in pieces:
        head, _, hunk = piece.partition(b"\n@@ ")
        files.setdefault(head, []).append(b"@@ " + hunk)
    return b"".join(head + b"\n" + b"".join(hunks) for head, hunks in files.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patches", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path)
    args = parser.parse_args()
    work = args.work or Path(tempfile.mkdtemp(prefix="hexpatch-bench-"))
    root = work / "series"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    sh(*HEXPATCH, "init", "--base", BASE, cwd=root)
    store = root / ".hexpatch" / "upstream.git"
    sh(*HEXPATCH, "check", "--onto", CUT, cwd=root)
    sh(*HEXPATCH, "check", "--onto", ONTO, cwd=root)
    listing = ["for-each-ref", "--format=%(refname:short) %(objectname)", "refs/snapshots"]
    refs = sh("git", f"--git-dir={store}", *listing, cwd=root).decode().split("\n")
    ids = dict(line.rsplit(" ", 1) for line in refs if line)
    base = ids["snapshots/b10068"]
    target = ids["snapshots/b10361"]
    patches = cut(store, base, target, 3 * args.patches)
    fill(root, patches)
    fitting = keep_clean(root, patches, args.patches)
    print(
        f"{len(fitting)} patches, {sum(map(len, fitting)) / 1e6:.2f} MB, base {BASE}, onto {ONTO}"
    )

    am = work / "am"
    mails = work / "mails"
    for folder in (am, mails, work / "raw"):
        shutil.rmtree(folder, ignore_errors=True)
    (work / "raw").mkdir()
    raw = []
    for n, data in enumerate(fitting):
        raw.append(work / "raw" / f"{n:04}.patch")
        raw[-1].write_bytes(data)
    sh("git", f"--git-dir={store}", "worktree", "prune", cwd=root)
    sh("git", f"--git-dir={store}", "worktree", "add", "-q", "--detach", str(am), base, cwd=root)
    sh("git", "am", "-q", *map(str, raw), cwd=am)
    sh("git", "format-patch", "-q", "--full-index", "-o", str(mails), f"{base}..HEAD", cwd=am)
    fitting = [p.read_bytes() for p in sorted(mails.iterdir())]
    names = [str(p) for p in sorted(mails.iterdir())]
    onto = next(i for n, i in ids.items() if n.endswith(ONTO))

    def reset() -> None:
        sh("git", "checkout", "-q", "-f", "--detach", base, cwd=am)

    def stacked() -> None:
        reset()
        sh("git", "am", "-q", *names, cwd=am)

    def fresh() -> None:
        fill(root, fitting)
        shutil.rmtree(root / ".hexpatch" / "llama.cpp", ignore_errors=True)
        sh("git", f"--git-dir={store}", "worktree", "prune", cwd=root)
        sh(*HEXPATCH, "apply", "--force", cwd=root)

    def unapplied() -> None:
        """The checkout on the bare base, as git am starts; new dates make all objects new."""
        fill(root, [])
        sh(*HEXPATCH, "apply", "--force", cwd=root)
        fill(root, fitting)

    here = [*HEXPATCH]
    nothing = lambda: None  # noqa: E731
    unapplied()
    compare("Does it apply?", [
        Contender("git am", ["git", "am", "-q", *names], am, reset),
        Contender("hexpatch check --fresh", [*here, "check", "--fresh"], root, nothing),
    ], args.rounds)  # fmt: skip
    compare("Commits and checkout", [
        Contender("git am", ["git", "am", "-q", *names], am, reset),
        Contender("hexpatch apply", [*here, "apply"], root, unapplied),
    ], args.rounds)  # fmt: skip
    fresh()
    compare("Does it apply? Asked again, series.lock is true", [
        Contender("git am", ["git", "am", "-q", *names], am, reset),
        Contender("hexpatch check", [*here, "check"], root, nothing),
    ], args.rounds)  # fmt: skip
    compare("Onto another snapshot", [
        Contender("git rebase --onto", ["git", "rebase", "-q", "--onto", onto, base], am, stacked),
        Contender("hexpatch rebase --onto", [*here, "rebase", "--onto", ONTO], root, fresh),
    ], args.rounds)  # fmt: skip
    compare("Start-up", [
        Contender("python -c pass", [sys.executable, "-c", "pass"], root, nothing),
        Contender("hexpatch --help", [*here, "--help"], root, nothing),
    ], args.rounds)  # fmt: skip


def fill(root: Path, patches: list[bytes]) -> None:
    """Make these patches the series, leaving base and checkout as they are."""
    shutil.rmtree(root / "patches", ignore_errors=True)
    (root / "patches").mkdir()
    head = root / "series.head.yaml"
    if not head.exists():
        text = (root / "series.yaml").read_text()
        head.write_text(text[: text.index("patches: []")])
    lines = [head.read_text(), "patches:" if patches else "patches: []"]
    for n, data in enumerate(patches):
        (root / "patches" / f"p{n:04}.patch").write_bytes(data)
        lines.append(f"  - name: p{n:04}")
    (root / "series.yaml").write_text("\n".join(lines) + "\n")
    (root / "series.lock").unlink(missing_ok=True)


def keep_clean(root: Path, patches: list[bytes], count: int) -> list[bytes]:
    """The first `count` patches that apply on the base and merge cleanly onto ONTO."""
    good = list(range(len(patches)))
    for _ in range(6):
        fill(root, [patches[n] for n in good])
        bad: set[str] = set()
        for extra in ([], ["--onto", ONTO]):
            done = subprocess.run([*HEXPATCH, "check", "--json", *extra], cwd=root, env=ENV,
                                  capture_output=True, check=False)  # fmt: skip
            rows = json.loads(done.stdout)["patches"]
            fine = ("ok", "offset", "three-way")
            bad |= {r["name"] for r in rows if r["status"] not in fine}
        if not bad:
            break
        good = [n for i, n in enumerate(good) if f"p{i:04}" not in bad]
    kept = [patches[n] for n in good[:count]]
    fill(root, kept)
    return kept


if __name__ == "__main__":
    main()
