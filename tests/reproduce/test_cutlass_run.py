"""Reading what a CUTLASS program prints."""

from __future__ import annotations

import pytest

from reproduce.cutlass.errors import CutlassError
from reproduce.cutlass.run import read_outcome

PRINTED = """kernel: coop_128x128_3s
cutlass: 4.5.0
gpu: NVIDIA H200
sms: 132
storage: union
size: 2048
beta: 0
tiles: 256
ctas: 132
dynamic_smem_bytes: 99328
static_smem_bytes: 0
registers: 168
ctas_per_sm: 1
launches: 3
wrong_launches: 3
sampled_wrong: 2113
sampled: 4096
sampled_max_error: 12.5
full_wrong: 2101234
full: 4194304
full_max_error: 31.25
"""


def test_an_outcome_is_read() -> None:
    outcome = read_outcome(PRINTED)
    assert (outcome.gpu, outcome.dynamic_smem_bytes, outcome.registers) == ("NVIDIA H200", 99328, 168)
    assert (outcome.sampled_wrong, outcome.full_wrong, outcome.full_max_error) == (2113, 2101234, 31.25)
    assert outcome.tiles_per_cta == 2
    assert not outcome.right


def test_an_outcome_is_right_only_if_every_element_is() -> None:
    right = PRINTED.replace("2113", "0").replace("2101234", "0")
    assert read_outcome(right).right
    assert not read_outcome(PRINTED.replace("2113", "0")).right


def test_a_program_that_ends_early_is_an_error() -> None:
    with pytest.raises(CutlassError, match="no line 'full_max_error"):
        read_outcome(PRINTED.rpartition("full_max_error")[0])
    with pytest.raises(CutlassError, match="'registers: many', which is no int"):
        read_outcome(PRINTED.replace("registers: 168", "registers: many"))
