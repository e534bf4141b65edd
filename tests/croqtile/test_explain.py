import json
from pathlib import Path

import builder as b
import pytest

from croqtile import explain, ir
from croqtile.analyse import analyse
from croqtile.driver import compile_file

SOURCE = b.tensor("source", b.dim("M"), b.dim("K"))


@pytest.fixture(autouse=True)
def _lines_from_one():
    b.restart_lines()


def test_a_gemm_without_its_barrier(golden):
    """The refusals name both accesses and the barrier that would help."""
    golden(explain.as_text([analyse(b.gemm(stages=2, consumers=2, barrier=False))]))


def test_a_gemm(golden):
    golden(explain.as_text([analyse(b.gemm(stages=2))]))


def test_a_persistent_gemm(golden, monkeypatch):
    """The next tile's loads may land while this tile's output is still being stored; an event would help."""
    monkeypatch.chdir(Path(__file__).parent)
    golden(explain.as_text(compile_file(Path("hazards/staging_across_tiles_racy.co"), {}).analyses))


def test_json_is_the_report_of_the_engine():
    analysis = analyse(b.gemm(stages=4))
    report = json.loads(explain.as_json([analysis]))
    assert (report["kernel"], report["smem_baseline"], report["smem_optimized"]) == ("kernel", 114688, 98304)
    assert report["overlaps"] == [["lhs_s", "out_s", True], ["lhs_s", "rhs_s", False], ["out_s", "rhs_s", True]]
    assert len(json.loads(explain.as_json([analysis, analysis]))) == 2


def test_an_unknown_is_explained_by_its_reason():
    one, two = b.buffer("one", (64, 64)), b.buffer("two", (64, 64))
    data = ir.TensorElement(SOURCE, (ir.IntLit(0), ir.IntLit(0)))
    kernel = b.kernel(
        b.roles(b.role((0,), b.when(data, b.store(b.view(one))), b.store(b.view(two)))),
        buffers=(one, two),
        tensors=(SOURCE,),
    )
    text = explain.as_text([analyse(kernel)])
    assert "one and two may not overlap (unknown)" in text
    assert "it depends on data (an element of `source`)" in text
