"""The check on final offsets, on layouts made by hand."""

from __future__ import annotations

from triton_overlap.allocation import read_layout


def layout(*lines: str, after: tuple[str, ...] = ()) -> str:
    inside = ["ttg.warp_specialize(%b, %d) {", "} : (i32) -> ()"]
    return "\n".join(["module attributes {ttg.shared = 4096 : i32} {", *lines, *inside, *after])


def barriers(name: str, offset: int, *after_init: str) -> list[str]:
    kind = "!ttg.memdesc<1x1xi64, #shared, #smem, mutable>"
    return [
        f"%{name} = ttg.local_alloc {{allocation.offset = {offset} : i32}} : () -> {kind}",
        f"%{name}0 = ttg.memdesc_index %{name}[%c0] : {kind} -> !ttg.memdesc<1xi64, #shared, #smem, mutable>",
        f"ttng.init_barrier %{name}0, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>",
        *(f"{text} %{name}0 : !ttg.memdesc<1xi64, #shared, #smem, mutable>" for text in after_init),
    ]


def data(offset: int) -> str:
    kind = "!ttg.memdesc<64x16xf16, #shared, #smem, mutable>"
    return f"%d{offset} = ttg.local_alloc {{allocation.offset = {offset} : i32}} : () -> {kind}"


def test_data_over_an_mbarrier() -> None:
    found = read_layout(layout(*barriers("b", 1024), data(0)))
    assert found.total == 4096
    (violation,) = found.violations()
    assert str(violation).startswith("%d0 (line 5) at 0 (2048 B) lies over the mbarriers %b (line 2) at 1024 (8 B)")


def test_memory_beside_an_mbarrier() -> None:
    assert not read_layout(layout(*barriers("b", 2048), data(0))).violations()


def test_an_invalidated_mbarrier_owns_nothing() -> None:
    assert not read_layout(layout(*barriers("b", 0, "ttng.inval_barrier"), data(0))).violations()


def test_data_that_was_there_before_the_init() -> None:
    assert not read_layout(layout(data(0), *barriers("b", 0))).violations()


def test_mbarriers_over_mbarriers() -> None:
    assert len(read_layout(layout(*barriers("a", 0), *barriers("b", 0))).violations()) == 1


def test_scratch_over_an_mbarrier() -> None:
    scratch = "%9 = ttg.convert_layout %8 {allocation.offset = 0 : i32} : tensor<1xf16> -> tensor<1xf16>"
    assert read_layout(layout(*barriers("b", 0), scratch)).violations()
    assert not read_layout(layout(*barriers("b", 512), scratch)).violations()  # the allocator keeps it below
    assert read_layout(layout(*barriers("b", 512), after=(scratch,))).violations()  # after the region it does not
