"""ResourceQuotas: usage is charged and limited."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.api.admission.admission_cluster import Cluster, made, pod

from batkube.api.requests.statuses import Failure
from batkube.cluster.store import Key
from batkube.kernel.quantities import parse_quantity


def quota(name: str, hard: dict[str, str], **spec: object) -> dict[str, Any]:
    used = dict.fromkeys(hard, "0")
    return made("ResourceQuota", name, spec={"hard": hard, **spec}, status={"hard": dict(hard), "used": used})


def used_of(cluster: Cluster, name: str = "q") -> dict[str, str]:
    value = cluster.store.get("resourcequotas", Key(f"n/{name}"))
    assert value is not None
    used: dict[str, str] = value["status"]["used"]
    return used


def test_created_objects_are_charged_to_the_quota(cluster: Cluster) -> None:
    cluster.put(quota("q", {"pods": "2", "requests.cpu": "1"}))

    cluster.write(pod("a", {"cpu": "600m"}))

    assert used_of(cluster) == {"pods": "1", "requests.cpu": "600m"}
    assert cluster.refusal(pod("b", {"cpu": "600m"})) == (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, '
        "limited: requests.cpu=1"
    )
    assert used_of(cluster) == {"pods": "1", "requests.cpu": "600m"}


def test_pods_must_specify_resources_that_a_quota_limits(cluster: Cluster) -> None:
    cluster.put(quota("q", {"requests.cpu": "1", "limits.memory": "1Gi"}))

    assert cluster.refusal(pod()) == (
        'pods "p" is forbidden: failed quota: q: must specify limits.memory for: c; requests.cpu for: c'
    )


def test_a_quota_without_a_status_limits_nothing(cluster: Cluster) -> None:
    cluster.put(made("ResourceQuota", "q", spec={"hard": {"pods": "0"}}, status={}))

    assert cluster.write(pod())["kind"] == "Pod"


def test_scopes_select_the_pods_of_a_quota(cluster: Cluster) -> None:
    cluster.put(quota("idle", {"pods": "1"}, scopes=["BestEffort"]))
    cluster.put(quota("busy", {"pods": "5"}, scopes=["NotBestEffort"]))

    cluster.write(pod("a"))
    cluster.write(pod("b", {"cpu": "1"}))

    assert (used_of(cluster, "idle"), used_of(cluster, "busy")) == ({"pods": "1"}, {"pods": "1"})
    assert "exceeded quota: idle" in cluster.refusal(pod("c"))


def test_objects_are_counted_by_kind(cluster: Cluster) -> None:
    cluster.put(quota("q", {"count/deployments.apps": "1", "configmaps": "1", "services.nodeports": "1"}))
    ports = [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]

    cluster.write(made("ConfigMap", "a"))

    assert "exceeded quota: q, requested: configmaps=1" in cluster.refusal(made("ConfigMap", "b"))
    balanced = made("Service", "s", spec={"type": "NodePort", "ports": ports})
    assert "requested: services.nodeports=2" in cluster.refusal(balanced)
    cluster.write(made("Secret", "free"))


CPUS = st.lists(st.integers(0, 900).map(lambda millis: f"{millis}m"), max_size=12)


@settings(max_examples=50, deadline=None)
@given(CPUS)
def test_quota_usage_is_the_sum_of_admitted_pods_and_never_exceeds_the_limit(requests: list[str]) -> None:
    cluster = Cluster()
    cluster.put(quota("q", {"requests.cpu": "2", "pods": "5"}))
    admitted = []
    for number, cpu in enumerate(requests):
        try:
            cluster.write(pod(f"p{number}", {"cpu": cpu}))
        except Failure:
            continue
        admitted.append(parse_quantity(cpu).milli_value)

    used = used_of(cluster)
    assert parse_quantity(used["requests.cpu"]).milli_value == sum(admitted) <= 2000
    assert int(used["pods"]) == len(admitted) <= 5
