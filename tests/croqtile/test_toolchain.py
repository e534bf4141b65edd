import os
import subprocess
import time
from pathlib import Path

import pytest

from croqtile import toolchain
from croqtile.toolchain import CompileError, KernelResources, Toolchain, ToolchainError

PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z3onePf' for 'sm_90a'
ptxas info    : Function properties for _Z3onePf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 3 barriers, 128 bytes smem
ptxas info    : Compile time = 1.597 ms
ptxas info    : Compiling entry function '_Z3twoPf' for 'sm_90a'
ptxas info    : Function properties for _Z3twoPf
    64 bytes stack frame, 24 bytes spill stores, 28 bytes spill loads
ptxas info    : Used 72 registers, used 0 barriers, 64 bytes cumulative stack size
"""


def nvcc_at(path: Path, script: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_report_of_ptxas():
    assert toolchain.parse_resources(PTXAS) == (
        KernelResources("_Z3onePf", 168, 0, 0, 0, 128, 3),
        KernelResources("_Z3twoPf", 72, 24, 28, 64, 0, 0),
    )
    assert toolchain.parse_resources("nothing here") == ()


def test_search_order(tmp_path, monkeypatch):
    named = nvcc_at(tmp_path / "named" / "nvcc")
    home = nvcc_at(tmp_path / "home" / "bin" / "nvcc")
    pinned = nvcc_at(tmp_path / "pinned" / "bin" / "nvcc")
    path = nvcc_at(tmp_path / "path" / "nvcc")
    wheel = nvcc_at(tmp_path / "site" / "nvidia" / "cu13" / "bin" / "nvcc")
    monkeypatch.setattr(toolchain, "PINNED_ROOT", str(tmp_path / "pinned"))
    monkeypatch.setattr("sys.path", [str(tmp_path / "site")])
    env = {"NVCC": str(named), "CUDA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path")}
    for expected, name in ((named, "NVCC"), (home, "CUDA_HOME")):
        found = toolchain.find(env)
        assert (found.nvcc, found.origin) == (str(expected), f"${name}")
        del env[name]
    assert toolchain.find(env).nvcc == str(pinned)
    pinned.unlink()
    assert toolchain.find(env).nvcc == str(path)
    path.unlink()
    assert toolchain.find(env).nvcc == str(wheel)
    wheel.unlink()
    with pytest.raises(ToolchainError, match="no nvcc found: install"):
        toolchain.find(env)


@pytest.mark.parametrize("name", ["NVCC", "CUDA_HOME"])
def test_a_setting_that_names_nothing_is_not_passed_over(name, tmp_path):
    with pytest.raises(ToolchainError, match=rf"\${name} is set, but there is no nvcc at"):
        toolchain.find({name: str(tmp_path / "missing")})


def test_versions(tmp_path):
    shown = "Cuda compilation tools, release 13.0, V13.0.88"
    found = Toolchain(str(nvcc_at(tmp_path / "nvcc", f"echo '{shown}'")), "PATH")
    assert (found.version, found.release) == ("13.0.88", "13.0")
    with pytest.raises(ToolchainError, match="is no nvcc"):
        _ = Toolchain(str(nvcc_at(tmp_path / "other", "echo hello")), "PATH").version
    with pytest.raises(ToolchainError, match="does not run"):
        _ = Toolchain(str(tmp_path / "absent"), "PATH").version


def test_link_flags_of_the_layouts(tmp_path):
    system = nvcc_at(tmp_path / "system" / "bin" / "nvcc")
    (tmp_path / "system" / "lib64").mkdir()
    assert toolchain.link_flags(str(system)) == ()
    wheels = nvcc_at(tmp_path / "wheels" / "bin" / "nvcc")
    lib = tmp_path / "wheels" / "lib"
    lib.mkdir()
    (lib / "libcudart.so.13").touch()
    rpath = ("-Xlinker", "-l:libcudart.so.13", "-Xlinker", f"-rpath={lib}")
    assert toolchain.link_flags(str(wheels)) == ("-cudart=none", f"-L{lib}", *rpath)
    (lib / "libcudart_static.a").touch()
    assert toolchain.link_flags(str(wheels)) == (f"-L{lib}",)


def test_paths_never_reach_the_shell_of_nvcc(tmp_path):
    """The output and the directory of includes have names that a shell would take apart."""
    odd = tmp_path / 'it\'s $(touch owned) "odd"'
    odd.mkdir()
    (odd / "seen.h").write_text("header")
    record = tmp_path / "arguments"
    # The last two arguments are the output's name and the source; includes stand in the directory `include0`.
    fake = nvcc_at(tmp_path / "nvcc", f'printf "%s\\n" "$@" > {record}\ncp include0/seen.h output\nchmod +x output')
    tools = Toolchain(str(fake), "PATH")
    toolchain.compile_executable(tools, "int main() {}", odd / "program", [odd])
    assert (odd / "program").read_text() == "header"
    assert os.access(odd / "program", os.X_OK)
    arguments = record.read_text().splitlines()
    assert "-gencode=arch=compute_90a,code=sm_90a" in arguments
    assert "-Iinclude0" in arguments
    assert not any("odd" in argument for argument in arguments)


def test_a_failing_nvcc_gives_its_log(tmp_path):
    tools = Toolchain(str(nvcc_at(tmp_path / "nvcc", "echo 'kernel.cu(1): error: no' >&2; exit 2")), "PATH")
    with pytest.raises(CompileError, match="nvcc failed with exit code 2") as caught:
        toolchain.compile_executable(tools, "", tmp_path / "out", [])
    assert "error: no" in caught.value.log


def test_a_stuck_nvcc_is_ended_with_its_children(tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain, "TIMEOUT_S", 0.5)
    pid = tmp_path / "pid"
    tools = Toolchain(str(nvcc_at(tmp_path / "nvcc", f"sleep 60 & echo $! > {pid}; wait")), "PATH")
    with pytest.raises(CompileError, match="did not finish"):
        toolchain.compile_executable(tools, "", tmp_path / "out", [])
    child = int(pid.read_text())
    deadline = time.monotonic() + 10
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


@pytest.mark.nvcc
def test_nvcc_compiles_and_reports(tmp_path, monkeypatch):
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-Xptxas=-v")  # as the steps ask for it
    tools = toolchain.find()
    source = "__global__ void kernel(float* x) { x[threadIdx.x] = 1.0f; }\nint main() { return 0; }\n"
    (kernel,) = toolchain.parse_resources(toolchain.compile_executable(tools, source, tmp_path / "kernel", [tmp_path]))
    assert "kernel" in kernel.name
    assert 0 < kernel.registers < 32
    assert kernel.spill_stores == kernel.spill_loads == 0
    assert (tmp_path / "kernel").stat().st_size > 0


def test_an_interrupt_while_the_compiler_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(child: subprocess.Popen[str], timeout: float) -> None:
        child.kill()
        os.waitpid(child.pid, 0)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        toolchain._run_in_group(["sleep", "20"], "/")
