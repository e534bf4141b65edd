"""Walks over programs."""

from __future__ import annotations

from hb_analyzer.model import Access, BinOp, Const, If, Loop, Name, Step, Trigger, Wait
from hb_analyzer.traverse import accesses_of, expressions_of, statements, walk
from tests.hb_analyzer.programs import gemm

A, B, C = Access("A", "w"), Access("B", "w"), Access("C", "w")
BRANCH = If(Name("i"), (A,), (B,))
LOOP = Loop("i", Name("N"), (BRANCH, C))


def test_every_branch_and_loop_is_entered() -> None:
    assert list(walk((LOOP, A))) == [LOOP, BRANCH, A, B, C, A]


def test_statements_of_all_roles() -> None:
    source = gemm(consumers=2, stages=1)
    assert {s.event for s in statements(source) if isinstance(s, Wait)} == {"full", "empty"}
    assert [access.buffer for access in accesses_of(source)] == ["lhs", "rhs"] + ["lhs", "rhs", "out", "out"] * 2


def test_expressions_of_a_statement_itself() -> None:
    assert expressions_of(LOOP) == (Name("N"),)
    assert expressions_of(BRANCH) == (Name("i"),)
    assert expressions_of(Trigger("e", BinOp("%", Name("i"), Const(2)))) == (BinOp("%", Name("i"), Const(2)),)
    assert expressions_of(Access("A", "w", Const(1), event_slot=Const(2))) == (Const(1), Const(2))
    assert expressions_of(Step("c")) == ()
