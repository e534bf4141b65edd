"""The last step of the translation: placeholders become parameters, and barriers that may be skipped are taken out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from croqtile.parameters import Parameters, Resolution
from hb_analyzer import model


def resolved(program: model.Program, parameters: Parameters, dropped: Iterable[str]) -> model.Program:
    """``program`` with the parameters of ``parameters``, without the barriers named in ``dropped``."""
    counters: set[str] = set()
    for role in program.roles:
        counters |= _counters(role.body)
    resolution = parameters.resolve(frozenset(counters))
    rewrite = _Rewrite(resolution, frozenset(dropped))
    roles = tuple(replace(role, body=rewrite.body(role.body)) for role in program.roles)
    declared = {**resolution.parameters, **rewrite.conditions}
    used = tuple(declared[name] for name in declared if name in rewrite.names)
    related = (*resolution.related, *rewrite.related_conditions())
    mentioned = [tuple(name for name in group if name in rewrite.names) for group in related]
    assumptions = tuple(
        " and ".join(f"`{name}`" for name in group) + " are analysed as unrelated values"
        for group in mentioned
        if len(group) > 1
    )
    return replace(program, roles=roles, parameters=used, assumptions=program.assumptions + assumptions)


def _counters(body: tuple[model.Statement, ...]) -> set[str]:
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, model.Loop):
            found |= {statement.counter} | _counters(statement.body)
        elif isinstance(statement, model.If):
            found |= _counters(statement.then) | _counters(statement.orelse)
        elif isinstance(statement, model.Step):
            found.add(statement.counter)
    return found


class _Rewrite:
    def __init__(self, resolution: Resolution, dropped: frozenset[str]) -> None:
        self.resolution, self.dropped = resolution, dropped
        self.conditions: dict[str, model.Parameter] = {}
        self.made_from: dict[str, frozenset[str]] = {}  # the launch-time values of each condition
        self.names: set[str] = set()
        texts = {key: str(expr) for key, expr in resolution.expressions.items()}
        self.texts = sorted(texts.items(), key=lambda item: -len(item[0]))

    def expression(self, expr: model.IntExpr) -> model.IntExpr:
        result = self._replace(expr)
        self.names |= model.names_in(result)
        return result

    def _replace(self, expr: model.IntExpr) -> model.IntExpr:
        if isinstance(expr, model.Name):
            return self.resolution.expressions.get(expr.name, expr)
        if isinstance(expr, model.BinOp):
            return model.BinOp(expr.op, self._replace(expr.left), self._replace(expr.right))
        return expr

    def condition(self, expr: model.IntExpr) -> model.IntExpr:
        """A condition on launch-time values that nothing else depends on is one truth value, true or false."""
        result = self._replace(expr)
        names = model.names_in(result)
        if names and names <= self.resolution.only_in_conditions:
            positive, holds = _positive(result)
            text = str(positive)
            self.conditions[text] = model.Parameter(text, 0, 1)
            self.made_from[text] = names
            result = model.Name(text) if holds else model.BinOp("==", model.Name(text), model.ZERO)
        self.names |= model.names_in(result)
        return result

    def related_conditions(self) -> tuple[tuple[str, ...], ...]:
        """Conditions on the same launch-time value, which may exclude each other."""
        values = {name for names in self.made_from.values() for name in names}
        groups = {tuple(sorted(text for text, names in self.made_from.items() if name in names)) for name in values}
        return tuple(sorted(group for group in groups if len(group) > 1))

    def body(self, body: tuple[model.Statement, ...]) -> tuple[model.Statement, ...]:
        return tuple(self.statement(s) for s in body if not (isinstance(s, model.Barrier) and s.name in self.dropped))

    def statement(self, s: model.Statement) -> model.Statement:
        if isinstance(s, model.Loop):
            return replace(s, trip=self.expression(s.trip), body=self.body(s.body))
        if isinstance(s, model.If):
            return replace(s, condition=self.condition(s.condition), then=self.body(s.then), orelse=self.body(s.orelse))
        if isinstance(s, model.Access):
            slot, event_slot = self.expression(s.slot), self.expression(s.event_slot)
            return replace(s, slot=slot, event_slot=event_slot, label=self.label(s.label))
        if isinstance(s, (model.Trigger, model.Wait)):
            return replace(s, slot=self.expression(s.slot), label=self.label(s.label))
        return s

    def label(self, label: str) -> str:
        for placeholder, text in self.texts:
            label = label.replace(placeholder, text)
        return label


def _positive(condition: model.IntExpr) -> tuple[model.IntExpr, bool]:
    """``condition`` as another one that is true, or false, where it is: a condition and its opposite are one value."""
    if isinstance(condition, model.BinOp) and condition.op == "!=":
        return model.BinOp("==", condition.left, condition.right), False
    if isinstance(condition, model.BinOp) and condition.op == "<=":
        return model.BinOp("<", condition.right, condition.left), False
    return condition, True
