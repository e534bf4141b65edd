"""The one-line use: a decorated kernel compiles with the overlap. No GPU: compilations are asked for directly."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton", reason="needs triton==3.6.0")

from reproduce.tawa import sources
from reproduce.tawa.rows import SHARED_LIMIT, Kernel
from triton_overlap import OverlapError, RefusedError, compile_overlapped, overlap, plan_of, repair
from triton_overlap.__main__ import main
from triton_overlap.meeting import check_warps_meet

GEMM, PERSISTENT, CONTROL = Kernel("gemm", (128, 128), 2), Kernel("persistent", (128, 128), 3), "control"


def compile_with(kernel: Kernel, mode: str = "stock", **settings: Any) -> Any:
    return compile_overlapped(sources.source(kernel, mode), sources.TARGET, sources.options(kernel), **settings)


def test_compilation_has_what_was_planned() -> None:
    made = compile_with(GEMM)
    plan = plan_of(made)
    assert plan is not None and made.metadata.shared == plan.final.total == 65684
    assert check_warps_meet(made.asm["ptx"]) > 0
    assert plan_of(sources.build(GEMM, "stock")) is None


class _Binder:
    """Stands for a launch: what ``JITFunction.create_binder`` needs of the driver is not there without a GPU."""


def test_the_decorator_replaces_the_compiler_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    original = sources.function(GEMM)
    kernel = type(original)(original.fn)
    monkeypatch.setattr(type(kernel), "create_binder", lambda self: _Binder())
    assert overlap(kernel) is kernel
    assert isinstance(kernel.device_caches["a device"], _Binder)
    made = kernel.compile(sources.source(GEMM), target=sources.TARGET, options=sources.options(GEMM))
    assert made.metadata.shared == 65684
    repaired = repair(remedy="invalidate")(type(original)(original.fn))
    assert repaired.device_caches["a device"] is not None


def test_only_kernels_are_decorated() -> None:
    with pytest.raises(TypeError, match=r"a function of triton.jit or gluon.jit, not function"):
        overlap(lambda: None)
    with pytest.raises(ValueError, match="'raise' or 'stock'"):
        overlap(on_refusal="ignore")


def test_a_refusal_is_raised_or_gives_the_stock_kernel() -> None:
    with pytest.raises(RefusedError, match="no staging tile"):
        compile_with(GEMM, CONTROL)
    with pytest.warns(UserWarning, match="without overlap: .*no staging tile"):
        made = compile_with(GEMM, CONTROL, on_refusal="stock")
    assert made.metadata.shared == 65684 and plan_of(made) is None


def test_the_guard_is_left_out_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALA_NO_BARRIER", "1")
    with pytest.warns(UserWarning, match="results may be wrong"):
        plan = plan_of(compile_with(PERSISTENT))
    assert plan is not None and plan.unsafe
    monkeypatch.setenv("SALA_NO_BARRIER", "0")
    plan = plan_of(compile_with(PERSISTENT))
    assert plan is not None and not plan.unsafe


def test_other_versions_and_overrides_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {**sources.options(GEMM), "ir_override": "mine.ttgir"}
    with pytest.raises(RefusedError, match="ir_override of its own"):
        compile_overlapped(sources.source(GEMM), sources.TARGET, options)
    monkeypatch.setattr("triton.__version__", "3.7.1")
    with pytest.raises(OverlapError, match=r"this is Triton 3.7.1; the overlap is checked for 3.6.0 only"):
        compile_with(GEMM)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "gemm.ttgir", tmp_path / "out.ttgir"
    path.write_text(sources.build(GEMM, "stock").asm["ttgir"])
    assert main([str(path), "-o", str(out)]) == 0
    assert capsys.readouterr().out.startswith("98340 -> 65684 bytes of shared memory\nstaging.")
    assert "memdesc_reinterpret" in out.read_text()
    assert main([str(out)]) == 1
    assert capsys.readouterr().out.startswith("refused: the specialized region has no staging tile")
    path.write_text(path.read_text().replace("{pendings = 0 : i32} : tensor", "{pendings = 1 : i32} : tensor"))
    assert main([str(path), "--explain"]) == 1
    explained = capsys.readouterr().out
    assert "An execution that shows it" in explained and "has not ended" in explained
    assert main([str(tmp_path / "missing")]) == 2
    path.write_text("this is no module")
    assert main([str(path)]) == 2


def test_the_reproducer_of_the_forgotten_mbarriers_is_such_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/triton_barrier_reuse.py runs on a GPU only; its kernel compiles without one, and without torch."""
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    path = Path(__file__).parents[2] / "docs" / "triton_barrier_reuse.py"
    spec = importlib.util.spec_from_file_location("triton_barrier_reuse", path)
    assert spec is not None and spec.loader is not None
    reproducer = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "triton_barrier_reuse", reproducer)
    spec.loader.exec_module(reproducer)
    like = sources.source(Kernel("auto", (128, 128), reproducer.STAGES))
    source = type(like)(reproducer.gemm, like.signature, like.constants, like.attrs)
    plan = plan_of(compile_overlapped(source, sources.TARGET, {"num_warps": 4, "num_stages": reproducer.STAGES}))
    assert plan is not None and plan.stock.total <= SHARED_LIMIT
    assert plan.stock_violations and not plan.final.violations()


def test_importing_needs_no_triton() -> None:
    """The steps ask what is there before they import Triton."""
    for name in ("triton_overlap", "reproduce.tawa.rows", "reproduce.steps.table2_tawa"):
        source = Path(str(importlib.import_module(name).__file__)).read_text()
        assert "\nimport triton" not in source and "\nfrom triton." not in source
    assert os.environ.get("SALA_NO_BARRIER") != "1"
