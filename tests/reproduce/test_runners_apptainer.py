"""The command that runs a step in an Apptainer image."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from reproduce.runners import apptainer

ROOT, RESULTS, SCRATCH = Path("/project"), Path("/results"), Path("/project/build/slurm/tmp-1")


def command(gpu: bool = True) -> list[str]:
    words = ["python", "-m", "reproduce", "fa; id"]
    return apptainer.argv(
        "/usr/bin/apptainer", Path("/a b.sif"), words, root=ROOT, results=RESULTS, scratch=SCRATCH, gpu=gpu
    )


def test_the_command() -> None:
    assert command() == [
        *("/usr/bin/apptainer", "exec", "--nv", "--containall", "--net", "--network", "none"),
        *("--bind", "/project:/project:ro", "--bind", "/project/build:/project/build:rw"),
        *("--bind", "/results:/results:rw", "--bind", "/project/build/slurm/tmp-1:/tmp:rw"),
        *("--pwd", "/project", "/a b.sif", "python", "-m", "reproduce", "fa; id"),
    ]
    assert "--nv" not in command(gpu=False)


def test_the_environment_is_set_by_prefix() -> None:
    outside = {"GPU": "1", "CHOREO": "a,b 'c'", "HOME": "/home/x", "PATH": "/bin"}
    inside = {"GPU": "1", "CHOREO": "a,b 'c'", "PYTHONPATH": "/project", "TRITON_CACHE_DIR": "/tmp/triton"}
    for program, prefix in (("/usr/bin/apptainer", "APPTAINERENV_"), ("singularity", "SINGULARITYENV_")):
        found = apptainer.environment(program, ROOT, outside)
        assert found == {prefix + name: value for name, value in inside.items()}


def test_an_images_digest_is_that_of_the_file_as_it_is(tmp_path: Path) -> None:
    image = tmp_path / "sala.sif"
    for content in (b"one", b"other"):
        image.write_bytes(content)
        wanted = hashlib.sha256(content).hexdigest()
        assert [apptainer.digest(image, tmp_path / "kept") for _ in range(2)] == [wanted, wanted]
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_folders_that_no_option_can_name() -> None:
    with pytest.raises(ValueError, match="cannot be mounted"):
        apptainer.check_paths(Path("/a:b"))


def test_which_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert apptainer.program() is None
    for name in ("singularity", "apptainer"):  # apptainer comes first if there are both
        (tmp_path / name).touch(0o755)
        assert apptainer.program() == str(tmp_path / name)
