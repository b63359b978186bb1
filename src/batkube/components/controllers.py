"""Our controllers, all of them: what Kubernetes has within cmd/kube-controller-manager."""

from __future__ import annotations

from dataclasses import dataclass

from batkube.cluster.client import Client
from batkube.cluster.device_claims import DEVICE_CLAIM
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.pod_use import PodUse
from batkube.cluster.world import World
from batkube.controllers.autoscalers import Autoscalers, Scales
from batkube.controllers.controlled import Controlled
from batkube.controllers.cron_jobs import CronJobs
from batkube.controllers.daemon_sets import DaemonSets
from batkube.controllers.deployments import Deployments
from batkube.controllers.device_claims import ClaimsOfPods, DeviceReservations
from batkube.controllers.disruption import Disruption
from batkube.controllers.endpoint_mirroring import EndpointMirroring
from batkube.controllers.endpoint_slices import EndpointSlices
from batkube.controllers.endpoints import EndpointsOfServices
from batkube.controllers.ephemeral_volumes import EphemeralVolumes
from batkube.controllers.garbage import GarbageCollector
from batkube.controllers.jobs import JOB, FinishedJobs, Jobs
from batkube.controllers.namespaces import DefaultAccounts, Namespaces, RootCertificates
from batkube.controllers.node_lifecycle import PodsOfLostNodes
from batkube.controllers.object_graph import ObjectGraph
from batkube.controllers.pod_control import POD
from batkube.controllers.quotas import Quotas, UsageOf
from batkube.controllers.replica_sets import REPLICA_SET, REPLICATION_CONTROLLER, ReplicaSets, ReplicationControllers
from batkube.controllers.revisions import Revisions
from batkube.controllers.role_aggregation import RoleAggregation
from batkube.controllers.stateful_sets import StatefulSets
from batkube.controllers.taint_eviction import TaintEviction
from batkube.controllers.token_secrets import LastingToken, TokenSecrets
from batkube.controllers.volume_binding import ClaimBinding, VolumePhases
from batkube.controllers.volume_protection import ClaimProtection, VolumeProtection


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What the controllers need to know of the server they work for."""

    usage_of: UsageOf
    #: What pods use, and how the size of anything is read and changed.
    use: PodUse
    scales: Scales
    lasting_token: LastingToken
    #: The certificate authority of the server, PEM.
    authority: str = ""


def start_controllers(world: World, client: Client, context: ControllerContext) -> None:
    """Let our controllers work on `world`."""

    def events(component: str) -> EventRecorder:
        return EventRecorder(world, client, component)

    graph = ObjectGraph(world.store)
    pods, replica_sets = Controlled(world.store, POD), Controlled(world.store, REPLICA_SET)
    DefaultAccounts(world, client)
    RootCertificates(world, client, context.authority)
    TokenSecrets(world, client, context.lasting_token, context.authority)
    RoleAggregation(world, client)
    Namespaces(world, client, graph)
    GarbageCollector(world, client, graph)
    Quotas(world, client, graph, context.usage_of)
    Deployments(world, client, events("deployment-controller"), pods, replica_sets)
    ReplicaSets(world, client, events("replicaset-controller"), pods, replica_sets)
    replications = Controlled(world.store, REPLICATION_CONTROLLER)
    ReplicationControllers(world, client, events("replication-controller"), pods, replications)
    revisions = Revisions(world, client)
    StatefulSets(world, client, events("statefulset-controller"), pods, revisions)
    DaemonSets(world, client, events("daemonset-controller"), pods, revisions)
    Jobs(world, client, events("job-controller"), pods)
    FinishedJobs(world, client)
    CronJobs(world, client, events("cronjob-controller"), Controlled(world.store, JOB))
    Autoscalers(world, client, events("horizontal-pod-autoscaler"), context.use, context.scales)
    PodsOfLostNodes(world, client)
    TaintEviction(world, client, events("taint-eviction-controller"))
    Disruption(world, client, events("controllermanager"))
    ClaimBinding(world, client, events("persistentvolume-controller"))
    EphemeralVolumes(world, client, events("ephemeral_volume"))
    VolumePhases(world, client)
    ClaimProtection(world, client)
    VolumeProtection(world, client)
    ClaimsOfPods(world, client, events("resource_claim"), Controlled(world.store, DEVICE_CLAIM))
    DeviceReservations(world, client)
    EndpointsOfServices(world, client)
    EndpointSlices(world, client)
    EndpointMirroring(world, client, events("endpoint-slice-mirroring-controller"))
