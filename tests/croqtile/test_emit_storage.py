"""Declarations of shared memory, and the first instructions of a kernel."""

from __future__ import annotations

from pathlib import Path

import tile
from emitting import device

from croqtile import smem


def test_base_is_rounded_up_into_the_slack(tmp_path: Path) -> None:
    text = device(tmp_path, tile.GEMM)
    assert "extern __shared__ __align__(128) uint8_t gemm_memory_[];" in text
    assert "__shared__ uint64_t barriers_[9];" in text
    assert "const uint32_t memory_ = align_up(shared_address(gemm_memory_), 1024);" in text
    assert "const uint32_t empty = shared_address(barriers_) + 32;  // 4 mbarriers" in text


def test_base_is_declared_aligned_where_there_is_no_slack_for_it(tmp_path: Path) -> None:
    text = device(tmp_path, tile.SOFTMAX)
    assert "extern __shared__ __align__(1024) uint8_t softmax_memory_[];" in text
    assert "if (memory_ % 1024 != 0) __trap();" in text
    assert "barriers_" not in text


def test_barriers_exist_before_any_role_runs(tmp_path: Path) -> None:
    text = device(tmp_path, tile.GEMM)
    order = [
        text.index(part) for part in ("mbarrier_init(", "mbarrier_init_fence();", "__syncthreads();", "if (p == 0)")
    ]
    assert order == sorted(order)


def test_ctas_of_a_cluster_wait_for_each_other(tmp_path: Path) -> None:
    program = (Path(__file__).parent / "forms" / "cluster.co").read_text()
    text = device(tmp_path, program[program.index("__co__") : program.index("int main")])
    assert "mbarrier_init_fence();\n  }\n  cluster_arrive();\n  cluster_wait();" in text
    assert text.rstrip().endswith("cluster_arrive();\n  cluster_wait();\n}")


def test_limits_count_static_memory(tmp_path: Path) -> None:
    gemm, softmax = tile.lowered(tmp_path, tile.GEMM), tile.lowered(tmp_path, tile.SOFTMAX)
    assert (smem.slack(gemm), smem.static_bytes(gemm)) == (1024, 128)  # 72 bytes of mbarriers, padded
    assert (smem.slack(softmax), smem.static_bytes(softmax)) == (128, 0)
