"""Matrix products of both trees on devices with and without FP16 in the matrix unit."""

from __future__ import annotations

import pytest
from conftest import World
from test_simupstream import folder, pytestmark, real

__all__ = ["folder", "pytestmark", "real"]


def test_a_matrix_unit_with_fp16_sees_no_change(real: World) -> None:
    """The same instructions, tiles and transfers op for op, and the same error."""
    bench = ("bench", "--target", "sim:sm8550", "--json")
    shapes = [
        "MUL_MAT(type_a=q4_0,m=256,n=64,k=512)",
        "MUL_MAT(type_a=q4_0,m=96,n=3,k=256)",
        "MUL_MAT(type_a=f16,m=128,n=48,k=256)",
        "MUL_MAT(type_a=q6_K,m=64,n=33,k=512,bs=[2,1],nr=[2,1])",
        "MUL_MAT(type_a=q4_1,m=64,n=32,k=256,add=[64,1,1,1])",
    ]
    own = real.ok(*bench, *(word for shape in shapes for word in ("--shape", shape)))
    some = r"type_a=q4_0,.*n_mats=4,n_used=2,b=0,m=512,n=(32|129),k=256"
    experts = real.ok(*bench, "-o", "MUL_MAT_ID", "-p", some)
    cases = own.json["cases"] + experts.json["cases"]
    assert len(cases) >= len(shapes) + 2
    for case in cases:
        assert case["base"]["status"] == case["stack"]["status"] == "OK", case["case"]
        assert case["base"]["counters"] == case["stack"]["counters"], case["case"]
        for error in ("nmse", "exact"):
            assert case["base"][error] == case["stack"][error], case["case"]
    assert any(case["base"]["counters"].get("hmx_tiles_f") for case in cases)


@pytest.mark.parametrize(
    "add", ["[70,33,1,1]", "[70,1,1,1]", "[70,11,1,1]", "[1,33,1,1]", "[1,1,1,1]"]
)
def test_a_residual_that_repeats(real: World, add: str) -> None:
    """Without FP16 a product and the sum after it are one op where the residual has a row for each
    token or one for all; a sum that repeats otherwise stays an op of its own, and is right."""
    shape = f"MUL_MAT(type_a=q4_0,m=70,n=33,k=256,add={add})"
    ran = real.ok("bench", "--target", "sim:sm7750", "--json", "--shape", shape)
    (case,) = ran.json["cases"]
    assert case["stack"]["counters"]["hmx_tiles_i"] > 0
    assert "hmx_tiles_f" not in case["stack"]["counters"]
    assert case["stack"]["nmse"] < 5e-4
