"""The objects that a job becomes in a real cluster.

A pod does nothing but sleep as long as the job runs: a kubelet runs the command, KWOK and `batkube serve` read the
annotation, and the result is the same. A job that would outlive its walltime sleeps until then.
"""

from __future__ import annotations

from typing import NamedTuple

from batkube.cluster.jobs.submission_forms import (
    KUEUE_QUEUE,
    PodGroupApi,
    local_queue_of,
    object_name,
    pod_group_of,
    queue_name,
)
from batkube.cluster.mapping import ANY_SCHEDULER, LABEL_JOB, LABEL_WORKLOAD, as_label_value, pod_base_name
from batkube.cluster.store import KubeObject
from batkube.emulation.settings import JobKind
from batkube.kernel.instants import Duration
from batkube.kernel.quantities import format_amount
from batkube.workloads.delay_profiles import exact_seconds
from batkube.workloads.formats.kubernetes.annotations import DURATION, EXIT_CODE
from batkube.workloads.model import Job, Requests

#: On everything that an emulated run creates; the value is the run's own.
LABEL_RUN = "batkube.io/emulation"
#: Which job of the run a pod belongs to.
LABEL_NUMBER = "batkube.io/job-number"
_KWOK_TAINT = {"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}
#: Names of Jobs become labels, of at most 63 characters; leave room for what their controller adds.
_JOB_NAME_LENGTH = 50


class PlannedJob(NamedTuple):
    """A job as it will be played."""

    #: Its position in the order of submission.
    number: int
    job: Job
    #: What each pod asks for.
    requests: Requests
    #: How long each pod runs, in the workload's time.
    run_time: Duration
    #: How long it is told to sleep, in the cluster's time.
    sleep: Duration
    exit_code: int
    #: Whether it ends because its walltime is over.
    exceeds_walltime: bool


class ManifestOptions(NamedTuple):
    """What the objects of one run have in common."""

    run: str
    kind: JobKind
    image: str
    scheduler_name: str
    #: Whether the cluster's nodes are KWOK's, tainted as its documentation advises.
    tolerates_kwok: bool = False
    #: How the cluster's scheduler speaks of groups of pods; with kind `pod-group`.
    dialect: PodGroupApi | None = None


def objects_of(task: PlannedJob, style: ManifestOptions) -> list[KubeObject]:
    """Return what to create for a job: a batch/v1 Job, or its pods in order of rank, after their PodGroup."""
    base = pod_base_name(task.job)
    if style.kind.uses_job_controller:
        return [_job_object(task, style, base)]
    names = [base] if task.job.size == 1 else [f"{base}-{rank}" for rank in range(task.job.size)]
    metadata, spec = _metadata(task, style), _pod_spec(task, style)
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec} for name in names]
    return pods if style.dialect is None else [group_of(task, style), *pods]


def group_of(task: PlannedJob, style: ManifestOptions) -> KubeObject:
    """Return the PodGroup of a job: nothing of it starts before all of it can."""
    assert style.dialect is not None, "a run without groups"
    group = pod_group_of(task.job, style.dialect, {LABEL_RUN: style.run, LABEL_NUMBER: str(task.number)})
    del group["metadata"]["namespace"]
    if "priorityClassName" in group["spec"]:
        group["spec"]["priorityClassName"] = _class_name(task.job.priority, style)
    return group


def collection_of(fields: KubeObject, namespace: str) -> str:
    """Return the path of the collection that an object belongs to."""
    version = str(fields["apiVersion"])
    return f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/{namespace}/{fields['kind'].lower()}s"


def local_queue(name: str, style: ManifestOptions) -> KubeObject:
    """Return the LocalQueue of Kueue that leads from the run's namespace to the ClusterQueue of the same name."""
    queue = local_queue_of(name, name)
    queue["metadata"] = {"name": name, "labels": {LABEL_RUN: style.run}}
    return queue


def priority_class(priority: int, style: ManifestOptions) -> KubeObject:
    """Return the PriorityClass of a priority: Kubernetes lets nobody write a pod's priority itself."""
    name = _class_name(priority, style)
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "labels": {LABEL_RUN: style.run}},
        "value": priority,
    }


def _class_name(priority: int, style: ManifestOptions) -> str:
    return f"batkube-{style.run}-{'minus-' if priority < 0 else ''}{abs(priority)}"


def _job_object(task: PlannedJob, style: ManifestOptions, base: str) -> KubeObject:
    name = base if len(base) <= _JOB_NAME_LENGTH and "." not in base else f"job-{task.number}"
    metadata = _metadata(task, style)
    spec: KubeObject = {
        "completions": task.job.size,
        "parallelism": task.job.size,
        "backoffLimit": 0,
        # A pod that had to make room is replaced; one that failed is not.
        "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
        "template": {"metadata": metadata, "spec": _pod_spec(task, style)},
    }
    if style.kind is JobKind.KUEUE_JOB:
        spec |= {"suspend": True, "completionMode": "Indexed"}
        metadata = {**metadata, "labels": {**metadata["labels"], KUEUE_QUEUE: queue_name(task.job)}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, **metadata}, "spec": spec}


def _metadata(task: PlannedJob, style: ManifestOptions) -> KubeObject:
    labels = {
        LABEL_RUN: style.run,
        LABEL_NUMBER: str(task.number),
        LABEL_WORKLOAD: as_label_value(task.job.workload),
        LABEL_JOB: as_label_value(task.job.name),
    }
    annotations = {DURATION: f"{exact_seconds(task.sleep)}s"}
    if task.exit_code:
        annotations[EXIT_CODE] = str(task.exit_code)
    if style.dialect is not None:
        labels |= style.dialect.group_labels(object_name(task.job))
        annotations |= style.dialect.group_annotations(object_name(task.job))
    return {"labels": labels, "annotations": annotations}


def _pod_spec(task: PlannedJob, style: ManifestOptions) -> KubeObject:
    job = task.job
    sleep = f"sleep {exact_seconds(task.sleep)}"
    command = ["sh", "-c", f"{sleep}; exit {task.exit_code}"] if task.exit_code else sleep.split()
    spec: KubeObject = {
        "schedulerName": style.scheduler_name if job.scheduler in ANY_SCHEDULER else job.scheduler,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [
            {"name": "job", "image": job.image or style.image, "command": command, "resources": _resources(task)}
        ],
    }
    if job.priority:
        spec["priorityClassName"] = _class_name(job.priority, style)
    if style.tolerates_kwok:
        spec["tolerations"] = [_KWOK_TAINT]
    return spec


def _resources(task: PlannedJob) -> KubeObject:
    requests = {name: format_amount(name, amount) for name, amount in task.requests}
    # Kubernetes wants the limit of an extended resource to equal its request.
    limits = {name: text for name, text in requests.items() if "/" in name}
    return {"requests": requests, **({"limits": limits} if limits else {})}
