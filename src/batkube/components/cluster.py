"""Start the components of a cluster on a world: node registration, controllers, kubelets, a scheduler.

Components communicate only through the store and write only through their clients (`access`), so each is optional. An
attached program replaces the built-in component, which is not started then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batkube.cluster.client import Client
from batkube.cluster.decisions import DecisionLog
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.world import World
from batkube.components.access import Access
from batkube.execution.jobs.job_runtime import JobRuntime
from batkube.execution.jobs.pod_statuses import JobPodStatuses, PhaseStatuses, WholeStatuses
from batkube.execution.kubelet.kubelets import BusyListener, Kubelets
from batkube.execution.latencies.delays import NO_DELAYS, Delays
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.execution.pods.runtime import AnyRuntime
from batkube.kernel.instants import Instant
from batkube.policies.runtime.policy_scheduler import PolicyChoice, PolicyScheduler
from batkube.workloads.container_rules.rules import ContainerRules

if TYPE_CHECKING:
    from batkube.components.controllers import ControllerContext
    from batkube.execution.jobs.work_runners import WorkRunner
    from batkube.execution.nodes.registration import NodeRegistrar


@dataclass(frozen=True, slots=True)
class KubeletOptions:
    """The options and collaborators of a cluster's kubelets."""

    #: The resource accounts of nodes, if other components share them.
    allocations: NodeAllocations | None = None
    #: Runs the work of jobs whose run time depends on other jobs.
    work: WorkRunner | None = None
    #: Called when a node with pods of a workload job fails or is deleted.
    on_execution_lost: Callable[[JobExecution, Instant], None] = lambda execution, now: None
    #: The latencies of pods.
    delays: Delays = NO_DELAYS
    #: The behaviour of containers.
    rules: ContainerRules | None = None
    on_busy: BusyListener = lambda count, now: None


def start_cluster(
    world: World,
    access: Access,
    kubelets: KubeletOptions,
    controllers: ControllerContext | None = None,
    *,
    has_lifecycle: bool = True,
    watches_nodes: bool = True,
    node_resources: Mapping[str, str] | None = None,
) -> NodeRegistrar | None:
    """Start all components except the scheduler, and return the registrar that registers nodes.

    * Without an API, all pods belong to workload jobs, and nodes are stored as they are described.
    * `controllers` is None if an attached program runs the controllers, or if no object needs any.
    * Without `has_lifecycle`, no controller monitors the nodes.
    * Without `watches_nodes`, an attached program detects silent nodes, by their leases.
    * `node_resources` are added to the resources of nodes that clients create.
    """
    registrar = None
    if access.is_api:
        registrar = _node_registrar(world, access.client("kubelet"), node_resources, has_lifecycle=has_lifecycle)
        if has_lifecycle:
            _start_node_lifecycle(world, access, notices_silence=watches_nodes)
    if controllers is not None:
        # Imported on demand: loading the controllers takes as long as a small run.
        from batkube.components.controllers import start_controllers

        start_controllers(world, access.client("kube-controller-manager"), controllers)
    # The log subscribes before the components that act on decisions, so that it records a decision before its effects.
    DecisionLog(world)
    allocations = kubelets.allocations or NodeAllocations(world.store)
    runtimes = pod_runtimes(world, access, kubelets, allocations)
    Kubelets(world, allocations, access.client("kubelet"), runtimes, kubelets.delays, kubelets.on_busy)
    return registrar


def pod_runtimes(
    world: World, access: Access, options: KubeletOptions, allocations: NodeAllocations
) -> list[AnyRuntime]:
    """Return the runtimes of pods: for workload jobs and, if clients can create other pods, for these."""
    client, pods = access.client("kubelet"), list[AnyRuntime]()
    if access.is_api:
        from batkube.execution.containers.pods import ContainerPods
        from batkube.execution.containers.runtime import ContainerRuntime

        containers = ContainerRuntime(world, client, EventRecorder(world, client, "kubelet"), options.rules)
        pods = [ContainerPods(world, allocations, containers)]
        statuses: JobPodStatuses = WholeStatuses(world, client, containers.addresses)
    else:
        statuses = PhaseStatuses(world, client)
    jobs = JobRuntime(world, statuses, options.work)
    jobs.on_execution_lost = options.on_execution_lost
    return [jobs, *pods]


def _node_registrar(
    world: World, kubelet: Client, resources: Mapping[str, str] | None, *, has_lifecycle: bool
) -> NodeRegistrar:
    from batkube.execution.nodes.registration import NodeRegistrar

    events = EventRecorder(world, kubelet, "kubelet")
    return NodeRegistrar(world, kubelet, events, resources, has_lifecycle=has_lifecycle)


def _start_node_lifecycle(world: World, access: Access, *, notices_silence: bool) -> None:
    from batkube.controllers.garbage_collection.event_expiry import EventExpiry
    from batkube.controllers.nodes.lifecycle import NodeLifecycleController
    from batkube.execution.nodes.registration import NodeRecovery

    manager = access.client("kube-controller-manager")
    NodeRecovery(world, access.client("kubelet"))
    if notices_silence:
        NodeLifecycleController(world, manager, EventRecorder(world, manager, "node-controller"))
    EventExpiry(world, manager)


def start_scheduler(world: World, access: Access, choice: PolicyChoice | None) -> PolicyScheduler | None:
    """Start a scheduler: a policy or, if `choice` is None, the default scheduler, which imitates kube-scheduler.

    Without an API, it schedules only pods of workload jobs. Return the component that calls the policy, if any.
    """
    client = access.client("kube-scheduler")
    if not access.is_api:
        return None if choice is None else PolicyScheduler(world, choice, client)
    # Imported on demand: they need numpy, which takes long to load.
    from batkube.policies.pod_scheduling.default_scheduler import DefaultScheduler
    from batkube.policies.pod_scheduling.framework import SchedulingFramework

    events = EventRecorder(world, client, "default-scheduler", host="batkube", as_series=True)
    if choice is not None:
        return PolicyScheduler(world, choice, client, SchedulingFramework(world, client, events))
    DefaultScheduler(world, client, events)
    return None
