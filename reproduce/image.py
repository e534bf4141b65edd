"""The image in which steps run: what it is made from, how it is called, and how it is built.

Its tag is a digest of the recipe, so that an image made from another state of ``docker/`` is noticed.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduce import ROOT
from reproduce.engine import Engine, EngineError, explain

NAME = "sala-reproduction"
DOCKERFILE = "docker/Dockerfile"
TORCH_LABEL = f"{NAME}.torch"

# What networks need to reach package indexes. The engine knows the proxy variables without being told by the recipe.
_PASSED_ON = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_LAST_LINES = 15
BUILD_LIMIT_S = 3600.0  # between two lines of output


class BuildError(Exception):
    """No image was made; the message says at which step, with the last lines of its output, and what to do."""


@dataclass(frozen=True)
class Image:
    """``id`` is the engine's digest of the image, ``size`` in bytes."""

    id: str
    tag: str
    size: int
    torch: bool


def recipe(root: Path = ROOT) -> dict[str, bytes]:
    """The files that an image is made from, by their path in the build context."""
    places = [root / DOCKERFILE, root / "docker" / "install.sh", *sorted((root / "docker").glob("*.txt"))]
    places.append(root / "reproduce" / "requirements.txt")
    return {place.relative_to(root).as_posix(): place.read_bytes() for place in places}


def tag(root: Path = ROOT) -> str:
    """The name of the image of this state of the recipe, ``sala-reproduction:<digest>``."""
    digest = hashlib.sha256()
    for name, contents in sorted(recipe(root).items()):
        digest.update(f"{name}\0{len(contents)}\0".encode() + contents)
    return f"{NAME}:{digest.hexdigest()[:12]}"


def default_base(root: Path = ROOT) -> str:
    """The base image that the Dockerfile names."""
    found = re.search(r"^ARG BASE_IMAGE=(\S+)$", (root / DOCKERFILE).read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise BuildError(f"{DOCKERFILE} has no line `ARG BASE_IMAGE=…`")
    return found[1]


def find(engine: Engine, root: Path = ROOT) -> Image:
    """The image of this state of the recipe; raises EngineError if there is none, or only an older one."""
    import docker

    name = tag(root)
    try:
        return _image(engine.client.images.get(name), name)
    except docker.errors.ImageNotFound:
        older = engine.client.images.list(NAME)
    except Exception as error:
        raise EngineError(explain(error)) from None
    if older:
        raise EngineError("the image is older than docker/: run `./ae build`")
    raise EngineError("the image is not there: run `./ae build`")


def _image(found: Any, name: str) -> Image:
    labels = found.labels or {}
    return Image(found.id, name, int(found.attrs["Size"]), labels.get(TORCH_LABEL) != "0")


def build(
    engine: Engine,
    progress: Callable[[str], None],
    *,
    base: str = "",
    extra_ca: str = "",
    torch: bool = True,
    network: str = "",
    root: Path = ROOT,
    environment: Mapping[str, str] = os.environ,
) -> Image:
    """Builds the image; ``progress`` gets every line of the engine's. Raises BuildError, and leaves no containers."""
    base, name = base or default_base(root), tag(root)
    arguments = {key: environment[key] for key in (*_PASSED_ON, *_PROXIES) if environment.get(key)}
    arguments |= {"BASE_IMAGE": base, "WITH_TORCH": "1" if torch else "0"}
    lines: deque[str] = deque(maxlen=_LAST_LINES)
    step, context = "", _context(root, extra_ca)
    try:
        stream = engine.client.api.build(
            fileobj=context,
            custom_context=True,
            dockerfile=DOCKERFILE,
            tag=name,
            buildargs=arguments,
            labels={TORCH_LABEL: arguments["WITH_TORCH"], f"{NAME}.base": base},
            network_mode=network or None,
            rm=True,
            forcerm=True,
            decode=True,
            timeout=BUILD_LIMIT_S,
        )
        for line in _lines(stream):
            if line.startswith("Step "):
                step = line
                lines.clear()
            lines.append(line)
            progress(line)
        return find(engine, root)
    except _FailedError as error:
        raise BuildError(_failure(str(error), step, list(lines), base)) from None
    except EngineError as error:
        raise BuildError(str(error)) from None
    except Exception as error:  # the SDK lets those of requests and urllib3 through
        raise BuildError(explain(error)) from None


class _FailedError(Exception):
    """What the engine says of a build that failed."""


def _lines(stream: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Lines of the build; of a download, which reports each layer many times a second, one line per state."""
    seen = set()
    for event in stream:
        if "error" in event:
            raise _FailedError(str(event["error"]))
        text = str(event.get("stream", ""))
        if "status" in event:
            text = f"{event.get('id', '')} {event['status']}".strip()
            if text in seen:
                continue
            seen.add(text)
        yield from filter(None, (line.rstrip() for line in text.splitlines()))


def _failure(error: str, step: str, lines: list[str], base: str) -> str:
    missing = ("pull access denied", "manifest unknown", "manifest for", "not found: ", "repository does not exist")
    if step.split(" : ")[-1].startswith("FROM") or any(text in error for text in missing):
        return (
            f"the base image {base} cannot be had: {error}\n"
            "Check the network and the name; --base-image NAME takes one that the engine has or can pull "
            "(any Debian or Ubuntu image works: nvcc comes from PyPI where the base image has none)."
        )
    output = "\n".join(f"    {line}" for line in lines)
    advice = ""
    if re.search(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|SSLError", output, re.IGNORECASE):
        advice = "\nThis network intercepts TLS: pass its CA certificate with --extra-ca FILE."
    elif re.search(r"Temporary failure|Could not resolve|NewConnectionError|No matching distribution", output):
        advice = (
            "\nThe build cannot reach a package index: set HTTP_PROXY and HTTPS_PROXY, or PIP_INDEX_URL for a mirror, "
            "or use this machine's network with --network host."
        )
    elif "no space left on device" in error + output:
        advice = "\nThe engine's disk is full: docker system df shows what takes it, docker system prune frees it."
    return f"the build failed at: {step}\n{output}\n{error}{advice}"


def _context(root: Path, extra_ca: str) -> io.BytesIO:
    """The build context: the recipe alone, and the certificate."""
    files = {**recipe(root), "docker/extra-ca/.keep": b""}
    if extra_ca:
        certificate = Path(extra_ca).read_bytes()
        if b"-----BEGIN CERTIFICATE-----" not in certificate:
            raise BuildError(f"{extra_ca} is no certificate in PEM format (-----BEGIN CERTIFICATE-----)")
        files["docker/extra-ca/extra.crt"] = certificate
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, contents in sorted(files.items()):
            entry = tarfile.TarInfo(name)  # owner 0, time 0: the engine's cache sees contents alone
            entry.size, entry.mode = len(contents), 0o644
            archive.addfile(entry, io.BytesIO(contents))
    packed.seek(0)
    return packed


def summary(image: Image, started: float) -> str:
    """``image sala-reproduction:… (sha256:…), 12.3 GB, made in 4 min 10 s``."""
    seconds = time.monotonic() - started
    took = f"{seconds:.0f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"
    return f"image {image.tag} ({image.id[:19]}), {image.size / 1e9:.1f} GB, made in {took}"
