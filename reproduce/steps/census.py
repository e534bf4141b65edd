"""Census of CUTLASS' warp-specialized kernels: which of them put main loop and epilogue storage in a union."""

from __future__ import annotations

from collections.abc import Mapping

from reproduce.cutlass import census, headers
from reproduce.cutlass.configurations import Storage
from reproduce.cutlass.errors import CutlassError
from reproduce.results import MISSING, Record
from reproduce.step import Context, FailedError, Measurement, Step
from reproduce.tables import DIFFERS, EQUAL, MEASURED, SHOWN, Cell, Column, Row, Scalar, Table


def measurements(context: Context) -> list[Measurement]:
    return [Measurement("census", _census, seconds=3.0)]


def _census(context: Context) -> dict[str, Scalar]:
    try:
        found = headers.find(context.build / "cutlass")
        taken = census.take(found)
    except CutlassError as error:
        raise FailedError(str(error)) from None
    values: dict[str, Scalar] = {"headers": str(found), "summary": taken.summary(), "files": len(taken.kernels)}
    values["pinned"] = found.version == headers.PINNED_VERSION
    for storage in Storage:
        for persistent in (False, True):
            kind = f"{storage.value}_{'persistent' if persistent else 'nonpersistent'}"
            values[kind] = taken.count(storage, persistent=persistent)
    for kernel in taken.kernels:
        values[f"kernel.{kernel.file}"] = f"{kernel.architecture} {kernel.scheduler_loops} {kernel.storage.value}"
    return values


def tables(records: Mapping[str, Record], context: Context) -> tuple[Table, ...]:
    record = records.get("census", MISSING)
    kernels = _kernels(record)
    return (_summary(record, context), *([kernels] if kernels.rows else []))


def _summary(record: Record, context: Context) -> Table:
    paper = context.claims["table2_cutlass"]["checks"]["paper_census"]
    # The paper counts the pinned release; another one has kernels of its own.
    judged = None if record.values.get("pinned") else SHOWN
    columns = (
        Column("files", "kernels"),
        Column("union_nonpersistent", "union, non-persistent"),
        Column("struct_persistent", "struct, persistent"),
        Column("exceptions", "others"),
    )
    cells = {
        "files": record.cell("files", paper["warp_specialized_files"], judged),
        "union_nonpersistent": record.cell("union_nonpersistent", paper["union_nonpersistent"], judged),
        "struct_persistent": record.cell("struct_persistent", paper["struct_persistent"], judged),
    }
    others = [record.values.get(kind) for kind in ("union_persistent", "struct_nonpersistent")]
    if record.status == MEASURED:
        exceptions = sum(int(str(count)) for count in others)
        cells["exceptions"] = Cell(exceptions, paper=0, verdict=judged or (EQUAL if exceptions == 0 else DIFFERS))
    else:
        cells["exceptions"] = record.cell("exceptions")
    row = Row("all", "gemm/kernel/*warpspecialized*", cells, "21 = 2 + 19")
    notes = (str(record.values["headers"]), str(record.values["summary"])) if record.status == MEASURED else ()
    return Table("census", "Census of CUTLASS' warp-specialized kernels", columns, (row,), notes)


def _kernels(record: Record) -> Table:
    columns = (
        Column("architecture", "architecture"),
        Column("scheduler_loops", "scheduler loops"),
        Column("persistent", "persistent"),
        Column("storage", "tensor storage"),
    )
    rows = []
    for key, value in record.values.items():
        if key.startswith("kernel."):
            architecture, loops, storage = str(value).split()
            cells = {
                "architecture": Cell(architecture),
                "scheduler_loops": Cell(int(loops)),
                "persistent": Cell(int(loops) > 0),
                "storage": Cell(storage),
            }
            file = key.removeprefix("kernel.")
            rows.append(Row(file.removesuffix(".hpp"), file, cells))
    return Table("kernels", "Every kernel", columns, tuple(rows))


STEP = Step(
    name="census",
    title="Census of CUTLASS' kernels: union or struct, by kind of scheduler",
    minutes=0.1,
    claims=("table2_cutlass",),
    measurements=measurements,
    tables=tables,
)
