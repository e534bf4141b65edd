"""The model that a kernel becomes."""

from __future__ import annotations

from collections.abc import Iterator

from hb_analyzer import analyse
from hb_analyzer.model import Access, Loop, Name, Program, Statement, Step, Trigger, Wait
from tests.triton_overlap.conftest import Text
from triton_overlap.slices import slice_neighbourhood, slice_roles
from triton_overlap.translate import translate


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, Loop):
            yield from walk(statement.body)


def of_role(program: Program, number: int, kind: type) -> list[Statement]:
    return [statement for statement in walk(program.roles[number].body) if isinstance(statement, kind)]


def test_the_gluon_gemm(ttgir_of: Text) -> None:
    program = translate(ttgir_of("gemm")).program
    assert [role.name for role in program.roles] == ["default", "partition0"]
    assert [role.kind for role in program.roles] == ["warpgroup", "thread"]
    assert [(event.slots, event.arrivals, event.initial) for event in program.events] == [(3, 1, 0)] * 2
    data = [buffer for buffer in program.buffers if not buffer.barrier_storage]
    assert [(buffer.size, buffer.slots) for buffer in data] == [(49152, 3), (49152, 3), (32768, 1)]
    loads = of_role(program, 1, Access)
    assert [(load.mode, load.ends, load.proxy) for load in loads if isinstance(load, Access)] == [
        ("w", "event", "async")
    ] * 2
    writes, stores = ([a for a in of_role(program, 0, Access) if isinstance(a, Access) and a.mode == m] for m in "wr")
    assert [write.fenced for write in writes] == [True]
    assert [(read.ends, read.proxy) for read in stores] == [("group", "async")] * 2 + [("here", "async")]


def test_loops_with_the_same_bound_have_the_same_trip_count(ttgir_of: Text) -> None:
    program = translate(ttgir_of("gemm")).program
    trips = [loop.trip for number in (0, 1) for loop in of_role(program, number, Loop) if isinstance(loop, Loop)]
    assert [str(trip) for trip in trips] == ["3", "trips0", "trips0"]
    assert [parameter.name for parameter in program.parameters] == ["trips0"]


def test_empty_slots_of_kernels_specialized_by_triton_start_free(ttgir_of: Text) -> None:
    program = translate(ttgir_of("auto")).program
    assert sorted(event.initial for event in program.events) == [0, 0, 0, 1, 1, 1, 1]
    assert {event.arrivals for event in program.events} == {1}  # 128 by one arrival of 128


def test_rings_run_on_across_the_tiles_of_a_persistent_kernel(ttgir_of: Text) -> None:
    program = translate(ttgir_of("persistent")).program
    for number in range(3):
        steps = of_role(program, number, Step)
        assert len(steps) == 1
        slots = {str(wait.slot) for wait in of_role(program, number, Wait) if isinstance(wait, Wait)}
        assert slots == {f"({steps[0].counter} % 3)"}  # type: ignore[attr-defined]
    tile, inner = (loop for loop in of_role(program, 0, Loop) if isinstance(loop, Loop))
    assert isinstance(tile.trip, Name) and isinstance(inner.trip, Name) and tile.trip != inner.trip


def test_the_expected_bytes_complete_the_setting(ttgir_of: Text) -> None:
    """The trigger of an expect stands after the copies that bring its bytes."""
    body = translate(ttgir_of("gemm")).program.roles[1].body[0]
    assert isinstance(body, Loop)
    assert [type(statement) for statement in body.body] == [Wait, Access, Access, Trigger]


def test_whole_kernels_have_no_defects(ttgir_of: Text) -> None:
    for kind, stages in (("gemm", 2), ("attention", 2)):
        report = analyse(translate(ttgir_of(kind, (128, 128), stages)).program)
        assert not (report.deadlocks or report.overruns or report.races or report.arrivals), kind


def test_a_slice_never_accepts_what_the_whole_refuses(ttgir_of: Text) -> None:
    for kind in ("gemm", "attention", "auto"):
        program = translate(ttgir_of(kind, (128, 128), 2)).program
        accepted = 0
        for verdict in analyse(program).verdicts:
            for part in (slice_roles, slice_neighbourhood):
                sliced = analyse(part(program, verdict.a, verdict.b)).verdict(verdict.a, verdict.b)
                assert not sliced.overlap or verdict.overlap, (kind, verdict.a, verdict.b)
                accepted += sliced.overlap
        assert accepted >= 2  # and it does accept what matters
