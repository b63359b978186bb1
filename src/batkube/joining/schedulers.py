"""The two schedulers that can join a cluster: KubeFlux, and any policy of ours."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.world import World
from batkube.emulation.access import Access
from batkube.joining.joined import JoinedScheduler
from batkube.joining.remote_client import RemoteClient
from batkube.kubeflux.audit import AuditSink
from batkube.kubeflux.scheduler import KubeFluxScheduler, KubeFluxSettings
from batkube.policies.catalogue import load_policy
from batkube.policies.scheduler import PolicyChoice, PolicyScheduler


def joined_kubeflux(access: Access, settings: KubeFluxSettings, audit: AuditSink | None) -> JoinedScheduler:
    """Return KubeFlux on a cluster."""

    def maker(world: World, client: RemoteClient, events: EventRecorder) -> object:
        return KubeFluxScheduler(world, client, events, settings, audit)

    return JoinedScheduler(access, settings.scheduler_name, maker)


def joined_policy(
    access: Access, spec: str, arguments: Mapping[str, str], scheduler_name: str, *, seed: int = 0
) -> JoinedScheduler:
    """Return a policy on a cluster: every pod that asks for `scheduler_name` is a job of one pod."""
    policy = load_policy(spec, arguments)

    def maker(world: World, client: RemoteClient, events: EventRecorder) -> object:
        choice = PolicyChoice(policy, world.streams.named("policy"))
        return PolicyScheduler(world, choice, client, events, scheduler_name)

    return JoinedScheduler(access, scheduler_name, maker, seed=seed)
