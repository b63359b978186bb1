"""CronJobs start Jobs on time, and schedules mean what cron users expect."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.controllers.conftest import Cluster

from batkube.controllers.cron_schedule import parse_schedule
from batkube.kernel.instants import Instant, instant_of, rfc3339, seconds

TICK = "default/tick"


def cron_job(world: Cluster, length: str = "5s", **spec: object) -> dict[str, Any]:
    job = world.job(annotations={"batkube.io/duration": length})
    del job["spec"]["selector"]
    template = {
        "metadata": {"labels": {"from": "tick"}},
        "spec": {**job["spec"], "selector": {"matchLabels": {"job-name": "work"}}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "default"},
        "spec": {
            "schedule": "* * * * *",
            "concurrencyPolicy": "Allow",
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": template,
            **spec,
        },
    }


def jobs(world: Cluster) -> list[str]:
    return [job["metadata"]["name"] for job in world.store.all("jobs.batch").values()]


def test_a_job_is_made_whenever_the_schedule_says_so(world: Cluster) -> None:
    world.create("cronjobs.batch", cron_job(world))
    world.run(125)
    made = world.store.all("jobs.batch").values()
    assert len(made) == 2
    first = next(iter(made))
    at = first["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert at.endswith(":00Z")
    assert first["metadata"]["labels"] == {"from": "tick"}
    assert first["metadata"]["ownerReferences"][0]["name"] == "tick"
    status = world.get("cronjobs.batch", TICK)["status"]
    assert status["lastScheduleTime"].endswith(":00Z")
    assert status["lastSuccessfulTime"] > at
    assert f"Saw completed job: {jobs(world)[0]}, condition: Complete" in world.events("SawCompletedJob")


def test_of_finished_jobs_only_the_last_few_are_kept(world: Cluster) -> None:
    world.create("cronjobs.batch", cron_job(world, successfulJobsHistoryLimit=2))
    world.run(60 * 6)
    assert len(jobs(world)) == 2
    assert len(world.pods()) == 2


def test_forbid_waits_for_the_one_that_runs(world: Cluster) -> None:
    world.create("cronjobs.batch", cron_job(world, length="150s", concurrencyPolicy="Forbid"))
    world.run(130)
    assert len(jobs(world)) == 1
    assert len(world.events("JobAlreadyActive")) == 1
    world.run(120)
    assert len(jobs(world)) == 2


def test_replace_stops_the_one_that_runs(world: Cluster) -> None:
    world.create("cronjobs.batch", cron_job(world, length="1h", concurrencyPolicy="Replace"))
    world.run(190)
    assert len(jobs(world)) == 1
    (active,) = world.get("cronjobs.batch", TICK)["status"]["active"]
    assert active["name"] == jobs(world)[0]
    assert len(world.events("SuccessfulDelete")) >= 2


def test_a_suspended_one_starts_nothing_and_later_only_the_latest_that_was_missed(world: Cluster) -> None:
    world.create("cronjobs.batch", cron_job(world, suspend=True))
    world.run(300)
    assert not jobs(world)
    world.change("cronjobs.batch", TICK, suspend=False)
    world.run(1)
    assert len(jobs(world)) == 1


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("*/15 * * * *", "2024-03-01T10:07:30Z", "2024-03-01T10:15:00Z"),
        ("0 2 * * *", "2024-03-01T02:00:00Z", "2024-03-02T02:00:00Z"),
        ("30 8 * * MON-FRI", "2024-03-01T09:00:00Z", "2024-03-04T08:30:00Z"),
        ("0 0 1 jan ?", "2024-03-01T09:00:00Z", "2025-01-01T00:00:00Z"),
        ("0 0 13 * 5", "2024-03-01T00:00:00Z", "2024-03-08T00:00:00Z"),
        ("0 0 29 2 *", "2024-03-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("5,10-12/2 3 * * *", "2024-03-01T03:10:00Z", "2024-03-01T03:12:00Z"),
        ("@daily", "2024-12-31T12:00:00Z", "2025-01-01T00:00:00Z"),
        ("@every 90s", "2024-03-01T00:00:00Z", "2024-03-01T00:01:30Z"),
    ],
)
def test_a_schedule_is_due_when_cron_says(schedule: str, after: str, expected: str) -> None:
    found = parse_schedule(schedule).next_after(instant_of(after))
    assert found is not None
    assert rfc3339(found) == expected


def test_a_time_zone_moves_the_moment() -> None:
    found = parse_schedule("0 9 * * *", "Europe/Paris").next_after(instant_of("2024-07-01T00:00:00Z"))
    assert found == instant_of("2024-07-01T07:00:00Z")


@pytest.mark.parametrize("text", ["", "* * * *", "61 * * * *", "* * * * mond", "*/0 * * * *", "5-1 * * * *"])
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_schedule(text)


def test_a_day_that_never_comes_is_never_due() -> None:
    assert parse_schedule("0 0 31 2 *").next_after(Instant(0)) is None


@given(st.integers(0, 59), st.integers(0, 23), st.integers(0, 4_000_000))
def test_the_next_moment_lies_ahead_within_a_day_and_matches(minute: int, hour: int, now_s: int) -> None:
    now = Instant(seconds(now_s))
    found = parse_schedule(f"{minute} {hour} * * *").next_after(now)
    assert found is not None
    assert now < found <= now + seconds(86400)
    assert rfc3339(found)[11:] == f"{hour:02d}:{minute:02d}:00Z"
