"""Which launch-time values of a kernel become parameters of the analysis, and under which names.

Every launch-time sum that a trip count, a slot or a condition mentions is collected first. A sum whose atoms no other
sum uses becomes *one* parameter (``cdiv(SEQ, 128) - m`` is the number of key blocks: at least 1, although neither part
says so); sums that share atoms keep them as separate parameters, so that their relation is not lost. Values that are
made from the same dimensions in different ways (``K / 64`` and ``cdiv(K, 64)``) are never guessed equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import gcd

from croqtile import symbolic
from croqtile.symbolic import Affine, Atom, Untranslatable
from hb_analyzer import model


@dataclass
class _Sum:
    """A launch-time sum without its constant, divided by its common factor."""

    affine: Affine
    low: int
    high: int | None
    in_control: bool  # in a trip count, a slot or beside a counter (and not only in launch-time conditions)


@dataclass
class Parameters:
    """Collects launch-time sums under placeholder names; ``resolve`` turns placeholders into parameters.

    ``facts``: what the launch guarantees (0 ≤ grid index < bound). ``aliases``: names of values in the kernel, by the
    text of their normalised sum, used as parameter names.
    """

    facts: symbolic.Facts = ()
    aliases: dict[str, str] = field(default_factory=dict)
    _sums: dict[str, _Sum] = field(default_factory=dict)

    def to_model(self, value: Affine, facts: symbolic.Facts = (), control: bool = True) -> model.IntExpr:
        """``value`` over counters and placeholders. Raises Untranslatable where a launch-time part may be negative."""
        launch = Affine(tuple(term for term in value.terms if term[0].launch_only and not _structural(term[0])))
        pieces: list[tuple[int, model.IntExpr]] = []
        if launch.terms:
            common, name = self._register(launch, facts, control)
            pieces.append((common, model.Name(name)))
        for atom, coefficient in value.terms:
            if not atom.launch_only or _structural(atom):
                pieces.append((coefficient, self._atom(atom, facts, control)))
        return _sum(pieces, value.constant)

    def trip_count(self, value: Affine, facts: symbolic.Facts = ()) -> model.IntExpr:
        """As to_model; a sum that is the whole count may be negative, since that means no iteration, like 0."""
        if value.launch_only and not value.constant and len(value.terms) == 1 and not _structural(value.terms[0][0]):
            common, name = self._register(value, facts, True, negative_as_zero=True)
            return _sum([(common, model.Name(name))], 0)
        return self.to_model(value, facts)

    def _atom(self, atom: Atom, facts: symbolic.Facts, control: bool) -> model.IntExpr:
        if not atom.operands:
            return model.Name(atom.text)
        # A condition on launch-time values alone is not a use that ties a parameter to the control flow of the roles.
        control = control and not (atom.launch_only and atom.op != "%")
        left, right = (self.to_model(operand, facts, control) for operand in atom.operands)
        return model.BinOp(atom.op, left, right)

    def _register(
        self, launch: Affine, facts: symbolic.Facts, control: bool, negative_as_zero: bool = False
    ) -> tuple[int, str]:
        """The factor and the placeholder of a sum of launch-time atoms."""
        facts = (*self.facts, *facts)
        common = gcd(*(coefficient for _, coefficient in launch.terms))
        low, high = symbolic.low(launch, facts), symbolic.high(launch, facts)
        if (low is None or low < 0) and high is not None and high <= 0:
            common, low, high = -common, -high, None if low is None else -low
            launch = launch.scaled(-1)
        if low is None or low < 0:
            if not negative_as_zero:
                raise Untranslatable(f"`{launch}` is not provably ≥ 0")
            low = 0
        base = Affine(tuple((atom, coefficient // abs(common)) for atom, coefficient in launch.terms))
        low, high = -(-low // abs(common)), None if high is None else max(high, 0) // abs(common)
        key = _PLACEHOLDER + str(base)
        known = self._sums.setdefault(key, _Sum(base, low, high, control))
        known.affine = _widened(known.affine, base)
        known.low = min(known.low, low)
        known.high = None if known.high is None or high is None else max(known.high, high)
        known.in_control = known.in_control or control
        return common, key

    def resolve(self, reserved: frozenset[str] = frozenset()) -> Resolution:
        """Decide the parameters; ``reserved`` are names of counters, which no parameter may take."""
        return Resolution.of(self._sums, self.aliases, reserved)


@dataclass(frozen=True)
class Resolution:
    """``expressions``: what each placeholder stands for. ``related``: groups of parameters made from the same
    launch-time values in ways that the analysis does not know to be connected."""

    expressions: Mapping[str, model.IntExpr]
    parameters: Mapping[str, model.Parameter]
    only_in_conditions: frozenset[str]  # parameters
    related: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(sums: Mapping[str, _Sum], aliases: Mapping[str, str], reserved: frozenset[str]) -> Resolution:
        uses: dict[str, set[str]] = {}
        for key, entry in sums.items():
            for atom, _ in entry.affine.terms:
                uses.setdefault(atom.text, set()).add(key)
        names = _names(sums, aliases, reserved)
        expressions: dict[str, model.IntExpr] = {}
        parameters: dict[str, model.Parameter] = {}
        origins: dict[str, frozenset[str]] = {}
        control: set[str] = set()
        bounded: list[tuple[str, ...]] = []

        def add(name: str, low: int, high: int | None, made_from: frozenset[str], entry: _Sum) -> model.IntExpr:
            known = parameters.get(name)
            if known is not None:
                low = min(low, known.minimum)
                high = None if high is None or known.maximum is None else max(high, known.maximum)
            parameters[name] = model.Parameter(name, low, high)
            origins[name] = made_from
            if entry.in_control:
                control.add(name)
            return model.Name(name)

        for key, entry in sums.items():
            terms = entry.affine.terms
            shared = any(len(uses[atom.text]) > 1 for atom, _ in terms)
            if shared and all(atom.low is not None and atom.low >= 0 for atom, _ in terms):
                pieces = [
                    (c, add(_unreserved(a.text, reserved), a.low or 0, a.high, _variables(a), entry)) for a, c in terms
                ]
                expressions[key] = _sum(pieces, 0)
                alone = symbolic.low(entry.affine)
                if alone is None or alone < entry.low:  # what the launch guarantees of the sum is lost
                    bounded.append(tuple(sorted(_unreserved(atom.text, reserved) for atom, _ in terms)))
            else:
                made_from = frozenset().union(*(_variables(atom) for atom, _ in terms))
                expressions[key] = add(names[key], entry.low, entry.high, made_from, entry)
        return Resolution(expressions, parameters, frozenset(parameters) - control, _related(origins, bounded))


_PLACEHOLDER = "§"


def _widened(one: Affine, other: Affine) -> Affine:
    """The same sum, with the bounds of its atoms that hold in both places where it was computed: a condition around one
    of them says nothing about the other."""
    terms = []
    for (a, coefficient), (b, _) in zip(one.terms, other.terms, strict=True):
        low = None if a.low is None or b.low is None else min(a.low, b.low)
        high = None if a.high is None or b.high is None else max(a.high, b.high)
        terms.append((replace(a, low=low, high=high), coefficient))
    return Affine(tuple(terms))


def _structural(atom: Atom) -> bool:
    """Operations whose operands the analysis must see: truth values, and remainders (slots after a loop)."""
    return atom.op in ("<", "<=", "==", "!=", "&&", "||") or (atom.op == "%" and atom.operands[1].is_constant)


def _variables(atom: Atom) -> frozenset[str]:
    return frozenset(leaf.text for leaf in atom.leaves())


def _names(sums: Mapping[str, _Sum], aliases: Mapping[str, str], reserved: frozenset[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    atoms = {atom.text for entry in sums.values() for atom, _ in entry.affine.terms}
    for key, entry in sums.items():
        text = str(entry.affine)
        alias = aliases.get(text)
        taken = alias is None or alias in reserved or alias in names.values() or (alias in atoms and alias != text)
        names[key] = _unreserved(text, reserved) if taken or alias is None else alias
    return names


def _unreserved(text: str, reserved: frozenset[str]) -> str:
    return f"({text})" if text in reserved else text


def _related(origins: Mapping[str, frozenset[str]], bounded: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    by_variable: dict[str, set[str]] = {}
    for name, variables in origins.items():
        for variable in variables:
            by_variable.setdefault(variable, set()).add(name)
    groups = {tuple(sorted(group)) for group in by_variable.values()}
    return tuple(sorted(group for group in groups | set(bounded) if len(group) > 1))


def _sum(pieces: list[tuple[int, model.IntExpr]], constant: int) -> model.IntExpr:
    """Σ factor · expression + constant, positive factors first."""
    result: model.IntExpr | None = None
    for factor, piece in sorted(pieces, key=lambda item: item[0] < 0):
        if abs(factor) != 1:
            piece = model.BinOp("*", piece, model.Const(abs(factor)))
        if result is None:
            result = piece if factor > 0 else model.BinOp("-", model.Const(0), piece)
        else:
            result = model.BinOp("+" if factor > 0 else "-", result, piece)
    if result is None:
        return model.Const(constant)
    if constant:
        return model.BinOp("+" if constant > 0 else "-", result, model.Const(abs(constant)))
    return result
