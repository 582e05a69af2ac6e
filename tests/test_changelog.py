"""Changelog: content counts, a plain rebase changes nothing, and nothing private is listed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import World, commit, edit, git

from hexpatch import changelog, content, export
from hexpatch.changelog import Changes
from hexpatch.errors import HexpatchError
from hexpatch.patchfile import parse_diff
from hexpatch.session import opened

pytestmark = pytest.mark.slow  # the rest of the suite stays quick without it


@pytest.fixture
def grouped(stacked: World) -> World:
    """The three patches, two of them in groups, committed in the user's own repository."""
    edit(
        stacked.root / "series.yaml",
        "groups: []\n",
        "groups:\n  - name: hook\n    patches: [hexagon-hook-a]\n"
        "  - name: kernel\n    patches: [hexagon-add-a-kernel]\n",
    )
    stacked.ok("apply")
    git(stacked.root, "init", "-q")
    release(stacked, "r1")
    return stacked


def release(world: World, tag: str) -> None:
    git(world.root, "add", "-A")
    git(world.root, "commit", "-q", "-m", tag)
    git(world.root, "tag", tag)


def since(world: World, rev: str | None = None, **options: Any) -> list[Changes]:
    with opened(world.root, "hexpatch changelog", lambda text: None, write=False) as session:
        return changelog.since(session, rev, **options)


def rows(parts: list[Changes]) -> list[tuple[str, str]]:
    return [(e.name, e.status) for part in parts for e in part.entries]


def export_all(world: World, **options: Any) -> None:
    with opened(world.root, "hexpatch export", lambda text: None) as session:
        export.run(session, **options)


def change(world: World, name: str, old: str, new: str) -> None:
    edit(world.root / "patches" / f"{name}.patch", old, new)
    world.ok("apply")


UNCHANGED = [
    ("hexagon-hook-a", "unchanged"),
    ("hexagon-add-a-kernel", "unchanged"),
    ("tests-add-a-case", "unchanged"),
]


def test_the_whole_series_is_new_before_any_export(grouped: World) -> None:
    parts = since(grouped)
    assert [part.title for part in parts] == ["the whole series"]
    assert {status for _, status in rows(parts)} == {"new"}


def test_a_plain_rebase_lists_nothing(grouped: World) -> None:
    export_all(grouped)
    grouped.ok("rebase", "--onto", "v2")
    assert rows(since(grouped, "r1")) == UNCHANGED
    text = grouped.ok("changelog", "--since", "r1").out
    assert text == "## since r1\n\n- base: v1 -> v2\n- unchanged: 3\n"
    (part,) = changelog.as_json(since(grouped, "r1"))
    assert (part["title"], part["base"]) == ("since r1", {"before": "v1", "after": "v2"})
    assert [(p["name"], p["status"]) for p in part["patches"]] == UNCHANGED
    assert json.loads(grouped.ok("changelog", "--since", "r1", "--json").out) == [part]
    assert rows(since(grouped))[:2] == UNCHANGED[:2]
    export_all(grouped)
    assert [p.title for p in since(grouped)][:2] == ["hook, since v1", "kernel, since v1"]


def test_changed_new_dropped(grouped: World) -> None:
    kernel = grouped.root / "src/htp/kernel.c"
    edit(kernel, "return 1", "return 2")
    grouped.ok("apply")
    commit(grouped, "docs : more", README__md="# more\n")
    grouped.ok("refresh")
    grouped.ok("drop", "tests-add-a-case")
    assert rows(since(grouped, "r1")) == [
        ("hexagon-hook-a", "unchanged"),
        ("hexagon-add-a-kernel", "changed"),
        ("docs-more", "new"),
        ("tests-add-a-case", "dropped"),
    ]
    text = grouped.ok("changelog", "--since", "r1").out
    assert "- changed: hexagon-add-a-kernel: `hexagon : add a kernel` (files)\n" in text
    assert "- dropped: tests-add-a-case: `tests : add a case`\n" in text


def test_a_new_message_is_a_change(grouped: World) -> None:
    change(grouped, "hexagon-hook-a", "hexagon : hook a", "hexagon : hook an a")
    (part,) = since(grouped, "r1")
    assert next((e.status, e.detail) for e in part.entries) == ("changed", "message")


def test_since_each_groups_last_export(grouped: World) -> None:
    export_all(grouped)
    change(grouped, "hexagon-hook-a", "+hook a", "+hook b")
    hook, kernel, rest = since(grouped)
    assert hook.title == "hook, since v1"
    assert rows([hook, kernel]) == [
        ("hexagon-hook-a", "changed"),
        ("hexagon-add-a-kernel", "unchanged"),
    ]
    assert rest.title == "never exported"
    export_all(grouped)
    assert rows(since(grouped))[0] == ("hexagon-hook-a", "unchanged")
    assert [part.title for part in since(grouped, "v1")] == ["hook, since v1", "kernel, since v1"]
    assert rows(since(grouped, "v1"))[0] == ("hexagon-hook-a", "changed")
    assert [part.title for part in since(grouped, "v2")] == ["hook, since v2"]


