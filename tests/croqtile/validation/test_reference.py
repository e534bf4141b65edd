"""Programs that are not followed, and slots that are not known."""

from __future__ import annotations

import pytest

from croqtile.validation.events import Refusal
from hb_analyzer import model
from tests.croqtile.validation.following import TRIGGER, WAIT, follow, waited


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (model.Opaque("line 3: why", ("out_s",)), "leaves something open: line 3: why"),
        (model.If(model.Name("n"), (WAIT,)), "branches on n"),
        (model.Access("out_s", "r", label="f reads out_s"), "an access that is not followed: f reads out_s"),
    ],
)
def test_programs_that_are_not_followed(statement: model.Statement, why: str) -> None:
    with pytest.raises(Refusal, match=why):
        follow((statement,), ())


def test_slots_depend_on_residues_only() -> None:
    slot = model.BinOp("/", model.Name("i"), model.Const(2))
    loop = model.Loop("i", model.Const(4), (model.Wait("e", slot, "wait"),))
    with pytest.raises(Refusal, match="depends on more than is known of i here"):
        follow((loop,), (waited(),))
    with pytest.raises(Refusal, match="without having compared its counter with n"):
        follow((model.Loop("i", model.Name("n"), (WAIT,)), TRIGGER), (waited(), waited(1)))
