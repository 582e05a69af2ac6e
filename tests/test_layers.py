"""Imports point down the layers, and each outside thing has one place that talks to it."""

from __future__ import annotations

import ast
from pathlib import Path

import hexpatch

PACKAGE = Path(hexpatch.__file__).parent
LAYERS = [
    "errors litter workspace proc difftree",
    "objects reader repo owned textmerge catalogue archive shallow snapshots remote borrow sources",
    "yamlnode yamltree yamlquote yamledit seriesmodel seriesrules seriescheck series "
    "seriesedit seriesorder lockfile "
    "diffpath binpatch filediff hunks plaindiff gitdiff maildate mailfield mailbody header "
    "patchfile mail",
    "rows splices tree place attributes drift pick merge stack regions resolutions "
    "oplog putback checkout trace landed culprit walk session refresh rebase apply conflict "
    "edited starting incoming adding newpatch dropping taking undoing",
    "sim.asmtext sim.asmhmx sim.asmrules sim.irmask sim.idlread sim.idl sim.cclink sim.cc sim.root "
    "sim.inspectasm sim.inspect sim.devices "
    "asked build tbo tborun compare evidence reportfile validate simbuild faults knownfail simkept "
    "simrun simflaky simvalidate estimate bench inspecting report check fit "
    "titles content checklist changelog prbranch exportdir export part prove",
    "render edge quick cliroot cliseries clistack cliproof cli __main__",
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names.split()}


def imports(path: Path) -> set[str]:
    """Modules of ours, and top-level packages, that a file imports anywhere at run time."""
    found: set[str] = set()
    tree = ast.parse(path.read_text())
    checking = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in checking:
            continue
        if isinstance(node, ast.Import):
            found |= {n.name for n in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module in ("hexpatch", "hexpatch.sim"):
                found |= {f"{node.module}.{n.name}" for n in node.names}
    return found


def modules() -> dict[str, set[str]]:
    flat = {p.stem: imports(p) for p in PACKAGE.glob("*.py") if p.stem != "__init__"}
    simulator = (p for p in (PACKAGE / "sim").glob("*.py") if p.stem != "__init__")
    return {**flat, **{f"sim.{p.stem}": imports(p) for p in simulator}}


def test_every_module_has_a_layer() -> None:
    assert set(modules()) <= set(RANK), set(modules()) - set(RANK)


def test_imports_point_down() -> None:
    wrong = [
        f"{name} imports {other}"
        for name, used in modules().items()
        for other in (u.removeprefix("hexpatch.") for u in used if u.startswith("hexpatch."))
        if other in RANK and RANK[other] > RANK[name]
    ]
    assert not wrong


def test_one_place_for_each_outside_thing() -> None:
    places = {
        "git": {"repo"},
        "click": {"cliroot", "cliseries", "clistack", "cliproof"},
        # programs: through proc, but for git's own long-lived ones and downloads with a progress
        "subprocess": {"proc", "repo", "reader", "snapshots", "sim.cc", "sim.cclink"},
    }
    for name, used in modules().items():
        for package, allowed in places.items():
            tops = {u.partition(".")[0] for u in used}
            assert package not in tops or name in allowed, f"{name} imports {package}"


def test_only_the_edge_prints() -> None:
    """`render` alone writes to the terminal: it knows --quiet, colours and control characters."""
    for path in PACKAGE.glob("*.py"):
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        said = {ast.unparse(c.func) for c in calls}
        writers = {"print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write"}
        assert not said & writers, path
