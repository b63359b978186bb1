"""Starts the components of a cluster on a world: node registration, controllers, kubelets, a scheduler.

Both `run` and `serve` use it. Components communicate only through the store and write only through the API, so each is
optional. An attached program replaces one of ours: ours is not started then.
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
"""Returns the API client of a component, given its name."""


@dataclass(frozen=True, slots=True)
class KubeletOptions:
    """The options and collaborators of a cluster's kubelets."""

    #: The resource accounts of nodes, if other components share them.
    allocations: NodeAllocations | None = None
    #: Runs the work of workload jobs, if there are any.
    driver: ExecutionDriver | None = None
    #: The latencies of pods; None for no latency.
    delays: Delays | None = None
    #: The behaviour of containers.
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
    """Start all components except the scheduler, and return the registrar that registers nodes.

    * `client_for` is None in a run without an API server; all pods then belong to workload jobs.
    * `controllers` is None if an attached program runs the controllers, or if no object needs any.
    * Without `has_lifecycle`, no controller monitors the nodes.
    * Without `watches_nodes`, an attached program detects silent nodes, by their leases.
    * `node_resources` are added to the resources of nodes that clients create.
    """
    registrar = None
    if client_for is not None:
        registrar = _node_registrar(world, client_for("kubelet"), node_resources, has_lifecycle=has_lifecycle)
        if has_lifecycle:
            _start_node_lifecycle(world, client_for, notices_silence=watches_nodes)
    if client_for is not None and controllers is not None:
        # Imported on demand: loading the controllers takes as long as a small run.
        from batkube.components.controllers import start_controllers

        start_controllers(world, client_for("kube-controller-manager"), controllers)
    # The log subscribes before the components that act on decisions, so that it records a decision before its effects.
    DecisionLog(world)
    containers = None if client_for is None else _container_runtime(world, client_for("kubelet"), kubelets.rules)
    allocations = kubelets.allocations or NodeAllocations(world.store)
    Kubelets(world, allocations, kubelets.driver, containers, kubelets.delays, kubelets.on_busy)
    return registrar


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
    """Return the container runtime, which runs pods outside workload jobs."""
    from batkube.execution.containers.runtime import ContainerRuntime

    return ContainerRuntime(world, kubelet, EventRecorder(world, kubelet, "kubelet"), rules)


def start_scheduler(world: World, client: Client | None, choice: PolicyChoice | None) -> PolicyScheduler | None:
    """Start a scheduler: the given policy, or without a `choice` the default scheduler, which resembles kube-scheduler.

    Without `client`, it schedules only pods of workload jobs. Return the component that calls the policy, if any.
    """
    events = None
    if client is not None:
        events = EventRecorder(world, client, "default-scheduler", host="batkube", as_series=True)
    if choice is not None:
        return PolicyScheduler(world, choice, client, events)
    if client is not None and events is not None:
        # Imported on demand: it needs numpy, which takes longer to load than everything else.
        from batkube.policies.pod_scheduling.default_scheduler import DefaultScheduler

        DefaultScheduler(world, client, events)
    return None


def register_nodes(
    platform: Platform,
    client: Client,
    registrar: NodeRegistrar,
    now: Instant,
    annotations: Mapping[str, str] | None = None,
) -> None:
    """Register the node of every machine, as its kubelet does, with additional `annotations`."""
    for machine in platform.machines:
        _, node = node_of(machine, ResourceModel.REQUESTS, now)
        # The registrar adds the Ready condition.
        conditions = node["status"]["conditions"]
        node["status"]["conditions"] = [condition for condition in conditions if condition["type"] != "Ready"]
        if annotations:
            node["metadata"]["annotations"] = {**node["metadata"].get("annotations", {}), **annotations}
        client.create(NODE, registrar.registered_node(node, now), now)
