"""Random programs: reproducible, runnable, of all sorts."""

from __future__ import annotations

from collections import Counter

from hb_analyzer import analyse
from hb_analyzer.simulator.code import compile_program
from hb_analyzer.simulator.generate import FAMILIES, program
from hb_analyzer.validate import validate


def test_a_seed_gives_one_program() -> None:
    assert all(program(seed) == program(seed) for seed in range(20))


def test_programs_keep_the_rules_of_the_model() -> None:
    for seed in range(120):
        _, drawn = program(seed)
        validate(drawn)
        compile_program(drawn, {p.name: min(p.minimum + 3, p.maximum or 99) for p in drawn.parameters})


def test_every_family_has_pairs_of_both_answers() -> None:
    answers: Counter[tuple[str, bool]] = Counter()
    for seed in range(60):
        family, drawn = program(seed)
        answers.update((family, verdict.overlap) for verdict in analyse(drawn).verdicts)
    assert all(answers[family, answer] for family in FAMILIES for answer in (True, False)), answers
