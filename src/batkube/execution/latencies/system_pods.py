"""System pods, such as cluster DNS.

They run from the start of the run to its end, and reduce the resources of their nodes. That can matter: if jobs request
whole nodes, a DNS pod with a tenth of a cpu prevents all of them from using its node. Schedulers see these pods through
the API. For all other components the node is smaller.

Each pod gets a node of its own, from the last node backwards, while there are enough nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from batkube.cluster.store import KubeObject
from batkube.kernel.errors import InputError
from batkube.kernel.instants import Instant, rfc3339
from batkube.kernel.quantities import PODS, format_amount, parse_amount
from batkube.platforms.model import Machine
from batkube.workloads.model import Requests

SYSTEM_NAMESPACE = "kube-system"


@dataclass(frozen=True, slots=True)
class SystemPod:
    """A system pod with its requests."""

    name: str
    requests: Requests
    #: The file that defines it, for error messages.
    source: str = field(default="", compare=False)

    @classmethod
    def parse_all(cls, value: object, source: str = "") -> tuple[SystemPod, ...]:
        """Parse `[{name: coredns, cpu: 100m, memory: 70Mi}]`; raise ValueError."""
        if not isinstance(value, list):
            raise ValueError("is not a list; write one entry per pod, such as {name: coredns, cpu: 100m}")
        pods = tuple(replace(cls._parse(entry, number), source=source) for number, entry in enumerate(value, 1))
        names = [pod.name for pod in pods]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two pods are named {twice[0]!r}")
        return pods

    @classmethod
    def _parse(cls, entry: object, number: int) -> SystemPod:
        if not isinstance(entry, Mapping) or not all(isinstance(key, str) for key in entry):
            raise ValueError(f"entry {number} is not a pod; write {{name: coredns, cpu: 100m, memory: 70Mi}}")
        name = entry.get("name", f"system-{number}")
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of entry {number} is {name!r}, which is not a valid name")
        amounts = {resource: value for resource, value in entry.items() if resource != "name"}
        try:
            return cls(name, tuple((resource, parse_amount(resource, value)) for resource, value in amounts.items()))
        except ValueError as error:
            raise ValueError(f"pod {name!r}: {error}") from error

    def describe(self) -> str:
        """Return the pod for the manifest of a run."""
        return ", ".join([self.name, *(f"{name} {format_amount(name, amount)}" for name, amount in self.requests)])


def machine_ids_of(pods: Sequence[SystemPod], machines: Sequence[Machine]) -> list[int]:
    """Return the machine id of each pod's node."""
    return [len(machines) - 1 - number % len(machines) for number in range(len(pods))]


def without_system_pods(machines: Sequence[Machine], pods: Sequence[SystemPod]) -> tuple[Machine, ...]:
    """Return the machines with the capacities that the system pods leave."""
    capacities = [dict(machine.capacity) for machine in machines]
    for pod, machine_id in zip(pods, machine_ids_of(pods, machines), strict=True):
        for resource, count in (*pod.requests, (PODS, 1)):
            free = capacities[machine_id].get(resource, 0) - count
            if free < 0:
                name = machines[machine_id].name
                problem = f"machine {name!r} does not have enough {resource} for the system pod {pod.name!r}"
                remedy = "reduce the requests of the pod, or increase the capacity of the machine"
                if pod.source:
                    raise InputError(pod.source, at="system-pods", problem=problem, remedy=remedy)
                raise InputError("system-pods", problem=problem, remedy=remedy)
            capacities[machine_id][resource] = free
    return tuple(replace(machine, capacity=capacity) for machine, capacity in zip(machines, capacities, strict=True))


def system_pod_objects(
    pods: Sequence[SystemPod], machines: Sequence[Machine], node_names: Sequence[str], now: Instant
) -> list[KubeObject]:
    """Return the Pod objects, running on their nodes."""
    objects: list[KubeObject] = []
    for number, (pod, machine_id) in enumerate(zip(pods, machine_ids_of(pods, machines), strict=True)):
        requests = {resource: format_amount(resource, amount) for resource, amount in pod.requests}
        metadata = {
            "name": pod.name,
            "namespace": SYSTEM_NAMESPACE,
            "uid": f"00000000-0000-4000-9000-{number:012x}",
            "creationTimestamp": rfc3339(now),
        }
        spec = {
            "nodeName": node_names[machine_id],
            "schedulerName": "default-scheduler",
            "priority": 2_000_000_000,  # system-cluster-critical, so that no scheduler evicts them for a job
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "containers": [{"name": pod.name, "image": pod.name, "resources": {"requests": requests}}],
        }
        status = {"phase": "Running", "startTime": rfc3339(now)}
        objects.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})
    return objects
