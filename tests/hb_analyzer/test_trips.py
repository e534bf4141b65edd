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
    Buffer,
    Const,
    Event,
    IntExpr,
    Loop,
    Name,
    Parameter,
    Program,
    Role,
    Statement,
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


def test_a_parameter_that_may_be_negative_reaches_as_far() -> None:
    negative = program(loop(Name("N")), parameters=(Parameter("N", -5),))
    assert domain_of(negative).ranges["N"] == range(-5, domain_of(program(loop(Name("N")))).bound + 1)


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
