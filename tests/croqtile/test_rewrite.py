"""Walking and rebuilding IR trees."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from croqtile import ir, rewrite
from tests.croqtile.tile import GEMM, lowered


def test_replace_reaches_everything_and_shares_the_rest(tmp_path: Path) -> None:
    kernel = lowered(tmp_path, GEMM)
    old = kernel.buffers[0]
    new = dataclasses.replace(old, name="renamed")
    changed = rewrite.replace(kernel, {old: new})
    assert old not in set(rewrite.nodes(changed.body)) and old not in changed.buffers
    assert new in changed.buffers and new in [n for n in rewrite.nodes(changed.body) if isinstance(n, ir.SharedBuffer)]
    assert changed.tensors is kernel.tensors
    assert rewrite.replace(kernel, {}) is kernel


def test_statements_come_in_program_order(tmp_path: Path) -> None:
    lines = [s.span.line for s in rewrite.statements(lowered(tmp_path, GEMM).body) if not isinstance(s, ir.ForEach)]
    assert lines == sorted(lines)


def test_roles_and_symbols(tmp_path: Path) -> None:
    kernel = lowered(tmp_path, GEMM)
    assert [role.instances for role in rewrite.roles(kernel)] == [(0,), (1, 2)]
    assert {"bm", "bn", "k", "stage"} <= {symbol.name for symbol in rewrite.symbols(kernel.body)}


def test_transform_works_from_the_inside(tmp_path: Path) -> None:
    kernel = lowered(tmp_path, GEMM)
    seen: list[ir.Stmt] = []

    def note(statement: ir.Stmt) -> ir.Stmt:
        seen.append(statement)
        return statement

    rewrite.transform(kernel.body, note)
    assert isinstance(seen[-1], ir.Roles)
    assert len(seen) == len(list(rewrite.statements(kernel.body)))


def test_each_role_and_replace_views(tmp_path: Path) -> None:
    kernel = lowered(tmp_path, GEMM)
    empty = rewrite.each_role(kernel, lambda body: ())
    assert all(role.body == () for role in rewrite.roles(empty))
    moved = rewrite.replace_views(kernel, lambda v: dataclasses.replace(v, slot=None))
    assert all(v.slot is None for v in rewrite.nodes(moved.body) if isinstance(v, ir.View))
