"""Messages about synchronisation and placement; most of them are what the analysis engine finds."""

from __future__ import annotations

from croqtile.diagnostics.base import Diagnostic


class Deadlock(Diagnostic):
    template = "deadlock: {why}"
    why: str


class EventOverrun(Diagnostic):
    template = "event overrun: {why}"
    why: str


class SharedMemoryRace(Diagnostic):
    template = "race in shared memory: {why}"
    why: str


class CopyUnawaited(Diagnostic):
    template = "copy left behind: {why}; wait for it in some role, or do not issue it"
    why: str


class ArrivalMismatch(Diagnostic):
    template = "{why}; the event orders nothing"
    severity = "warning"
    why: str


class PossibleDefect(Diagnostic):
    """A defect that may only come from what the analysis could not follow."""

    template = "possible {kind}: {why}; not certain, because {reason}"
    severity = "warning"
    kind: str
    why: str
    reason: str


class OverlapUnproved(Diagnostic):
    """The theorem of hb_analyzer/SOUNDNESS.md asks for programs without overruns."""

    template = "every buffer keeps its own place: no overlap is proved while an event may be overrun"
    severity = "warning"


class ClusterUnchecked(Diagnostic):
    template = (
        "the synchronisation between the CTAs of a cluster is not analysed: buffers that other CTAs write keep their "
        "own place, and what they wait for is not checked"
    )
    severity = "warning"


class OperandReleased(Diagnostic):
    template = "operand '{buffer}' released while still read: this trigger of '{event}' lets it be overwritten"
    buffer: str
    event: str


class SharedMemoryOutOfBound(Diagnostic):
    template = (
        "shared memory OUT OF BOUND: kernel '{kernel}' needs {bytes} bytes of shared memory and {slack} for alignment; "
        "a block has at most {limit}"
    )
    kernel: str
    bytes: int
    slack: int
    limit: int
    table: tuple[str, ...]

    @property
    def details(self) -> tuple[str, ...]:
        return tuple(f"  {row}" for row in self.table)
