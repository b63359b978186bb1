"""CronJobs create Jobs on schedule, and report why they do not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulated_cluster import Cluster

from batkube.cluster.store import Key
from batkube.kernel.instants import instant_of, seconds

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


def test_a_job_is_created_at_each_scheduled_time(world: Cluster) -> None:
    world.create("cronjobs.batch", cron_job(world))
    world.run(125)
    created = world.store.all("jobs.batch").values()
    assert len(created) == 2
    first = next(iter(created))
    at = first["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert at.endswith(":00Z")
    assert first["metadata"]["labels"] == {"from": "tick"}
    assert first["metadata"]["ownerReferences"][0]["name"] == "tick"
    status = world.get("cronjobs.batch", TICK)["status"]
    assert status["lastScheduleTime"].endswith(":00Z")
    assert status["lastSuccessfulTime"] > at
    assert f"Saw completed job: {jobs(world)[0]}, condition: Complete" in world.events("SawCompletedJob")


def test_old_finished_jobs_are_deleted(world: Cluster) -> None:
    world.create("cronjobs.batch", cron_job(world, successfulJobsHistoryLimit=2))
    world.run(60 * 6)
    assert len(jobs(world)) == 2
    assert len(world.pods()) == 2


def test_forbid_skips_a_job_while_another_runs(world: Cluster) -> None:
    world.create("cronjobs.batch", cron_job(world, length="150s", concurrencyPolicy="Forbid"))
    world.run(130)
    assert len(jobs(world)) == 1
    assert len(world.events("JobAlreadyActive")) == 1
    world.run(120)
    assert len(jobs(world)) == 2


def test_replace_deletes_the_running_job(world: Cluster) -> None:
    world.create("cronjobs.batch", cron_job(world, length="1h", concurrencyPolicy="Replace"))
    world.run(190)
    assert len(jobs(world)) == 1
    (active,) = world.get("cronjobs.batch", TICK)["status"]["active"]
    assert active["name"] == jobs(world)[0]
    assert len(world.events("SuccessfulDelete")) >= 2


def test_a_resumed_cron_job_starts_only_the_latest_missed_job(world: Cluster) -> None:
    world.create("cronjobs.batch", cron_job(world, suspend=True))
    world.run(300)
    assert not jobs(world)
    world.change("cronjobs.batch", TICK, suspend=False)
    world.run(1)
    assert len(jobs(world)) == 1


@pytest.mark.parametrize("schedule", ["1,,2 * * * *", "@every 1µs", "@every -1h"])
def test_a_valid_schedule_creates_jobs(world: Cluster, schedule: str) -> None:
    world.create("cronjobs.batch", cron_job(world, schedule=schedule))
    world.run(3600)
    assert jobs(world)
    assert not [event for event in events(world) if event.startswith("Unparseable")]


def test_every_keeps_its_phase_after_missed_jobs(world: Cluster) -> None:
    world.create("cronjobs.batch", cron_job(world, schedule="@every 7m", suspend=True))
    created = instant_of(world.store.all("cronjobs.batch")[Key(TICK)]["metadata"]["creationTimestamp"])
    world.run(3600)
    world.change("cronjobs.batch", TICK, suspend=False)
    world.run(1)
    last = world.store.all("cronjobs.batch")[Key(TICK)]["status"]["lastScheduleTime"]
    assert instant_of(last) == created + seconds(8 * 7 * 60)


def test_a_schedule_without_dates_is_reported_in_an_event(world: Cluster) -> None:
    world.create("cronjobs.batch", cron_job(world, schedule="0 0 31 2 *"))
    world.run(60)
    reason = "time difference between two schedules is less than 1 second"
    assert events(world) == [f"InvalidSchedule: invalid schedule: 0 0 31 2 * : {reason}"]


def events(world: Cluster) -> list[str]:
    all_events = world.store.all("events").values()
    return [
        f"{event['reason']}: {event['message']}" for event in all_events if event["involvedObject"]["kind"] == "CronJob"
    ]
