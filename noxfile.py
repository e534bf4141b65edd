"""Checks of the project. `nox` runs the default sessions; `nox -s NAME` one of them.

Sessions use the Python that runs nox if it has every requirement of pyproject.toml (nothing is installed then), and
an environment of their own otherwise.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

import nox
from packaging.requirements import Requirement

PROJECT = nox.project.load_toml("pyproject.toml")["project"]
REQUIREMENTS = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]


def _satisfied(requirement: str) -> bool:
    wanted = Requirement(requirement)
    try:
        return wanted.specifier.contains(version(wanted.name), prereleases=True)
    except PackageNotFoundError:
        return False


READY = all(_satisfied(requirement) for requirement in REQUIREMENTS)

nox.needs_version = ">=2024.4"
nox.options.default_venv_backend = "none" if READY else "virtualenv"
nox.options.sessions = ["lint", "types", "tests", "verify_exact"]


def _python(session: nox.Session, *arguments: str) -> None:
    """Runs Python of the session's environment on the project in this folder."""
    if READY:
        session.run(sys.executable, *arguments, external=True)
        return
    session.install(*REQUIREMENTS)
    session.run("python", *arguments)


@nox.session
def lint(session: nox.Session) -> None:
    """Formatting and lint."""
    _python(session, "-m", "ruff", "format", "--check", ".")
    _python(session, "-m", "ruff", "check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Static types, strict."""
    _python(session, "-m", "mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """The test suite; what needs a GPU or nvcc is skipped where there is none. Arguments go to pytest."""
    _python(session, "-m", "pytest", *(session.posargs or ["-q", "-n", "auto"]))


@nox.session
def verify_exact(session: nox.Session) -> None:
    """Exact results against expected/exact; needs no GPU and makes what is missing."""
    _python(session, "-m", "reproduce", "verify", "exact", *session.posargs)


@nox.session
def verify_timing(session: nox.Session) -> None:
    """Timed results, made before on a GPU, against the profile of that GPU in expected/timing."""
    _python(session, "-m", "reproduce", "verify", "timing", *session.posargs)


@nox.session
def soundness(session: nox.Session) -> None:
    """The engine against 100,000 random programs under many schedules. Arguments go to the campaign."""
    _python(session, "-m", "hb_analyzer.simulator.campaign", *(session.posargs or ["--programs", "100000"]))


@nox.session
def bench(session: nox.Session) -> None:
    """How long the tools take: choreo -gs and the analysis per kernel, figure2. Prints figures, judges nothing."""
    _python(session, "-m", "reproduce.bench", *session.posargs)
