"""Places, and which of them coincide."""

from __future__ import annotations

from hb_analyzer.model import Access, Buffer, Const, Program, Role
from hb_analyzer.report import Placement
from hb_analyzer.simulator.code import Code, compile_program
from hb_analyzer.simulator.layout import Layout, everything, nothing, overlay, placed


def code(*accesses: Access) -> Code:
    buffers = (Buffer("A", 64, slots=2, shape=(4, 4)), Buffer("B", 32, shape=(4,)), Buffer("C", 32))
    return compile_program(Program("p", buffers, (), (Role("r", accesses),)), {})


def test_regions_cut_a_slot_into_cells() -> None:
    made = code(Access("A", "w", region=((0, 2), (0, 4))), Access("A", "w", region=((1, 4), (0, 4))), Access("A", "r"))
    Layout(made, nothing)
    top, bottom, whole = made.threads[0].code
    assert top.own & bottom.own and top.own | bottom.own == whole.own
    assert top.must == top.own


def test_an_unknown_region_may_be_anything_and_is_certainly_nothing() -> None:
    made = code(Access("A", "w", region=None), Access("A", "r"))
    Layout(made, nothing)
    write, read = made.threads[0].code
    assert write.own == read.own and write.must == 0


def test_slots_are_apart() -> None:
    made = code(Access("A", "w", Const(0)), Access("A", "w", Const(1)))
    Layout(made, everything)
    assert not made.threads[0].code[0].own & made.threads[0].code[1].own
    assert not made.threads[0].code[0].foreign


def test_addresses_decide_which_slots_coincide() -> None:
    made = code(Access("A", "w", Const(0)), Access("A", "w", Const(1)), Access("B", "w"), Access("C", "w"))
    sizes = {"A": 64, "B": 32, "C": 32}
    Layout(made, placed(Placement({"A": 0, "B": 32, "C": 64}, sizes, 96, 96, True)))
    a0, a1, b, c = made.threads[0].code
    assert b.foreign == a1.own and a1.foreign == b.own
    assert not a0.foreign and not c.foreign


def test_an_overlay_concerns_the_named_buffers_only() -> None:
    made = code(Access("A", "w", Const(1)), Access("B", "w"), Access("C", "w"))
    Layout(made, overlay("A", "C"))
    a, b, c = made.threads[0].code
    assert (a.foreign, b.foreign, c.foreign) == (c.own, 0, a.own)
