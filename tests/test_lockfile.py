"""series.lock: the same bytes for the same lock, one patch per line, hostile content refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hexpatch import lockfile, series
from hexpatch.errors import HexpatchError
from hexpatch.lockfile import Lock, LockedPatch
from hexpatch.series import Base

A, B, C = "a" * 40, "b" * 40, "c" * 40
LOCK = Lock(
    base=Base("0c1e57098", A, B),
    patches=(
        LockedPatch(
            "one",
            lockfile.sha256(b"1"),
            (("src/htp/a.c", lockfile.owned_sum("htp/a.c", False, b"a")),),
            B,
            A,
            (("ggml/é.c", "@@ -10,7 +10,8 @@", 13),),
        ),
        LockedPatch("two", lockfile.sha256(b"2"), (), C, B),
    ),
    tip=B,
    tree=C,
)


def test_there_and_back() -> None:
    data = lockfile.render(LOCK)
    assert lockfile.parse(data) == LOCK
    assert lockfile.render(lockfile.parse(data)) == data
    empty = LOCK._replace(patches=(), base=Base("v1"))
    assert lockfile.parse(lockfile.render(empty)) == empty


def test_one_patch_per_line() -> None:
    lines = lockfile.render(LOCK).decode().splitlines()
    assert [line[:16] for line in lines] == [
        "{",
        ' "version": 1,',
        ' "base": {"name"',
        ' "patches": [',
        '  {"name": "one"',
        '  {"name": "two"',
        " ],",
        ' "tip": "bbbbbbb',
        "}",
    ]
    assert "placed" not in lines[5]
    assert json.loads("\n".join(lines))["patches"][0]["placed"][0][2] == 13


def test_read(tmp_path: Path) -> None:
    assert lockfile.read(tmp_path) is None
    (tmp_path / "series.lock").write_bytes(lockfile.render(LOCK))
    assert lockfile.read(tmp_path) == LOCK
    (tmp_path / "series.lock").unlink()
    (tmp_path / "series.lock").mkdir()
    with pytest.raises(HexpatchError, match="cannot read"):
        lockfile.read(tmp_path)


GOOD = lockfile.render(LOCK).decode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "is not JSON"),
        ("[]", "is not a mapping"),
        ("[" * 100000, "is not JSON"),
        ('{"version": 1}', "exactly the keys"),
        ("{}", "has version null"),
        (GOOD.replace('"version": 1', '"version": 2'), "has version 2, this tool knows 1"),
        (GOOD.replace('"version": 1', '"version": true'), "has version true"),
        (GOOD.replace(' "base"', "<<<<<<< HEAD\n"), "holds merge conflict marks"),
        (GOOD.replace('"tip"', '"top"'), "exactly the keys"),
        (GOOD.replace('"tree": "c', '"tree": "X'), "tree is not what"),
        (GOOD.replace('"name": "two"', '"name": "one"'), "has a patch twice"),
        (GOOD.replace('"name": "two"', '"name": "two", "name": "two"'), "a key twice"),
        (GOOD.replace('"name": "two"', '"name": 2'), "patch 2: name"),
        (GOOD.replace("{}", "[]"), "patch 2: files is not a mapping"),
        (GOOD.replace(", 13]", "]"), "placed holds"),
        (GOOD.replace(", 13]", ", true]"), "placed holds"),
        (GOOD.replace('"sha256": "', '"sha256": "x'), "sha256"),
    ],
)
def test_refused(data: str, message: str) -> None:
    with pytest.raises(HexpatchError, match=message) as caught:
        lockfile.parse(data.encode())
    assert caught.value.message.startswith("series.lock: ")
    assert caught.value.hint == "delete series.lock and run `hexpatch apply`"
    assert len(caught.value.message) < 300


def test_not_utf8() -> None:
    with pytest.raises(HexpatchError, match="is not JSON"):
        lockfile.parse(b"\xff\xfe{}")


def test_changed() -> None:
    disk = {"patches/one.patch": b"1", "src/htp/a.c": b"a", "patches/two.patch": b"2"}

    def read_bytes(path: str) -> bytes:
        if path not in disk:
            raise FileNotFoundError(path)
        return disk[path]

    def changed(text: str) -> tuple[str, ...]:
        found = series.parse(f"base: v1\npatches: {text}\n".encode(), Path("/"), disk=False)
        return lockfile.changed(LOCK, found, read_bytes)

    one, two = "{name: one, files: [src/htp/a.c]}", "{name: two}"
    assert changed(f"[{one}, {two}]") == ()
    assert changed(f"[{two}, new]") == ("new", "one")
    assert changed(f"[one, {two}]") == ("one",)
    assert changed(f"[{one}, {{name: two, state: landed}}]") == ("two",)
    disk["src/htp/a.c"] = b"b"
    assert changed(f"[{one}, {two}]") == ("one",)
    disk["src/htp/a.c"] = b"a"
    del disk["patches/two.patch"]
    assert changed(f"[{one}, {two}]") == ("two",)
