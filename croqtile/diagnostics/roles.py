"""Messages about roles, barriers and events."""

from __future__ import annotations

from croqtile.diagnostics.base import Diagnostic


class ConditionNotConstant(Diagnostic):
    template = "a role's condition may use {allowed} and constants only, not '{name}'"
    allowed: str
    name: str


class EmptyRole(Diagnostic):
    template = "no thread satisfies this condition: the role names nothing"


class OddRole(Diagnostic):
    template = (
        "this condition selects {count} of the 128 threads of warpgroup {warpgroup}: a role is whole warpgroups, or "
        "one thread (the same t) of each"
    )
    count: int
    warpgroup: int


class OverlappingRoles(Diagnostic):
    template = "thread {thread} of warpgroup {warpgroup} is in two roles, which run concurrently"
    thread: int
    warpgroup: int


class NoSuchWarpgroup(Diagnostic):
    template = "warpgroup {number} does not exist: there are {count} (0 to {last})"
    number: int
    count: int
    last: int


class NotAMember(Diagnostic):
    template = "warpgroup {number} reaches this barrier without being one of its members ({members})"
    number: int
    members: str


class MemberMissing(Diagnostic):
    template = "warpgroup {number} is a member of this barrier but never reaches it: the others would wait forever"
    number: int


class NeedsWarpgroup(Diagnostic):
    template = "{what} needs all 128 threads of a warpgroup, but this role is one thread"
    what: str


class DivergentStatement(Diagnostic):
    template = "{what} must be reached by all threads of a warpgroup, but the condition around it depends on the thread"
    what: str


class DivergentPlace(Diagnostic):
    template = "the threads of a warpgroup act together here, but an index of this statement depends on the thread"


class PrivateValue(Diagnostic):
    template = "'{name}' is assigned in a role, where every thread has its own copy: its value is undefined here"
    name: str


class NeverTriggered(Diagnostic):
    template = "event '{name}' is waited for but never triggered: the wait never returns"
    name: str


class CopyNeverTriggered(Diagnostic):
    template = "event '{name}' is never triggered: the copies bound to it never complete a setting"
    name: str


class CopyNeverWaited(Diagnostic):
    template = "nothing waits for event '{name}': nothing can tell when this copy has landed"
    name: str


class TriggerOfAnotherRole(Diagnostic):
    template = "event '{name}' is triggered here, but its copies are issued by another role that never triggers it"
    name: str
