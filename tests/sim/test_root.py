"""Writing an SDK root: what is in it, when it is made again, what can go wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toolchain_lab import CLANGS, RUNTIME, Toolchain, toolchain

from hexpatch.errors import HexpatchError
from hexpatch.sim import root

needs_clang = pytest.mark.skipif(not CLANGS, reason=f"no clang >= {root.OLDEST}")

__all__ = ["toolchain"]


@pytest.fixture(autouse=True)
def fresh() -> None:
    root.find_clang.cache_clear()


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.mark.sim
@needs_clang
def test_a_root_is_an_sdk(toolchain: Toolchain) -> None:
    made = toolchain()
    for path in (
        made.sdk / "incs" / "hexsim.h",
        made.sdk / "incs" / "stddef" / "AEEStdDef.h",
        made.sdk / "build" / "cmake" / "hexagon_fun.cmake",
        made.sdk / "build" / "cmake" / "hexagon_arch.cmake",
        made.sdk / "tools" / "qaic" / "bin" / "qaic",
        made.tools / "Tools" / "bin" / "hexagon-clang",
        made.tools / "Tools" / "bin" / "hexagon-clang++",
        made.tools / "Tools" / "bin" / "hexagon-ar",
        made.lib / "libcdsprpc.so",
    ):
        assert path.is_file(), path
        assert os.access(path, os.X_OK) == (path.parent.name in ("bin", "lib")), path
    settings = json.loads((made.tools / "Tools" / "lib" / "settings.json").read_text())
    assert settings["key"] == made.key
    assert settings["checked"] is False
    assert {"malloc", "puts"} <= set(settings["wrap"])
    assert made.sdk.parent.name == made.key
    assert not list(made.sdk.parent.glob("objects"))


@pytest.mark.sim
@needs_clang
def test_a_root_is_made_once(
    toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = toolchain()
    monkeypatch.setattr(root, "_runtime", None)  # would fail
    assert toolchain() == made
    assert root.materialise(made.sdk.parents[1], checked=False) == made


@needs_clang
def test_what_decides_the_output_decides_the_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clang = root.find_clang(None)
    keys = [root._key(clang, False, ())]
    keys.append(root._key(clang, True, ()))
    keys.append(root._key(clang, False, ("-mavx2",)))
    keys.append(root._key(root.Compiler(clang.path, "clang version 99", 99), False, ()))
    for name, at in (("SDK", "incs/hexsim.h"), ("RUNTIME", "op.c")):
        copy = tmp_path / name
        shutil.copytree(getattr(root, name), copy)
        monkeypatch.setattr(root, name, copy)
        assert root._key(clang, False, ()) == keys[0]  # where it lies does not matter
        with (copy / at).open("a") as handle:
            handle.write("\n")
        keys.append(root._key(clang, False, ()))
        with (copy / at).open("r+") as handle:
            handle.truncate((copy / at).stat().st_size - 1)
    home = tmp_path / "package"
    home.mkdir()
    for name in (*root.TOOLS, "root"):
        shutil.copy(root.HERE / f"{name}.py", home)
    monkeypatch.setattr(root, "HERE", home)
    assert root._key(clang, False, ()) == keys[0]
    (home / "irmask.py").write_text("changed")
    keys.append(root._key(clang, False, ()))
    assert len(set(keys)) == len(keys)


@pytest.mark.sim
@needs_clang
def test_two_at_once_make_one(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hexpatch.sim import root;"
        f"root.RUNTIME = Path({str(RUNTIME)!r});"
        "print(root.materialise(Path(sys.argv[1]), checked=False).key)"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "into")]
    children = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = {child.communicate()[0].strip() for child in children}
    assert [child.returncode for child in children] == [0, 0, 0]
    assert len(said) == 1
    left = sorted(p.name for p in (tmp_path / "into").iterdir())
    assert left == [".lock", said.pop()]


@pytest.mark.sim
@needs_clang
def test_a_killed_run_leaves_no_half_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "RUNTIME", RUNTIME)

    def dies(room: Path, settings: dict[str, object]) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(root, "_tools", dies)
        with pytest.raises(KeyboardInterrupt):
            root.materialise(tmp_path / "into", checked=False)
    assert [p.name for p in (tmp_path / "into").iterdir()] == [".lock"]
    assert root.materialise(tmp_path / "into", checked=False).lib.is_dir()


@pytest.mark.sim
@needs_clang
def test_a_runtime_that_does_not_build_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "runtime"
    broken.mkdir()
    monkeypatch.setattr(root, "RUNTIME", broken)
    (broken / "a.c").write_text("int f(void) { return nosuch; }\n")
    with pytest.raises(HexpatchError, match=r"(?s)runtime does not build.*a\.c:1:22: error"):
        root.materialise(tmp_path / "into", checked=False)
    (broken / "a.c").write_text("int g(void); int f(void) { return g(); }\n")
    with pytest.raises(HexpatchError, match=r"(?s)runtime does not build.*undefined.*g"):
        root.materialise(tmp_path / "into", checked=False)


# -- clang ------------------------------------------------------------------------------------


def test_no_clang_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HexpatchError) as bad:
        root.find_clang(None)
    assert bad.value.message == "the simulator needs clang: no clang >= 14 is installed"
    assert bad.value.hint == "`apt-get install clang`, or set HEXPATCH_CLANG"


def test_which_clang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    monkeypatch.setattr(root, "NEWEST", 99)
    program(tmp_path / "bin", "clang", "echo 'Debian clang version 13.0.1-6'")  # too old
    program(tmp_path / "bin", "clang-99", "exit 1")
    program(tmp_path / "bin", "clang-98", "echo 'clang version 98.1.0 (somewhere)'")
    program(tmp_path / "bin", "clang-97", "echo 'clang version 97.0.0'")
    found = root.find_clang(None)
    assert (Path(found.path).name, found.major) == ("clang-98", 98)
    assert found.version == "clang version 98.1.0 (somewhere)"
    assert root.find_clang("clang-97").major == 97
    root.find_clang.cache_clear()
    monkeypatch.setenv("HEXPATCH_CLANG", str(tmp_path / "bin" / "clang-97"))
    assert root.find_clang(None).major == 97
    for wrong in ("clang", "nothing", "clang-99"):
        with pytest.raises(HexpatchError, match=f"needs clang: {wrong} is no clang >= 14"):
            root.find_clang(wrong)
    root.find_clang.cache_clear()
    monkeypatch.delenv("HEXPATCH_CLANG")
    program(tmp_path / "bin", "clang", "echo 'Debian clang version 15.0.6'")
    assert root.find_clang(None).major == 15


def test_cpu_flags_are_those_of_this_machine() -> None:
    assert set(root.cpu_flags()) <= {"-mavx2", "-mfma", "-mf16c"}
