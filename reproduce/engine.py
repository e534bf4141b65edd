"""The container engine of this machine: whether one answers, and what to do about what it says.

The Docker SDK takes a third of a second to import: it is imported only where an engine's socket is known.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# An engine that is there answers at once; one that hangs must not keep every command waiting.
ANSWER_S = 10
# Starting a container may take longer: a GPU that is initialised, a busy disk.
WORK_S = 120


class EngineError(Exception):
    """The engine cannot do it; the message says why, and what to do."""


@dataclass(frozen=True)
class Engine:
    """An engine that answers. ``rootless``: root in a container is the user who runs the engine."""

    client: Any  # docker.DockerClient, which has no types
    address: str
    version: str
    podman: bool
    rootless: bool


def address() -> str | None:
    """Where an engine would answer: $DOCKER_HOST, else the first socket that exists; None if there is neither."""
    if os.environ.get("DOCKER_HOST"):
        return os.environ["DOCKER_HOST"]
    places = [Path("/var/run/docker.sock")]
    if os.environ.get("XDG_RUNTIME_DIR"):
        places.append(Path(os.environ["XDG_RUNTIME_DIR"]) / "docker.sock")
    places.append(Path.home() / ".docker" / "run" / "docker.sock")
    return next((f"unix://{place}" for place in places if place.is_socket()), None)


def connect() -> Engine:
    """The engine of this machine; raises EngineError if none answers."""
    where = address()
    if where is None:
        raise EngineError("no Docker engine on this machine (no socket, and DOCKER_HOST is not set)")
    try:
        import docker
    except ImportError:
        raise EngineError("the Docker SDK is not installed: pip install docker") from None
    try:
        environment = {**os.environ, "DOCKER_HOST": where}
        client = docker.from_env(environment=environment, timeout=ANSWER_S)
        version, info = client.version(), client.info()
    except Exception as error:  # the SDK lets errors of requests, urllib3 and its own through
        raise EngineError(_no_answer(where, error)) from None
    client.api.timeout = WORK_S
    components = " ".join(str(component.get("Name")) for component in version.get("Components") or [])
    return Engine(
        client,
        where,
        str(version.get("Version")),
        podman="podman" in components.lower(),
        rootless=any("rootless" in str(option) for option in info.get("SecurityOptions") or []),
    )


def _no_answer(where: str, error: Exception) -> str:
    text = str(error)
    if "Permission denied" in text:
        return (
            f"the Docker engine at {where} refuses this user: join the group `docker` "
            "(sudo usermod -aG docker $USER, then log in again)"
        )
    if "No such file" in text or "Connection refused" in text:
        return f"no Docker engine answers at {where}: start it (sudo systemctl start docker), or correct DOCKER_HOST"
    return f"no Docker engine answers at {where} ({_last(text)})"


def explain(error: Exception) -> str:
    """An error of the engine in a sentence that says what to do."""
    text = str(getattr(error, "explanation", None) or error)
    if "could not select device driver" in text:
        return (
            "the engine knows no GPUs: install the NVIDIA Container Toolkit and restart the engine "
            "(nvidia-ctk runtime configure --runtime=docker), or run on this machine with --runner host"
        )
    if "nvidia-container-cli" in text or "nvidia-container-runtime" in text:
        return f"the NVIDIA Container Toolkit cannot pass the GPU on: {_last(text)}"
    if "No such image" in text:
        return "the image is not there: `./ae build` makes it"
    if "no space left on device" in text:
        return "the engine's disk is full (docker system df; docker system prune frees space)"
    if "mounts denied" in text.lower() or "file sharing" in text:
        return f"the engine may not mount this folder: share it in the engine's settings ({_last(text)})"
    if type(error).__module__.startswith(("requests", "urllib3", "http", "builtins")):
        return f"the engine no longer answers ({_last(text)})"
    return f"the engine refuses: {_last(text)}"


def _last(text: str) -> str:
    """The end of a long chain of causes says what it was."""
    line = " ".join(text.split())
    return line if len(line) < 300 else f"… {line[-300:]}"
