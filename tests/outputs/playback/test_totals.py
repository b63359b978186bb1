"""PlaybackTotals follow the deltas, and are those of the state."""

from __future__ import annotations

from hypothesis import given
from tests.outputs.playback.lives import Lives, lives

from batkube.outputs.playback.deltas import deltas_of
from batkube.outputs.playback.model import NodeStatus
from batkube.outputs.playback.states import StateFold
from batkube.outputs.playback.totals import PlaybackTotals


@given(lives())
def test_totals_are_the_sums_of_the_state_after_each_delta(run: Lives) -> None:
    totals, fold = PlaybackTotals(run.nodes, run.pods, "cpu"), StateFold(run.nodes, run.pods)

    for delta in deltas_of(run.nodes, run.jobs, run.pods, run.attempts):
        totals.apply(delta)
        fold.apply(delta)
        state = fold.state()
        nodes = [(node, state.nodes[node.name]) for node in run.nodes if node.name in state.nodes]
        held = sum(seen.used.get("cpu", 0) for _, seen in nodes)
        ready = [(node, seen) for node, seen in nodes if seen.status is NodeStatus.READY]
        assert totals.offered == sum(node.capacity["cpu"] for node, _ in nodes)
        assert totals.held == held
        assert totals.free == sum(max(0, node.capacity["cpu"] - seen.used.get("cpu", 0)) for node, seen in ready)
        assert totals.utilisation == (held / totals.offered if nodes else 0)
        assert totals.pending_pods == len(state.pending)
        assert (totals.waiting_jobs, totals.running_jobs) == (len(state.waiting_jobs), len(state.running_jobs))
