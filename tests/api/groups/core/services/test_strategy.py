"""Strategy of Services: fields by type, cluster IPs and node ports."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.api.groups.prepared_objects import created, made, updated

from batkube.api.groups.core.services.strategy import CLUSTER_RANGE, NODE_PORTS
from batkube.api.requests.statuses import Failure
from batkube.cluster.store import Key, Store
from batkube.kernel.instants import START


def service(name: str, **spec: object) -> dict[str, Any]:
    value = made("Service", "v1", spec={"ports": [{"port": 80}], **spec})
    value["metadata"]["name"] = name
    return value


def test_a_service_gets_a_free_cluster_ip_and_node_port() -> None:
    store = Store()
    for number in range(3):
        name = f"s{number}"
        value = created(service(name, type="NodePort"), store)
        store.create("services", [Key(f"n/{name}")], [value], START)

    specs = [value["spec"] for value in store.all("services").values()]
    assert len({spec["clusterIP"] for spec in specs}) == 3
    assert len({spec["ports"][0]["nodePort"] for spec in specs}) == 3
    assert all(spec["ports"][0]["nodePort"] in NODE_PORTS for spec in specs)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"clusterIP": "192.168.0.1"}, "the provided network does not match the current range"),
        ({"clusterIP": str(CLUSTER_RANGE[7])}, "provided IP is already allocated"),
        ({"ipFamilyPolicy": "RequireDualStack"}, "this cluster is not configured for dual-stack services"),
        ({"ipFamilies": ["IPv6"]}, "not configured on this cluster"),
        ({"type": "NodePort", "ports": [{"port": 1, "nodePort": 5}]}, "provided port is not in the valid range"),
    ],
)
def test_a_request_for_a_used_or_invalid_address_is_rejected(spec: dict[str, Any], problem: str) -> None:
    store = Store()
    store.create("services", [Key("n/a")], [created(service("a", clusterIP=str(CLUSTER_RANGE[7])), store)], START)

    with pytest.raises(Failure, match=problem) as refusal:
        created(service("b", **spec), store)

    assert refusal.value.code == 422


def test_a_headless_service_without_selector_has_both_families() -> None:
    spec = created(service("a", clusterIP="None"))["spec"]

    assert spec["clusterIPs"] == ["None"]
    assert (spec["ipFamilyPolicy"], spec["ipFamilies"]) == ("RequireDualStack", ["IPv4", "IPv6"])


TYPES = st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"])


@settings(max_examples=60, deadline=None)
@given(st.lists(TYPES, min_size=1, max_size=6))
def test_a_service_has_the_fields_of_its_type_after_any_type_changes(types: list[str]) -> None:
    live = created(service("a", type=types[0], externalName="x.y"))
    for kind in types:
        before = live["spec"]
        live = updated(live, {"spec.type": kind, "spec.externalName": "x.y"})
        spec = live["spec"]
        inside = kind != "ExternalName"
        assert bool(spec.get("clusterIP")) == bool(spec.get("clusterIPs")) == bool(spec.get("ipFamilies")) == inside
        assert ("nodePort" in spec["ports"][0]) == (kind in ("NodePort", "LoadBalancer"))
        assert ("internalTrafficPolicy" in spec) == inside
        if inside and before["type"] != "ExternalName":
            assert spec["clusterIP"] == before["clusterIP"]


def test_omitted_allocated_values_are_kept() -> None:
    live = created(service("a", type="NodePort"))

    again = updated(live, {"spec": {"type": "NodePort", "ports": [{"port": 80}]}})

    assert again["spec"] == live["spec"]
