"""Field cases about moving a stack: deleted, taken partly, added on both sides, reordered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import World, git
from fieldworld import inputs, listed, messages, patches, rows, started, state, trees

pytestmark = pytest.mark.slow  # the rest of the suite stays quick without it


@pytest.fixture
def moved(field: Any, tmp_path: Path) -> Any:
    """moved(case): the case's patches applied on its base; branch main is where to go."""

    def build(case: str, names: list[str] | None = None) -> World:
        world = started(tmp_path / f"work{case}", field(case, f"up{case}")[0])
        listed(world, patches(case), names or [])
        world.ok("apply")
        return world

    return build


def tree_of(world: World, rev: str = "HEAD") -> str:
    return world.git("rev-parse", f"{rev}^{{tree}}")


def main_tree(world: World) -> str:
    return git(world.upstream, "rev-parse", "main^{tree}")


# -- 08 -------------------------------------------------------------------------------------

GONE = "55f0683a6632966972ebbf89dc47406fc8dba438"


def test_a_file_that_upstream_deleted_is_a_conflict(moved: Any) -> None:
    world = moved("08")
    before = state(world)
    for command in (("check", "--onto", "main"), ("rebase", "--onto", "main", "--dry-run")):
        said = rows(world, *command)
        assert [r["status"] for r in said.values()] == ["conflict", "ok"]
        detail = str(said["p1"]["detail"])
        for part in ("src/htp/old-op.c", "upstream deleted", "replace old-op by fused-op (#77)"):
            assert part in detail
        assert world.run(*command).code == 1
        assert state(world) == before


def test_abort_leaves_no_deleted_file_behind(moved: Any) -> None:
    world = moved("08")
    before = state(world)
    ran = world.conflicts("rebase", "--onto", "main", says="src/htp/old-op.c")
    assert "p2" in ran.out  # it was tried too
    assert world.git("status", "--porcelain") == "DU src/htp/old-op.c"
    world.ok("rebase", "--abort")
    assert state(world) == before
    assert world.git("status", "--porcelain", "--ignored") == ""


def test_skip_drops_the_patch_whose_file_is_gone(moved: Any) -> None:
    world = moved("08")
    world.conflicts("rebase", "--onto", "main")
    world.ok("rebase", "--skip")
    assert tree_of(world) == GONE
    assert messages(world) == ["readme : more"]
    assert not (world.checkout / "src/htp/old-op.c").exists()


def test_keep_going_holds_it_back(moved: Any) -> None:
    world = moved("08")
    world.fails("rebase", "--onto", "main", "--keep-going", says="p1")
    assert tree_of(world) == GONE
    assert world.status()["patches"][0]["state"] == "hold"


# -- 11 -------------------------------------------------------------------------------------


def test_partly_upstream(moved: Any) -> None:
    world = moved("11")
    before = state(world)
    said = rows(world, "check", "--onto", "main")
    assert [r["status"] for r in said.values()] == ["partly", "conflict", "partly"]
    assert "1 of 2 hunks" in str(said["p1"]["detail"])
    assert "src/knobs.txt" in str(said["p2"]["detail"])
    assert "1 of its 2 added lines is upstream already: mode = fast" in str(said["p2"]["detail"])
    assert "src/x.txt: upstream has it already" in str(said["p3"]["detail"])
    ran = world.conflicts("rebase", "--onto", "main")
    for word in ("partly", "conflict", "mode = fast"):
        assert word in ran.out
    assert tree_of(world) == "c807ff078cc10447b8f67c845dddf0415b6224ea"
    assert world.git("status", "--porcelain") == "UU src/knobs.txt"
    world.ok("rebase", "--abort")
    assert state(world) == before


def test_what_is_left_of_patches_taken_partly(moved: Any) -> None:
    world = moved("11")
    world.conflicts("rebase", "--onto", "main")
    ran = world.ok("rebase", "--skip")
    assert "partly" in ran.out
    assert len(trees(world)) == 2
    assert tree_of(world) == "ef56ca63b81886f4049dc7ffbb4dcb1d76d5a7bb"
    listing = world.ok("series", "--json").json["patches"]
    shapes = {
        p["name"]: [(f["path"], f["added"], f["removed"]) for f in p["files"]] for p in listing
    }
    assert shapes["p1"] == [("src/gamma.txt", 1, 1)]
    assert shapes["p3"] == [("src/y.txt", 1, 1)]
    assert git(world.upstream, "status", "--porcelain") == ""


