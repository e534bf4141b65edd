"""Programs that break the rules of the model are named as such."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hb_analyzer.model import Access, Barrier, Buffer, Drain, Event, Loop, Name, Opaque, Program, Role, Trigger, Wait
from hb_analyzer.unrolling import ModelError
from hb_analyzer.validate import validate
from tests.hb_analyzer.programs import attention, gemm, persistent_gemm

BASE = Program("p", (Buffer("A", 8),), (Event("e"),), (Role("r", ()),))


def test_kernels_are_valid() -> None:
    for source in (gemm(3), attention(), persistent_gemm()):
        validate(source)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (Access("X", "w"), "there is no buffer 'X'"),
        (Access("A", "rw"), "there is no access mode 'rw'"),
        (Access("A", "w", ends="later"), "there is no end of an access 'later'"),
        (Access("A", "w", ends="event"), "there is no event 'None'"),
        (Access("A", "w", proxy="tensor"), "there is no proxy 'tensor'"),
        (Trigger("x"), "there is no event 'x'"),
        (Wait("x"), "there is no event 'x'"),
        (Barrier("b", ("r", "s")), "role r, barrier b: there is no role 's'"),
        (Drain(-1), "leaves -1 groups pending"),
        (Opaque("why", ("X",)), "there is no buffer 'X'"),
    ],
)
def test_statements(statement: Access, message: str) -> None:
    nested = (Loop("i", Name("N"), (statement,)),)
    with pytest.raises(ModelError) as caught:
        validate(replace(BASE, roles=(Role("r", nested),)))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (replace(BASE, buffers=(Buffer("A", 8), Buffer("A", 8))), "2 buffers are named A"),
        (replace(BASE, events=(Event("e"), Event("e"))), "2 events are named e"),
        (replace(BASE, roles=(Role("r", ()), Role("r", ()))), "2 roles are named r"),
        (replace(BASE, events=(Event("e", 0),)), "e has 0 slots"),
        (replace(BASE, events=(Event("e", 1, 0),)), "event e: arrivals 0"),
    ],
)
def test_declarations(program: Program, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        validate(program)
    assert message in str(caught.value)
