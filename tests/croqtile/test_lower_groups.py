"""Implied commits and waits: where they stand, and that none stands where none is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from croqtile import ir, rewrite
from croqtile.irprint import statement
from tests.croqtile.tile import lowered

FRAME = """\
__co__ void f(global bf16 [128, 64] x, global bf16 [128, 64] y) {{
  parallel m by 2 : block {{
    shared bf16 [64, 64] a[2], b[2], o;
    shared event full, done, empty;
    parallel p by 2 : group-4, t by 128 : thread {{
      inthreads.async (p == 0) {{
        tma.copy.async<full> x.subspan(64, 64).at(m, 0) => a[0];
        trigger full, done;
        wait empty;
      }}
      inthreads.async (p == 1) {{
        fragment bf16[64, 64] prob;
        fragment f32[64] v;
        wait full;
        {body}
        trigger empty;
      }}
    }}
  }}
}}
"""

# Abbreviations of the bodies below.
FILL = "s = mma.fill.f32 0.0f; o1 = mma.fill.f32 0.0f; "
S = "mma.row.row s, a[0], b[0]; "
P = "mma.row.col o1, prob, b[1]; "
LOADED = "l = mma.load a[0]; r = mma.load b[0]; mma.row.row s, l, r; "
APPLY_S = "frag.apply s, [](i, j) { return s.at(i, j) * 2.0f; }; "
APPLY_O = "frag.apply o1, [](i, j) { return o1.at(i, j) * 2.0f; }; "
USE_PROB = "frag.apply prob, [](i, j) { return 0.0f; }; "


def skeleton(body: tuple[ir.Stmt, ...]) -> str:
    """Matrix instructions, commits (c, implied: C) and waits (w, implied: W) in order; other statements by a word."""
    words = []
    for s in body:
        if isinstance(s, ir.Mma):
            words.append(f"mma({s.accumulator.name})")
        elif isinstance(s, ir.MmaCommit):
            words.append("C" if s.implied else "c")
        elif isinstance(s, ir.MmaWait):
            words.append(f"{'W' if s.implied else 'w'}{s.pending}")
        elif isinstance(s, ir.ForEach):
            words.append("{" + skeleton(s.body) + "}")
        elif isinstance(s, ir.If):
            words.append("if{" + skeleton(s.then) + "}{" + skeleton(s.orelse) + "}")
        elif isinstance(s, ir.OnlyWarpgroups):
            words.append("only{" + skeleton(s.body) + "}")
        elif isinstance(s, (ir.Let, ir.FragDecl, ir.AccFill)):
            continue
        else:
            words.append(statement(s).split("(")[0].split()[0] + "." + statement(s).split("(")[0].split()[-1])
    return " ".join(words)


CASES = {
    # Explicit commits
    "commit-waits": (FILL + LOADED + "mma.commit; " + P, "mma(s) c W0 mma(o1) C W0 trigger.empty"),
    "commit-then-wait": (FILL + LOADED + "mma.commit; mma.wait<0>; " + P, "mma(s) c w0 mma(o1) C W0 trigger.empty"),
    "pending-result-used": (
        FILL + LOADED + "mma.commit; mma.wait<1>; " + APPLY_S + P,
        "mma(s) c w1 W0 apply.s mma(o1) C W0 trigger.empty",
    ),
    "commit-closes-direct-ones-too": (
        FILL + P + LOADED + "mma.commit; mma.wait<1>; ",
        "mma(o1) mma(s) c w1 trigger.empty W0",
    ),
    "two-pending": (
        FILL + LOADED + "mma.commit; mma.wait<1>; mma.row.row o1, l, r; mma.commit; mma.wait<1>; " + APPLY_S,
        "mma(s) c w1 mma(o1) c w1 apply.s trigger.empty W0",
    ),
    "older-of-two-needed": (
        FILL + LOADED + "mma.commit; mma.wait<2>; mma.row.row o1, l, r; mma.commit; mma.wait<2>; " + APPLY_S,
        "mma(s) c w2 mma(o1) c w2 W1 apply.s trigger.empty W0",
    ),
    "accumulate-without-wait": (
        FILL + LOADED + "mma.row.row s, l, r; mma.commit; " + P,
        "mma(s) mma(s) c W0 mma(o1) C W0 trigger.empty",
    ),
    # Direct form
    "result-needed": (FILL + S + APPLY_S + P, "mma(s) C W0 apply.s mma(o1) C W0 trigger.empty"),
    "newer-may-run-on": (FILL + S + P + APPLY_S + APPLY_O, "mma(s) C mma(o1) C W1 apply.s W0 apply.o1 trigger.empty"),
    "newer-covers-older": (FILL + S + P + APPLY_O + APPLY_S, "mma(s) C mma(o1) C W0 apply.o1 apply.s trigger.empty"),
    "accumulating-needs-no-wait": (FILL + S + S + P, "mma(s) C mma(s) C mma(o1) C W0 trigger.empty"),
    "operand-registers": (FILL + S + P + USE_PROB, "mma(s) C mma(o1) C W0 apply.prob trigger.empty"),
    "restart": (
        FILL + S + "if (m > 0) { s = mma.fill.f32 0.0f; } " + P,
        "mma(s) C if{W0}{W0} mma(o1) C W0 trigger.empty",
    ),
    "filled-anew": (FILL + S + "s = mma.fill.f32 0.0f; " + P, "mma(s) C mma(o1) C W0 trigger.empty"),
    "wait-needs-nothing": (FILL + S + "wait done; " + P, "mma(s) C wait.done mma(o1) C W0 trigger.empty"),
    "store": (FILL + S + P + "mma.store s, o; ", "mma(s) C mma(o1) C W1 W0 mma.store.o trigger.empty"),
    "barrier": (FILL + P + S + "sync.wg 1; ", "mma(o1) C mma(s) C W0 sync.1 trigger.empty"),
    "call": (FILL + P + S + "call g(o); ", "mma(o1) C mma(s) C W0 call.g trigger.empty"),
    "reduce": (FILL + P + S + "frag.reduce_max s, v, 1; ", "mma(o1) C mma(s) C W0 reduce_max.v trigger.empty"),
    "unrelated-fragment": (
        FILL + P + S + "frag.apply v, [](i) { return 0.0f; }; ",
        "mma(o1) C mma(s) C apply.v W0 trigger.empty",
    ),
    # Loops
    "loop-of-nothing-else": (FILL + "foreach {n} in [3] { " + S + "} " + P, "{mma(s) C} mma(o1) C W0 trigger.empty"),
    "loop-then-result": (
        FILL + "foreach {n} in [3] { " + S + "} " + APPLY_S + P,
        "{mma(s) C} W0 apply.s mma(o1) C W0 trigger.empty",
    ),
    "newer-than-a-loop": (
        FILL + "foreach {n} in [3] { " + S + "} " + P + APPLY_S,
        "{mma(s) C} mma(o1) C W1 apply.s W0 trigger.empty",
    ),
    "older-than-a-loop": (
        FILL + P + "foreach {n} in [3] { " + S + "} " + APPLY_O,
        "mma(o1) C {mma(s) C} W0 apply.o1 trigger.empty",
    ),
    "loop-back": (
        FILL + "foreach {n} in [3] { wait done; " + S + "} " + P,
        "{wait.done mma(s) C W0} mma(o1) C W0 trigger.empty",
    ),
    "before-a-loop": (
        FILL + S + "foreach {n} in [3] { wait done; " + P + "} ",
        "mma(s) C W0 {wait.done mma(o1) C W0} trigger.empty",
    ),
    "commit-after-the-loop": (
        FILL + "foreach {n} in [3] { " + LOADED + "} mma.commit; " + P,
        "{mma(s)} c W0 mma(o1) C W0 trigger.empty",
    ),
    "pending-around-the-loop": (
        FILL + "foreach {n} in [3] { wait done; " + LOADED + "mma.commit; mma.wait<1>; } " + APPLY_S + P,
        "{wait.done mma(s) c w1} W0 apply.s mma(o1) C W0 trigger.empty",
    ),
    "pending-result-used-in-the-next-iteration": (
        FILL + "foreach {n} in [3] { " + APPLY_S + LOADED + "mma.commit; mma.wait<1>; } " + P,
        "{W0 apply.s mma(s) c w1} mma(o1) C W0 trigger.empty",
    ),
    # Branches
    "branch": (
        FILL + "if (m > 0) { " + S + "} " + P,
        "if{mma(s) C W0}{} mma(o1) C W0 trigger.empty",
    ),
    "needed-in-one-branch": (
        FILL + S + P + "if (m > 0) { " + APPLY_S + "} ",
        "mma(s) C mma(o1) C if{W1 apply.s W0}{W0} trigger.empty",
    ),
    # `wgmma.wait_group` is for whole warps: it must not stand where a condition parts the threads.
    "some-threads-only": (
        FILL + S + "int x = 0; if (t == 0) { x = 1; } " + P,
        "mma(s) C if{x_1.1}{} mma(o1) C W0 trigger.empty",
    ),
    "only-some-warpgroups": (
        FILL + "inthreads (p == 1) { " + S + "} " + P,
        "only{mma(s) C W0} mma(o1) C W0 trigger.empty",
    ),
    "commit-in-a-branch": (
        FILL + LOADED + "if (m > 0) { mma.commit; } else { mma.commit; } " + P,
        "mma(s) if{c W0}{c W0} mma(o1) C W0 trigger.empty",
    ),
}


@pytest.mark.parametrize(("body", "expected"), CASES.values(), ids=CASES)
def test_groups(tmp_path: Path, body: str, expected: str) -> None:
    kernel = lowered(tmp_path, FRAME.format(body=body))
    consumer = list(rewrite.roles(kernel))[1]
    assert skeleton(consumer.body[1:]).removeprefix("fragment.v ").removeprefix("wait.full ") == expected


def test_instructions_of_two_shapes_do_not_share_an_accumulator_in_flight(tmp_path: Path) -> None:
    program = FRAME.format(body="s = mma.fill.f32 0.0f; " + S + "mma.row.row s, c, c; ").replace("bf16", "f16")
    program = program.replace("shared event", "shared f8_e4m3 [64, 64] c; shared event")
    consumer = list(rewrite.roles(lowered(tmp_path, program)))[1]
    assert skeleton(consumer.body).endswith("mma(s) C W0 mma(s) C W0 trigger.empty")
