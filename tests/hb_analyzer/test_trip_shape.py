"""What expressions ask of the trip counts that are tried."""

from __future__ import annotations

import pytest

from hb_analyzer.composite_trips import UnboundedError
from hb_analyzer.model import Access, BinOp, Const, If, IntExpr, Name, Parameter, Statement, Step
from hb_analyzer.trips import domain_of
from tests.hb_analyzer.test_trips import loop, program


def test_thresholds_shift_and_factors_stretch() -> None:
    plain = domain_of(program(loop(Name("N")))).bound

    def bound(condition: IntExpr, *more: Statement) -> int:
        return domain_of(program(loop(Name("N"), If(condition, (Access("A", "w"),))), *more)).bound

    assert bound(BinOp("==", Name("i"), Const(100))) >= plain + 100
    assert bound(BinOp("<", BinOp("+", Name("i"), Const(2)), Name("N"))) == plain + 2
    assert bound(BinOp("==", BinOp("%", Name("i"), Const(5)), Const(0))) >= plain + 4
    assert bound(BinOp("<", BinOp("*", Const(2), Name("i")), Name("N"))) >= 2 * plain
    sixteenth = BinOp("/", BinOp("/", Name("i"), Const(4)), Const(4))
    assert bound(BinOp("==", sixteenth, Const(3))) >= plain + 48
    assert bound(BinOp("<", BinOp("*", Const(2), BinOp("*", Const(3), Name("i"))), Name("N"))) >= 6 * plain
    # Another count cuts the loop into two stretches, each of which may be long.
    assert bound(BinOp("<", Name("i"), Name("M")), loop(Name("M"))) >= 2 * plain
    assert bound(BinOp("<", Name("i"), Name("c")), Step("c")) >= 2 * plain
    # Where only remainders are compared, nothing is cut.
    same = BinOp("==", BinOp("%", Name("i"), Const(2)), BinOp("%", Name("c"), Const(2)))
    assert bound(same, Step("c")) == plain + 2  # L = 2, and c is 1 before the loop


def test_conditions_of_a_period_are_followed_for_three_of_it() -> None:
    def high(*body: Statement) -> dict[str, int]:
        return {name: values[-1] for name, values in domain_of(program(*body)).ranges.items()}

    sometimes = If(BinOp("==", BinOp("%", Name("i"), Const(4)), Const(0)), (Access("A", "w"),))
    plain = high(loop(Name("N")), loop(Name("M")))["N"]
    assert high(loop(Name("N"), sometimes), loop(Name("M"))) == {"N": plain + 3 + 12, "M": plain + 3}
    # What is counted in every fourth iteration comes round four times more slowly.
    counted = If(sometimes.condition, (Step("c"),))
    assert high(loop(Name("N"), counted), loop(Name("M"))) == {"N": 4 * (plain + 3 + 12), "M": plain + 3}
    either = If(sometimes.condition, (Step("c"),), (Step("c"),))
    assert high(loop(Name("N"), either), loop(Name("M"))) == {"N": plain + 3 + 12, "M": plain + 3}


@pytest.mark.parametrize(
    "body",
    [
        (loop(Name("N"), loop(BinOp("*", Name("M"), Name("i")), counter="j")),),
        (loop(Name("N"), If(BinOp("<", BinOp("*", Name("i"), Name("M")), Const(3)), (Access("A", "w"),))),),
        (loop(Name("N"), If(BinOp("==", BinOp("%", Name("i"), Name("M")), Const(0)), (Access("A", "w"),))),),
        (loop(Name("N"), loop(Name("i"), loop(Name("j"), Step("c"), counter="k"), counter="j")),),
        (loop(Name("N"), Step("c"), loop(Name("c"), Step("d"), counter="j")),),
    ],
)
def test_what_no_bound_covers_is_refused(body: tuple[Statement, ...]) -> None:
    with pytest.raises(UnboundedError):
        domain_of(program(*body, parameters=(Parameter("N"), Parameter("M"))))
