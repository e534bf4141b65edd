"""Proofs of overlaps in the compiled code."""

from __future__ import annotations

from croqtile.validation.proofs import proofs
from tests.croqtile.validation import kernels


def test_every_operation_of_a_proof_has_instructions() -> None:
    result = kernels.validator().validate(kernels.module())
    for path in result.proofs:
        assert all(step.lines or step.text.endswith("becomes set") for step in path.steps)
        assert len(path.steps) >= 2
    stores = {step.lines for path in result.proofs for step in path.steps if "mma.store" in step.text}
    text = kernels.module().splitlines()
    assert all("stmatrix" in text[line - 1] for lines in stores for line in lines) and stores


def test_an_operation_without_an_instruction() -> None:
    analysis = kernels.compilation().analyses[0]
    _, problems = proofs(analysis, [("lhs_s", "out_s")], {})
    assert any("no instruction for `sync.wg 1, 2`, on which an overlap relies" in problem.why for problem in problems)


def test_a_pair_without_a_proof() -> None:
    """Operand stages that share memory would be wrong, whatever the code does."""
    _, problems = proofs(kernels.compilation().analyses[0], [("lhs_s", "rhs_s")], {})
    assert [str(problem) for problem in problems] == ["lhs_s and rhs_s share memory without a proof that they may"]
