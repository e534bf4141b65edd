"""The CUTLASS tables: what counts as equal to the paper, and when engine and GPU disagree."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from reproduce.cutlass.compile import Sizes
from reproduce.cutlass.configurations import Storage
from reproduce.cutlass.run import read_outcome
from reproduce.results import Document, Record, not_measured
from reproduce.running import context_for, outcome
from reproduce.step import Context, Options
from reproduce.steps import table2_cutlass, table2_cutlass_tables
from reproduce.tables import DIFFERS, EQUAL, MEASURED, NOT_MEASURED, Row, Scalar, Table
from tests.reproduce.test_cutlass_run import PRINTED

NO_GPU = not_measured("no GPU")
UNION = "union.coop_128x128_2s"


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return context_for("table2", tmp_path, Options())


@pytest.fixture(scope="module")
def verdicts() -> Record:
    (tmp, options) = (Path(), Options())
    return Record(MEASURED, table2_cutlass._verdicts(context_for("table2", tmp, options)))


def sizes(struct: int = 100352, union: int = 66560) -> Record:
    values: dict[str, Scalar] = {"headers": "CUTLASS 4.5.0 (test)"}
    for name, mainloop in (("128x128_2s", 65536), ("128x128_3s", 98304), ("128x128_4s", 131072), ("128x256_2s", 98304)):
        for storage in Storage:
            total = mainloop + (34816 if storage is Storage.STRUCT else 1024)
            found = Sizes(total, mainloop, 33792, total - 1024, storage is Storage.UNION)
            values |= {f"{storage.value}.coop_{name}.{part}": value for part, value in asdict(found).items()}
    own = Sizes(99328, 98304, 17408, 98304, True)
    values |= {f"struct.nonpersistent_128x128_3s.{part}": value for part, value in asdict(own).items()}
    values |= {"struct.coop_128x128_2s.total": struct, "union.coop_128x128_2s.total": union}
    return Record(MEASURED, values)


def run(*, wrong: int, size: int = 2048, ctas: int = 132, checked: bool = True) -> Record:
    printed = PRINTED.replace("2113", str(wrong)).replace("2101234", str(wrong)).replace("ctas: 132", f"ctas: {ctas}")
    found = read_outcome(printed)
    tiles = found.tiles_per_cta
    return Record(MEASURED, {**asdict(found), "tiles_per_cta": tiles, "verdict": "refused", "checked": checked})


def by_id(tables: tuple[Table, ...], table: str, row: str) -> Row:
    (found,) = (each for each in tables if each.id == table)
    return next(each for each in found.rows if each.id == row)


def exit_status(tables: tuple[Table, ...]) -> int:
    return outcome(Document("table2", "", "", {}, {}, tables))


def test_without_a_gpu_the_bytes_are_judged_and_the_rest_says_so(context: Context, verdicts: Record) -> None:
    records = {"sizes": sizes(), "verdicts": verdicts, f"run.{UNION}.1024": NO_GPU}
    made = table2_cutlass_tables.tables(records, context)
    row = by_id(made, "cutlass", "coop_128x128_2s")
    assert [row.cells[key].value for key in ("struct_bytes", "union_bytes", "struct", "union", "saving")] == [
        100352,
        66560,
        "100.35",
        "66.56",
        34,
    ]
    assert row.cells["ncu_union"].status == NOT_MEASURED
    assert row.verdict == "equal, in part"
    cell = by_id(made, "cutlass_verdicts", UNION).cells["wrong_1024"]
    assert (cell.status, cell.reason) == (NOT_MEASURED, "no GPU")
    assert exit_status(made) == 0


def test_other_bytes_than_the_papers_differ(context: Context, verdicts: Record) -> None:
    made = table2_cutlass_tables.tables({"sizes": sizes(union=66688), "verdicts": verdicts}, context)
    assert by_id(made, "cutlass", "coop_128x128_2s").verdict == DIFFERS
    assert exit_status(made) == 1


def test_the_non_persistent_kernel(context: Context) -> None:
    runs = {"run.union.nonpersistent_128x128_3s.2048": run(wrong=0)}
    row = by_id(
        table2_cutlass_tables.tables({"sizes": sizes(), **runs}, context),
        "cutlass_nonpersistent",
        "nonpersistent_128x128_3s",
    )
    assert [row.cells[key].value for key in ("mainloop", "epilogue", "union", "separate")] == [
        96 * 1024,
        17 * 1024,
        97 * 1024,
        113 * 1024,
    ]
    assert row.cells["wrong"].verdict == EQUAL


@pytest.mark.parametrize(
    ("name", "ctas", "wrong", "verdict"),
    [
        (UNION, 256, 0, EQUAL),  # one tile per CTA: accepted, and right
        (UNION, 256, 1, DIFFERS),  # accepted, but wrong
        (UNION, 132, 2113, EQUAL),  # refused, and wrong
        (UNION, 132, 0, DIFFERS),  # refused, but right
        ("struct.coop_128x128_2s", 132, 0, EQUAL),
        ("struct.coop_128x128_2s", 132, 5, DIFFERS),
    ],
)
def test_engine_and_gpu_must_agree(
    context: Context, verdicts: Record, name: str, ctas: int, wrong: int, verdict: str
) -> None:
    records = {"verdicts": verdicts, f"run.{name}.2048": run(wrong=wrong, ctas=ctas)}
    made = table2_cutlass_tables.tables(records, context)
    assert by_id(made, "cutlass_verdicts", name).cells["wrong_2048"].verdict == verdict
    assert exit_status(made) == (1 if verdict == DIFFERS else 0)


def test_a_wrong_element_outside_the_sample_counts(context: Context, verdicts: Record) -> None:
    record = run(wrong=0, ctas=256)
    record.values["full_wrong"] = 1
    made = table2_cutlass_tables.tables({"verdicts": verdicts, f"run.{UNION}.2048": record}, context)
    assert by_id(made, "cutlass_verdicts", UNION).cells["wrong_2048"].verdict == DIFFERS


def test_a_refused_union_is_not_checked_unless_asked_for(context: Context, verdicts: Record) -> None:
    skipped = {"verdicts": verdicts, f"run.{UNION}.2048": run(wrong=0, checked=False)}
    cells = by_id(table2_cutlass_tables.tables(skipped, context), "cutlass_verdicts", UNION).cells
    assert (cells["engine_2048"].value, cells["wrong_2048"].value) == ("refused (2)", "NOT CHECKED")

    shown = {**skipped, f"race.{UNION}.2048": run(wrong=2113)}
    cells = by_id(table2_cutlass_tables.tables(shown, context), "cutlass_verdicts", UNION).cells
    assert cells["wrong_2048"].value == 2113


def test_the_half_kernel_is_shown_not_judged(context: Context, verdicts: Record) -> None:
    """Its race is in every schedule that the engine considers, but few executions show it."""
    name = "union.coop_128x128_3s_half"
    made = table2_cutlass_tables.tables({"verdicts": verdicts, f"race.{name}.1024": run(wrong=0, ctas=256)}, context)
    row = by_id(made, "cutlass_verdicts", name)
    assert row.cells["engine_1024"].value == "refused (1)"
    assert row.cells["wrong_1024"].verdict == "shown"


def test_every_run_is_listed(context: Context, verdicts: Record) -> None:
    made = table2_cutlass_tables.tables({"verdicts": verdicts, f"run.{UNION}.2048": run(wrong=7)}, context)
    row = by_id(made, "cutlass_runs", f"{UNION}.2048")
    assert row.cells["full_wrong"].value == 7
    assert row.cells["tiles_per_cta"].value == 2


def test_measurements_are_named_once_and_races_only_on_request(tmp_path: Path) -> None:
    keys = [item.key for item in table2_cutlass.measurements(context_for("table2", tmp_path, Options()))]
    assert len(set(keys)) == len(keys)
    assert not [key for key in keys if key.startswith("race.")]
    assert len([key for key in keys if key.startswith("run.")]) == 3 * 13
    asked = table2_cutlass.measurements(context_for("table2", tmp_path, Options(show_race=True)))
    assert f"race.{UNION}.2048" in {item.key for item in asked}
