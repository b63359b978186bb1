"""Deltas are in the order of time, and resources are released before they are used again."""

from __future__ import annotations

from hypothesis import given
from tests.outputs.playback.lives import Lives, lives

from batkube.kernel.instants import Instant
from batkube.outputs.playback.deltas import Attempt, DeltaKind, deltas_of
from batkube.outputs.playback.model import Execution, RecordedJob, RecordedPod
from batkube.outputs.playback.states import StateFold


def pod(number: int, created: int, bound: int, ended: int) -> RecordedPod:
    instants = map(Instant, (created, bound, bound, ended))
    return RecordedPod(number, str(number), None, "a", *instants, "Succeeded", 1, "", "", {"cpu": 1000})


@given(lives())
def test_deltas_are_in_the_order_of_time_and_each_pod_passes_through_its_phases(run: Lives) -> None:
    deltas = deltas_of(run.nodes, run.jobs, run.pods, run.attempts)

    assert [delta.at for delta in deltas] == sorted(delta.at for delta in deltas)
    for one in run.pods:
        kinds = [delta.kind for delta in deltas if delta.kind.startswith("pod-") and delta.number == one.number]
        phases = [kind for kind in kinds if kind is not DeltaKind.POD_UNSCHEDULABLE]
        times = {"queued": one.created, "bound": one.bound, "started": one.started, "ended": one.ended}
        assert phases == [f"pod-{name}" for name, at in times.items() if at is not None]


def test_a_node_is_never_overcommitted_between_two_deltas_of_one_instant() -> None:
    """One pod at a time has room: the first ends when two others pass at once and a fourth one stays."""
    pods = [pod(0, 0, 5, 9), pod(1, 5, 5, 5), pod(2, 0, 5, 5), pod(3, 0, 1, 5)]
    fold = StateFold([], pods)

    for delta in deltas_of([], [], pods, {}):
        fold.apply(delta)
        assert len(fold.pods_of_node["a"]) <= 1


def test_a_failed_attempt_comes_between_the_creation_and_the_binding_of_its_pod() -> None:
    attempts = {0: [Attempt(Instant(3), failed=1), Attempt(Instant(3), reason="no room")]}

    kinds = [delta.kind for delta in deltas_of([], [], [pod(0, 3, 3, 9)], attempts)]

    assert [kind.value for kind in kinds] == [
        "pod-queued", "scheduler-attempt", "pod-unschedulable", "pod-bound", "pod-started", "pod-ended",
    ]  # fmt: skip


def test_a_job_that_is_evicted_at_its_start_waits_again() -> None:
    executions = (Execution(Instant(0), Instant(4), Instant(4)), Execution(Instant(4)))
    fold = StateFold([], [])

    for delta in deltas_of([], [RecordedJob(0, "w0!1", "1", "w0", executions)], [], {}):
        fold.apply(delta)

    assert (fold.waiting_jobs, fold.running_jobs) == ({0}, set())
