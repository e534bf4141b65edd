"""Table 2: shared memory across frameworks. Each group of rows is a module of its own; ``--only GROUP`` selects one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from reproduce.machine import Need
from reproduce.results import Record
from reproduce.step import Context, Measurement, Step
from reproduce.steps import table2_cutlass, table2_cutlass_tables, table2_tawa, table2_tawa_tables, table2_xcomp
from reproduce.tables import Table


@dataclass(frozen=True)
class Group:
    """Rows of one framework: keys of its measurements are prefixed with its name."""

    measurements: Callable[[Context], list[Measurement]]
    tables: Callable[[Mapping[str, Record], Context], tuple[Table, ...]]


GROUPS = {
    "xcomp": Group(table2_xcomp.measurements, table2_xcomp.tables),
    "cutlass": Group(table2_cutlass.measurements, table2_cutlass_tables.tables),
    "tawa": Group(table2_tawa.measurements, table2_tawa_tables.tables),
}


def measurements(context: Context) -> list[Measurement]:
    found = []
    for name in _chosen(context):
        for item in GROUPS[name].measurements(context):
            found.append(replace(item, key=f"{name}/{item.key}"))
    return found


def tables(records: Mapping[str, Record], context: Context) -> tuple[Table, ...]:
    made: list[Table] = []
    for name, group in GROUPS.items():
        own = {key.removeprefix(f"{name}/"): record for key, record in records.items() if key.startswith(f"{name}/")}
        if own or name in _chosen(context):
            made.extend(group.tables(own, context))
    return tuple(made)


def _chosen(context: Context) -> list[str]:
    unknown = [name for name in context.options.only if name not in GROUPS]
    if unknown:
        raise ValueError(f"table2 has no rows `{unknown[0]}`: it has {', '.join(GROUPS)}")
    return list(context.options.only) or list(GROUPS)


STEP = Step(
    name="table2",
    title="Table 2: shared memory across frameworks",
    minutes=6.0,
    claims=("table2_xcomp", "table2_cutlass", "table2_tawa"),
    measurements=measurements,
    tables=tables,
    needs=frozenset({Need.NVCC}),
    optional=frozenset({Need.GPU, Need.NCU, Need.TRITON}),
)
