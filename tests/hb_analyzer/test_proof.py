"""Proof chains lead from access to access along edges of the graph."""

from __future__ import annotations

from hb_analyzer import explain_pair
from hb_analyzer.report import Site
from tests.hb_analyzer.programs import attention, gemm, persistent_gemm


def labels(path: tuple[Site, ...]) -> list[str]:
    return [f"{site.role}: {site.label}" for site in path]


def test_a_producers_copy_is_ordered_before_the_epilogue_through_its_event() -> None:
    proof = explain_pair(gemm(stages=2), "lhs", "out").proof
    assert [
        "producer: write lhs[0]",
        "producer: full[0] becomes set",
        "consumer0: wait full[0]",
        "consumer0: write out[0]",
    ] in [labels(path) for path in proof]


def test_matrix_reads_end_at_their_drain() -> None:
    proof = explain_pair(gemm(stages=2), "lhs", "out").proof
    assert ["consumer0: read lhs[0]", "consumer0: wait for matrix groups, 0 pending", "consumer0: write out[0]"] in [
        labels(path) for path in proof
    ]


def test_barriers_appear_in_the_chain() -> None:
    proof = explain_pair(gemm(consumers=2, stages=2, barrier=True), "lhs", "out").proof
    crossing = [path for path in proof if path[0].role == "consumer0" and path[-1].role == "consumer1"]
    assert crossing
    assert all(any(site.label == "barrier consumers" for site in path) for path in crossing)


def test_the_way_back_of_a_persistent_kernel_uses_the_epilogue_event() -> None:
    proof = explain_pair(persistent_gemm(epilogue_event=True), "lhs", "out").proof
    back = [path for path in proof if path[0].label == "write out[0]" and path[-1].label.startswith("write lhs")]
    assert back
    assert all("wait stored[0]" in [site.label for site in path] for path in back)


def test_every_pair_of_accesses_with_a_write_is_covered() -> None:
    source = attention(barrier=True, consumers=2)
    proof = explain_pair(source, "o", "v").proof
    ends = {(path[0].role, path[-1].role) for path in proof}
    assert ends == {(a, b) for a in ("producer", "consumer0", "consumer1") for b in ("consumer0", "consumer1")}
