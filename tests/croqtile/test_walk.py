import builder as b
import pytest
from builder import op

from croqtile import ir, walk
from croqtile.walk import RoleKey, Update

KEY = RoleKey(0)
X = b.value("x", mutable=True)
TILE = b.counter("tile", ir.Var(b.dim("M")))
LOOP = b.counter("k", ir.Var(b.dim("K")))


@pytest.mark.parametrize(
    ("value", "update"),
    [
        (op(X, "+", 2), Update(2)),
        (op(3, "+", X), Update(3)),
        (op(X, "-", 1), Update(-1)),
        (op(op(X, "+", 1), "%", 4), Update(1, 4)),
        (op(5, "-", X), None),
        (op(X, "*", 2), None),
        (op(op(X, "+", 1), "%", X), None),
        (b.lit(0), None),
    ],
)
def test_updates(value, update):
    assert walk.update_of(b.assign(X, value)) == update


STEP = b.assign(X, op(X, "+", 1))


def mode(*body):
    return walk.mutables(body, KEY)[X]


def test_how_a_scalar_is_followed():
    assert mode(b.let(X, 0), b.foreach(LOOP, STEP)).mode == "closed"
    assert mode(b.let(X, 0), b.foreach(TILE, b.foreach(LOOP, STEP))).mode == "running"
    assert mode(b.let(X, 0), b.foreach(LOOP, b.when(op(LOOP, ">", 1), STEP))).mode == "running"
    assert mode(b.foreach(TILE, b.let(X, 0), b.foreach(LOOP, STEP))).mode == "closed"
    nested = b.foreach(b.counter("i", ir.Var(b.dim("N"))), b.foreach(LOOP, STEP))
    assert mode(b.foreach(TILE, b.let(X, 0), nested)).mode == "flow"
    assert mode(b.let(X, 0), b.foreach(LOOP, b.assign(X, op(X, "*", 2)))).mode == "flow"
    assert mode(b.let(X, 0), STEP, b.assign(X, op(op(X, "+", 1), "%", 4))).mode == "flow"
    assert mode(STEP).mode == "flow"


def test_increments_per_iteration_count_unrolled_loops():
    loop = b.foreach(LOOP, b.foreach(b.counter("half", 2), STEP), STEP)
    assert mode(b.let(X, 0), loop).per_iteration == {id(loop): 3}


def test_effects_of_a_region():
    tile, event = b.buffer("tile", (64, 64)), b.event("e")
    sync = ir.SyncWarpgroups((0, 1), b.span())
    body = (b.when(op(X, ">", 0), b.store(b.view(tile)), b.wait(event)), sync)
    found = walk.effects(body, KEY)
    assert (list(found.buffers), list(found.events), found.barriers, found.matrix) == (["tile"], ["e"], [sync], False)
    assert not walk.effects((b.let(X, 0),), KEY)


def test_only_the_warpgroups_of_a_role_run_it():
    event = b.event("e")
    inner = ir.OnlyWarpgroups(b.lit(1), (1,), (b.wait(event),), b.span())
    region = b.roles(b.role((0, 1), inner, b.trigger(event)), b.role((2,), thread=0))
    count = {p: len(list(walk.statements((region,), RoleKey(p)))) for p in (0, 1, 2)}
    assert count == {0: 3, 1: 4, 2: 1}


def test_scalars_in_an_expression():
    y = b.value("y")
    expression = ir.Select(op(X, "<", 3), ir.Unary("-", ir.Var(y)), ir.Intrinsic("cdiv", (ir.Var(LOOP), b.lit(2))))
    assert walk.mentioned(expression) == {X, y, LOOP}
