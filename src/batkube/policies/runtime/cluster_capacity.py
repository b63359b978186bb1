"""The machines as a policy sees them: the nodes of the store, less what pods hold that the policy has not started."""

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
    """Knows what each node has to offer to a policy, and whether that has changed since it was last looked at."""

    def __init__(
        self, columns: NodeColumns, model: ResourceModel, machines: Sequence[Machine], accepts: Accepts | None
    ) -> None:
        """`machines` are those of the platform, for what their nodes do not tell (speed).

        `accepts` tells where single jobs may go. Without it, and where jobs take whole machines, a node that does not
        take every pod offers nothing to anybody.
        """
        self._columns = columns
        self._model = model
        self._platform_machines = {kube_name(machine.name): machine for machine in machines}
        self._accepts = accepts
        self._hides_unschedulable = accepts is None or model is ResourceModel.MACHINES
        #: Where the pods are that others have bound, and what they take.
        self._foreign_pods: dict[Key, tuple[str, Amounts]] = {}
        self._generation = -1
        #: By column, the node and what others held of it at the last survey, and the machine that made.
        self._machine_cache: dict[int, tuple[KubeObject | None, Amounts, Machine]] = {}

    @property
    def is_stale(self) -> bool:
        """Whether something has changed since the last survey."""
        return self._generation != self._columns.generation

    def add_foreign_pod(self, key: Key, pod: KubeObject) -> bool:
        """Take note of a pod that others have bound; return whether it is news."""
        if key in self._foreign_pods and not has_changed_spec(pod):
            return False
        held = node_of_pod(pod), demand_of(pod)
        if self._foreign_pods.get(key) == held:
            return False
        self._foreign_pods[key] = held
        self._generation = -1
        return True

    def remove_foreign_pod(self, key: Key) -> bool:
        """Take note that a pod is gone; return whether others had bound it."""
        if self._foreign_pods.pop(key, None) is None:
            return False
        self._generation = -1
        return True

    @property
    def has_foreign_pods(self) -> bool:
        """Whether there are pods that others have bound."""
        return bool(self._foreign_pods)

    def foreign_pod_nodes(self) -> dict[Key, str]:
        """Return which pods that others have bound are on which nodes."""
        return {key: name for key, (name, _) in self._foreign_pods.items()}

    def machine_ids(self, names: Iterable[str]) -> list[int]:
        """Return the machines of the nodes that are there."""
        columns = (self._columns.column_of_node(name) for name in names)
        return [column for column in columns if column is not None]

    def recompute(self) -> tuple[list[Machine], Room]:
        """Return the machines as they are now, and the room in which the policy has started nothing."""
        self._generation = self._columns.generation
        taken: dict[str, Amounts] = {}
        for name, demand in self._foreign_pods.values():
            add_amounts(taken.setdefault(name, {}), demand)
        machines = [self._cached_machine(column, node, taken) for column, node in enumerate(self._columns.nodes)]
        if self._model is ResourceModel.MACHINES:
            return machines, MachineRoom.whole(machines, self._accepts)
        # Imported only where it is needed: it brings numpy, which takes longer to load than a small run does to run.
        from batkube.policies.node_room import NodeRoom

        return machines, NodeRoom.whole(machines, self._accepts)

    def _cached_machine(self, column: int, node: KubeObject | None, taken: dict[str, Amounts]) -> Machine:
        """Return the machine of a column, worked out again only if its node has changed: of a thousand, mostly one."""
        held = {} if node is None else taken.get(node["metadata"]["name"], {})
        known = self._machine_cache.get(column)
        if known is not None and known[0] is node and known[1] == held:
            return known[2]
        machine = self._machine(column, node, held)
        self._machine_cache[column] = node, held, machine
        return machine

    def _machine(self, column: int, node: KubeObject | None, held: Amounts) -> Machine:
        """Return the machine of a column; it has no capacity where it takes no jobs."""
        if node is None:
            return Machine(column, f"(none {column})", _NOTHING)
        name: str = node["metadata"]["name"]
        machine = self._platform_machines.get(name) or Machine(column, name, _NOTHING, labels=labels_of(node))
        if self._hides_unschedulable and not is_schedulable(node):
            return replace(machine, id=column, capacity=_NOTHING)
        left = {
            resource: max(count - held.get(resource, 0), 0)
            for resource, count in allocatable_of(node).items()
            if resource != MACHINE
        }
        return replace(machine, id=column, capacity={**_NOTHING, **left})
