"""Registers nodes and reports their status, as kubelets do.

Kubernetes: pkg/kubelet/kubelet_node_status.go and pkg/kubelet/nodestatus. A Node created by kubectl or an autoscaler
becomes a simulated machine at once: it is ready, with the capacity in its status or a default capacity.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Mapping

from batkube.cluster.client import ApiError, Client
from batkube.cluster.event_recorder import EventNote, EventRecorder
from batkube.cluster.object_meta import Condition, condition_of, has_condition, with_condition
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.suspension import Suspended
from batkube.cluster.world import World
from batkube.execution.nodes.addresses import AddressPool
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant, rfc3339
from batkube.kernel.quantities import PODS
from batkube.platforms.model import DEFAULT_PODS

NODE = "nodes"
NODE_NETWORK = "172.16.0.0/12"
#: The address of the API server for simulated pods: the last address of the nodes' network.
CONTROL_PLANE = "172.31.255.254"
KUBELET_VERSION = "v1.34.4-batkube"

#: The taint of a new node until it is ready (Kubernetes: plugin/pkg/admission/nodetaint).
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
#: The capacity of a node that is created without one.
_DEFAULT_CAPACITY = {"cpu": "4", "memory": "16Gi", PODS: str(DEFAULT_PODS)}
_DEFAULT_LABELS = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
_READY = "Ready"
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    (_READY, "True", "KubeletReady", "kubelet is posting ready status"),
)


def _identity(name: str, purpose: str) -> str:
    digest = hashlib.sha256(f"{purpose}/{name}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def _node_info(name: str) -> KubeObject:
    return {
        "machineID": _identity(name, "machine").replace("-", ""),
        "systemUUID": _identity(name, "system"),
        "bootID": _identity(name, "boot"),
        "kernelVersion": "0.0.0-batkube",
        "osImage": "Batkube (simulated)",
        "containerRuntimeVersion": "batkube://1.0.0",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


class NodeRecovery:
    """Sets the conditions of nodes that return after a failure (Kubernetes: nodestatus.ReadyCondition)."""

    def __init__(self, world: World, client: Client) -> None:
        self._store = world.store
        self._client = client
        world.heartbeats.subscribe(on_return=self._post_ready)

    def _post_ready(self, name: str, now: Instant) -> None:
        node = self._store.get(NODE, Key(name))
        if node is not None:
            status = node.get("status", {})
            known_conditions = [
                condition for condition in status.get("conditions") or () if condition["status"] != "Unknown"
            ]
            conditions = _conditions(known_conditions, now)
            self._client.update(
                NODE, {**node, "status": {**status, "conditions": conditions}}, now, subresource="status"
            )


class NodeRegistrar:
    """Reports the status of every node in the store, in place of its kubelet."""

    def __init__(
        self,
        world: World,
        client: Client,
        events: EventRecorder,
        resources: Mapping[str, str] | None = None,
        *,
        has_lifecycle: bool = True,
    ) -> None:
        """`resources` are added to the capacity of each node, as device plugins do.

        Without `has_lifecycle`, no controller monitors nodes: those of the platform are not changed, and a node that a
        client creates accepts pods as soon as it is registered.
        """
        self._store = store = world.store
        self._agenda = world.agenda
        self._suspension = world.suspension
        self._machines = world.machines
        self._client = client
        self._events = events
        self._resources = resources or {}
        self._has_lifecycle = has_lifecycle
        self._addresses = AddressPool(NODE_NETWORK)
        store.subscribe(NODE, self._on_nodes_changed)

    def registered_node(self, node: KubeObject, now: Instant) -> KubeObject:
        """Return `node` with all fields that its kubelet reports; fields that are already set are kept."""
        name = node["metadata"]["name"]
        status = node.get("status", {})
        offered = status.get("capacity") or status.get("allocatable") or _DEFAULT_CAPACITY
        capacity = {**_with_pods(offered, str(DEFAULT_PODS)), **self._resources}
        allocatable = _with_pods(status.get("allocatable") or capacity, capacity[PODS])
        metadata = node["metadata"]
        labels = {**_DEFAULT_LABELS, "kubernetes.io/hostname": name, **(metadata.get("labels") or {})}
        return {
            **node,
            "metadata": {**metadata, "labels": labels},
            "status": {
                **status,
                "capacity": capacity,
                "allocatable": {**allocatable, **self._resources},
                "conditions": _conditions(status.get("conditions") or [], now),
                "addresses": status.get("addresses") or self._new_addresses(name),
                "daemonEndpoints": status.get("daemonEndpoints") or {"kubeletEndpoint": {"Port": 10250}},
                "nodeInfo": {**_node_info(name), **(status.get("nodeInfo") or {})},
            },
        }

    def _new_addresses(self, name: str) -> list[KubeObject]:
        return [{"type": "InternalIP", "address": self._addresses.allocate()}, {"type": "Hostname", "address": name}]

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for change in batch.changes():
            node = change.object
            if batch.type is DELETED:
                continue
            is_new = batch.type is ADDED and not self._machines.is_described(change.key)
            if self._is_unregistered(node) or (is_new and not has_condition(node, _READY)):
                self._agenda.book(now, Rank.START, functools.partial(self._register, change.key, is_new))
            elif batch.type is not ADDED and change.previous is not None:
                self._on_cordon_changed(change.previous, node, now)

    def _is_unregistered(self, node: KubeObject) -> bool:
        """Return whether the kubelet of a node has not reported its status yet."""
        if not self._has_lifecycle and self._machines.is_described(node["metadata"]["name"]):
            return False
        status = node.get("status", {})
        offered = status.get("allocatable") or {}
        is_known = condition_of(node, _READY) is not None and bool(status.get("addresses"))
        lacks_resources = any(resource not in offered for resource in (PODS, *self._resources))
        return not is_known or lacks_resources or self._without_not_ready_taint(node)["spec"] != node["spec"]

    def _without_not_ready_taint(self, node: KubeObject) -> KubeObject:
        """Return a node without the taint of new nodes if it is ready and no controller removes the taint."""
        if self._has_lifecycle or not has_condition(node, _READY):
            return node
        return {**node, "spec": _without_taint(node["spec"], _NOT_READY)}

    def _on_cordon_changed(self, before: KubeObject, node: KubeObject, now: Instant) -> None:
        if bool(before["spec"].get("unschedulable")) != bool(node["spec"].get("unschedulable")):
            reason = "NodeNotSchedulable" if node["spec"].get("unschedulable") else "NodeSchedulable"
            self._agenda.book(now, Rank.START, functools.partial(self._record_event, node, reason))

    def _record_event(self, node: KubeObject, reason: str, now: Instant) -> None:
        name = node["metadata"]["name"]
        note = EventNote("Normal", reason, f"Node {name} status is now: {reason}", host=name)
        self._events.record(node, NODE, note, now)

    def _register(self, key: Key, is_new: bool, now: Instant) -> None:
        """Report the status of a node; report it again if a webhook has to be called first."""
        try:
            with self._suspension.allow(True):
                self._report(key, is_new, now)
        except Suspended as suspension:
            suspension.when_answered(functools.partial(self._register, key, is_new))

    def _report(self, key: Key, is_new: bool, now: Instant) -> None:
        """Report the status of a node; a new node is ready, whatever its creator wrote."""
        node = self._store.get(NODE, key)
        if node is None:
            return
        registered = self._without_not_ready_taint(
            self.registered_node(_without_failed_conditions(node) if is_new else node, now)
        )
        with contextlib.suppress(ApiError):
            if (registered["metadata"], registered["spec"]) != (node["metadata"], node["spec"]):
                node = self._client.update(
                    NODE, {**node, "metadata": registered["metadata"], "spec": registered["spec"]}, now
                )
            self._client.update(NODE, {**node, "status": registered["status"]}, now, subresource="status")


def _with_pods(resources: Mapping[str, str], pods: str) -> Mapping[str, str]:
    return resources if PODS in resources else {**resources, PODS: pods}


def _without_failed_conditions(node: KubeObject) -> KubeObject:
    """Return a node without conditions that report it as not ready or unknown."""
    status = node.get("status", {})
    conditions = status.get("conditions") or []
    remaining = [
        condition
        for condition in conditions
        if condition["status"] != "Unknown" and (condition["type"] != _READY or condition["status"] == "True")
    ]
    return {**node, "status": {**status, "conditions": remaining}}


def _without_taint(spec: KubeObject, taint: Mapping[str, str]) -> KubeObject:
    taints = spec.get("taints") or []
    remaining = [other for other in taints if any(other.get(name) != taint[name] for name in taint)]
    if len(remaining) == len(taints):
        return spec
    return {
        **{name: value for name, value in spec.items() if name != "taints"},
        **({"taints": remaining} if remaining else {}),
    }


def _conditions(present: list[Condition], now: Instant) -> list[Condition]:
    conditions = present
    for kind, status, reason, message in _CONDITIONS:
        if not any(condition["type"] == kind for condition in present):
            new = {
                "type": kind,
                "status": status,
                "lastHeartbeatTime": rfc3339(now),
                "reason": reason,
                "message": message,
            }
            conditions = with_condition(conditions, new, now)
    return conditions
