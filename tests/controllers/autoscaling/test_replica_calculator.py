"""The replica calculator: cases of Kubernetes' own tests (pkg/controller/podautoscaler/replica_calculator_test.go)."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.cluster.pods.usage import PodUsage
from batkube.cluster.world import World
from batkube.controllers.autoscaling.replica_calculator import CalculationFailed, Target, calculate_replicas
from batkube.kernel.instants import Instant, rfc3339, seconds
from batkube.kernel.streams import Streams
from batkube.workloads.container_rules.rules import ContainerRules

NOW = Instant(seconds(10_000))
LONG_AGO = 9_000
USE = PodUsage(World(Streams(0)).store, ContainerRules((), Streams(0)))
HALF = Target("cpu", "", 50, None)


def pod(name: str, usage: str | None, request: str = "1", phase: str = "Running", ready_for_s: int = LONG_AGO) -> Any:  # noqa: ANN401 - any JSON
    """Return a pod with this CPU usage; None for a pod without metrics."""
    since = rfc3339(Instant(NOW - seconds(ready_for_s)))
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False", "lastTransitionTime": since}
    state = {} if usage is None else {"running": {"startedAt": since}}
    return {
        "metadata": {"name": name, "annotations": {} if usage is None else {"batkube.io/cpu-usage": usage}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": request}}}]},
        "status": {
            "phase": phase,
            "startTime": since,
            "conditions": [ready],
            "containerStatuses": [{"name": "c", "restartCount": 0, "state": state}],
        },
    }


@pytest.mark.parametrize(
    ("pods", "target", "replicas", "percent"),
    [
        ([pod("a", "1"), pod("b", "1")], HALF, 4, 100),
        # No change within a tenth of the target.
        ([pod("a", "550m"), pod("b", "550m")], HALF, 2, 55),
        ([pod("a", "560m"), pod("b", "560m")], HALF, 3, 56),
        ([pod("a", "100m"), pod("b", "100m")], HALF, 1, 10),
        # When scaling up, a pod that is not ready is assumed to use nothing …
        ([pod("a", "1"), pod("b", "1"), pod("c", None, phase="Pending")], HALF, 4, 100),
        ([pod("a", "600m"), pod("b", "600m"), pod("c", None, phase="Pending")], HALF, 3, 60),
        # … and when scaling down it does not count.
        ([pod("a", "100m"), pod("b", "100m"), pod("c", None, phase="Pending")], HALF, 1, 10),
        # A young pod counts once it has been ready for a whole window.
        ([pod("a", "1"), pod("b", "1", ready_for_s=14)], HALF, 2, 100),
        ([pod("a", "1"), pod("b", "1", ready_for_s=15)], HALF, 4, 100),
        # A pod without metrics uses its whole request when scaling down, and nothing when scaling up.
        ([pod("a", "100m"), pod("b", "100m"), pod("c", None)], HALF, 3, 10),
        ([pod("a", "100m"), pod("b", "100m"), pod("c", "100m"), pod("d", None)], HALF, 3, 10),
        ([pod("a", "1"), pod("b", "1"), pod("c", "1"), pod("d", None)], HALF, 6, 100),
        # Failed pods are ignored.
        ([pod("a", "1"), pod("b", None, phase="Failed")], HALF, 2, 100),
        ([pod("a", "250m"), pod("b", "350m")], Target("cpu", "", None, 100), 6, None),
    ],
)
def test_proposed_replicas_bring_the_average_to_the_target(
    pods: list[Any], target: Target, replicas: int, percent: int | None
) -> None:
    proposal = calculate_replicas(target, pods, USE, len(pods), NOW)
    assert (proposal.replicas, proposal.utilisation_percent) == (replicas, percent)


@pytest.mark.parametrize(
    ("pods", "target", "problem"),
    [
        ([], HALF, "unable to get metrics for resource cpu: no metrics returned from resource metrics API"),
        ([pod("a", "1", request="0")], HALF, "no metrics returned matched known pods"),
        ([pod("a", "1", ready_for_s=1)], HALF, r"did not receive metrics for targeted pods \(pods might be unready\)"),
        ([pod("a", "1")], Target("memory", "", 50, None), "missing request for memory in container c of Pod a"),
    ],
)
def test_without_metrics_the_calculation_fails(pods: list[Any], target: Target, problem: str) -> None:
    with pytest.raises(CalculationFailed, match=problem):
        calculate_replicas(target, pods, USE, max(1, len(pods)), NOW)
