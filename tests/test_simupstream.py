"""The whole way on a real tree: build the base for the simulator, run the quick set, measure."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from conftest import World
from test_upstream import copy_series

from hexpatch import series
from hexpatch.errors import HexpatchError
from hexpatch.sim.root import find_clang

# quick set, sim:sm8650, stock upstream at the base; the reasons are in known-failures.yaml
STOCK_FAILS = {
    "ADD": 2,
    "ADD_ADD": 2,
    "DIV": 28,
    "FLASH_ATTN_EXT": 1,
    "GATED_DELTA_NET": 7,
    "GEGLU_ERF": 12,
    "GEGLU_QUICK": 12,
    "GELU_MUL": 13,
    "MUL_MAT_VEC_FUSION": 8,
    "SUB": 1,
    "SWIGLU_CLAMP": 2,
}
pytestmark = [
    pytest.mark.upstream,
    pytest.mark.slow,
    pytest.mark.sim,
    pytest.mark.xdist_group("builds"),
]


def usable() -> bool:
    try:
        find_clang()
    except HexpatchError:
        return False
    return shutil.which("cmake") is not None


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests that build for the simulator: a tree is built once."""
    made = tmp_path_factory.getbasetemp() / "sim"
    made.mkdir(exist_ok=True)
    return made


@pytest.fixture
def real(folder: Path) -> World:
    if not usable():
        pytest.skip("no clang that the simulator can use")
    root = folder / "real"
    return World(root, root) if root.exists() else copy_series(root)


def test_the_quick_set_of_the_base_holds_no_surprise(real: World) -> None:
    """Every op is judged, every failure is a listed one with its reason, no entry is stale."""
    quick = ("validate", "--target", "sim:sm8650", "--quick", "--base", "--json")
    ran = real.run(*quick)
    data = json.loads(ran.out)
    assert series.load(real.root).base.tree == data["base_tree"]
    assert data["problems"] == []  # a stale entry would be one, and a case without a result
    bad = [c for c in data["cases"] if c["base"] not in ("OK", "UNSUPPORTED")]
    assert [c for c in bad if c["verdict"] != "known"] == []
    assert ran.code == 0
    assert Counter(c["op"] for c in bad) == STOCK_FAILS
    assert data["totals"]["passed"] == 4876
    judged = {c["op"] for c in data["cases"] if c["base"] != "UNSUPPORTED"}
    assert len({c["op"] for c in data["cases"]}) == 140
    assert len(judged) == 85
    assert json.loads(real.run(*quick).out)["cached"]


def test_an_entry_that_no_longer_fails_is_told(real: World) -> None:
    """An entry of the series' own that no case bears out makes the run red."""
    settings = real.root / "series.yaml"
    text = settings.read_text()
    (real.root / "known.yaml").write_text(
        'version: 1\nfailures:\n  - {target: "sim:*", op: NEG, reason: invented}\n'
    )
    settings.write_text(
        text.replace("targets:\n", "targets:\n  sim:sm8650: {known: known.yaml}\n", 1)
    )
    try:
        ran = real.run("validate", "--target", "sim:sm8650", "--base", "--json", "-o", "NEG")
    finally:
        settings.write_text(text)
    (problem,) = json.loads(ran.out)["problems"]
    assert problem.startswith("known.yaml:3: NEG no longer fails at the base")
    assert ran.code == 1


def test_the_phones_verdicts(real: World) -> None:
    """A published log of the phone lists the MUL_MAT cases that fail with stock upstream."""
    listed = (Path(__file__).parent / "sim" / "phone-mul-mat-fail.txt").read_text().split()
    ran = real.run(
        *("validate", "--target", "sim:sm7750", "--base", "--json"),
        *("-o", "MUL_MAT,GATED_DELTA_NET"),
    )
    cases = json.loads(ran.out)["cases"]
    failed = {
        op: {
            # this base names two parameters more than the log's did
            re.sub(r",m_v=0,pad=0$", "", c["params"])
            for c in cases
            if c["op"] == op and c["base"] == "FAIL"
        }
        for op in ("MUL_MAT", "GATED_DELTA_NET")
    }
    assert failed["MUL_MAT"] == set(listed)
    assert len(failed["GATED_DELTA_NET"]) == 7


def test_two_runs_give_the_same_errors(real: World) -> None:
    """Alone or in company, a case has the same inputs, and so the same error."""
    some = ("validate", "--target", "sim:sm7750", "--base", "--fresh", "--json")
    runs = [
        real.run(*some, "-o", "SOFT_MAX,RMS_NORM"),
        real.run(*some, "-o", "SOFT_MAX"),
    ]
    found = [
        {
            c["params"]: c.get("base_error")
            for c in json.loads(r.out)["cases"]
            if c["op"] == "SOFT_MAX"
        }
        for r in runs
    ]
    assert found[0] == found[1]
    assert any(found[0].values())


def test_integer_tiles_are_counted(real: World) -> None:
    """Stock upstream multiplies FP16 tiles that this device has not: the store gives zeros."""
    shape = "MUL_MAT(type_a=q4_0,m=64,n=32,k=256)"
    ran = real.ok("bench", "--target", "sim:sm7750", "--base", "--json", "--shape", shape)
    (case,) = ran.json["cases"]
    assert case["base"]["counters"]["hmx_stores"] > 0
    assert case["base"]["exact"] == pytest.approx(1.0)
    whole = real.ok(
        "bench", "--target", "sim:sm7750", "--base", "--json", "--shape", shape, "--env", "NHMX=0"
    )
    (case,) = whole.json["cases"]
    assert "hmx_stores" not in case["base"]["counters"]
    assert case["base"]["exact"] < 5e-4


def test_attention_against_float64(real: World) -> None:
    """Masks, sinks, ALiBi, softcap and shared KV heads go into the float64 reference."""
    common = "hsk=64,hsv=64,nh=2,nr23=[4,1],kv=96,nb=9"
    more = ("mask=0", "sinks=1", "max_bias=8.0", "type_K=q8_0,type_V=q8_0", "logit_softcap=0.5")
    shapes = [f"FLASH_ATTN_EXT({common},{text})" for text in more]
    asked = [part for shape in shapes for part in ("--shape", shape)]
    ran = real.ok(
        *("bench", "--target", "sim:sm7750", "--base", "--json", "--env", "NHMX=0"), *asked
    )
    found = [case["base"]["exact"] for case in ran.json["cases"]]
    assert len(found) == len(shapes)
    assert all(0 < error < 2e-6 for error in found), found


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("m=abc,n=1,k=32", "m=abc is no number"),
        ("m=32,n=1x,k=32", "n=1x is no number"),
        ("m=32,n=,k=32", "n= is no number"),
        ("m=32,n=1,k=32,bs=[1,a]", "bs=[1,a] is no list of numbers"),
        ("m=32,n=1,k=32,bs=[1]", "bs=[1] needs 2 numbers"),
        ("type_a=q9,m=32,n=1,k=32", "type_a=q9 is no type"),
        ("m=32,n=1,k=32,q=1", "MUL_MAT has no parameter q here"),
    ],
)
def test_a_shape_that_is_none(real: World, shape: str, said: str) -> None:
    ran = real.run("bench", "--target", "sim:sm7750", "--base", "--shape", shape)
    assert ran.code == 2
    assert said in ran.err