# -- 13 -------------------------------------------------------------------------------------


def test_an_empty_patch_on_purpose(moved: Any) -> None:
    world = moved("13", ["two", "marker", "three"])
    assert messages(world) == ["f : two", "marker : nothing but a note", "f : three"]
    assert (world.checkout / "f.txt").read_text() == "one\ntwo\nthree\n"
    assert world.git("log", "-1", "--format=%b", "HEAD~1") == "Keeps a decision on record."
    before = world.files()
    world.ok("refresh")
    assert world.files() == before
    assert rows(world, "check")["marker"]["status"] == "ok"


REFUSED = {
    "0004": "empty file",
    "0005": "no diff found",
    "0006": "no diff found",
    "0007": "no mail header",
}


@pytest.mark.parametrize("number", REFUSED)
def test_files_that_are_no_patches(field: Any, tmp_path: Path, number: str) -> None:
    world = started(tmp_path / "work", field("13")[0])
    bad = next((inputs("13") / "input").glob(f"{number}-*"))
    first = patches("13")[0]
    before = state(world)
    ran = world.fails("import", str(first), str(bad), says=bad.name)
    assert REFUSED[number] in ran.err
    assert state(world) == before
    listed(world, [first, bad], ["good", "bad"])
    ran = world.fails("apply", says="bad.patch")
    assert REFUSED[number] in ran.err
    assert not world.checkout.exists()


def test_import_of_a_branch_with_an_empty_commit(field: Any, tmp_path: Path) -> None:
    world = started(tmp_path / "work", field("13")[0])
    world.ok("import", "withempty")
    assert len(trees(world)) == 3
    for data in world.files().values():
        assert data
    assert tree_of(world) == git(world.upstream, "rev-parse", "withempty^{tree}")
    marker = next(p["name"] for p in world.status()["patches"] if "marker" in p["title"])
    text = (world.root / "patches" / f"{marker}.patch").read_text()
    assert "Keeps a decision on record." in text
    assert "2.39" not in text


# -- 14 -------------------------------------------------------------------------------------

ORDERS = [
    line.split("\t")
    for line in (inputs("14") / "orders.tsv").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("order", "outcome", "tree"), ORDERS)
def test_orders(field: Any, tmp_path: Path, order: str, outcome: str, tree: str) -> None:
    world = started(tmp_path / "work", field("14")[0])
    by_number = {p.name[1]: p for p in patches("14")}
    listed(world, [by_number[n] for n in order], [f"p{n}" for n in order])
    said = rows(world, "check")
    if outcome == "ok":
        world.ok("apply")
        assert tree_of(world).startswith(tree)
        assert all(r["status"] in ("ok", "offset") for r in said.values())
        before = world.files()
        world.ok("refresh")
        assert world.files() == before
        return
    before = state(world)
    name = outcome.removeprefix("conflict ")
    ran = world.fails("apply", says=f"{name} does not apply")
    assert "a.txt" in ran.err
    assert state(world) == before
    bad = [n for n, r in said.items() if r["status"] in ("conflict", "blocked")]
    assert bad[0] == name
    assert "a.txt" in str(said[name]["detail"])


def test_drop_says_who_needs_it(moved: Any) -> None:
    world = moved("14")
    before = state(world)
    world.fails("drop", "p1", says="p2 needs p1")
    assert state(world) == before
    world.ok("drop", "p3")
    assert tree_of(world).startswith("f6323e0b0067")  # order 124
    world.fails("drop", "p2", says="p4 needs p2")


# -- 15 -------------------------------------------------------------------------------------


def test_files_added_on_both_sides(moved: Any) -> None:
    world = moved("15")
    said = rows(world, "check", "--onto", "main")
    assert [r["status"] for r in said.values()] == ["landed", "conflict", "conflict", "conflict"]
    by = "src : add three files and a directory (#121)"
    details = {n: str(r["detail"]) for n, r in said.items()}
    assert "add/add" in details["p2"]
    assert "src/diff.txt" in details["p2"]
    assert by in details["p2"]
    assert "src/tool.sh" in details["p3"]
    assert "100755" in details["p3"]
    assert "src/extra" in details["p4"]
    assert "src/extra/one.txt" in details["p4"]


