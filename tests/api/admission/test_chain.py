"""The built-in admission plugins."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.api.admission.bootstrap_objects import bootstrap_objects
from batkube.api.admission.built_in.namespace_lifecycle import check_deletable
from batkube.api.admission.chain import AdmissionChain
from batkube.api.decoding.objects import decode
from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.scheme.defaulting import apply_defaults
from batkube.api.groups.scheme.strategies import prepare_create
from batkube.api.requests.statuses import Failure
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import START
from batkube.kernel.quantities import parse_quantity

TABLE = KindTable.builtin()
ACTIVE = {"metadata": {"name": "n"}, "status": {"phase": "Active"}}


def resource_of(value: dict[str, Any]) -> Resource:
    group, _, version = value["apiVersion"].rpartition("/")
    found = TABLE.of_kind(group, version, value["kind"])
    assert found is not None
    return found


def made(kind: str, name: str, version: str = "v1", **fields: object) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def pod(name: str = "p", requests: dict[str, str] | None = None, **spec: object) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "i:1"}
    if requests:
        container["resources"] = {"requests": requests}
    return made("Pod", name, spec={"containers": [container], **spec})


class Cluster:
    """A store with a namespace, and an admission chain."""

    def __init__(self, service_accounts: random.Random | None = None) -> None:
        self.store = Store()
        self.store.create("namespaces", [Key("n")], [ACTIVE], START)
        self.admission = AdmissionChain(self.store, service_accounts)

    def put(self, value: dict[str, Any]) -> None:
        """Store an object as it is."""
        resource = resource_of(value)
        value["metadata"].setdefault("creationTimestamp", "2000-01-01T00:00:00Z")
        self.store.create(resource.storage, [self.key(resource, value)], [value], START)

    def key(self, resource: Resource, value: KubeObject) -> Key:
        name = value["metadata"]["name"]
        return Key(f"n/{name}" if resource.namespaced else name)

    def write(self, value: dict[str, Any], old: KubeObject | None = None, subresource: str = "") -> dict[str, Any]:
        """Do what the server does with a write, without validation; return the object as it would be stored."""
        resource = resource_of(value)
        obj: dict[str, Any] = decode(copy.deepcopy(value), resource.schema).object
        apply_defaults(resource, obj)
        namespace = "n" if resource.namespaced else ""
        attempt = self.admission.new_request(
            resource, obj, old, START, namespace=namespace, name=value["metadata"]["name"], subresource=subresource
        )
        self.admission.admit(attempt)
        if old is None and not subresource:
            prepare_create(resource, obj, StrategyContext(self.store, START))
        for key, quota in self.admission.validate(attempt):
            self.store.replace("resourcequotas", [key], [quota], START)
        return obj

    def refusal(self, value: dict[str, Any], old: KubeObject | None = None) -> str:
        """Return why a write is refused."""
        with pytest.raises(Failure) as refused:
            self.write(value, old)
        assert refused.value.code == 403
        return refused.value.message


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


# Namespaces


def test_objects_cannot_be_created_in_a_missing_namespace(cluster: Cluster) -> None:
    cluster.store.delete("namespaces", [Key("n")], START)

    with pytest.raises(Failure) as refused:
        cluster.write(pod())

    assert (refused.value.code, refused.value.message) == (404, 'namespaces "n" not found')


def test_a_terminating_namespace_accepts_updates_but_no_creations(cluster: Cluster) -> None:
    live = cluster.write(pod())
    terminating = {**ACTIVE, "status": {"phase": "Terminating"}}
    cluster.store.replace("namespaces", [Key("n")], [terminating], START)

    cluster.write(pod(), old=live)

    expected = "unable to create new content in namespace n because it is being terminated"
    assert cluster.refusal(pod()) == f'pods "p" is forbidden: {expected}'


def test_system_namespaces_cannot_be_deleted() -> None:
    namespaces = resource_of(made("Namespace", "x"))

    check_deletable(namespaces, "mine")
    with pytest.raises(Failure, match="this namespace may not be deleted"):
        check_deletable(namespaces, "kube-system")


# Priority


def test_a_pod_gets_the_priority_of_its_class(cluster: Cluster) -> None:
    cluster.put(made("PriorityClass", "high", "scheduling.k8s.io/v1", value=7, preemptionPolicy="Never"))

    chosen, none = cluster.write(pod(priorityClassName="high"))["spec"], cluster.write(pod())["spec"]

    assert (chosen["priority"], chosen["preemptionPolicy"]) == (7, "Never")
    assert (none["priority"], none["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in none


def test_pods_without_a_class_get_the_single_default_one(cluster: Cluster) -> None:
    cluster.put(made("PriorityClass", "usual", "scheduling.k8s.io/v1", value=3, globalDefault=True))

    spec = cluster.write(pod())["spec"]
    second = made("PriorityClass", "other", "scheduling.k8s.io/v1", value=4, globalDefault=True)

    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 3)
    assert "PriorityClass usual is already marked as default" in cluster.refusal(second)


def test_an_unknown_class_and_an_explicit_priority_are_rejected(cluster: Cluster) -> None:
    assert "no PriorityClass with name nope was found" in cluster.refusal(pod(priorityClassName="nope"))
    assert "the integer value of priority (5) must not be provided" in cluster.refusal(pod(priority=5))


# Tolerations, runtimes, accounts


def test_a_pod_tolerates_a_failed_node_for_five_minutes_by_default(cluster: Cluster) -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}

    usual = cluster.write(pod())["spec"]["tolerations"]
    some = cluster.write(pod(tolerations=[own]))["spec"]["tolerations"]
    all_of_them = cluster.write(pod(tolerations=[{"operator": "Exists"}]))["spec"]["tolerations"]

    assert [each["tolerationSeconds"] for each in usual] == [300, 300]
    assert [each["key"].rpartition("/")[2] for each in some] == ["not-ready", "unreachable"]
    assert all_of_them == [{"operator": "Exists"}]


def test_a_runtime_class_adds_its_overhead_and_scheduling_constraints(cluster: Cluster) -> None:
    overhead = {"podFixed": {"cpu": "100m"}}
    scheduling = {"nodeSelector": {"runtime": "kata"}}
    cluster.put(made("RuntimeClass", "kata", "node.k8s.io/v1", handler="k", overhead=overhead, scheduling=scheduling))

    spec = cluster.write(pod(runtimeClassName="kata", nodeSelector={"a": "b"}))["spec"]

    assert spec["overhead"] == {"cpu": "100m"}
    assert spec["nodeSelector"] == {"a": "b", "runtime": "kata"}
    assert "conflict: runtimeClass" in cluster.refusal(pod(runtimeClassName="kata", nodeSelector={"runtime": "x"}))
    assert 'RuntimeClass "nope" not found' in cluster.refusal(pod(runtimeClassName="nope"))
    assert "Pod Overhead set without corresponding" in cluster.refusal(pod(overhead={"cpu": "1"}))


def test_pods_get_a_service_account_only_if_the_plugin_is_enabled() -> None:
    bare, full = Cluster(), Cluster(random.Random(1))

    without, spec = bare.write(pod())["spec"], full.write(pod())["spec"]

    assert "serviceAccountName" not in without
    assert spec["serviceAccountName"] == "default"
    (volume,), (mount,) = spec["volumes"], spec["containers"][0]["volumeMounts"]
    assert volume["name"] == mount["name"]
    assert volume["name"].startswith("kube-api-access-")
    assert 'serviceaccount "robot" not found' in full.refusal(pod(serviceAccountName="robot"))


# Nodes, storage, ingresses


def test_a_new_node_is_tainted_as_not_ready(cluster: Cluster) -> None:
    node = cluster.write(made("Node", "a"))

    assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert cluster.write(made("Node", "a"), old=node)["spec"] == {}


def test_claims_get_a_finalizer_and_the_newest_default_class(cluster: Cluster) -> None:
    marked = {"storageclass.kubernetes.io/is-default-class": "true"}
    for name, year in (("old", 2001), ("new", 2002), ("other", 2003)):
        value = made("StorageClass", name, "storage.k8s.io/v1", provisioner="p")
        value["metadata"].update(creationTimestamp=f"{year}-01-01T00:00:00Z")
        if name != "other":
            value["metadata"]["annotations"] = marked
        cluster.put(value)

    claim = cluster.write(made("PersistentVolumeClaim", "c", spec={}))
    own = cluster.write(made("PersistentVolumeClaim", "c", spec={"storageClassName": ""}))

    assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert (claim["spec"]["storageClassName"], own["spec"]["storageClassName"]) == ("new", "")


def test_only_bound_claims_of_expandable_classes_can_grow(cluster: Cluster) -> None:
    cluster.put(made("StorageClass", "fast", "storage.k8s.io/v1", provisioner="p", allowVolumeExpansion=True))

    def claim(size: str, name: str = "fast") -> dict[str, Any]:
        requests = {"requests": {"storage": size}}
        return made("PersistentVolumeClaim", "c", spec={"storageClassName": name, "resources": requests})

    live = cluster.write(claim("1Gi"))
    bound = {**live, "status": {"phase": "Bound"}}

    assert "Only bound persistent volume claims can be expanded" in cluster.refusal(claim("2Gi"), old=live)
    assert cluster.write(claim("2Gi"), old=bound)["spec"]["resources"]["requests"] == {"storage": "2Gi"}
    assert "must support resize" in cluster.refusal(claim("2Gi", "slow"), old=bound)


# Limits


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


# Pod security


def set_security_labels(cluster: Cluster, **labels: str) -> None:
    """Set the pod security labels of the namespace."""
    marked = {f"pod-security.kubernetes.io/{name}": level for name, level in labels.items()}
    cluster.store.replace("namespaces", [Key("n")], [{**ACTIVE, "metadata": {"name": "n", "labels": marked}}], START)


def test_without_labels_all_pods_are_allowed(cluster: Cluster) -> None:
    assert cluster.write(pod(hostNetwork=True, hostPID=True))["spec"]["hostPID"] is True


def test_the_pod_security_level_of_the_namespace_is_enforced(cluster: Cluster) -> None:
    set_security_labels(cluster, enforce="baseline")

    cluster.write(pod())

    assert cluster.refusal(pod(hostNetwork=True)) == (
        'pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
    )


def test_the_restricted_level_rejects_a_plain_pod(cluster: Cluster) -> None:
    set_security_labels(cluster, enforce="restricted")
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }

    cluster.write(pod(containers=[{"name": "c", "image": "i", "securityContext": security}]))

    assert cluster.refusal(pod()) == (
        'pods "p" is forbidden: violates PodSecurity "restricted:latest": '
        'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
        'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
        'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
        '"Localhost")'
    )


def test_a_workload_whose_pods_would_be_rejected_gets_a_warning(cluster: Cluster) -> None:
    set_security_labels(cluster, enforce="baseline")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(hostIPC=True)["spec"]}
    value = made("Deployment", "d", "apps/v1", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template})
    warnings: list[str] = []
    attempt = cluster.admission.new_request(
        resource_of(value), value, None, START, namespace="n", name="d", warnings=warnings
    )

    cluster.admission.validate(attempt)

    assert warnings == ['would violate PodSecurity "baseline:latest": host namespaces (hostIPC=true)']


def test_an_unknown_pod_security_level_is_rejected(cluster: Cluster) -> None:
    value = made("Namespace", "x")
    value["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "strict"}

    with pytest.raises(Failure, match="must be one of privileged, baseline, restricted") as refused:
        cluster.write(value)

    assert refused.value.code == 422


# Quotas


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


# From the start


def test_the_bootstrap_objects_pass_admission() -> None:
    cluster = Cluster()
    names = []
    for value in bootstrap_objects(6443):
        resource = resource_of(value)
        namespace = value["metadata"].get("namespace", "")
        if namespace:
            assert cluster.store.get("namespaces", Key(namespace)) is not None, "namespaces come first"
        obj = cluster.write(value)
        name = obj["metadata"]["name"]
        key = Key(f"{namespace}/{name}" if namespace else name)
        cluster.store.create(resource.storage, [key], [obj], START)
        names.append(f"{value['kind']} {name}")

    assert len(names) == len(set(names))
    assert {"Namespace default", "PriorityClass system-node-critical", "Service kubernetes"} <= set(names)
    kubernetes = cluster.store.get("services", Key("default/kubernetes"))
    assert kubernetes is not None
    assert kubernetes["spec"]["clusterIP"] == "10.96.0.1"
