"""The tracker derives jobs and their times from updates and Events, in whatever order the two watches report them."""

from __future__ import annotations

import io
import itertools
import json

from batkube.cluster.jobs.outcomes import FinalState
from batkube.emulation.client.watch_events import PodEvent, PodUpdate
from batkube.emulation.job_tracker import JobTracker
from batkube.emulation.settings import JobKind
from batkube.kernel.instants import Instant, seconds
from batkube.kernel.journal import Journal
from emulation.builders import event_at, make_job, make_planned_job, pod_at

RUNNING = {"node": "n1", "phase": "Running", "has_started": True}
SUCCEEDED = {"node": "n1", "phase": "Succeeded", "has_started": True}
FAILED = {"node": "n1", "phase": "Failed", "has_started": True, "exit_code": 1}


def at(s: float) -> Instant:
    return Instant(seconds(s))


def tracker_of(
    *events: PodUpdate | PodEvent, kind: JobKind = JobKind.POD, size: int = 1, **planned: bool
) -> JobTracker:
    tracker = JobTracker([make_planned_job(job=make_job("0", size=size), **planned)], kind)  # type: ignore[arg-type]
    tracker.record_submission(0, at(0))
    for each in events:
        tracker.handle(each)
    return tracker


def test_a_job_succeeds_when_its_pod_does() -> None:
    tracker = tracker_of(
        pod_at(0.1), pod_at(1, node="n1"), pod_at(2, **RUNNING), pod_at(12, **SUCCEEDED), pod_at(13, **SUCCEEDED)
    )

    (pod,) = tracker.jobs[0].pods.values()
    assert (pod.first_seen, pod.bound, pod.started, pod.finished) == (at(0.1), at(1), at(2), at(12))
    assert (tracker.is_over, tracker.jobs[0].state) == (True, FinalState.SUCCESS)


def test_a_pod_starts_at_its_started_event_if_that_arrives_before_the_status() -> None:
    tracker = tracker_of(pod_at(1, node="n1"), event_at(1.5, "Started"), pod_at(2, **RUNNING))

    (pod,) = tracker.jobs[0].pods.values()
    assert pod.started == at(1.5)


def test_a_pod_starts_at_its_running_status_if_that_arrives_before_the_event() -> None:
    tracker = tracker_of(pod_at(1, node="n1"), pod_at(1.2, **RUNNING), event_at(1.5, "Started"))

    (pod,) = tracker.jobs[0].pods.values()
    assert pod.started == at(1.2)


def test_steps_are_in_order_however_the_two_watches_interleave() -> None:
    pods = [pod_at(1, node="n1"), pod_at(2, **RUNNING)]
    events = [event_at(0.9, "Scheduled"), event_at(1.8, "Started")]
    for order in itertools.permutations([*pods, *events]):
        if order.index(pods[0]) < order.index(pods[1]) and order.index(events[0]) < order.index(events[1]):
            (pod,) = tracker_of(*order).jobs[0].pods.values()
            assert pod.bound is not None
            assert pod.started is not None
            assert pod.bound <= pod.started


def test_an_event_that_arrives_before_its_pod_is_kept() -> None:
    tracker = tracker_of(event_at(0.5, "Pulling"), pod_at(1, node="n1"))

    assert tracker.jobs[0].pods["w0-0"].steps == {"pulling": at(0.5)}


def test_failed_scheduling_events_are_counted_and_give_the_reason() -> None:
    events = [event_at(1, "FailedScheduling", count=1), event_at(9, "FailedScheduling", count=7)]
    tracker = tracker_of(pod_at(0), *events, event_at(10, "FailedScheduling", count=2, name="another"))

    pod = tracker.jobs[0].pods["w0-0"]
    assert (pod.failed_attempts, pod.reason) == (9, "because of FailedScheduling")


def test_a_repeated_failed_scheduling_event_is_not_progress() -> None:
    tracker = tracker_of(pod_at(0))

    assert not tracker.handle(event_at(1, "FailedScheduling", count=5))
    assert tracker.handle(pod_at(2, node="n1"))
    assert not tracker.handle(pod_at(3, node="n1"))


def test_a_job_of_three_pods_ends_with_its_last_pod() -> None:
    tracker = tracker_of(*(pod_at(1, name=f"w0-0-{rank}", **RUNNING) for rank in range(3)), size=3)
    for rank in range(3):
        assert not tracker.is_over
        tracker.handle(pod_at(10 + rank, name=f"w0-0-{rank}", **SUCCEEDED))

    assert tracker.is_over


def test_a_job_fails_when_a_pod_does() -> None:
    assert tracker_of(pod_at(1, **RUNNING), pod_at(5, **FAILED)).jobs[0].state is FinalState.FAILED


def test_a_job_that_ends_at_its_walltime_has_that_state() -> None:
    assert (
        tracker_of(pod_at(1, **RUNNING), pod_at(5, **SUCCEEDED), exceeds_walltime=True).jobs[0].state
        is FinalState.WALLTIME
    )


def test_a_job_is_killed_when_its_bare_pod_is_deleted() -> None:
    tracker = tracker_of(pod_at(1, **RUNNING), pod_at(5, **RUNNING | {"is_deleted": True}))

    assert (tracker.is_over, tracker.jobs[0].state) == (True, FinalState.KILLED)


def test_a_pod_that_is_deleted_after_it_succeeded_is_not_lost() -> None:
    tracker = tracker_of(pod_at(1, **RUNNING), pod_at(5, **SUCCEEDED), pod_at(6, **SUCCEEDED | {"is_deleted": True}))

    assert tracker.jobs[0].state is FinalState.SUCCESS


def test_a_preempted_pod_of_a_job_object_is_replaced() -> None:
    evicted = FAILED | {"is_disrupted": True}
    tracker = tracker_of(pod_at(1, name="a", **RUNNING), pod_at(5, name="a", **evicted), kind=JobKind.JOB)
    assert not tracker.is_over

    tracker.handle(pod_at(6, name="b", **RUNNING))
    tracker.handle(pod_at(16, name="b", **SUCCEEDED))

    job = tracker.jobs[0]
    assert (tracker.is_over, job.state, [pod.name for pod in job.counted_pods()]) == (True, FinalState.SUCCESS, ["b"])


def test_a_job_that_the_cluster_rejects_has_ended() -> None:
    tracker = tracker_of()
    tracker.record_rejection(0, "exceeded quota", at(1))

    assert (tracker.is_over, tracker.jobs[0].state) == (True, FinalState.REJECTED)


def test_the_journal_is_in_order_of_time() -> None:
    tracker = tracker_of(pod_at(2, node="n1"), pod_at(3, **RUNNING), pod_at(12, **SUCCEEDED))
    tracker.record_submission(0, at(1))
    sink = io.BytesIO()
    journal = Journal(sink)

    tracker.write_journal(journal)
    journal.flush()

    lines = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["submit", "submit", "bind", "start", "finish"]
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)
