"""Broken kernels: each is refused, with its reason. They are made by editing the TTGIR of right ones."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.triton_overlap.conftest import Text
from triton_overlap import RefusedError, Settings, make_plan
from triton_overlap.translate import translate


def refusal(text: str, settings: Settings | None = None) -> str:
    with pytest.raises(RefusedError) as refused:
        make_plan(text, settings)
    return str(refused.value)


def once(text: str, old: str, new: str) -> str:
    """Replaces what must occur exactly once, so that an edit cannot miss."""
    assert text.count(old) == 1, f"{text.count(old)} times: {old}"
    return text.replace(old, new)


def partition(text: str) -> tuple[str, str]:
    """The text up to the first worker partition, and from there on."""
    at = text.index("partition0(")
    return text[:at], text[at:]


def test_trip_counts_differ(ttgir_of: Text) -> None:
    before, after = partition(ttgir_of("gemm"))
    constant = re.search(r"(%c3_i32\w*) = arith.constant 3", after)
    assert constant
    after = re.sub(r"scf.for (%\S+) = (%\S+) to %arg\d+ ", rf"scf.for \1 = \2 to {constant[1]} ", after, count=1)
    reason = refusal(before + after)
    assert "copy into ring" in reason and "not ordered" in reason


def test_matrix_instructions_not_drained(ttgir_of: Text) -> None:
    reason = refusal(once(ttgir_of("gemm"), "{pendings = 0 : i32} : tensor", "{pendings = 1 : i32} : tensor"))
    assert "multiply" in reason or "read of ring" in reason


def test_the_consumer_waits_for_another_mbarrier(ttgir_of: Text) -> None:
    """It waits for `empty`, which says nothing about the loads."""
    before, after = partition(ttgir_of("gemm"))
    found = re.search(r"memdesc_index (%\d+)\[%\d+\] : .*\n.*divsi.*\n.*andi.*\n.*wait_barrier", before)
    empty = re.search(r"(%\d+) = ttg.memdesc_index (%\d+)\[%\w+\] .*\n\s*ttng.arrive_barrier \1", before)
    assert found and empty
    reason = refusal(before[: found.start(1)] + empty[2] + before[found.end(1) :] + after)
    assert "write of staging" in reason and "copy into ring" in reason and "not ordered" in reason


def test_a_load_that_completes_on_another_mbarrier(ttgir_of: Text) -> None:
    before, after = partition(ttgir_of("gemm"))
    copies = re.findall(r"async_tma_copy_global_to_local .*\] %\d+, (%\d+), ", after)
    empty = re.search(r"wait_barrier (%\d+),", after)
    assert len(set(copies)) == 1 and empty
    target = f", {copies[0]}, %true"
    at = after.rindex(target)
    reason = refusal(before + after[:at] + after[at:].replace(copies[0], empty[1], 1))
    assert "are not expected by the mbarrier that it completes on" in reason


def test_a_store_that_is_not_awaited(ttgir_of: Text) -> None:
    """In a persistent kernel: the guard then says nothing about the copy engine."""
    text = ttgir_of("persistent").replace("async_tma_store_wait {pendings = 0", "async_tma_store_wait {pendings = 1")
    assert "not ordered" in refusal(text)


def test_a_tile_that_is_too_large(ttgir_of: Text) -> None:
    reason = refusal(ttgir_of("gemm", (128, 128), 1))
    assert "no ring is as large as the tile of 32768 bytes" in reason


def test_a_load_under_a_predicate(ttgir_of: Text) -> None:
    before, after = partition(ttgir_of("gemm"))
    constant = re.search(r"\n( *)(%true\w*) = arith.constant true", after)
    assert constant
    number = re.search(r"%arg\d+: i32", after)
    assert number
    name = number[0].split(":")[0]
    made = f"\n{constant[1]}%maybe = arith.cmpi slt, {name}, {name} : i32"
    after = after[: constant.end()] + made + after[constant.end() :]
    after = re.sub(rf"(async_tma_copy_global_to_local .*, ){constant[2]} :", r"\1%maybe :", after, count=1)
    assert "a load under a predicate" in refusal(before + after)


def test_a_second_specialized_region(ttgir_of: Text) -> None:
    lines = ttgir_of("gemm").splitlines()
    first = next(n for n, line in enumerate(lines) if "ttg.warp_specialize(" in line)
    last = next(n for n, line in enumerate(lines) if re.match(r" *\} : \(.*\) -> \(\)", line))
    twice = [*lines[: last + 1], *lines[first : last + 1], *lines[last + 1 :]]
    assert "a second warp-specialized region" in refusal("\n".join(twice))


def test_no_specialized_region(ttgir_of: Text) -> None:
    lines = ttgir_of("gemm").splitlines()
    first = next(n for n, line in enumerate(lines) if "ttg.warp_specialize(" in line)
    last = next(n for n, line in enumerate(lines) if re.match(r" *\} : \(.*\) -> \(\)", line))
    assert "no warp-specialized region" in refusal("\n".join([*lines[:first], *lines[last + 1 :]]))


def test_clusters(ttgir_of: Text) -> None:
    with pytest.raises(RefusedError, match="clusters of several CTAs"):
        translate(once(ttgir_of("gemm"), '"ttg.num-ctas" = 1', '"ttg.num-ctas" = 2'))


def test_a_condition_around_synchronisation(ttgir_of: Text) -> None:
    lines = ttgir_of("gemm").splitlines()
    at = next(n for n, line in enumerate(lines) if "ttng.wait_barrier" in line)
    lines[at] = f"%yes = arith.constant true\nscf.if %yes {{\n{lines[at]}\n}}"
    assert "under a condition" in refusal("\n".join(lines))


def test_a_wait_at_two_places(ttgir_of: Text) -> None:
    lines = ttgir_of("gemm").splitlines()
    at = next(n for n, line in enumerate(lines) if "ttng.wait_barrier" in line)
    assert "at two places" in refusal("\n".join([*lines[: at + 1], *lines[at:]]))


def test_a_phase_that_does_not_count(ttgir_of: Text) -> None:
    """The parity of another ring depth."""
    text = ttgir_of("gemm")
    found = re.search(r"(%\d+) = arith.divsi %\w+, (%c3_i32\w*) : i32", text)
    assert found
    broken = text[: found.start(2)] + "%c2_i32" + text[found.end(2) :]
    assert "does not count its executions" in refusal(broken)


def test_a_barrier_of_the_cta_inside(ttgir_of: Text) -> None:
    lines = ttgir_of("gemm").splitlines()
    at = next(n for n, line in enumerate(lines) if "ttng.wait_barrier" in line)
    assert "gpu.barrier: an operation that is not understood" in refusal(
        "\n".join([*lines[:at], "gpu.barrier", *lines[at:]])
    )


SYNCHRONISATION = ("ttng.wait_barrier", "ttng.arrive_barrier", "ttng.barrier_expect", "ttng.warp_group_dot_wait")


@pytest.mark.parametrize(("kind", "stages"), [("gemm", 3), ("attention", 2), ("auto", 3)])
def test_every_kernel_without_one_synchronisation(
    kind: str, stages: int, ttgir_of: Text, golden: Callable[[str], None]
) -> None:
    """What becomes of each: refused, or tiles that stay. What orders other rings only is not missed by the tiles."""
    lines = ttgir_of(kind, (128, 128), stages).splitlines()
    fates = []
    for place, line in enumerate(lines):
        name = next((name for name in SYNCHRONISATION if f"{name} " in line), None)
        if name is None:
            continue
        text = "\n".join([*lines[:place], *lines[place + 1 :]])
        if name == "ttng.warp_group_dot_wait":
            result, operand = re.findall(r"(%\d+) = ttng.warp_group_dot_wait (%\d+)", line)[0]
            text = text.replace(f"yield {result} ", f"yield {operand} ")
        fates.append(f"{line.strip().partition(' {async')[0].partition(' :')[0]}: {_fate(text)}")
    assert any("refused" in fate for fate in fates)
    golden("\n".join(fates) + "\n")


def _fate(text: str) -> str:
    try:
        plan = make_plan(text)
    except RefusedError as refused:
        return f"refused: {str(refused).partition(': ')[0]}"  # the rest is the engine's wording
    return f"{len(plan.laid)} of {len(plan.laid) + len(plan.refused)} tiles laid"
