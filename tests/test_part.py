"""A part of the stack: every prefix and every group can be built and judged by itself."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import HOST, World, completions, edit, git, hexpatch
from test_validate import FAKE, TOOLS

from hexpatch.build import Built
from hexpatch.inspecting import Compared
from hexpatch.sim.inspect import FunctionReport
from hexpatch.simbuild import SimBuilt

HOOK, KERNEL, CASE = "hexagon-hook-a", "hexagon-add-a-kernel", "tests-add-a-case"
GROUPS = f"""groups:
  - name: hook
    patches: [{HOOK}]
  - name: kernel
    patches: [{KERNEL}]
  - name: case
    patches: [{CASE}]
"""


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Builds are fakes whose test program passes every case; this is what was built."""
    trees: list[str] = []
    script = tmp_path / "fake.json"
    cases = [["ADD", "n=1"], ["SUB", "n=1"], ["MUL", "n=1"]]
    script.write_text(json.dumps({"cases": {"*": cases}, "libs": {}}))
    monkeypatch.setenv("TBO_FAKE", os.fspath(script))

    def programs(state: Path, tree: str) -> tuple[Path, Path]:
        trees.append(tree)
        home = state / "build" / "fake" / tree
        place = home / "build" / "bin"
        place.mkdir(parents=True, exist_ok=True)
        (place / "libggml-cpu.so").write_text(tree)
        for name in ("test-backend-ops", "test-backend-ops-stack"):
            (place / name).write_text(f"#!{sys.executable} -ES\n" + FAKE.read_text())
            (place / name).chmod(0o755)
        return home, place

    def build(repo: Any, state: Path, tree: str, **options: Any) -> Built:
        home, place = programs(state, tree)
        return Built(home, place, home / "log", 0.0)

    def simulator(repo: Any, state: Path, tree: str, **options: Any) -> SimBuilt:
        home, place = programs(state, tree)
        script.write_text(json.dumps({"cases": {"*": cases}, "libs": {}, "device": "HTP0"}))
        return SimBuilt(home, place, home, home, home / "log", 0.0, "clang", "key")

    monkeypatch.setattr("hexpatch.build.build", build)
    monkeypatch.setattr("hexpatch.simbuild.build", simulator)
    monkeypatch.setattr("hexpatch.build.tools", lambda: TOOLS)
    monkeypatch.setattr("hexpatch.knownfail.load", list)
    return trees


@pytest.fixture
def grouped(stacked: World) -> World:
    """Three patches, each with its op and its group; the kernel needs the hook."""
    file = stacked.root / "series.yaml"
    edit(file, f"  - name: {HOOK}\n", f"  - name: {HOOK}\n    ops: [ADD]\n")
    edit(
        file, f"  - name: {KERNEL}\n", f"  - name: {KERNEL}\n    ops: [SUB]\n    needs: [{HOOK}]\n"
    )
    edit(file, f"  - name: {CASE}\n", f"  - name: {CASE}\n    ops: [MUL]\n")
    edit(file, "groups: []\n", GROUPS)
    return stacked


def refs(world: World) -> str:
    return git(world.root / ".hexpatch/upstream.git", "for-each-ref")


def tree(world: World, commit: str) -> str:
    return world.git("rev-parse", f"{commit}^{{tree}}")


# -- which tree ------------------------------------------------------------------------------


def test_every_prefix_of_the_stack_is_built(grouped: World, built: list[str]) -> None:
    before = refs(grouped)
    told = [grouped.ok("build", "--upto", name).err for name in (HOOK, KERNEL, CASE)]
    assert built == [tree(grouped, f"stack~{n}") for n in (2, 1, 0)]
    assert f"the stack up to {KERNEL}, 2 of 3 patches\n" in told[1]
    assert refs(grouped) == before


def test_a_group_is_built_as_it_is_exported(grouped: World, built: list[str]) -> None:
    """The same tree that a pull request will have, before there is a branch."""
    before = refs(grouped)
    told = [grouped.ok("build", "--group", name).err for name in ("hook", "kernel", "case")]
    assert refs(grouped) == before
    made = grouped.ok("export", "--force", "--json").json["groups"]
    assert built == [group["tree"] for group in made]
    assert len({*built, tree(grouped, "stack")}) == 4
    words = "group kernel on the base, without the rest of the stack: "
    assert f"{words}{HOOK}, {KERNEL}\n" in told[1]
    assert f"stacked on hook, which has to go first: {KERNEL} builds on {HOOK}\n" in told[1]