@pytest.mark.parametrize("number", ["1", "2", "3", "4"])
def test_each_added_file_alone(field: Any, tmp_path: Path, number: str) -> None:
    world = started(tmp_path / "work", field("15")[0])
    chosen = patches("15")[int(number) - 1]
    name = listed(world, [chosen], [f"p{number}"])[0]
    world.ok("apply")
    before = state(world)
    if number == "1":
        world.ok("rebase", "--onto", "main")
        assert tree_of(world) == main_tree(world)
        assert world.git("rev-list", "--count", "refs/hexpatch/base..HEAD") == "0"
        return
    world.conflicts("rebase", "--onto", "main", says=name)
    world.ok("rebase", "--abort")
    assert state(world) == before
    assert world.git("status", "--porcelain", "--ignored") == ""
    world.conflicts("rebase", "--onto", "main")
    world.ok("rebase", "--skip")
    assert tree_of(world) == main_tree(world)
    assert world.git("status", "--porcelain", "--ignored") == ""
    assert not list((world.checkout / "src").glob("extra~*"))


# -- 25 -------------------------------------------------------------------------------------


def test_a_merge_is_refused_with_what_would_be_lost(field: Any, tmp_path: Path) -> None:
    world = started(tmp_path / "work", field("25")[0])
    before = state(world)
    ran = world.fails("import", "stack", says="Merge branch side into stack")
    assert "a.txt" in ran.err
    assert "c.txt" in ran.err
    assert state(world) == before
    ran = world.fails("import", "base..stack", says="Merge branch side into stack")
    ran = world.fails("import", "stack-sync", says="Merge branch main into stack-sync")
    assert "rebase" in ran.err
    assert state(world) == before


def test_a_merge_in_the_checkout_is_refused(field: Any, tmp_path: Path) -> None:
    world = started(tmp_path / "work", field("25")[0])
    world.ok("apply")
    world.git("fetch", "-q", str(world.upstream), "stack")
    world.git("reset", "-q", "--hard", "FETCH_HEAD")
    before = state(world)
    world.fails("refresh", says="Merge branch side into stack")
    assert state(world) == before


# -- 28 -------------------------------------------------------------------------------------


def test_patches_for_another_layout_are_refused(field: Any, tmp_path: Path) -> None:
    upstream, case = field("28")
    world = started(tmp_path / "work", upstream / "llama")
    before = state(world)
    ran = world.fails("import", *map(str, sorted((case / "in").glob("*.patch"))))
    assert "does not exist" in ran.err
    assert state(world) == before
    world.ok("import", *map(str, sorted((case / "want").glob("*.patch"))))
    assert tree_of(world) == "9c144f4855137896c0b2ee7c74ed6d7ebd6309ea"


LAYOUT = ("src/=ggml/src/", "include/=ggml/include/", "CMakeLists.txt=ggml/CMakeLists.txt")


def test_patches_for_another_layout_are_mapped(field: Any, tmp_path: Path) -> None:
    upstream, case = field("28")
    mails = [str(mail) for mail in sorted((case / "in").glob("*.patch"))]
    world = started(tmp_path / "work", upstream / "llama")
    before = state(world)
    rules = [word for rule in LAYOUT for word in ("--map", rule)]
    ran = world.fails("import", *mails, *rules)
    assert "no --map says where tests/test-rows.c goes" in ran.err
    assert "`--map tests/=...`" in ran.err
    assert state(world) == before
    world.ok("import", *mails, *rules, "--map", "tests/=tests/")
    assert tree_of(world) == "9c144f4855137896c0b2ee7c74ed6d7ebd6309ea"
    other = started(tmp_path / "other", upstream / "llama")
    other.ok("import", *map(str, sorted((case / "want").glob("*.patch"))))
    assert world.files() == other.files()


@pytest.mark.parametrize("rule", ["src", "=x/", "src/=", "src/=ggml/src", "src=ggml/"])
def test_a_map_that_is_none(field: Any, tmp_path: Path, rule: str) -> None:
    upstream, case = field("28")
    world = started(tmp_path / "work", upstream / "llama")
    assert world.run("import", *map(str, (case / "in").glob("*")), "--map", rule).code == 2
    assert world.run("import", "base..base", "--map", "src/=ggml/src/").code == 2
