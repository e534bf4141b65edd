"""What a step's container is: its command, mounts, environment, user, rights and GPUs; no engine is asked here.

The step gets the project read-only, and results/ and build/ writable, at the paths that they have outside, so that its
messages are true here, too; no network, no capability, the user who started it, and the GPU only if it uses one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduce import ROOT, process
from reproduce.image import NAME, Image
from reproduce.machine import Need, gpu_numbers
from reproduce.steps import STEPS

PROJECT_LABEL = f"{NAME}.project"
# Of the environment, a step sees these: the container has its own PATH, home and toolchain.
PASSED_ON = ("NO_COLOR", "FORCE_COLOR", "CI", "TERM", "COLORTERM")
PYTHON = "/opt/sala-image/venv/bin/python"
LOCKS = ROOT / "build" / "locks"  # the same folder for every runner


class RequestError(Exception):
    """No container can do what is asked for; the message says why, and what to do."""


@dataclass(frozen=True)
class Request:
    """What a step asks for: ``gpus`` as the engine's device ids, ``arguments`` as the step gets them in there."""

    step: str
    arguments: tuple[str, ...]
    results: Path
    writable: tuple[Path, ...]
    gpus: tuple[str, ...]
    profiles: bool


def read_request(step: str, arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Request:
    """Takes from the command line what decides about mounts and GPUs. Raises RequestError for what cannot be mounted.

    A container numbers the GPUs that it is given from 0: one is the default there, several are numbered anew.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--results")
    parser.add_argument("--out")
    parser.add_argument("--gpu")
    try:
        known, rest = parser.parse_known_args(list(arguments))
    except argparse.ArgumentError as error:
        raise RequestError(str(error)) from None
    results = Path(known.results or environment.get("RESULTS") or ROOT / "results").resolve()
    words, writable = [*rest, "--results", str(results)], [results]
    if known.out:
        out = Path(known.out).resolve()
        words += ["--out", str(out)]
        writable.append(out if step == "report" else out.parent)
    gpus = _gpus(step, known.gpu or environment.get("GPU") or "")
    if len(gpus) > 1:
        words += ["--gpu", ",".join(str(number) for number in range(len(gpus)))]
    for path in writable:
        if path == ROOT or path in ROOT.parents:
            raise RequestError(f"{path} holds the project, which a step must not change: choose another folder")
    return Request(step, tuple(words), results, tuple(writable), gpus, bool(gpus) and _uses(step, Need.NCU))


def _uses(step: str, need: Need) -> bool:
    if step == "all":
        return any(each.uses(need) for each in STEPS.values())
    return step in STEPS and STEPS[step].uses(need)


def _gpus(step: str, chosen: str) -> tuple[str, ...]:
    """GPUs to ask the engine for: those chosen, else the first if this machine has one and the step uses it."""
    try:
        numbers = gpu_numbers(chosen, f"--gpu or GPU={chosen}") if chosen else []
    except ValueError as error:
        raise RequestError(str(error)) from None
    if not (_uses(step, Need.GPU) or step == "doctor"):
        return ()
    if numbers:
        return tuple(numbers)
    return ("0",) if shutil.which("nvidia-smi") or Path("/dev/nvidiactl").exists() else ()


# --------------------------------------------------------------------------------------------------------------
# What the engine is told


def settings(
    request: Request, image: Image, name: str, *, rootless: bool, environment: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Everything that the container is created with, as the Docker SDK takes it."""
    from docker.types import DeviceRequest, LogConfig, Mount

    user = "0:0" if rootless else f"{os.getuid()}:{os.getgid()}"
    command = [PYTHON, "-m", "reproduce", request.step, *request.arguments]
    capabilities: list[str] = []
    if request.profiles and environment.get("SALA_PROFILING") == "1":
        # Capabilities do not reach a user other than root by themselves: setpriv keeps this one, and gives up the rest.
        capabilities = ["SYS_ADMIN", "SETUID", "SETGID", "SETPCAP"]
        command = [*_as_user(user), *command]
        user = "0:0"
    terminal = sys.stdout.isatty()
    return {
        "image": image.id,
        "name": name,
        "command": command,
        "labels": {PROJECT_LABEL: str(ROOT)},
        "working_dir": str(ROOT),
        "user": user,
        "environment": _environment(image, terminal, environment),
        "mounts": [
            Mount(str(place), str(source), type="bind", read_only=not writable)
            for place, (source, writable) in _mounts(request, image, environment).items()
        ],
        "tmpfs": {"/tmp": "rw,exec,nosuid,nodev,mode=1777"},
        "read_only": True,
        "network_mode": "none",
        "cap_drop": ["ALL"],
        "cap_add": capabilities,
        "security_opt": ["no-new-privileges"],
        "device_requests": [DeviceRequest(device_ids=list(request.gpus), capabilities=[["gpu", "compute", "utility"]])]
        if request.gpus
        else [],
        "ipc_mode": "private",
        "init": True,
        "tty": terminal,
        "log_config": LogConfig(type="none"),  # the output is kept in the results
        "detach": True,
    }


def _as_user(user: str) -> list[str]:
    uid, gid = user.split(":")
    kept = ["--inh-caps=-all,+sys_admin", "--ambient-caps=-all,+sys_admin", "--bounding-set=-all,+sys_admin"]
    return ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *kept]


