from __future__ import annotations

import re

import pytest

from reproduce import claims, kernels
from reproduce.steps import STEPS


@pytest.mark.parametrize("item", claims.load()["figure2"]["items"], ids=lambda item: item["name"])
def test_bytes_and_percent_of_figure_2_are_what_the_paper_prints(item: dict[str, object]) -> None:
    base, sala, percent = re.fullmatch(r"(\d+)\*?->(\d+) \(-(\d+)%\)", str(item["paper"])).groups()  # type: ignore[union-attr]
    assert (item["paper_base"], item["paper_sala"]) == (int(base) * 1024, int(sala) * 1024)
    assert claims.saving_percent(int(base), int(sala)) == int(percent)


@pytest.mark.parametrize("row", claims.load()["table2_xcomp"]["rows"], ids=lambda row: row["row"])
def test_table_2_percentages_come_from_whole_kilobytes(row: dict[str, str]) -> None:
    found = re.fullmatch(r"(\d+)\*?->(\d+)(?: \((\d+)%\))?", row["paper"])
    assert found and round(float(row["paper_sala"])) == int(found[2])
    if row["paper_base"] is not None:
        assert round(float(row["paper_base"])) == int(found[1])
        assert claims.saving_percent(int(found[1]), int(found[2])) == int(found[3])


def test_ncu_digits() -> None:
    assert claims.ncu_digits(74752, "74.8") == "74.8"
    assert claims.ncu_digits(229504, "229.50") == "229.50"


def test_every_claim_belongs_to_a_step_and_every_kernel_exists() -> None:
    claimed = {name for step in STEPS.values() for name in step.claims}
    assert claimed == set(claims.load()) - {"paper"}
    for section in claims.load().values():
        for row in [each for key in ("items", "rows", "shared_memory", "safety") for each in section.get(key, [])]:
            if "kernel" in row:
                assert kernels.source(row["kernel"]).exists(), row["kernel"]
            if "pattern" in row:
                assert kernels.pattern(row["pattern"]).exists(), row["pattern"]
