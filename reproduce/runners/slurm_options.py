"""What a job asks Slurm for: ``partition=hopper,account=x,gres=gpu:h100:1``, checked before anything is submitted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Each key, with what it is; those of sbatch have sbatch's name and meaning.
KEYS = {
    "partition": "partition (queue)",
    "account": "account that is charged",
    "qos": "quality of service",
    "gres": "what a step that uses a GPU asks for (default: gpu:1), e.g. gpu:h100:1; none asks for nothing",
    "cpus": "CPU cores (default: 4)",
    "mem": "memory of the node, e.g. 16G (default: the partition's)",
    "time": "time limit of each job: minutes or [days-]hours:minutes:seconds (default: what the step needs at most)",
    "constraint": "features that the node must have",
    "reservation": "reservation",
    "nodelist": "nodes to use",
    "exclude": "nodes not to use",
    "wckey": "workload characterization key",
    "sbatch.NAME": "any other option --NAME of sbatch, e.g. sbatch.licenses=x",
}
DEFAULT_GRES = "gpu:1"
DEFAULT_CPUS = 4

# What the runner itself decides, or what would take the job's output, folder or end away from it.
_OURS = frozenset(
    (
        *("array", "begin", "chdir", "clusters", "dependency", "error", "export", "export-file", "input", "job-name"),
        *("kill-on-invalid-dep", "nodes", "ntasks", "ntasks-per-node", "open-mode", "output", "parsable", "signal"),
        *("test-only", "time-min", "wait", "wrap"),
    )
)
# The values go into a script that Slurm reads: no white space, quotes, or what a shell would take for more than a word.
_VALUE = re.compile(r"[\w.,:;/@%+*=&|()\[\]-]+")
_DURATION = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")


@dataclass(frozen=True)
class SlurmOptions:
    """Values by key, for every job; ``extra`` are further options of sbatch by name. ``time`` is in minutes."""

    values: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    time: int | None = None

    @staticmethod
    def parse(text: str) -> SlurmOptions:
        """Reads ``key=value,key=value``; a value may contain commas itself. Raises ValueError, which lists the keys."""
        values: dict[str, str] = {}
        extra: dict[str, str] = {}
        for item in filter(None, re.split(r",(?=[\w.-]+=|$)", text.strip())):
            key, equals, value = item.partition("=")
            key = key.strip()
            name = key.removeprefix("sbatch.")
            if not equals or (key not in KEYS and (name == key or not re.fullmatch(r"[a-z][a-z-]*", name))):
                raise ValueError(f"--slurm takes no `{key}`. {_key_list()}")
            if not _VALUE.fullmatch(value):
                raise ValueError(f"--slurm {key}: `{value}` is no value (letters, digits and .,:;/@%+*=&|()[]- only)")
            if name != key and (name in _OURS or name in KEYS or name == "cpus-per-task"):
                why = f"give it as {name}=…" if name in KEYS else "the runner sets it itself"
                raise ValueError(f"--slurm {key}: {why}")
            (extra if name != key else values)[name] = value
        if not values.get("cpus", "1").isdigit() or int(values.get("cpus", "1")) < 1:
            raise ValueError(f"--slurm cpus: `{values['cpus']}` is no number of cores")
        return SlurmOptions(values, extra, _minutes(values["time"]) if "time" in values else None)

    def parameters(self, *, gpu: bool) -> dict[str, Any]:
        """Parameters of submitit's Slurm executor, without names, paths and time; ``gpu``: for a step that uses one."""
        same = ("partition", "account", "qos", "mem", "constraint", "nodelist", "exclude")
        found: dict[str, Any] = {key: self.values[key] for key in same if key in self.values}
        found["cpus_per_task"] = int(self.values.get("cpus", DEFAULT_CPUS))
        found["wckey"] = self.values.get("wckey")  # submitit would set one, which a cluster may not know
        gres = self.values.get("gres", DEFAULT_GRES)
        if gpu and gres != "none":
            found["gres"] = gres
        further = dict(self.extra)
        if "reservation" in self.values:
            further["reservation"] = self.values["reservation"]
        found["additional_parameters"] = further
        return found


def _key_list() -> str:
    return "\n".join(["It takes these, separated by commas:", *(f"  {key:12} {text}" for key, text in KEYS.items())])


def _minutes(text: str) -> int:
    """Slurm's forms of a duration, in minutes and rounded up: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S."""
    match = _DURATION.fullmatch(text)
    if not match:
        raise ValueError(f"--slurm time: `{text}` is no time (minutes, or [days-]hours:minutes:seconds)")
    days, first, second, third = (int(group or 0) for group in match.groups())
    if match[1] is not None:
        seconds = ((days * 24 + first) * 60 + second) * 60 + third
    elif match[4] is not None:
        seconds = (first * 60 + second) * 60 + third
    else:
        seconds = first * 60 + second
    if not seconds:
        raise ValueError("--slurm time: a job needs some")
    return -(-seconds // 60)
