"""Shared storage from the compiler: exact, and the same as the paper's to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from croqtile import toolchain
from reproduce import ROOT
from reproduce.cutlass import compile, configurations
from reproduce.cutlass.compile import Compiler, Sizes, macros, read_sizes
from reproduce.cutlass.configurations import ALL, HALF_CD, NON_PERSISTENT, TABLE2, Storage
from reproduce.cutlass.errors import CutlassError
from reproduce.cutlass.headers import Headers

PTX = """
.visible .func foo() { }
.global .align 4 .u32 a_total = 99328;
.global .align 4 .u32 a_mainloop = 98304;
.global .align 4 .u32 a_epilogue = 17408;
.global .align 4 .u32 a_tensors = 98304;
.global .align 4 .u32 a_union = 1;
.global .align 4 .u32 cutlass_version = 40500;
"""


def test_sizes_are_read_from_ptx() -> None:
    assert read_sizes(PTX) == {"a": Sizes(99328, 98304, 17408, 98304, True)}


def test_a_constant_without_an_initial_value_is_zero() -> None:
    assert not read_sizes(PTX.replace("a_union = 1", "a_union"))["a"].union


def test_a_missing_constant_is_an_error() -> None:
    with pytest.raises(CutlassError, match="no constant for a: tensors"):
        read_sizes("\n".join(line for line in PTX.splitlines() if "a_tensors" not in line))
    with pytest.raises(CutlassError, match="printed no constants"):
        read_sizes("")


def test_macros_select_one_kernel() -> None:
    assert macros(HALF_CD, Storage.UNION) == [
        "-DSCHEDULE=Cooperative",
        "-DTILE_M=128",
        "-DTILE_N=128",
        "-DSTAGES=3",
        "-DOUTPUT=HalfCD",
        "-DEXPECT_UNION=1",
        "-DKERNEL=coop_128x128_3s_half",
    ]


@pytest.mark.nvcc
@pytest.mark.parametrize("storage", list(Storage))
def test_shared_storage_is_the_papers(storage: Storage, cutlass_headers: Headers) -> None:
    sizes = Compiler(toolchain.find(), cutlass_headers, ROOT / "build" / "steps" / "cutlass").sizes(storage)
    assert set(sizes) == {configuration.name for configuration in ALL}
    expected = {Storage.STRUCT: [100352, 133120, 165888, 133120], Storage.UNION: [66560, 99328, 132096, 99328]}
    assert [sizes[configuration.name].total for configuration in TABLE2] == expected[storage]
    for configuration in TABLE2:
        found = sizes[configuration.name]
        assert found.epilogue == 33792
        assert found.union is (storage is Storage.UNION)
        together = max(found.mainloop, found.epilogue) if found.union else found.mainloop + found.epilogue
        assert found.tensors == together
    assert sizes[NON_PERSISTENT.name] == Sizes(99328, 98304, 17408, 98304, union=True)


@pytest.mark.nvcc
def test_a_compiler_error_names_the_source_and_the_headers(tmp_path: Path) -> None:
    headers = Headers(tmp_path, "9.9.9", "test")
    with pytest.raises(CutlassError, match=r"sizes\.cu with CUTLASS 9\.9\.9 \(test\): .*cutlass/cutlass\.h"):
        Compiler(toolchain.find(), headers, tmp_path / "build").sizes(Storage.STRUCT)


@pytest.mark.parametrize(("gib", "together"), [(1, 1), (14, 2), (128, 21)])
def test_as_many_compilations_as_fit_into_memory(gib: int, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile.os, "sysconf", {"SC_PHYS_PAGES": gib << 18, "SC_PAGE_SIZE": 4096}.__getitem__)
    slots = compile._memory.__wrapped__()
    taken = [slots.acquire(blocking=False) for _ in range(together + 1)]
    assert taken == [True] * together + [False]


def test_configuration_names_are_unique() -> None:
    assert len({configuration.name for configuration in configurations.ALL}) == len(configurations.ALL)
