"""Who runs concurrently in a kernel: role instances and their names, and the barriers at which they meet."""

from __future__ import annotations

from collections.abc import Iterable

from croqtile import ir, walk
from croqtile.walk import RoleKey
from hb_analyzer import model

# The role that stands for statements at block level.
BLOCK = "block"


class Layout:
    """Role instances and barriers of a kernel: names, members, and which block-level meetings are needed."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel = kernel
        self.arrays = {buffer.name for buffer in kernel.buffers if buffer.is_array}
        self.shapes = {buffer.name: buffer.shape for buffer in kernel.buffers}
        regions = [s for s in _block_statements(kernel.body) if isinstance(s, ir.Roles)]
        keys: dict[RoleKey, list[ir.Role]] = {}
        for region in regions:
            for role in region.roles:
                for instance in role.instances:
                    keys.setdefault(RoleKey(instance, role.thread), []).append(role)
        in_roles = [s for key in keys for s in walk.statements(kernel.body, key)]
        if any(isinstance(s, ir.SyncCta) for region in regions for s in _inside(region)):
            self._add_idle_instances(keys)
        for statement in in_roles:
            if isinstance(statement, ir.SyncWarpgroups):
                for member in statement.members:
                    if not any(key.warpgroup == member for key in keys):
                        keys[RoleKey(member)] = []
        # The block role and its meetings exist only where they order something.
        outside = walk.effects(kernel.body, None)
        repeated = any(isinstance(s, (ir.ForEach, ir.If)) and _has_roles(s) for s in kernel.body)
        self.has_block = bool(outside.buffers or outside.events) or repeated or len(regions) > 1
        self.roles: dict[str, RoleKey | None] = _role_names(keys)
        if self.has_block:
            self.roles[BLOCK] = None
        self.regions = {id(region): number for number, region in enumerate(regions)}
        self.dropped: set[str] = set()  # barriers that a branch on unknown values may skip

    def kind(self, name: str) -> str:
        key = self.roles[name]
        return "cta" if key is None else "warpgroup" if key.thread is None else "thread"

    def _add_idle_instances(self, keys: dict[RoleKey, list[ir.Role]]) -> None:
        """``sync.shared`` inside a role counts every thread of the CTA: those that run no role must appear too."""
        for warpgroup in range(self.kernel.warpgroups):
            own = [key for key in keys if key.warpgroup == warpgroup]
            if not any(key.thread is None for key in own):
                keys[RoleKey(warpgroup)] = []

    def warpgroup_members(self, members: tuple[int, ...]) -> tuple[str, ...]:
        names = []
        for member in members:
            own = [name for name, key in self.roles.items() if key is not None and key.warpgroup == member]
            whole = [name for name in own if self.kind(name) == "warpgroup"]
            names.append((whole or own)[0])
        return tuple(names)

    def barrier(self, statement: ir.SyncWarpgroups | ir.SyncCta) -> model.Barrier:
        if isinstance(statement, ir.SyncWarpgroups):
            members = tuple(sorted(statement.members))  # one barrier, in whatever order it names them
            text = "sync.wg " + ", ".join(map(str, members))
            return model.Barrier(text, self.warpgroup_members(members), text, str(statement.span))
        everyone = tuple(name for name in self.roles if name != BLOCK)
        return model.Barrier("sync.shared", everyone, "sync.shared", str(statement.span))

    def meeting(self, region: ir.Roles, which: str) -> model.Barrier:
        """ "start" or "join" of the roles of a region."""
        number = self.regions[id(region)]
        suffix = f" {number + 1}" if len(self.regions) > 1 else ""
        return model.Barrier(f"{which}{suffix}", tuple(self.roles), f"{which} of the roles", str(region.span))


def _block_statements(body: tuple[ir.Stmt, ...]) -> list[ir.Stmt]:
    return list(walk.statements(body, None))


def _inside(region: ir.Roles) -> list[ir.Stmt]:
    return [
        s
        for role in region.roles
        for instance in role.instances
        for s in walk.statements(role.body, RoleKey(instance, role.thread))
    ]


def _has_roles(statement: ir.Stmt) -> bool:
    return any(isinstance(s, ir.Roles) for s in walk.statements((statement,), None))


def role_word(roles: Iterable[ir.Role], key: RoleKey) -> str:
    """What a reader calls the instance ``key``, which runs these roles."""
    inside = [s for role in roles for s in walk.statements(role.body, key)]
    if any(isinstance(s, ir.Mma) for s in inside):
        return "consumer"
    if any(isinstance(s, ir.CopyIn) for s in inside):
        return "producer"
    if any(isinstance(s, ir.Call) for s in inside):
        return "consumer"
    return "warpgroup" if key.thread is None else "thread"


def _role_names(keys: dict[RoleKey, list[ir.Role]]) -> dict[str, RoleKey | None]:
    """Names that a reader knows: producer, consumer 1, consumer 2, …; the number is p."""
    words = {key: role_word(roles, key) for key, roles in keys.items()}
    names: dict[str, RoleKey | None] = {}
    for key in sorted(keys, key=lambda k: (k.warpgroup, -1 if k.thread is None else k.thread)):
        word = words[key]
        name = word if list(words.values()).count(word) == 1 else f"{word} {key.warpgroup}"
        if name in names:
            name = f"{name}.{key.thread}"
        names[name] = key
    return names
