"""Columns of autoscalers."""

from __future__ import annotations

from tests.api.groups.printed_cells import printed


def test_only_two_metrics_of_an_autoscaler_are_printed() -> None:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}
    packets = {"type": "Pods", "pods": {"target": {"averageValue": "1k"}}}
    value = {
        "metadata": {"name": "h"},
        "spec": {"metrics": [cpu, packets, {"type": "?"}], "maxReplicas": 3},
        "status": {"currentMetrics": [{"type": "Resource", "resource": {"current": {"averageUtilization": 7}}}]},
    }

    cells = printed("horizontalpodautoscalers.autoscaling", value)

    assert (cells["Targets"], cells["MinPods"]) == ("cpu: 7%/80%, <unknown>/1k + 1 more...", "<unset>")
