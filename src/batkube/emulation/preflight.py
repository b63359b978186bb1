"""Before a run: may we do what it needs, is there room for its jobs, and what exactly is to be created?

What can be known to be wrong is said before anything is created.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from batkube.cluster.jobs.submission_forms import KUEUE, POD_GROUP_APIS, PodGroupApi
from batkube.cluster.mapping import ANNOTATION_SPEED, node_names_of
from batkube.cluster.object_meta import annotations_of
from batkube.cluster.store import KubeObject
from batkube.emulation.client.connection import ApiStatusError, ClusterConnection, ClusterUnreachable
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
    """The nodes that pods may be placed on. A node's position is its machine id in the outputs."""

    names: Sequence[str]
    #: What each offers to pods.
    allocatable: Sequence[dict[str, int]]
    #: How fast the cluster's own clock runs.
    speed: float = 1.0
    has_kwok_taint: bool = False


def check_access(
    access: ClusterConnection, emulation: Emulation, priorities: Iterable[int]
) -> tuple[str, PodGroupApi | None]:
    """Check that the cluster responds and that the user has all required permissions. Raises InputError.

    Return its version, and how its scheduler speaks of groups of pods, if the run has any.
    """
    try:
        version = str(access.get("/version").get("gitVersion", ""))
        dialect = _dialect(access, emulation) if emulation.kind is JobKind.POD_GROUP else None
        if emulation.kind is JobKind.KUEUE_JOB and not access.exists(f"/apis/{KUEUE}"):
            problem = f"the cluster does not serve {KUEUE}"
            raise InputError(f"--kind {emulation.kind}", problem=problem, remedy="install Kueue, or write --kind job")
        for needed in _required_permissions(emulation, dialect, priorities):
            _check_permission(access, emulation, needed)
        _check_namespace(access, emulation)
    except ClusterUnreachable as error:
        raise InputError(
            emulation.kubeconfig, problem=str(error), remedy="check that the cluster runs: kubectl get nodes"
        ) from error
    except ApiStatusError as error:
        raise InputError(
            emulation.kubeconfig, problem=str(error), remedy="use a kubeconfig whose user has the permission"
        ) from error
    return version, dialect


def _dialect(access: ClusterConnection, emulation: Emulation) -> PodGroupApi:
    """Return the dialect of the PodGroups that the cluster knows."""
    wanted = [version for version in POD_GROUP_APIS if emulation.pod_group in (None, version)]
    if not wanted:
        place, remedy = f"--pod-group {emulation.pod_group}", f"one of {', '.join(POD_GROUP_APIS)}"
        raise InputError(place, problem="is not a supported version of PodGroups", remedy=remedy)
    served = [version for version in wanted if access.exists(f"/apis/{version}")]
    if len(served) == 1:
        return POD_GROUP_APIS[served[0]]
    if served:
        problem, remedy = "the cluster has several kinds of PodGroups", f"choose one: --pod-group {served[0]}"
    else:
        problem = f"the cluster has no PodGroups (looked for: {', '.join(wanted)})"
        remedy = "install a gang scheduler with its CustomResourceDefinitions, or use --kind pod"
    raise InputError(f"--kind {emulation.kind}", problem=problem, remedy=remedy)


def _check_namespace(access: ClusterConnection, emulation: Emulation) -> None:
    name = emulation.namespace
    if name is not None and not access.exists(f"/api/v1/namespaces/{name}"):
        remedy = f"create it (kubectl create namespace {name}), or omit --namespace"
        raise InputError(f"--namespace {name}", problem="does not exist in the cluster", remedy=remedy)


def _required_permissions(
    emulation: Emulation, dialect: PodGroupApi | None, priorities: Iterable[int]
) -> list[tuple[str, str, str, str]]:
    """Return the required permissions: verb, group, resource, namespace."""
    space = emulation.namespace or ""
    made = [("batch", "jobs") if emulation.kind.uses_job_controller else ("", "pods")]
    if dialect is not None:
        made.append((dialect.group, "podgroups"))
    needed = [("list", "", "nodes", "")]
    needed += [(verb, group, plural, space) for group, plural in made for verb in ("create", "deletecollection")]
    needed += [(verb, "", resource, space) for resource in ("pods", "events") for verb in ("list", "watch")]
    if emulation.namespace is None:
        needed += [("create", "", "namespaces", ""), ("delete", "", "namespaces", "")]
    if any(priorities):
        needed += [(verb, "scheduling.k8s.io", "priorityclasses", "") for verb in ("create", "delete")]
    return needed


def _check_permission(access: ClusterConnection, emulation: Emulation, needed: tuple[str, str, str, str]) -> None:
    verb, group, resource, namespace = needed
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = access.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    if not answer["status"]["allowed"]:
        where = f" in namespace {namespace}" if namespace else " in the whole cluster"
        remedy = "use a kubeconfig whose user has the permission"
        if not namespace and resource not in ("nodes", "priorityclasses"):
            remedy += ", or name a namespace in which it may: --namespace N"
        raise InputError(emulation.kubeconfig, problem=f"its user may not {verb} {resource}{where}", remedy=remedy)


