"""Nothing but the project's own build/ and results/ is ever removed, and never under a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from reproduce.clean import clean
from reproduce.lock import LockedError, lock


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("build/steps/programs/x.exe", "results/figure2.json", "kernels/x.co"):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * 1000)
    return tmp_path / "project"


def names(project: Path) -> list[str]:
    return sorted(path.name for path in project.iterdir())


def test_build_goes_and_results_only_when_asked(project: Path) -> None:
    assert clean(project, results=False) == ["removed build/ (0 MB)"] and names(project) == ["kernels", "results"]
    assert clean(project, results=False) == ["nothing to remove"]
    clean(project, results=True)
    assert names(project) == ["kernels"]


@pytest.mark.parametrize("held", ["results/.lock-figure2", "build/steps/.lock-gpu0", "build/steps/programs/x.lock"])
def test_not_while_a_run_uses_them(project: Path, held: str) -> None:
    with lock(project / held, "x"), pytest.raises(LockedError, match="in use by another run"):
        clean(project, results=True)
    assert names(project) == ["build", "kernels", "results"]
    clean(project, results=True)  # a lock file that nobody holds is no hindrance
    assert names(project) == ["kernels"]


def test_what_a_link_points_to_is_never_removed(project: Path, tmp_path: Path) -> None:
    """Neither a folder that is a link, nor links in a folder."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("")
    (project / "build" / "link").symlink_to(outside)
    clean(project, results=False)
    assert (outside / "mine").exists() and not (project / "build").exists()
    (project / "build").symlink_to(outside)
    with pytest.raises(ValueError, match="is a link: nothing was removed"):
        clean(project, results=True)
    assert (outside / "mine").exists() and (project / "results").exists()
