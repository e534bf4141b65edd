"""Evidence of soundness: the engine's answers against a simulator, which needs no GPU (``--only simulator``), the code
that nvcc makes against the analysed programs (``--only translation``), and the compiled kernels under stress, which
need one (``--only stress``). No figure of the paper."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from reproduce import ROOT, process
from reproduce.results import MISSING, Record
from reproduce.step import Context, FailedError, Measurement, NoRunError, Step
from reproduce.steps import stress, translation
from reproduce.steps.sums import sum_row
from reproduce.tables import DIFFERS, EQUAL, MEASURED, SHOWN, Cell, Column, Row, Scalar, Table

PROGRAMS = 2000
LIMIT_S = 1800.0
# Mutants of most programs take seconds; these have many, and long executions (measured with 16 at once).
_MUTANTS_S = {
    "example/fa3_persistent": 60.0,
    "kernel/fa_3s": 50.0,
    "kernel/fa_tuned_1p2c": 30.0,
    "kernel/fa_tuned_1p2c_nobarrier": 30.0,
    "example/cutlass_cooperative_128x128_4s": 20.0,
}
_GROUPS = ("simulator", "translation", "stress")
_CLAIMS = ("overlap", "placement", "deadlock", "overrun", "race", "unawaited")
_FATES = ("arrivals", "deadlock", "overrun", "race", "unawaited", "refused", "equivalent", "open", "survived")


def _subjects() -> list[str]:
    from reproduce.soundness import subjects  # imports compiler and engine, which no other step needs in its process

    return [name for name, _ in subjects()]


def _groups(context: Context) -> tuple[str, ...]:
    only = context.options.only or _GROUPS
    for name in only:
        if name not in _GROUPS:
            raise ValueError(f"soundness has no part `{name}`: it has {', '.join(_GROUPS)}")
    return only


def measurements(context: Context) -> list[Measurement]:
    groups = _groups(context)
    found = _simulator() if "simulator" in groups else []
    found += translation.measurements(_run) if "translation" in groups else []
    return found + stress.measurements(context.options.seeds or stress.SEEDS) if "stress" in groups else found


def _simulator() -> list[Measurement]:
    found = [
        Measurement("programs", _programs, seconds=90.0),
        Measurement("rules", _rules, seconds=60.0, parallel=True),
    ]
    for name in _subjects():
        found.append(Measurement(f"executions.{name}", partial(_executions, name=name), seconds=3.0, parallel=True))
        seconds = _MUTANTS_S.get(name, 5.0)
        found.append(Measurement(f"mutants.{name}", partial(_mutants, name=name), seconds=seconds, parallel=True))
        found.append(Measurement(f"bytes.{name}", partial(_bytes, name=name), seconds=1.0, parallel=True))
    return found


def _run(context: Context, key: str, *arguments: str) -> Any:
    """``python -m reproduce.soundness ARGUMENTS --json``; a broken claim is a result, and no failure of the run."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "reproduce.soundness", *arguments, "--json"]
    finished = process.run(command, timeout_s=LIMIT_S, cwd=ROOT, env={"PYTHONPATH": path}, log=context.log(key))
    if finished.timed_out:
        raise NoRunError(f"it did not end within {finished.duration_s:.0f} s (ended)")
    try:
        return json.loads(finished.stdout)
    except ValueError:
        raise FailedError(finished.last_line() or "no output") from None


def _programs(context: Context) -> dict[str, Scalar]:
    data = _run(context, "programs", "programs", "--programs", str(PROGRAMS))
    broken = [item["claim"] for item in data["broken"]]
    values: dict[str, Scalar] = {name: int(number) for name, number in data["totals"].items()}
    values["share"] = round(100 * float(data["witness_share"]), 2)
    values |= {f"broken_{claim}": broken.count(claim) for claim in _CLAIMS}
    return values


def _rules(context: Context) -> dict[str, Scalar]:
    data = _run(context, "rules", "peers", "--only", _subjects()[0])
    values: dict[str, Scalar] = {"programs": data["programs"]}
    for number, (name, found) in enumerate(data["rules"].items()):
        values[f"rule{number}"] = name
        values |= {f"rule{number}.{key}": count for key, count in found.items()}
    return values


def _executions(context: Context, *, name: str) -> dict[str, Scalar]:
    return dict(_run(context, f"executions.{name}", "exhaustive", "--only", name)[name])


def _mutants(context: Context, *, name: str) -> dict[str, Scalar]:
    data = _run(context, f"mutants.{name}", "mutants", "--only", name)[name]
    return {"mutants": data["mutants"], **{fate: data["fates"].get(fate, 0) for fate in _FATES}}


def _bytes(context: Context, *, name: str) -> dict[str, Scalar]:
    return dict(_run(context, f"bytes.{name}", "peers", "--peer-programs", "0", "--only", name)["costs"][name])


# ---------------------------------------------------------------------------------------------------------------


