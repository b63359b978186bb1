"""Start all built-in controllers (Kubernetes: cmd/kube-controller-manager/app/controllermanager.go)."""

from __future__ import annotations

from dataclasses import dataclass

from batkube.cluster.client import Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.pods.device_claims import DEVICE_CLAIM
from batkube.cluster.pods.usage import PodUsage
from batkube.cluster.world import World
from batkube.controllers.apps.daemon_sets import DaemonSetController
from batkube.controllers.apps.deployments import DeploymentController
from batkube.controllers.apps.replica_sets import (
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    ReplicaSetController,
    ReplicationManager,
)
from batkube.controllers.apps.revisions import ControllerRevisions
from batkube.controllers.apps.stateful_sets import StatefulSetController
from batkube.controllers.autoscaling.pod_autoscalers import HorizontalPodAutoscalerController, ScaleClient
from batkube.controllers.batch.cron_jobs import CronJobController
from batkube.controllers.batch.jobs import JOB, JobController, TtlAfterFinishedController
from batkube.controllers.disruption_budgets import DisruptionController
from batkube.controllers.framework.owner_index import OwnerIndex
from batkube.controllers.framework.pod_control import POD
from batkube.controllers.garbage_collection.collector import GarbageCollector
from batkube.controllers.garbage_collection.namespaces import (
    NamespaceController,
    RootCertificatePublisher,
    ServiceAccountController,
)
from batkube.controllers.garbage_collection.object_graph import ObjectGraph
from batkube.controllers.garbage_collection.quotas import ResourceQuotaController, UsageOf
from batkube.controllers.nodes.lifecycle import PodGarbageCollector
from batkube.controllers.nodes.taint_eviction import TaintEvictionController
from batkube.controllers.resource_claims import ClaimReservationController, ResourceClaimController
from batkube.controllers.role_aggregation import ClusterRoleAggregationController
from batkube.controllers.services.endpoint_mirroring import EndpointSliceMirroringController
from batkube.controllers.services.endpoint_slices import EndpointSliceController
from batkube.controllers.services.endpoints import EndpointsController
from batkube.controllers.token_secrets import LongLivedTokenIssuer, TokenController
from batkube.controllers.volumes.binding import VolumeBindingController, VolumePhaseController
from batkube.controllers.volumes.ephemeral import EphemeralVolumeController
from batkube.controllers.volumes.protection import ClaimProtectionController, VolumeProtectionController


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """The parts of the API server that controllers use."""

    usage_of: UsageOf
    #: The usage of pods, and the client for subresource `scale`.
    pod_usage: PodUsage
    scales: ScaleClient
    lasting_token: LongLivedTokenIssuer
    #: The certificate authority of the server, in PEM format.
    certificate_authority: str = ""


def start_controllers(world: World, client: Client, context: ControllerContext) -> None:
    """Start all controllers on `world`."""

    def events(component: str) -> EventRecorder:
        return EventRecorder(world, client, component)

    graph = ObjectGraph(world.store)
    pods, replica_sets = OwnerIndex(world.store, POD), OwnerIndex(world.store, REPLICA_SET)
    ServiceAccountController(world, client)
    RootCertificatePublisher(world, client, context.certificate_authority)
    TokenController(world, client, context.lasting_token, context.certificate_authority)
    ClusterRoleAggregationController(world, client)
    NamespaceController(world, client, graph)
    GarbageCollector(world, client, graph)
    ResourceQuotaController(world, client, graph, context.usage_of)
    DeploymentController(world, client, events("deployment-controller"), pods, replica_sets)
    ReplicaSetController(world, client, events("replicaset-controller"), pods, replica_sets)
    replications = OwnerIndex(world.store, REPLICATION_CONTROLLER)
    ReplicationManager(world, client, events("replication-controller"), pods, replications)
    revisions = ControllerRevisions(world, client)
    StatefulSetController(world, client, events("statefulset-controller"), pods, revisions)
    DaemonSetController(world, client, events("daemonset-controller"), pods, revisions)
    JobController(world, client, events("job-controller"), pods)
    TtlAfterFinishedController(world, client)
    CronJobController(world, client, events("cronjob-controller"), OwnerIndex(world.store, JOB))
    HorizontalPodAutoscalerController(
        world, client, events("horizontal-pod-autoscaler"), context.pod_usage, context.scales
    )
    PodGarbageCollector(world, client)
    TaintEvictionController(world, client, events("taint-eviction-controller"))
    DisruptionController(world, client, events("controllermanager"))
    VolumeBindingController(world, client, events("persistentvolume-controller"))
    EphemeralVolumeController(world, client, events("ephemeral_volume"))
    VolumePhaseController(world, client)
    ClaimProtectionController(world, client)
    VolumeProtectionController(world, client)
    ResourceClaimController(world, client, events("resource_claim"), OwnerIndex(world.store, DEVICE_CLAIM))
    ClaimReservationController(world, client)
    EndpointsController(world, client)
    EndpointSliceController(world, client)
    EndpointSliceMirroringController(world, client, events("endpoint-slice-mirroring-controller"))
