"""Sample launches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from croqtile.validation.launches import sample
from croqtile.validation.ptx import PtxError
from hb_analyzer import model
from tests.croqtile.validation import kernels


def test_trip_counts_at_launches() -> None:
    analysis = kernels.compilation().analyses[0]
    found = sample(analysis.kernel, analysis.program)
    assert found.trips["cdiv(K, 64)"] == tuple(-(-k // 64) for k in found.values["K"])
    assert all(set(range(1, 129)) <= set(found.values[dim]) for dim in "MNK") and max(found.values["K"]) > 1000
    assert all(0 <= bm < -(-m // 128) for bm, m in zip(found.values["bm"], found.values["M"], strict=True))
    assert found == sample(analysis.kernel, analysis.program)


def test_a_constant_beside_the_parameter() -> None:
    path = kernels.ROOT / "kernels" / "flash_atten" / "fa_tuned_1p2c.co"
    analysis = kernels.compilation(path).analyses[0]
    found = sample(analysis.kernel, analysis.program)
    assert min(found.trips["kv_bound"]) == 1 and len(set(found.trips["kv_bound"])) > 10


def test_programs_that_are_not_the_kernel() -> None:
    """An analysed program with other trip counts than the kernel is found out here."""
    analysis = kernels.compilation().analyses[0]
    program = analysis.program
    higher = replace(program, parameters=tuple(replace(p, minimum=2) for p in program.parameters))
    with pytest.raises(PtxError, match="at least 2, but can be 1"):
        sample(analysis.kernel, higher)
    producer, *others = program.roles
    (loop,) = producer.body
    assert isinstance(loop, model.Loop)
    longer = replace(loop, trip=model.BinOp("-", loop.trip, model.Const(1)))
    with pytest.raises(PtxError, match="do not run equally often"):
        sample(analysis.kernel, replace(program, roles=(replace(producer, body=(longer,)), *others)))
    twice = replace(loop, trip=model.BinOp("*", loop.trip, model.Const(2)))
    with pytest.raises(PtxError, match="one launch-time parameter and a constant"):
        sample(analysis.kernel, replace(program, roles=(replace(producer, body=(twice,)), *others)))
