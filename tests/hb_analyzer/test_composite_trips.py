"""Trip counts that are expressions of parameters."""

from __future__ import annotations

import pytest

from hb_analyzer import analyse
from hb_analyzer.composite_trips import UnboundedError, name_composite_trips
from hb_analyzer.model import (
    Access,
    BinOp,
    Buffer,
    Const,
    Event,
    If,
    IntExpr,
    Loop,
    Name,
    Parameter,
    Program,
    Role,
    Statement,
)
from hb_analyzer.trips import domain_of
from tests.hb_analyzer.programs import gemm

K64 = BinOp("cdiv", Name("K"), Const(64))


def program(*body: Statement, parameters: tuple[Parameter, ...]) -> Program:
    return Program("p", (Buffer("A", 64), Buffer("B", 64)), (Event("e"),), (Role("r", body),), parameters)


def loop(trip: IntExpr, *body: Statement) -> Loop:
    return Loop("i", trip, body or (Access("A", "w"),))


def test_programs_without_composite_counts_are_left_alone() -> None:
    source = gemm()
    assert name_composite_trips(source) is source


def test_bounds_follow_from_those_of_the_parameters() -> None:
    bounded = name_composite_trips(program(loop(K64), parameters=(Parameter("K", 65, 640),)))
    assert bounded.parameters[-1] == Parameter("cdiv(K, 64)", 2, 10)
    turning = BinOp("%", Name("K"), Const(3))
    assert name_composite_trips(program(loop(turning), parameters=(Parameter("K", 65, 640),))).parameters[-1] == (
        Parameter("(K % 3)", 0, None)
    )


def test_a_count_with_an_offset_keeps_the_offset() -> None:
    source = name_composite_trips(program(loop(BinOp("-", K64, Const(1))), parameters=(Parameter("K"),)))
    (role,) = source.roles
    assert role.body == (loop(BinOp("-", Name("cdiv(K, 64)"), Const(1))),)


def test_refusals_are_printed() -> None:
    source = program(loop(K64), loop(Name("K")), parameters=(Parameter("K"),))
    assert analyse(source).verdict("A", "B").why == "cdiv(K, 64) is not provably equal or unrelated to other uses of K"


def test_composite_counts_become_parameters() -> None:
    source = program(loop(K64), parameters=(Parameter("K", 1),))
    domain = domain_of(source)
    assert list(domain.ranges) == ["cdiv(K, 64)"]
    # K ≥ 1 gives at least one iteration.
    assert domain.ranges["cdiv(K, 64)"][0] == 1


def test_a_composite_count_with_other_uses_of_its_parameter_is_refused() -> None:
    with pytest.raises(UnboundedError, match="not provably equal or unrelated"):
        domain_of(program(loop(K64), loop(Name("K")), parameters=(Parameter("K"),)))
    with pytest.raises(UnboundedError, match="not provably equal or unrelated"):
        domain_of(program(loop(K64), loop(BinOp("/", Name("K"), Const(64))), parameters=(Parameter("K"),)))


def test_composite_counts_are_recognised_in_conditions() -> None:
    ahead = If(BinOp("<", BinOp("+", Name("i"), Const(1)), K64), (Access("A", "w"),))
    domain = domain_of(program(loop(K64, ahead), parameters=(Parameter("K"),)))
    assert list(domain.ranges) == ["cdiv(K, 64)"]


def test_a_composite_count_that_may_be_negative_stands_alone() -> None:
    """In a sum, or in a condition, it is more than a loop that does not run."""
    twice = BinOp("*", BinOp("-", Name("N"), Const(5)), Const(2))
    parameters = (Parameter("N"),)
    assert domain_of(program(loop(twice), parameters=parameters)).ranges["((N - 5) * 2)"][0] == 0
    negative = If(BinOp("<", twice, Const(0)), (Access("A", "w"),))
    for body in ((loop(BinOp("+", twice, Const(3))),), (loop(twice), negative)):
        with pytest.raises(UnboundedError, match="may be negative"):
            domain_of(program(*body, parameters=parameters))
