"""Stress on the GPU, a part of ``soundness``: every kernel with random delays and NaN over what is dead, 100 seeds.

The output of every launch must have the bits of the plain build without overlap. Builds that are wrong on purpose must
show it: buffers on each other that the analysis keeps apart, or a wait left out (``croqtile/stress.py``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reproduce import programs, workloads
from reproduce.machine import Need
from reproduce.results import MISSING, Record
from reproduce.step import Context, FailedError, Measurement, NoRunError, NotMeasuredError
from reproduce.steps.builds import program
from reproduce.steps.sums import sum_row
from reproduce.tables import DIFFERS, EQUAL, MEASURED, Cell, Column, Row, Scalar, Table

SEEDS = 100
NEEDS = frozenset({Need.NVCC, Need.GPU})
LIMIT_S = 30.0  # of all seeds of one build; they take a few seconds unless one hangs
_RESULT = re.compile(
    r"^stress: (\d+) seeds, (\d+) differ, plain (equal|differs), ([\d.]+) ms undisturbed, ([\d.]+) ms slowest", re.M
)

_CONV = ["--batch", "16", "--height", "31", "--width", "30", "--channels", "128", "--filters", "120"]
# Two to four tiles per SM with partial ones among them, and several times round every ring.
_ARGUMENTS: Mapping[str, list[str]] = {
    "conv2d_fprop_ws_1p1c": _CONV,
    "fa_1p1c_2s": workloads.attention(2, 8, 2000),
    "fa_3s": workloads.attention(2, 8, 2000),
    "fa_tuned_1p2c": workloads.attention(2, 8, 2000),
    "fa_tuned_1p2c_nobarrier": workloads.attention(2, 8, 2000),
    "matmul_e4m3_dyn_sm90_warpspec_1p1c": workloads.gemm_shape(2000, 2008, 2032),
    "matmul_f16_dyn_sm90_warpspec_1p1c_64x128_3s": workloads.gemm_shape(2000, 2008, 1016),
    "matmul_f16_dyn_sm90_warpspec_1p1c_64x128_4s": workloads.gemm_shape(2000, 2008, 1016),
    "matmul_f16_dyn_sm90_warpspec_1p2c": workloads.gemm_shape(2000, 2008, 1016),
    "matmul_f16_dyn_sm90_warpspec_1p3c": workloads.gemm_shape(2000, 2008, 1016),
    "matmul_f16_dyn_sm90_warpspec_1p3c_nobarrier": workloads.gemm_shape(2000, 2008, 1016),
    "stress_persistent": workloads.gemm_shape(4000, 2008, 1016),
}
_checksums: dict[tuple[Path, int], str] = {}  # of plain programs that this process has run, by executable and time
_WITHOUT_BASE = ("fa_3s",)  # does not fit a block without overlap


@dataclass(frozen=True)
class Wrong:
    """A build that is wrong on purpose: ``options`` of the compiler, and in words what they do. With ``define`` the
    program itself lacks what makes the overlap right."""

    kernel: str
    options: tuple[str, ...]
    what: str
    define: str = ""

    @property
    def defines(self) -> tuple[str, ...]:
        return (self.define,) if self.define else ()

    def key(self, seeds: int) -> str:
        return f"wrong.{seeds}.{self.kernel}.{'.'.join(self.options).replace('--unsound-', '').replace(',', '-')}"


def _overlap(kernel: str, a: str, b: str, why: str) -> Wrong:
    return Wrong(kernel, ("--unsound-overlap", f"{a},{b}"), f"{a} on {b}: {why}")


def _no_wait(kernel: str, event: str, why: str) -> Wrong:
    return Wrong(kernel, ("--unsound-no-wait", event), f"no wait for {event}: {why}")


_RINGS = "stages of both operands"
_EPILOGUE = "epilogue tile on stages that the other consumers read"
WRONG = (
    _overlap("conv2d_fprop_ws_1p1c", "act_s", "flt_s", _RINGS),
    _overlap("fa_1p1c_2s", "q_s", "k_s", "queries, read in every iteration, on keys"),
    _overlap("fa_1p1c_2s", "k_s", "v_s", "stages of keys and values"),
    _overlap("fa_3s", "q_s", "v_s", "queries, read in every iteration, on values"),
    _overlap("fa_tuned_1p2c", "q_s", "k_s", "queries, read in every iteration, on keys"),
    _overlap("fa_tuned_1p2c", "k_s", "v_s", "stages of keys and values"),
    _overlap("fa_tuned_1p2c_nobarrier", "o_s", "v_s", "output on values that the other consumer reads"),
    _overlap("fa_tuned_1p2c_nobarrier", "o_s", "k_s", "output on keys that the other consumer reads"),
    _overlap("matmul_e4m3_dyn_sm90_warpspec_1p1c", "lhs_s", "rhs_s", _RINGS),
    _overlap("matmul_f16_dyn_sm90_warpspec_1p1c_64x128_3s", "lhs_s", "rhs_s", _RINGS),
    _overlap("matmul_f16_dyn_sm90_warpspec_1p1c_64x128_4s", "lhs_s", "rhs_s", _RINGS),
    _overlap("matmul_f16_dyn_sm90_warpspec_1p2c", "lhs_s", "rhs_s", _RINGS),
    _overlap("matmul_f16_dyn_sm90_warpspec_1p3c", "lhs_s", "rhs_s", _RINGS),
    _overlap("matmul_f16_dyn_sm90_warpspec_1p3c_nobarrier", "out_s", "rhs_s", _EPILOGUE),
    Wrong(
        "stress_persistent",
        ("--unsound-overlap", "out_s,lhs_s"),
        "out_s on lhs_s without an event: the next tile lands while the result is read",
        "NO_EVENT",
    ),
    _no_wait("matmul_f16_dyn_sm90_warpspec_1p2c", "full", "operands are read before they have landed"),
    _no_wait("fa_tuned_1p2c", "v_full", "values are read before they have landed"),
)


def _modes(kernel: str) -> tuple[str, ...]:
    return ("sala",) if kernel in _WITHOUT_BASE else ("base", "sala")


def measurements(seeds: int = SEEDS) -> list[Measurement]:
    """The builds beside each other, then one run after another."""
    found: list[Measurement] = []

    def build(kernel: str, mode: str, options: tuple[str, ...], defines: tuple[str, ...] = ()) -> None:
        run = partial(_build, kernel=kernel, mode=mode, options=options, defines=defines)
        name = ".".join(("build", kernel, mode, *options)).replace("--", "").replace(",", "-")
        found.append(Measurement(name, run, needs=NEEDS, seconds=12.0, parallel=True))

    for kernel in _ARGUMENTS:
        build(kernel, _modes(kernel)[0], ())
        for mode in _modes(kernel):
            build(kernel, mode, ("--stress",))
    for wrong in WRONG:
        build(wrong.kernel, "sala", ("--stress", *wrong.options), wrong.defines)
    for kernel in _ARGUMENTS:
        for mode in _modes(kernel):
            run = partial(_stress, kernel=kernel, mode=mode, seeds=seeds)
            found.append(Measurement(_key(kernel, mode, seeds), run, needs=NEEDS, seconds=3.0))
    for wrong in WRONG:
        found.append(
            Measurement(wrong.key(seeds), partial(_caught, wrong=wrong, seeds=seeds), needs=NEEDS, seconds=3.0)
        )
    return found


def _key(kernel: str, mode: str, seeds: int) -> str:
    return f"stress.{seeds}.{kernel}.{mode}"


def _build(
    context: Context, *, kernel: str, mode: str, options: tuple[str, ...], defines: tuple[str, ...]
) -> dict[str, Scalar]:
    if options:
        _needs_own_compiler(context)
    key = f"build.{kernel}.{mode}{''.join(options)}"
    built = programs.build(context, kernel, sala=mode == "sala", key=key, options=options, defines=defines)
    return {"registers": built.registers, "spills": built.spills, "compile_s": built.compile_s}


def _needs_own_compiler(context: Context) -> None:
    if not context.choreo.own:
        raise NotMeasuredError("only this project's compiler makes builds for stress tests: unset CHOREO")


def _expected(context: Context, kernel: str) -> str:
    """Checksum of the plain build without overlap, which checks its output against references, too. Run once."""
    key = f"plain.{kernel}"
    plain = program(context, kernel, _modes(kernel)[0], key)
    state = plain.executable, plain.executable.stat().st_mtime_ns
    if state not in _checksums:
        arguments = _ARGUMENTS[kernel]
        values = programs.run(context, plain, arguments, timeout_s=LIMIT_S, key=key, CHOREO_DISABLE_TIMING="1")
        if not values["checksum"]:
            raise FailedError("the plain build printed no checksum")
        _checksums[state] = str(values["checksum"])
    return _checksums[state]


def _run(
    context: Context,
    kernel: str,
    mode: str,
    seeds: int,
    key: str,
    options: tuple[str, ...] = (),
    defines: tuple[str, ...] = (),
) -> dict[str, Scalar] | None:
    """All seeds on one build, compared with the plain build; None if it hangs. Raises FailedError if it ends early."""
    _needs_own_compiler(context)
    stress = ("--stress", *options)
    built = programs.build(context, kernel, sala=mode == "sala", key=key, options=stress, defines=defines)
    finished = context.run(
        [built.executable, *_ARGUMENTS[kernel]],
        timeout_s=LIMIT_S,
        log=key,
        CHOREO_STRESS_SEEDS=str(seeds),
        CHOREO_STRESS_EXPECTED=_expected(context, kernel),
        CHOREO_SKIP_VERIFY="1",
        CHOREO_DISABLE_TIMING="1",
    )
    if finished.timed_out:
        return None
    found = _RESULT.search(finished.stdout)
    if found is None:
        raise FailedError(f"exit status {finished.returncode}: {finished.last_line()}")
    undisturbed, slowest = float(found[4]), float(found[5])
    return {
        "seeds": int(found[1]),
        "differing": int(found[2]),
        "plain": found[3],
        "slowdown": round(slowest / max(undisturbed, 1e-3), 1),
    }


def _stress(context: Context, *, kernel: str, mode: str, seeds: int) -> dict[str, Scalar]:
    values = _run(context, kernel, mode, seeds, _key(kernel, mode, seeds))
    if values is None:
        raise NoRunError(f"no end after {LIMIT_S:.0f} s (ended)")
    if values["plain"] == "differs":
        raise FailedError("without a seed the output is not that of the plain build")
    return {**values, "hung": 0}


def _caught(context: Context, *, wrong: Wrong, seeds: int) -> dict[str, Scalar]:
    """What a wrong build does; a hang or a fault of the GPU shows the mistake as well as another output does."""
    try:
        values = _run(context, wrong.kernel, "sala", seeds, wrong.key(seeds), wrong.options, wrong.defines)
    except FailedError as error:
        if "CUDA:" not in str(error):
            raise
        return {"caught": True, "showed": f"fault: {error}", "undisturbed": "-"}
    if values is None:
        return {"caught": True, "showed": "hung", "undisturbed": "-"}
    return {
        "caught": values["differing"] != 0,
        "showed": f"{values['differing']} of {values['seeds']}",
        "undisturbed": "yes" if values["plain"] == "differs" else "no",
    }


# ---------------------------------------------------------------------------------------------------------------


def tables(records: Mapping[str, Record], seeds: int = SEEDS) -> tuple[Table, ...]:
    return (_stress_table(records, seeds), _wrong_table(records, seeds))


def summary_rows(records: Mapping[str, Record], seeds: int = SEEDS) -> tuple[Row, Row]:
    """Rows of the summary of ``soundness``: launches with another output, and wrong builds that nothing showed."""
    keys = [_key(kernel, mode, seeds) for kernel in _ARGUMENTS for mode in _modes(kernel)]
    label = "launches of compiled kernels under stress with another output"
    sound = sum_row("stress", label, [records.get(key, MISSING) for key in keys], "{seeds} launches", "differing")
    wrong = [records.get(wrong.key(seeds), MISSING) for wrong in WRONG]
    missed = [_missed(record) for record in wrong]
    label = "builds that are wrong on purpose and not caught"
    return sound, sum_row("wrong", label, missed, "{builds} builds", "missed")


def _missed(record: Record) -> Record:
    if record.status != MEASURED:
        return record
    return Record(MEASURED, {"builds": 1, "missed": 0 if record.values["caught"] else 1})


def _stress_table(records: Mapping[str, Record], seeds: int) -> Table:
    columns = (
        Column("seeds", "seeds", kind="text"),
        Column("differing", "differing", kind="text"),
        Column("hung", "hung", kind="text"),
        Column("slowdown", "max slowdown", "x", kind="text"),
    )
    rows = []
    for kernel in _ARGUMENTS:
        for mode in _modes(kernel):
            record = records.get(_key(kernel, mode, seeds), MISSING)
            cells = {column.key: record.cell(column.key) for column in columns}
            for key in ("differing", "hung"):
                cells[key] = record.cell(key, paper=0) if record.status == MEASURED else record.cell(key)
            rows.append(Row(f"{kernel}.{mode}", f"{kernel}, {mode}", cells))
    notes = (
        "Random delays in every role, shared memory full of NaN at the start, NaN over what the analysis calls dead.",
        "differing: seeds whose whole output has other bits than the plain build without overlap.",
    )
    return Table("stress", "Stress on the GPU", columns, tuple(rows), notes)


def _wrong_table(records: Mapping[str, Record], seeds: int) -> Table:
    columns = (
        Column("showed", "shown by", kind="text"),
        Column("undisturbed", "also undisturbed", kind="text"),
    )
    rows, caught, measured = [], 0, 0
    for wrong in WRONG:
        record = records.get(wrong.key(seeds), MISSING)
        cells = {column.key: record.cell(column.key) for column in columns}
        if record.status == MEASURED:
            good = bool(record.values["caught"])
            measured, caught = measured + 1, caught + good
            cells["showed"] = Cell(record.values["showed"], verdict=EQUAL if good else DIFFERS, log=record.log)
        rows.append(Row(wrong.key(seeds), f"{wrong.kernel}: {wrong.what}", cells))
    notes = (
        f"Caught: {caught} of {measured}.",
        "also undisturbed: the output is wrong without delays and poison, too.",
    )
    return Table("wrong", "Builds that are wrong on purpose", columns, tuple(rows), notes)
