"""Options of a job: every key, and a message for what is none. No value can leave its line of the job's script."""

from __future__ import annotations

import pytest

from reproduce.runners.slurm_options import KEYS, SlurmOptions


def test_what_a_job_asks_for() -> None:
    options = SlurmOptions.parse(
        "partition=hopper,account=x,gres=gpu:h100:1,nodelist=n1,n2,mem=16G,time=1:30:00,cpus=8,reservation=r,"
        "sbatch.licenses=a,sbatch.mail-type=END"
    )
    assert options.time == 90
    assert options.parameters(gpu=True) == {
        "partition": "hopper",
        "account": "x",
        "mem": "16G",
        "nodelist": "n1,n2",
        "cpus_per_task": 8,
        "wckey": None,
        "gres": "gpu:h100:1",
        "additional_parameters": {"licenses": "a", "mail-type": "END", "reservation": "r"},
    }
    assert "gres" not in options.parameters(gpu=False)


def test_a_gpu_is_asked_for_unless_there_is_none() -> None:
    assert SlurmOptions.parse("").parameters(gpu=True)["gres"] == "gpu:1"
    assert "gres" not in SlurmOptions.parse("gres=none").parameters(gpu=True)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("90", 90), ("0:30", 1), ("90:30", 91), ("1:30:00", 90), ("1-2", 1560), ("1-2:30", 1590), ("1-0:0:1", 1441)],
)
def test_durations_as_slurm_reads_them(text: str, minutes: int) -> None:
    assert SlurmOptions.parse(f"time={text}").time == minutes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("partitoin=x", "no `partitoin`"),
        ("hopper", "no `hopper`"),
        ("sbatch.=x", "no `sbatch.`"),
        ("sbatch.output=x", "sets it itself"),
        ("sbatch.account=x", "account=…"),
        ("partition=", "no value"),
        ("partition=a b", "no value"),
        ("partition=x\nrm -r .", "no value"),
        ("account='x'", "no value"),
        ("account=$(id)", "no value"),
        ("sbatch.comment=`id`", "no value"),
        ("cpus=many", "no number"),
        ("cpus=0", "no number"),
        ("time=soon", "no time"),
        ("time=0", "needs some"),
    ],
)
def test_what_is_no_option(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"--slurm") as caught:
        SlurmOptions.parse(text)
    assert message in str(caught.value)


def test_the_message_lists_the_keys() -> None:
    with pytest.raises(ValueError) as caught:
        SlurmOptions.parse("queue=x")
    assert all(key in str(caught.value) for key in KEYS)
