"""``./ae build``: everything that steps need from a network, fetched once: as an image, or into this environment."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from reproduce import ROOT, engine, image
from reproduce.cutlass import headers
from reproduce.cutlass.errors import CutlassError
from reproduce.provision import ProvisionError, ensure_nvcc, ensure_triton
from reproduce.runners.choose import ChoiceError, wanted_runner


@dataclass(frozen=True)
class Wishes:
    """What the command line says: the base image (else the Dockerfile's), a CA certificate's file, whether the image
    has torch and Triton, and the network mode of the build ("host", else the engine's own).
    """

    base_image: str = ""
    extra_ca: str = ""
    torch: bool = True
    network: str = ""


def prepare(runner: str, wishes: Wishes, to: Console) -> int:
    """Builds the image if an engine answers, else prepares this machine; returns the exit status."""
    wanted = wanted_runner(runner)
    if wanted in ("", "docker"):
        try:
            found = engine.connect()
        except engine.EngineError as error:
            if wanted:
                raise ChoiceError(f"no image was built: {error}") from None
            to.print(Text(f"no image is built: {error}"))
        else:
            return _build(found, wishes, to)
    return _prepare_host(wishes, to)


def _build(found: engine.Engine, wishes: Wishes, to: Console) -> int:
    base = wishes.base_image or image.default_base()
    log = ROOT / "build" / "image.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    to.print(Text(f"building {image.tag()} on {base} (the whole output: {log.relative_to(ROOT)})"))
    try:
        with log.open("w", encoding="utf-8") as file, to.status("") as status:

            def progress(line: str) -> None:
                print(line, file=file, flush=True)
                if line.startswith("Step "):
                    to.print(Text(f"  {time.monotonic() - started:5.0f} s  {line}"))
                status.update(Text(line[: max(20, to.width - 4)]))

            built = image.build(
                found,
                progress,
                base=wishes.base_image,
                extra_ca=wishes.extra_ca,
                torch=wishes.torch,
                network=wishes.network,
            )
    except image.BuildError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cannot read or write {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    to.print(Text(image.summary(built, started)))
    to.print(Text("steps now run in containers; none of them needs a network"))
    return 0


def _prepare_host(wishes: Wishes, to: Console) -> int:
    """What steps would fetch themselves when they first need it."""
    status = 0
    try:
        to.print(Text(f"nvcc {ensure_nvcc()} is ready"))
        if wishes.torch:
            ensure_triton()
            to.print(Text("Triton is ready"))
        to.print(Text(f"{headers.find(ROOT / 'build' / 'steps' / 'cutlass')} is ready"))
    except (ProvisionError, CutlassError) as error:
        print(error, file=sys.stderr)
        status = 1
    later = "" if wishes.torch else ", except for Table 2's Triton rows, which install Triton"
    to.print(Text("this machine is prepared in part" if status else f"no step needs a network now{later}"))
    return status
