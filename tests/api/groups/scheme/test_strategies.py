"""Strategies: fields that clients cannot set or change, and generations."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.api.decoding.objects import decode
from batkube.api.groups.core.pods.strategy import qos_class
from batkube.api.groups.core.services.strategy import CLUSTER_RANGE, NODE_PORTS
from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.kind_model.strategy import DEFAULT
from batkube.api.groups.scheme.catalogue import KINDS
from batkube.api.groups.scheme.defaulting import apply_defaults
from batkube.api.groups.scheme.strategies import (
    default_propagation,
    deletion_grace_s,
    prepare_create,
    prepare_update,
    strategy_of,
)
from batkube.api.requests.statuses import Failure
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.store import Key, Store
from batkube.kernel.instants import START

TABLE = KindTable.builtin()
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}


def resource_of(value: dict[str, Any]) -> Resource:
    group, _, version = value["apiVersion"].rpartition("/")
    match = TABLE.of_kind(group, version, value["kind"])
    assert match is not None
    return match


def filled(value: dict[str, Any]) -> dict[str, Any]:
    obj: dict[str, Any] = decode(copy.deepcopy(value), resource_of(value).schema).object
    apply_defaults(resource_of(value), obj)
    return obj


def created(value: dict[str, Any], store: Store | None = None) -> dict[str, Any]:
    obj = filled(value)
    obj["metadata"]["uid"] = "the-uid"
    prepare_create(resource_of(value), obj, StrategyContext(store or Store(), START, "me", ("us",)))
    return obj


def updated(old: dict[str, Any], change: dict[str, Any], subresource: str = "") -> dict[str, Any]:
    """Update `old` with the fields of `change`, by dotted path (None removes a field)."""
    new = copy.deepcopy(old)
    for path, value in change.items():
        *parents, name = path.split(".")
        place = new
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is None:
            place.pop(name, None)
        else:
            place[name] = value
    apply_defaults(resource_of(new), new)
    before = copy.deepcopy(old)
    prepare_update(resource_of(new), new, old, StrategyContext(Store(), START), subresource)
    assert old == before, "a strategy must not edit the live object"
    return new


def made(kind: str, version: str, **fields: object) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": "n"}, **fields}


def pod(**spec: object) -> dict[str, Any]:
    return made("Pod", "v1", spec={"containers": [{"name": "c", "image": "i:1"}], **spec})


def deployment() -> dict[str, Any]:
    return made("Deployment", "apps/v1", spec={"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE})


def service(name: str, **spec: object) -> dict[str, Any]:
    value = made("Service", "v1", spec={"ports": [{"port": 80}], **spec})
    value["metadata"]["name"] = name
    return value


# Status and generation


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (deployment(), {}),
        (made("PodDisruptionBudget", "policy/v1", spec={}), {
            "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
        }),
        (made("Service", "v1", spec={"ports": [{"port": 1}]}), {"loadBalancer": {}}),
        (made("PersistentVolumeClaim", "v1", spec={}), {"phase": "Pending"}),
        (pod(), {"phase": "Pending", "qosClass": "BestEffort"}),
        (made("HorizontalPodAutoscaler", "autoscaling/v2", spec={}), {"desiredReplicas": 0, "currentMetrics": None}),
    ],
    ids=lambda each: each.get("kind", "") if isinstance(each, dict) else "",
)  # fmt: skip
def test_the_status_of_a_new_object_is_reset(value: dict[str, Any], status: dict[str, Any]) -> None:
    sent = {**value, "status": {"phase": "Bound"}}

    assert created(sent)["status"] == status


def test_a_new_node_keeps_the_status_that_its_kubelet_sends() -> None:
    node = created(made("Node", "v1", status={"capacity": {"cpu": "4"}}))

    assert node["status"]["capacity"] == node["status"]["allocatable"] == {"cpu": "4"}


def test_only_changes_of_the_spec_increment_the_generation() -> None:
    live = created(deployment())

    assert live["metadata"]["generation"] == 1
    assert updated(live, {"spec.replicas": 3})["metadata"]["generation"] == 2
    assert updated(live, {"metadata.annotations": {"a": "b"}})["metadata"]["generation"] == 2
    assert updated(live, {"metadata.labels": {"a": "b"}})["metadata"]["generation"] == 1
    assert updated(live, {"status.replicas": 3})["metadata"]["generation"] == 1


def test_an_update_keeps_the_status_and_a_status_update_keeps_the_rest() -> None:
    live = created(deployment())

    whole = updated(live, {"spec.replicas": 3, "status.replicas": 3})
    status = updated(live, {"spec.replicas": 3, "status.replicas": 3, "metadata.labels": {"l": "m"}}, "status")

    assert (whole["spec"]["replicas"], whole["status"]) == (3, {})
    assert (status["spec"]["replicas"], status["status"]) == (1, {"replicas": 3})
    assert "labels" not in status["metadata"]
    assert status["metadata"]["generation"] == 1


def test_every_strategy_belongs_to_a_served_kind() -> None:
    table = KindTable.builtin()
    for version in table.optional_versions:
        table.serve(*version.split("/"))
    served = {resource.storage for resource in table.resources()}

    assert {name for name, kind in KINDS.items() if kind.strategy != DEFAULT} <= served


def test_kinds_differ_in_create_on_update_and_default_propagation() -> None:
    lease, job = made("Lease", "coordination.k8s.io/v1"), made("Job", "batch/v1")

    assert strategy_of("leases.coordination.k8s.io").allow_create_on_update
    assert not strategy_of("leases.coordination.k8s.io").allow_unconditional_update
    assert not strategy_of("pods").allow_create_on_update
    assert default_propagation(resource_of(job)) == "Orphan"
    assert default_propagation(resource_of(lease)) == "Background"


# Pods


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1"}}, "Burstable"),
        ({"limits": {"example.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_the_qos_class_depends_on_cpu_and_memory(resources: dict[str, Any], expected: str) -> None:
    assert qos_class({"containers": [{"resources": resources}]}) == expected


def test_one_container_without_limits_makes_a_pod_burstable() -> None:
    sure = {"resources": {side: {"cpu": "1", "memory": "1Gi"} for side in ("limits", "requests")}}

    assert qos_class({"containers": [sure, sure]}) == "Guaranteed"
    assert qos_class({"containers": [sure, {}]}) == "Burstable"


def test_a_gated_pod_has_the_condition_scheduling_gated() -> None:
    (condition,) = created(pod(schedulingGates=[{"name": "a.b/c"}]))["status"]["conditions"]

    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


def test_a_pod_status_update_keeps_omitted_fields() -> None:
    live = created(pod())
    ready = {"type": "Ready", "status": "True", "observedGeneration": 3}
    live["status"] = {**live["status"], "observedGeneration": 3, "conditions": [ready]}

    status = updated(
        live, {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}}, "status"
    )

    assert status["status"]["qosClass"] == "BestEffort"
    assert status["status"]["observedGeneration"] == 3
    assert status["status"]["conditions"] == [{"type": "Ready", "status": "False", "observedGeneration": 3}]


def test_a_resize_changes_resources_and_nothing_else() -> None:
    live = created(pod())
    container = {**live["spec"]["containers"][0], "image": "other", "resources": {"requests": {"cpu": "2"}}}

    resized = updated(live, {"spec.containers": [container], "metadata.labels": {"a": "b"}}, "resize")

    assert resized["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert resized["spec"]["containers"][0]["image"] == "i:1"
    assert "labels" not in resized["metadata"]
    assert resized["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("spec", "phase", "requested_s", "grace_s"),
    [
        ({}, "Pending", 10, 0),
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n"}, "Running", 5, 5),
        ({"nodeName": "n"}, "Running", 0, 0),
        ({"nodeName": "n"}, "Running", -1, 1),
        ({"nodeName": "n"}, "Succeeded", None, 0),
    ],
)
def test_only_scheduled_pods_are_deleted_gracefully(
    spec: dict[str, Any], phase: str, requested_s: int | None, grace_s: int
) -> None:
    value = created(pod(**spec))
    value["status"]["phase"] = phase

    assert deletion_grace_s(resource_of(value), value, requested_s) == grace_s
    assert deletion_grace_s(resource_of(deployment()), deployment(), 5) is None


# Other kinds


def test_a_job_selects_its_own_pods() -> None:
    labels = {"metadata": {"labels": {"mine": "1"}}, "spec": TEMPLATE["spec"]}
    job = created(made("Job", "batch/v1", spec={"template": labels}))

    own = job["spec"]["template"]["metadata"]["labels"]
    assert own["batch.kubernetes.io/controller-uid"] == own["controller-uid"] == "the-uid"
    assert own["job-name"] == own["batch.kubernetes.io/job-name"] == "x"
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "the-uid"}}
    assert job["metadata"]["labels"] == own


def test_a_manual_selector_is_kept() -> None:
    selector = {"matchLabels": {"a": "b"}}
    job = created(made("Job", "batch/v1", spec={"template": TEMPLATE, "manualSelector": True, "selector": selector}))

    assert job["spec"]["selector"] == selector
    assert job["spec"]["template"]["metadata"]["labels"] == {"a": "b"}


def test_a_daemon_set_counts_template_generations() -> None:
    live = created(made("DaemonSet", "apps/v1", spec={"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}))
    number = "deprecated.daemonset.template.generation"

    changed = updated(live, {"spec.template.metadata.annotations": {"a": "b"}, "metadata.annotations": None})
    other = updated(live, {"spec.minReadySeconds": 5})

    assert live["metadata"]["annotations"][number] == "1"
    assert (changed["metadata"]["annotations"][number], changed["metadata"]["generation"]) == ("2", 2)
    assert (other["metadata"]["annotations"][number], other["metadata"]["generation"]) == ("1", 2)


def test_a_namespace_is_active_and_named_by_a_label() -> None:
    namespace = created(made("Namespace", "v1", status={"phase": "Terminating"}))

    assert namespace["status"] == {"phase": "Active"}
    assert namespace["spec"]["finalizers"] == ["kubernetes"]
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert updated(namespace, {"spec.finalizers": None})["spec"]["finalizers"] == ["kubernetes"]


def test_a_signing_request_records_its_creator() -> None:
    spec = {"request": "", "signerName": "a.b/c", "username": "somebody"}

    request = created(made("CertificateSigningRequest", "certificates.k8s.io/v1", spec=spec))

    assert (request["spec"]["username"], request["spec"]["groups"]) == ("me", ["us"])


# Services


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
