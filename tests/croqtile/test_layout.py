import builder as b
from builder import FULL, SOURCE, TILE

from croqtile import ir
from croqtile.layout import BLOCK, Layout
from croqtile.walk import RoleKey

COPY = b.copy_in(b.view(SOURCE), b.view(TILE, 0), FULL)
MMA = b.mma(b.view(TILE, 0), b.view(TILE, 0))


def layout(*roles, after=(), warpgroups=3):
    return Layout(b.kernel(b.roles(*roles), *after, buffers=(TILE,), events=(FULL,), warpgroups=warpgroups))


def test_roles_are_named_by_what_they_do():
    found = layout(b.role((0,), COPY, thread=0), b.role((1,), MMA))
    assert found.roles == {"producer": RoleKey(0, 0), "consumer": RoleKey(1)}
    assert [found.kind(name) for name in found.roles] == ["thread", "warpgroup"]


def test_a_role_that_copies_nothing_in_and_calls_a_function_is_a_consumer():
    wait, call = b.wait(FULL), ir.Call("f", (b.view(TILE, 0),), b.span())
    found = layout(b.role((0,), COPY, thread=0), b.role((1,), wait, call), b.role((2,), wait))
    assert list(found.roles) == ["producer", "consumer", "warpgroup"]


def test_numbers_tell_equal_roles_apart():
    found = layout(b.role((0,), COPY, thread=0), b.role((0,), COPY, thread=32), b.role((1, 2), MMA))
    assert list(found.roles) == ["producer 0", "producer 0.32", "consumer 1", "consumer 2"]


def test_members_of_a_barrier():
    found = layout(b.role((0,), COPY, thread=0), b.role((1, 2), MMA))
    barrier = found.barrier(ir.SyncWarpgroups((1, 2), b.span()))
    assert (barrier.name, barrier.members) == ("sync.wg 1, 2", ("consumer 1", "consumer 2"))
    assert found.barrier(ir.SyncWarpgroups((2, 1), b.span())).name == "sync.wg 1, 2"  # the same one
    everyone = found.barrier(ir.SyncCta(b.span()))
    assert everyone.members == ("producer", "consumer 1", "consumer 2")


def test_a_barrier_with_a_warpgroup_that_runs_nothing():
    """It would wait for ever: the warpgroup appears as a role, so that the analysis sees that it never comes."""
    found = layout(b.role((1,), MMA, ir.SyncWarpgroups((1, 2), b.span())))
    assert found.roles == {"consumer": RoleKey(1), "warpgroup": RoleKey(2)}


def test_the_block_level_is_a_role_only_where_it_orders_something():
    assert BLOCK not in layout(b.role((0,), MMA)).roles
    assert BLOCK not in layout(b.role((0,), MMA), after=(b.let(b.value("x"), 1),)).roles
    found = layout(b.role((0,), MMA), after=(b.copy_out(b.view(TILE, 0), b.view(SOURCE)),))
    assert found.roles[BLOCK] is None
    assert found.kind(BLOCK) == "cta"
