"""Random nodes, jobs and pods, with lives that end and begin at the same instants."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from batkube.kernel.instants import Instant
from batkube.outputs.playback.deltas import Attempt
from batkube.outputs.playback.model import (
    Execution,
    NodePeriod,
    NodeStatus,
    RecordedJob,
    RecordedNode,
    RecordedPod,
    StatusChange,
)

#: Few instants, so that many things happen at once.
INSTANTS = st.integers(0, 8).map(lambda time_us: Instant(1000 * time_us))
STATUSES = st.sampled_from(NodeStatus)


class Lives(NamedTuple):
    nodes: tuple[RecordedNode, ...]
    jobs: tuple[RecordedJob, ...]
    pods: tuple[RecordedPod, ...]
    attempts: dict[int, list[Attempt]]


@st.composite
def lives(draw: st.DrawFn) -> Lives:
    nodes = tuple(_node(draw, number) for number in range(draw(st.integers(1, 3))))
    jobs = tuple(_job(draw, number) for number in range(draw(st.integers(0, 4))))
    pods = tuple(_pod(draw, number) for number in range(draw(st.integers(0, 6))))
    attempts = {pod.number: [Attempt(pod.created, 1, ""), Attempt(pod.created, 0, "no room")] for pod in pods[::2]}
    return Lives(nodes, jobs, pods, attempts)


def _node(draw: st.DrawFn, number: int) -> RecordedNode:
    """A node that exists in one or two periods, and changes its status inside them."""
    edges = sorted(draw(st.sets(INSTANTS, min_size=1, max_size=4)))
    ends: list[Instant | None] = [*edges, None]
    periods = tuple(NodePeriod(begin, end) for begin, end in zip(edges[::2], ends[1::2], strict=False))
    changes = {period.begin: NodeStatus.READY for period in periods}
    for at, status in draw(st.dictionaries(INSTANTS, STATUSES)).items():
        if any(period.contains(at) for period in periods):
            changes[at] = status
    statuses = tuple(StatusChange(at, status) for at, status in sorted(changes.items()))
    return RecordedNode(number, f"node-{number}", number, {"cpu": 4000}, "", "", "", periods, statuses)


def _job(draw: st.DrawFn, number: int) -> RecordedJob:
    """A job that was queued up to three times."""
    edges = sorted(draw(st.lists(INSTANTS, min_size=1, max_size=4)))
    executions = []
    for queued, ended in zip(edges, [*edges[1:], None], strict=True):
        latest = edges[-1] if ended is None else ended
        started = draw(st.none() | st.sampled_from([queued, latest]))
        executions.append(Execution(queued, started, ended))
    return RecordedJob(number, f"w0!{number}", str(number), "w0", tuple(executions))


def _pod(draw: st.DrawFn, number: int) -> RecordedPod:
    """A pod that reached some of its phases, perhaps all at one instant; each node has room for all pods."""
    times: list[Instant | None] = [*sorted(draw(st.lists(INSTANTS, min_size=4, max_size=4)))]
    created = times[0]
    assert created is not None
    reached = draw(st.integers(1, 4))
    bound, started, ended = (time if phase < reached else None for phase, time in enumerate(times[1:], start=1))
    if draw(st.booleans()):
        ended = times[3]
    node = "" if bound is None else f"node-{draw(st.integers(0, 3))}"
    requests = {"cpu": 500}
    return RecordedPod(
        number, f"pod-{number}", None, node, created, bound, started, ended, "Failed", 1, "", "", requests
    )