def tables(records: Mapping[str, Record], context: Context) -> tuple[Table, ...]:
    found: tuple[Table, ...] = ()
    if "simulator" in _groups(context):
        names = _subjects()
        found += (_summary(records, names, context), _mutant_table(records, names))
        found += (_rule_table(records), _byte_table(records, names))
    if "translation" in _groups(context):
        found += translation.tables(records)
    return (
        found + stress.tables(records, context.options.seeds or stress.SEEDS) if "stress" in _groups(context) else found
    )


def _summary(records: Mapping[str, Record], names: list[str], context: Context) -> Table:
    """One row for each claim: how much was tried, and how often it was found broken."""
    columns = (Column("tried", "tried", kind="text"), Column("broken", "broken"))
    programs = records.get("programs", MISSING)
    rows = []
    for claim, text in (
        ("overlap", "a pair that may overlap is never seen to break"),
        ("placement", "nothing breaks in the placement"),
        ("deadlock", "deadlocks that are seen were reported"),
        ("overrun", "overruns that are seen were reported"),
        ("race", "races that are seen were reported"),
        ("unawaited", "copies left behind that are seen were reported"),
    ):
        tried = Cell(_tried(programs), programs.status, programs.reason, log=programs.log)
        rows.append(Row(claim, text, {"tried": tried, "broken": _zero(programs, f"broken_{claim}")}))
    share = programs.cell("share")
    if programs.status == MEASURED and isinstance(share.value, (int, float)):
        share = Cell(share.value, verdict=EQUAL if share.value >= 95 else DIFFERS, log=programs.log)
    rows.append(Row("witness", "refusals that an execution shows, % (at least 95)", {"broken": share}))
    covered = [records.get(f"executions.{name}", MISSING) for name in names]
    label = "kernels and examples under all schedules"
    rows.append(sum_row("executions", label, covered, "{transitions} transitions", "findings"))
    mutated = [records.get(f"mutants.{name}", MISSING) for name in names]
    label = "programs with one thing wrong that survive"
    rows.append(sum_row("mutants", label, mutated, "{mutants} mutants", "survived"))
    if "translation" in _groups(context):
        rows += translation.summary_rows(records)
    if "stress" in _groups(context):
        rows += stress.summary_rows(records, context.options.seeds or stress.SEEDS)
    return Table("soundness", "The evidence of soundness", columns, tuple(rows))


def _tried(record: Record) -> str | None:
    if record.status != MEASURED:
        return None
    return f"{record.values['programs']} programs, {record.values['executions']} executions"


def _zero(record: Record, name: str) -> Cell:
    cell = record.cell(name)
    return (
        Cell(cell.value, verdict=EQUAL if cell.value == 0 else DIFFERS, log=cell.log)
        if cell.value is not None
        else cell
    )


def _mutant_table(records: Mapping[str, Record], names: list[str]) -> Table:
    columns = (Column("mutants", "mutants"), *(Column(fate, fate) for fate in _FATES))
    rows = []
    for name in names:
        record = records.get(f"mutants.{name}", MISSING)
        cells = {column.key: record.cell(column.key, verdict=SHOWN) for column in columns}
        cells["survived"] = _zero(record, "survived")
        rows.append(Row(name, name, cells))
    note = "arrivals … race: reported as such; equivalent: all executions covered, nothing observed"
    return Table("mutants", "Kernels and examples with one thing wrong", columns, tuple(rows), (note,))


def _rule_table(records: Mapping[str, Record]) -> Table:
    columns = (
        Column("accepted", "pairs accepted"),
        Column("proved", "proved here"),
        Column("wrong", "shown wrong"),
    )
    record = records.get("rules", MISSING)
    rows = []
    for number in range(2):
        label = str(record.values.get(f"rule{number}", f"rule {number + 1}"))
        cells = {column.key: record.cell(f"rule{number}.{column.key}", verdict=SHOWN) for column in columns}
        rows.append(Row(f"rule{number}", label, cells))
    return Table("rules", "What other rules accept, on random programs", columns, tuple(rows))


def _byte_table(records: Mapping[str, Record], names: list[str]) -> Table:
    columns = (
        Column("apart", "apart", "B"),
        Column("within_roles", "no reuse across roles", "B"),
        Column("analysed", "this analysis", "B"),
    )
    rows = []
    for name in names:
        record = records.get(f"bytes.{name}", MISSING)
        rows.append(Row(name, name, {c.key: record.cell(c.key, verdict=SHOWN) for c in columns}))
    return Table("bytes", "Shared memory without reuse across roles", columns, tuple(rows))


STEP = Step(
    name="soundness",
    title="Evidence of soundness: answers against a simulator, mutants, other rules, compiled code, stress on the GPU",
    minutes=4.0,
    claims=(),
    measurements=measurements,
    tables=tables,
    optional=stress.NEEDS | translation.NEEDS,
)
