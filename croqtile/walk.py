"""Looking at IR without running it: what statements do, and how a scalar that changes is assigned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from croqtile import fold, ir

# Counted loops with at most this many iterations are analysed as straight-line code (stages, halves, k steps).
UNROLL_LIMIT = 16

_LONGEST_ROUND = 64  # stages


@dataclass(frozen=True)
class RoleKey:
    """One role instance of a kernel: warpgroup p, or one of its threads."""

    warpgroup: int
    thread: int | None = None


def statements(body: tuple[ir.Stmt, ...], key: RoleKey | None) -> Iterator[ir.Stmt]:
    """Every statement in ``body`` that the instance ``key`` may run (None: the block level alone), outermost first."""
    for statement in body:
        yield statement
        for inner in inner_bodies(statement, key):
            yield from statements(inner, key)


def inner_bodies(statement: ir.Stmt, key: RoleKey | None) -> tuple[tuple[ir.Stmt, ...], ...]:
    """The bodies nested directly in a statement, as far as the instance ``key`` runs them."""
    if isinstance(statement, ir.ForEach):
        return (statement.body,)
    if isinstance(statement, ir.If):
        return (statement.then, statement.orelse)
    if isinstance(statement, ir.OnlyWarpgroups):
        return (statement.body,) if key is not None and key.warpgroup in statement.instances else ()
    if isinstance(statement, ir.Roles):
        own = tuple(role.body for role in statement.roles if key is not None and runs(role, key))
        return (statement.prologue, *own)
    return ()


def runs(role: ir.Role, key: RoleKey) -> bool:
    return key.warpgroup in role.instances and role.thread == key.thread


def unrolled(loop: ir.ForEach) -> int | None:
    """The number of iterations of a loop that is analysed as straight-line code, else None."""
    extent = loop.extent
    return extent.value if isinstance(extent, ir.IntLit) and 0 <= extent.value <= UNROLL_LIMIT else None


# --------------------------------------------------------------------------------------------------------------
# Effects on shared memory and synchronisation


def shared_views(statement: ir.Stmt) -> tuple[ir.View, ...]:
    """The shared tiles that a statement itself accesses."""
    views: tuple[ir.View, ...] = ()
    if isinstance(statement, ir.CopyIn):
        views = (statement.target,)
    elif isinstance(statement, ir.CopyOut):
        views = (statement.source,)
    elif isinstance(statement, ir.MmaStore):
        views = (statement.target,)
    elif isinstance(statement, ir.Mma):
        operands = (statement.a, statement.b)
        views = tuple(operand.view for operand in operands if isinstance(operand, ir.SharedOperand))
    elif isinstance(statement, ir.Call):
        views = tuple(argument for argument in statement.args if isinstance(argument, ir.View))
    return tuple(view for view in views if isinstance(view.root, ir.SharedBuffer))


@dataclass
class Effects:
    """What a region of code touches; for code that the analysis cannot follow."""

    buffers: dict[str, None] = field(default_factory=dict)  # ordered set
    events: dict[str, None] = field(default_factory=dict)
    barriers: list[ir.SyncWarpgroups | ir.SyncCta] = field(default_factory=list)
    roles: list[ir.Roles] = field(default_factory=list)
    matrix: bool = False  # issues or waits for matrix instructions

    def __bool__(self) -> bool:
        return bool(self.buffers or self.events or self.barriers or self.roles or self.matrix)


def effects(body: tuple[ir.Stmt, ...], key: RoleKey | None) -> Effects:
    found = Effects()
    for statement in statements(body, key):
        for view in shared_views(statement):
            found.buffers[view.root.name] = None
        if isinstance(statement, (ir.Wait, ir.Trigger, ir.CopyIn)):
            found.events[statement.event.name] = None
        elif isinstance(statement, (ir.SyncWarpgroups, ir.SyncCta)):
            found.barriers.append(statement)
        elif isinstance(statement, ir.Roles):
            found.roles.append(statement)
        found.matrix = found.matrix or isinstance(statement, (ir.Mma, ir.MmaCommit, ir.MmaWait))
    return found


# --------------------------------------------------------------------------------------------------------------
# Scalars that change


@dataclass(frozen=True)
class Update:
    """``x += by``, or ``x = (x + by) % modulus``."""

    by: int
    modulus: int | None = None


@dataclass
class Mutable:
    """All assignments to one scalar in the code of one role instance.

    ``mode`` says how the analysis follows its value:
      "closed"   a linear function of one loop's counter;
      "running"  a running counter (several loops, or steps under a condition), set once before all loops;
      "flow"     assignment by assignment; unknown where loops or branches meet.
    """

    mode: str = "flow"
    modulus: int | None = None
    decreasing: bool = False
    per_iteration: dict[int, int] = field(default_factory=dict)  # id of a loop → increment per iteration


@dataclass(frozen=True)
class _Site:
    update: Update | None
    loops: tuple[int, ...]
    branches: int
    times: int  # iterations of the unrolled loops around it


def mutables(body: tuple[ir.Stmt, ...], key: RoleKey | None) -> dict[ir.Symbol, Mutable]:
    """How every reassigned scalar of the instance ``key`` changes."""
    lets: dict[ir.Symbol, tuple[tuple[int, ...], int, int]] = {}
    sites: dict[ir.Symbol, list[_Site]] = {}

    def visit(inner: tuple[ir.Stmt, ...], loops: tuple[int, ...], branches: int, times: int) -> None:
        for statement in inner:
            if isinstance(statement, ir.Let):
                lets[statement.symbol] = (loops, branches, times)
            elif isinstance(statement, ir.Assign):
                site = _Site(update_of(statement), loops, branches, times)
                sites.setdefault(statement.symbol, []).append(site)
            elif isinstance(statement, ir.ForEach):
                count = unrolled(statement)
                deeper = loops if count is not None else (*loops, id(statement))
                visit(statement.body, deeper, branches, times * (count if count is not None else 1))
            else:
                deeper_branches = branches + isinstance(statement, ir.If)
                for nested in inner_bodies(statement, key):
                    visit(nested, loops, deeper_branches, times)

    visit(body, (), 0, 1)
    return {symbol: _mode(lets.get(symbol), found) for symbol, found in sites.items()}


def _mode(let: tuple[tuple[int, ...], int, int] | None, sites: list[_Site]) -> Mutable:
    if let is None:
        return Mutable()
    loops, branches, times = let
    updates = [site.update for site in sites]
    moduli = {update.modulus for update in updates if update is not None}
    if None in updates or len(moduli) != 1:
        return Mutable()
    result = Mutable(modulus=moduli.pop(), decreasing=any(update.by < 0 for update in updates if update is not None))
    inner = [site.loops[len(loops) :] for site in sites]
    if all(len(extra) <= 1 for extra in inner) and all(site.branches == branches for site in sites):
        result.mode = "closed"
        for extra, site in zip(inner, sites, strict=True):
            for loop in extra:
                step = site.update.by * site.times // max(times, 1) if site.update else 0
                result.per_iteration[loop] = result.per_iteration.get(loop, 0) + step
    elif not loops and times == 1:
        result.mode = "running"
    return result


def update_of(statement: ir.Assign) -> Update | None:
    """The update that ``x = …x…;`` is, if it is one."""
    value = statement.value
    if isinstance(value, ir.Select):
        return _round(value, statement.symbol)
    if not isinstance(value, ir.Binary):
        return None
    if value.op == "%" and isinstance(value.right, ir.IntLit) and value.right.value > 0:
        by = _increment(value.left, statement.symbol)
        return None if by is None else Update(by, value.right.value)
    by = _increment(value, statement.symbol)
    return None if by is None else Update(by)


def _round(value: ir.Select, symbol: ir.Symbol) -> Update | None:
    """``x + 1 == n ? 0 : x + 1`` and other ways to step round: found by trying every x below n.

    What it does to an x of n or more does not matter: ``Mutable`` describes scalars that start below n.
    """
    if set(mentioned(value)) != {symbol}:
        return None
    constants = {node.value for node in _expressions(value) if isinstance(node, ir.IntLit)}
    for modulus in sorted({constant + more for constant in constants for more in (0, 1, 2)}):
        if not 2 <= modulus <= _LONGEST_ROUND:
            continue
        results = [fold.evaluate(value, {symbol: x}) for x in range(modulus)]
        by = results[0]
        if by and results == [(x + by) % modulus for x in range(modulus)]:
            return Update(by, modulus)
    return None


def _expressions(expr: ir.Expr) -> Iterator[ir.Expr]:
    yield expr
    for inner in _operands(expr):
        yield from _expressions(inner)


def _increment(value: ir.Expr, symbol: ir.Symbol) -> int | None:
    if not isinstance(value, ir.Binary) or value.op not in ("+", "-"):
        return None
    left, right = value.left, value.right
    if value.op == "+" and isinstance(left, ir.IntLit):
        left, right = right, left
    if isinstance(left, ir.Var) and left.symbol is symbol and isinstance(right, ir.IntLit):
        return right.value if value.op == "+" else -right.value
    return None


def assigned(body: tuple[ir.Stmt, ...], key: RoleKey | None) -> set[ir.Symbol]:
    return {statement.symbol for statement in statements(body, key) if isinstance(statement, ir.Assign)}


def mentioned(expr: ir.Expr) -> set[ir.Symbol]:
    """Every scalar in an expression."""
    if isinstance(expr, ir.Var):
        return {expr.symbol}
    return {symbol for inner in _operands(expr) for symbol in mentioned(inner)}


def _operands(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    if isinstance(expr, ir.Binary):
        return (expr.left, expr.right)
    if isinstance(expr, ir.Unary):
        return (expr.operand,)
    if isinstance(expr, ir.Select):
        return (expr.condition, expr.yes, expr.no)
    if isinstance(expr, ir.Intrinsic):
        return expr.args
    return expr.indices if isinstance(expr, (ir.FragElement, ir.TensorElement)) else ()
