"""The quick reader of series.yaml says what PyYAML says, or nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from hexpatch import seriesedit, yamlplain, yamltree
from hexpatch.errors import Problem
from hexpatch.series import Base
from hexpatch.yamlnode import MapNode, Node

CASES = sorted((Path(__file__).parent / "field" / "21-series-yaml").rglob("*.yaml"))

USUAL = """\
# The series
version: 1

upstream:
  url: https://github.com/ggml-org/llama.cpp.git   # theirs
  repo:
base:
  name: b10068
  snapshot: npm:node-llama-cpp@3.19.1
sources: [clone, remote]
src:
  htp: ggml/src/ggml-hexagon/htp
patches:
  - name: one
    files: [src/htp/a.c, src/b.c]
    why: "says: why"
  - two
  - file: sub/three.patch
    needs:
    - one
    # last
    - two
targets:
  cpu: {ops: [CONCAT, CPY], timeout: 900}
  sim:sm7750: {timeout: 1800}
"""

KEYS = ["a", "b-c", "d.e", "null", "b:c", "a b", "1", '"q"', "<<", "x:y", "?"]
TEXTS = [
    "x", "x y", "x  y", "x - y", "x -y", "-x", "- x", "1.5", "~", "yes", "a:b", "a: b", "a:", ":a",
    "a #b", "a#b", "#", '"x"', '"x: # y"', "'it'", "'it''s'", '"\\n"', '"x" y', "[a, b]", "[]",
    "[ a,b ]", "[a,]", "[a: b]", "[a", "{a: b}", "{}", "&x y", "*x", "!x y", "|", ">", "%x", "@x",
    "`x`", "https://x.y/z?q=1#f", "npm:a@1.2", "a,b", "a]", "a}", "...", "---", "é", "x\ty", "+",
    "(a)", "2024-01-01", "a=b", "a;b", "a!b", "a*b", "a&b", "a%b", "a|b", "a>b", "a<b", "a$b", "",
    " ", "a 'b' c", "doesn't", 'a "b"', "a [b] {c}", "a, b", "a :b", "a: :b", "a :", "a ?b",
    "a & b", "a ::b", "a:#b", "a: #b", "a #", "pypi:a-b==0.3", "x -- y", "a\\b", "a `b`", ".",
    "a:,b", "{a: b, c: [d, e]}", "{a: b, a: c}", "{a: b,}", "[[a], {b: c}]", "{a: {b: c}}", "[a, ]",
    "{ }", "[ ]", "{a:b}", "{a : b}", "[a,,b]", "[,]", "{a: }", "{a, b: c}", "[a b]", "[a] b",
    "{[a]: b}", "[a:b]", "[a]: b", "{a: b} # c", "{a: b}c",
]  # fmt: skip


def by_pyyaml(text: str) -> tuple[Node | None, list[Problem]]:
    problems: list[Problem] = []
    return yamltree._Builder("series.yaml", problems).build(text), problems


def agree(text: str) -> MapNode | None:
    found = yamlplain.read(text)
    if found is not None:
        assert (found, []) == by_pyyaml(text), text
    return found


def line(rng: random.Random) -> str:
    indent = " " * rng.choice([0, 0, 0, 2, 2, 4, 1, 3])
    dash = rng.choice(["", "", "", "- ", "-   ", "-"])
    key = rng.choice(["", f"{rng.choice(KEYS[:5])}:", f"{rng.choice(KEYS)}:", "a :", "b:"])
    blank = rng.choice([" ", " ", "  ", ""])
    tail = rng.choice(["", "", "", " # c", "  ", "#c"])
    return indent + dash + key + blank + rng.choice(TEXTS) + tail


def nested(rng: random.Random, indent: int, depth: int) -> list[str]:
    """Lines that go together, most of the time."""
    out = []
    pad = " " * indent
    kind = rng.choice(["map", "map", "list"])
    for n in range(rng.choice([1, 2, 3])):
        head = f"{pad}k{n}:" if kind == "map" else f"{pad}-"
        more = rng.random()
        if more < 0.35 and depth < 4:
            step = rng.choice([2, 2, 2, 4, 0])
            below = nested(rng, indent + step, depth + 1)
            if kind == "list":
                below[0] = f"{head} {below[0].strip()}"
                out += below
            else:
                out += [head + rng.choice(["", " ", "  # c"]), *below]
        else:
            out.append(f"{head} {rng.choice(TEXTS[:8])}".rstrip() + rng.choice(["", " # c", " "]))
        if rng.random() < 0.1:
            out.append(rng.choice(["", "# c", "      # c", line(rng)]))
    return out


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_written(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        agree("\n".join(line(rng) for _ in range(rng.choice([1, 2, 3, 6]))))
        agree("\n".join(nested(rng, 0, 0)) + rng.choice(["\n", "", "\n\n"]))


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_in_each_place(text: str) -> None:
    for form in ("a: {}\n", "a: {}", "- {}\n", "a:\n  - {}\n", "a:\n- {}\nb: c\n", "a: [{}]\n"):
        agree(form.format(text))
        agree(f"x:\n  y: z\n{form.format(text)}")


def test_the_usual_file_is_read_quickly() -> None:
    assert agree(USUAL) is not None
    text = seriesedit.template(
        url="https://x.y/z.git", branch="master", repo=None, base=Base("v1"), src={"htp": "a/b"}
    )
    assert agree(text.decode()) is not None


@pytest.mark.parametrize("path", CASES, ids=str)
def test_field_cases(path: Path) -> None:
    text, problems = yamltree._decode(path.read_bytes(), path.name)
    if not problems:
        agree(text)


def test_pyyaml_has_its_c_parser() -> None:
    assert hasattr(yaml, "CLoader")
