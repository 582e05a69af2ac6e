"""Diffs: read as strictly as git does, with git and unidiff as references."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest
import unidiff
from hypothesis import given, settings
from hypothesis import strategies as st

from hexpatch import place
from hexpatch.diffpath import bare, quote
from hexpatch.errors import HexpatchError
from hexpatch.patchfile import (
    parse_diff,
    parse_patch,
)

FIELD = Path(__file__).parent / "field"
PATCHES = sorted(
    p
    for case in ("01-eol-bytes", "02-latin1", "03-subjects", "06-binary", "07-shapes", "13-empty",
                 "28-ggml-paths", "08-deleted-upstream", "11-upstreamed-partly", "15-add-add")
    for p in (FIELD / case).rglob("*.patch")
    if "input" not in p.parts
)  # fmt: skip


def git(folder: Path, *args: str, data: bytes | None = None, ok: bool = True) -> bytes:
    done = subprocess.run(
        ["git", *args], cwd=folder, input=data, capture_output=True, check=False,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"},
    )  # fmt: skip
    assert not ok or done.returncode == 0, done.stderr.decode()
    return done.stdout


def section(body: str, path: str = "f.c", head: str = "index 1..2 100644") -> bytes:
    index = "index 1111111..2222222 100644" if head == "index 1..2 100644" else head
    text = f"diff --git a/{path} b/{path}\n{index}\n--- a/{path}\n+++ b/{path}\n{body}"
    return text.encode()


def refused(data: bytes, *words: str) -> HexpatchError:
    with pytest.raises(HexpatchError) as caught:
        parse_diff(data, "p.patch")
    assert caught.value.message.startswith("p.patch: ")
    for word in words:
        assert word in caught.value.message, caught.value.message
    return caught.value


GOOD = "@@ -1,3 +1,4 @@ int main(void)\n a\n-b\n+B\n+C\n c\n"


# -- what a hunk says -----------------------------------------------------------------------


def test_a_hunk() -> None:
    (diff,) = parse_diff(section(GOOD), "p")
    (hunk,) = diff.hunks
    assert (hunk.old_start, hunk.old_len, hunk.new_start, hunk.new_len) == (1, 3, 1, 4)
    assert hunk.section == b"int main(void)"
    assert hunk.old == [b"a", b"b", b"c"]
    assert hunk.new == [b"a", b"B", b"C", b"c"]
    assert (hunk.lead, hunk.trail, hunk.added, hunk.removed) == (1, 1, 2, 1)
    assert not hunk.old_eof
    assert not hunk.new_eof
    assert hunk.old[0] is hunk.new[0], "context lines are shared"
    assert (diff.kind, diff.path, diff.old_mode, diff.new_mode) == (
        "modify",
        b"f.c",
        0o100644,
        None,
    )


def test_several_blocks_and_hunks() -> None:
    body = "@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n+D\n-d\n e\n@@ -9 +9,2 @@ x\n+0\n i\n"
    one, two = parse_diff(section(body), "p")[0].hunks
    assert (one.old, one.new) == ([b"a", b"b", b"c", b"d", b"e"], [b"a", b"B", b"c", b"D", b"e"])
    assert (two.old_len, two.new, two.lead, two.trail) == (1, [b"0", b"i"], 0, 1)


def test_an_empty_line_is_an_empty_context_line() -> None:
    (hunk,) = parse_diff(section("@@ -1,3 +1,3 @@\n\n-b\n+B\n\n"), "p")[0].hunks
    assert hunk.old == [b"", b"b", b""]
    assert hunk.new == [b"", b"B", b""]
    assert (hunk.lead, hunk.trail) == (1, 1)


def test_a_bare_carriage_return_is_data() -> None:
    (hunk,) = parse_diff(section("@@ -1 +1 @@ a\rb\n-a\rb\r\n+a\x0b\x85b\r\n"), "p")[0].hunks
    assert hunk.old == [b"a\rb\r"]
    assert hunk.section == b"a\rb"
    assert hunk.new == ["a\x0b\x85b\r".encode()]


NO = "\\ No newline at end of file\n"


@pytest.mark.parametrize(
    ("body", "ends"),
    [
        (f"@@ -1 +1 @@\n-a\n{NO}+b\n", (True, False)),
        (f"@@ -1 +1 @@\n-a\n+b\n{NO}", (False, True)),
        (f"@@ -1 +1 @@\n-a\n{NO}+b\n{NO}", (True, True)),
        (f"@@ -1,2 +1,2 @@\n-a\n+b\n c\n{NO}", (True, True)),
        (f"@@ -1,2 +1,2 @@\n-a\n+b\n c\n{NO}"[:-1], (True, True)),
    ],
)
def test_no_newline_at_end(body: str, ends: tuple[bool, bool]) -> None:
    (hunk,) = parse_diff(section(body), "p")[0].hunks
    assert (hunk.old_eof, hunk.new_eof) == ends
    assert b"\\" not in b"".join(hunk.old + hunk.new)


@pytest.mark.parametrize(
    "body",
    [
        f"@@ -1,2 +1,2 @@\n-a\n{NO}-b\n+c\n+d\n",
        f"@@ -1,2 +1,2 @@\n{NO}-a\n-b\n+c\n+d\n",
        f"@@ -1,2 +1,2 @@\n a\n{NO}-b\n+c\n",
        f"@@ -1 +1 @@\n-a\n+b\n{NO}{NO}",
    ],
)
def test_no_newline_in_the_middle(body: str) -> None:
    refused(section(body))


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("@@ -1,3 +1,4 @@ f\n a\n-b\n+B\n+C\n", 9, "cut off after 2 of 3 old, 3 of 4 new"),
        ("@@ -1,3 +1,4 @@ f\n a\n-b\n+B\n+C\n-- \n2.39.5\n", 11, "cut off"),
        (GOOD + "+more\n", 11, "more lines than its @@ line says"),
        (GOOD + " more\n", 11, "more lines than its @@ line says"),
        (GOOD + "-more\n", 11, "more lines than its @@ line says"),
        ("@@ -1,1 +1,4 @@\n a\n-b\n+B\n+C\n c\n", 7, "more old lines"),
        ("@@ -1,3 +1,4 @@\n a\n-b\n+B\nnonsense\n c\n", 9, "cut off"),
        ("@@ -1,3 +1,x @@\n a\n", 5, "damaged"),
        ("@@ -1,2 +1,2 @@\n a\n b\n", 5, "changes nothing"),
        (GOOD + "\n@@ -9 +9 @@\n-x\n+y\n", 12, "without a `diff --git` line"),
    ],
)
def test_counts_must_be_exact(body: str, line: int, words: str) -> None:
    refused(b"" + section(body), f"line {line}: ", words)


def test_a_cut_off_file() -> None:
    for size in range(len(section(GOOD)) - 1, len(section("")) + 20, -1):
        refused(section(GOOD)[:size], "f.c")


def test_new_file_variants() -> None:
    head = b"diff --git a/n b/n\nnew file mode 100755\nindex 0000000..1111111\n"
    head += b"--- /dev/null\n+++ b/n\n"
    for tail, new, eof in (
        (b"@@ -0,0 +1 @@\n+a\n", [b"a"], False),
        (b"@@ -0,0 +1,2 @@\n+a\n++b\n-- \n2.39.5\n\n", [b"a", b"+b"], False),
        (b"@@ -0,0 +1,2 @@\n+a\n+\n\\ No newline at end of file\n", [b"a", b""], True),
        (b"@@ -0,0 +1,2 @@\n+a\n+\n\\ No newline at end of file", [b"a", b""], True),
    ):
        (diff,) = parse_diff(head + tail, "p")
        assert (diff.kind, diff.new_mode, diff.old_path) == ("add", 0o100755, None)
        (hunk,) = diff.hunks
        assert (hunk.old, hunk.new, hunk.new_eof, hunk.added) == ([], new, eof, len(new))
        assert (head + tail)[diff.start : diff.end].count(b"-- ") == 1
    for bad in (
        b"@@ -0,0 +1,2 @@\n+a\n",
        b"@@ -0,0 +1 @@\n+a\n+b\n",
        b"@@ -0,0 +1 @@\n+a\n b\n",
        b"@@ -0,0 +1,2 @@\n+a\n+b",
        b"@@ -0,0 +1,2 @@\n+a\nx\n+b\n",
        b"@@ -1 +1,2 @@\n a\n+b\n",
    ):
        refused(head + bad, "n: ")


# -- sections -------------------------------------------------------------------------------


def test_trailing_text_and_signature_are_not_part_of_it() -> None:
    data = (
        b"some words\n" + section(GOOD) + b"words\n\n" + section(GOOD, "g.c") + b"-- \n2.39.5\n\n"
    )
    one, two = parse_diff(data, "p")
    assert data[one.start : one.end] == section(GOOD)
    assert data[two.start : two.end] == section(GOOD, "g.c")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"just words\n", "no diff found"),
        (b"--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n", "line 1: `--- f` without a `diff --git` line"),
        (section(GOOD) + b"\n--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n", "line 12: `--- f`"),
        (
            b"diff --git a/f b/f\nBinary files a/f and b/f differ\n@@ -1 +1 @@\n-a\n+b\n",
            "line 3: `@@ -1",
        ),
        (
            b"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n"
            b"words\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
            "unknown line before the hunk",
        ),
        (b"diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1 -1 +1 @@@\n", "merge"),
        (b"diff --git f f\nindex 11111..22222\n--- f\n+++ f\n" + GOOD.encode(), "prefix"),
        (section(GOOD).replace(b"--- a/", b"--- i/"), "prefix"),
        (section(GOOD).replace(b"+++ b/f", b"+++ b/g"), "contradict"),
        (section(GOOD).replace(b"git a/f.c b/f.c", b"git a/g.c b/g.c"), "different files"),
        (section(""), "--- line without its +++ line and hunk"),
        (b"diff --git a/f b/f\n", "changes nothing"),
        (b"diff --git a/f b/f\nindex 11111..22222 100644\n", "hunks are missing"),
        (b"diff --git a/f b/f\nnew file mode 100644\nindex 00000..22222\n", "hunks are missing"),
        (section(GOOD).replace(b"--- a/f.c\n", b""), "unknown line before the hunk"),
        (section(GOOD).replace(b"--- a/f.c\n", b"--- a/\n"), "contradict"),
        (b"diff --git a/f b/g\nold mode 100644\nnew mode 100755\n", "told apart"),
        (b"diff --git a/f b/f\nnew mode 100755\n", "new mode without"),
        (b"diff --git a/f b/f\nold mode 100644\nnew mode 040000\n", "unknown file mode"),
        (b"diff --git a/f b/g\nrename from f\n", "rename"),
        (section(GOOD, head="index 1111111 100644"), "index line"),
        (section(GOOD, head="deleted file mode 100644"), "contradict"),
        (section(GOOD, "../f"), "unsafe path ../f"),
        (section(GOOD).replace(b"\n", b"\r\n"), "CRLF"),
    ],
)
def test_refused_sections(data: bytes, words: str) -> None:
    refused(data, words)


def test_line_numbers_count_from_the_start_of_the_mail() -> None:
    data = (
        FIELD / "07-shapes/patches/0001-htp-rename-rows-to-lines-and-fix-one.patch"
    ).read_bytes()
    bad = data.replace(b" static int row_10 = 30;\n", b"")
    with pytest.raises(HexpatchError) as caught:
        parse_patch(bad, "patches/x.patch")
    number = bad.split(b"\n").index(b"2.39.5") + 1
    assert caught.value.message.startswith(
        f"patches/x.patch: line {number}: src/htp/lines.c: hunk @@"
    )


def test_empty_diff() -> None:
    assert parse_diff(b"", "p") == ()
    assert parse_diff(b"\n", "p") == ()


@pytest.mark.parametrize("data", [p.read_bytes() for p in PATCHES], ids=[p.name for p in PATCHES])
def test_numbers_are_gits(data: bytes, tmp_path: Path) -> None:
    patch = parse_patch(data, "p")
    told = git(tmp_path, "apply", "--numstat", "-z", data=data, ok=False)
    ours = b""
    for diff in patch.diffs:
        binary = diff.binary is not None or diff.binary_missing
        ours += b"-\t-\t" if binary else b"%d\t%d\t" % (diff.added, diff.removed)
        ours += diff.path + b"\0"
    if patch.diffs and not any(d.binary_missing for d in patch.diffs):
        assert told
    if told:
        assert sorted(ours.split(b"\0")) == sorted(told.split(b"\0"))
    assert b"".join(patch.diff[d.start : d.end] for d in patch.diffs) == patch.diff
    assert patch.diff in data.replace(b"\r\n", b"\n") or patch.diff in data
    assert parse_diff(patch.diff, "p") == patch.diffs


def test_hunks_are_unidiffs() -> None:
    compared = 0
    for path in PATCHES:
        patch = parse_patch(path.read_bytes(), path.name)
        files = unidiff.PatchSet(io.BytesIO(patch.diff), encoding="latin-1")
        theirs = {(f.path, f.is_added_file): f for f in files if list(f)}
        for diff in patch.diffs:
            other = theirs.get((diff.path.decode("latin-1"), diff.kind == "add"))
            if other is None or not diff.hunks:
                continue
            assert len(other) == len(diff.hunks)
            for hunk, their in zip(diff.hunks, other, strict=True):
                assert (hunk.added, hunk.removed) == (their.added, their.removed)
                assert (hunk.old_start, hunk.old_len) == (their.source_start, their.source_length)
                assert (hunk.new_start, hunk.new_len) == (their.target_start, their.target_length)
                lines = [line.value.removesuffix("\n").encode("latin-1")
                         for line in their if line.line_type in " +"]  # fmt: skip
                assert lines == hunk.new
                compared += 1
    assert compared > 30


SHAPES = {
    "0001": [("rename", b"src/htp/rows.c", b"src/htp/lines.c", 0o100644, None, 95)],
    "0002": [
        ("copy", b"src/htp/cols.c", b"src/htp/cols-f16.c", 0o100644, None, 95),
        ("modify", b"src/htp/cols.c", b"src/htp/cols.c", 0o100644, None, None),
    ],
    "0003": [("modify", b"scripts/run.sh", b"scripts/run.sh", 0o100644, 0o100755, None)],
    "0004": [("add", None, b"docs/lines", None, 0o120000, None)],
    "0005": [
        ("delete", b"docs/latest", None, 0o100644, None, None),
        ("add", None, b"docs/latest", None, 0o120000, None),
        ("delete", b"src/htp/alias.c", None, 0o120000, None, None),
        ("add", None, b"src/htp/alias.c", None, 0o100644, None),
    ],
    "0006": [("rename", b"docs/old notes.txt", b"docs/older notes.txt", None, None, 100)],
    "0007": [("rename", b"src/htp/cols.c", b"src/htp/columns.c", 0o100644, 0o100755, 95)],
    "0008": [
        ("add", None, b"docs/empty.txt", None, 0o100644, None),
        ("delete", b"scripts/run.sh", None, 0o100755, None, None),
    ],
}


@pytest.mark.parametrize("number", sorted(SHAPES))
def test_shapes(number: str) -> None:
    (path,) = (FIELD / "07-shapes/patches").glob(f"{number}-*")
    got = [
        (d.kind, d.old_path, d.new_path, d.old_mode, d.new_mode, d.similarity)
        for d in parse_patch(path.read_bytes(), "p").diffs
    ]
    assert got == SHAPES[number]


ODD = [
    'q"uote.c', "back\\slash.c", "sp ace.c", "é.c", " lead.c", "trail .c", "x b/x", "a b/a b/c",
    "日本/ü b/x.c", "b/b.c", "a/a.c", "--- a", "-x", "@@ -1 +1 @@", "%s",
]  # fmt: skip


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


@pytest.mark.parametrize("quoting", ["true", "false"])
def test_odd_paths_as_git_writes_them(repo: Path, quoting: str) -> None:
    git(repo, "config", "core.quotePath", quoting)
    for number, name in enumerate(ODD):
        file = repo / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}\n" * 9)
        (repo / (name + ".empty")).write_text("")
        (repo / (name + ".bin")).write_bytes(b"\0%d" % number)
    git(repo, "add", "-A")
    tree = git(repo, "write-tree").decode().strip()
    empty = git(repo, "hash-object", "-t", "tree", "/dev/null").decode().strip()
    for name in ODD:
        (repo / name).rename(repo / (name + ".new"))
        (repo / (name + ".empty")).chmod(0o755)
    git(repo, "add", "-A")
    after = git(repo, "write-tree").decode().strip()
    names = {n + end for n in ODD for end in ("", ".empty", ".bin")}
    for options in (["--binary"], []):
        made = parse_diff(git(repo, "diff", *options, empty, tree), "p")
        assert {d.path.decode() for d in made} == names
        assert {d.kind for d in made} == {"add"}
    moved = parse_diff(git(repo, "diff", "-M", tree, after), "p")
    got = {(d.kind, (d.old_path or b"").decode(), d.path.decode()) for d in moved}
    assert got == {("rename", n, n + ".new") for n in ODD} | {
        ("modify", n + ".empty", n + ".empty") for n in ODD
    }


@given(st.binary(min_size=1).filter(lambda b: b"\0" not in b))
def test_quoting_round_trip(path: bytes) -> None:
    assert bare(quote(path)) == path


def test_git_quotes_alike(repo: Path) -> None:
    names = [b"a\tb", b"a\nb", b'a"b', b"a\\b", b"\x01\x7f", "é".encode(), b"plain -file"]
    for name in names:
        Path(os.fsdecode(bytes(repo) + b"/" + name)).touch()
    git(repo, "add", "-A")
    told = git(repo, "ls-files").split(b"\n")[:-1]
    assert sorted(told) == sorted(quote(n) for n in names)


# -- laws -----------------------------------------------------------------------------------

LINES = st.lists(st.sampled_from([b"a", b"b", b"", b"c\r", b"-- ", b"@@ -1 +1 @@", b"\\ x", b"+"]))


@settings(max_examples=60, deadline=None)
@given(LINES, LINES, st.booleans(), st.booleans(), st.sampled_from(["-U1", "-U3"]))
def test_gits_diff_of_two_texts_leads_from_one_to_the_other(
    tmp_path_factory: pytest.TempPathFactory,
    old: list[bytes], new: list[bytes], old_eof: bool, new_eof: bool, context: str,
) -> None:  # fmt: skip
    folder = tmp_path_factory.getbasetemp()
    sides = []
    for lines, eof in ((old, old_eof), (new, new_eof)):
        sides.append(b"\n".join(lines) + (b"" if eof or not lines else b"\n"))
    (folder / "old").write_bytes(sides[0])
    (folder / "new").write_bytes(sides[1])
    command = ("diff", "--no-index", "--text", context, "old", "new")
    data = (
        git(folder, *command, ok=False)
        .replace(b"a/old", b"a/new")
        .replace(b"--- a/old", b"--- a/new")
    )
    diffs = parse_diff(data, "p")
    hunks = diffs[0].hunks if diffs else ()
    lines = sides[0].split(b"\n")
    places = place.place(lines, hunks)
    assert isinstance(places, list)
    assert b"\n".join(place.splice(lines, hunks, places)) == sides[1]
    if data:
        assert diffs[0].end == len(data)
