"""Decides which staging tiles may lie over which rings, and rewrites the kernel accordingly."""

from __future__ import annotations

from dataclasses import dataclass, field

from hb_analyzer.report import Verdict
from triton_overlap import guard, overlay, placeholders, ttgir
from triton_overlap.allocation import Layout, Violation, read_layout
from triton_overlap.decision import decide, explain, proved, report_on
from triton_overlap.edits import Edits
from triton_overlap.errors import RefusedError
from triton_overlap.memory import Allocation
from triton_overlap.overlay import Overlay
from triton_overlap.roles import buffer_name
from triton_overlap.slices import slice_neighbourhood
from triton_overlap.translate import Translation, translate

DROP, INVALIDATE, KEEP = "drop", "invalidate", "keep"


@dataclass(frozen=True)
class Settings:
    """``overlap``: lay staging tiles over rings. ``remedy``: what happens to placeholder mbarriers ("keep": nothing,
    so that most kernels are refused).

    ``guard=False`` leaves out the guard of persistent kernels, against the engine's verdict; ``checked=False`` accepts
    data over mbarriers. Both are there to show what goes wrong then.
    """

    overlap: bool = True
    remedy: str = DROP
    guard: bool = True
    checked: bool = True

    def __post_init__(self) -> None:
        if self.remedy not in (DROP, INVALIDATE, KEEP):
            raise ValueError(f"remedy is {self.remedy!r}; it is {DROP!r}, {INVALIDATE!r} or {KEEP!r}")


@dataclass(frozen=True)
class Laid:
    """One overlap that was made; ``guarded``: with a guard; ``proved``: False if made against the engine's verdict."""

    staging: str
    ring: str
    verdict: Verdict
    guarded: bool
    proved: bool


@dataclass
class Plan:
    """The rewritten kernel and how it came about. ``refused`` has, for a tile that stays, its best ring's verdict."""

    text: str
    stock: Layout
    final: Layout
    laid: list[Laid] = field(default_factory=list)
    refused: dict[str, Verdict] = field(default_factory=dict)
    removed: int = 0  # placeholder arrays dropped or invalidated

    @property
    def unsafe(self) -> bool:
        """Whether an overlap was made against the engine's verdict, or data lies over mbarriers."""
        return any(not each.proved for each in self.laid) or bool(self.final.violations())

    @property
    def stock_violations(self) -> tuple[Violation, ...]:
        return self.stock.violations()

    def __str__(self) -> str:
        lines = [f"{self.stock.total} -> {self.final.total} bytes of shared memory"]
        for each in self.laid:
            how = " with a guard" if each.guarded else ""
            proof = "" if each.proved else " AGAINST THE ENGINE'S VERDICT (unsafe)"
            lines.append(f"{each.staging} lies over {each.ring}{how}{proof}")
        lines += [f"{name} stays: {verdict.why}" for name, verdict in self.refused.items()]
        if self.stock_violations:
            lines.append(f"stock Triton: {self.stock_violations[-1]} ({len(self.stock_violations)} such overlaps)")
        if self.removed:
            lines.append(f"{self.removed} arrays of placeholder mbarriers removed")
        return "\n".join(lines)


def make_plan(text: str, settings: Settings | None = None) -> Plan:
    """Plans and rewrites one kernel.

    ``text`` is TTGIR before allocation. Raises RefusedError if the kernel is not understood, if no tile of it may be
    overlapped, or if the result would put data over an mbarrier.
    """
    settings = settings or Settings()
    text = ttgir.normalise(text)
    stock = read_layout(ttgir.allocate(text))
    plan = Plan(text, stock, stock)
    if settings.overlap:
        _overlap(plan, settings)
    _remedy(plan, settings.remedy)
    plan.final = read_layout(ttgir.allocate(plan.text))
    violations = plan.final.violations()
    if violations and settings.checked:
        raise RefusedError(f"data over mbarriers: {violations[0]}")
    if settings.overlap and not plan.laid:
        raise _nothing(plan)
    return plan


def _nothing(plan: Plan) -> RefusedError:
    if not plan.refused:
        translation = translate(plan.text)
        if not translation.stagings:
            return RefusedError("the specialized region has no staging tile that could lie over a ring")
        tile = translation.stagings[0]
        reason = f"no ring is as large as the tile of {tile.type.size} bytes, and of its layout"
        return RefusedError(reason, tile.op.where)
    name, verdict = next(iter(plan.refused.items()))
    ring = verdict.a if verdict.b == name else verdict.b
    return RefusedError(f"{name} may not lie over {ring}: {verdict.why}", verdict=verdict)


