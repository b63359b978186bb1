"""Run times of jobs of every profile type, compared with the real Batsim: ends agree within 1e-4 s."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.execution.profiles.recorded_runs import RecordedRun, Replay

#: Labels of the profiles, and the storages that the scheduler of the recorded run chose for them.
STORAGES = {"pfs": "nfs", "src": "nfs", "dst": "pfs"}


@pytest.mark.parametrize(
    ("name", "storages"),
    [
        ("profiles_serial", None),
        ("sharing", None),
        ("storage", STORAGES),
        ("up_usage_trace", None),
        ("up_one_computation_job", None),
        ("up_one_delay_job", None),
        ("up_sequence_delay", None),
        ("energy_fcfs", None),
        ("up_energy_load0", None),
        ("up_energy_load100", None),
        ("spaced200_net", None),
    ],
)
def test_jobs_end_when_they_do_in_batsim(shared_data: Path, name: str, storages: Mapping[str, str] | None) -> None:
    run = RecordedRun(shared_data / "batsim-runs", name)
    replay = Replay(run, storages)

    replay.play()

    assert {job: end for job, (end, _) in replay.ends.items()} == pytest.approx(
        {row["job_id"]: float(row["finish_time"]) for row in run.jobs}, abs=1e-4
    )
    failed = {job for job, (_, code) in replay.ends.items() if code}
    assert failed == {row["job_id"] for row in run.jobs if row["final_state"] == "COMPLETED_FAILED"}
