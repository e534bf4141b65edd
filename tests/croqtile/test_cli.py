import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from croqtile import cli

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "kernels"
GEMM = KERNELS / "matmul" / "matmul_f16_dyn_sm90_warpspec_1p3c.co"
ATTENTION_3S = KERNELS / "flash_atten" / "fa_3s.co"

SET = "cudaFuncAttributeMaxDynamicSharedMemorySize is set to `{}`\n"

SMALL = """\
#include <nowhere/at_all.h>
__co__ void scale(global f32 [M, 64] data) {
  parallel {bm} by [cdiv(M, 64)] : block {
    shared f32 [64, 64] tile_s;
    parallel p by 1 : group-4 {
      inthreads.async (p == 0) {
        fragment f32[64, 64] value {0.0f};
        mma.store value, tile_s;
        tma.copy tile_s => data.subspan(64, 64).at(bm, 0);
      }
    }
  }
}
int main() { return VALUE; }
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.co"
    path.write_text(SMALL)
    return path


def choreo(capsys, *words):
    code = cli.main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


# --------------------------------------------------------------------------------------------------------------
# The work script


def test_gs_writes_a_script_and_nothing_on_stdout(tmp_path, capsys):
    out = tmp_path / "work.sh"
    code, stdout, stderr = choreo(capsys, "-gs", "-t", "cute", "-arch=sm_90a", GEMM, "-o", out)
    assert (code, stdout, stderr) == (0, "", SET.format(81920))
    assert len(re.findall(r"-o (/\S+\.exe)", out.read_text())) == 1
    assert "__choreo_device_matmul" in out.read_text()
    assert subprocess.run(["bash", "-n", out], check=False).returncode == 0


def test_gs_needs_no_headers_and_no_nvcc(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    assert choreo(capsys, "-gs", small, "-o", tmp_path / "out") == (0, "", SET.format(16384))


def test_gs_to_dev_null(capsys):
    before = Path("/dev/null").stat()
    assert choreo(capsys, "-gs", "--no-sala", GEMM, "-o", "/dev/null") == (0, "", SET.format(131072))
    after = Path("/dev/null").stat()
    assert stat.S_ISCHR(after.st_mode)
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)


def test_the_script_is_written_in_place(small, tmp_path, capsys):
    out = tmp_path / "out.sh"
    out.write_text("old")
    out.chmod(0o640)
    inode = out.stat().st_ino
    assert choreo(capsys, "-gs", small, "-o", out)[0] == 0
    assert (out.stat().st_ino, stat.S_IMODE(out.stat().st_mode)) == (inode, 0o640)


def test_defines_reach_the_language_and_the_source(small, tmp_path, capsys):
    path = tmp_path / "defines.co"
    path.write_text(SMALL.replace("tile_s;", "tile_s, more_s[COUNT];"))
    path.write_text(
        SMALL.replace(
            "    shared f32 [64, 64] tile_s;", "    shared f32 [64, 64] tile_s;\n    shared f32 [64, 64] more_s[COUNT];"
        )
    )
    code, source, stderr = choreo(capsys, "-es", "-DCOUNT=2", "-D", "VALUE=7", "--no-sala", path)
    assert (code, stderr) == (0, SET.format(3 * 16384))
    assert "#ifndef COUNT\n#define COUNT 2\n#endif\n" in source
    assert "#define VALUE 7" in source


# --------------------------------------------------------------------------------------------------------------
# Other modes


def test_es_writes_source_to_stdout_or_to_a_file(small, tmp_path, capsys):
    code, source, _ = choreo(capsys, "-es", small)
    assert code == 0
    assert "int main() { return VALUE; }" in source
    assert f'#line 1 "{small}"' in source
    assert choreo(capsys, "-es", small, "-o", tmp_path / "out.cu")[:2] == (0, "")
    assert (tmp_path / "out.cu").read_text() == source


def test_executables_are_built_by_nvcc(small, tmp_path, capsys, monkeypatch):
    fake = tmp_path / "nvcc"
    fake.write_text("#!/bin/sh\necho noise\ncp kernel.cu output\nchmod +x output\n")
    fake.chmod(0o755)
    monkeypatch.setenv("NVCC", str(fake))
    out = tmp_path / "program"
    assert choreo(capsys, small, "-o", out) == (0, "", SET.format(16384) + "noise\n")
    assert os.access(out, os.X_OK)
    fake.write_text("#!/bin/sh\necho 'kernel.cu: error: no'\nexit 1\n")
    code, _, stderr = choreo(capsys, small, "-o", out)
    assert code == 1
    assert stderr.endswith("kernel.cu: error: no\nchoreo: error: nvcc failed with exit code 1\n")
    monkeypatch.setenv("NVCC", str(tmp_path / "absent"))
    code, _, stderr = choreo(capsys, small, "-o", out)
    assert code == 1
    assert "choreo: error: $NVCC is set, but there is no nvcc at" in stderr


def test_out_of_bound_prints_the_table_and_fails(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    code, stdout, stderr = choreo(capsys, "-gs", "--no-sala", ATTENTION_3S.relative_to(ROOT), "-o", "/dev/null")
    assert (code, stdout) == (1, "")
    assert "shared memory OUT OF BOUND" in stderr
    assert "cudaFuncAttribute" not in stderr
    assert [line.split()[:3] for line in stderr.splitlines()[-4:]] == [
        ["q_s", "0", "32768"],
        ["k_s", "32768", "98304"],
        ["v_s", "131072", "98304"],
        ["o_s", "229376", "32768"],
    ]
    assert choreo(capsys, "-gs", ATTENTION_3S, "-o", "/dev/null") == (0, "", SET.format(229376))


def test_explain_and_its_json(small, capsys):
    code, text, stderr = choreo(capsys, "--explain", GEMM)
    assert (code, stderr) == (0, SET.format(81920))
    assert "lhs_s and out_s may overlap" in text
    code, text, _ = choreo(capsys, "--explain", "--json", GEMM)
    assert json.loads(text)["smem_optimized"] == 81920


def test_what_is_explained_beside_a_wrong_build_is_not_that_build(capsys, monkeypatch):
    monkeypatch.setenv("CHOREO_TESTING", "1")
    right = choreo(capsys, "--explain", GEMM)[1]
    wrong = ("--stress", "--unsound-overlap=lhs_s,rhs_s", "--unsound-no-wait=full")
    code, text, stderr = choreo(capsys, "--explain", *wrong, GEMM)
    assert (code, text) == (0, right)
    assert "matmul is wrong on purpose, for tests only: lhs_s and rhs_s lie on each other" in stderr
    assert "the waits for full are left out" in stderr and "not that of the wrong build" in stderr
    code, text, stderr = choreo(capsys, "--explain", "--stress", "--unsound-overlap=lhs_s,none", GEMM)
    assert (code, text) == (2, "") and "has no buffer `none`" in stderr


def test_emit_pattern_is_read_by_the_analyzer(tmp_path, capsys):
    from hb_analyzer import analyse
    from hb_analyzer.pattern_load import parse_pattern
    from hb_analyzer.translate import to_program

    out = tmp_path / "pattern.json"
    assert choreo(capsys, "--emit-pattern", out, GEMM)[:2] == (0, "")
    assert analyse(to_program(parse_pattern(out.read_text()))).placement.size == 81920
    assert choreo(capsys, "--emit-pattern", GEMM)[1] == out.read_text()


def test_memory_map(small, tmp_path, capsys):
    out = tmp_path / "map.svg"
    assert choreo(capsys, "--memory-map", out, small)[:2] == (0, "")
    assert out.read_text().startswith("<svg ")


def test_dumps_come_in_the_order_asked_for(small, capsys):
    code, text, _ = choreo(capsys, "--dump=lower,parse,analyse,check", small)
    assert code == 0
    titles = [line for line in text.splitlines() if line.startswith("// ")]
    assert [title.split(":")[0] for title in titles if str(small) in title] == [
        "// lower",
        "// parse",
        "// analyse",
        "// check",
    ]
    assert "role warpgroup (warpgroup)" in text


def test_help_and_version(capsys):
    for word, part in (("--help", "usage: choreo"), ("--help-hidden", "--no-sala  "), ("--version", "choreo ")):
        code, stdout, stderr = choreo(capsys, word)
        assert (code, stderr) == (0, "")
        assert part in stdout


# --------------------------------------------------------------------------------------------------------------
# Mistakes


def test_unusable_files_are_one_line_and_exit_2(small, tmp_path, capsys):
    secret = tmp_path / "secret.co"
    secret.write_text("")
    cases = [
        ((tmp_path / "missing.co",), f"cannot read {tmp_path / 'missing.co'}: No such file or directory"),
        ((tmp_path,), f"{tmp_path} is a directory, not a .co file"),
        (("-gs", small, "-o", tmp_path), f"cannot write {tmp_path}: Is a directory"),
        (("-gs", small, "-o", tmp_path / "no" / "out"), "No such file or directory"),
        ((small, "-o", tmp_path), f"cannot write {tmp_path}: it is a directory"),
        ((small, "-o", tmp_path / "no" / "out"), "the directory does not exist or is not writable"),
        (("-es", small, "-o", small), f"{small} is the input file: it would be overwritten"),
        (("--frobnicate", small), "unknown option `--frobnicate`"),
        ((small, small), "one input file expected, got 2"),
    ]
    if os.geteuid() != 0:
        secret.chmod(0)
        cases.append(((secret,), f"cannot read {secret}: Permission denied"))
    for words, message in cases:
        code, stdout, stderr = choreo(capsys, *words)
        assert (code, stdout) == (2, ""), words
        (line,) = [line for line in stderr.splitlines() if not line.startswith("cudaFunc")]
        assert line.startswith("choreo: error: ")
        assert message in line


def test_mistakes_in_the_program_point_at_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.co").write_text(SMALL.replace("mma.store value, tile_s;", "mma.store value, tile_x;"))
    code, stdout, stderr = choreo(capsys, "-gs", "bad.co", "-o", "out")
    assert (code, stdout) == (1, "")
    assert stderr.startswith("bad.co:8:26: error: ")
    assert "mma.store value, tile_x;" in stderr
    assert "^~~~~~" in stderr
    assert not Path("out").exists()


def test_synchronisation_mistakes_fail_in_both_modes(capsys):
    racy = Path(__file__).parent / "hazards" / "fewer_arrivals_racy.co"
    for mode in ([], ["--no-sala"]):
        code, _, stderr = choreo(capsys, *mode, "-gs", racy, "-o", "/dev/null")
        assert code == 1
        assert "error: race in shared memory: nothing orders" in stderr


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00__co__", b"__co__ void f(", b"__co__ " * 2000, b"int main() {}\r\n"]
)
def test_no_input_gives_a_traceback(content, tmp_path, capsys):
    path = tmp_path / "odd.co"
    path.write_bytes(content)
    code, _, stderr = choreo(capsys, "-gs", path, "-o", tmp_path / "out")
    assert code in (0, 1)
    assert "Traceback" not in stderr
    assert "internal error" not in stderr


def test_a_bug_is_one_line_too(small, capsys, monkeypatch):
    monkeypatch.setattr("croqtile.driver.compile_file", lambda *_: 1 / 0)
    code, _, stderr = choreo(capsys, "-gs", small, "-o", "/dev/null")
    assert code == 3
    assert stderr.startswith("choreo: error: internal error, ZeroDivisionError")
    assert stderr.count("\n") == 1


# --------------------------------------------------------------------------------------------------------------
# As a command


def test_as_a_module_from_anywhere(small, tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "croqtile", "-gs", small, "-o", "/dev/null"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", SET.format(16384))


@pytest.mark.slow
def test_gs_takes_less_than_half_a_second():
    """Processor time with Python's start, the best of five: wall time on a machine that does nothing else."""
    command = [sys.executable, "-m", "croqtile", "-gs", KERNELS / "flash_atten" / "fa_tuned_1p2c.co", "-o", "/dev/null"]
    times = []
    for _ in range(5):
        before = os.times()
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        times.append(used)
    assert min(times) < 0.5


@pytest.mark.parametrize("option", ["--explain", "-es"])
def test_a_terminal_that_knows_ascii_only(option: str) -> None:
    """Text for people shows "?" there; a program is written as it would be to a file."""
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "croqtile", option, str(GEMM)]
    done = subprocess.run(command, cwd=ROOT, env=ascii_only, capture_output=True)
    assert done.returncode == 0, done.stderr
    if option == "-es":
        usual = subprocess.run(command, cwd=ROOT, capture_output=True)
        assert done.stdout == usual.stdout and "…" in usual.stdout.decode()
    else:
        assert b"lhs_s and out_s may overlap" in done.stdout and done.stdout.isascii()


@pytest.mark.parametrize("option", ["--validate", "--explain"])
def test_a_file_without_kernels_is_not_passed_in_silence(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "host.co"
    file.write_text("int main() { return 0; }\n")
    assert cli.main([option, str(file)]) == 2
    assert f"{file} has no __co__ function: there is nothing to analyse" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_output_that_cannot_be_written_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "croqtile", "--dump=lower", str(GEMM)]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "cannot write standard output: No space left on device" in done.stderr
