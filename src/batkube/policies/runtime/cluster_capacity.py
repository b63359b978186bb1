"""The machines that a policy may use: the store's nodes minus what pods of other schedulers hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from batkube.cluster.mapping import ResourceModel, kube_name
from batkube.cluster.object_meta import labels_of
from batkube.cluster.pods.accessors import node_of_pod
from batkube.cluster.pods.resources import Amounts, add_amounts, allocatable_of, demand_of, has_changed_spec
from batkube.cluster.store import Key, KubeObject
from batkube.kernel.quantities import CPU, MACHINE, PODS
from batkube.platforms.model import Machine
from batkube.policies.machine_room import MachineRoom
from batkube.policies.pod_scheduling.node_columns import NodeColumns, is_schedulable
from batkube.policies.rooms import Accepts, Room

_NOTHING = {CPU: 0, PODS: 0}


class ClusterCapacity:
    """The capacity of each node for a policy, recomputed after a change."""

    def __init__(
        self, columns: NodeColumns, model: ResourceModel, machines: Sequence[Machine], accepts: Accepts | None
    ) -> None:
        """`machines` are those of the platform, for attributes that nodes do not have (speed).

        `accepts` returns the nodes that accept a job. Without it, and if jobs take whole machines, a node that
        does not accept every pod has no capacity.
        """
        self._columns = columns
        self._model = model
        self._platform_machines = {kube_name(machine.name): machine for machine in machines}
        self._accepts = accepts
        self._hides_unschedulable = accepts is None or model is ResourceModel.MACHINES
        #: The node and the demand of each foreign_demands pod, bound by something other than the policy.
        self._foreign_pods: dict[Key, tuple[str, Amounts]] = {}
        self._generation = -1
        #: By column, the machine of the last `recompute`, with the node and foreign_demands demand it is for.
        self._machine_cache: dict[int, tuple[KubeObject | None, Amounts, Machine]] = {}

    @property
    def is_stale(self) -> bool:
        """Whether anything has changed since the last `recompute`."""
        return self._generation != self._columns.generation

    def add_foreign_pod(self, key: Key, pod: KubeObject) -> bool:
        """Add or update a pod bound by others; return whether anything changed."""
        if key in self._foreign_pods and not has_changed_spec(pod):
            return False
        entry = node_of_pod(pod), demand_of(pod)
        if self._foreign_pods.get(key) == entry:
            return False
        self._foreign_pods[key] = entry
        self._generation = -1
        return True

    def remove_foreign_pod(self, key: Key) -> bool:
        """Remove a pod; return whether it was bound by others."""
        if self._foreign_pods.pop(key, None) is None:
            return False
        self._generation = -1
        return True

    @property
    def has_foreign_pods(self) -> bool:
        """Whether there are pods bound by others."""
        return bool(self._foreign_pods)

    def foreign_pod_nodes(self) -> dict[Key, str]:
        """Return the nodes of pods bound by others."""
        return {key: name for key, (name, _) in self._foreign_pods.items()}

    def machine_ids(self, names: Iterable[str]) -> list[int]:
        """Return the machine ids of the nodes that exist."""
        columns = (self._columns.column_of_node(name) for name in names)
        return [column for column in columns if column is not None]

    def recompute(self) -> tuple[list[Machine], Room]:
        """Return the current machines, and the room in which the policy runs nothing."""
        self._generation = self._columns.generation
        foreign_demands: dict[str, Amounts] = {}
        for name, demand in self._foreign_pods.values():
            add_amounts(foreign_demands.setdefault(name, {}), demand)
        machines = [
            self._cached_machine(column, node, foreign_demands) for column, node in enumerate(self._columns.nodes)
        ]
        if self._model is ResourceModel.MACHINES:
            return machines, MachineRoom.whole(machines, self._accepts)
        # Imported lazily: numpy takes longer to load than a small run.
        from batkube.policies.node_room import NodeRoom

        return machines, NodeRoom.whole(machines, self._accepts)

    def _cached_machine(self, column: int, node: KubeObject | None, foreign_demands: dict[str, Amounts]) -> Machine:
        """Return the machine of a column, recomputed only if its node or foreign demand has changed."""
        demand = {} if node is None else foreign_demands.get(node["metadata"]["name"], {})
        cached = self._machine_cache.get(column)
        if cached is not None and cached[0] is node and cached[1] == demand:
            return cached[2]
        machine = self._machine(column, node, demand)
        self._machine_cache[column] = node, demand, machine
        return machine

    def _machine(self, column: int, node: KubeObject | None, foreign_demand: Amounts) -> Machine:
        """Return the machine of a column; without capacity if it takes no jobs."""
        if node is None:
            return Machine(column, f"(none {column})", _NOTHING)
        name: str = node["metadata"]["name"]
        machine = self._platform_machines.get(name) or Machine(column, name, _NOTHING, labels=labels_of(node))
        if self._hides_unschedulable and not is_schedulable(node):
            return replace(machine, id=column, capacity=_NOTHING)
        free = {
            resource: max(count - foreign_demand.get(resource, 0), 0)
            for resource, count in allocatable_of(node).items()
            if resource != MACHINE
        }
        return replace(machine, id=column, capacity={**_NOTHING, **free})
