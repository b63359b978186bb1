"""Check permissions, nodes and jobs before a run, and plan its pods.

Every error that can be detected beforehand is reported before anything is created.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from batkube.cluster.jobs.submission_forms import CUSTOM_POD_GROUPS, KUEUE, POD_GROUP_APIS, PodGroupApi
from batkube.cluster.mapping import ANNOTATION_SPEED, node_names_of
from batkube.cluster.object_meta import annotations_of
from batkube.cluster.store import KubeObject
from batkube.emulation.client.connection import (
    ApiStatusError,
    ClusterConnection,
    ClusterUnreachable,
    InvalidResponse,
    expected_shape,
)
from batkube.emulation.manifests import PlannedJob
from batkube.emulation.settings import Emulation, JobKind, apply_mappings
from batkube.execution.profiles.run_times import run_time_on
from batkube.execution.profiles.task_shapes import UnsupportedProfile
from batkube.kernel.errors import InputError
from batkube.kernel.instants import LATEST_NS, Duration
from batkube.kernel.quantities import CPU, MACHINE, PODS, format_amount, parse_amount
from batkube.platforms.model import Machine, Platform
from batkube.workloads.model import Job, Requests, Workload
from batkube.workloads.run_times import RunTime

_KWOK_TAINT = "kwok.x-k8s.io/node"
_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class ClusterNodes:
    """The schedulable nodes. The position of a node is its machine id in the outputs."""

    names: Sequence[str]
    #: The allocatable resources of each node.
    allocatable: Sequence[dict[str, int]]
    #: The cluster's seconds per real second: 1, except in a simulated cluster.
    speed: float = 1.0
    has_kwok_taint: bool = False


def check_access(
    cluster: ClusterConnection, emulation: Emulation, priorities: Iterable[int]
) -> tuple[str, PodGroupApi | None]:
    """Check that the cluster responds and that the user has all required permissions. Raises InputError.

    Return its version and, if the run uses PodGroups, their API.
    """
    try:
        with expected_shape(f"an answer of {cluster.url}"):
            version = str(cluster.get("/version").get("gitVersion", ""))
            pod_group_api = _pod_group_api(cluster, emulation) if emulation.kind is JobKind.POD_GROUP else None
            if emulation.kind is JobKind.KUEUE_JOB and not cluster.exists(f"/apis/{KUEUE}"):
                problem = f"the cluster does not serve {KUEUE}"
                raise InputError(
                    f"--kind {emulation.kind}", problem=problem, remedy="install Kueue, or write --kind job"
                )
            for permission in _required_permissions(emulation, pod_group_api, priorities):
                _check_permission(cluster, emulation, permission)
            _check_namespace(cluster, emulation)
    except (ClusterUnreachable, InvalidResponse) as error:
        raise InputError(
            emulation.kubeconfig, problem=str(error), remedy="check that the cluster runs: kubectl get nodes"
        ) from error
    except ApiStatusError as error:
        raise InputError(
            emulation.kubeconfig, problem=str(error), remedy="use a kubeconfig whose user has the permission"
        ) from error
    return version, pod_group_api


def _pod_group_api(cluster: ClusterConnection, emulation: Emulation) -> PodGroupApi:
    """Return the PodGroup API that the cluster serves."""
    candidates = [version for version in CUSTOM_POD_GROUPS if emulation.pod_group in (None, version)]
    if not candidates:
        place, remedy = f"--pod-group {emulation.pod_group}", f"use one of {', '.join(CUSTOM_POD_GROUPS)}"
        raise InputError(place, problem="is not a supported PodGroup API", remedy=remedy)
    served = [version for version in candidates if cluster.exists(f"/apis/{version}")]
    if len(served) == 1:
        return POD_GROUP_APIS[served[0]]
    if served:
        problem, remedy = "the cluster serves several PodGroup APIs", f"choose one: --pod-group {served[0]}"
    else:
        problem = f"the cluster serves no PodGroup API (supported: {', '.join(candidates)})"
        remedy = "install a gang scheduler with its CustomResourceDefinitions, or use --kind pod"
    raise InputError(f"--kind {emulation.kind}", problem=problem, remedy=remedy)


def _check_namespace(cluster: ClusterConnection, emulation: Emulation) -> None:
    name = emulation.namespace
    if name is not None and not cluster.exists(f"/api/v1/namespaces/{name}"):
        remedy = f"create it (kubectl create namespace {name}), or omit --namespace"
        raise InputError(f"--namespace {name}", problem="does not exist in the cluster", remedy=remedy)


def _required_permissions(
    emulation: Emulation, pod_group_api: PodGroupApi | None, priorities: Iterable[int]
) -> list[tuple[str, str, str, str]]:
    """Return the required permissions: verb, group, resource, namespace."""
    namespace = emulation.namespace or ""
    created = [("batch", "jobs") if emulation.kind.uses_job_controller else ("", "pods")]
    if pod_group_api is not None:
        created.append((pod_group_api.group, "podgroups"))
    permissions = [("list", "", "nodes", "")]
    permissions += [
        (verb, group, plural, namespace) for group, plural in created for verb in ("create", "deletecollection")
    ]
    permissions += [(verb, "", resource, namespace) for resource in ("pods", "events") for verb in ("list", "watch")]
    if emulation.namespace is None:
        permissions += [("create", "", "namespaces", ""), ("delete", "", "namespaces", "")]
    if any(priorities):
        permissions += [(verb, "scheduling.k8s.io", "priorityclasses", "") for verb in ("create", "delete")]
    return permissions


def _check_permission(cluster: ClusterConnection, emulation: Emulation, permission: tuple[str, str, str, str]) -> None:
    verb, group, resource, namespace = permission
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    response = cluster.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    if not response["status"]["allowed"]:
        scope = f" in namespace {namespace}" if namespace else " in the whole cluster"
        remedy = "use a kubeconfig whose user has the permission"
        if not namespace and resource not in ("nodes", "priorityclasses"):
            remedy += ", or use a namespace in which it is allowed: --namespace N"
        raise InputError(emulation.kubeconfig, problem=f"its user may not {verb} {resource}{scope}", remedy=remedy)


def read_nodes(cluster: ClusterConnection, emulation: Emulation, platform: Platform | None) -> ClusterNodes:
    """Return the schedulable nodes in the order of the platform's machines, or by name without a platform."""
    try:
        content = cluster.get("/api/v1/nodes")
        with expected_shape("/api/v1/nodes"):
            return _cluster_nodes(content["items"], cluster.url, emulation, platform)
    except (ApiStatusError, ClusterUnreachable, InvalidResponse) as error:
        raise InputError(emulation.kubeconfig, problem=str(error), remedy="see: kubectl get nodes") from error


