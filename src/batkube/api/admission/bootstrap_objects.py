"""The objects that every cluster starts with: namespaces, priority classes, the service `kubernetes`, flow control.

Like kube-apiserver, we create them through the API when the server starts, so that they get defaults, uids and so on.
Kubernetes: pkg/controlplane, apiserver/pkg/apis/flowcontrol/bootstrap/default.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batkube.api.groups.core.services.strategy import CLUSTER_RANGE

_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease", "default")

#: Name, value and description of the system priority classes (Kubernetes: pkg/apis/scheduling/v1/helpers.go).
_PRIORITY_CLASSES = (
    (
        "system-node-critical",
        2000001000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2000000000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
)

#: Priority levels with queues: name, nominal shares, lendable percent, number of queues, hand size.
_QUEUED_PRIORITY_LEVELS = (
    ("system", 30, 33, 64, 6),
    ("node-high", 40, 25, 64, 6),
    ("leader-election", 10, 0, 16, 4),
    ("workload-high", 40, 50, 128, 6),
    ("workload-low", 100, 90, 128, 6),
    ("global-default", 20, 50, 128, 6),
)
_QUEUE_LENGTH = 50

_ALL_USERS = ("group:system:unauthenticated", "group:system:authenticated")
_KUBE_SYSTEM = "account:kube-system:*"
_ANY_RESOURCE = ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True},)
_ANY_PATH = ({"verbs": ["*"], "nonResourceURLs": ["*"]},)
_PROBES = ({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]},)
_LEADER_ELECTION = (
    {
        "verbs": ["get", "create", "update"],
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "namespaces": ["*"],
    },
)
_NODES = (
    {
        "verbs": ["*"],
        "apiGroups": [""],
        "resources": ["nodes", "nodes/status"],
        "namespaces": ["*"],
        "clusterScope": True,
    },
    {"verbs": ["*"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]},
)

#: Name, priority level, matching precedence, flow distinguisher, subjects, rules for resources, rules for paths.
_FLOW_SCHEMAS: tuple[tuple[str, str, int, str, Sequence[str], Sequence[Any], Sequence[Any]], ...] = (
    ("exempt", "exempt", 1, "", ("group:system:masters",), _ANY_RESOURCE, _ANY_PATH),
    ("catch-all", "catch-all", 10000, "ByUser", _ALL_USERS, _ANY_RESOURCE, _ANY_PATH),
    ("system-nodes", "system", 500, "ByUser", ("group:system:nodes",), _ANY_RESOURCE, _ANY_PATH),
    ("system-node-high", "node-high", 400, "ByUser", ("group:system:nodes",), _NODES, ()),
    ("probes", "exempt", 2, "", _ALL_USERS, (), _PROBES),
    (
        "system-leader-election",
        "leader-election",
        100,
        "ByUser",
        ("user:system:kube-controller-manager", "user:system:kube-scheduler", _KUBE_SYSTEM),
        _LEADER_ELECTION,
        (),
    ),
    (
        "kube-controller-manager",
        "workload-high",
        800,
        "ByNamespace",
        ("user:system:kube-controller-manager",),
        _ANY_RESOURCE,
        _ANY_PATH,
    ),
    ("kube-scheduler", "workload-high", 800, "ByNamespace", ("user:system:kube-scheduler",), _ANY_RESOURCE, _ANY_PATH),
    ("kube-system-service-accounts", "workload-high", 900, "ByNamespace", (_KUBE_SYSTEM,), _ANY_RESOURCE, _ANY_PATH),
    ("service-accounts", "workload-low", 9000, "ByUser", ("group:system:serviceaccounts",), _ANY_RESOURCE, _ANY_PATH),
    ("global-default", "global-default", 9900, "ByUser", _ALL_USERS, _ANY_RESOURCE, _ANY_PATH),
)


def bootstrap_objects(port: int, address: str = "") -> list[dict[str, Any]]:
    """Return the objects to create when a server starts, in order; `port` is the port of the API server.

    If `address` is given, the Service `kubernetes` also has endpoints (Kubernetes: pkg/controlplane/reconcilers).
    """
    return [
        *(_new_object("v1", "Namespace", name) for name in _NAMESPACES),
        *(_priority_class(*row) for row in _PRIORITY_CLASSES),
        _new_object("networking.k8s.io/v1", "ServiceCIDR", "kubernetes", spec={"cidrs": [str(CLUSTER_RANGE)]}),
        _kubernetes_service(port),
        *(_kubernetes_endpoints(address, port) if address else ()),
        _authentication_config_map(),
        *_priority_levels(),
        *(_flow_schema(*row) for row in _FLOW_SCHEMAS),
    ]


def _new_object(version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def _priority_class(name: str, value: int, description: str) -> dict[str, Any]:
    return _new_object("scheduling.k8s.io/v1", "PriorityClass", name, value=value, description=description)


def _kubernetes_service(port: int) -> dict[str, Any]:
    spec = {
        "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
        "clusterIP": str(CLUSTER_RANGE[1]),
        "ipFamilyPolicy": "SingleStack",
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    service = _new_object("v1", "Service", "kubernetes", spec=spec)
    service["metadata"].update(namespace="default", labels={"provider": "kubernetes", "component": "apiserver"})
    return service


def _kubernetes_endpoints(address: str, port: int) -> list[dict[str, Any]]:
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    # Excluded from mirroring, because the server writes the EndpointSlice itself.
    endpoints = _new_object("v1", "Endpoints", "kubernetes", subsets=[{"addresses": [{"ip": address}], "ports": ports}])
    endpoints["metadata"].update(namespace="default", labels={"endpointslice.kubernetes.io/skip-mirror": "true"})
    ready = [{"addresses": [address], "conditions": {"ready": True}}]
    endpoint_slice = _new_object(
        "discovery.k8s.io/v1", "EndpointSlice", "kubernetes", addressType="IPv4", endpoints=ready, ports=ports
    )
    endpoint_slice["metadata"].update(namespace="default", labels={"kubernetes.io/service-name": "kubernetes"})
    return [endpoints, endpoint_slice]


def _authentication_config_map() -> dict[str, Any]:
    """Return the ConfigMap with the authentication settings for extension servers; kube-scheduler reads it on start."""
    config = _new_object("v1", "ConfigMap", "extension-apiserver-authentication")
    config["metadata"]["namespace"] = "kube-system"
    return config


def _flow_control_object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    config = _new_object("flowcontrol.apiserver.k8s.io/v1", kind, name, spec=spec)
    config["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": "true"}
    return config


def _priority_levels() -> list[dict[str, Any]]:
    kind = "PriorityLevelConfiguration"
    exempt = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}
    rejected = {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}}
    levels = [
        _flow_control_object(kind, "exempt", exempt),
        _flow_control_object(kind, "catch-all", {"type": "Limited", "limited": rejected}),
    ]
    for name, shares, lendable, queues, hand in _QUEUED_PRIORITY_LEVELS:
        queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": _QUEUE_LENGTH}
        limited = {
            "nominalConcurrencyShares": shares,
            "lendablePercent": lendable,
            "limitResponse": {"type": "Queue", "queuing": queuing},
        }
        levels.append(_flow_control_object(kind, name, {"type": "Limited", "limited": limited}))
    return levels


def _flow_schema(
    name: str,
    level: str,
    precedence: int,
    distinguisher: str,
    subjects: Sequence[str],
    resources: Sequence[Any],
    paths: Sequence[Any],
) -> dict[str, Any]:
    rule: dict[str, Any] = {"subjects": [_subject(each) for each in subjects]}
    if resources:
        rule["resourceRules"] = list(resources)
    if paths:
        rule["nonResourceRules"] = list(paths)
    spec: dict[str, Any] = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": [rule],
    }
    if distinguisher:
        spec["distinguisherMethod"] = {"type": distinguisher}
    return _flow_control_object("FlowSchema", name, spec)


def _subject(text: str) -> dict[str, Any]:
    """Return a subject: `user:NAME`, `group:NAME` or `account:NAMESPACE:NAME`."""
    kind, _, name = text.partition(":")
    if kind == "account":
        namespace, _, account = name.partition(":")
        return {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": account}}
    if kind == "group":
        return {"kind": "Group", "group": {"name": name}}
    return {"kind": "User", "user": {"name": name}}
