"""The command line itself: help, exit status, JSON, quiet start."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import World, completions, edit, hexpatch

from hexpatch import quick, rows


def test_help_teaches_every_command(tmp_path: Path) -> None:
    text = hexpatch(tmp_path, "--help").out
    listed = [line.split()[0] for line in text.partition("Commands:")[2].splitlines() if line]
    assert listed[:3] == ["init", "import", "new"]
    assert "..." not in text.partition("Commands:")[2], (
        "a first line that is cut off teaches nothing"
    )
    for name in listed:
        page = hexpatch(tmp_path, name, "--help")
        assert page.code == 0
        assert len(page.out.split("\n\n")) >= 3, f"{name}: one line, then what it changes"
        assert name == "completion" or re.search("Changes|then rewrites", page.out), name


def test_the_help_of_check_knows_every_word_of_its_answers(tmp_path: Path) -> None:
    page = hexpatch(tmp_path, "check", "--help").out
    for word in (*rows.FITS, "landed", "hold", "conflict", "twice", "blocked"):
        assert re.search(rf"\b{word}\b", page), word


def test_version_and_completion(tmp_path: Path) -> None:
    assert hexpatch(tmp_path, "--version").out.startswith("hexpatch, version ")
    for shell in ("bash", "zsh", "fish"):
        assert "_HEXPATCH_COMPLETE" in hexpatch(tmp_path, "completion", shell).out


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["status"], 1),
        (["frobnicate"], 2),
        (["rebase"], 2),
        (["rebase", "--onto", "v1", "--abort"], 2),
        (["rebase", "--continue", "--dry-run"], 2),
        (["check", "--onto"], 2),
        (["log", "-n", "0"], 2),
        (["validate", "-j", "0"], 2),
        (["validate", "--timeout", "-1"], 2),
    ],
)
def test_exit_status_without_a_series(tmp_path: Path, args: list[str], code: int) -> None:
    ran = hexpatch(tmp_path, *args)
    assert ran.code == code
    assert "Traceback" not in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(
    "args",
    [
        ["undo", ""],
        ["check", "--onto", " "],
        ["rebase", "-n", "--onto", ""],
        ["new", "Not_A_Name", "-m", "tests : x"],
        ["new", "", "-m", "tests : x"],
        ["new", "a-name", "-m", " "],
        ["validate", "--target", "phone"],
        ["build", "--target", "sim:phone"],
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(stacked: World, args: list[str]) -> None:
    """An empty word is often a script's unset variable: nothing may happen then."""
    edit(stacked.checkout / "README.md", "# tiny llama.cpp\n", "# tiny\n")
    before = stacked.world()
    ran = stacked.usage_error(*args)
    assert ran.err.startswith("error: ") and "series.yaml:" not in ran.err
    assert stacked.world() == before


def test_the_snapshots_are_listed_where_no_series_is(tmp_path: Path) -> None:
    """`init` has to be told one of them."""
    assert "npm:node-llama-cpp@3.22.1" in hexpatch(tmp_path, "upstream").out
    assert list(tmp_path.iterdir()) == [tmp_path / "home"]


def test_status_tells_where_the_checkout_is(stacked: World) -> None:
    """What refresh, rebase and apply would refuse is no state to be called in sync."""
    stacked.git("switch", "-qc", "feature")
    stacked.git("commit", "-q", "--allow-empty", "-m", "mine")
    assert "is on branch feature, not on branch stack" in stacked.status()["sync"]
    assert "git switch stack" in stacked.status()["hint"]
    stacked.git("switch", "-q", "--detach")
    assert "not on branch stack" in stacked.status()["sync"]
    stacked.git("switch", "-q", "stack")
    assert stacked.status()["sync"] == "in sync"
    edit(stacked.checkout / "README.md", "# tiny llama.cpp\n", "# tiny\n")
    stacked.git("commit", "-qam", "readme : tiny")
    stacked.git("rebase", "-qi", "hexpatch/base", GIT_SEQUENCE_EDITOR="sed -i 1ibreak")
    assert "a `git rebase` is not finished" in stacked.status()["sync"]
    stacked.git("rebase", "--continue")
    assert stacked.status()["sync"] == "commits have changed"


