"""What runs on the node, without a Slurm: `apptainer` is a program that runs what is inside as the real one would."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reproduce import ROOT, results
from reproduce.choreo import Choreo
from reproduce.runners.slurm_job import SlurmJob

# Runs the command after the image, in the folder of --pwd, with nothing of the environment but what is passed on.
STUB = """#!{python}
import json, os, pathlib, sys
words = sys.argv[1:]
image = next(i for i, word in enumerate(words) if word.endswith(".sif"))
environment = {{"PATH": {path!r}}}
environment |= {{k.removeprefix("APPTAINERENV_"): v for k, v in os.environ.items() if k.startswith("APPTAINERENV_")}}
pathlib.Path({record!r}).write_text(json.dumps([words, environment]))
os.chdir(words[words.index("--pwd") + 1])
os.execvpe(words[image + 1], words[image + 1:], environment)
"""


@pytest.fixture
def stub_apptainer(tmp_path: Path) -> Callable[[], tuple[Path, Callable[[], tuple[list[str], dict[str, str]]]]]:
    """Makes the stand-in; returns the folder for PATH, and a function that reads its last command and environment."""

    def make() -> tuple[Path, Callable[[], tuple[list[str], dict[str, str]]]]:
        folder, record = tmp_path / "programs", tmp_path / "apptainer.json"
        folder.mkdir()
        path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/bin", "/bin"))
        (folder / "apptainer").write_text(STUB.format(python=sys.executable, path=path, record=str(record)))
        (folder / "apptainer").chmod(0o755)
        return folder, lambda: json.loads(record.read_text())

    return make


def test_in_an_image(make_choreo, stub_apptainer, tmp_path: Path, monkeypatch, capfd) -> None:  # type: ignore[no-untyped-def]
    choreo: Choreo = make_choreo()
    folder, last = stub_apptainer()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CHOREO", choreo.command[0])
    monkeypatch.setenv("SECRET", "x")
    place = tmp_path / "results"
    job = SlurmJob("figure2", ("--results", str(place)), place, 60, image=tmp_path / "sala.sif")
    assert job() == 0
    words, environment = last()
    assert words[:3] == ["exec", "--containall", "--net"] and f"{ROOT}:{ROOT}:ro" in words
    assert environment.keys() - {"PATH"} >= {"CHOREO", "PYTHONPATH"} and "SECRET" not in environment
    document = results.load(place, "figure2")
    assert document is not None and document.complete
    assert "Figure 2" in capfd.readouterr().out
    scratch = next(word for word in words if word.endswith(":/tmp:rw")).removesuffix(":/tmp:rw")
    assert not Path(scratch).exists()


def test_no_apptainer_on_the_node(tmp_path: Path, monkeypatch, capfd) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("PATH", "/nowhere")
    assert SlurmJob("figure2", (), tmp_path, 60, image=tmp_path / "sala.sif")() == 2
    assert "neither apptainer nor singularity" in capfd.readouterr().err


def test_the_gpu_is_the_one_that_slurm_gave(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("reproduce.runners.slurm_job.SlurmJob._here", lambda self: 0)
    for visible, before, after in (("3,4", "0", "3"), ("", "1", None), ("MIG-x", "1", None)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        monkeypatch.setenv("GPU", before)
        SlurmJob("fa", (), tmp_path, 60)()
        assert os.environ.get("GPU") == after
