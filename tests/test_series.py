"""series.yaml: what is accepted, what is refused and with which words, and how fast."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hexpatch import series, seriesrules, yamltree
from hexpatch.errors import HexpatchError, InvalidSeries

CASES = Path(__file__).parent / "field" / "21-series-yaml"
SHA = "c59d4bc99d3dbe9c8d69486d931b3dfa495f95a5"


@pytest.fixture
def world(tmp_path: Path) -> Path:
    shutil.copytree(CASES / "patches", tmp_path / "patches")
    return tmp_path


def load(root: Path, text: str | bytes) -> series.Series:
    (root / "series.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    return series.load(root)


def refused(root: Path, text: str | bytes) -> str:
    with pytest.raises(InvalidSeries) as caught:
        load(root, text)
    assert all(p.path == "series.yaml" for p in caught.value.problems)
    return str(caught.value)


def entries(*lines: str) -> str:
    """A file whose patches list holds these lines."""
    return "base: v1\npatches:\n" + "".join(f"  {line}\n" for line in lines)


# --- the field cases

ACCEPTED = {
    "00-good": (SHA, ["p1", "p2"]),
    "01-good-empty-list": (SHA, []),
    "07-orphan-on-disk": (SHA, ["p1"]),
    "12-list-is-null": (SHA, []),
    "15-all-digit-base": ("1234567890123456789012345678901234567890", ["p1"]),
    "16-octal-base": ("0123456701234567012345670123456701234567", ["p1"]),
    "17-exponent-base": ("1e10", ["p1"]),
    "29-bom": (SHA, ["p1", "p2"]),
    "30-crlf": (SHA, ["p1", "p2"]),
}
REFUSED = {
    "02-dup-key-list": ":5:1: key patches twice (lines 3 and 5)",
    "03-dup-key-in-entry": ":5:5: key file twice (lines 4 and 5)",
    "04-same-patch-twice": ":5:5: p1.patch is listed twice (lines 4 and 5)",
    "05-same-patch-other-spelling": ":5:5: p1.patch is listed twice (lines 4 and 5)",
    "06-missing-file": ":5:11: nowhere: patches/nowhere.patch does not exist",
    "08-dotdot-file": ":4:11: entry 1: file ../../outside/p.patch leads out of",
    "09-absolute-file": ":4:11: entry 1: file /etc/hostname is an absolute path",
    "10-list-is-map": ":4:3: patches must be a list",
    "11-list-is-string": ":3:10: patches must be a list",
    "13-entry-is-int": ":4:5: entry 1 must be a name or a mapping",
    "14-file-is-list": ":4:11: entry 1: file must be text",
    "18-norway": ":4:11: entry 1: file no must end in .patch",
    "19-date": ":1:10: version must be a number",
    "20-unknown-key": ":5:5: unknown key enabeld in entry 1",
    "21-future-version": ":1:10: version 999 is newer than this tool",
    "22-anchor-alias": ":4:5: anchors are not allowed (&a)",
    "23-alias-bomb": ":5:5: anchors are not allowed (&a0)",
    "24-merge-key-bomb": ":5:5: anchors are not allowed (&m0)",
    "25-deep-nesting": "nested deeper than 20 levels",
    "26-python-tag": ":4:5: tags are not allowed (!!python/object/apply:os.system)",
    "27-two-documents": ":5:1: more than one document",
    "28-tab-indent": ":4:1: a tab cannot indent",
    "31-latin1": ":4:14: not UTF-8: byte 0xe9 at position 82",
    "32-zero-bytes": "series.yaml: is empty",
    "33-scalar-document": ":1:1: must be a mapping",
    "34-nul-byte": ":3:5: control character '\\x00'",
    "35-utf16": ":1:1: is UTF-16",
    "36-huge-list": ":4:11: q0: patches/q0.patch does not exist",
    "37-file-with-newline": ":4:11: entry 1: file 'p1.patch\\n' holds a control character",
    "38-option-like-file": ":4:11: entry 1: file --exec=touch hexpatch-yaml-ran starts with -",
    "39-case-clash": ":5:11: P1: patches/P1.patch does not exist",
    "40-merge-conflict-marks": ":4:1: holds merge conflict marks",
}


def test_every_field_case_has_an_outcome() -> None:
    rows = (CASES / "table.tsv").read_text().splitlines()[1:]
    names = {row.split("\t")[0] for row in rows}
    assert names == {file.stem for file in (CASES / "yaml").iterdir()}
    assert names == ACCEPTED.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_field_case_is_accepted(world: Path, name: str) -> None:
    found = load(world, (CASES / "yaml" / f"{name}.yaml").read_bytes())
    base, patches = ACCEPTED[name]
    assert found.base == series.Base(base)
    assert [patch.name for patch in found.patches] == patches
    assert [patch.file for patch in found.patches] == [f"{name}.patch" for name in patches]
    left = tuple(f"{p}.patch" for p in ("p1", "p2") if p not in patches)
    assert series.orphans(found) == left


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_field_case_is_refused(world: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    if name == "39-case-clash" and (world / "patches" / "P1.PATCH").exists():
        pytest.skip("needs a disk that knows upper from lower case")
    text = refused(world, (CASES / "yaml" / f"{name}.yaml").read_bytes())
    assert REFUSED[name] in text
    assert len(text) < 3000
    assert len(text.splitlines()) <= 20
    assert not list(world.rglob("hexpatch-yaml-ran"))


LOAD = """
import resource, sys, time
from pathlib import Path
from hexpatch import series
from hexpatch.errors import InvalidSeries
begin = time.process_time()
try:
    series.load(Path(sys.argv[1]))
