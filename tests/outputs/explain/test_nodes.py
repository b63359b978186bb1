"""The explanation of a node: its use, its pods, and when it was not ready."""

from __future__ import annotations

from itertools import pairwise

import pytest

from batkube.kernel.quantities import CPU
from batkube.outputs.explain.nodes import explain_node
from batkube.outputs.playback.playback import Playback


def test_the_mean_and_the_peak_are_those_of_the_states_in_between(shared_nodes: Playback) -> None:
    edges = sorted({delta.at for delta in shared_nodes.deltas} | {shared_nodes.end})
    for node in shared_nodes.nodes:
        integral = peak = length = 0
        for begin, end in pairwise(edges):
            state = shared_nodes.state_at(begin).nodes.get(node.name)
            if state is not None and end > begin:
                pods = (shared_nodes.pods[number] for number in state.pods)
                used = sum(pod.requests.get(CPU, 0) for pod in pods)
                integral, peak, length = integral + used * (end - begin), max(peak, used), length + end - begin
        (use,) = [use for use in explain_node(shared_nodes, node).uses if use.resource == CPU]

        assert use.peak == peak
        assert use.mean == pytest.approx(integral / (length * node.capacity[CPU]))


def test_every_pod_of_the_node_is_part_of_a_stay(shared_nodes: Playback) -> None:
    for node in shared_nodes.nodes:
        stays = explain_node(shared_nodes, node).stays

        assert sum(stay.pods for stay in stays) == sum(pod.node == node.name for pod in shared_nodes.pods)
        assert [stay.since for stay in stays] == sorted(stay.since for stay in stays)


def test_periods_in_which_a_node_was_not_ready_are_listed(shared_nodes: Playback) -> None:
    statuses = {
        node.name: [(status.status, status.begin // 10**9) for status in explain_node(shared_nodes, node).statuses]
        for node in shared_nodes.nodes
    }

    assert statuses["node-3"] == [("failed", 200)]
    assert statuses["node-1"] == statuses["node-2"] == [("cordoned", 400)]
    assert statuses["node-0"] == []


def test_an_added_node_existed_from_then_on(shared_nodes: Playback) -> None:
    added = next(node for node in shared_nodes.nodes if node.name.startswith("spot"))

    ((begin, end),) = explain_node(shared_nodes, added).existed
    assert (begin, end) == (600 * 10**9, 960 * 10**9)
