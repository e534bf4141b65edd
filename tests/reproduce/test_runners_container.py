"""What a step's container is, without an engine: arguments, mounts, rights, GPUs. What it really gets: tests/engine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from reproduce import ROOT
from reproduce.image import Image
from reproduce.runners import container
from reproduce.runners.container import RequestError, read_request, settings

pytest.importorskip("docker")
IMAGE = Image("sha256:0123456789abcdef0123", "sala-reproduction:abc", 1, True)


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, which=shutil.which: None if name == "nvidia-smi" else which(name))


def made(step: str, *arguments: str, rootless: bool = False, **environment: str) -> dict[str, object]:
    return settings(read_request(step, arguments, environment), IMAGE, "c", rootless=rootless, environment=environment)


def test_paths_are_absolute_and_the_rest_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    request = read_request("table2", ["--fresh", "--only", "tawa", "--results", "here"], {})
    assert request.arguments == ("--fresh", "--only", "tawa", "--results", str(tmp_path / "here"))
    assert read_request("figure2", [], {"RESULTS": str(tmp_path)}).results == tmp_path
    assert read_request("figure2", [], {}).results == ROOT / "results"
    assert read_request("report", ["--out", "page"], {}).writable == (ROOT / "results", tmp_path / "page")


def test_the_command_is_words_and_never_a_shell(tmp_path: Path) -> None:
    evil = tmp_path / "$(touch x); `y` '\""
    command = made("figure2", "--results", str(evil))["command"]
    assert command == [container.PYTHON, "-m", "reproduce", "figure2", "--results", str(evil)]


def test_no_more_rights_than_needed() -> None:
    chosen = made("figure2")
    assert chosen["cap_drop"] == ["ALL"] and not chosen["cap_add"] and "privileged" not in chosen
    assert chosen["security_opt"] == ["no-new-privileges"] and chosen["network_mode"] == "none"
    assert chosen["read_only"] and chosen["user"] == f"{os.getuid()}:{os.getgid()}"
    assert made("figure2", rootless=True)["user"] == "0:0"  # there, root is the user who runs the engine


def test_only_results_and_build_are_writable(tmp_path: Path) -> None:
    mounts = made("figure2", "--results", str(tmp_path))["mounts"]
    assert isinstance(mounts, list)
    writable = {mount["Target"]: mount["Source"] for mount in mounts if not mount["ReadOnly"]}
    build = str(ROOT / "build")
    assert writable == {
        build: f"{build}/image-0123456789ab",
        f"{build}/locks": f"{build}/locks",
        str(tmp_path): str(tmp_path),
    }
    assert {mount["Target"] for mount in mounts if mount["ReadOnly"]} == {str(ROOT)}


@pytest.mark.parametrize("folder", [ROOT, ROOT.parent, Path("/")])
def test_a_results_folder_that_holds_the_project(folder: Path) -> None:
    with pytest.raises(RequestError, match="which a step must not change"):
        read_request("figure2", ["--results", str(folder)], {})


def test_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not made("figure2", "--gpu", "1")["device_requests"]  # it uses none
    assert not made("fa")["device_requests"]  # there is none: the step says so per row
    (one,) = made("fa", "--gpu", "3")["device_requests"]  # type: ignore[misc, attr-defined]
    assert one["DeviceIDs"] == ["3"] and "gpu" in one["Capabilities"][0]
    assert "--gpu" not in read_request("fa", ["--gpu", "3"], {}).arguments
    several = read_request("all", ["--gpu", "2,5"], {})
    assert several.gpus == ("2", "5") and several.arguments[-2:] == ("--gpu", "0,1")
    assert read_request("fa", [], {"GPU": "1"}).gpus == ("1",)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert read_request("fa", [], {}).gpus == ("0",) and not read_request("figure2", [], {}).gpus
    for wrong, message in (("0;rm", "named by their numbers"), ("0,0", "0,0 names a GPU twice")):
        with pytest.raises(RequestError, match=message):
            read_request("all", [], {"GPU": wrong})


def test_profiling_only_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not made("table3", "--gpu", "0")["cap_add"]
    chosen = made("table3", "--gpu", "0", SALA_PROFILING="1")
    assert "SYS_ADMIN" in chosen["cap_add"] and chosen["command"][0] == "setpriv"  # type: ignore[operator, index]
    assert not made("figure3", "--gpu", "0", SALA_PROFILING="1")["cap_add"]  # it profiles nothing
    assert not made("table3", SALA_PROFILING="1")["cap_add"]  # without a GPU neither


def test_what_a_step_sees_of_the_environment() -> None:
    inside = made("figure2", NO_COLOR="1", CUDA_HOME="/host/cuda", SECRET="x", GPU="3")["environment"]
    assert isinstance(inside, dict)
    assert inside["NO_COLOR"] == "1" and inside["SALA_IMAGE"] == f"{IMAGE.tag} {IMAGE.id}"
    assert not {"CUDA_HOME", "SECRET", "GPU"} & set(inside) and inside["HOME"] == "/tmp"


def test_another_compiler_is_mounted_or_refused(tmp_path: Path) -> None:
    program = tmp_path / "choreo"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    mounts = made("figure2", CHOREO=str(program))["mounts"]
    assert isinstance(mounts, list)
    assert [mount["ReadOnly"] for mount in mounts if mount["Target"] == str(tmp_path)] == [True]
    with pytest.raises(RequestError, match="--runner host"):
        made("figure2", CHOREO="/bin/true")
    with pytest.raises(RequestError, match="there is no such program"):
        made("figure2", CHOREO=str(tmp_path / "nothing"))
    with pytest.raises(RequestError, match="CUTLASS_HOME is in /usr"):
        made("figure2", CUTLASS_HOME="/usr")