def _environment(image: Image, terminal: bool, outside: Mapping[str, str]) -> dict[str, str]:
    inside = {name: outside[name] for name in PASSED_ON if outside.get(name)}
    size = shutil.get_terminal_size()
    if terminal or "COLUMNS" in outside:
        inside |= {"COLUMNS": str(size.columns), "LINES": str(size.lines)}
    if outside.get("CHOREO"):
        inside["CHOREO"] = str(_program(outside["CHOREO"]))
    if outside.get("CUTLASS_HOME"):
        inside["CUTLASS_HOME"] = str(Path(outside["CUTLASS_HOME"]).resolve())
    return {
        **inside,
        "HOME": "/tmp",
        "USER": "sala",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        # The two lines of provenance that only the runner knows.
        "SALA_RUNNER": "docker",
        "SALA_IMAGE": f"{image.tag} {image.id}",
    }


def _mounts(request: Request, image: Image, outside: Mapping[str, str]) -> dict[Path, tuple[Path, bool]]:
    """Place in the container → (folder here, writable); what lies in another follows it."""
    build = ROOT / "build"
    mounts = {
        ROOT: (ROOT, False),
        # Programs link to libraries of where they are compiled: an image has a build folder of its own.
        build: (build_folder(image), True),
        LOCKS: (LOCKS, True),
    }
    mounts |= {path: (path, True) for path in request.writable}
    if outside.get("CHOREO"):
        folder = _mountable(_program(outside["CHOREO"]).parent, "CHOREO")
        mounts.setdefault(folder, (folder, False))
    if outside.get("CUTLASS_HOME"):
        folder = _mountable(Path(outside["CUTLASS_HOME"]).resolve(), "CUTLASS_HOME")
        mounts.setdefault(folder, (folder, False))
    for folder in _git_folders():
        mounts.setdefault(folder, (folder, False))
    return dict(sorted(mounts.items()))


def build_folder(image: Image) -> Path:
    return ROOT / "build" / f"image-{image.id.removeprefix('sha256:')[:12]}"


def _program(text: str) -> Path:
    found = shutil.which(text)
    if found is None:
        raise RequestError(f"CHOREO={text}: there is no such program")
    return Path(found).resolve()


_SYSTEM = ("/", "/bin", "/sbin", "/lib", "/lib64", "/usr", "/etc", "/opt", "/opt/sala-image", "/home", "/root", "/tmp")


def _mountable(folder: Path, variable: str) -> Path:
    """A folder of another program's; one that would hide the image's own programs is refused."""
    if str(folder) in _SYSTEM or str(folder).startswith(("/usr/", "/proc", "/sys", "/dev")):
        raise RequestError(
            f"{variable} is in {folder}, which cannot be mounted over the container's own: "
            "install it in a folder of its own, or run on this machine with --runner host"
        )
    return folder


def _git_folders() -> list[Path]:
    """Of a linked worktree: where its history is."""
    if not (ROOT / ".git").is_file():
        return []
    found = process.run(["git", "-C", ROOT, "rev-parse", "--path-format=absolute", "--git-common-dir"], timeout_s=10)
    return [Path(found.stdout.strip())] if found.ok else []