def _overlap(plan: Plan, settings: Settings) -> None:
    """Chooses a ring for every tile, in the order of the text, and rewrites."""
    translation = translate(plan.text)
    taken: set[int] = set()
    chosen: list[tuple[int, int]] = []
    for tile in range(len(translation.stagings)):
        ring = _choose(plan, translation, tile, taken, settings)
        if ring is not None:
            taken.add(ring)
            chosen.append((tile, ring))
            translation = translate(plan.text)  # a guard may have changed it
    edits = Edits(translation.module.lines)
    for tile, ring in chosen:
        overlay.lay(translation, _overlay(translation, tile, ring), edits)
    if chosen:
        plan.text = ttgir.normalise(edits.text())
        _check_races(plan, [ring for _, ring in chosen])


def _choose(plan: Plan, translation: Translation, tile: int, taken: set[int], settings: Settings) -> int | None:
    """The first ring that the engine accepts, if need be with a guard, which is then in ``plan.text``."""
    candidates = [ring for ring in _candidates(translation, tile) if ring not in taken]
    verdicts = {ring: decide(translation, _overlay(translation, tile, ring)) for ring in candidates}
    for ring in candidates:
        if verdicts[ring].overlap:
            plan.laid.append(_laid(translation, tile, ring, verdicts[ring]))
            return ring
    for ring in candidates:
        if not guard.applies(translation, _overlay(translation, tile, ring)):
            continue
        guarded = _guarded(translation, tile, ring)
        verdict = decide(translate(guarded), _overlay(translate(guarded), tile, ring))
        if verdict.overlap:
            if settings.guard:
                plan.text = guarded
                plan.laid.append(_laid(translation, tile, ring, verdict, guarded=True))
            else:
                plan.laid.append(_laid(translation, tile, ring, verdicts[ring], proved=False))
            return ring
    for ring in candidates:
        verdict = decide(translation, _overlay(translation, tile, ring), wide=True)
        if verdict.overlap:
            plan.laid.append(_laid(translation, tile, ring, verdict))
            return ring
        name = buffer_name(translation.stagings[tile])
        if name not in plan.refused:
            plan.refused[name] = explain(translation, _overlay(translation, tile, ring))
    return None


def _candidates(translation: Translation, tile: int) -> list[int]:
    """Rings that are large enough: those read by the fewest roles first, then the smallest."""
    rings = translation.rings

    def roles(ring: int) -> set[int]:
        return {use.role for use in translation.shared.uses if use.allocation is rings[ring] and use.mode == "r"}

    fitting = [ring for ring in range(len(rings)) if overlay.fits(_overlay(translation, tile, ring))]
    own = translation.stagings[tile].role
    return sorted(fitting, key=lambda ring: (own not in roles(ring), len(roles(ring)), rings[ring].type.size))


def _overlay(translation: Translation, tile: int, ring: int) -> Overlay:
    return Overlay(translation.stagings[tile], translation.rings[ring])


def _laid(
    translation: Translation, tile: int, ring: int, verdict: Verdict, guarded: bool = False, proved: bool = True
) -> Laid:
    names: list[Allocation] = [translation.stagings[tile], translation.rings[ring]]
    return Laid(buffer_name(names[0]), buffer_name(names[1]), verdict, guarded, proved)


def _guarded(translation: Translation, tile: int, ring: int) -> str:
    edits = Edits(translation.module.lines)
    guard.insert(translation, _overlay(translation, tile, ring), edits)
    return ttgir.normalise(edits.text())


def _check_races(plan: Plan, rings: list[int]) -> None:
    """What was decided about two buffers must hold for the one that the rewrite made of them."""
    if any(not each.proved for each in plan.laid):
        return
    translation = translate(plan.text)
    for ring in rings:
        name = buffer_name(translation.rings[ring])
        part = slice_neighbourhood(translation.program, name, name)
        report = report_on(part)
        defects = [*report.races, *report.deadlocks]
        if defects:
            raise RefusedError(f"the kernel has a defect: {defects[0].why}")
        if not proved(part, {name}, lambda report: not report.races and not report.deadlocks):
            raise RefusedError(f"nothing is proved of {name}, since an mbarrier may be overrun")


def _remedy(plan: Plan, remedy: str) -> None:
    if remedy == KEEP:
        return
    translation = translate(plan.text)
    plan.removed = len(translation.placeholders)
    if plan.removed:
        edits = Edits(translation.module.lines)
        (placeholders.drop if remedy == DROP else placeholders.invalidate)(translation, edits)
        plan.text = ttgir.normalise(edits.text())
