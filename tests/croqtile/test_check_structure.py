"""Functions, grids, levels: what is refused, in which words, and where the caret stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.croqtile.tile import GEMM, Edits, edited, messages

Golden = Callable[[str], None]

CASES: dict[str, Edits] = {
    "result": [("__co__ void", "__co__ int")],
    "scalar-parameter": [("global f16 [N, K] rhs", "int rhs")],
    "dimension-of-names": [("[M, K] lhs", "[M, K * 2] lhs")],
    "dimension-zero": [("[M, K] lhs", "[M, 0] lhs")],
    "no-grid": [("parallel {bm, bn} by [cdiv(M, 128), cdiv(N, 128)] : block {", "{")],
    "no-warpgroups": [
        ("parallel p by 3 : group-4, t by 128 : thread {", "{"),
        ("inthreads.async (p == 0 && t == 0) {", "{"),
        ("inthreads.async (p > 0) {", "{"),
    ],
    "second-grid": [("    }\n  }\n}\n", "    }\n  }\n  parallel i by 2 : block {}\n}\n")],
    "after-the-grid": [("    }\n  }\n}\n", "    }\n  }\n  x = 1;\n}\n")],
    "before-the-grid": [("  parallel {bm", "  shared event early;\n  parallel {bm")],
    "unknown-level": [(": block", ": grid")],
    "group-of-other-width": [("group-4", "group-8")],
    "thread-outside-group": [("parallel p by 3 : group-4, t by 128 : thread", "parallel t by 128 : thread")],
    "thread-count": [("t by 128", "t by 64")],
    "four-dimensions": [
        ("{bm, bn} by [cdiv(M, 128), cdiv(N, 128)]", "{bm, bn, i, j} by [cdiv(M, 128), cdiv(N, 128), 1, 1]")
    ],
    "names-and-bounds": [("{bm, bn} by [cdiv(M, 128), cdiv(N, 128)]", "{bm, bn} by [cdiv(M, 128)]")],
    "loop-names-and-bounds": [("foreach {s} in [4]", "foreach {s, u} in [4]")],
    "symbolic-warpgroups": [("parallel p by 3", "parallel p by M")],
    "computed-warpgroups": [("parallel p by 3", "parallel p by bm + 1")],
    "no-warpgroup": [("parallel p by 3", "parallel p by 0")],
    "too-many-warpgroups": [("parallel p by 3", "parallel p by 9")],
    "two-counts": [("    parallel p by 3", "    parallel q by 2 : group-4 {}\n    parallel p by 3")],
    "symbolic-buffer": [("shared f16 [128, 128] out_s", "shared f16 [128, N] out_s")],
    "symbolic-count": [("lhs_s[4]", "lhs_s[K]")],
    "empty-buffer": [("shared f16 [128, 128] out_s", "shared f16 [128, 0] out_s")],
    "event-slots": [("empty[4]", "empty[0]")],
    "launch-bounds": [("    parallel p by 3", "    launch_bounds(M);\n    parallel p by 3")],
    "launch-bounds-in-role": [("wait full", "launch_bounds(1); wait full")],
    "wait-in-block": [("    parallel p by 3", "    wait done;\n    parallel p by 3")],
    "trigger-in-block": [("    parallel p by 3", "    trigger done;\n    parallel p by 3")],
    "mma-in-block": [("    parallel p by 3", "    mma.commit;\n    parallel p by 3")],
    "fill-in-block": [("    parallel p by 3", "    acc = mma.fill.f32 0.0f;\n    parallel p by 3")],
    "role-in-block": [("    parallel p by 3", "    inthreads.async (bm == 0) {}\n    parallel p by 3")],
    "async-copy-in-block": [
        (
            "    parallel p by 3",
            "    tma.copy.async<done> lhs.subspan(128, 64).at(0, 0) => lhs_s[0];\n    parallel p by 3",
        )
    ],
    "statement-between-roles": [
        ("      inthreads.async (p > 0)", "      trigger done;\n      inthreads.async (p > 0)")
    ],
    "parallel-in-role": [("wait full", "parallel q by 3 : group-4 {} wait full")],
    "buffer-in-role": [("wait full", "shared f16 [8, 8] late; wait full")],
    "cluster-in-role-block": [("t by 128 : thread {", "t by 128 : thread { parallel c by 2 : cluster {}")],
    "multicast-without-cluster": [(".swiz<128> lhs", ".swiz<128>.multicast lhs")],
    "cluster-trigger-without-cluster": [("trigger full", "trigger.cluster full")],
}


@pytest.mark.parametrize("edits", CASES.values(), ids=CASES)
def test_refused(tmp_path: Path, golden: Golden, edits: Edits) -> None:
    golden(messages(tmp_path, edited(GEMM, edits)))


ACCEPTED: dict[str, Edits] = {
    "nested-levels": [
        (
            "parallel p by 3 : group-4, t by 128 : thread {",
            "parallel p by [3] : group-4 { parallel t by 128 : thread {",
        ),
        ("    }\n  }\n}\n", "    }}\n  }\n}\n"),
    ],
    "all-levels-at-once": [(" : block {\n", " : block {  // levels\n")],
    "asynchronous": [("parallel {bm", "parallel.async {bm")],
    "launch-bounds": [("    parallel p by 3", "    launch_bounds(1);\n    parallel p by 3")],
    "storage-inside-group": [("t by 128 : thread {", "t by 128 : thread { shared event more;")],
    "cluster": [
        ("    parallel p by 3", "    parallel c by 2 : cluster {\n    parallel p by 3"),
        ("    }\n  }\n}\n", "    }}\n  }\n}\n"),
        (".swiz<128> rhs", ".swiz<128>.multicast rhs"),
    ],
    "cluster-around-grid": [
        ("  parallel {bm", "  parallel c by [2] : cluster {\n  parallel {bm"),
        ("    }\n  }\n}\n", "    }\n  }}\n}\n"),
    ],
    "in-a-loop": [("    parallel p by 3", "    foreach {tile} in [cdiv(M, 256)]\n    parallel p by 3")],
    "one-name-without-braces": [
        ("{bm, bn} by [cdiv(M, 128), cdiv(N, 128)]", "bm by cdiv(M, 128)"),
        (".at(bn, k)", ".at(0, k)"),
        ("p - 1, bn)", "p - 1, 0)"),
    ],
}


@pytest.mark.parametrize("edits", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(tmp_path: Path, edits: Edits) -> None:
    assert messages(tmp_path, edited(GEMM, edits)) == "accepted\n"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("", id="nothing"),
        pytest.param("parallel i by 2 : block { shared event e; }", id="no-warpgroups"),
        pytest.param("parallel p by 2 : group-4 { }", id="no-grid"),
        pytest.param("parallel c by 2 : cluster { }", id="cluster-only"),
    ],
)
def test_incomplete(tmp_path: Path, golden: Golden, body: str) -> None:
    golden(messages(tmp_path, f"__co__ void f(global f16 [M] x) {{ {body} }}\n"))
