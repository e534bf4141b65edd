from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reproduce.lock import LockedError, is_held, lock


def test_a_second_run_is_refused_and_told_who_holds_the_lock(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    code = (
        "import sys, pathlib; from reproduce.lock import lock\n"
        f"with lock(pathlib.Path({str(path)!r}), 'x'):\n    print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    message = rf"results/x.json is in use by another run \(process {holder.pid}\)"
    with pytest.raises(LockedError, match=message), lock(path, "results/x.json"):
        pass
    holder.kill()  # however the holder ends, the lock is free again
    holder.wait()
    with lock(path, "results/x.json"):
        pass


def test_whether_a_lock_is_held(tmp_path: Path) -> None:
    path = tmp_path / ".lock-x"
    assert not is_held(path) and not path.exists()
    with lock(path, "x"):
        assert is_held(path)
    assert not is_held(path)
