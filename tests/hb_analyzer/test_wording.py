"""Findings in words."""

from __future__ import annotations

from hb_analyzer import analyse
from hb_analyzer.model import Access, Buffer, Const, Event, Program, Role, Statement, Trigger
from tests.hb_analyzer.programs import gemm, load


def why(*statements: Statement) -> str:
    program = Program("p", (Buffer("A", 64), Buffer("B", 64)), (Event("e"),), (Role("r", statements),))
    return analyse(program).verdict("A", "B").why


def test_conflict() -> None:
    assert analyse(gemm(2, 2)).verdict("lhs", "out").why == (
        "read of lhs (consumer0 [iteration 0]: read lhs[0]) and write of out (consumer1: write out[0]) are not ordered"
    )


def test_never_awaited() -> None:
    assert why(load("A", "e", Const(0)), Access("B", "w")) == (
        "copy into A (r: write A[0]) and write of B (r: write B[0]) are not ordered; copy into A is never awaited"
    )


def test_clobber_with_labels_and_places() -> None:
    text = why(
        Access("A", "w", label="fill", where="k.co:3:1"),
        Access("B", "w", label="scratch", where="k.co:4:1"),
        Access("A", "r", label="use", where="k.co:5:1"),
    )
    assert text == (
        "the value that write of A leaves (r: fill (k.co:3:1)) is still read (r: use (k.co:5:1)) "
        "after write of B (r: scratch (k.co:4:1))"
    )


def test_proxy() -> None:
    assert why(Access("B", "w", fenced=False), load("A", "e", Const(0)), Trigger("e")) == (
        "no proxy fence between write of B by threads (r: write B[0]) and the asynchronous copy into A (r: write A[0])"
    )
