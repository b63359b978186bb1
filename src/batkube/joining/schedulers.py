"""The schedulers that can run against a remote cluster: KubeFlux, and any policy."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.store_client import StoreClient
from batkube.cluster.world import World
from batkube.emulation.client.connection import ClusterConnection
from batkube.joining.remote_client import RemoteClient
from batkube.joining.standalone import StandaloneScheduler
from batkube.kubeflux.audit import AuditSink
from batkube.kubeflux.scheduler import KubeFluxScheduler, KubeFluxSettings
from batkube.policies.pod_scheduling.framework import SchedulingFramework
from batkube.policies.registry.catalogue import load_policy
from batkube.policies.runtime.policy_scheduler import PolicyChoice, PolicyScheduler


def standalone_kubeflux(
    cluster: ClusterConnection, settings: KubeFluxSettings, audit: AuditSink | None
) -> StandaloneScheduler:
    """Return KubeFlux for a cluster."""

    def create_scheduler(world: World, client: RemoteClient, events: EventRecorder) -> object:
        return KubeFluxScheduler(world, client, events, settings, audit)

    return StandaloneScheduler(cluster, settings.scheduler_name, create_scheduler)


def standalone_policy(
    cluster: ClusterConnection, spec: str, arguments: Mapping[str, str], scheduler_name: str, *, seed: int = 0
) -> StandaloneScheduler:
    """Return a policy for a cluster. Each pod with the schedulerName `scheduler_name` is a job of one pod."""
    policy = load_policy(spec, arguments)

    def create_scheduler(world: World, client: RemoteClient, events: EventRecorder) -> object:
        choice = PolicyChoice(policy, world.streams.named("policy"))
        framework = SchedulingFramework(world, client, events)
        return PolicyScheduler(world, choice, StoreClient(world.store), framework, scheduler_name)

    return StandaloneScheduler(cluster, scheduler_name, create_scheduler, seed=seed)
