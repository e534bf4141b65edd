"""A stand-in compiler with the published command line, so that the harness is tested without the real one or a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reproduce import ROOT, claims
from reproduce.choreo import Choreo
from reproduce.cutlass.errors import CutlassError
from reproduce.cutlass.headers import Headers, find
from reproduce.machine import Gpu, Machine
from reproduce.step import Context, Options

# Allocates what it is told to, and writes work scripts whose programs print what real ones print.
FAKE_CHOREO = '''\
#!{python}
import os, pathlib, stat, sys, time
arguments = sys.argv[1:]
source = pathlib.Path(next(word for word in arguments if word.endswith(".co"))).stem
mode = "base" if "--no-sala" in arguments else "sala"
sizes = {sizes!r}
with open({calls!r}, "a") as calls:
    calls.write(f"{{source}} {{mode}}\\n")
if source in {hang!r}:
    with open({calls!r} + ".hanging", "a") as hanging:
        hanging.write(f"{{os.getpid()}}\\n")
    time.sleep(60)
size = sizes[source, mode]
if size > 232448:
    sys.exit(f"kernels/{{source}}.co:1:1: error: shared memory OUT OF BOUND: needs {{size}} bytes; a block has 232448")
sys.stderr.write(f"cudaFuncAttributeMaxDynamicSharedMemorySize is set to `{{size}}`\\n")
out = arguments[arguments.index("-o") + 1]
if out == os.devnull:
    sys.exit()
program = f"""#!/bin/bash
echo 'checksum: 00000000000000aa'
{program}
echo 'time: 1.0000 ms, {{size / 1000}} TFLOPS (mean of 500 calls after 10)'
echo 'Test Passed'
"""
pathlib.Path(out).write_text(f"""
exe={{out}}.exe
launch=' choreo::launch::enqueue(site_, __choreo_device_f, grid_, 256, {{size + 1024}}, a);'
if [ "$1" = --compile-link ]; then
  : nvcc -o {{out}}.exe
  echo "ptxas info    : Compiling entry function '_Z17__choreo_device_f' for 'sm_90a'" >&2
  echo "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" >&2
  echo "ptxas info    : Used {registers} registers, used 1 barriers, 64 bytes smem" >&2
  cat > "$exe" <<'EOF'
{{program}}
EOF
  chmod +x "$exe"
else
  exec "$exe"
fi
""")
'''

PAPER_SIZES = {
    ("matmul_f16_dyn_sm90_warpspec_1p1c_64x128_4s", "base"): 114688,
    ("matmul_f16_dyn_sm90_warpspec_1p1c_64x128_4s", "sala"): 98304,
    ("matmul_f16_dyn_sm90_warpspec_1p1c_64x128_3s", "base"): 90112,
    ("matmul_f16_dyn_sm90_warpspec_1p1c_64x128_3s", "sala"): 73728,
    ("matmul_e4m3_dyn_sm90_warpspec_1p1c", "base"): 114688,
    ("matmul_e4m3_dyn_sm90_warpspec_1p1c", "sala"): 98304,
    ("matmul_f16_dyn_sm90_warpspec_1p2c", "base"): 131072,
    ("matmul_f16_dyn_sm90_warpspec_1p2c", "sala"): 98304,
    ("matmul_f16_dyn_sm90_warpspec_1p3c", "base"): 131072,
    ("matmul_f16_dyn_sm90_warpspec_1p3c", "sala"): 81920,
    ("matmul_f16_dyn_sm90_warpspec_1p3c_nobarrier", "base"): 131072,
    ("matmul_f16_dyn_sm90_warpspec_1p3c_nobarrier", "sala"): 131072,
    ("fa_1p1c_2s", "base"): 81920,
    ("fa_1p1c_2s", "sala"): 73728,
    ("fa_tuned_1p2c", "base"): 196608,
    ("fa_tuned_1p2c", "sala"): 163840,
    ("fa_tuned_1p2c_nobarrier", "base"): 196608,
    ("fa_tuned_1p2c_nobarrier", "sala"): 196608,
    ("fa_3s", "base"): 262144,
    ("fa_3s", "sala"): 229376,
    ("conv2d_fprop_ws_1p1c", "base"): 98304,
    ("conv2d_fprop_ws_1p1c", "sala"): 65536,
}


class FakeMachine(Machine):
    """A machine that has what it is said to have."""

    def __init__(self, gpu: str | None = None, nvcc: str | None = None, ncu: Path | None = None) -> None:
        super().__init__()
        self._set = gpu, nvcc, ncu

    @property
    def gpu(self) -> Gpu | None:
        return Gpu("0", self._set[0], "580", "9.0", "1980", "1980", "700", "30") if self._set[0] else None

    @property
    def _gpu_reason(self) -> str:
        return "no GPU"

    @property
    def nvcc_version(self) -> str | None:  # type: ignore[override]
        return self._set[1]

    @property
    def ncu(self) -> Path | None:  # type: ignore[override]
        return self._set[2]


@pytest.fixture(scope="session")
def cutlass_headers() -> Headers:
    """The pinned CUTLASS; fetched once, and where that cannot be done the test is skipped with the reason."""
    try:
        return find(ROOT / "build" / "steps" / "cutlass", {})
    except CutlassError as error:
        if "cannot download" in str(error):
            pytest.skip(str(error))
        raise


@pytest.fixture
def make_choreo(tmp_path: Path) -> Callable[..., Choreo]:
    """``make_choreo(sizes={(kernel, mode): bytes}, program="bash lines", hang=(kernels,), registers=72)``."""

    def make(
        sizes: dict[tuple[str, str], int] | None = None,
        program: str = "",
        hang: tuple[str, ...] = (),
        registers: int = 72,
    ) -> Choreo:
        path = tmp_path / "choreo"
        text = FAKE_CHOREO.format(
            python=sys.executable,
            sizes={**PAPER_SIZES, **(sizes or {})},
            calls=str(tmp_path / "calls"),
            hang=hang,
            program=program.replace("{", "{{").replace("}", "}}"),
            registers=registers,
        )
        path.write_text(text)
        path.chmod(0o755)
        return Choreo((str(path),), own=False)

    return make


@pytest.fixture
def make_context(tmp_path: Path) -> Callable[..., Context]:
    def make(
        step: str,
        choreo: Choreo,
        machine: Machine | None = None,
        options: Options | None = None,
    ) -> Context:
        return Context(
            step=step,
            results=tmp_path / "results",
            build=tmp_path / "build",
            machine=machine or FakeMachine(),
            choreo=choreo,
            claims=claims.load(),
            options=options or Options(),
        )

    return make


@pytest.fixture
def calls(tmp_path: Path) -> Callable[[], list[str]]:
    """Kernels and modes that the stand-in compiler was called with so far."""

    def read() -> list[str]:
        path = tmp_path / "calls"
        return path.read_text().splitlines() if path.exists() else []

    return read


class Quiet:
    """A Progress that remembers."""

    def __init__(self) -> None:
        self.kept_keys: list[str] = []
        self.finished_keys: list[str] = []
        self.note = ""

    def kept(self, measurements, note):  # type: ignore[no-untyped-def]
        self.kept_keys += [item.key for item in measurements]
        self.note = note

    def finished(self, measurement, record):  # type: ignore[no-untyped-def]
        self.finished_keys.append(measurement.key)


@pytest.fixture
def quiet() -> Quiet:
    return Quiet()
