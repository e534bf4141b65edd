"""The CUDA toolchain: where nvcc is, how it is called, and what it says about registers and memory.

Search order: ``$NVCC``, ``$CUDA_HOME``, ``/usr/local/cuda-13.0``, ``PATH``, the pinned PyPI wheels
(``cuda-toolkit[nvcc,cccl]==13.0.3.0``, the extra ``cuda`` of this project). Any other release than 13.0 works too, but
gives other register counts: :attr:`Toolchain.release` says which one it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PINNED_RELEASE = "13.0"
PINNED_ROOT = "/usr/local/cuda-13.0"
COMPILE_FLAGS = ("-std=c++17", "-O3", "-gencode=arch=compute_90a,code=sm_90a")

_PLAIN = re.compile(r"[\w./+=@,-]+", re.ASCII)  # names that no shell takes apart

# A kernel compiles in seconds; a compiler that needs longer than this is stuck.
TIMEOUT_S = 600.0


class ToolchainError(Exception):
    """nvcc is missing or does not run. The message says what to do."""


class CompileError(Exception):
    """nvcc refused a program; ``log`` is everything it printed."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


@dataclass(frozen=True)
class KernelResources:
    """What ``ptxas -v`` reports for one kernel. Registers per thread; everything else in bytes."""

    name: str
    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    static_smem: int
    barriers: int


