"""Which trip counts are tried."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from hb_analyzer.composite_trips import UnboundedError
from hb_analyzer.conditions import Conditions, atoms_by_buffer
from hb_analyzer.decide import decide
from hb_analyzer.graph import Ordering, topological_order
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
    Step,
    Trigger,
)
from hb_analyzer.trips import domain_of
from hb_analyzer.unroll import unroll
from tests.hb_analyzer.programs import attention, gemm, persistent_gemm
from tests.hb_analyzer.random_programs import periodic_program


def program(
    *body: Statement, parameters: tuple[Parameter, ...] = (Parameter("N"), Parameter("M")), slots: int = 1
) -> Program:
    buffers = (Buffer("A", 64, slots=slots), Buffer("B", 64))
    return Program("p", buffers, (Event("e"),), (Role("r", body),), parameters)


def loop(trip: IntExpr, *body: Statement, counter: str = "i") -> Loop:
    return Loop(counter, trip, body or (Access("A", "w"),))


def test_the_specified_bound() -> None:
    # One ring released in advance: 2·S + L.
    assert domain_of(gemm(stages=4)).ranges == {"N": range(0, 2 * 4 + 4 + 1)}
    assert domain_of(gemm(stages=3)).ranges == {"N": range(0, 2 * 3 + 3 + 1)}


def test_rings_in_series_add_up() -> None:
    # K and V rings of two slots each are released in advance: a path may pass both.
    assert domain_of(attention(stages=2)).bound == 2 * (2 + 2) + 2


def test_rings_of_three_and_four_slots_reach_their_common_period() -> None:
    source = replace(gemm(stages=4), events=(Event("full", 4), Event("empty", 4), Event("other", 3)))
    assert domain_of(source).period == 12
    assert domain_of(source).bound == 2 * 4 + 12


def test_minimum_and_maximum_are_respected() -> None:
    limited = program(loop(Name("N")), parameters=(Parameter("N", 1, 2),))
    assert list(domain_of(limited).valuations()) == [{"N": 1}, {"N": 2}]
    shifted = program(loop(Name("N")), parameters=(Parameter("N", 1),))
    assert domain_of(shifted).ranges["N"][0] == 1
    with pytest.raises(UnboundedError, match="maximum is below its minimum"):
        domain_of(program(loop(Name("N")), parameters=(Parameter("N", 3, 2),)))


def test_independent_counts_take_the_product() -> None:
    domain = domain_of(program(loop(Name("N")), loop(Name("M"))))
    assert len(list(domain.valuations())) == (domain.bound + 1) ** 2
    assert next(domain.valuations()) == {"N": 0, "M": 0}


def test_unused_parameters_are_left_alone() -> None:
    assert domain_of(program(loop(Const(3)))).ranges == {}


def test_thresholds_shift_and_factors_stretch() -> None:
    plain = domain_of(program(loop(Name("N")))).bound

    def bound(condition: IntExpr, *more: Statement) -> int:
        return domain_of(program(loop(Name("N"), If(condition, (Access("A", "w"),))), *more)).bound

    assert bound(BinOp("==", Name("i"), Const(100))) >= plain + 100
    assert bound(BinOp("<", BinOp("+", Name("i"), Const(2)), Name("N"))) == plain + 2
    assert bound(BinOp("==", BinOp("%", Name("i"), Const(5)), Const(0))) >= plain + 4
    assert bound(BinOp("<", BinOp("*", Const(2), Name("i")), Name("N"))) >= 2 * plain
    sixteenth = BinOp("/", BinOp("/", Name("i"), Const(4)), Const(4))
    assert bound(BinOp("==", sixteenth, Const(3))) >= plain + 48
    assert bound(BinOp("<", BinOp("*", Const(2), BinOp("*", Const(3), Name("i"))), Name("N"))) >= 6 * plain
    # Another count cuts the loop into two stretches, each of which may be long.
    assert bound(BinOp("<", Name("i"), Name("M")), loop(Name("M"))) >= 2 * plain
    assert bound(BinOp("<", Name("i"), Name("c")), Step("c")) >= 2 * plain
    # Where only remainders are compared, nothing is cut.
    same = BinOp("==", BinOp("%", Name("i"), Const(2)), BinOp("%", Name("c"), Const(2)))
    assert bound(same, Step("c")) == plain + 2  # L = 2, and c is 1 before the loop


def test_conditions_of_a_period_are_followed_for_three_of_it() -> None:
    def high(*body: Statement) -> dict[str, int]:
        return {name: values[-1] for name, values in domain_of(program(*body)).ranges.items()}

    sometimes = If(BinOp("==", BinOp("%", Name("i"), Const(4)), Const(0)), (Access("A", "w"),))
    plain = high(loop(Name("N")), loop(Name("M")))["N"]
    assert high(loop(Name("N"), sometimes), loop(Name("M"))) == {"N": plain + 3 + 12, "M": plain + 3}
    # What is counted in every fourth iteration comes round four times more slowly.
    counted = If(sometimes.condition, (Step("c"),))
    assert high(loop(Name("N"), counted), loop(Name("M"))) == {"N": 4 * (plain + 3 + 12), "M": plain + 3}
    either = If(sometimes.condition, (Step("c"),), (Step("c"),))
    assert high(loop(Name("N"), either), loop(Name("M"))) == {"N": plain + 3 + 12, "M": plain + 3}


def test_a_parameter_that_may_be_negative_reaches_as_far() -> None:
    negative = program(loop(Name("N")), parameters=(Parameter("N", -5),))
    assert domain_of(negative).ranges["N"] == range(-5, domain_of(program(loop(Name("N")))).bound + 1)


@pytest.mark.parametrize(
    "body",
    [
        (loop(Name("N"), loop(BinOp("*", Name("M"), Name("i")), counter="j")),),
        (loop(Name("N"), If(BinOp("<", BinOp("*", Name("i"), Name("M")), Const(3)), (Access("A", "w"),))),),
        (loop(Name("N"), If(BinOp("==", BinOp("%", Name("i"), Name("M")), Const(0)), (Access("A", "w"),))),),
        (loop(Name("N"), loop(Name("i"), loop(Name("j"), Step("c"), counter="k"), counter="j")),),
        (loop(Name("N"), Step("c"), loop(Name("c"), Step("d"), counter="j")),),
    ],
)
def test_what_no_bound_covers_is_refused(body: tuple[Statement, ...]) -> None:
    with pytest.raises(UnboundedError):
        domain_of(program(*body, parameters=(Parameter("N"), Parameter("M"))))


def test_the_tile_loop_needs_its_largest_value_only() -> None:
    domain = domain_of(persistent_gemm())
    assert domain.prefix == "T"
    assert {values["T"] for values in domain.valuations(whole=False)} == {domain.bound}
    assert len(list(domain.valuations())) == (domain.bound + 1) ** 2


def test_a_tile_loop_that_something_follows_has_no_shortcut() -> None:
    source = persistent_gemm()
    role = source.roles[0]
    followed = replace(role, body=(*role.body, Trigger("full")))
    assert domain_of(replace(source, roles=(followed, *source.roles[1:]))).prefix is None


@pytest.mark.parametrize("block", range(3))
def test_nothing_new_happens_at_larger_trip_counts(block: int) -> None:
    accepted = 0
    for seed in range(100 * block, 100 * block + 100):
        source = periodic_program(Random(seed))
        decision = decide(source)
        pairs = {("b0", "b1")} - decision.refused.keys()
        accepted += len(pairs)
        most = domain_of(source).ranges["N"][-1]
        for count in (most + 1, most + 8, 2 * most + 13) if pairs else ():
            run = unroll(source, {"N": count}, decision.silent)
            conditions = Conditions(run, Ordering(run, topological_order(run.preds)), atoms_by_buffer(source))
            assert not list(conditions.findings(pairs)), (seed, count)
    assert accepted > 20