except InvalidSeries:
    # not ru_maxrss: that starts at the size of the process that forked this one
    peak = next(x for x in open("/proc/self/status") if x.startswith("VmHWM")).split()[1]
    print(time.process_time() - begin, int(peak) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("name", "seconds", "megabytes"),
    [
        ("23-alias-bomb", 2, 200),
        ("24-merge-key-bomb", 2, 200),
        ("25-deep-nesting", 10, 300),
        ("36-huge-list", 10, 300),
    ],
)
def test_limits(world: Path, name: str, seconds: float, megabytes: int) -> None:
    shutil.copy(CASES / "yaml" / f"{name}.yaml", world / "series.yaml")
    run = subprocess.run(
        [sys.executable, "-c", LOAD, str(world)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=Path(series.__file__).parent.parent,
    )
    took, size = run.stdout.split()
    assert float(took) < seconds
    assert int(size) < megabytes


def test_missing_files_are_counted(world: Path) -> None:
    lines = refused(world, (CASES / "yaml" / "36-huge-list.yaml").read_bytes()).splitlines()
    assert lines[-1] == "series.yaml: ... and 19981 more"


# --- speed


def big(root: Path, count: int) -> None:
    (root / "patches").mkdir(exist_ok=True)
    (root / "src" / "htp").mkdir(parents=True, exist_ok=True)
    text = "base: v1\nsrc:\n  htp: ggml/src/ggml-hexagon/htp\npatches:\n"
    for n in range(count):
        (root / "patches" / f"p-{n}.patch").touch()
        (root / "src" / "htp" / f"f{n}.c").touch()
        text += f"  - name: p-{n}\n    why: the reason number {n}\n    files: [src/htp/f{n}.c]\n"
        text += f"    ops: [CPY, ADD]\n    needs: [p-{n - 1}]\n" if n else ""
    (root / "series.yaml").write_text(text)


def seconds(root: Path) -> float:
    def once() -> float:
        begin = time.process_time()
        series.load(root)
        return time.process_time() - begin

    return min(once() for _ in range(5))


def test_hundred_patches_load_fast_and_many_linearly(tmp_path: Path) -> None:
    big(tmp_path, 100)
    small = seconds(tmp_path)
    assert small < 0.1  # 10 ms on the desk; this allows for a slow runner
    big(tmp_path, 1000)
    assert seconds(tmp_path) < 40 * small


# --- the whole form

FULL = f"""
version: 1
upstream:
  url: git@github.com:ggml-org/llama.cpp.git
  branch: release/b1
  repo: ../llama.cpp
base:
  name: 0c1e57098
  commit: {SHA}
  tree: "{"1" * 40}"
  snapshot: npm:node-llama-cpp@3.22.1
sources: [snapshot, clone]
src:
  htp: ggml/src/ggml-hexagon/htp
  htp/deep: deep
strip_trailers: [Internal-Note]
patches:
  - name: p1
    why: >
      one line
    files: [src/htp/a.c, src/tests/t.c]
    ops: [CONCAT, CPY_2]
    state: landed
    landed: v0.5.0
    pr: "#12345"
  - file: p2.patch
    needs: [p1]
    state: sent
    pr: https://github.com/ggml-org/llama.cpp/pull/1
groups:
  - name: rope
    title: "hexagon : add rope"
    patches: [p2]
    branch: user/rope
targets:
  cpu: {{ops: [ADD], jobs: 2, timeout: 900}}
  sim:sm7750:
    model: "2"
"""


def test_full_form(world: Path) -> None:
    found = load(world, FULL)
    assert found == series.Series(
        root=world,
        upstream=series.Upstream(
            "git@github.com:ggml-org/llama.cpp.git", "release/b1", world.parent / "llama.cpp"
        ),
        base=series.Base("0c1e57098", SHA, "1" * 40, "npm:node-llama-cpp@3.22.1"),
        sources=("snapshot", "clone"),
        src=(("htp", "ggml/src/ggml-hexagon/htp"), ("htp/deep", "deep")),
        strip_trailers=("Internal-Note",),
        patches=(
            series.Patch(
                name="p1",
                file="p1.patch",
                why="one line",
                files=("src/htp/a.c", "src/tests/t.c"),
                ops=("CONCAT", "CPY_2"),
                state="landed",
                pr="12345",
                landed="v0.5.0",
            ),
            series.Patch(
                name="p2",
                file="p2.patch",
                needs=("p1",),
                state="sent",
                pr="https://github.com/ggml-org/llama.cpp/pull/1",
            ),
        ),
        groups=(series.Group("rope", "hexagon : add rope", ("p2",), "user/rope"),),
        targets=(
            series.Target("cpu", {"ops": ("ADD",), "jobs": 2, "timeout": 900}),
            series.Target("sim:sm7750", {"model": "2"}),
        ),
    )
    assert [patch.name for patch in found.active] == ["p2"]


def test_defaults(world: Path) -> None:
    found = load(world, "base: master~3\npatches:\n  - p1\n  - name: p2\n    pr:\n")
    assert found.upstream == series.Upstream(series.DEFAULT_URL, "master", None)
    assert found.sources == ("clone", "remote", "snapshot")
    assert found.patches == (series.Patch("p1", "p1.patch"), series.Patch("p2", "p2.patch"))


def test_clone_in_home(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    found = load(world, "upstream: {repo: ~/llama.cpp}\nbase: v1\npatches: []\n")
    assert found.upstream.repo == Path("/home/me/llama.cpp")


def test_patch_by_name(world: Path) -> None:
    found = load(world, entries("- p1", "- p2"))
    assert found.patch("p2").file == "p2.patch"
    with pytest.raises(HexpatchError, match="no patch named pp1") as caught:
        found.patch("pp1")
    assert caught.value.hint == "did you mean p1?"


def test_paths_go_upstream_and_back(world: Path) -> None:
    found = series.parse(FULL.encode(), world, disk=False)
    there = {
        "src/htp/a.c": "ggml/src/ggml-hexagon/htp/a.c",
        "src/htp/deep/a.c": "deep/a.c",
        "src/tests/t.c": "tests/t.c",
    }
    for own, up in there.items():
        assert found.upstream_path(own) == up
        assert found.src_file(up) == own
    assert found.upstream_path("src/htpx/a.c") == "htpx/a.c"
    assert found.src_file("htpx/a.c") is None
    assert found.src_file("ggml/src/ggml-hexagon/htp/deep/a.c") is None
    with pytest.raises(HexpatchError):
        found.upstream_path("lib/a.c")


def test_no_series(tmp_path: Path) -> None:
    with pytest.raises(HexpatchError, match=r"no series\.yaml") as caught:
        series.load(tmp_path)
    assert "init" in (caught.value.hint or "")


# --- what is refused

WRONG = [
    ("patches: []", ":1:1: base is missing"),
    ("base: v1", ":1:1: patches is missing"),
    ("base:\npatches: []", "base must be text"),
    ("base: {tree: x}\npatches: []", "base.name is missing"),
    ("base: [v1]\npatches: []", "base must be text"),
    ("base: {name: v1, tree: ABC}\npatches: []", "base.tree ABC is not an id of 40 lower-case"),
    ("base: -v1\npatches: []", "base -v1 "),
    ("base: a b\npatches: []", "base a b "),
    ("base: {name: v1, snapshot: 'pypi:x'}\npatches: []", "base.snapshot pypi:x is not like"),
    ("base: v1\npatchs: []", "unknown key patchs in series.yaml (did you mean patches?)"),
    ("version: 0\nbase: v1\npatches: []", "there is no version 0"),
    ("version: [1]\nbase: v1\npatches: []", "version must be a number"),
    ("version: 99999999999999999999\nbase: v1\nother: 1", "is newer than this tool"),
    ("<<: {a: b}\nbase: v1\npatches: []", ":1:1: merge keys are not allowed"),
    ("? [a]\n: b\nbase: v1\npatches: []", "a key must be text"),
    ("base: v1\npatches: [*a]", ":2:11: aliases are not allowed (*a)"),
    ("base: !!str v1\npatches: []", "tags are not allowed (!!str)"),
    ("base: 'v1\npatches: []", "not valid YAML"),
    ('base: "\\ud800"\npatches: []', "not valid YAML"),
    ("[a]", "must be a mapping (lines of `key: value`), not a list"),
    ("# only a comment\n", "is empty"),
    ("---\n", "is empty"),
    ("base: v1\npatches: []\nsources: [git]", "sources: git is none of clone, remote, snapshot"),
    ("base: v1\npatches: []\nsources: [clone, clone]", "sources: clone twice"),
    ("base: v1\npatches: []\nstrip_trailers: [a b]", "strip_trailers: a b"),
    ("base: v1\npatches: []\nupstream: {branch: a..b}", "upstream.branch a..b"),
    ("base: v1\npatches: []\nupstream: []", "upstream must be a mapping"),
    ("base: v1\npatches: []\nupstream: {brunch: a}", "unknown key brunch in upstream"),
    ("base: v1\npatches: []\nsrc: {htp: ../x}", "src: htp: ../x leads out"),
    ("base: v1\npatches: []\nsrc: {/htp: x}", "src: /htp is an absolute path"),
    ("base: v1\npatches: []\nsrc: {a: x, b: x/}", "mapped twice"),
    ("base: v1\npatches: []\ntargets: {cpu: {timeot: 1}}", "did you mean timeout?"),
    ("base: v1\npatches: []\ntargets: {cpu: {jobs: many}}", "jobs must be a whole number"),
    ("base: v1\npatches: []\ntargets: {cpu: {ops: [add]}}", "cpu: ops: add"),
    ("base: v1\npatches: []\ntargets: [cpu]", "targets must be a mapping"),
    (entries("- why: x"), "entry 1 has neither name nor file"),
    (entries("-"), "entry 1 must be a name or a mapping"),
    (entries("- p1.patch"), "is a file name; write `file: p1.patch`"),
    (entries("- name: Up"), "name Up must be kebab-case"),
    (entries("- name: a--b"), "name a--b must be kebab-case"),
    (entries("- name: " + "a" * 61), "must be kebab-case"),
    (entries("- {name: p1, file: p2.patch}"), "file p2.patch is not of name p1"),
    (entries("- {name: p1, group: g}"), "unknown key group in entry 1"),
    (entries("- {name: p1, stat: x}"), "(did you mean state?)"),
    (entries("- file: a\\b.patch"), "holds a backslash"),
    (entries("- file: .git/p1.patch"), "leads into .git"),
    (entries("- file: .GIT/p1.patch"), "leads into .git"),
    (entries('- file: ".g\\u200dit/p1.patch"'), "holds a control character"),
    (entries("- file: .p1.patch"), "may only hold"),
    (entries("- file: C:p1.patch"), "is an absolute path"),
    (entries("- {name: p1, why: [a]}"), "why must be text"),
    (entries('- {name: p1, why: "a\\nb"}'), "why 'a\\nb' holds a control character"),
    (entries("- {name: p1, needs: p2}"), "needs must be a list"),
    (entries("- {name: p1, needs: [pp1]}"), "p1 needs pp1, which is no patch (did you mean p1?)"),
    (entries("- {name: p1, needs: [p1]}"), "p1 needs itself"),
    (entries("- {name: p1, needs: [p2]}", "- p2"), "p1 needs p2, which comes after it"),
    (
        entries("- {name: p1, needs: [p2]}", "- {name: p2, needs: [p1]}"),
        "p1 needs p2, which comes after it, in a circle: p1 -> p2 -> p1",
    ),
    (entries("- {name: p1, ops: [cpy]}"), "ops: cpy"),
    (entries("- {name: p1, ops: [CPY, CPY]}"), "ops: CPY twice"),
    (entries("- {name: p1, state: done}"), "state done is none of draft, ready"),
    (entries("- {name: p1, pr: http://x/1}"), "pr http://x/1 is not a number or an https"),
    (entries("- {name: p1, pr: 0}"), "pr 0 is not a number"),
    (entries("- {name: p1, files: [a.c]}"), "files: a.c must be in src/"),
    (entries("- {name: p1, files: [src/../a.c]}"), "files: src/../a.c leads out"),
    (entries("- {name: p1, files: [src//a.c]}"), "must be written src/a.c"),
    (entries("- {name: p1, files: [src/none.c]}"), "p1: src/none.c does not exist"),
    (entries("- {name: p1, files: [src]}"), "must be in src/"),
    (entries("- {name: p1, files: [src/a.c, src/a.c]}"), "files: src/a.c twice"),
    (entries("- {name: p1, files: [src/d]}"), "p1: src/d is not a regular file"),
    (
        entries("- {name: p1, files: [src/a.c]}", "- {name: p2, files: [src/a.c]}"),
        "src/a.c belongs to p1 and to p2",
    ),
    (
        entries("- {name: p1, files: [src/a.c, src/x/a.c]}") + "src: {x: .}",
        "src: x: . is not a file",
    ),
    (
        entries("- {name: p1, files: [src/d/a.c, src/x/a.c]}") + "src: {x: d}",
        "src/x/a.c and src/d/a.c (of p1) are both d/a.c upstream",
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[m for _, m in WRONG])
def test_refused(world: Path, text: str, message: str) -> None:
    (world / "src" / "d").mkdir(parents=True)
    (world / "src" / "x").mkdir()
    for file in ("a.c", "d/a.c", "x/a.c"):
        (world / "src" / file).touch()
    found = refused(world, text)
    assert message in found
    assert len(found.splitlines()) <= 2


GROUPS = [
    ("[{patches: [p1]}]", "group 1 has no name"),
    ("[{name: g}]", "group g has no patches"),
    ("[{name: g, patches: []}]", "group g has no patches"),
    ("[{name: g, patches: [pp1]}]", "group g: pp1 is no patch (did you mean p1?)"),
    ("[{name: g, patches: [p1]}, {name: h, patches: [p1]}]", "p1 is in two groups, g and h"),
    ("[{name: g, patches: [p1]}, {name: g, patches: [p2]}]", "group g twice"),
    ("[{name: g, patches: [p1], branch: -x}]", "branch -x starts"),
    ("[{name: g, patches: [p1]}, {name: g/a, patches: [p2]}]", "is in the way of that of g"),
    ("[{name: g/a, patches: [p1]}, {name: g, patches: [p2]}]", "is in the way of that of g/a"),
    ("[{name: g, patches: [p1, p3]}]", "group g: p3 is private"),
    ("[{name: g, pathces: [p1]}]", "unknown key pathces in group 1"),
    ("{name: g}", "groups must be a list"),
]


@pytest.mark.parametrize(("text", "message"), GROUPS, ids=[m for _, m in GROUPS])
def test_group_refused(world: Path, text: str, message: str) -> None:
    (world / "patches" / "p3.patch").touch()
    head = entries("- p1", "- p2", "- {name: p3, state: private}")
    assert message in refused(world, head + f"groups: {text}\n")


def test_all_problems_at_once_in_file_order(world: Path) -> None:
    text = "bse: v1\npatches:\n- p1\n- nope\n- {name: p2, ops: [x]}\n- name: p2\n  name: p3\n"
    found = refused(world, text)
    assert [line.split(":")[1] for line in found.splitlines()] == ["1", "1", "4", "5", "6", "7"]


def test_landed_files_live_upstream(world: Path) -> None:
    found = load(world, entries("- {name: p1, state: landed, files: [src/gone.c]}"))
    assert found.patches[0].files == ("src/gone.c",)


def test_links_may_not_lead_out(world: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x.patch").touch()
    (world / "patches" / "out.patch").symlink_to(outside / "x.patch")
    (world / "patches" / "in.patch").symlink_to("p1.patch")
    (world / "patches" / "dir").symlink_to(outside)
    (world / "patches" / "hole.patch").symlink_to("nowhere")
    (world / "patches" / "near").symlink_to(".")
    assert load(world, entries("- file: near/p1.patch")).patches[0].name == "p1"
    assert "in.patch is a link: the file itself" in refused(world, entries("- in"))
    assert "leads out of the repository" in refused(world, entries("- out"))
    assert "leads out of the repository" in refused(world, entries("- file: dir/x.patch"))
    assert "hole.patch does not exist" in refused(world, entries("- hole"))


REFS = {
    "good": "a a/b a-b a.b é a@b v1.0 HEADS user/x.y",
    "bad": "-a /a a/ a. a..b a~b a^b a:b a?b a*b a[b a\\b a@{b a//b .a a/.b a.lock a.lock/b HEAD",
}


def test_branch_names_like_git(tmp_path: Path) -> None:
    for name in [*REFS["good"].split(), *REFS["bad"].split(), "a b", "a\x7fb", "a\nb", ""]:
        git = subprocess.run(
            ["git", "check-ref-format", "--branch", name],
            capture_output=True,
            check=False,
            cwd=tmp_path,
        )
        assert (seriesrules.ref_fault(name) is None) == (git.returncode == 0), name
    assert seriesrules.ref_fault("@")  # git reads it as HEAD


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://github.com/x/y.git", True),
        ("ssh://git@host:22/x", True),
        ("git://host/x", True),
        ("file:///srv/x", True),
        ("git@host:x/y.git", True),
        ("host:x", True),
        ("../llama.cpp", True),
        ("/srv/llama.cpp", True),
        ("ext::sh -c x", False),
        ("ext::sh", False),
        ("fd::17", False),
        ("--upload-pack=x", False),
        ("ssh://-oProxyCommand=x/y", False),
        ("ssh://u@-oProxyCommand=x/y", False),
        ("u@-oProxyCommand=x:y", False),
        ("http://host/x", False),
        ("a\nb", False),
    ],
)
def test_urls(url: str, good: bool) -> None:
    assert (seriesrules.url_fault(url) is None) == good


def test_tree_without_libyaml(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import yaml

    monkeypatch.delattr(yaml, "CLoader", raising=False)
    for name, message in REFUSED.items():
        if name not in ("36-huge-list", "39-case-clash"):
            text = refused(world, (CASES / "yaml" / f"{name}.yaml").read_bytes())
            assert message in text, name
    assert load(world, FULL).patch("p2")


def test_scalars_stay_text() -> None:
    found = yamltree.parse(b"a: [1e10, 0777, no, 2024-01-01, ~, '~', \"\", .5]\n").root
    assert yamltree.plain(found) == {"a": ["1e10", "0777", "no", "2024-01-01", None, "~", "", ".5"]}
