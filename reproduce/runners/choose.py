"""Which runner this machine uses, and why."""

from __future__ import annotations

import os
from collections.abc import Callable

from reproduce import engine
from reproduce.runners import Runner
from reproduce.runners.host import HostRunner


class ChoiceError(Exception):
    """The runner that was asked for cannot be had; the message says what to do."""


def choose(wanted: str = "") -> Runner:
    """The runner called ``wanted``, else the one of $RUNNER, else containers if they are ready, else this machine.

    Raises ChoiceError if the one that was asked for cannot be had: another would measure something else.
    """
    name = wanted_runner(wanted)
    if not name:
        return _automatic()
    return RUNNERS[name](f"--runner {name}" if wanted else f"RUNNER={name}")


def wanted_runner(wanted: str = "") -> str:
    """The name of the runner that the command line or $RUNNER asks for; empty if neither does."""
    wanted = wanted or os.environ.get("RUNNER", "")
    if wanted and wanted not in RUNNERS:
        raise ChoiceError(f"there is no runner `{wanted}`: --runner and RUNNER take {', '.join(RUNNERS)}")
    return wanted


def _host(because: str) -> Runner:
    return HostRunner(f"steps run on this machine: {because}")


def _docker(because: str) -> Runner:
    try:
        return _containers(engine.connect(), because)
    except engine.EngineError as error:
        raise ChoiceError(f"no containers: {error}; or run on this machine: --runner host") from None


def _containers(found: engine.Engine, because: str) -> Runner:
    from reproduce import image
    from reproduce.runners.docker import DockerRunner

    made = image.find(found)
    return DockerRunner(found, made, f"steps run in containers of {made.tag}: {because}")


def _automatic() -> Runner:
    if engine.address() is None:
        return _host("no Docker engine here")
    try:
        found = engine.connect()
        if found.podman:
            return _host("the engine is Podman, which ignores requests for GPUs")
        return _containers(found, f"Docker {found.version} answers")
    except engine.EngineError as error:
        return _host(str(error))


def _slurm(because: str) -> Runner:
    from reproduce.runners.slurm import SlurmRunner

    try:
        return SlurmRunner.from_environment(why=f"steps run as Slurm jobs: {because}")
    except ValueError as error:
        raise ChoiceError(str(error)) from None


# Every runner by the name that --runner and $RUNNER give it; each gets why it was asked for.
RUNNERS: dict[str, Callable[[str], Runner]] = {"docker": _docker, "host": _host, "slurm": _slurm}
