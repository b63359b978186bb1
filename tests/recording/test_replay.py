"""The replay of a log: jobs, nodes, and fidelity notes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant, rfc3339, seconds
from batkube.recording import replay as notes
from batkube.recording.log import (
    JobObservation,
    Line,
    NodeObservation,
    PodDescription,
    PodObservation,
    RecordingSettings,
    SessionEnd,
    SessionStart,
    read_log,
)
from batkube.recording.replay import Replay, replay_of
from batkube.workloads.run_times import run_time

#: The local time at which a recording begins.
BEGIN = seconds(800_000_000)


def at(second: float) -> Instant:
    return Instant(BEGIN + seconds(second))


def observed(
    uid: str, second: float, *, created: float | None = None, job: str = "", of_node: bool = False
) -> PodObservation:
    """Return the first observation of a pod: by watch, or in a list if it was `created` before."""
    stamp = rfc3339(at(second if created is None else created))
    description = PodDescription(
        name=f"pod-{uid}",
        namespace="team",
        created=stamp,
        requests=(("cpu", 500),),
        priority=0,
        scheduler="",
        image="",
        job=job,
        is_of_node=of_node,
        placement=(),
    )
    return PodObservation(at=at(second), uid=uid, is_listed=created is not None, description=description)


def running(uid: str, second: float) -> PodObservation:
    return PodObservation(at=at(second), uid=uid, is_listed=False, node="n", has_started=True)


def succeeded(uid: str, second: float, exit_code: int = 0) -> PodObservation:
    return PodObservation(
        at=at(second), uid=uid, is_listed=False, node="n", has_started=True, has_finished=True, exit_code=exit_code
    )


def completed(pod: PodObservation, stamp: str) -> PodObservation:
    """Return a pod that was created, started and finished at one time of the cluster's clock."""
    assert pod.description is not None
    return replace(
        pod,
        has_started=True,
        has_finished=True,
        started_at=stamp,
        finished_at=stamp,
        description=replace(pod.description, created=stamp),
    )


def deleted(uid: str, second: float) -> PodObservation:
    return PodObservation(at=at(second), uid=uid, is_listed=False, is_gone=True)


def replay_log(*lines: Line, length: float = 100, gangs: bool = False) -> Replay:
    return replay_of([SessionStart(at(0)), *lines, SessionEnd(at(length))], "w", gangs=gangs)


def counts(replay: Replay) -> dict[FidelityNote, int]:
    return dict(replay.notes)


def times(replay: Replay) -> list[tuple[float, float]]:
    lengths = [run_time(job.profile) for job in replay.jobs]
    assert None not in lengths
    return [
        (job.submit / NANOSECONDS_PER_SECOND, (length or 0) / NANOSECONDS_PER_SECOND)
        for job, length in zip(replay.jobs, lengths, strict=True)
    ]


def test_a_pod_is_a_job_with_the_observed_times() -> None:
    replay = replay_log(observed("a", 5), running("a", 6.25), succeeded("a", 10.5, exit_code=3))

    assert times(replay) == [(5, 4.25)]
    [job] = replay.jobs
    assert (job.name, job.user, job.size, job.profile.ret) == ("pod-a", "team", 1, 3)
    assert job.requests == (("cpu", 500),)
    assert replay.notes == []


def test_unfinished_and_deleted_pods_are_noted() -> None:
    replay = replay_log(
        *(observed("waits", 1), observed("withdrawn", 1), deleted("withdrawn", 3)),
        *(observed("runs", 1), running("runs", 90)),
        *(observed("deleted", 2), running("deleted", 4), deleted("deleted", 9)),
    )

    assert times(replay) == [(1, 10), (2, 5)]
    assert counts(replay) == {notes.NEVER_STARTED: 2, notes.STILL_RUNNING: 1, notes.DELETED_WHILE_RUNNING: 1}


