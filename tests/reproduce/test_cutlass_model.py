"""The models of CUTLASS' kernels: well synchronised, and a union of them valid exactly where nothing can race."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

import pytest

from hb_analyzer import analyse
from hb_analyzer.model import Barrier, Drain, If, Loop, Program, Role, Statement, Trigger, Wait
from reproduce.cutlass.configurations import ALL, HALF_CD, NON_PERSISTENT, PING_PONG, TABLE2, Configuration, Epilogue
from reproduce.cutlass.model import defects_of, program, union_refusals

PERSISTENT = (*TABLE2, PING_PONG)
NON_PERSISTENT_WITH_C = replace(NON_PERSISTENT, epilogue=Epilogue.HALF_CD)


def refusals(model: Program) -> list[str]:
    return union_refusals(analyse(model))


@pytest.mark.parametrize("kernel", ALL, ids=attrgetter("name"))
@pytest.mark.parametrize("tiles", [1, 3])
def test_the_kernels_own_synchronisation_has_no_defects(kernel: Configuration, tiles: int) -> None:
    assert not defects_of(analyse(program(kernel, max_tiles_per_cta=tiles)))


@pytest.mark.parametrize("kernel", PERSISTENT, ids=attrgetter("name"))
def test_with_one_tile_per_cta_the_union_is_accepted(kernel: Configuration) -> None:
    assert not refusals(program(kernel, max_tiles_per_cta=1))


@pytest.mark.parametrize("kernel", PERSISTENT, ids=attrgetter("name"))
def test_with_two_tiles_the_next_tile_lands_on_the_epilogue(kernel: Configuration) -> None:
    found = refusals(program(kernel, max_tiles_per_cta=2))
    assert [line.split(":")[0] for line in found] == ["A over D", "B over D"]
    assert "producer [iteration 1, 0]: bulk copy into A" in found[0]
    assert "consumer0 [iteration 0, 0]: write D to the staging buffer" in found[0]


def test_the_non_persistent_kernel_is_accepted() -> None:
    assert not refusals(program(NON_PERSISTENT, max_tiles_per_cta=None))


def test_its_load_of_c_waits_for_the_main_loop() -> None:
    assert not refusals(program(NON_PERSISTENT_WITH_C, max_tiles_per_cta=None, beta=1))


def test_the_cooperative_load_of_c_does_not() -> None:
    found = refusals(program(HALF_CD, max_tiles_per_cta=1, beta=1))
    assert "c_producer [iteration 0, 0]: bulk copy of C" in found[0]


def test_without_a_meeting_one_consumer_stages_d_while_the_other_still_multiplies() -> None:
    found = refusals(program(HALF_CD, max_tiles_per_cta=1))
    assert "consumer0 [iteration 0, 0]: matrix instructions read A" in found[0]
    assert "consumer1 [iteration 0, 0]: write D to the staging buffer" in found[0]


def test_a_producer_that_waits_for_the_epilogue_makes_the_union_valid_for_any_number_of_tiles() -> None:
    assert not refusals(program(TABLE2[0], max_tiles_per_cta=None, guarded=True))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", TABLE2[1:], ids=attrgetter("name"))
def test_so_it_does_for_the_deeper_rings(kernel: Configuration) -> None:
    assert not refusals(program(kernel, max_tiles_per_cta=None, guarded=True))


@pytest.mark.parametrize(
    ("kernel", "beta", "guarded"),
    [
        (PING_PONG, 0, True),
        (replace(PING_PONG, epilogue=Epilogue.HALF_CD), 1, False),
        (NON_PERSISTENT_WITH_C, 0, False),
    ],
)
def test_what_is_not_modelled_is_refused_not_guessed(kernel: Configuration, beta: float, guarded: bool) -> None:
    with pytest.raises(ValueError, match="is modelled without"):
        program(kernel, max_tiles_per_cta=1, beta=beta, guarded=guarded)


# --------------------------------------------------------------------------------------------------------------
# Mutants: each synchronisation that the models state is needed


def without(body: tuple[Statement, ...], label: str) -> tuple[Statement, ...]:
    """``body`` less every operation with this label."""
    kept: list[Statement] = []
    for statement in body:
        if isinstance(statement, Loop):
            kept.append(replace(statement, body=without(statement.body, label)))
        elif isinstance(statement, If):
            then, orelse = without(statement.then, label), without(statement.orelse, label)
            kept.append(replace(statement, then=then, orelse=orelse))
        elif not (isinstance(statement, (Barrier, Drain, Trigger, Wait)) and statement.label == label):
            kept.append(statement)
    return tuple(kept)


def mutant(model: Program, label: str) -> Program:
    roles = tuple(replace(role, body=without(role.body, label)) for role in model.roles)
    assert roles != model.roles, f"no operation is labelled {label!r}"
    return replace(model, roles=roles)


@pytest.mark.parametrize(
    "label",
    [
        "wait until the stage is released",
        "wait for A and B",
        "at most one step of matrix instructions runs",
        "matrix instructions have completed",
        "the staging buffer is free",
        "D is staged, proxy fence before",
        "at most one store is reading",
    ],
)
def test_every_synchronisation_of_the_cooperative_kernel_is_needed(label: str) -> None:
    model = program(TABLE2[0], max_tiles_per_cta=1)
    assert refusals(mutant(model, label))


@pytest.mark.parametrize(
    "label",
    ["wait for the turn to store", "the other consumer may store", "every store has read its buffer (store_tail)"],
)
def test_ping_pong_consumers_must_take_turns_to_store(label: str) -> None:
    model = program(PING_PONG, max_tiles_per_cta=3)
    assert defects_of(analyse(mutant(model, label)))


def test_the_guard_needs_the_read_completion_of_the_stores() -> None:
    """The store thread's own wait, not the fact that it issued the stores, is what the producer may rely on."""
    model = program(TABLE2[0], max_tiles_per_cta=2, guarded=True)
    assert not refusals(model)
    assert refusals(mutant(model, "every store has read its buffer (store_tail)"))


def test_roles_are_named_once() -> None:
    for kernel in ALL:
        roles: list[Role] = list(program(kernel, max_tiles_per_cta=1).roles)
        assert len({role.name for role in roles}) == len(roles)
