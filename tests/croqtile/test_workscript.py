import os
import re
import subprocess
from pathlib import Path

import pytest

from croqtile import workscript

EXE = re.compile(r"-o (\S+\.exe)")

# Stands in for nvcc: the "program" is a script that prints what was compiled and the include it saw.
FAKE_NVCC = """#!/bin/bash
echo "chatter of the compiler"
while [ $# -gt 0 ]; do
  case "$1" in
    -o) out=$2; shift ;;
    -I*) include=${1#-I} ;;
    *.cu) source=$1 ;;
  esac
  shift
done
grep -q FAIL "$source" && exit 3
{ echo '#!/bin/bash'
  echo "cat <<'EOF'"; cat "$source" "$include/local.h"; echo EOF
  echo 'echo "arguments: $*"; exit 7'; } > "$out"
chmod +x "$out"
"""


@pytest.fixture
def nvcc(tmp_path):
    path = tmp_path / "fake nvcc"
    path.write_text(FAKE_NVCC)
    path.chmod(0o755)
    return path


def write(tmp_path: Path, source: str, co: Path | None = None, out: Path | None = None) -> Path:
    co = co or tmp_path / "kernel.co"
    co.parent.mkdir(parents=True, exist_ok=True)
    (co.parent / "local.h").write_text("header beside the source\n")
    out = out or tmp_path / "work.sh"
    out.write_text(workscript.script_text(source, co, [co.parent], str(out), {"PATH": os.environ["PATH"]}))
    return out


def run(script: Path, *arguments: str, nvcc: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "NVCC": str(nvcc)}
    return subprocess.run(["bash", script, *arguments], capture_output=True, text=True, env=env, cwd=cwd, check=False)


def test_builds_the_executable_that_it_names(tmp_path, nvcc):
    script = write(tmp_path, "the source\n")
    (exe,) = EXE.findall(script.read_text())
    assert exe.startswith("/")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = run(script, "--compile-link", nvcc=nvcc, cwd=elsewhere)
    assert (done.returncode, done.stdout) == (0, "")
    assert "chatter of the compiler" in done.stderr
    assert os.access(exe, os.X_OK)
    assert list(elsewhere.iterdir()) == []


def test_execute_builds_and_passes_everything_through(tmp_path, nvcc):
    script = write(tmp_path, "the source\n")
    done = run(script, "--execute", "--skip-verify", "two words", nvcc=nvcc)
    wanted = "the source\nheader beside the source\narguments: --skip-verify two words\n"
    assert (done.returncode, done.stdout) == (7, wanted)
    # A second run does not build again: this nvcc would fail.
    assert run(script, "--execute", nvcc=Path("/bin/true")).returncode == 7


def test_execute_builds_again_after_the_script_has_changed(tmp_path, nvcc):
    script = write(tmp_path, "first\n")
    assert "first" in run(script, "--execute", nvcc=nvcc).stdout
    exe = Path(EXE.findall(script.read_text())[0])
    os.utime(exe, (1, 1))
    write(tmp_path, "second\n")
    assert "second" in run(script, "--execute", nvcc=nvcc).stdout


def test_a_failing_compilation_fails_the_script(tmp_path, nvcc):
    script = write(tmp_path, "FAIL\n")
    for action in ("--compile-link", "--execute"):
        done = run(script, action, nvcc=nvcc)
        assert (done.returncode, done.stdout) == (3, "")


def test_a_failed_build_leaves_no_old_executable(tmp_path, nvcc):
    script = write(tmp_path, "fine\n")
    run(script, "--compile-link", nvcc=nvcc)
    (exe,) = EXE.findall(script.read_text())
    write(tmp_path, "FAIL\n")
    assert run(script, "--compile-link", nvcc=nvcc).returncode == 3
    assert not Path(exe).exists()


def test_odd_paths(tmp_path, nvcc):
    """Spaces, quotes and substitutions in the paths of the source and of the script."""
    odd = tmp_path / 'it\'s "odd" $(touch owned) `touch owned`'
    odd.mkdir()
    script = write(tmp_path, "the source\n", co=odd / "a b'c.co", out=odd / "work script.sh")
    (exe,) = EXE.findall(script.read_text())
    assert " " not in exe
    done = run(script, "--execute", nvcc=nvcc, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (7, "chatter of the compiler\n")
    assert "header beside the source" in done.stdout
    assert not (tmp_path / "owned").exists()
    Path(exe).unlink()


def test_a_moved_script_still_finds_the_includes(tmp_path, nvcc):
    script = write(tmp_path, "the source\n")
    moved = tmp_path / "moved" / "other.sh"
    moved.parent.mkdir()
    script.rename(moved)
    assert "header beside the source" in run(moved, "--execute", nvcc=nvcc, cwd=moved.parent).stdout


def test_the_source_survives_whatever_it_contains(tmp_path, nvcc):
    source = "END_OF_SOURCE\n$HOME `id` \\ 'single' \"double\" @EXE@ @SOURCE@\n\tEND_OF_SOURCE\nno newline at the end"
    script = write(tmp_path, source)
    done = run(script, "--execute", nvcc=nvcc)
    assert done.stdout.startswith(source + "\n")


def test_every_output_has_an_executable_of_its_own(tmp_path):
    outputs = [tmp_path / "a.sh", tmp_path / "b.sh", tmp_path / "a.sh.exe", tmp_path / "sub" / "a.sh"]
    paths = [workscript.executable_path(str(output)) for output in outputs]
    devices = [workscript.executable_path("/dev/null") for _ in range(3)]
    everything = [*paths, *devices]
    assert len(set(everything)) == len(everything)
    assert not set(everything) & {str(output) for output in outputs}
    assert all(path.startswith("/") and path.endswith(".exe") and " " not in path for path in everything)
    assert not any(path.startswith("/dev/") for path in devices)


def test_usage_and_missing_compiler(tmp_path, nvcc):
    script = write(tmp_path, "the source\n")
    assert run(script, nvcc=nvcc).returncode == 2
    assert "usage: bash" in run(script, "--wrong", nvcc=nvcc).stderr
    missing = run(script, "--compile-link", nvcc=tmp_path / "absent")
    assert missing.returncode == 1
    assert "NVCC is set to" in missing.stderr


@pytest.mark.parametrize("name", ["bash", "shellcheck"])
def test_the_script_is_clean(tmp_path, name):
    import shutil

    if shutil.which(name) is None:
        pytest.skip(f"no {name}")
    script = write(tmp_path, "the source\n")
    command = [name, "-n", script] if name == "bash" else [name, script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
