"""Where the CUTLASS headers come from, and what happens when they cannot be had."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from reproduce import process
from reproduce.cutlass import headers
from reproduce.cutlass.errors import CutlassError

VERSION_H = "#define CUTLASS_MAJOR {}\n#define CUTLASS_MINOR {}\n#define CUTLASS_PATCH {}\n"


def checkout(folder: Path, version: tuple[int, int, int] = (4, 3, 1)) -> Path:
    (folder / "include" / "cutlass").mkdir(parents=True)
    (folder / "include" / "cutlass" / "version.h").write_text(VERSION_H.format(*version))
    return folder


def wheel(path: Path, version: tuple[int, int, int]) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("flashinfer/data/cutlass/include/cutlass/version.h", VERSION_H.format(*version))
        archive.writestr("flashinfer/unrelated.py", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_cutlass_home_wins_over_the_pinned_release(tmp_path: Path) -> None:
    home = checkout(tmp_path / "mine")
    found = headers.find(tmp_path / "build", {"CUTLASS_HOME": str(home)})
    assert found.include == home / "include"
    assert str(found) == "CUTLASS 4.3.1 (CUTLASS_HOME)"
    assert not (tmp_path / "build").exists()


def test_a_cutlass_home_without_cutlass_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(CutlassError, match=r"has no include/cutlass/version\.h"):
        headers.find(tmp_path, {"CUTLASS_HOME": str(tmp_path)})


def test_a_version_header_without_a_version_is_refused(tmp_path: Path) -> None:
    home = checkout(tmp_path)
    (home / "include" / "cutlass" / "version.h").write_text("#define CUTLASS_MAJOR 4\n")
    with pytest.raises(CutlassError, match="CUTLASS_MINOR"):
        headers.find(tmp_path, {"CUTLASS_HOME": str(home)})


def test_the_pinned_wheel_is_unpacked_once_and_only_its_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headers, "_WHEEL_SHA256", wheel(tmp_path / headers._WHEEL, (4, 5, 0)))
    found = headers.find(tmp_path, {})
    assert found.version == headers.PINNED_VERSION
    assert [path.name for path in found.include.rglob("*.*")] == ["version.h"]

    (tmp_path / headers._WHEEL).unlink()  # kept: neither the wheel nor the network is needed again
    assert headers.find(tmp_path, {}) == found


def test_another_file_than_the_pinned_one_is_removed_and_refused(tmp_path: Path) -> None:
    wheel(tmp_path / headers._WHEEL, (4, 5, 0))
    with pytest.raises(CutlassError, match=r"has sha256 .* expected 6f8db337"):
        headers.find(tmp_path, {})
    assert not (tmp_path / headers._WHEEL).exists()


def test_a_wheel_with_another_cutlass_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "_WHEEL_SHA256", wheel(tmp_path / headers._WHEEL, (4, 4, 0)))
    with pytest.raises(CutlassError, match=r"CUTLASS 4\.4\.0, not 4\.5\.0"):
        headers.find(tmp_path, {})


def test_without_the_package_index_the_message_says_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(argv: list[str], *, timeout_s: float) -> process.Finished:
        return process.Finished(tuple(map(str, argv)), 1, "", "ERROR: No matching distribution found\n", 0.1)

    monkeypatch.setattr(process, "run", no_network)
    with pytest.raises(CutlassError, match=r"No matching distribution found.*set CUTLASS_HOME"):
        headers.find(tmp_path, {})
