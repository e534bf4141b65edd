"""How many triggers an event needs: per slot, over all warpgroups that can come to it."""

# ruff: noqa: E501  (program text in tables)
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.croqtile.tile import GEMM, Edits, edited, lowered, messages

Golden = Callable[[str], None]
FOUR = ("empty[4], done;", "empty[4], done, own[8], one[2];")
CLUSTER = [
    ("    parallel p by 3", "    parallel c by 2 : cluster {\n    parallel p by 3"),
    ("    }\n  }\n}\n", "    }}\n  }\n}\n"),
]


@pytest.mark.parametrize(
    ("edits", "event", "arrivals"),
    [
        pytest.param([], "full", 1, id="one-thread"),
        pytest.param([], "empty", 2, id="two-warpgroups"),
        pytest.param([], "done", 0, id="nobody"),
        pytest.param([("(p == 0 && t == 0)", "(p == 0)")], "full", 1, id="a-warpgroup"),
        pytest.param([("mma.commit;", "mma.commit; inthreads (p == 1) trigger done;")], "done", 1, id="some-warpgroups"),
        pytest.param([("mma.commit;", "mma.commit; if (p == 1) trigger done;")], "done", 1, id="condition"),
        pytest.param([("mma.commit;", "mma.commit; if (p == 1) x = 1; else trigger done;")], "done", 1, id="else"),
        pytest.param([("mma.commit;", "mma.commit; if (k == 1) trigger done;")], "done", 2, id="data-condition"),
        pytest.param([FOUR, ("mma.commit;", "mma.commit; trigger own[stage * (#p - 1) + p - 1];")], "own", 1, id="own-slots"),
        pytest.param([FOUR, ("mma.commit;", "mma.commit; trigger one[p - 1];")], "one", 1, id="slot-by-warpgroup"),
        pytest.param([FOUR, ("mma.commit;", "mma.commit; trigger one[k % 2];")], "one", 2, id="ring-of-two"),
        pytest.param([FOUR, ("mma.commit;", "mma.commit; trigger own[K];")], "own", 2, id="unknown-slot"),
        pytest.param([FOUR, ("mma.commit;", "mma.commit; trigger own[k % 1099511627776];")], "own", 2, id="ring-beyond-memory"),
        pytest.param([*CLUSTER, ("trigger empty[stage]", "trigger.cluster empty[stage]"), ("trigger empty[s]", "trigger.cluster empty[s]")], "empty", 4, id="cluster"),
    ],
)  # fmt: skip
def test_arrivals(tmp_path: Path, edits: Edits, event: str, arrivals: int) -> None:
    kernel = lowered(tmp_path, edited(GEMM, edits))
    assert {e.name: e.arrivals for e in kernel.events}[event] == arrivals


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param([FOUR, ("mma.commit;", "mma.commit; trigger one[0]; if (p == 1) trigger one[1];")], id="uneven"),
        pytest.param([*CLUSTER, ("trigger empty[stage]", "trigger.cluster empty[stage]")], id="cluster-and-not"),
    ],
)
def test_refused(tmp_path: Path, golden: Golden, edits: Edits) -> None:
    golden(messages(tmp_path, edited(GEMM, edits)))
