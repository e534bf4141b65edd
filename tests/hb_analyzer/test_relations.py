"""Conditions that compare parameters with each other."""

from __future__ import annotations

import pytest

from hb_analyzer import analyse
from hb_analyzer.composite_trips import UnboundedError
from hb_analyzer.model import Access, BinOp, Buffer, Const, If, IntExpr, Loop, Name, Parameter, Program, Role, Statement
from hb_analyzer.relations import atoms_of, name_relations
from hb_analyzer.simulator.layout import everything
from hb_analyzer.simulator.witness import Sampler, search

N, M, K = Name("N"), Name("M"), Name("K")
READ_A, WRITE_A, WRITE_B = Access("A", "r"), Access("A", "w"), Access("B", "w")


def program(*body: Statement) -> Program:
    parameters = (Parameter("N"), Parameter("M"), Parameter("K"))
    return Program("p", (Buffer("A", 64), Buffer("B", 64)), (), (Role("r", body, "thread"),), parameters)


def equal(a: IntExpr, b: IntExpr) -> BinOp:
    return BinOp("==", a, b)


def times(factor: int, expr: IntExpr) -> BinOp:
    return BinOp("*", Const(factor), expr)


def test_conditions_are_taken_apart_at_and_or_and_not() -> None:
    a, b = equal(N, M), BinOp("<", K, Const(3))
    remainder = equal(BinOp("%", N, Const(2)), Const(0))
    assert list(atoms_of(BinOp("&&", a, BinOp("||", equal(b, Const(0)), remainder)))) == [a, b, remainder]


def test_comparisons_become_parameters_that_are_0_or_1() -> None:
    own = BinOp("<", Name("i"), N)
    condition = BinOp("&&", equal(N, M), own)
    result = name_relations(program(Loop("i", N, (If(condition, (READ_A,)),))))
    assert result.parameters[-1] == Parameter("(N == M)", 0, 1)
    assert result.roles[0].body == (Loop("i", N, (If(BinOp("&&", Name("(N == M)"), own), (READ_A,)),)),)


def test_programs_without_relations_are_left_alone() -> None:
    source = program(If(BinOp("&&", BinOp("<", N, Const(3)), BinOp("<", M, Const(3))), (READ_A,)))
    assert name_relations(source) is source
    with pytest.raises(UnboundedError, match="relates several parameters"):
        name_relations(program(If(BinOp("-", N, M), (READ_A,))))


TWICE = Loop("k", K, (READ_A, WRITE_A, WRITE_B))  # what iteration 0 writes is read in iteration 1
BY_THIRDS = If(equal(N, times(3, M)), (If(equal(M, times(3, K)), (TWICE,)),))  # N = 18 at least
LATE = equal(BinOp("%", BinOp("+", Name("i"), Const(1)), Const(3)), Const(0))
PARTS = (Loop("i", M, (If(LATE, (WRITE_A,)),)), Loop("i", K, (If(LATE, (WRITE_B, READ_A)),)))


@pytest.mark.parametrize(
    ("body", "values"),
    [(BY_THIRDS, {"N": 18, "M": 6, "K": 2}), (If(equal(N, BinOp("+", M, K)), PARTS), {"N": 6, "M": 3, "K": 3})],
)
def test_what_happens_at_related_counts_only_is_found(body: Statement, values: dict[str, int]) -> None:
    source = program(body)
    assert search(Sampler(source, everything, fixed=values), [("clobber", ("A", "B"))], 0, 10) is not None
    assert analyse(source).verdict("A", "B").kind == "clobber"
