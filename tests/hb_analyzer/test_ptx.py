"""The instruction summary of PTX files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hb_analyzer.json_reader import PatternError
from hb_analyzer.ptx import ptx_text, summarise_ptx

TEXT = """\
.version 8.8
.target sm_90a
.extern .shared .align 1024 .b8 dynamic[];
// bar.sync 9; is a comment
.visible .entry gemm(.param .u64 p0)
.maxntid 256
{
    .reg .pred %p<3>;
    .shared .align 8 .b8 mbars[64];
    .shared .f32 one;
    /* wgmma.fence.sync.aligned; */
    mbarrier.init.shared::cta.b64 [%r1], 1;
    mbarrier.init.shared::cta.b64 [%r2], 1;
$L1:
    @!%p1 bra $L2;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r3;
    { .reg .pred P; mbarrier.try_wait.parity.shared::cta.b64 P, [%r1], %r4; }
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd1, {%r6, %r7}], [%r1];
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%f1}, %rd2, %rd3, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    barrier.sync 1, 128;
    bar.sync 0;
    fence.proxy.async.shared::cta;
    setmaxnreg.dec.sync.aligned.u32 40;
    cp.async.ca.shared.global [%r8], [%rd4], 16;
$L2:
    ret;
}
.entry empty() { ret; }
"""


def test_counts() -> None:
    gemm, empty = summarise_ptx(TEXT, "f")
    assert gemm.name == "gemm"
    assert {family: dict(counts) for family, counts in gemm.counts.items()} == {
        "mbarrier": {
            "mbarrier.init.shared::cta.b64": 2,
            "mbarrier.arrive.expect_tx.shared::cta.b64": 1,
            "mbarrier.try_wait.parity.shared::cta.b64": 1,
        },
        "bulk copy": {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes": 1},
        "async copy": {"cp.async.ca.shared.global": 1},
        "wgmma": {
            "wgmma.fence.sync.aligned": 1,
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16": 1,
            "wgmma.commit_group.sync.aligned": 1,
            "wgmma.wait_group.sync.aligned": 1,
        },
        "barrier": {"barrier.sync": 1, "bar.sync": 1},
        "fence": {"fence.proxy.async.shared::cta": 1},
        "registers": {"setmaxnreg.dec.sync.aligned.u32": 1},
    }
    assert gemm.static_shared == 68
    assert (empty.name, empty.counts, empty.static_shared) == ("empty", {}, 0)


def test_text() -> None:
    text = ptx_text(summarise_ptx(TEXT, "f"))
    assert "gemm  (68 B of static shared memory)" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["mbarrier", "4"] in lines
    assert ["wgmma.commit_group.sync.aligned", "1"] in lines
    assert "empty\n  none of these instructions" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int main() {}", "f: not PTX: it has no .version directive (nvcc -ptx makes a PTX file)"),
        (".version 8.8\n.target sm_90a\n", "f: no kernel (.entry) in it"),
    ],
)
def test_other_files(text: str, message: str) -> None:
    with pytest.raises(PatternError) as caught:
        summarise_ptx(text, "f")
    assert str(caught.value) == message


def test_a_kernel_that_is_cut_off() -> None:
    (summary,) = summarise_ptx(".version 8.8\n.entry k()\n{ bar.sync 0;", "f")
    assert summary.counts["barrier"]["bar.sync"] == 1


SOURCE = """\
extern "C" __global__ void k(float *out) {
    __shared__ float tile[32];
    __shared__ unsigned long long bar;
    unsigned address = __cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(address));
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[31 - threadIdx.x];
}
"""


@pytest.mark.nvcc
def test_what_nvcc_writes(tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc") or pytest.skip("no nvcc on PATH")
    (tmp_path / "k.cu").write_text(SOURCE)
    subprocess.run([nvcc, "-ptx", "-arch=sm_90a", "k.cu", "-o", "k.ptx"], cwd=tmp_path, check=True)
    (summary,) = summarise_ptx((tmp_path / "k.ptx").read_text(), "k.ptx")
    assert (summary.name, summary.static_shared) == ("k", 136)
    assert summary.counts["mbarrier"] == {"mbarrier.init.shared::cta.b64": 1}
    assert sum(summary.counts["barrier"].values()) == 1
