"""Create the Nodes of machines, at the start of a run or a served cluster and by events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from batkube.cluster.mapping import NODE, POD, ResourceModel, node_names_of, node_of
from batkube.components.access import Access
from batkube.execution.latencies.system_pods import SystemPod, machine_ids_of, system_pod_objects
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import PODS
from batkube.platforms.model import Machine

if TYPE_CHECKING:
    from batkube.execution.nodes.registration import NodeRegistrar


class NodeCreator:
    """Creates the Nodes of machines."""

    def __init__(self, access: Access, model: ResourceModel = ResourceModel.REQUESTS) -> None:
        self._access = access
        self._model = model

    def store(self, machines: Iterable[Machine], now: Instant) -> None:
        """Store the nodes of a run, which exist and are ready before it begins."""
        nodes = [node_of(machine, self._model, now)[1] for machine in machines]
        self._access.client("batkube").restore(NODE, nodes, now)

    def register(
        self, machines: Iterable[Machine], registrar: NodeRegistrar, now: Instant, annotations: Mapping[str, str]
    ) -> None:
        """Register nodes with additional `annotations`, as their kubelets do."""
        client = self._access.client("kubelet")
        for machine in machines:
            _, node = node_of(machine, self._model, now)
            # The registrar adds the Ready condition.
            conditions = node["status"]["conditions"]
            node["status"]["conditions"] = [condition for condition in conditions if condition["type"] != "Ready"]
            if annotations:
                node["metadata"]["annotations"] = {**node["metadata"].get("annotations", {}), **annotations}
            client.create(NODE, registrar.registered_node(node, now), now)

    def add(self, machine: Machine, now: Instant) -> None:
        """Create the node of a machine that joins the cluster, as an administrator does."""
        self._access.client("kubectl").create(NODE, node_of(machine, self._model, now)[1], now)

    def store_system_pods(
        self, pods: Sequence[SystemPod], machines: Sequence[Machine], allocations: NodeAllocations, now: Instant
    ) -> None:
        """Store the running system pods of a run, which hold their requests from the beginning."""
        if not pods:
            return
        names = node_names_of(machines)
        self._access.client("batkube").restore(POD, system_pod_objects(pods, machines, names, now), now)
        for pod, machine_id in zip(pods, machine_ids_of(pods, machines), strict=True):
            allocations.reserve(names[machine_id], (*pod.requests, (PODS, 1)))
