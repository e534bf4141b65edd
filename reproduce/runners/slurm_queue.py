"""What Slurm says about a job, in words. Asks scontrol, which works on clusters that keep no accounting, too."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reproduce import process

ASK_LIMIT_S = 12.0  # a controller that is busy answers within ten seconds, or its clients give up


class SlurmError(Exception):
    """No job can run as asked for; the message says why, and what to do."""


@dataclass(frozen=True)
class State:
    """``name`` as Slurm calls it (PENDING, RUNNING, COMPLETED, …), UNKNOWN for a job that Slurm knows no longer."""

    name: str
    reason: str = ""
    node: str = ""
    restarts: int = 0
    exit_code: str = ""

    @property
    def ended(self) -> bool:
        return self.name not in _GOING_ON


_GOING_ON = frozenset(
    (
        *("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "STAGE_OUT"),
        *("RESIZING", "SIGNALING", "STOPPED", "SPECIAL_EXIT", "REQUEUE_FED"),
    )
)


def ask(job: str) -> State | None:
    """The state of a job; None if the controller does not answer."""
    asked = process.run(["scontrol", "--oneliner", "show", "job", job], timeout_s=ASK_LIMIT_S)
    if asked.ok:
        return parse(asked.stdout)
    return State("UNKNOWN") if "invalid job id" in asked.output.lower() else None


def parse(line: str) -> State:
    """Reads a line of ``scontrol --oneliner show job``."""
    found = dict(re.findall(r"(?:^|\s)(JobState|Reason|NodeList|Restarts|ExitCode)=(\S*)", line))
    restarts = found.get("Restarts", "0")
    node = found.get("NodeList", "")
    return State(
        found.get("JobState", "UNKNOWN"),
        found.get("Reason", ""),
        "" if node == "(null)" else node,
        int(restarts) if restarts.isdigit() else 0,
        found.get("ExitCode", ""),
    )


def reason_in_words(reason: str) -> str:
    """Why a job waits."""
    words = _REASONS.get(reason)
    if words is None:
        words = next((text for start, text in _REASON_KINDS if reason.startswith(start)), "waiting")
    return f"{words} ({reason})" if reason and reason != "None" else words


_REASONS = {
    "": "waiting to be scheduled",
    "None": "waiting to be scheduled",
    "Resources": "waiting for free resources",
    "Priority": "jobs of higher priority come first",
    "Dependency": "waiting for the step before it",
    "BeginTime": "its start is put off",
    "JobHeldUser": "held by its user: `scontrol release` lets it start",
    "JobHeldAdmin": "held by an administrator",
    "Reservation": "waiting for its reservation",
    "Licenses": "waiting for a license",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition takes jobs, but starts none now",
    "PartitionTimeLimit": "asks for more time than the partition allows: --slurm time=MINUTES gives less",
    "PartitionConfig": "asks for more than a node of the partition has: other values of --slurm",
    "PartitionNodeLimit": "asks for more than the partition has: other values of --slurm",
    "ReqNodeNotAvail": "the nodes that it needs are down, drained or reserved",
    "BadConstraints": "no node fits what it asks for: other values of --slurm",
    "InvalidAccount": "its account is not valid: --slurm account=NAME",
    "InvalidQOS": "its quality of service is not valid: --slurm qos=NAME",
    "NodeDown": "a node that it needs is down",
}
# Waiting does not help against these.
HOPELESS = frozenset(("BadConstraints", "InvalidAccount", "InvalidQOS", "PartitionConfig", "PartitionNodeLimit"))
HOPELESS |= {"PartitionTimeLimit"}
_REASON_KINDS = (
    ("ReqNodeNotAvail", "the nodes that it needs are down, drained or reserved"),
    ("QOS", "waiting for a limit of the quality of service"),
    ("Assoc", "waiting for a limit of the account"),
    ("MaxJobs", "waiting for a limit on the number of jobs"),
    ("Nodes_required_for_job", "the nodes that it needs are down, drained or reserved"),
)


def cancel(job: str) -> str | None:
    """Cancels a job; returns why it could not."""
    asked = process.run(["scancel", job], timeout_s=ASK_LIMIT_S)
    if asked.ok or "invalid job id" in asked.output.lower():
        return None
    return asked.last_line() or "no answer"


def partitions() -> list[str] | str:
    """The names of the partitions, or what went wrong, with what to do."""
    asked = process.run(["sinfo", "--noheader", "--format=%R"], timeout_s=ASK_LIMIT_S)
    if asked.ok:
        return sorted(set(asked.stdout.split()))
    if "cannot start" in asked.stderr:
        return (
            "there are no Slurm commands on PATH (sinfo, sbatch, scontrol): start this on a login node of the cluster, "
            "or use --runner host"
        )
    return explain(asked.last_line() if not asked.timed_out else "the controller does not answer")


def explain(error: str, asked_for: str = "", names: list[str] | None = None) -> str:
    """What sbatch or sinfo says, with what to do."""
    error = re.sub(r"^(sbatch|sinfo|slurm_load_partitions)(: error)?: ", "", error.strip())
    error = error.removeprefix("Batch job submission failed: ")
    advice = next((text for pattern, text in _ADVICE if re.search(pattern, error, re.IGNORECASE)), "")
    if error.lower().startswith("invalid partition") and names:
        advice = f"--slurm partition=NAME with one of: {', '.join(names)}"
    advice = advice.replace("{asked}", asked_for)
    return f"Slurm: {error}" + (f"\n  {advice}" if advice else "")


_ADVICE = (
    (
        r"unable to contact|connect failure|does not answer|timed out|no route|zero bytes",
        "Is the controller (slurmctld) up? `scontrol ping` says so. Try again later, or ask whoever runs the cluster.",
    ),
    (
        r"munge|authentication|credential",
        "munge does not vouch for this machine: is munged running here, with the cluster's key?",
    ),
    (r"account", "--slurm account=NAME; `sacctmgr show associations user=$USER` lists yours"),
    (r"qos", "--slurm qos=NAME; `sacctmgr show qos` lists them"),
    (
        r"generic resource|gres",
        "the cluster names its GPUs otherwise: `sinfo -o '%R %G'` shows how; then --slurm gres=gpu:TYPE:1, "
        "or gres=none on nodes without a GPU",
    ),
    (
        r"node configuration|more processors|node count",
        "no node of the partition has what the job asks for ({asked}): other values of --slurm, e.g. cpus=1, mem=8G, "
        "gres=none",
    ),
    (r"time limit", "--slurm time=MINUTES, at most what `sinfo -o '%R %l'` shows"),
    (r"memory", "--slurm mem=SIZE, e.g. mem=8G"),
)
