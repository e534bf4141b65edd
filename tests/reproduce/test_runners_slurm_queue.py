"""What Slurm says, in words."""

from __future__ import annotations

import pytest

from reproduce.runners import slurm_queue
from reproduce.runners.slurm_queue import State

LINE = (
    "JobId=12 JobName=sala-fa UserId=u(1) Priority=4294901758 Account=JobState=x QOS=(null) JobState={state} "
    "Reason={reason} Dependency=(null) Requeue=1 Restarts={restarts} ExitCode=0:15 RunTime=00:00:03 "
    "ReqNodeList=(null) ExcNodeList=(null) NodeList={node} BatchHost=n1 Command=/x y/JobState=z WorkDir=/x"
)


def test_a_jobs_state() -> None:
    line = LINE.format(state="PENDING", reason="Resources", restarts=0, node="(null)")
    assert slurm_queue.parse(line) == State("PENDING", "Resources", "", 0, "0:15")
    line = LINE.format(state="NODE_FAIL", reason="NodeDown", restarts=2, node="n[1-2]")
    assert slurm_queue.parse(line) == State("NODE_FAIL", "NodeDown", "n[1-2]", 2, "0:15")
    assert slurm_queue.parse("").name == "UNKNOWN"


@pytest.mark.parametrize(
    ("name", "ended"), [("PENDING", False), ("COMPLETING", False), ("REQUEUED", False), ("TIMEOUT", True)]
)
def test_which_states_end(name: str, ended: bool) -> None:
    assert State(name).ended is ended


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "waiting for free resources (Resources)"),
        ("None", "waiting to be scheduled"),
        ("AssocGrpGRES", "waiting for a limit of the account (AssocGrpGRES)"),
        ("QOSMaxJobsPerUserLimit", "waiting for a limit of the quality of service (QOSMaxJobsPerUserLimit)"),
        ("ReqNodeNotAvail,_UnavailableNodes:n1", "are down, drained or reserved"),
        ("SomethingNew", "waiting (SomethingNew)"),
    ],
)
def test_why_a_job_waits(reason: str, words: str) -> None:
    assert words in slurm_queue.reason_in_words(reason)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("sbatch: error: Batch job submission failed: Invalid partition name specified", "one of: hopper, short"),
        ("Batch job submission failed: Invalid account or account/partition combination specified", "account=NAME"),
        ("sbatch: error: Batch job submission failed: Invalid qos specification", "qos=NAME"),
        ("Batch job submission failed: Invalid generic resource (gres) specification", "gres=gpu:TYPE:1"),
        ("Batch job submission failed: Requested node configuration is not available", "(cpus_per_task=9)"),
        ("Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)", "time="),
        ("slurm_load_partitions: Unable to contact slurm controller (connect failure)", "scontrol ping"),
        ("sbatch: error: Munge encode failed: Failed to access socket", "is munged running here"),
    ],
)
def test_what_to_do(error: str, advice: str) -> None:
    text = slurm_queue.explain(error, "cpus_per_task=9", ["hopper", "short"])
    assert text.startswith("Slurm: ") and advice in text and "{" not in text and "sbatch: error" not in text


def test_no_slurm_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = slurm_queue.partitions()
    assert isinstance(found, str) and "login node" in found
