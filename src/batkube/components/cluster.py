"""Puts the living parts of a cluster on a world: whoever looks after its nodes, controllers, kubelets, a scheduler.

`run` and `serve` both do it here. The parts hear of each other only through the store and write only through the API,
so any of them can be left out: an attached program takes the place of one of ours by ours not being there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batkube.cluster.client import Client
from batkube.cluster.decisions import DecisionLog
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.jobs.executions import ExecutionDriver
from batkube.cluster.mapping import NODE, ResourceModel, node_of
from batkube.cluster.world import World
from batkube.execution.kubelet.kubelets import BusyListener, Kubelets
from batkube.execution.latencies.delays import Delays
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.kernel.instants import Instant
from batkube.platforms.model import Platform
from batkube.policies.runtime.policy_scheduler import PolicyChoice, PolicyScheduler
from batkube.workloads.container_rules.rules import ContainerRules

if TYPE_CHECKING:
    from batkube.components.controllers import ControllerContext
    from batkube.execution.containers.runtime import ContainerRuntime
    from batkube.execution.nodes.registration import NodeRegistrar

ClientFor = Callable[[str], Client]
"""Gives the API to a component, by its name."""


@dataclass(frozen=True, slots=True)
class KubeletOptions:
    """What the kubelets of a cluster go by."""

    #: What nodes have left, if somebody else looks at it, too.
    allocations: NodeAllocations | None = None
    #: Who knows the courses, where there are any.
    driver: ExecutionDriver | None = None
    #: None where nothing takes time that is not work.
    delays: Delays | None = None
    #: What containers do.
    rules: ContainerRules | None = None
    on_busy: BusyListener = lambda count, now: None


def start_cluster(
    world: World,
    client_for: ClientFor | None,
    kubelets: KubeletOptions,
    controllers: ControllerContext | None = None,
    *,
    has_lifecycle: bool = True,
    watches_nodes: bool = True,
    node_resources: Mapping[str, str] | None = None,
) -> NodeRegistrar | None:
    """Start everything but nodes and schedulers, and return who speaks for the nodes.

    `client_for` is None in a run where nobody needs the API: there all pods have part in courses. Without `controllers`
    those are another's business, or there are no objects that need any. Without `has_lifecycle` no controller watches
    over nodes; without `watches_nodes` it is another who notices that one is silent. `node_resources` are added to what
    nodes offer that clients create.
    """
    agents = None
    if client_for is not None:
        agents = _node_registrar(world, client_for("kubelet"), node_resources, has_lifecycle=has_lifecycle)
        if has_lifecycle:
            _start_node_lifecycle(world, client_for, notices_silence=watches_nodes)
    if client_for is not None and controllers is not None:
        # Imported only where they are needed: loading them takes as long as a small run does.
        from batkube.components.controllers import start_controllers

        start_controllers(world, client_for("kube-controller-manager"), controllers)
    # Before those who act on decisions, so that the journal tells a decision before what follows from it.
    DecisionLog(world)
    containers = None if client_for is None else _container_runtime(world, client_for("kubelet"), kubelets.rules)
    accounts = kubelets.allocations or NodeAllocations(world.store)
    Kubelets(world, accounts, kubelets.driver, containers, kubelets.delays, kubelets.on_busy)
    return agents


def _node_registrar(
    world: World, kubelet: Client, resources: Mapping[str, str] | None, *, has_lifecycle: bool
) -> NodeRegistrar:
    from batkube.execution.nodes.registration import NodeRegistrar

    events = EventRecorder(world, kubelet, "kubelet")
    return NodeRegistrar(world, kubelet, events, resources, has_lifecycle=has_lifecycle)


def _start_node_lifecycle(world: World, client_for: ClientFor, *, notices_silence: bool) -> None:
    from batkube.controllers.garbage_collection.event_expiry import EventExpiry
    from batkube.controllers.nodes.lifecycle import NodeLifecycleController
    from batkube.execution.nodes.registration import NodeRecovery

    manager = client_for("kube-controller-manager")
    NodeRecovery(world, client_for("kubelet"))
    if notices_silence:
        NodeLifecycleController(world, manager, EventRecorder(world, manager, "node-controller"))
    EventExpiry(world, manager)


def _container_runtime(world: World, kubelet: Client, rules: ContainerRules | None) -> ContainerRuntime:
    """Return what runs the pods that have no part in a course."""
    from batkube.execution.containers.runtime import ContainerRuntime

    return ContainerRuntime(world, kubelet, EventRecorder(world, kubelet, "kubelet"), rules)


def start_scheduler(world: World, client: Client | None, choice: PolicyChoice | None) -> PolicyScheduler | None:
    """Let a policy bind pods; without one, what is like kube-scheduler does. Without `client` only pods of courses.

    Returns who asks the policy, if there is one.
    """
    events = None
    if client is not None:
        events = EventRecorder(world, client, "default-scheduler", host="batkube", as_series=True)
    if choice is not None:
        return PolicyScheduler(world, choice, client, events)
    if client is not None and events is not None:
        # Imported only here: it brings numpy, which takes longer to load than everything else.
        from batkube.policies.pod_scheduling.default_scheduler import DefaultScheduler

        DefaultScheduler(world, client, events)
    return None


def register_nodes(
    platform: Platform,
    client: Client,
    agents: NodeRegistrar,
    now: Instant,
    annotations: Mapping[str, str] | None = None,
) -> None:
    """Let the kubelet of every machine register its node, which tells clients what `annotations` say."""
    for machine in platform.machines:
        _, node = node_of(machine, ResourceModel.REQUESTS, now)
        # Its kubelet says itself that it is ready.
        node["status"]["conditions"] = [one for one in node["status"]["conditions"] if one["type"] != "Ready"]
        if annotations:
            node["metadata"]["annotations"] = {**node["metadata"].get("annotations", {}), **annotations}
        client.create(NODE, agents.registered_node(node, now), now)