def test_a_later_patch_that_does_not_apply_is_not_asked(grouped: World, built: list[str]) -> None:
    edit(grouped.root / f"patches/{CASE}.patch", " case 20\n", " case twenty\n")
    grouped.fails("build", says=f"{CASE} does not apply")
    grouped.ok("build", "--upto", KERNEL)
    grouped.ok("build", "--group", "kernel")
    grouped.fails("build", "--upto", CASE, says=f"{CASE} does not apply")
    grouped.fails("build", "--group", "case", says=f"case: {CASE} does not fit")


def test_a_group_that_does_not_stand_alone_is_no_result(grouped: World, built: list[str]) -> None:
    file = grouped.root / "series.yaml"
    edit(file, "    ops: [ADD]\n", "    ops: [ADD]\n    state: private\n")
    edit(file, f"  - name: hook\n    patches: [{HOOK}]\n", "")
    grouped.fails("build", "--group", "kernel", says=f"{KERNEL} builds on private patch {HOOK}")
    grouped.ok("build", "--upto", HOOK)
    assert built == [tree(grouped, "stack~2")]


def test_work_that_is_not_in_the_files_yet_is_named(grouped: World, built: list[str]) -> None:
    """Somebody who edits a kernel and forgets to refresh would measure the old one."""
    whole = tree(grouped, "stack")
    assert "note:" not in grouped.ok("build").err
    edit(grouped.checkout / HOST, "hook a\n", "hook A\n")
    assert "note: the checkout has uncommitted changes; " in grouped.ok("build").err
    grouped.git("commit", "-q", "-a", "-m", "hexagon : hook A")
    told = grouped.ok("build").err
    assert "note: the checkout has commits that are not in the files yet; " in told
    assert "`hexpatch refresh`" in told
    assert "note:" not in grouped.ok("build", "--base").err
    assert built[:3] == [whole] * 3


# -- what can't be meant ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ("--quick", "--full"),
        ("--quick", "-o", "ADD"),
        *(("--timeout", text) for text in ("nan", "inf", "1e9", "0")),
    ],
)
def test_options_that_make_no_sense(
    grouped: World, built: list[str], args: tuple[str, ...]
) -> None:
    for target in ("cpu", "sim:sm7750"):
        grouped.usage_error("validate", "--target", target, *args)
    assert not built


@pytest.mark.parametrize("command", ["build", "validate"])
@pytest.mark.parametrize(
    "args",
    [
        ["--upto", HOOK, "--group", "hook"],
        ["--base", "--upto", HOOK],
        ["--base", "--group", "hook"],
        ["--upto", "", "--group", ""],
    ],
)
def test_there_is_one_way_to_say_it(tmp_path: Path, command: str, args: list[str]) -> None:
    ran = hexpatch(tmp_path, command, *args)
    assert ran.code == 2
    assert "give only one of --base, --upto PATCH, --group NAME" in ran.err


def test_names_that_are_not_there(grouped: World, built: list[str]) -> None:
    ran = grouped.usage_error(
        "build", "--upto", "hexagon-hook-b", says="no patch named hexagon-hook-b"
    )
    assert f"did you mean {HOOK}?" in ran.err
    ran = grouped.usage_error("build", "--group", "kernels", says="no group named kernels")
    assert "did you mean kernel?" in ran.err
    ran = grouped.usage_error("validate", "--group", CASE, says=f"{CASE} is a patch, not a group")
    assert "`--group case`" in ran.err
    grouped.usage_error("validate", "--upto", "", says="no patch named")
    grouped.usage_error("validate", "--group", "", says="no group named")
    assert built == []


@pytest.mark.parametrize(("state", "words"), [("hold", "on hold"), ("landed", "landed")])
def test_a_patch_that_is_set_aside_ends_no_prefix(
    grouped: World, built: list[str], state: str, words: str
) -> None:
    file = grouped.root / "series.yaml"
    edit(file, "    ops: [MUL]\n", f"    ops: [MUL]\n    state: {state}\n")
    ran = grouped.fails("build", "--upto", CASE, says=f"{CASE} is {words}: it is not part of the")
    assert f"`--upto {KERNEL}` is the stack before it" in ran.err
    grouped.fails("build", "--group", "case", says=f"{CASE} is")
    assert "2 of 2 patches" in grouped.ok("build", "--upto", KERNEL).err


def test_patches_and_groups_complete(grouped: World) -> None:
    for words, expected in (("build --upto hexagon-h", HOOK), ("validate --group k", "kernel")):
        assert expected in completions(grouped, words)


# -- what is said of it ----------------------------------------------------------------------


def page(ran: Any) -> Path:
    return Path(ran.out.splitlines()[-1].removeprefix("evidence  "))


