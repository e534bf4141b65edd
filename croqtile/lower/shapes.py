"""Extents of matrix instructions, from their operands."""

from __future__ import annotations

import dataclasses

from croqtile import fold, ir, rewrite


def infer(kernel: ir.Kernel) -> ir.Kernel:
    """Sets m, n and k of every Mma. The checker has made sure that extents are constants and fit."""

    def complete(statement: ir.Stmt) -> ir.Stmt:
        if not isinstance(statement, ir.Mma):
            return statement
        first, second = _extents(statement.b)
        n, k = (first, second) if statement.b_layout == "row" else (second, first)
        return dataclasses.replace(statement, m=statement.accumulator.rows, n=n, k=k)

    return dataclasses.replace(kernel, body=rewrite.transform(kernel.body, complete))


def _extents(operand: ir.SharedOperand) -> tuple[int, int]:
    first, second = (fold.integer(extent) or 0 for extent in operand.view.extents())
    return first, second
