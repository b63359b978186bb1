"""A run's story is told by what is seen, in whatever order the two watches show it."""

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
from emulation.builders import event_at, make_job, make_task, pod_at

RUNNING = {"node": "n1", "phase": "Running", "has_started": True}
SUCCEEDED = {"node": "n1", "phase": "Succeeded", "has_started": True}
FAILED = {"node": "n1", "phase": "Failed", "has_started": True, "exit_code": 1}


def at(s: float) -> Instant:
    return Instant(seconds(s))


def story_of(*seen: PodUpdate | PodEvent, kind: JobKind = JobKind.POD, size: int = 1, **task: bool) -> JobTracker:
    story = JobTracker([make_task(job=make_job("0", size=size), **task)], kind)  # type: ignore[arg-type]
    story.record_submission(0, at(0))
    for each in seen:
        story.handle(each)
    return story


def test_a_pod_that_runs_to_its_end_makes_a_job_succeed() -> None:
    story = story_of(
        pod_at(0.1), pod_at(1, node="n1"), pod_at(2, **RUNNING), pod_at(12, **SUCCEEDED), pod_at(13, **SUCCEEDED)
    )

    (pod,) = story.jobs[0].pods.values()
    assert (pod.first_seen, pod.bound, pod.started, pod.finished) == (at(0.1), at(1), at(2), at(12))
    assert (story.is_over, story.jobs[0].state) == (True, FinalState.SUCCESS)


def test_the_started_event_counts_when_it_comes_before_the_status() -> None:
    story = story_of(pod_at(1, node="n1"), event_at(1.5, "Started"), pod_at(2, **RUNNING))

    (pod,) = story.jobs[0].pods.values()
    assert pod.started == at(1.5)


def test_the_status_counts_when_it_comes_before_the_started_event() -> None:
    story = story_of(pod_at(1, node="n1"), pod_at(1.2, **RUNNING), event_at(1.5, "Started"))

    (pod,) = story.jobs[0].pods.values()
    assert pod.started == at(1.2)


def test_steps_never_run_backwards_however_the_two_watches_interleave() -> None:
    pods = [pod_at(1, node="n1"), pod_at(2, **RUNNING)]
    events = [event_at(0.9, "Scheduled"), event_at(1.8, "Started")]
    for order in itertools.permutations([*pods, *events]):
        if order.index(pods[0]) < order.index(pods[1]) and order.index(events[0]) < order.index(events[1]):
            (pod,) = story_of(*order).jobs[0].pods.values()
            assert pod.bound is not None
            assert pod.started is not None
            assert pod.bound <= pod.started


def test_an_event_that_comes_before_its_pod_is_not_lost() -> None:
    story = story_of(event_at(0.5, "Pulling"), pod_at(1, node="n1"))

    assert story.jobs[0].pods["w0-0"].steps == {"pulling": at(0.5)}


def test_failed_placements_are_counted_and_told() -> None:
    seen = [event_at(1, "FailedScheduling", count=1), event_at(9, "FailedScheduling", count=7)]
    story = story_of(pod_at(0), *seen, event_at(10, "FailedScheduling", count=2, name="another"))

    pod = story.jobs[0].pods["w0-0"]
    assert (pod.failed_attempts, pod.reason) == (9, "because of FailedScheduling")


def test_a_repeated_failure_to_place_a_pod_is_no_progress() -> None:
    story = story_of(pod_at(0))

    assert not story.handle(event_at(1, "FailedScheduling", count=5))
    assert story.handle(pod_at(2, node="n1"))
    assert not story.handle(pod_at(3, node="n1"))


def test_a_job_of_three_pods_ends_with_the_last_of_them() -> None:
    story = story_of(*(pod_at(1, name=f"w0-0-{rank}", **RUNNING) for rank in range(3)), size=3)
    for rank in range(3):
        assert not story.is_over
        story.handle(pod_at(10 + rank, name=f"w0-0-{rank}", **SUCCEEDED))

    assert story.is_over


def test_a_failed_pod_makes_a_job_fail() -> None:
    assert story_of(pod_at(1, **RUNNING), pod_at(5, **FAILED)).jobs[0].state is FinalState.FAILED


def test_a_job_that_was_cut_at_its_walltime_says_so() -> None:
    assert story_of(pod_at(1, **RUNNING), pod_at(5, **SUCCEEDED), is_cut=True).jobs[0].state is FinalState.WALLTIME


def test_a_bare_pod_that_is_deleted_was_killed() -> None:
    story = story_of(pod_at(1, **RUNNING), pod_at(5, **RUNNING | {"is_gone": True}))

    assert (story.is_over, story.jobs[0].state) == (True, FinalState.KILLED)


def test_a_pod_that_is_deleted_after_its_end_is_not_lost() -> None:
    story = story_of(pod_at(1, **RUNNING), pod_at(5, **SUCCEEDED), pod_at(6, **SUCCEEDED | {"is_gone": True}))

    assert story.jobs[0].state is FinalState.SUCCESS


def test_a_pod_of_a_job_object_that_had_to_make_room_is_waited_for_again() -> None:
    evicted = FAILED | {"is_disrupted": True}
    story = story_of(pod_at(1, name="a", **RUNNING), pod_at(5, name="a", **evicted), kind=JobKind.JOB)
    assert not story.is_over

    story.handle(pod_at(6, name="b", **RUNNING))
    story.handle(pod_at(16, name="b", **SUCCEEDED))

    job = story.jobs[0]
    assert (story.is_over, job.state, [pod.name for pod in job.final_pods()]) == (True, FinalState.SUCCESS, ["b"])


def test_a_job_that_the_cluster_refuses_is_rejected() -> None:
    story = story_of()
    story.record_rejection(0, "exceeded quota", at(1))

    assert (story.is_over, story.jobs[0].state) == (True, FinalState.REJECTED)


def test_the_journal_is_in_the_order_of_time() -> None:
    story = story_of(pod_at(2, node="n1"), pod_at(3, **RUNNING), pod_at(12, **SUCCEEDED))
    story.record_submission(0, at(1))
    sink = io.BytesIO()
    journal = Journal(sink)

    story.write_journal(journal)
    journal.flush()

    lines = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["submit", "submit", "bind", "start", "finish"]
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)
