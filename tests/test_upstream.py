"""Stories on real llama.cpp trees, from registry snapshots (downloaded once, then cached)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import World, edit, git

pytestmark = [pytest.mark.upstream, pytest.mark.slow]
REPO = Path(__file__).parent.parent


def copy_series(folder: Path) -> World:
    """This repository's series in another folder, without the store."""
    folder.mkdir(parents=True)
    for name in ("patches", "src"):
        shutil.copytree(REPO / name, folder / name, dirs_exist_ok=True)
    for name in ("series.yaml", "series.lock"):
        shutil.copy(REPO / name, folder / name)
    text = (folder / "series.yaml").read_text()
    text = text.replace("\nsrc:", "\nsources: [snapshot]\n\nsrc:", 1)
    (folder / "series.yaml").write_text(text)
    return World(folder, folder)


@pytest.fixture
def real(tmp_path: Path) -> World:
    return copy_series(tmp_path / "real")


def statuses(rows: Any) -> dict[str, str]:
    return {r["name"]: r["status"] for r in rows["patches"]}


def test_two_folders_give_the_same_tip_and_refresh_changes_nothing(
    real: World, tmp_path: Path
) -> None:
    other = copy_series(tmp_path / "elsewhere" / "deep")
    tips = [w.ok("apply", "--json").json["tip"] for w in (real, other)]
    assert tips[0] == tips[1]
    before = real.files()
    assert "nothing changed" in real.ok("refresh").out
    assert real.files() == before


def test_the_lock_in_this_repository_is_true(real: World) -> None:
    real.ok("apply", "--locked")


@pytest.mark.parametrize(
    ("start", "onto", "kind"),
    [
        ("af6528e6d", "210a6570c", "no-op: no hexagon file moved"),
        ("e3a74b299", "f449e0553", "medium: 15 hexagon files"),
        ("f449e0553", "b3fed31b9", "hard: the tiled-repack rework, 25 files"),
        ("v0.4.0", "v0.5.0", "hard: 61 files"),
        ("v0.5.0", "0c1e57098", "hard: 31 files"),
        ("v0.5.0", "b10361", "older"),
    ],
)
def test_prediction_equals_what_happens_and_undo_brings_it_back(
    tmp_path: Path, start: str, onto: str, kind: str
) -> None:
    """A stack of hooks in files that every snapshot has; each on its own merits."""
    world = start_on(tmp_path / "w", start)
    predicted = statuses(world.run("check", "--onto", onto, "--json").json)
    dry = statuses(world.run("rebase", "--onto", onto, "--dry-run", "--json").json)
    assert predicted == dry
    before = world.world()
    ran = world.run("rebase", "--onto", onto, "--json")
    happened = statuses(ran.json)
    if ran.code == 0:
        assert happened == predicted
        world.ok("apply", "--locked")
        world.ok("undo")
    else:
        assert ran.code == 3
        assert happened == predicted, "the rows cover every patch, also behind the conflict"
        world.ok("rebase", "--abort")
    assert world.world() == before


def start_on(folder: Path, base: str) -> World:
    """A small stack of real edits on a snapshot: tests, a hook, a new kernel."""
    folder.mkdir()
    world = World(folder, folder)
    world.ok("init", "--base", base, "--src", "htp=ggml/src/ggml-hexagon/htp")
    text = (folder / "series.yaml").read_text()
    (folder / "series.yaml").write_text(text.replace("\nsrc:", "\nsources: [snapshot]\nsrc:", 1))
    world.ok("apply")
    tests = world.checkout / "tests/test-backend-ops.cpp"
    lines = tests.read_text().splitlines(keepends=True)
    mark = next(n for n, line in enumerate(lines) if "make_test_cases_eval() {" in line)
    lines.insert(mark + 2, "    // a case of ours\n")
    tests.write_text("".join(lines))
    git(world.checkout, "commit", "-qam", "tests : a case")
    main = world.checkout / "ggml/src/ggml-hexagon/htp/main.c"
    text = main.read_text()
    include = next(line for line in text.splitlines() if line.startswith("#include <"))
    edit(main, include + "\n", include + "\n#include <hook.h>\n")
    kernel = world.checkout / "ggml/src/ggml-hexagon/htp/our-kernel.c"
    kernel.write_text("int our_kernel(void) { return 0; }\n")
    git(world.checkout, "add", "-A")
    git(world.checkout, "commit", "-qm", "hexagon : our kernel")
    host = world.checkout / "ggml/src/ggml-hexagon/ggml-hexagon.cpp"
    text = host.read_text()
    at = text.index("static bool ggml_hexagon_supported")
    host.write_text(text[:at] + "// a hook of ours\n" + text[at:])
    git(world.checkout, "commit", "-qam", "hexagon : a hook")
    world.ok("refresh")
    return world


def test_exported_mails_give_the_exported_tree_on_a_pristine_tree(
    real: World, tmp_path: Path
) -> None:
    real.ok("apply")
    for group in real.ok("export", "--json").json["groups"]:
        place = tmp_path / f"am-{group['name']}"
        store = real.root / ".hexpatch" / "upstream.git"
        git(store, "worktree", "add", "-q", "--detach", str(place), group["base"])
        git(place, "am", "-q", *group["mails"])
        assert git(place, "rev-parse", "HEAD^{tree}") == group["tree"]


def test_everything_works_offline_with_a_filled_cache(real: World) -> None:
    real.ok("--offline", "apply")
    ran = real.run("--offline", "check", "--onto", "v0.5.0", "--json")  # not all fit there
    assert "tests-gdn-lengths" in str(statuses(ran.json))


def broken_add(world: World) -> None:
    source = world.checkout / "ggml/src/ggml-cpu/binary-ops.cpp"
    text = source.read_text()
    assert text.count("return a + b;") == 1
    source.write_text(text.replace("return a + b;", "return a + b + 0.01f;"))
    world.ok("new", "break-add", "-m", "ggml : break ADD on purpose")


@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake and a compiler")
def test_validate_sees_new_cases_and_a_broken_add(
    real: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CCACHE_DIR", os.environ.get("CCACHE_DIR", str(Path.home() / "ccache")))
    real.ok("apply")
    report = real.ok("validate", "-o", "GATED_DELTA_NET,CONCAT", "--json").json
    assert report["totals"]["new"] == 8 + 8
    assert not report["totals"]["broken"]
    broken_add(real)
    report = real.fails("validate", "-o", "ADD", "--json").json
    assert report["totals"]["broken"] > 50
    assert not report["totals"]["lost"]
    assert all(c["op"] == "ADD" for c in report["cases"])