def _cluster_nodes(
    items: Sequence[KubeObject], url: str, emulation: Emulation, platform: Platform | None
) -> ClusterNodes:
    nodes = [node for node in items if _is_schedulable(node)]
    if not nodes:
        raise InputError(
            emulation.kubeconfig,
            problem=f"the cluster at {url} has no schedulable node",
            remedy="make at least one node ready and schedulable; see: kubectl get nodes",
        )
    order = {name: number for number, name in enumerate(node_names_of(platform.machines) if platform else ())}
    if platform is not None:
        _check_names(order, nodes, emulation)
    nodes.sort(key=lambda node: (order.get(node["metadata"]["name"], len(order)), node["metadata"]["name"]))
    speed = float(annotations_of(nodes[0]).get(ANNOTATION_SPEED, "1"))
    if not 0 < speed < math.inf:
        raise ValueError(f"{ANNOTATION_SPEED} is {speed}, not a positive number")
    return ClusterNodes(
        ["" + node["metadata"]["name"] for node in nodes],
        [{name: parse_amount(name, text) for name, text in _allocatable(node).items()} for node in nodes],
        speed,
        any(taint["key"] == _KWOK_TAINT for node in nodes for taint in _blocking_taints(node)),
    )


def _allocatable(node: KubeObject) -> dict[str, str]:
    status = node.get("status", {})
    amounts: dict[str, str] = status.get("allocatable") or status.get("capacity") or {}
    return amounts


def _blocking_taints(node: KubeObject) -> list[KubeObject]:
    return [taint for taint in node["spec"].get("taints") or () if taint["effect"] in _BLOCKING_EFFECTS]


