"""The schedulers that can run on a live cluster: KubeFlux, and any policy."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.world import World
from batkube.emulation.client.connection import ClusterConnection
from batkube.joining.remote_client import RemoteClient
from batkube.joining.standalone import StandaloneScheduler
from batkube.kubeflux.audit import AuditSink
from batkube.kubeflux.scheduler import KubeFluxScheduler, KubeFluxSettings
from batkube.policies.registry.catalogue import load_policy
from batkube.policies.runtime.policy_scheduler import PolicyChoice, PolicyScheduler


def standalone_kubeflux(
    access: ClusterConnection, settings: KubeFluxSettings, audit: AuditSink | None
) -> StandaloneScheduler:
    """Return KubeFlux on a cluster."""

    def maker(world: World, client: RemoteClient, events: EventRecorder) -> object:
        return KubeFluxScheduler(world, client, events, settings, audit)

    return StandaloneScheduler(access, settings.scheduler_name, maker)


def standalone_policy(
    access: ClusterConnection, spec: str, arguments: Mapping[str, str], scheduler_name: str, *, seed: int = 0
) -> StandaloneScheduler:
    """Return a policy on a cluster: every pod with the schedulerName `scheduler_name` is a job of one pod."""
    policy = load_policy(spec, arguments)

    def maker(world: World, client: RemoteClient, events: EventRecorder) -> object:
        choice = PolicyChoice(policy, world.streams.named("policy"))
        return PolicyScheduler(world, choice, client, events, scheduler_name)

    return StandaloneScheduler(access, scheduler_name, maker, seed=seed)
