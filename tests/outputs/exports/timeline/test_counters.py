"""The counters of a timeline, compared with the state of the run at each instant."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from batkube.outputs.exports.timeline.counters import Counters
from batkube.outputs.exports.timeline.items import Value
from batkube.outputs.exports.timeline.tracks import Tracks
from batkube.outputs.playback.model import NodeStatus
from batkube.outputs.playback.playback import Playback
from batkube.outputs.playback.states import State


def expected(run: Playback, state: State) -> Mapping[str, float]:
    """Return the counters of a state of a run on whole machines."""
    capacity = sum(node.capacity[run.main_resource] for node in run.nodes if node.name in state.nodes)
    held = sum(node.used.get(run.main_resource, 0) for node in state.nodes.values())
    ready = [name for name, node in state.nodes.items() if node.status is NodeStatus.READY]
    return {
        "utilisation": 100 * held / capacity,
        "free machines": len(ready) - sum(state.nodes[name].used.get(run.main_resource, 0) for name in ready),
        "pending pods": len(state.pending),
        "waiting jobs": len(state.waiting_jobs),
        "running jobs": len(state.running_jobs),
    }


def test_the_values_are_those_of_the_state_after_each_instant(run: Playback) -> None:
    tracks = Tracks()
    counters = Counters(run, tracks)
    names: dict[int, str] = {}
    current = dict.fromkeys(("utilisation", "free machines", "pending pods", "waiting jobs", "running jobs"), 0.0)

    def record(values: list[Value]) -> None:
        names.update({track.number: track.name for track in tracks.pop_new()})
        current.update({names[value.track]: float(value.value) for value in values})

    previous = None
    for delta in run.deltas:
        record(list(counters.apply(delta)))
        if previous is not None and delta.at != previous:
            assert current == pytest.approx(expected(run, run.state_at(previous)), abs=1e-6)
        previous = delta.at
    record(list(counters.values()))
    assert previous is not None
    assert current == pytest.approx(expected(run, run.state_at(previous)), abs=1e-6)
