"""The docker runner: one container per step, in the image that ``./ae build`` makes; removed however the step ends."""

from __future__ import annotations

import contextlib
import re
import secrets
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from reproduce import ROOT
from reproduce.engine import Engine, explain
from reproduce.image import NAME, Image
from reproduce.lock import LockedError, is_held, lock
from reproduce.process import STEP_GRACE_S
from reproduce.runners import EXIT_INTERRUPTED, EXIT_TIME, EXIT_USAGE
from reproduce.runners import container as containers
from reproduce.runners.container import LOCKS, PROJECT_LABEL, Request, RequestError
from reproduce.runners.containerlog import ContainerLog
from reproduce.runners.host import interrupted_once

EXIT_ENGINE, EXIT_KILLED = 125, 137


class DockerRunner:
    """Runs the step in a container of ``image``; ``why`` says why this runner was chosen."""

    name = "docker"

    def __init__(self, engine: Engine, image: Image, why: str = "steps run in containers") -> None:
        self.engine = engine
        self.image = image
        self.why = why

    def run(self, step: str, arguments: Sequence[str], *, limit_s: float) -> int:
        """As the host runner's; 125 if the engine cannot run it or stops answering, 137 if something killed it."""
        name = f"{NAME}-{step}-{secrets.token_hex(4)}"
        try:
            request = containers.read_request(step, arguments)
            if request.gpus and self.engine.podman:
                raise RequestError(
                    "the engine is Podman, which ignores requests for GPUs: "
                    "install Docker, or run on this machine with --runner host"
                )
            make_folders(request, self.image)
            remove_leftovers(self.engine)
            with interrupted_once(), lock(lock_of(name), name):
                return self._run(request, name, limit_s)
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
        except LockedError as error:
            print(error, file=sys.stderr)
        except RequestError as error:
            print(f"{step}: {error}", file=sys.stderr)
        except OSError as error:
            print(f"{step}: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        finally:
            with contextlib.suppress(OSError):
                lock_of(name).unlink(missing_ok=True)
        return EXIT_USAGE

    def shell(self, gpu: str) -> int:
        """An interactive shell in such a container, on this terminal; returns its status."""
        from reproduce.runners import dockershell

        return dockershell.run(self, gpu)

    def _run(self, request: Request, name: str, limit_s: float) -> int:
        """Creates, follows and removes the container, whatever happens to it."""
        chosen = containers.settings(request, self.image, name, rootless=self.engine.rootless)
        container: Any = None
        try:
            container = self.engine.client.containers.create(**chosen)
            with ContainerLog(request.results / "logs" / request.step / "container.log", terminal=chosen["tty"]) as log:
                stream = container.attach(stream=True, demux=not chosen["tty"], stdout=True, stderr=True)
                reader = threading.Thread(target=log.follow, args=(stream,), daemon=True)
                container.start()
                reader.start()
                return self._follow(request.step, container, reader, limit_s)
        except Exception as error:  # the SDK lets those of requests and urllib3 through
            print(f"{request.step}: {explain(error)}", file=sys.stderr)
            return EXIT_ENGINE
        finally:
            remove(self.engine, name, container)

    def _follow(self, step: str, container: Any, reader: threading.Thread, limit_s: float) -> int:
        """Waits until the step has ended; ends it at its limit, or with this process."""
        deadline = time.monotonic() + limit_s
        try:
            while reader.is_alive():
                reader.join(0.2)
                if time.monotonic() > deadline:
                    _stop(container, reader)
                    print(
                        f"{step}: not finished after {limit_s / 60:.0f} minutes; run it again to resume",
                        file=sys.stderr,
                    )
                    return EXIT_TIME
        except KeyboardInterrupt:
            _stop(container, reader)
            return EXIT_INTERRUPTED
        try:
            status = int(container.wait(timeout=30)["StatusCode"])
            container.reload()
        except Exception as error:
            print(
                f"{step}: {explain(error)}; what was measured is kept: the same command goes on from there",
                file=sys.stderr,
            )
            return EXIT_ENGINE
        if status == EXIT_KILLED:
            out_of_memory = container.attrs["State"].get("OOMKilled")
            why = "out of memory" if out_of_memory else "by something else than this program"
            print(f"{step}: the container was killed ({why}); run it again to resume", file=sys.stderr)
        return status


def _stop(container: Any, reader: threading.Thread) -> None:
    """SIGTERM, so that the step saves what it has; SIGKILL if it does not end."""
    with contextlib.suppress(Exception):  # an engine that is gone has nothing left to stop
        container.stop(timeout=int(STEP_GRACE_S))
    reader.join(5)


def remove(engine: Engine, name: str, container: Any) -> None:
    """A container that could not start exists, too; one whose creation failed may."""
    with contextlib.suppress(Exception):
        (container or engine.client.containers.get(name)).remove(force=True)


def make_folders(request: Request, image: Image) -> None:
    """What is mounted must be there before the engine makes it, as root."""
    for folder in (*request.writable, containers.build_folder(image), LOCKS):
        folder.mkdir(parents=True, exist_ok=True)


def lock_of(name: str) -> Path:
    return LOCKS / f"{name}.lock"


def remove_leftovers(engine: Engine) -> None:
    """Removes containers of runs on this project that are dead: their lock is free, since its holder is gone."""
    for container in _ours(engine):
        place = lock_of(container.name)
        if re.fullmatch(rf"{NAME}-[\w-]+", container.name) and not is_held(place):
            with contextlib.suppress(Exception):
                container.remove(force=True)
                print(f"removed the container {container.name} of an earlier run that was killed", file=sys.stderr)
                place.unlink(missing_ok=True)


def _ours(engine: Engine) -> Iterator[Any]:
    try:
        yield from engine.client.containers.list(all=True, filters={"label": f"{PROJECT_LABEL}={ROOT}"})
    except Exception as error:
        raise RequestError(explain(error)) from None
