"""The C++ names of what a kernel declares, and the numbers of its named barriers."""

from __future__ import annotations

from dataclasses import dataclass

from croqtile import ir, rewrite
from croqtile.emit.errors import refuse

NAMED_BARRIERS = 15  # 1 … 15; number 0 is __syncthreads


@dataclass
class Names:
    """C++ names of what the kernel declares. Generated names end in an underscore, so that no name of the program can
    be hidden by one."""

    buffers: dict[str, str]  # SharedBuffer.name → variable that holds its address in shared memory
    events: dict[str, str]  # Event.name → variable that holds the address of its first mbarrier
    warpgroup: str  # index of the warpgroup
    thread: str  # index of the thread in its warpgroup
    barriers: dict[tuple[int, ...], int]  # members of a `sync.wg` → number of its named barrier

    def phases(self, event: ir.Event) -> str:
        """The variable with one parity bit per slot: what the role waits for next."""
        return f"{self.events[event.name]}_phases_"

    def meeting(self) -> str:
        """Number of the named barrier of the current warpgroup."""
        return f"1 + {self.warpgroup}"


def kernel_names(kernel: ir.Kernel) -> Names:
    """Buffers and events keep their names, unless a scalar, a fragment or a tensor has the same."""
    taken: set[str] = set()
    for node in rewrite.nodes(kernel):
        if isinstance(node, (ir.Symbol, ir.Fragment)):
            taken.add(node.cname)
        elif isinstance(node, ir.Tensor):
            taken.add(node.name)

    def free(name: str) -> str:
        return f"{name}_" if name in taken else name

    return Names(
        buffers={buffer.name: free(buffer.name) for buffer in kernel.buffers},
        events={event.name: free(event.name) for event in kernel.events},
        warpgroup=kernel.warpgroup.cname,
        thread=kernel.thread.cname if kernel.thread is not None else "thread_",
        barriers=_barriers(kernel),
    )


def _barriers(kernel: ir.Kernel) -> dict[tuple[int, ...], int]:
    """One number per set of warpgroups that a `sync.wg` names, behind those on which single warpgroups meet."""
    barriers: dict[tuple[int, ...], int] = {}
    for statement in rewrite.statements(kernel.body):
        if isinstance(statement, ir.SyncWarpgroups):
            members = tuple(sorted(statement.members))
            barriers.setdefault(members, kernel.warpgroups + 1 + len(barriers))
            if barriers[members] > NAMED_BARRIERS:
                refuse(statement.span, f"the hardware has {NAMED_BARRIERS} named barriers, and this needs one more")
    return barriers