def test_answers_go_to_stdout_and_the_story_to_stderr(stacked: World) -> None:
    ran = stacked.ok("status", "--json")
    assert {"tip", "tree", "base", "patches"} <= set(ran.json)
    assert ran.err == ""
    ran = stacked.ok("-q", "check", "--onto", "v2")
    assert ran.err == ""
    assert "3 of 3 patches fit" in ran.out


def test_works_from_a_folder_below_and_with_C(stacked: World, tmp_path: Path) -> None:
    below = hexpatch(stacked.root / "patches", "status", "--json")
    there = hexpatch(tmp_path, "-C", str(stacked.root), "status", "--json")
    assert below.json["tip"] == there.json["tip"] == stacked.status()["tip"]


def test_series_lists_counts_and_shapes(stacked: World) -> None:
    listed = stacked.ok("series", "--json").json["patches"]
    assert [p["added"] for p in listed] == [1, 4, 1]
    assert [f["path"] for f in listed[1]["files"]] == [
        "ggml/src/ggml-hexagon/ggml-hexagon.cpp",
        "ggml/src/ggml-hexagon/htp/kernel.c",
    ]


def test_start_up_is_light() -> None:
    """`--help` loads neither git, nor yaml, nor the engine."""
    code = (
        "import sys\nfrom hexpatch.cli import cli\n"
        "try: cli.main(args=['--help'])\nexcept SystemExit: pass\n"
        "print(sorted(m for m in sys.modules if m in "
        "('git', 'yaml', 'unidiff', 'hexpatch.repo', 'hexpatch.series', 'tarfile', 'requests')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--fresh"], ["--json"], ["--json", "--fresh"]])
@pytest.mark.parametrize("state", ["fits", "fits not", "no series", "bad series"])
def test_check_is_the_same_without_the_parser(
    stacked: World, monkeypatch: pytest.MonkeyPatch, options: list[str], state: str
) -> None:
    if state == "fits not":
        edit(stacked.root / "patches/hexagon-hook-a.patch", " host 9\n", " host nine\n")
    elif state == "no series":
        shutil.rmtree(stacked.root / ".hexpatch")
        (stacked.root / "series.yaml").unlink()
    elif state == "bad series":
        (stacked.root / "series.yaml").write_text("patches: 3\n")
    slow = hexpatch(stacked.root, "check", *options)
    monkeypatch.chdir(stacked.root)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = quick.run(["check", *options])
    assert (status, out.getvalue(), err.getvalue()) == (slow.code, slow.out, slow.err)
    assert slow.code == (0 if state == "fits" else 1)


def test_only_a_plain_check_goes_without_the_parser(stacked: World) -> None:
    for args in ([], ["status"], ["check", "--onto", "v2"], ["check", "-h"], ["-q", "check"]):
        assert quick.run(args) is None


def test_a_plain_check_loads_little(stacked: World) -> None:
    code = (
        "import sys\nfrom hexpatch import quick\nquick.run(['check'])\n"
        "print(sorted(m for m in sys.modules if m in "
        "('click', 'dataclasses', 'inspect', 'hexpatch.repo', 'hexpatch.sources')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=stacked.root, capture_output=True, text=True, check=True, env=os.environ,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_closed_pipe_is_no_traceback(stacked: World) -> None:
    command = f"{sys.executable} -m hexpatch -C {stacked.root} series --json | head -c 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_names_complete(stacked: World) -> None:
    """What the completion script asks: patches, groups and upstream names."""
    for words, expected in (("drop hexagon-", "hexagon-hook-a"), ("check --onto v0.", "v0.5.0")):
        assert expected in completions(stacked, words)


def test_an_answer_that_cannot_be_written_is_said(stacked: World) -> None:
    code = f"{sys.executable} -m hexpatch -C {stacked.root} status"
    for end in (">/dev/full", ">&-"):
        done = subprocess.run(
            ["sh", "-c", f"{code} {end}"], capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr
