"""Columns of nodes."""

from __future__ import annotations

from tests.api.groups.printed_cells import printed


def test_the_status_and_the_roles_of_a_node_are_printed() -> None:
    node = {
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a"}},
        "spec": {"unschedulable": True},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
    }

    cells = printed("nodes", node)

    assert (cells["Status"], cells["Roles"], cells["Age"]) == ("NotReady,SchedulingDisabled", "a,b", "<unknown>")