def test_a_pod_from_before_the_recording_is_replayed_from_its_start() -> None:
    replay = replay_log(
        completed(observed("over", 0.5, created=-60), rfc3339(at(-20))),
        observed("runs", 0.5, created=-60),
        PodObservation(at=at(0.6), uid="runs", is_listed=True, has_started=True, started_at=rfc3339(at(-50))),
        succeeded("runs", 40),
    )

    assert times(replay) == [(0, 40)]
    assert counts(replay) == {notes.CREATED_BEFORE: 1}


@given(
    skew=st.integers(-5000, 5000),
    speed=st.sampled_from([1.0, 2.0, 10.0]),
    fractions=st.lists(st.integers(0, 999), min_size=1, max_size=20),
)
def test_the_offset_of_the_clocks_is_estimated_within_a_second(skew: int, speed: float, fractions: list[int]) -> None:
    """The cluster's clock is `skew` seconds ahead and `speed` times as fast; one pod runs between two sessions."""
    lines: list[Line] = [SessionStart(at(0), speed)]
    for number, thousandths in enumerate(fractions):
        real = 1 + number + thousandths / 1000
        lines.append(completed(observed(f"p{number}", real), rfc3339(at(skew + real * speed))))
    end_s = 500.5
    late = completed(observed("late", 900, created=0), rfc3339(at(skew + end_s * speed)))
    lines += [SessionEnd(at(100)), SessionStart(at(900), speed), late]

    jobs = replay_of(lines, "w").jobs

    last = jobs[-1]
    assert last.name == "pod-late"
    # Its timestamp is up to a second early, and the offset is known to a second.
    assert abs(last.submit / NANOSECONDS_PER_SECOND - end_s * speed) <= 1.0
    firsts = [job.submit for job in jobs[:-1]]
    differences = [(b - a) / NANOSECONDS_PER_SECOND for a, b in pairwise(firsts)]
    factors = [1 + (after - before) / 1000 for before, after in pairwise(fractions)]
    assert differences == pytest.approx([part * speed for part in factors], abs=1e-6)


def test_the_pods_of_a_parallel_job_are_a_gang() -> None:
    pods = [
        observed("a", 1, job="j"),
        observed("b", 2, job="j"),
        running("a", 3),
        running("b", 5),
        succeeded("a", 9),
        succeeded("b", 10),
    ]

    for parallelism, gangs, expected in ((2, True, [2]), (2, False, [1, 1]), (1, True, [1, 1])):
        replay = replay_log(JobObservation(at(1), "j", "train", parallelism, 2), *pods, gangs=gangs)
        assert [job.size for job in replay.jobs] == expected
        if expected == [2]:
            assert times(replay) == [(1, 5)]
            assert replay.jobs[0].name == "train"


def test_the_requests_of_a_nodes_own_pods_are_subtracted() -> None:
    node = NodeObservation(at=at(0.1), name="n", allocatable={"cpu": 2000, "pods": 110})
    replay = replay_log(
        node,
        observed("agent", 1, of_node=True),
        running("agent", 2),
        observed("a", 3),
        running("a", 4),
        succeeded("a", 5),
    )

    assert [job.name for job in replay.jobs] == ["pod-a"]
    assert replay.nodes[0].allocatable == {"cpu": 1500, "pods": 109}
    assert counts(replay) == {notes.BELONGS_TO_NODE: 1}


def test_a_deleted_node_is_noted() -> None:
    node = NodeObservation(at=at(0.1), name="n", allocatable={"cpu": 2000})
    replay = replay_log(node, NodeObservation(at=at(50), name="n", is_gone=True))

    assert [node.name for node in replay.nodes] == ["n"]
    assert counts(replay) == {notes.NODE_CHANGED: 1}


def test_a_file_that_is_not_a_log_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    path.write_text('{"type":"settings","cluster":"c","namespace":"","key":""}\n{"type":"pot"}\n')
    with pytest.raises(InputError, match="line 2"):
        read_log(path)
    path.write_text('{"type":"ended","at":3}\n')
    with pytest.raises(InputError, match="is not a recording"):
        read_log(path)
    path.write_text('{"type":"settings","cluster":"c","namespace":"","key":""}\n{"type":"po')
    assert read_log(path) == [RecordingSettings("c", "", "")]
