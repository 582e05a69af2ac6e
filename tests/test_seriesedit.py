"""Edits of series.yaml: the wanted change and not a byte more."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hexpatch import series, seriesedit, seriesorder, yamlquote, yamltree
from hexpatch.errors import HexpatchError, InvalidSeries
from hexpatch.series import Base

UGLY = """\
%YAML 1.1
---   # head
# first comment
version: 1   # one

upstream: {url: "https://example.org/x.git",   branch: master}  # flow

base:    # pinned
    name:   '0c1e57098'      # name comment
    # between
    tree: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
sources: [ clone , snapshot ]
patches:

# heading, not attached

# about one
-   name: one     # the first
    why: >
        folded
        text

    # own line in one
    files:
      # above a
      - src/a.c   # a
      - "src/b.c"
      # deeper end
    state: draft

# about two
# two lines
-
    # inside two
    name: "two"
    needs: [one,   # because
            'one'
           ]   # end needs
# detached from three

-   {name: three, needs: [ one ], why: "x: y"}

-   file: sub/four.patch   # by file
    needs:
    -   one
    -   two   # second
    -   three
    # private: no

-   five   # text
# tail of the list

groups:
  - name: g1     # group one
    patches: [one]
  # about g2
  - {name: g2, title: "t : u", patches: [two, three]}
  - name: g3
    patches:
      - five   # 5
      # nothing
