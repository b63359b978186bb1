"""The state at an instant is the same by deltas and by the lives of nodes, jobs and pods."""

from __future__ import annotations

from hypothesis import given
from tests.outputs.playback.lives import Lives, lives

from batkube.kernel.instants import Instant
from batkube.outputs.playback.deltas import deltas_of
from batkube.outputs.playback.model import NodePeriod, NodeStatus, RecordedNode, RecordedPod, StatusChange
from batkube.outputs.playback.states import NodeState, State, StateFold, state_of


@given(lives())
def test_the_state_at_any_instant_is_the_fold_of_the_deltas_until_then(run: Lives) -> None:
    deltas = deltas_of(run.nodes, run.jobs, run.pods, run.attempts)

    for at_us in range(-1, 10):
        at = Instant(1000 * at_us)
        fold = StateFold(run.nodes, run.pods)
        for delta in deltas:
            if delta.at <= at:
                fold.apply(delta)
        assert fold.state() == state_of(run.nodes, run.jobs, run.pods, at)


def test_a_state_has_nodes_with_their_pods_and_what_they_hold() -> None:
    node = RecordedNode(
        0, "a", 0, {"cpu": 4000}, "", "", "", (NodePeriod(Instant(0)),), (StatusChange(Instant(0), NodeStatus.READY),)
    )
    times = [(0, 1, 2, 9), (0, 1, None, None), (3, None, None, None)]
    pods = [
        RecordedPod(
            number, str(number), None, "a" if bound else "", Instant(created), *_instants(bound, started, ended),
            "Running", 1, "", "", {"cpu": 1500},
        )
        for number, (created, bound, started, ended) in enumerate(times)
    ]  # fmt: skip

    used = {"cpu": 3000, "pods": 2}
    assert state_of([node], [], pods, Instant(5)) == State(
        {"a": NodeState(NodeStatus.READY, (0, 1), used)}, (2,), (1,), (0,), (), ()
    )


def test_the_pods_of_a_failed_node_hold_nothing() -> None:
    changes = (StatusChange(Instant(0), NodeStatus.READY), StatusChange(Instant(5), NodeStatus.FAILED))
    node = RecordedNode(0, "a", 0, {"cpu": 4000}, "", "", "", (NodePeriod(Instant(0)),), changes)
    pod = RecordedPod(0, "p", None, "a", *_instants(0, 1, 2, None), "Running", 1, "", "", {"cpu": 1500})

    before, after = (state_of([node], [], [pod], Instant(at)).nodes["a"] for at in (4, 5))
    assert before.used == {"cpu": 1500, "pods": 1}
    assert after == NodeState(NodeStatus.FAILED, (0,), {})


def _instants(*times: int | None) -> list[Instant]:
    return [None if time is None else Instant(time) for time in times]  # type: ignore[misc]