def _is_schedulable(node: KubeObject) -> bool:
    """Return whether a node is not cordoned, and has no blocking taint except that of KWOK."""
    taints = [taint for taint in _blocking_taints(node) if taint["key"] != _KWOK_TAINT]
    return not taints and not node["spec"].get("unschedulable", False)


def _check_names(order: dict[str, int], nodes: Sequence[KubeObject], emulation: Emulation) -> None:
    unknown = [node["metadata"]["name"] for node in nodes if node["metadata"]["name"] not in order]
    if unknown or len(nodes) != len(order):
        names = f"not in the platform: {', '.join(unknown[:3])}" if unknown else "some are missing"
        raise InputError(
            f"--platform {emulation.platform}",
            problem=f"has {len(order)} machines, but the cluster has {len(nodes)} nodes ({names})",
            remedy="omit --platform, or use the platform that describes this cluster",
        )


def plan_jobs(
    workloads: Sequence[Workload], emulation: Emulation, nodes: ClusterNodes, platform: Platform | None
) -> list[PlannedJob]:
    """Return the planned jobs in order of submission. Raises InputError for a job that cannot run."""
    sources = {workload.name: workload.source for workload in workloads}
    jobs: Iterable[Job] = heapq.merge(*(workload.jobs for workload in workloads), key=lambda job: job.submit)
    slowest = platform.slowest if platform is not None else Machine(0, "any", {CPU: 0})
    stretch = nodes.speed / emulation.speed
    fits: dict[Requests, bool] = {}
    planned_jobs = []
    for number, job in enumerate(jobs):
        requests = _requests(job, emulation, nodes, sources[job.workload])
        if requests not in fits:
            fits[requests] = any(_fits(requests, allocatable) for allocatable in nodes.allocatable)
        if not fits[requests]:
            raise _too_large_error(job, requests, nodes, sources[job.workload])
        length, code = _run_time(job, slowest, sources[job.workload])
        is_cut = job.walltime is not None and job.walltime < length
        length = job.walltime if is_cut and job.walltime is not None else length
        sleep = Duration(round(length * stretch))
        planned_jobs.append(PlannedJob(number, job, requests, length, sleep, 0 if is_cut else code, is_cut))
    return planned_jobs


def _requests(job: Job, emulation: Emulation, nodes: ClusterNodes, source: str) -> Requests:
    requests = apply_mappings(job.requests, emulation.mappings)
    if requests:
        return requests
    if all(MACHINE in allocatable for allocatable in nodes.allocatable):
        return ((MACHINE, 1),)
    raise InputError(
        source,
        at=f"job {job.name!r}",
        problem="requests no resources, so any number of such jobs would share a node",
        remedy="set the requests of its pods, for example --requests cpu=4",
    )


def _fits(requests: Requests, allocatable: dict[str, int]) -> bool:
    return all(allocatable.get(name, 0) >= amount for name, amount in requests)


def _too_large_error(job: Job, requests: Requests, nodes: ClusterNodes, source: str) -> InputError:
    demand = ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in requests)
    largest = max(nodes.allocatable, key=lambda allocatable: allocatable.get(CPU, 0))
    offered = ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in largest.items() if name != PODS)
    return InputError(
        source,
        at=f"job {job.name!r}",
        problem=f"requests {demand}, which no node of the cluster has (the largest has {offered})",
        remedy="scale the requests, for example --requests cpu=x0.5, or use a larger cluster",
    )


def _run_time(job: Job, slowest: Machine, source: str) -> RunTime:
    try:
        run_time = run_time_on(job.profile, [slowest] * job.size)
        if run_time.length <= LATEST_NS or job.walltime is not None:
            return run_time
        problem = "never ends, and the job has no walltime"
    except (UnsupportedProfile, ValueError) as error:
        problem = str(error)
    raise InputError(
        source,
        at=f"profile {job.profile.name!r} of job {job.name!r}",
        problem=f"{problem}, so the sleep time of its pods is unknown",
        remedy="use delay profiles; or, for computing profiles, add a --platform with the speeds of machines",
    )
