"""Puts together what lives in a served cluster: kubelets, controllers and a scheduler, all on one store and agenda.

They hear of each other only through the store and write only through the API, so any of them can be left out; an
attached scheduler takes the place of ours by our not being there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from batkube.cluster.client import Client
from batkube.cluster.courses import Courses
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.mapping import NODE, ResourceModel, node_of
from batkube.cluster.world import World
from batkube.controllers.controlled import Controlled
from batkube.controllers.cron_jobs import CronJobs
from batkube.controllers.deployments import Deployments
from batkube.controllers.disruption import Disruption
from batkube.controllers.event_expiry import EventExpiry
from batkube.controllers.garbage import GarbageCollector
from batkube.controllers.jobs import JOB, FinishedJobs, Jobs
from batkube.controllers.namespaces import DefaultAccounts, Namespaces, RootCertificates
from batkube.controllers.node_lifecycle import NodeLifecycle, PodsOfLostNodes
from batkube.controllers.object_graph import ObjectGraph
from batkube.controllers.pod_control import POD
from batkube.controllers.quotas import Quotas, UsageOf
from batkube.controllers.replica_sets import REPLICA_SET, ReplicaSets
from batkube.controllers.role_aggregation import RoleAggregation
from batkube.controllers.taint_eviction import TaintEviction
from batkube.execution.containers import Containers
from batkube.execution.kubelets import Kubelets
from batkube.execution.latencies import Delays
from batkube.execution.node_accounts import NodeAccounts
from batkube.execution.node_agents import NodeAgents
from batkube.kernel.instants import Instant
from batkube.platforms.model import Platform
from batkube.policies.interface import Policy
from batkube.workloads.rules import ContainerRules

ClientFor = Callable[[str], Client]
"""Gives the API to a component, by its name."""


@dataclass(frozen=True, slots=True)
class ServedCluster:
    """A cluster that waits for its nodes."""

    client_for: ClientFor
    agents: NodeAgents

    def add_nodes(self, platform: Platform, now: Instant, annotations: Mapping[str, str] | None = None) -> None:
        """Let the kubelet of every machine register its node, which tells clients what `annotations` say."""
        client = self.client_for("kubelet")
        for machine in platform.machines:
            _, node = node_of(machine, ResourceModel.REQUESTS, now)
            del node["status"]["conditions"]
            if annotations:
                node["metadata"]["annotations"] = dict(annotations)
            client.create(NODE, self.agents.registered(node, now), now)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the controllers need to know of the server they work for."""

    usage_of: UsageOf
    #: The certificate authority of the server, PEM.
    authority: str = ""


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A policy that is to bind pods, and its randomness."""

    policy: Policy
    rng: random.Random


def serve_cluster(
    world: World,
    client_for: ClientFor,
    surroundings: Surroundings,
    *,
    delays: Delays | None = None,
    scheduler: PolicyChoice | bool = True,
    controllers: bool = True,
    rules: ContainerRules | None = None,
) -> ServedCluster:
    """Start everything but the nodes on an empty store.

    `scheduler` is a policy, or True for one like kube-scheduler, or False: pods wait for one that is attached.
    Without `controllers` only nodes are looked after, and a kube-controller-manager may be attached for the rest.
    """
    kubelet = client_for("kubelet")
    kubelet_events = EventRecorder(world.store, kubelet, "kubelet")
    agents = NodeAgents(world, kubelet, kubelet_events)
    manager = client_for("kube-controller-manager")
    NodeLifecycle(world, manager)
    EventExpiry(world, manager)
    if controllers:
        _start_controllers(world, manager, surroundings)
    containers = Containers(world, kubelet, kubelet_events, rules)
    Kubelets(world, NodeAccounts(world.store), courses=Courses(), containers=containers, delays=delays)
    if scheduler:
        _start_scheduler(world, client_for("kube-scheduler"), scheduler)
    return ServedCluster(client_for, agents)


def _start_scheduler(world: World, client: Client, chosen: PolicyChoice | bool) -> None:
    # Imported only here: they bring numpy, which takes longer to load than everything else.
    from batkube.policies.default_scheduler import DefaultScheduler
    from batkube.policies.node_table import NodeTable
    from batkube.policies.served_policy import ServedPolicy

    events = EventRecorder(world.store, client, "default-scheduler", host="batkube", as_series=True)
    table = NodeTable(world.store)
    if isinstance(chosen, PolicyChoice):
        ServedPolicy(world, chosen.policy, chosen.rng, client, events, table)
    else:
        DefaultScheduler(world, client, events, table)


def _start_controllers(world: World, client: Client, surroundings: Surroundings) -> None:
    def events(component: str) -> EventRecorder:
        return EventRecorder(world.store, client, component)

    graph = ObjectGraph(world.store)
    pods, replica_sets = Controlled(world.store, POD), Controlled(world.store, REPLICA_SET)
    DefaultAccounts(world, client)
    RootCertificates(world, client, surroundings.authority)
    RoleAggregation(world, client)
    Namespaces(world, client, graph)
    GarbageCollector(world, client, graph)
    Quotas(world, client, graph, surroundings.usage_of)
    Deployments(world, client, events("deployment-controller"), pods, replica_sets)
    ReplicaSets(world, client, events("replicaset-controller"), pods, replica_sets)
    Jobs(world, client, events("job-controller"), pods)
    FinishedJobs(world, client)
    CronJobs(world, client, events("cronjob-controller"), Controlled(world.store, JOB))
    PodsOfLostNodes(world, client)
    TaintEviction(world, client, events("taint-eviction-controller"))
    Disruption(world, client, events("controllermanager"))
