"""Programs as pattern files, and back."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from hb_analyzer import analyse
from hb_analyzer.examples import example_paths
from hb_analyzer.model import (
    Access,
    Barrier,
    BinOp,
    Buffer,
    Commit,
    Const,
    Drain,
    Event,
    If,
    Loop,
    Name,
    Opaque,
    Parameter,
    Program,
    Role,
    Statement,
    Step,
    Trigger,
    Wait,
)
from hb_analyzer.pattern_load import load_pattern, parse_pattern
from hb_analyzer.pattern_out import NotExpressible, pattern_json, program_to_pattern
from hb_analyzer.report import Report
from hb_analyzer.translate import to_program
from tests.hb_analyzer import programs
from tests.hb_analyzer.random_programs import nested_program, single_loop_program


def there_and_back(program: Program) -> Program:
    return to_program(parse_pattern(pattern_json(program)))


def facts(report: Report) -> object:
    return (
        [(v.a, v.b, v.overlap, v.kind) for v in report.verdicts],
        report.placement,
        report.baseline,
        [bool(found) for found in (report.deadlocks, report.overruns, report.races, report.arrivals)],
    )


def bare_body(body: tuple[Statement, ...]) -> list[object]:
    """Statements without labels and positions, branches of several statements as several branches, no empty loops."""
    result: list[object] = []
    for statement in body:
        if isinstance(statement, Loop):
            inner = bare_body(statement.body)
            result += [(str(statement.trip), inner)] if inner else []
        elif isinstance(statement, If):
            for condition, branch in ((statement.condition, statement.then), (None, statement.orelse)):
                result += [(str(condition), item) for item in bare_body(branch)]
        elif isinstance(statement, Step):
            result.append(statement)
        else:
            result.append(replace(statement, label="", where=None) if hasattr(statement, "label") else statement)
    return result


BUILT = {
    "gemm": programs.gemm(),
    "gemm of three consumers": programs.gemm(consumers=3),
    "attention": programs.attention(),
    "attention with a barrier": programs.attention(stages=3, consumers=2, barrier=True),
    "persistent gemm": programs.persistent_gemm(),
}


@pytest.mark.parametrize("program", BUILT.values(), ids=BUILT)
def test_the_same_verdicts_for_programs(program: Program) -> None:
    assert facts(analyse(there_and_back(program))) == facts(analyse(program))


@pytest.mark.parametrize("path", example_paths(), ids=lambda path: path.stem)
def test_the_same_verdicts_for_the_examples(path: object) -> None:
    program = to_program(load_pattern(str(path)))
    assert facts(analyse(there_and_back(program))) == facts(analyse(program))


@pytest.mark.parametrize("seed", range(60))
def test_the_same_verdicts_for_random_programs(seed: int) -> None:
    random = Random(seed)
    program = nested_program(random) if seed % 6 == 0 else single_loop_program(random)
    copy = there_and_back(program)
    assert [bare_body(role.body) for role in copy.roles] == [bare_body(role.body) for role in program.roles]
    assert facts(analyse(copy)) == facts(analyse(program))


def program(*body: Statement, parameters: tuple[Parameter, ...] = ()) -> Program:
    buffers = (Buffer("A", 256, 1024, 2, (4, 8), "a tile"), Buffer("B", 64, barrier_storage=True))
    return Program(
        "p", buffers, (Event("e", 2, 3, 1),), (Role("r", body, "cta"),), parameters, "f", "sm_90a", "n", ("x",)
    )


def test_the_program_itself_survives() -> None:
    """Every kind of statement, in an order that needs no normal form."""
    k, slot = Name("k"), BinOp("%", Name("c"), Const(2))
    body: tuple[Statement, ...] = (
        Opaque("why", ("A",), ("e",), "f:1"),
        Wait("e", Const(1), "wait e: wait e[1]", "f:1"),
        Loop(
            "k",
            Name("N"),
            (
                Wait("e", slot, "all: wait e[c % 2]", "f:2"),
                Drain(1, "all: wait for all but 1 matrix groups", "f:2"),
                Barrier("b", ("r",), "all: barrier b", "f:2"),
                Access("A", "r", slot, ((0, 2), (0, 8)), "group", None, Const(0), "async", True, "all: r", "f:3"),
                Access("A", "w", slot, None, "event", "e", slot, "async", False, "all: w", "f:2"),
                Commit("all: commit", "f:2"),
                Trigger("e", slot, "all: trigger e[c % 2]", "f:2"),
                Step("c", 2),
                If(BinOp(">", k, Const(1)), (Access("B", "w", label="if: write B", where="f:4"),)),
            ),
        ),
    )
    original = program(*body, parameters=(Parameter("N", 1, 7),))
    copy = there_and_back(original)
    assert copy.roles[0].body[1:2] == original.roles[0].body[1:2]
    assert copy.roles[0].body[2] == original.roles[0].body[2]
    assert copy.buffers == original.buffers
    assert copy.events == original.events
    assert copy.parameters == original.parameters
    assert (copy.name, copy.framework, copy.arch, copy.notes, copy.assumptions) == ("p", "f", "sm_90a", "n", ("x",))


def test_branches_become_conditions() -> None:
    condition = BinOp("==", Name("k"), Const(0))
    inner = If(BinOp("<", Name("N"), Const(3)), (Trigger("e"),))
    branch = If(condition, (inner,), (Access("A", "w"),))
    result = program_to_pattern(program(Loop("k", Name("N"), (branch,)), parameters=(Parameter("N"),)))
    phases = result["warp_groups"][0]["phases"]
    assert [phase["when"] for phase in phases] == ["(k == 0) && (N < 3)", "(k == 0) == 0"]


def test_a_read_after_a_write_keeps_its_place() -> None:
    result = program_to_pattern(program(Access("A", "w"), Access("A", "r")))
    (phase,) = result["warp_groups"][0]["phases"]
    assert [entry["mode"] for entry in phase["accesses"]] == ["write", "read"]
    (ordered,) = program_to_pattern(program(Access("A", "r"), Access("A", "w")))["warp_groups"][0]["phases"]
    assert "accesses" not in ordered


def test_a_phase_is_a_stretch_between_synchronisations() -> None:
    body = (Wait("e"), Access("A", "r"), Trigger("e"), Access("A", "w"), Wait("e", Const(1)), Commit(), Commit())
    phases = program_to_pattern(program(*body))["warp_groups"][0]["phases"]
    assert [phase["label"] for phase in phases] == ["read A", "write A", "wait e", "commit"]


def test_loops_of_one_role_have_names_of_their_own() -> None:
    loops = (Loop("k", Name("N"), (Trigger("e"),)), Loop("k", Name("N"), (Trigger("e"),)))
    two = Program("p", (Buffer("A", 8),), (Event("e"),), (Role("r", loops), Role("s", loops[:1])), (Parameter("N"),))
    result = program_to_pattern(two)
    assert result["loops"] == {"k": {"trip": "N", "counter": "k"}, "k_2": {"trip": "N", "counter": "k"}}
    assert there_and_back(two).roles[0].body == tuple(
        Loop("k", Name("N"), (Trigger("e", label="trigger e: trigger e"),)) for _ in loops
    )


def test_names_that_the_grammar_cannot_read() -> None:
    loop = Loop("k", Name("K / 64"), (Trigger("e", BinOp("%", Name("2nd"), Const(2))), Step("2nd")))
    result = program_to_pattern(program(loop, parameters=(Parameter("K / 64", 1),)))
    assert result["parameters"] == {"n_K_64": {"min": 1, "description": "K / 64"}}
    assert there_and_back(program(loop, parameters=(Parameter("K / 64", 1),))).parameters == (Parameter("n_K_64", 1),)


def test_what_the_format_lacks() -> None:
    stepped = If(BinOp("==", Name("c"), Const(0)), (Step("c"),))
    with pytest.raises(NotExpressible, match=r'a branch on "\(c == 0\)" steps c itself'):
        pattern_json(program(stepped))
    with pytest.raises(NotExpressible, match='barrier "b" has different members in different places'):
        pattern_json(program(Barrier("b", ("r",)), Trigger("e"), Barrier("b", ("r", "s"))))
