"""Unrolling at all trip counts, and the shortcut for tile loops."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

from hb_analyzer.conditions import atoms_by_buffer
from hb_analyzer.model import Access, Buffer, Const, Event, If, Loop, Name, Parameter, Program, Role, Trigger, Wait
from hb_analyzer.sweep import Sweep, sweep
from hb_analyzer.trips import Domain, domain_of
from tests.hb_analyzer.programs import persistent_gemm
from tests.hb_analyzer.random_programs import irregular_program, nested_program, single_loop_program


def everything(domain: Domain, silent: set[str] | None = None) -> Sweep:
    names = sorted(buffer.name for buffer in domain.program.buffers)
    targets = {*combinations(names, 2), *((name, name) for name in names)}
    return sweep(domain, atoms_by_buffer(domain.program), silent or set(), targets)[0]


def summary(found: Sweep) -> tuple[set[object], bool, set[str], set[str | None]]:
    pairs: set[object] = {finding.pair for finding, _ in found.findings}
    return pairs, bool(found.deadlocks), set(found.broken), {defect.event for defect in found.overruns}


@pytest.mark.parametrize("seed", range(12))
def test_the_tile_loop_shortcut_finds_the_same(seed: int) -> None:
    source = nested_program(Random(seed))
    # Small ranges keep the full product affordable; the shortcut does not depend on them.
    domain = domain_of(source)
    assert domain.prefix == "T"
    small = {name: range(values[0], min(values[-1], values[0] + 4) + 1) for name, values in domain.ranges.items()}
    short = everything(replace(domain, ranges=small))
    full = everything(replace(domain, ranges=small, prefix=None))
    assert summary(short) == summary(full)
    assert [(f.pair, run.values) for f, run in short.findings] == [(f.pair, run.values) for f, run in full.findings]


def test_the_shortcut_is_not_taken_across_tiles() -> None:
    """The consumer of tile t waits for what the producer does in tile t + 1: with one tile that is never done."""
    giver = Role("g", (Loop("t", Name("T"), (If(Name("t"), (Trigger("e"),)), Loop("k", Name("N"), ()))),))
    taker = Role("c", (Loop("t", Name("T"), (Wait("e"), Access("A", "w"), Loop("k", Name("N"), ()))),))
    source = Program(
        "p",
        (Buffer("A", 8), Buffer("B", 8)),
        (Event("e", initial=0),),
        (giver, taker),
        (Parameter("T"), Parameter("N")),
    )
    domain = domain_of(source)
    assert domain.prefix == "T"
    assert dict(everything(domain).deadlocks[0].parameters) == {"T": 1, "N": 0}


def test_a_role_without_the_tile_loop_does_not_hide_a_deadlock() -> None:
    giver = Role("g", (Loop("t", Name("T"), (Trigger("e"),)),))
    taker = Role("c", (Loop("k", Name("N"), (Access("A", "w"),)), Wait("e"), Loop("j", Const(3), (Access("B", "w"),))))
    source = Program(
        "p", (Buffer("A", 8), Buffer("B", 8)), (Event("e"),), (giver, taker), (Parameter("T"), Parameter("N"))
    )
    domain = domain_of(source)
    assert domain.prefix == "T"
    assert dict(everything(domain).deadlocks[0].parameters) == {"T": 0, "N": 0}


def test_witnesses_have_the_smallest_trip_counts() -> None:
    found = everything(domain_of(persistent_gemm()))
    assert {f.pair: dict(run.values) for f, run in found.findings}["lhs", "out"] == {"T": 2, "N": 1}


@pytest.mark.parametrize("seed", range(40))
def test_nothing_new_happens_beyond_the_bound(seed: int) -> None:
    for source in (single_loop_program(Random(seed)), irregular_program(Random(seed))):
        domain = domain_of(source)
        further = {name: range(values[0], values[-1] + domain.period + 4) for name, values in domain.ranges.items()}
        assert summary(everything(domain)) == summary(everything(replace(domain, ranges=further)))
