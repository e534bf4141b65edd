from __future__ import annotations

from pathlib import Path

import pytest

from reproduce.machine import Machine, Need, gpu_numbers, profile_of

H200 = "0, NVIDIA H200, 580.159.04, 9.0, 1980, 345, 700.00, 30, GPU-aaaa"
OLD = "1, NVIDIA A100-SXM4-80GB, 580.159.04, 8.0, 1410, 210, 400.00, 25, GPU-bbbb"


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.delenv("GPU", raising=False)

    def install(*lines: str, status: int = 0) -> None:
        path = tmp_path / "nvidia-smi"
        text = "\n".join(lines)
        path.write_text(f"#!/bin/bash\ncat <<'EOF'\n{text}\nEOF\nexit {status}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return install


def test_a_gpu(smi) -> None:  # type: ignore[no-untyped-def]
    smi(H200, OLD)
    machine = Machine()
    assert machine.gpu is not None and machine.gpu.name == "NVIDIA H200" and machine.gpu.power_limit == "700.00"
    assert len(machine.gpu.uuid_hash) == 16 and "aaaa" not in machine.gpu.uuid_hash
    assert machine.missing(Need.GPU) is None and machine.gpu_environment() == {}


def test_the_chosen_gpu(smi, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    smi(H200, OLD)
    assert Machine("1").missing(Need.GPU) == "no sm_90 GPU (NVIDIA A100-SXM4-80GB is sm_80)"
    assert Machine("2").missing(Need.GPU) == "no GPU 2 (there are 2)"
    monkeypatch.setenv("GPU", "0")
    assert Machine().gpu_environment() == {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert Machine().gpu_indices == ["0", "1"]


def test_no_gpu(smi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    smi("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", status=9)
    assert "couldn't communicate with the NVIDIA driver" in str(Machine().missing(Need.GPU))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert Machine().missing(Need.GPU) == "no GPU" and Machine().missing(Need.NCU) == "no GPU"


def test_profiles() -> None:
    assert [
        profile_of(name) for name in ("NVIDIA H800 PCIe", "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA B200")
    ] == [
        "h800",
        "h100",
        "h200",
        None,
    ]


def test_gpus_by_number() -> None:
    assert gpu_numbers("1", "x") == ["1"] and gpu_numbers("1, 00", "x") == ["1", "0"]
    for text in ("", ",", "0,", "-1", "all", "²", "GPU-aaaa"):
        with pytest.raises(ValueError, match="x: GPUs are named by their numbers"):
            gpu_numbers(text, "x")
    for text in ("0,0", "1,0,01"):
        with pytest.raises(ValueError, match="x names a GPU twice"):
            gpu_numbers(text, "x")
