"""Conditions 1 and 2 on finite graphs."""

from __future__ import annotations

from hb_analyzer.conditions import Conditions, Finding, atoms_by_buffer, bits_of
from hb_analyzer.graph import Ordering, topological_order
from hb_analyzer.model import Access, Buffer, Const, Event, Program, Role, Statement, Trigger, Wait
from hb_analyzer.unroll import unroll
from tests.hb_analyzer.programs import load

HALVES = (((0, 4),), ((4, 8),))


def findings(*bodies: tuple[Statement, ...]) -> dict[tuple[str, str], Finding]:
    buffers = (Buffer("A", 64, slots=2, shape=(8,)), Buffer("B", 64, shape=(8,)))
    roles = tuple(Role(f"r{i}", body) for i, body in enumerate(bodies))
    program = Program("p", buffers, (Event("e"), Event("f")), roles)
    run = unroll(program, {})
    conditions = Conditions(run, Ordering(run, topological_order(run.preds)), atoms_by_buffer(program))
    return {f.pair: f for f in conditions.findings({("A", "B"), ("A", "A"), ("B", "B")})}


def kinds(*bodies: tuple[Statement, ...]) -> dict[tuple[str, str], str]:
    return {pair: finding.kind for pair, finding in findings(*bodies).items()}


def w(buffer: str, slot: int = 0, region: tuple[tuple[int, int], ...] | None = (), **more: object) -> Access:
    return Access(buffer, "w", Const(slot), region, **more)  # type: ignore[arg-type]


def r(buffer: str, slot: int = 0, region: tuple[tuple[int, int], ...] | None = (), **more: object) -> Access:
    return Access(buffer, "r", Const(slot), region, **more)  # type: ignore[arg-type]


def test_bits_of() -> None:
    assert list(bits_of(0b10110)) == [1, 2, 4]
    assert list(bits_of(0)) == []


def test_unordered_accesses_conflict_unless_both_read() -> None:
    assert kinds((w("A"),), (r("B"),)) == {("A", "B"): "conflict"}
    assert kinds((r("A"),), (r("B"),)) == {}
    # Any slot of A may lie over B.
    assert kinds((w("A", 1),), (w("B"),)) == {("A", "B"): "conflict"}


def test_an_event_orders_and_a_second_wait_is_not_needed() -> None:
    assert kinds((w("A"), r("A"), Trigger("e")), (Wait("e"), w("B"))) == {}
    assert kinds((w("A"), r("A"), Trigger("e"), r("A")), (Wait("e"), w("B"))) == {("A", "B"): "conflict"}


def test_a_copy_is_under_way_until_its_event_is_set() -> None:
    copy = load("A", "e", Const(0))
    assert kinds((copy, Trigger("e")), (Wait("e"), w("B"))) == {}
    # Through another event nothing is known about its bytes.
    assert kinds((copy, Trigger("e"), Trigger("f")), (Wait("f"), w("B"))) == {("A", "B"): "conflict"}
    assert kinds((copy, w("B"))) == {("A", "B"): "conflict"}


def test_an_access_that_never_ends_conflicts_with_all_that_follows() -> None:
    assert kinds((r("A", ends="never"), w("B"))) == {("A", "B"): "conflict"}
    assert kinds((w("B"), r("A", ends="never"))) == {}


def test_a_written_b_written_a_read_in_one_role_is_a_clobber() -> None:
    body = (w("A"), w("B"), r("B"), r("A"))
    found = findings(body)
    assert found["A", "B"].kind == "clobber"
    assert (found["A", "B"].first, found["A", "B"].between, found["A", "B"].second) == (0, 1, 3)
    assert kinds((w("A"), r("A"), w("B"), r("B"))) == {}


def test_a_clobber_of_either_buffer_counts() -> None:
    assert kinds((w("B"), w("A"), r("B"))) == {("A", "B"): "clobber"}


def test_a_rewritten_value_is_not_lost() -> None:
    assert kinds((w("A"), w("B"), r("B"), w("A"), r("A"))) == {}
    assert kinds((w("A"), w("B"), w("A", 1), r("A"))) == {("A", "B"): "clobber"}, "another slot does not restore it"


def test_a_write_after_the_read_restores_nothing() -> None:
    assert kinds((w("A"), w("B"), r("A"), w("A"))) == {("A", "B"): "clobber"}
    assert kinds((w("A"), w("A"), w("B"), r("A"))) == {("A", "B"): "clobber"}


def test_a_value_never_written_before_is_not_lost() -> None:
    assert kinds((w("B"), r("B"), w("A"), r("A"))) == {}
    assert kinds((w("B"), r("B"), r("A"))) == {}
    assert kinds((w("A", 1), w("B"), r("A", 0))) == {}


def test_coverage_is_by_the_union_of_regions() -> None:
    top, bottom = HALVES
    assert kinds((w("A"), w("B"), w("A", 0, top), w("A", 0, bottom), r("A"))) == {}
    assert kinds((w("A"), w("B"), w("A", 0, top), r("A"))) == {("A", "B"): "clobber"}
    assert kinds((w("A"), w("B"), w("A", 0, top), r("A", 0, top))) == {}
    # Only the half that was written before B can be lost.
    assert kinds((w("A", 0, bottom), w("B"), w("A", 0, bottom), r("A"))) == {}


def test_unknown_regions_cover_nothing_and_need_everything() -> None:
    assert kinds((w("A"), w("B"), w("A", 0, None), r("A"))) == {("A", "B"): "clobber"}
    assert kinds((w("A", 0, HALVES[0]), w("B"), w("A", 0, HALVES[1]), r("A", 0, None))) == {("A", "B"): "clobber"}
    assert kinds((w("A", 0, None), w("B"), r("A", 0, HALVES[0]))) == {("A", "B"): "clobber"}


def test_races_inside_one_buffer_need_a_common_slot_and_region() -> None:
    assert kinds((w("A"),), (r("A"),)) == {("A", "A"): "conflict"}
    assert kinds((w("A", 0),), (r("A", 1),)) == {}
    assert kinds((w("A", 0, HALVES[0]),), (w("A", 0, HALVES[1]),)) == {}
    assert kinds((w("A", 0, HALVES[0]),), (w("A", 0, None),)) == {("A", "A"): "conflict"}


def test_a_generic_write_needs_a_fence_before_an_asynchronous_read() -> None:
    staged = r("B", proxy="async")
    assert kinds((w("B", fenced=False), staged)) == {("B", "B"): "proxy"}
    assert kinds((w("B"), staged)) == {}
    assert kinds((w("B", fenced=False), r("B"))) == {}
    assert kinds((w("B", 0, HALVES[0], fenced=False), r("B", 0, HALVES[1], proxy="async"))) == {}


def test_a_generic_write_needs_a_fence_before_another_buffers_copy_lands_on_it() -> None:
    copy = load("A", "e", Const(0))
    assert kinds((w("B", fenced=False), copy, Trigger("e"))) == {("A", "B"): "proxy"}
    assert kinds((w("B"), copy, Trigger("e"))) == {}
