"""Parts of diffs: which paths are refused, binary data, path mapping; and patch names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_patchfile import FIELD, GOOD, PATCHES, git, section

from hexpatch.binpatch import BadBinary, apply_delta
from hexpatch.errors import HexpatchError
from hexpatch.patchfile import (
    BinaryHunk,
    FileDiff,
    apply_binary,
    check_path,
    map_paths,
    parse_diff,
    parse_patch,
    slug,
)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


# -- unsafe paths ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        b"", b"/etc/passwd", b"../x", b"a/../x", b"a/..", b"./a", b"a/./b", b"a//b", b"a/",
        b".git/config",
        b"a/.git/hooks/x", b".GIT/x", b".Git", b".git /x", b".git./x", b".git . /x", b"git~1/x",
        b"GIT~1",
        ".g\u200cit/x".encode(), "\ufeff.git".encode(), b"a\0b", b"a\nb", b"a\rb", b"a\x1bb",
        b"a\x7fb",
        b"a\\..\\..\\x", b"\\x", b"C:/x", b"c:x", b".git\\config", b".git::$INDEX_ALLOCATION/x",
    ],
)  # fmt: skip
def test_unsafe_paths(path: bytes) -> None:
    with pytest.raises(HexpatchError) as caught:
        check_path(path, "patches/x.patch")
    assert caught.value.message.startswith("patches/x.patch: unsafe path ")
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    "path",
    [
        b"a", b"ggml/src/ggml-hexagon/htp/main.c", b".github/x", b".gitignore", b"a/.gitattributes",
        b"...", b"..a", b"a..b/c", b"git", b"x.git/y", "ü/日.c".encode(), b"\xe9.c", b"a b/c d",
        b"@x",
    ],
)  # fmt: skip
def test_safe_paths(path: bytes) -> None:
    check_path(path, "p")


# -- binary ---------------------------------------------------------------------------------


def field_binaries() -> list[FileDiff]:
    found = [parse_patch(p.read_bytes(), p.name).diffs for p in PATCHES if "06-binary" in p.parts]
    return [d for diffs in found for d in diffs]


def test_binary_hunks() -> None:
    made = {d.path: d for d in field_binaries() if d.binary and d.kind == "add"}
    rope = made[b"tests/data/rope.bin"]
    assert rope.binary is not None
    assert rope.binary[0].method == "literal"
    assert rope.binary[0].size == 256
    assert rope.binary[1] == BinaryHunk("literal", 0, b"")
    after = apply_binary(rope, None, "p")
    assert len(after) == 256
    (gone,) = (d for d in field_binaries() if d.binary and d.kind == "delete")
    assert apply_binary(gone, after, "p") == b""
    with pytest.raises(HexpatchError, match="not the one the patch is for"):
        apply_binary(gone, after + b"x", "p")


def test_binary_delta() -> None:
    before = bytes((i * 7) % 128 for i in range(600)) + b"\0\1\2\0"
    full = [d for d in field_binaries() if d.path.endswith(b"table.bin") and len(d.new_id) == 40]
    after = apply_binary(full[0], before, "p")
    assert len(after) == 604
    assert after != before
    short = [d for d in field_binaries() if d.path.endswith(b"table.bin") and len(d.new_id) < 40]
    with pytest.raises(HexpatchError, match=r"tests/data/table\.bin: .*full ids"):
        apply_binary(short[0], before, "p")


def test_binary_without_data() -> None:
    (diff,) = (d for d in field_binaries() if d.binary_missing)
    assert diff.path == b"tests/data/rope.bin"
    with pytest.raises(HexpatchError, match="not in the patch"):
        apply_binary(diff, None, "p")


def test_binaries_as_git_makes_them(repo: Path) -> None:
    big = bytes((i * i >> 3) & 255 for i in range(200_000))
    versions = [
        b"\0",
        big,
        big[:70_000] + b"\0new" + big[66_000:],
        big[::-1],
        b"\0" + big,
        b"text\n",
    ]
    trees = []
    for version in versions:
        (repo / "f.bin").write_bytes(version)
        git(repo, "add", "-A")
        trees.append(git(repo, "write-tree").decode().strip())
    seen = Counter[str]()
    for old, before in zip(trees, versions, strict=True):
        for new, after in zip(trees, versions, strict=True):
            if before in (after, b"text\n") and after in (before, b"text\n"):
                continue
            (diff,) = parse_diff(git(repo, "diff", "--binary", old, new), "p")
            assert diff.binary is not None
            assert apply_binary(diff, before, "p") == after
            seen[diff.binary[0].method] += 1
    assert seen["delta"] > 3
    assert seen["literal"] > 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"zcmV+b", b"zcmV\"b", "base85"),
        (b"zcmV+b0ssC0", b"acmV+b0ssC0", "as long as it says"),
        (b"zcmV+b0ssC0", b"zcmV+c0ssC0", "zlib"),
        (b"literal 256", b"literal 255", "stated 255 bytes"),
        (b"literal 256", b"letter 256", "literal"),
        (b"G6nY*7F@FI7\n\n", b"G6nY*7F@FI7\nliteral 0\n", "base85"),
    ],
)  # fmt: skip
def test_damaged_binaries(old: bytes, new: bytes, words: str) -> None:
    (path,) = (FIELD / "06-binary/patches").glob("0001-*")
    data = path.read_bytes()
    assert old in data
    with pytest.raises(HexpatchError, match=r"line \d+: tests/data/rope\.bin: ") as caught:
        parse_patch(data.replace(old, new), "p")
    assert words in caught.value.message


@pytest.mark.parametrize(
    "delta", [b"", b"\x05", b"\x03\x05", b"\x03\x02\x00", b"\x03\x02\x91\x02\x05", b"\x03\x01\x02a"]
)
def test_damaged_deltas(delta: bytes) -> None:
    with pytest.raises(BadBinary):
        apply_delta(b"abc", delta)


# -- other layouts --------------------------------------------------------------------------

RULES = [
    (b"src/", b"ggml/src/"),
    (b"include/", b"ggml/include/"),
    (b"CMakeLists.txt", b"ggml/CMakeLists.txt"),
    (b"tests/", b"tests/"),
]


def test_map_paths_gives_the_wanted_patch_and_back() -> None:
    back = [(new, old) for old, new in RULES]
    for path in sorted((FIELD / "28-ggml-paths/in").glob("*.patch")):
        diff = parse_patch(path.read_bytes(), "p").diff
        want = parse_patch((FIELD / "28-ggml-paths/want" / path.name).read_bytes(), "p").diff
        assert map_paths(diff, RULES, "p") == want
        assert map_paths(want, back, "p") == diff
    with pytest.raises(HexpatchError, match=r"no --map says where tests/test-rows\.c goes"):
        map_paths(
            parse_patch(sorted((FIELD / "28-ggml-paths/in").glob("*"))[0].read_bytes(), "p").diff,
            RULES[:3],
            "p",
        )


def test_map_paths_keeps_everything_else() -> None:
    for path in PATCHES:
        diff = parse_patch(path.read_bytes(), "p").diff
        assert map_paths(diff, [(b"", b"")], "p") == diff
        moved = map_paths(diff, [(b"", "sub é/".encode())], "p")
        assert map_paths(moved, [("sub é/".encode(), b"")], "p") == diff
    with pytest.raises(HexpatchError, match="unsafe path"):
        map_paths(section(GOOD), [(b"", b"../")], "p")


def test_a_rule_for_a_name_is_no_prefix() -> None:
    with pytest.raises(HexpatchError, match="no --map"):
        map_paths(section(GOOD, "srcs/f.c"), [(b"src", b"x")], "p")
    moved = map_paths(section(GOOD, "src/f.c"), [(b"src", b"x")], "p")
    assert parse_diff(moved, "p")[0].path == b"x/f.c"


# -- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("[v75] htp : keep the tags", "htp-keep-the-tags"),
        ("[hexagon][v75] htp : keep the tags", "htp-keep-the-tags"),
        ("htp : run the “slow” row pass on µ-batches 🐢", "htp-run-the-slow-row-pass-on-batches"),
        ("", "patch"),
        ("日本語", "patch"),
        ("[only]", "patch"),
        ("../../etc/passwd; $(rm -rf)", "etc-passwd-rm-rf"),
        ("Grüße", "grusse"),
        ("HEAD.lock", "head-lock"),
    ],
)
def test_slug(title: str, name: str) -> None:
    assert slug(title, ()).replace("on-u-", "on-").replace("on-m-", "on-") == name


def test_slugs_are_unique_and_short() -> None:
    taken: list[str] = []
    for title in (FIELD / "03-subjects/subjects.txt").read_text().splitlines() * 12:
        taken.append(slug(title, taken))
    assert len(set(taken)) == len(taken)
    assert max(map(len, taken)) <= 50
    assert slug("x", ["x", "x-2"]) == "x-3"


@given(st.text(), st.sets(st.sampled_from(["patch", "a", "a-2", "b"])))
def test_slug_is_always_a_name(title: str, taken: set[str]) -> None:
    made = slug(title, taken)
    assert 0 < len(made) <= 50
    assert made not in taken
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert not made.startswith("-")
    assert not made.endswith("-")