@pytest.mark.slow
def test_the_result_of_a_prefix_says_so(grouped: World, built: list[str]) -> None:
    ran = grouped.ok("validate", "--upto", KERNEL)
    assert f"note: judged: the stack up to {KERNEL}, 2 of 3 patches\n" in ran.out
    assert f"green: 2 passed (up to {KERNEL})\n" in ran.out
    base, there = tree(grouped, "hexpatch/base"), tree(grouped, "stack~1")
    assert page(ran).name == f"{base[:12]}-{there[:12]}-ADD-SUB.html"
    assert f"<title>cpu: v1, up to {KERNEL}</title>" in page(ran).read_text()
    kept = json.loads(page(ran).with_suffix(".json").read_text())
    assert (kept["judged"], kept["stack_tree"]) == (f"up to {KERNEL}", there)
    assert kept["ops"] == ["ADD", "SUB"]


@pytest.mark.slow
def test_an_op_that_comes_later_can_be_asked_for(grouped: World, built: list[str]) -> None:
    """That nothing else broke on the way is what a prefix is judged for."""
    assert grouped.ok("validate", "--upto", HOOK, "-o", "MUL", "--json").json["ops"] == ["MUL"]


@pytest.mark.slow
def test_patches_without_ops_are_told_where_the_ops_are_the_patches(
    grouped: World, built: list[str]
) -> None:
    """A green of the others' ops says nothing of them."""
    assert "no `ops:`" not in grouped.ok("validate").out
    edit(grouped.root / "series.yaml", "    ops: [SUB]\n", "")
    said = f"note: no `ops:` in series.yaml, so nothing was run for their sake: {KERNEL}\n"
    assert said in grouped.ok("validate").out
    assert "no `ops:`" not in grouped.ok("validate", "-o", "ADD").out
    assert "no `ops:`" not in grouped.ok("validate", "--group", "hook").out


def test_inspect_fails_where_a_file_could_not_be_compiled(
    grouped: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fine = FunctionReport("a.c", "f", packets=3)
    broken = FunctionReport("b.c", error="b.c:7:3: error: expected ';'")
    found = [Compared("a.c", "f", fine, fine), Compared("b.c", "", None, broken)]
    monkeypatch.setattr("hexpatch.prove.inspect", lambda *_, **__: found)
    said = "not compiled: b.c: stack: b.c:7:3: error: expected ';'"
    for more in ((), ("--json",), ("--all",)):
        grouped.fails("inspect", "--target", "sim:sm7750", *more, says=said)
    found.pop()
    grouped.ok("inspect", "--target", "sim:sm7750")


def test_the_result_of_a_group_says_so(grouped: World, built: list[str]) -> None:
    """Export finds it: it was measured on the branch."""
    ran = grouped.ok("validate", "--group", "case")
    assert "green: 1 passed (group case)\n" in ran.out
    assert f"judged: group case on the base, without the rest of the stack: {CASE}\n" in ran.out
    assert "<title>cpu: v1, group case</title>" in page(ran).read_text()
    made = grouped.ok("export", "case", "--json").json["groups"][0]
    facts = (Path(made["folder"]) / "evidence.md").read_text()
    assert "target cpu, `-o MUL`: green: 1 passed (measured on this branch)" in facts


@pytest.mark.slow
def test_what_a_group_takes_along_is_judged_too(grouped: World, built: list[str]) -> None:
    report = grouped.ok("validate", "--group", "kernel", "--json").json
    assert report["ops"] == ["ADD", "SUB"]
    assert any(note.startswith("stacked on hook") for note in report["notes"])


@pytest.mark.slow
def test_the_last_prefix_is_the_stack_and_its_result_is_known(
    grouped: World, built: list[str]
) -> None:
    whole = grouped.ok("validate", "--json").json
    last = grouped.ok("validate", "--upto", CASE, "--json").json
    assert (whole["cached"], whole["judged"]) == (False, "")
    assert (last["cached"], last["judged"]) == (True, f"up to {CASE}")
    assert grouped.ok("validate", "--json").json["judged"] == ""


@pytest.mark.slow
def test_a_simulated_prefix(grouped: World, built: list[str]) -> None:
    ran = grouped.ok("validate", "--target", "sim:sm7750", "--upto", HOOK)
    assert f"<title>sim:sm7750: v1, up to {HOOK}</title>" in page(ran).read_text()
    assert f"green: 1 passed (simulated sim:sm7750) (up to {HOOK})\n" in ran.out
    assert built == [tree(grouped, "hexpatch/base"), tree(grouped, "stack~2")]


@pytest.mark.slow
def test_the_ops_of_a_target_go_first(grouped: World, built: list[str]) -> None:
    file = grouped.root / "series.yaml"
    file.write_text(file.read_text() + "\ntargets:\n  cpu: {ops: [MUL]}\n")
    assert grouped.ok("validate", "--upto", HOOK, "--json").json["ops"] == ["MUL"]
