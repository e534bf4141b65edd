"""Compiled kernels: built once per compiler, mode and nvcc through the work script, kept in build/, run as programs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from croqtile import toolchain
from reproduce import kernels
from reproduce.choreo import Choreo
from reproduce.lock import lock
from reproduce.results import write_atomically
from reproduce.step import Context, FailedError, NoRunError
from reproduce.tables import Scalar

NVCC_LIMIT_S = 300.0
RUN_LIMIT_S = 120.0  # of a timed run: seconds, if the kernel does not hang
_EXECUTABLE = re.compile(r"-o\s+(/\S+\.exe)\b")
_TIME = re.compile(r"^time: ([\d.]+) ms, ([\d.]+) TFLOPS", re.MULTILINE)
_CHECKSUM = re.compile(r"^checksum: ([0-9a-f]+)", re.MULTILINE)
PASSED, FAILED_LINE = "Test Passed", "Test FAILED"


class OutOfBoundError(Exception):
    """The compiler refuses the allocation: there is no program. The message is the compiler's."""


@dataclass(frozen=True)
class Program:
    """One executable. ``placement`` is the allocation in bytes, ``static`` the static shared memory.

    ``launch`` is the dynamic shared memory that a launch requests and ``threads`` those of a CTA; None where the
    generated source does not say it (another compiler's), and then only Nsight Compute can.
    """

    kernel: str
    sala: bool
    executable: Path
    placement: int
    registers: int
    spills: int
    static: int
    launch: int | None
    threads: int | None
    compile_s: float


def build(
    context: Context,
    kernel: str,
    *,
    sala: bool,
    key: str,
    nvcc: Path | None = None,
    defines: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Program:
    """The program of ``kernel``; compiled only if the generated source or the nvcc is another than last time.

    Raises OutOfBoundError if the allocation is refused, FailedError if it does not compile, NoRunError on a time-out.
    """
    tag = [kernel, "sala" if sala else "base", _tag(context.choreo)]
    tag += [hashlib.sha256(f"{nvcc} {defines}".encode()).hexdigest()[:8]] if nvcc or defines else []
    tag += ["_".join(options).replace("--", "").replace(",", "_")] if options else []
    script = context.build / "programs" / f"{'.'.join(tag)}.sh"
    script.parent.mkdir(parents=True, exist_ok=True)
    with lock(script.with_suffix(".lock"), script.name, wait=True):
        return _build(context, kernel, sala, key, nvcc, defines, options, script)


def _tag(choreo: Choreo) -> str:
    return "own" if choreo.own else hashlib.sha256(choreo.command[0].encode()).hexdigest()[:8]


def _build(
    context: Context,
    kernel: str,
    sala: bool,
    key: str,
    nvcc: Path | None,
    defines: Sequence[str],
    options: Sequence[str],
    script: Path,
) -> Program:
    found = context.choreo.allocate(
        kernels.source(kernel),
        sala=sala,
        out=script,
        defines=defines,
        options=options,
        log=context.log(f"{key}.choreo"),
    )
    if found.out_of_bound:
        raise OutOfBoundError(found.message)
    if found.finished.timed_out:
        raise NoRunError(f"the compiler did not end within {found.finished.duration_s:.0f} s (ended)")
    if found.bytes is None:
        raise FailedError(found.message)
    text = script.read_text(encoding="utf-8")
    place = _EXECUTABLE.search(text)
    if place is None:
        raise FailedError(f"the work script {script.name} names no executable (-o /PATH.exe)")
    executable = Path(place[1])
    digest = hashlib.sha256(f"{nvcc or context.machine.nvcc_version}\n{text}".encode()).hexdigest()
    facts = script.with_suffix(".json")
    if facts.exists() and executable.exists():
        kept = json.loads(facts.read_text(encoding="utf-8"))
        if kept.pop("digest") == digest:
            return Program(**{**kept, "executable": executable})
    # nvcc adds these flags by itself, whatever the script passes: the ptxas report comes from the build that runs.
    env = {"NVCC_APPEND_FLAGS": "-Xptxas=-v", **({"NVCC": str(nvcc)} if nvcc else {})}
    built = context.run(["bash", script, "--compile-link"], timeout_s=NVCC_LIMIT_S, log=f"{key}.nvcc", **env)
    if built.timed_out:
        raise NoRunError(f"nvcc did not end within {NVCC_LIMIT_S:.0f} s")
    if not built.ok or not executable.exists():
        raise FailedError(f"does not compile: {built.last_line()}")
    device = [each for each in toolchain.parse_resources(built.output) if "__choreo_device_" in each.name]
    if len(device) != 1:
        raise FailedError(f"{len(device)} kernels named __choreo_device_… in the ptxas report, expected one")
    threads, launch = _launch(text)
    program = Program(
        kernel=kernel,
        sala=sala,
        executable=executable,
        placement=found.bytes,
        registers=device[0].registers,
        spills=device[0].spill_stores + device[0].spill_loads,
        static=device[0].static_smem,
        launch=launch,
        threads=threads,
        compile_s=round(built.duration_s, 2),
    )
    write_atomically(facts, json.dumps({**asdict(program), "executable": str(executable), "digest": digest}))
    return program


def _launch(script: str) -> tuple[int | None, int | None]:
    """(threads, dynamic shared memory in bytes) of the launch, as this project's generated wrapper spells it."""
    found = set(re.findall(r"launch::enqueue\(site_, \w+, grid_, (\d+), (\d+)", script))
    if len(found) != 1:
        return None, None
    threads, dynamic = found.pop()
    return int(threads), int(dynamic)


# --------------------------------------------------------------------------------------------------------------
# Running


def run(
    context: Context, program: Program, arguments: Sequence[str], *, timeout_s: float, key: str, **env: str
) -> dict[str, Scalar]:
    """Runs the program; returns ``checksum``, and ``ms`` and ``tflops`` if it took the time.

    Raises NoRunError if it hangs or ends without a verdict, FailedError if its own check fails.
    """
    finished = context.run([program.executable, *arguments], timeout_s=timeout_s, log=key, **env)
    if finished.timed_out:
        raise NoRunError(f"no end after {timeout_s:.0f} s (ended)")
    if FAILED_LINE in finished.stdout:
        raise FailedError(finished.last_line())
    if not finished.ok or PASSED not in finished.stdout:
        raise NoRunError(f"exit status {finished.returncode}: {finished.last_line()}")
    time, checksum = _TIME.search(finished.stdout), _CHECKSUM.search(finished.stdout)
    return {
        "checksum": checksum[1] if checksum else None,
        "ms": float(time[1]) if time else None,
        "tflops": float(time[2]) if time else None,
    }


def timed(
    context: Context, program: Program, arguments: Sequence[str], warmup: int, repeat: int, *, key: str, **env: str
) -> dict[str, Scalar]:
    """Runs the program for its time only: ``tflops`` and ``ms``, mean of ``repeat`` calls after ``warmup``."""
    settings = {"CHOREO_TIMING_WARMUP": str(warmup), "CHOREO_TIMING_REPEAT": str(repeat), "CHOREO_SKIP_VERIFY": "1"}
    values = run(context, program, arguments, timeout_s=RUN_LIMIT_S, key=key, **settings, **env)
    if values["tflops"] is None:
        raise NoRunError("the program printed no line `time: … ms, … TFLOPS`")
    return values
