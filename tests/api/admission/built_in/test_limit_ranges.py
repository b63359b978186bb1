"""LimitRanges: default limits and bounds of containers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.admission.admission_cluster import Cluster, made, pod, resource_of

from batkube.api.groups.scheme.defaulting import apply_defaults


def limit_range(*limits: dict[str, Any]) -> dict[str, Any]:
    value = made("LimitRange", "limits", spec={"limits": list(limits)})
    apply_defaults(resource_of(value), value)
    return value


def test_containers_get_the_default_limits_and_the_pod_an_annotation(cluster: Cluster) -> None:
    cluster.put(
        limit_range({"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "500m"}})
    )

    value = cluster.write(pod(requests={"memory": "1Mi"}))

    assert value["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "500m", "memory": "1Mi"},
    }
    note = value["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
    assert note == "LimitRanger plugin set: cpu request for container c; cpu, memory limit for container c"


@pytest.mark.parametrize(
    ("resources", "problem"),
    [
        (
            {"requests": {"cpu": "50m"}, "limits": {"cpu": "100m"}},
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}, "maximum cpu usage per Container is 2, but limit is 3"),
        (
            {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}},
            "cpu max limit to request ratio per Container is 4, but provided ratio is 10.000000",
        ),
    ],
)
def test_pods_that_violate_a_limit_range_are_rejected(
    cluster: Cluster, resources: dict[str, Any], problem: str
) -> None:
    cluster.put(
        limit_range(
            {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "4"}}
        )
    )
    value = pod()
    value["spec"]["containers"][0]["resources"] = resources

    assert cluster.refusal(value) == f'pods "p" is forbidden: {problem}'
