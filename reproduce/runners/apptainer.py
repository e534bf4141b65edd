"""The command that runs a step in an Apptainer image: what the container runner does, on nodes that have no Docker."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from reproduce.results import write_atomically

PROGRAMS = ("apptainer", "singularity")
# Of the environment, a step sees these: the container has its own PATH, home and libraries.
PASSED_ON = (
    *("GPU", "CUDA_VISIBLE_DEVICES", "CHOREO", "NCU", "CUTLASS_HOME", "COLUMNS", "NO_COLOR", "CI"),
    *("SALA_RUNNER", "SALA_IMAGE"),  # provenance
)


def program() -> str | None:
    """Apptainer, or Singularity, whose command line it shares; None if this machine has neither."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


def digest(image: Path, kept: Path) -> str:
    """SHA-256 of an image, which has gigabytes: remembered in the folder ``kept`` for the file as it is."""
    state = image.stat()
    known = hashlib.sha256(f"{image} {state.st_size} {state.st_mtime_ns}".encode()).hexdigest()[:16]
    place = kept / f"image-{known}.sha256"
    if place.exists():
        return place.read_text(encoding="utf-8").strip()
    found = hashlib.sha256()
    with image.open("rb") as file:
        while block := file.read(1 << 22):
            found.update(block)
    write_atomically(place, f"{found.hexdigest()}\n")
    return found.hexdigest()


def check_paths(*paths: Path) -> None:
    """Raises ValueError for a path that a bind option cannot express."""
    for path in paths:
        if any(character in str(path) for character in ":,\n"):
            raise ValueError(f"{path}: a folder with a colon or a comma in its name cannot be mounted in a container")


def argv(
    program: str, image: Path, command: Sequence[str], *, root: Path, results: Path, scratch: Path, gpu: bool
) -> list[str]:
    """``command`` in the image: the project read-only, results/ and build/ writable, all at the paths that they have
    outside; an empty home, no network, /tmp in ``scratch``, and the GPU only for a step that uses one.
    """
    build = root / "build"
    check_paths(root, results, scratch)
    words = [program, "exec", *(["--nv"] if gpu else []), "--containall", "--net", "--network", "none"]
    for path in (f"{root}:{root}:ro", f"{build}:{build}:rw", f"{results}:{results}:rw", f"{scratch}:/tmp:rw"):
        words += ["--bind", path]
    return [*words, "--pwd", str(root), str(image), *command]


def environment(program: str, root: Path, outside: Mapping[str, str]) -> dict[str, str]:
    """Environment of ``program`` that sets the step's in the container: a prefix for each variable, no quoting."""
    prefix = "SINGULARITYENV_" if Path(program).name == "singularity" else "APPTAINERENV_"
    inside = {name: outside[name] for name in PASSED_ON if name in outside}
    inside |= {"PYTHONPATH": str(root), "TRITON_CACHE_DIR": "/tmp/triton"}  # the empty home is small
    return {f"{prefix}{name}": value for name, value in inside.items()}
