"""Jobs that can never run are rejected before the run, with their profile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import batkube

if TYPE_CHECKING:
    from conftest import Simulate

JOB = {"id": "long", "subtime": 0, "res": 1, "profile": "p"}
FOR_EVER = {
    "p": {"type": "composed", "repeat": 10**9, "seq": ["second"]},
    "second": {"type": "delay", "delay": 1_000_000_000},
}


def platform(folder: Path, *speeds: str) -> str:
    hosts = "".join(f'<host id="h{number}" speed="{speed}"/>' for number, speed in enumerate(speeds))
    path = folder / "platform.xml"
    path.write_text(
        f'<?xml version="1.0"?><platform version="4.1"><zone id="z" routing="Full">{hosts}</zone></platform>'
    )
    return str(path)


def test_a_profile_longer_than_a_run_can_last_is_rejected(simulate: Simulate) -> None:
    with pytest.raises(batkube.InputError, match="longer than 292 years") as caught:
        simulate([JOB], FOR_EVER)

    assert caught.value.at == "profile 'p' of job 'long'"


def test_an_endless_profile_runs_until_the_walltime_of_its_job(simulate: Simulate) -> None:
    run = simulate([{**JOB, "walltime": 50}], FOR_EVER)

    assert run.jobs["final_state"].tolist() == ["COMPLETED_WALLTIME_REACHED"]
    with pytest.raises(batkube.InputError, match="'without'"):
        simulate([{**JOB, "walltime": 50}, {**JOB, "id": "without"}], FOR_EVER)


@pytest.mark.parametrize("speeds", [("1f",), ("1e30f", "1f")])
def test_work_that_takes_too_long_on_the_slowest_machine_is_rejected(
    simulate: Simulate, tmp_path: Path, speeds: tuple[str, ...]
) -> None:
    profiles = {"p": {"type": "parallel_homogeneous", "cpu": 1e30, "com": 0}}

    with pytest.raises(batkube.InputError, match="takes too long") as caught:
        simulate([JOB], profiles, platform=platform(tmp_path, *speeds))

    assert caught.value.at == "profile 'p' of job 'long'"


def test_a_run_whose_time_would_overflow_fails_and_keeps_its_outputs(simulate: Simulate, tmp_path: Path) -> None:
    century = {"p": {"type": "delay", "delay": 9_000_000_000}}

    with pytest.raises(batkube.RunFailed, match="would pass 292 years"):
        simulate([{**JOB, "res": 4}, {**JOB, "id": "next", "res": 4}], century)

    assert (tmp_path / "out" / "jobs.csv").read_text().count("\n") == 2


def test_a_failed_run_does_not_replace_a_completed_one(simulate: Simulate, tmp_path: Path) -> None:
    simulate([JOB], {"p": {"type": "delay", "delay": 1}})
    before = (tmp_path / "out" / "jobs.csv").read_bytes()

    with pytest.raises(batkube.RunFailed):
        simulate([{**JOB, "res": 4}, {**JOB, "id": "next", "res": 4}], {"p": {"type": "delay", "delay": 9_000_000_000}})

    assert (tmp_path / "out" / "jobs.csv").read_bytes() == before
    assert batkube.Run(tmp_path / "out.failed").failure_remark == "failed: 1 of its 2 jobs have no outcome"


def test_jobs_that_need_machines_instead_of_cores_get_a_proposal(simulate: Simulate) -> None:
    profiles = {"p": {"type": "delay", "delay": 1}}

    with pytest.raises(batkube.InputError, match="can never run") as caught:
        simulate([{**JOB, "res": 100}], profiles, platform="1x128")
    assert str(caught.value.remedy).startswith("jobs take whole machines: use --platform 128x1, or remove such jobs")
    with pytest.raises(batkube.InputError, match="can never run") as caught:
        simulate([{**JOB, "res": 200}], profiles, platform="1x128")
    assert str(caught.value.remedy).startswith("use a larger --platform")
