"""The image's recipe: what it is made from, its name, and what a failed build says. Real builds: tests/engine."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reproduce import ROOT, image, provision
from reproduce.cutlass import headers
from reproduce.engine import Engine


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the recipe, to change."""
    shutil.copytree(ROOT / "docker", tmp_path / "docker")
    (tmp_path / "reproduce").mkdir()
    shutil.copy(ROOT / "reproduce" / "requirements.txt", tmp_path / "reproduce")
    return tmp_path


def engine_that_says(*events: dict[str, Any]) -> Engine:
    calls: list[dict[str, Any]] = []
    api = SimpleNamespace(build=lambda **options: calls.append(options) or iter(events))
    client = SimpleNamespace(api=api, calls=calls)
    return Engine(client, "unix://test", "1", podman=False, rootless=False)


def failure(*events: dict[str, Any], **options: Any) -> str:
    with pytest.raises(image.BuildError) as caught:
        image.build(engine_that_says(*events), lambda line: None, environment={}, **options)
    return str(caught.value)


def test_the_tag_changes_with_every_file_of_the_recipe(project: Path) -> None:
    tags = {image.tag(project)}
    names = list(image.recipe(project))
    assert {"docker/Dockerfile", "docker/install.sh", "reproduce/requirements.txt"} <= set(names)
    for name in names:
        (project / name).write_text((project / name).read_text() + "\n# changed\n")
        tags.add(image.tag(project))
    assert len(tags) == len(names) + 1 and all(re.fullmatch(r"sala-reproduction:[0-9a-f]{12}", tag) for tag in tags)
    (project / "docker" / "README.md").write_text("other words")
    assert image.tag(project) in tags


def test_docker_and_apptainer_use_the_same_base_and_script() -> None:
    dockerfile, definition = ((ROOT / "docker" / name).read_text() for name in ("Dockerfile", "sala.def"))
    script = "/opt/sala-image/recipe/docker/install.sh"
    stages = re.findall(rf'^RUN \["/bin/bash", "{script}", "(\w+)"\]$', dockerfile, re.MULTILINE)
    installing = (ROOT / "docker" / "install.sh").read_text()
    assert f"all) {'; '.join(stages)} ;;" in installing and f"/bin/bash {script} all" in definition
    assert f"From: {image.default_base()}\n" in definition and image.default_base().startswith("nvidia/cuda:13.0.")
    # Nothing is installed past the script, and no syntax is used that the classic builder lacks.
    assert len(re.findall(r"^RUN ", dockerfile, re.MULTILINE)) == len(stages) and "<<" not in dockerfile
    wanted = re.search(r"PATH=(\S+)", dockerfile)
    assert wanted and f"export PATH={wanted[1]}\n" in definition


def test_the_pins_are_those_of_the_host() -> None:
    def pins(name: str) -> list[str]:
        lines = (ROOT / "docker" / name).read_text().splitlines()
        return [line for line in lines if line and not line.startswith("#")]

    assert pins("requirements-cuda.txt") == [provision.CUDA_WHEELS]
    assert provision.TRITON_WHEEL in pins("requirements-torch.txt")
    assert all("==" in line for name in ("requirements-torch.txt", "constraints.txt") for line in pins(name))
    assert pins("wheels.txt") == [headers._REQUIREMENT]


def test_every_requirement_is_pinned_in_the_image() -> None:
    lines = (ROOT / "reproduce" / "requirements.txt").read_text().splitlines()
    pinned = (ROOT / "docker" / "constraints.txt").read_text().lower()
    for line in lines:
        if line and not line.startswith("#") and "==" not in line:
            name = re.split(r"[<>=;\[ ]", line)[0]
            assert f"\n{name.lower()}==" in pinned, line


def test_the_script_is_one_that_bash_reads() -> None:
    subprocess.run(["bash", "-n", str(ROOT / "docker" / "install.sh")], check=True)
    wrong = subprocess.run(["bash", str(ROOT / "docker" / "install.sh"), "nonsense"], capture_output=True, text=True)
    assert wrong.returncode == 1 and "usage: install.sh" in wrong.stderr


def test_the_context_is_the_recipe_and_the_certificate_alone(project: Path, tmp_path: Path) -> None:
    certificate = tmp_path / "ca.pem"
    certificate.write_text("-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n")
    with tarfile.open(fileobj=image._context(project, str(certificate))) as archive:
        names = set(archive.getnames())
    assert names == {*image.recipe(project), "docker/extra-ca/.keep", "docker/extra-ca/extra.crt"}
    (tmp_path / "no.pem").write_text("hello")
    with pytest.raises(image.BuildError, match="no certificate in PEM format"):
        image._context(project, str(tmp_path / "no.pem"))


def test_settings_of_the_network_are_passed_on() -> None:
    engine = engine_that_says({"error": "stop"})
    environment = {"HTTPS_PROXY": "http://proxy:3128", "PIP_INDEX_URL": "https://mirror/simple", "SECRET": "x"}
    with pytest.raises(image.BuildError):
        image.build(engine, lambda line: None, torch=False, network="host", environment=environment)
    (options,) = engine.client.calls
    assert options["buildargs"] == {
        "HTTPS_PROXY": "http://proxy:3128",
        "PIP_INDEX_URL": "https://mirror/simple",
        "BASE_IMAGE": image.default_base(),
        "WITH_TORCH": "0",
    }
    assert options["forcerm"] and options["rm"] and options["network_mode"] == "host"


def test_a_failing_step_is_named_with_its_last_lines_and_advice() -> None:
    step = {"stream": "Step 9/18 : RUN pip\n"}
    earlier = {"stream": "Step 8/18 : RUN apt\nnot of this step\n"}
    text = failure(earlier, step, {"stream": "SSLError: CERTIFICATE_VERIFY_FAILED\n"}, {"error": "returned 1"})
    assert text.startswith("the build failed at: Step 9/18 : RUN pip") and "--extra-ca FILE" in text
    assert "returned 1" in text and "not of this step" not in text
    assert "PIP_INDEX_URL" in failure(step, {"stream": "Temporary failure in name resolution\n"}, {"error": "1"})
    assert "docker system prune" in failure(step, {"error": "write: no space left on device"})
    assert "Traceback" not in failure(step, {"error": "1"})


@pytest.mark.parametrize(
    "error", ["pull access denied for x", "manifest for x:1 not found: manifest unknown", "dial tcp: no such host"]
)
def test_a_base_that_cannot_be_pulled(error: str) -> None:
    text = failure({"stream": "Step 2/18 : FROM ${BASE_IMAGE}\n"}, {"error": error}, base="x:1")
    assert text.startswith(f"the base image x:1 cannot be had: {error}") and "--base-image" in text


def test_a_download_is_a_line_per_state_of_a_layer() -> None:
    states = [{"id": "a1", "status": "Downloading", "progress": f"{n}%"} for n in range(50)]
    assert list(image._lines(iter([*states, {"id": "a1", "status": "Pull complete"}]))) == [
        "a1 Downloading",
        "a1 Pull complete",
    ]
