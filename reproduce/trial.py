"""One kernel from end to end, for the doctor: tile language → CUDA → program → GPU → Nsight Compute."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from reproduce import ROOT, claims, kernels, ncu, programs, workloads
from reproduce.choreo import Choreo
from reproduce.lock import LockedError, lock_gpu
from reproduce.machine import Machine, Need
from reproduce.programs import OutOfBoundError, Program
from reproduce.running import NEEDS_CLONE
from reproduce.step import Context, FailedError, NoRunError, NotMeasuredError

KERNEL = "matmul_f16_dyn_sm90_warpspec_1p1c_64x128_4s"
SIZE = 512  # of the GEMM: a few tiles, checked against a CPU reference
_RUN_LIMIT_S = 60.0


@dataclass(frozen=True)
class Stage:
    """``ok`` is None for what this machine cannot do. ``found`` has what came out, or what is missing."""

    name: str
    ok: bool | None
    found: str
    advice: str = ""


@dataclass
class Trial:
    """The stages in their order. Each needs what the one before it made, and says so if that is missing."""

    machine: Machine
    choreo: Choreo
    stages: list[Stage] = field(default_factory=list)
    program: Program | None = None

    def run(self) -> list[Stage]:
        self._stage("CUDA", None, self._compile, "see the message")
        self._stage("program", Need.NVCC, self._build, "`./ae build` installs nvcc 13.0 (104 MB)")
        self._stage("on the GPU", Need.GPU, self._launch, "timed rows need an sm_90 GPU (H100, H200, H800)")
        self._stage("under ncu", Need.NCU, self._profile, "active warps (Table 3) need GPU and Nsight Compute")
        return self.stages

    @property
    def _context(self) -> Context:
        """Writes below build/, never into the results; programs are those of the steps, and kept for them."""
        build = ROOT / "build"
        return Context("doctor", build / "doctor", build / "steps", self.machine, self.choreo, claims.load())

    def _stage(self, name: str, need: Need | None, run: Callable[[], str], advice: str) -> None:
        missing = self.machine.missing(need) if need else None
        if missing is None and any(not stage.ok for stage in self.stages):
            missing = "there is no program" if self.program is None else "the stage before it did not run to its end"
        if missing:
            self.stages.append(Stage(name, None, f"not here: {missing}", advice))
            return
        started = time.monotonic()
        try:
            found = self._alone(run) if need in (Need.GPU, Need.NCU) else run()
        except LockedError as error:
            self.stages.append(Stage(name, None, f"not now: {error}"))
        except NotMeasuredError as error:
            self.stages.append(Stage(name, None, "not here: no permission", str(error)))
        except OSError as error:
            self.stages.append(Stage(name, False, f"cannot write {error.filename}: {error.strerror}", NEEDS_CLONE))
        except (FailedError, NoRunError, OutOfBoundError) as error:
            self.stages.append(Stage(name, False, str(error), f"logs: {self._context.log('x').parent}"))
        else:
            self.stages.append(Stage(name, True, f"{found} ({time.monotonic() - started:.1f} s)"))

    def _alone(self, run: Callable[[], str]) -> str:
        """Not beside what another run may be timing."""
        assert self.machine.gpu is not None
        with lock_gpu(self._context.build, self.machine.gpu):
            return run()

    def _compile(self) -> str:
        found = self.choreo.allocate(kernels.source(KERNEL), sala=True, log=None)
        if found.bytes is None:
            raise FailedError(found.message)
        return f"{self.choreo}: {found.bytes} B of shared memory"

    def _build(self) -> str:
        self.program = programs.build(self._context, KERNEL, sala=True, key="build")
        return f"{self.program.registers} registers, {self.program.spills} B of spills"

    def _launch(self) -> str:
        assert self.program is not None
        programs.run(
            self._context,
            self.program,
            workloads.gemm(SIZE),
            timeout_s=_RUN_LIMIT_S,
            key="run",
            CHOREO_DISABLE_TIMING="1",
        )
        return f"GEMM {SIZE}³: {programs.PASSED}"

    def _profile(self) -> str:
        assert self.program is not None
        found = ncu.profile(self._context, self.program, workloads.gemm(SIZE), key="ncu")
        return f"{found.dynamic} B of dynamic shared memory, {found.ctas} CTAs/SM"