@dataclass(frozen=True)
class Toolchain:
    """One nvcc. ``origin`` says how it was found, for messages and provenance."""

    nvcc: str
    origin: str

    @cached_property
    def version(self) -> str:
        """The full version, e.g. ``13.0.88``. Raises ToolchainError if nvcc does not run."""
        try:
            done = subprocess.run(
                [self.nvcc, "--version"],
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ToolchainError(f"{self.nvcc} (from {self.origin}) does not run: {error}") from error
        found = re.search(r"\bV(\d+\.\d+\.\d+)", done.stdout) or re.search(r"release (\d+\.\d+)", done.stdout)
        if done.returncode != 0 or found is None:
            raise ToolchainError(f"{self.nvcc} (from {self.origin}) is no nvcc: `--version` printed {done.stdout!r}")
        return found[1]

    @property
    def release(self) -> str:
        """Major and minor version; exact results are pinned to :data:`PINNED_RELEASE`."""
        return ".".join(self.version.split(".")[:2])

    @property
    def link_flags(self) -> tuple[str, ...]:
        return link_flags(self.nvcc)


def link_flags(nvcc: str) -> tuple[str, ...]:
    """What linking needs beyond nvcc's own defaults: nothing for a system toolkit, ``-L`` for the wheels.

    The wheels keep their libraries in ``lib`` where nvcc looks in ``lib64``. A layout without the static runtime is
    linked with the shared one by its full name, since the wheels have no ``libcudart.so`` link.
    """
    root = Path(nvcc).resolve().parent.parent
    lib = root / "lib"
    if (root / "lib64").exists() or (root / "targets").exists() or not any(lib.glob("libcudart*")):
        return ()
    if (lib / "libcudart_static.a").exists():
        return (f"-L{lib}",)
    shared = sorted(lib.glob("libcudart.so*"))[0]
    return ("-cudart=none", f"-L{lib}", "-Xlinker", f"-l:{shared.name}", "-Xlinker", f"-rpath={lib}")


def candidates(environ: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Every place where nvcc may be, best first: (path of nvcc, how it was found). Existence is not checked."""
    env = os.environ if environ is None else environ
    places: list[tuple[str, str]] = []
    if env.get("NVCC"):
        places.append((shutil.which(env["NVCC"], path=env.get("PATH")) or env["NVCC"], "$NVCC"))
    if env.get("CUDA_HOME"):
        places.append((f"{env['CUDA_HOME']}/bin/nvcc", "$CUDA_HOME"))
    places.append((f"{PINNED_ROOT}/bin/nvcc", PINNED_ROOT))
    on_path = shutil.which("nvcc", path=env.get("PATH"))
    if on_path:
        places.append((on_path, "PATH"))
    for entry in sys.path:
        wheel = Path(entry, "nvidia", "cu13", "bin", "nvcc")
        if entry and wheel.exists():
            places.append((str(wheel), "PyPI wheels"))
    return places


def find(environ: Mapping[str, str] | None = None) -> Toolchain:
    """The first nvcc of :func:`candidates` that exists. Starts nothing.

    Raises ToolchainError if there is none, or if ``$NVCC`` or ``$CUDA_HOME`` names one that is not there: passing over
    a setting silently would compile with another toolchain than the one asked for.
    """
    for path, origin in candidates(environ):
        if os.access(path, os.X_OK) and Path(path).is_file():
            return Toolchain(str(Path(path).absolute()), origin)
        if origin.startswith("$"):
            raise ToolchainError(f"{origin} is set, but there is no nvcc at {path}: correct it or unset it")
    raise ToolchainError(
        "no nvcc found: install the CUDA 13.0 toolkit, set CUDA_HOME, "
        "or `pip install 'cuda-toolkit[nvcc,cccl]==13.0.3.0'`"
    )


def compile_executable(tools: Toolchain, source: str, out: Path, includes: Sequence[Path]) -> str:
    """Compile and link CUDA C++ text to the executable ``out``; quoted includes also resolve in ``includes``.

    Returns what nvcc printed (warnings). Raises CompileError, ToolchainError.
    """
    return _run(tools, source, includes, list(tools.link_flags), out)


def compile_ptx(tools: Toolchain, source: str, includes: Sequence[Path]) -> str:
    """Compile to PTX, the text that ptxas makes the cubin from. Raises CompileError, ToolchainError."""
    with tempfile.TemporaryDirectory(prefix="choreo-") as work:
        out = Path(work, "kernel.ptx")
        _run(tools, source, includes, ["-ptx"], out)
        return out.read_text(encoding="utf-8")


def _run(tools: Toolchain, source: str, includes: Sequence[Path], flags: list[str], out: Path) -> str:
    """Run nvcc on ``source`` in a directory of its own, and put what it makes at ``out``. Returns its output.

    nvcc passes paths on through a shell of its own: a name that this shell would take apart reaches it only as a link
    with a name that we chose.
    """
    with tempfile.TemporaryDirectory(prefix="choreo-", dir=_plain_temporary_directory()) as work:
        Path(work, "kernel.cu").write_text(source, encoding="utf-8", errors="surrogateescape")
        search = []
        for number, directory in enumerate(path.absolute() for path in includes):
            if _PLAIN.fullmatch(str(directory)):
                search.append(f"-I{directory}")
            else:
                Path(work, f"include{number}").symlink_to(directory, target_is_directory=True)
                search.append(f"-Iinclude{number}")
        built = Path(work, "output")
        command = [tools.nvcc, *COMPILE_FLAGS, *search, *flags, "-o", built.name, "kernel.cu"]
        log = _run_in_group(command, work)
        try:
            shutil.copyfile(built, out)
            if os.access(built, os.X_OK) and out.is_file():
                out.chmod(0o755)
        except OSError as error:
            raise CompileError(f"cannot write {out}: {error.strerror}", log) from error
        return log


def _run_in_group(command: list[str], cwd: str) -> str:
    """Run to the end, or end the whole process group on a time-out or an interrupt (nvcc starts several programs)."""
    try:
        child = subprocess.Popen(
            command,
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise ToolchainError(f"{command[0]} does not run: {error.strerror}") from error
    try:
        log, _ = child.communicate(timeout=TIMEOUT_S)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):  # it may just have ended by itself
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise CompileError(f"nvcc did not finish within {TIMEOUT_S:.0f} s and was ended", "") from error
        raise
    if child.returncode != 0:
        raise CompileError(f"nvcc failed with exit code {child.returncode}", log)
    return log


def _plain_temporary_directory() -> str | None:
    """None for the usual choice, or /tmp where that one's name would need quoting inside nvcc."""
    return None if _PLAIN.fullmatch(tempfile.gettempdir()) else "/tmp"


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")


def parse_resources(log: str) -> tuple[KernelResources, ...]:
    """The kernels in the output of ``ptxas -v``, in its order."""
    found: list[KernelResources] = []
    for section in log.split("ptxas info    : Compiling entry function ")[1:]:
        name = _ENTRY.search("Compiling entry function " + section)
        frame, used = _FRAME.search(section), _USED.search(section)
        if name is None or used is None:
            continue
        stack, stores, loads = (int(text) for text in frame.groups()) if frame else (0, 0, 0)
        found.append(
            KernelResources(
                name=name[1],
                registers=int(used[1]),
                spill_stores=stores,
                spill_loads=loads,
                stack=stack,
                static_smem=_number(r"(\d+) bytes smem", section),
                barriers=_number(r"used (\d+) barriers", section),
            )
        )
    return tuple(found)


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0
