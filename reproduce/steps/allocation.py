"""Measurements that steps share and that need no GPU: bytes from the compiler, reports from the analyzer."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from reproduce import ROOT, kernels, process
from reproduce.step import Context, FailedError, NoRunError
from reproduce.tables import Scalar

ANALYZER_LIMIT_S = 60.0


def allocation(context: Context, kernel: str, *, sala: bool, key: str) -> dict[str, Scalar]:
    """``bytes`` that the compiler allocates; ``out_of_bound`` and its ``message`` if that is too much for a block."""
    found = context.choreo.allocate(kernels.source(kernel), sala=sala, log=context.log(key))
    if found.finished.timed_out:
        raise NoRunError(f"the compiler did not end within {found.finished.duration_s:.0f} s (ended)")
    if found.bytes is None and not found.out_of_bound:
        raise FailedError(found.message)
    return {
        "bytes": found.bytes,
        "bytes_reason": "the compiler's message does not say how much is needed",
        "out_of_bound": found.out_of_bound,
        "message": found.message,
    }


def analyzer(
    context: Context, arguments: list[str | Path], *, key: str, acyclic: bool = True, json_output: bool = True
) -> Any:
    """Output of ``python -m hb_analyzer …``: the report as data, or text without ``json_output``."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = {"PYTHONPATH": path} if acyclic else {"PYTHONPATH": path, "HBA_NO_ACYCLIC": "1"}
    finished = process.run(
        [sys.executable, "-m", "hb_analyzer", *arguments, *(["--json"] if json_output else [])],
        timeout_s=ANALYZER_LIMIT_S,
        cwd=ROOT,
        env=env,
        log=context.log(key),
    )
    if not finished.ok:
        raise FailedError(finished.last_line() or "the analyzer failed without a message")
    if not json_output:
        return finished.stdout
    try:
        return json.loads(finished.stdout)
    except ValueError:
        raise FailedError("the analyzer's output is not JSON") from None
