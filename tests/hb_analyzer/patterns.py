"""Building pattern files in tests."""

from __future__ import annotations

import json
from typing import Any

from hb_analyzer.pattern import Pattern
from hb_analyzer.pattern_load import parse_pattern


def phase(label: str, signal_in: Any = None, signal_out: Any = None, *buffers: str, **more: Any) -> dict[str, Any]:
    """A phase in the published format; ``more`` are extensions."""
    return {"label": label, "signal_in": signal_in, "signal_out": signal_out, "buffers": list(buffers), **more}


def document(roles: dict[str, list[dict[str, Any]]], buffers: dict[str, int], **more: Any) -> dict[str, Any]:
    """A pattern document: phases by role name, sizes in bytes by buffer name."""
    return {
        "kernel": "k",
        "framework": "test",
        "arch": "sm_90a",
        "notes": "",
        "warp_groups": [{"wg_id": i, "role": role, "phases": phases} for i, (role, phases) in enumerate(roles.items())],
        "shared_buffers": {name: {"size_bytes": size, "description": ""} for name, size in buffers.items()},
        **more,
    }


def pattern(roles: dict[str, list[dict[str, Any]]], buffers: dict[str, int], **more: Any) -> Pattern:
    return load(document(roles, buffers, **more))


def load(value: Any, file: str = "p.json") -> Pattern:
    return parse_pattern(json.dumps(value), file)


def kv_roles() -> dict[str, list[dict[str, Any]]]:
    """The K/V pipeline of an attention kernel, as published."""
    return {
        "producer": [phase("load K", "k_empty", "k_full", "K_s"), phase("load V", "v_empty", "v_full", "V_s")],
        "consumer": [
            phase("initial release", None, "k_empty"),
            phase("use K", "k_full", "k_empty", "K_s"),
            phase("use V", "v_full", "v_empty", "V_s"),
            phase("epilogue", None, None, "O_s"),
        ],
    }


KV_BUFFERS = {"K_s": 16384, "V_s": 16384, "O_s": 8192}