# targets
targets: {}
# end
...
# after the end
"""
NAMES = ("one", "two", "three", "four", "five")

Edit = Callable[[bytes], bytes]


def change(edit: Edit, text: str = UGLY) -> list[str]:
    """The changed lines of a diff; the same edit must work with CRLF and a byte order mark."""
    new = edit(text.encode())
    crlf = edit(text.replace("\n", "\r\n").encode())
    assert crlf == new.replace(b"\n", b"\r\n")
    if not text.startswith("%"):
        assert edit(b"\xef\xbb\xbf" + text.encode()) == b"\xef\xbb\xbf" + new
    lines = difflib.ndiff(text.splitlines(), new.decode().splitlines())
    return [line for line in lines if line[0] in "+-"]


def comments(text: bytes) -> Counter[str]:
    lines = text.decode().splitlines()
    return Counter("#" + line.partition("#")[2] for line in lines if "#" in line)


def lost(edit: Edit) -> set[str]:
    """Comments an edit takes away; it must not make new ones."""
    before, after = comments(UGLY.encode()), comments(edit(UGLY.encode()))
    assert not after - before
    return set(before - after)


# --- base


def test_base_mapping_is_changed_in_place() -> None:
    base = Base("12345678", commit="b" * 40, tree="c" * 40)
    assert change(lambda t: seriesedit.set_base(t, base)) == [
        "-     name:   '0c1e57098'      # name comment",
        "+     name:   '12345678'      # name comment",
        f"+     commit: {'b' * 40}",
        f'-     tree: "{"a" * 40}"',
        f'+     tree: "{"c" * 40}"',
    ]


def test_base_keys_come_and_go() -> None:
    base = Base("0c1e57098", snapshot="pypi:llama-cpp-python==0.3.36")
    assert change(lambda t: seriesedit.set_base(t, base)) == [
        "+     snapshot: pypi:llama-cpp-python==0.3.36",
        f'-     tree: "{"a" * 40}"',
    ]


@pytest.mark.parametrize(
    ("before", "base", "after"),
    [
        ("base: v1 # c", Base("v2"), "base: v2 # c"),
        ("base: v1", Base("1e10"), 'base: "1e10"'),
        ("base: 'v1'", Base("0777"), "base: '0777'"),
        ("base: 123", Base("123"), 'base: "123"'),
        ("base:", Base("v2"), "base: v2"),
        ("base: v1 # c", Base("v2", tree="1" * 40), f'base: # c\n  name: v2\n  tree: "{"1" * 40}"'),
        ("base: {name: v1}", Base("v2", "a" * 40), f"base: {{name: v2, commit: {'a' * 40}}}"),
        ("base: { name: v1, tree: x }", Base("v2"), "base: { name: v2 }"),
        ("base: {tree: x, name: v1}", Base("v2"), "base: {name: v2}"),
        ("base:\n    tree: x # t\n    name: v1", Base("v2"), "base:\n    name: v2"),
        ("base:\n  name: v1\n  tree: x", Base("v1"), "base:\n  name: v1"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\npatches: []\n"])
def test_base_forms(before: str, base: Base, after: str, end: str) -> None:
    assert seriesedit.set_base((before + end).encode(), base) == (after + end).encode()


def test_file_without_last_line_end() -> None:
    new = seriesedit.set_base(b"patches: []\nbase: v1", Base("v2", tree="a" * 40))
    assert new == f"patches: []\nbase:\n  name: v2\n  tree: {'a' * 40}".encode()
    assert seriesedit.add_patch(b"patches:\n- a", {"name": "b"}) == b"patches:\n- a\n- b"


# --- patches


def test_add_in_the_style_of_the_neighbours() -> None:
    entry = {"name": "six", "why": "a: b", "files": ("src/x.c",), "pr": None}
    lines = ["+ -   name: six", '+     why: "a: b"', "+     files: [src/x.c]"]
    at_end = change(lambda t: seriesedit.add_patch(t, entry))
    assert at_end == ["+ ", *lines]
    behind = change(lambda t: seriesedit.add_patch(t, entry, after="one"))
    assert sorted(behind) == sorted(["+ ", *lines])
    flow = change(lambda t: seriesedit.add_patch(t, entry, after="three"))
    assert '+ -   {name: six, why: "a: b", files: [src/x.c]}' in flow


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("patches: []\n", "patches:\n  - name: b\n    state: hold\n"),
        ("patches:\n", "patches:\n  - name: b\n    state: hold\n"),
        ("patches: ~  # c\nx: 1\n", "patches:  # c\n  - name: b\n    state: hold\nx: 1\n"),
        ("patches: [] # c\n", "patches: # c\n  - name: b\n    state: hold\n"),
        ("patches: [ # c\n  ]\n", "patches: [{name: b, state: hold} # c\n  ]\n"),
        ("patches: [a]\n", "patches: [a, {name: b, state: hold}]\n"),
        ("patches: [\n  a,\n]\n", "patches: [\n  a, {name: b, state: hold},\n]\n"),
        ("{patches: []}\n", "{patches: [{name: b, state: hold}]}\n"),
        ("{patches: }\n", "{patches: [{name: b, state: hold}] }\n"),
        ("{patches}\n", "{patches: [{name: b, state: hold}]}\n"),
        ("patches:\n- a\n", "patches:\n- a\n- name: b\n  state: hold\n"),
        ("patches:\n  - a\n# c\n", "patches:\n  - a\n  - name: b\n    state: hold\n# c\n"),
        ("version: 1\n", "version: 1\npatches:\n  - name: b\n    state: hold\n"),
    ],
)
def test_add_to_any_list(before: str, after: str) -> None:
    assert seriesedit.add_patch(before.encode(), {"name": "b", "state": "hold"}) == after.encode()


def test_add_text_among_texts() -> None:
    assert seriesedit.add_patch(b"patches: [a]\n", {"name": "b"}) == b"patches: [a, b]\n"
    assert seriesedit.add_patch(b"patches:\n- a\n", {"name": "no"}) == b'patches:\n- a\n- "no"\n'


def test_add_twice_and_after_nothing() -> None:
    with pytest.raises(HexpatchError, match="already has a patch one"):
        seriesedit.add_patch(UGLY.encode(), {"name": "one"})
    with pytest.raises(HexpatchError, match="no patch named onee"):
        seriesedit.add_patch(UGLY.encode(), {"name": "x"}, after="onee")
    with pytest.raises(HexpatchError, match="neither name nor file"):
        seriesedit.add_patch(UGLY.encode(), {"why": "x"})


GOES = {
    "one": {"# about one", "# the first", "# own line in one", "# above a", "# a", "# deeper end"}
    | {"# group one"},
    "two": {"# about two", "# two lines", "# inside two", "# because", "# end needs", "# second"},
    "three": set(),
    "four": {"# by file", "# second", "# private: no"},
    "five": {"# text", "# 5", "# nothing"},
}


@pytest.mark.parametrize("name", NAMES)
def test_remove_takes_what_is_attached_and_all_mentions(name: str) -> None:
    def edit(text: bytes) -> bytes:
        return seriesedit.remove_patch(text, name)

    assert lost(edit) == GOES[name]
    assert not [
        line
        for line in change(edit)
        if line[0] == "+"
        and "needs" not in line
        and "patches" not in line
        and "because" not in line
    ]
    edited = edit(UGLY.encode())
    assert seriesorder.order(edited) == [n for n in NAMES if n != name]
    left = yamltree.plain(yamltree.parse(edited).root)
    assert isinstance(left, dict)
    assert name not in str(left["groups"])


def test_remove_one_by_one_leaves_empty_lists() -> None:
    text = UGLY.encode()
    for name in NAMES:
        text = seriesedit.remove_patch(text, name)
    left = yamltree.plain(yamltree.parse(text).root)
    assert isinstance(left, dict)
    assert left["patches"] == []
    assert left["groups"] == []
    kept = {"# heading, not attached", "# tail of the list", "# about g2", "# after the end"}
    assert kept <= set(comments(text)) | {"# about g2"}
    assert b"\npatches: []\n" in text


def test_remove_from_flow_lists() -> None:
    for before, after in [
        (b"patches: [a, b, c]\n", b"patches: [a, c]\n"),
        (b"patches: [a, b]\n", b"patches: [a]\n"),
        (b"patches: [b, c]\n", b"patches: [c]\n"),
        (b"patches: [ b ] # c\n", b"patches: [] # c\n"),
        (b"patches: [b,]\n", b"patches: []\n"),
        (b"patches: [b, # about\n  c]\n", b"patches: [ # about\n  c]\n"),
        (b"patches: [\n  a,\n  b,\n  c,\n]\n", b"patches: [\n  a,\n  c,\n]\n"),
        (b"patches: [\n  a,\n  b\n]\n", b"patches: [\n  a\n]\n"),
        (b"patches: [a, # of a\n  b]\n", b"patches: [a # of a\n  ]\n"),
        (b"patches: [a, # of a\n  b\n  ]\n", b"patches: [a # of a\n  ]\n"),
    ]:
        assert seriesedit.remove_patch(before, "b") == after


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("state", "sent"),
        ("why", "on"),
        ("why", "a: b"),
        ("needs", ["two", "zero"]),
        ("needs", []),
        ("files", ["src/b.c", "src/c, d.c"]),
        ("pr", "12345"),
        ("needs", None),
        ("state", None),
    ],
)
def test_set_keys(name: str, key: str, value: str | list[str] | None) -> None:
    def edit(text: bytes) -> bytes:
        return seriesedit.set_patch(text, name, key, value)

    change(edit)
    held = {
        "needs": {"# because", "# end needs", "# second"},
        "files": {"# above a", "# a", "# deeper end"},
    }
    assert lost(edit) <= held.get(key, set())
    once = edit(UGLY.encode())
    assert edit(once) == once


def test_set_keeps_form() -> None:
    assert change(lambda t: seriesedit.set_patch(t, "one", "state", "sent")) == [
        "-     state: draft",
        "+     state: sent",
    ]
    assert change(lambda t: seriesedit.set_patch(t, "four", "state", "sent")) == [
        "+     state: sent"
    ]
    assert change(lambda t: seriesedit.set_patch(t, "five", "state", "sent")) == [
        "- -   five   # text",
        "+ -   name: five",
        "+     state: sent   # text",
    ]
    assert change(lambda t: seriesedit.set_patch(t, "one", "files", ["src/b.c", "src/c.c"])) == [
        "-       # above a",
        "-       - src/a.c   # a",
        "+       - src/c.c",
    ]


def test_the_first_key_of_an_entry_can_go() -> None:
    text = b"patches:\n- why: x # c\n  name: a\n"
    assert seriesedit.set_patch(text, "a", "why", None) == b"patches:\n- name: a\n"
    text = b"patches:\n- why: x\n  # keep\n  name: a\n"
    assert seriesedit.set_patch(text, "a", "why", None) == b"patches:\n-\n  # keep\n  name: a\n"
    with pytest.raises(HexpatchError):
        seriesedit.set_patch(b"patches:\n- name: a\n", "a", "name", None)


# --- groups


def test_groups() -> None:
    assert change(lambda t: seriesedit.add_to_group(t, "g1", "four")) == [
        "-     patches: [one]",
        "+     patches: [one, four]",
    ]
    assert change(lambda t: seriesedit.add_to_group(t, "g3", "four")) == ["+       - four"]
    assert change(lambda t: seriesedit.add_to_group(t, "new", "four")) == [
        "+   - name: new",
        "+     patches: [four]",
    ]
    assert change(lambda t: seriesedit.add_to_group(t, "g1", "one")) == []
    with pytest.raises(HexpatchError, match="one is already in group g1"):
        seriesedit.add_to_group(UGLY.encode(), "g2", "one")
    fresh = b"base: v1\npatches:\n  - a\n  # - off\ntargets: {}\n"
    assert seriesedit.add_to_group(fresh, "g", "a") == (
        b"base: v1\npatches:\n  - a\n  # - off\ngroups:\n"
        b"  - name: g\n    patches: [a]\ntargets: {}\n"
    )


# --- the rest


def test_template_loads_and_takes_edits(tmp_path: Path) -> None:
    base = Base("1e10", "1" * 40, tree="a" * 40)
    text = seriesedit.template(
        series.DEFAULT_URL, "master", "~/a b", base, {"htp": "ggml/src/ggml-hexagon/htp"}
    )
    found = series.parse(text, tmp_path)
    assert found.base == base
    assert found.src == (("htp", "ggml/src/ggml-hexagon/htp"),)
    assert found.upstream.repo == (Path("~").expanduser() / "a b")
    text = seriesedit.add_patch(text, {"name": "a", "why": "first"})
    text = seriesedit.add_to_group(text, "g", "a")
    found = series.parse(text, tmp_path, disk=False)
    assert found.groups[0].patches == ("a",)
    assert b"groups:\n  - name: g\n    patches: [a]\n" in text
    bare = series.parse(seriesedit.template("../x", "b1", None, Base("v1")), tmp_path)
    assert bare.upstream == series.Upstream("../x", "b1", None)


def test_template_without_url(tmp_path: Path) -> None:
    text = seriesedit.template(None, "master", "../llama.cpp", Base("v1"))
    assert series.parse(text, tmp_path).upstream.url == series.DEFAULT_URL


def test_only_text_is_written() -> None:
    with pytest.raises(HexpatchError, match="not int"):
        seriesedit.add_patch(b"patches: []\n", {"name": "a", "pr": 1})


def test_bad_files_are_not_edited() -> None:
    with pytest.raises(InvalidSeries):
        seriesedit.set_base(b"base: v1\nbase: v2\n", Base("v3"))
    with pytest.raises(HexpatchError, match="has no base"):
        seriesedit.set_base(b"patches: []\n", Base("v3"))
    with pytest.raises(HexpatchError, match="no patch named x"):
        seriesedit.remove_patch(b"patches: a\n", "x")


NASTY = [
    "", " ", "a ", " a", "no", "Yes", "null", "~", "1", "0x1f", "0o7", "1_0", "1:30", "1e10", ".5",
    "-1", "+1", ".inf", "=", "<<", "2024-01-01", "a: b", "a #b", "a:", "# a", "- a", "? a", "[a",
    "{a", "a, b", "a]b", "'a'", '"a"', "a\\b", "a\tb", "a\nb", "a\r", "\u2028", "\x85", "\ufeff",
    "é", "漢字", "😀", "*a", "&a", "!a", "%a", "@a", "`a", "|", ">", "---", "...", "a\x00", "y",
    "12345678", "0c1e57098", "1e57098", "v0.5.0", "0.3.36",
]  # fmt: skip


@pytest.mark.parametrize("text", NASTY)
def test_quoted_text_comes_back(text: str) -> None:
    import yaml

    for flow in (False, True):
        for style in ("", "'", '"'):
            written = yamlquote.quote(text, flow, style)
            source = f"a: [{written}]\n" if flow else f"a: {written}\n"
            got = yamltree.plain(yamltree.parse(source.encode()).at("a"))
            assert got == ([text] if flow else text)
            resolved = yaml.safe_load(source)["a"]
            assert resolved == ([text] if flow else text)


@given(st.text(), st.booleans(), st.sampled_from(["", "'", '"']))
def test_any_text_comes_back(text: str, flow: bool, style: str) -> None:
    try:
        written = yamlquote.quote(text, flow, style)
    except HexpatchError:
        assert any(0xD800 <= ord(char) < 0xE000 for char in text)
        return
    source = f"a: {{b: {written}}}\n" if flow else f"a:\n  b: {written}\n"
    assert yamltree.plain(yamltree.parse(source.encode()).at("a", "b")) == text


@st.composite
def files(draw: st.DrawFn) -> str:
    """A valid file in a random dress."""
    comment = st.sampled_from(["", "  # c", " # x: [y"])
    lines = draw(st.lists(st.sampled_from(["# top", ""]), max_size=2))
    lines.append(draw(st.sampled_from(["base: v1", "base:\n  name: v1", "base: {name: v1}"])))
    indent = " " * draw(st.integers(0, 3))
    count = draw(st.integers(0, 5))
    names = [f"p{n}" for n in range(count)]
    lines.append("patches:" + ("" if count else draw(st.sampled_from(["", " []", " ~"]))))
    for at, name in enumerate(names):
        lines += draw(st.lists(st.sampled_from([f"{indent}# above", "", "# left"]), max_size=2))
        needs = draw(st.lists(st.sampled_from(names[:at]), unique=True)) if at else []
        form = draw(st.sampled_from(["text", "flow", "block", "file"]))
        tail = draw(comment)
        listed = "[" + ", ".join(needs) + "]"
        if form == "text":
            lines.append(f"{indent}- {name}{tail}")
        elif form == "flow":
            lines.append(f"{indent}- {{ name: '{name}', needs: {listed} }}{tail}")
        else:
            key = f"file: {name}.patch" if form == "file" else f"name: {name}"
            lines.append(f"{indent}- {key}{tail}")
            if needs and draw(st.booleans()):
                lines += [f"{indent}  needs:{draw(comment)}"]
                lines += [f"{indent}    - {need}{draw(comment)}" for need in needs]
            elif needs:
                lines.append(f"{indent}  needs: {listed}{draw(comment)}")
            lines += draw(st.lists(st.sampled_from([f"{indent}  # in", ""]), max_size=1))
    if count and draw(st.booleans()):
        lines += ["groups:", f"  - name: g{draw(comment)}", f"    patches: [{', '.join(names)}]"]
    text = "\n".join(lines) + draw(st.sampled_from(["\n", "", "\n# end\n", "\n...\n"]))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def names_in(text: bytes) -> list[str]:
    return [patch.name for patch in series.parse(text, Path("/"), disk=False).patches]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files(), st.data())
def test_any_edit_of_any_file_keeps_it_valid(source: str, data: st.DataObject) -> None:
    text = source.encode()
    for step in range(4):
        names = names_in(text)
        kind = data.draw(st.sampled_from(["base", "add", "remove", "set", "group"]))
        name = data.draw(st.sampled_from(names)) if names else ""
        before = comments(text)
        if kind == "base":
            tree = data.draw(st.sampled_from([None, "1" * 40]))
            text = seriesedit.set_base(text, Base(f"1e{step}", tree=tree))
            assert series.parse(text, Path("/"), disk=False).base == Base(f"1e{step}", tree=tree)
        elif kind == "add":
            after = data.draw(st.sampled_from([None, *names]))
            text = seriesedit.add_patch(text, {"name": f"n{step}", "ops": ["CPY"]}, after)
            at = len(names) if after is None else names.index(after) + 1
            assert names_in(text) == [*names[:at], f"n{step}", *names[at:]]
        elif kind == "remove" and name:
            text = seriesedit.remove_patch(text, name)
            names.remove(name)
            assert names_in(text) == names
        elif kind == "set" and name:
            key, value = data.draw(
                st.sampled_from([("why", "a: b"), ("why", None), ("ops", ["ADD"]), ("needs", [])])
            )
            text = seriesedit.set_patch(text, name, key, value)
        elif kind == "group" and name:
            found = series.parse(text, Path("/"), disk=False)
            if not any(name in group.patches for group in found.groups):
                text = seriesedit.add_to_group(text, "new", name)
        if kind in ("base", "add", "group"):
            assert comments(text) == before
        names_in(text)
        ends = {line.endswith(b"\r") for line in text.split(b"\n")[:-1]}
        assert len(ends) <= 1
