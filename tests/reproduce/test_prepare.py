"""`./ae build` without an engine: this machine is prepared, and what could not be had is said."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from reproduce import engine, image, prepare
from reproduce.prepare import Wishes
from reproduce.provision import ProvisionError
from reproduce.runners.choose import ChoiceError


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What the host is told to install; no engine answers."""
    asked: list[str] = []
    monkeypatch.delenv("RUNNER", raising=False)
    monkeypatch.setattr(prepare, "ROOT", tmp_path)
    monkeypatch.setattr(prepare, "ensure_nvcc", lambda: asked.append("nvcc") or "13.0.88")
    monkeypatch.setattr(prepare, "ensure_triton", lambda: asked.append("triton"))
    monkeypatch.setattr(prepare.headers, "find", lambda build: asked.append("cutlass") or "CUTLASS 4.5.0")
    monkeypatch.setattr(prepare.engine, "connect", _none)
    return asked


def _none() -> engine.Engine:
    raise engine.EngineError("no Docker engine on this machine")


def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def text(to: Console) -> str:
    assert isinstance(to.file, io.StringIO)
    return to.file.getvalue()


def test_without_an_engine_this_machine_is_prepared_and_it_says_so(host: list[str]) -> None:
    to = console()
    assert prepare.prepare("", Wishes(), to) == 0 and host == ["nvcc", "triton", "cutlass"]
    assert "no image is built: no Docker engine on this machine" in text(to)
    assert "nvcc 13.0.88 is ready" in text(to) and "no step needs a network now\n" in text(to)


def test_what_is_not_wanted_is_left_out(host: list[str]) -> None:
    to = console()
    assert prepare.prepare("host", Wishes(torch=False), to) == 0 and host == ["nvcc", "cutlass"]
    assert "no step needs a network now, except for Table 2's Triton rows" in text(to)


def test_an_image_that_was_asked_for_is_not_replaced(host: list[str]) -> None:
    with pytest.raises(ChoiceError, match="no image was built: no Docker engine"):
        prepare.prepare("docker", Wishes(), console())
    assert not host


def test_what_cannot_be_had_is_said(
    host: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> str:
        raise ProvisionError("nvcc could not be installed. Connect this machine to PyPI")

    monkeypatch.setattr(prepare, "ensure_nvcc", fails)
    assert prepare.prepare("host", Wishes(), console()) == 1
    assert "Connect this machine to PyPI" in capsys.readouterr().err


def test_a_build_shows_its_steps_and_what_it_made(host: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def build(found: object, progress: object, **options: object) -> image.Image:
        assert callable(progress) and options["network"] == "host" and options["torch"] is False
        for line in ("Step 1/2 : FROM x", "  a thousand lines", "Step 2/2 : RUN y"):
            progress(line)
        return image.Image("sha256:0123456789abcdef", "sala-reproduction:abc", 12_300_000_000, False)

    monkeypatch.setattr(prepare.engine, "connect", lambda: SimpleNamespace())
    monkeypatch.setattr(prepare.image, "build", build)
    to = console()
    assert prepare.prepare("", Wishes(torch=False, network="host"), to) == 0 and not host
    assert "Step 2/2 : RUN y" in text(to) and "a thousand lines" not in text(to)
    assert "image sala-reproduction:abc (sha256:0123456789ab), 12.3 GB, made in 0 s" in text(to)


def test_a_certificate_that_is_not_there(
    host: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api = SimpleNamespace(build=lambda **options: iter([]))
    monkeypatch.setattr(prepare.engine, "connect", lambda: SimpleNamespace(client=SimpleNamespace(api=api)))
    assert prepare.prepare("", Wishes(extra_ca="/no/such.pem"), console()) == 2
    assert "cannot read or write /no/such.pem: No such file or directory" in capsys.readouterr().err
