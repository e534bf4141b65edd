"""The engine's verdict on a kernel: may main loop and epilogue storage share memory at so many tiles per CTA?"""

from __future__ import annotations

from dataclasses import dataclass

from reproduce.cutlass.configurations import Configuration, Schedule, Storage

ACCEPTED, REFUSED, UNDECIDED = "accepted", "refused", "undecided"


@dataclass(frozen=True)
class StorageVerdict:
    """``reasons`` are empty iff the storage is accepted; the first one is the one to print.

    ``undecided``: the engine has no counterexample either, so that it refuses for want of a proof.
    """

    reasons: tuple[str, ...]
    undecided: bool = False

    @property
    def accepted(self) -> bool:
        return not self.reasons

    def __str__(self) -> str:
        return ACCEPTED if self.accepted else UNDECIDED if self.undecided else REFUSED


def decide(
    configuration: Configuration, storage: Storage, *, max_tiles_per_cta: int | None, beta: float = 0
) -> StorageVerdict:
    """Decides one kernel; ``max_tiles_per_cta`` None: any number of tiles.

    A struct overlaps nothing, so that only the kernel's own synchronisation is at stake there.
    """
    # The engine is imported for those who need it: every step's command imports this module.
    from hb_analyzer import analyse
    from reproduce.cutlass.model import defects_of, program, union_refusals

    # A counterexample needs two tiles at most, and is found faster when the engine does not look at more.
    if max_tiles_per_cta is None and configuration.schedule is not Schedule.NON_PERSISTENT:
        early = decide(configuration, storage, max_tiles_per_cta=2, beta=beta)
        if not early.accepted:
            return early
    report = analyse(program(configuration, max_tiles_per_cta=max_tiles_per_cta, beta=beta))
    found = union_refusals(report) if storage is Storage.UNION else defects_of(report)
    unknown = tuple(verdict.why for verdict in report.verdicts if verdict.kind == "unknown")
    # What was not analysed to the end has not shown its defects either.
    return StorageVerdict(tuple(found) or unknown, undecided=bool(unknown) and not defects_of(report))
