"""Columns of workloads."""

from __future__ import annotations

from tests.api.groups.printed_cells import printed


def test_selectors_are_printed_in_the_notation_of_kubectl() -> None:
    selector = {
        "matchLabels": {"b": "1"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "a", "operator": "DoesNotExist"},
        ],
    }
    value = {"metadata": {"name": "d"}, "spec": {"selector": selector, "replicas": 2}, "status": {}}

    assert printed("deployments.apps", value)["Selector"] == "!a,b=1,c in (x,y)"