def read_nodes(access: ClusterConnection, emulation: Emulation, platform: Platform | None) -> ClusterNodes:
    """Return the nodes that pods may be placed on, numbered as the platform's machines, or by name without one."""
    listed = [node for node in access.get("/api/v1/nodes")["items"] if _is_schedulable(node)]
    if not listed:
        raise InputError(
            emulation.kubeconfig,
            problem=f"the cluster at {access.url} has no node that takes pods",
            remedy="make at least one node ready and schedulable; see: kubectl get nodes",
        )
    order = {name: number for number, name in enumerate(node_names_of(platform.machines) if platform else ())}
    if platform is not None:
        _check_names(order, listed, emulation)
    listed.sort(key=lambda node: (order.get(node["metadata"]["name"], len(order)), node["metadata"]["name"]))
    speeds = [annotations_of(node).get(ANNOTATION_SPEED, "1") for node in listed]
    return ClusterNodes(
        [node["metadata"]["name"] for node in listed],
        [{name: parse_amount(name, text) for name, text in _allocatable(node).items()} for node in listed],
        float(speeds[0]),
        any(taint["key"] == _KWOK_TAINT for node in listed for taint in _blocking_taints(node)),
    )


def _allocatable(node: KubeObject) -> dict[str, str]:
    status = node.get("status", {})
    offered: dict[str, str] = status.get("allocatable") or status.get("capacity") or {}
    return offered


def _blocking_taints(node: KubeObject) -> list[KubeObject]:
    return [taint for taint in node["spec"].get("taints") or () if taint["effect"] in _BLOCKING_EFFECTS]


def _is_schedulable(node: KubeObject) -> bool:
    """Say whether pods of ours may be placed on a node: it is not closed, and only KWOK's own taint is on it."""
    taints = [taint for taint in _blocking_taints(node) if taint["key"] != _KWOK_TAINT]
    return not taints and not node["spec"].get("unschedulable", False)


def _check_names(order: dict[str, int], listed: Sequence[KubeObject], emulation: Emulation) -> None:
    strange = [node["metadata"]["name"] for node in listed if node["metadata"]["name"] not in order]
    if strange or len(listed) != len(order):
        names = ", ".join(strange[:3]) or "some are missing"
        raise InputError(
            f"--platform {emulation.platform}",
            problem=f"has {len(order)} machines, which are not the {len(listed)} nodes of the cluster ({names})",
            remedy="omit --platform, or use the platform that describes this cluster",
        )


def plan_jobs(
    workloads: Sequence[Workload], emulation: Emulation, nodes: ClusterNodes, platform: Platform | None
) -> list[PlannedJob]:
    """Return the jobs as they will be played, in order of submission. Raises InputError for one that cannot be."""
    sources = {workload.name: workload.source for workload in workloads}
    jobs: Iterable[Job] = heapq.merge(*(workload.jobs for workload in workloads), key=lambda job: job.submit)
    slowest = platform.slowest if platform is not None else Machine(0, "any", {CPU: 0})
    stretch = nodes.speed / emulation.speed
    fits: dict[Requests, bool] = {}
    tasks = []
    for number, job in enumerate(jobs):
        requests = _requests(job, emulation, nodes, sources[job.workload])
        if requests not in fits:
            fits[requests] = any(_fits(requests, offer) for offer in nodes.allocatable)
        if not fits[requests]:
            raise _too_large(job, requests, nodes, sources[job.workload])
        length, code = _run_time(job, slowest, sources[job.workload])
        is_cut = job.walltime is not None and job.walltime < length
        length = job.walltime if is_cut and job.walltime is not None else length
        sleep = Duration(round(length * stretch))
        tasks.append(PlannedJob(number, job, requests, length, sleep, 0 if is_cut else code, is_cut))
    return tasks


def _requests(job: Job, emulation: Emulation, nodes: ClusterNodes, source: str) -> Requests:
    requests = apply_mappings(job.requests, emulation.mappings)
    if requests:
        return requests
    if all(MACHINE in offer for offer in nodes.allocatable):
        return ((MACHINE, 1),)
    raise InputError(
        source,
        at=f"job {job.name!r}",
        problem="requests no cpu or memory, so any number of such jobs would share a node",
        remedy="set the requests of its pods, for example --requests cpu=4",
    )


def _fits(requests: Requests, offer: dict[str, int]) -> bool:
    return all(offer.get(name, 0) >= wanted for name, wanted in requests)


def _too_large(job: Job, requests: Requests, nodes: ClusterNodes, source: str) -> InputError:
    demand = ", ".join(f"{name} {format_amount(name, wanted)}" for name, wanted in requests)
    best = max(nodes.allocatable, key=lambda offer: offer.get(CPU, 0))
    offered = ", ".join(f"{name} {format_amount(name, most)}" for name, most in best.items() if name != PODS)
    return InputError(
        source,
        at=f"job {job.name!r}",
        problem=f"requests {demand}, which no node of the cluster has (the largest has {offered})",
        remedy="scale the requests, for example --requests cpu=x0.5, or use a larger cluster",
    )


def _run_time(job: Job, slowest: Machine, source: str) -> RunTime:
    try:
        whole = run_time_on(job.profile, [slowest] * job.size)
        if whole.length <= LATEST_NS or job.walltime is not None:
            return whole
        problem = "never ends, and has no walltime"
    except (UnsupportedProfile, ValueError) as error:
        problem = str(error)
    raise InputError(
        source,
        at=f"profile {job.profile.name!r} of job {job.name!r}",
        problem=f"{problem}, so the sleep time of its pods is unknown",
        remedy="use delay profiles; or, for computing profiles, add a --platform with the speeds of machines",
    )