def test_since_an_operation(grouped: World) -> None:
    change(grouped, "hexagon-hook-a", "+hook a", "+hook b")
    first = grouped.ok("log", "--json").json
    ids = [
        entry.get("id", entry.get("operation"))
        for entry in (first["operations"] if isinstance(first, dict) else first)
    ]
    assert rows(since(grouped, ids[0])) == UNCHANGED
    assert rows(since(grouped, ids[1]))[0] == ("hexagon-hook-a", "changed")


def test_an_unknown_point_in_time(grouped: World) -> None:
    with pytest.raises(HexpatchError, match=r"no export, no commit of .* and no operation"):
        since(grouped, "nonsense")
    with pytest.raises(HexpatchError):
        since(grouped, "v9")


def test_a_series_in_a_subfolder(grouped: World, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    subprocess.run(["cp", "-r", str(grouped.root), str(outer / "sub")], check=True)
    subprocess.run(["rm", "-rf", str(outer / "sub/.git")], check=True)
    sub = World(outer / "sub", grouped.upstream)
    git(outer, "add", "-A")
    git(outer, "commit", "-q", "-m", "start")
    assert rows(since(sub, "HEAD")) == UNCHANGED


def test_a_commit_before_the_series(grouped: World) -> None:
    empty = git(grouped.root, "commit-tree", git(grouped.root, "mktree"), "-m", "nothing")
    with pytest.raises(HexpatchError, match=r"has no series\.yaml"):
        since(grouped, empty)


def test_landed(grouped: World) -> None:
    edit(
        grouped.root / "series.yaml",
        "  - name: hexagon-hook-a\n",
        "  - name: hexagon-hook-a\n    landed: v2\n",
    )
    (part,) = since(grouped, "r1")
    assert next((e.name, e.status, e.detail) for e in part.entries) == (
        "hexagon-hook-a",
        "landed",
        "in v2",
    )


def test_renamed_is_no_change(grouped: World) -> None:
    (grouped.root / "patches/hexagon-hook-a.patch").rename(grouped.root / "patches/hook.patch")
    path = grouped.root / "series.yaml"
    path.write_text(path.read_text().replace("hexagon-hook-a", "hook"))
    (part,) = since(grouped, "r1")
    assert part.entries[0].status == "unchanged"
    assert "- renamed: hook was hexagon-hook-a" in changelog.to_markdown([part])


def test_private_patches_are_not_listed(grouped: World) -> None:
    edit(
        grouped.root / "series.yaml",
        "  - name: tests-add-a-case\n",
        "  - name: tests-add-a-case\n    state: private\n",
    )
    grouped.ok("apply")
    change(grouped, "tests-add-a-case", "+case new", "+case secret")
    (part,) = since(grouped, "r1")
    assert rows([part])[-1] == ("tests-add-a-case", "dropped")
    assert part.hidden == 1
    release(grouped, "r2")
    change(grouped, "tests-add-a-case", "+case secret", "+case hidden")
    (part,) = since(grouped, "r2")
    assert rows([part]) == UNCHANGED[:2]
    assert "tests" not in changelog.to_markdown([part])
    assert rows(since(grouped, "r2", private=True))[-1] == ("tests-add-a-case", "changed")


# --- content

ONE = b"""\
diff --git a/f b/f
index 1111111..2222222 100644
--- a/f
+++ b/f
@@ -1,3 +1,3 @@ here
 a
-b
+c
 d
"""


def runs(diff: bytes) -> object:
    (parsed,) = parse_diff(diff, "one")
    return content._file(parsed, diff)


def test_context_and_place_do_not_count() -> None:
    moved = ONE.replace(b"@@ -1,3 +1,3 @@ here", b"@@ -7,3 +9,3 @@ there").replace(b" a\n", b" x\n")
    assert runs(moved) == runs(ONE)
    assert runs(ONE.replace(b"1111111", b"3333333")) == runs(ONE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"+c", b"+e"),
        (b"-b", b"-e"),
        (b"+c\n", b"+c\n\\ No newline at end of file\n"),
        (
            b"index 1111111..2222222 100644",
            b"old mode 100644\nnew mode 100755\nindex 11111111..2222222",
        ),
    ],
)
def test_lines_and_modes_count(old: bytes, new: bytes) -> None:
    other = ONE.replace(old, new)
    if b"newline" in new:
        other = other.replace(b"\n d\n", b"\n").replace(b"@@ -1,3 +1,3", b"@@ -1,2 +1,2")
    assert runs(other) != runs(ONE)


def test_a_new_file_is_the_same_in_a_hunk_and_in_src() -> None:
    diff = (
        b"diff --git a/n b/n\nnew file mode 100755\nindex 0000000..1111111\n--- /dev/null\n"
        b"+++ b/n\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n"
    )
    assert runs(diff) == content._owned(b"n", 0o100755, b"one\ntwo")
