"""Create the objects of a job for a real cluster.

A pod sleeps for the run time of the job: a kubelet runs the command, KWOK and `batkube serve` read the annotation. A
job whose run time exceeds its walltime sleeps until the walltime.
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

#: The label of all objects that an emulated run creates; its value is unique to the run.
LABEL_RUN = "batkube.io/emulation"
#: The number of the job that a pod belongs to.
LABEL_NUMBER = "batkube.io/job-number"
_KWOK_TAINT = {"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}
#: Job names become label values, of at most 63 characters; leave room for the suffix that the controller adds.
_JOB_NAME_LENGTH = 50


class PlannedJob(NamedTuple):
    """A job as it will be submitted."""

    #: Its position in the order of submission.
    number: int
    job: Job
    #: The requests of each pod.
    requests: Requests
    #: The run time of each pod, in the workload's time.
    run_time: Duration
    #: The argument of `sleep`, in the cluster's time.
    sleep: Duration
    exit_code: int
    #: Whether it ends at its walltime.
    exceeds_walltime: bool


class ManifestOptions(NamedTuple):
    """The options that all objects of a run share."""

    run: str
    kind: JobKind
    image: str
    scheduler_name: str
    #: Whether pods tolerate the taint of KWOK's nodes.
    tolerates_kwok: bool = False
    #: The PodGroup API of the cluster's scheduler, with kind `pod-group`.
    pod_group_api: PodGroupApi | None = None


def objects_of(planned: PlannedJob, options: ManifestOptions) -> list[KubeObject]:
    """Return the objects to create for a job: a batch/v1 Job, or a PodGroup, if any, and the pods by rank."""
    base = pod_base_name(planned.job)
    if options.kind.uses_job_controller:
        return [_job_object(planned, options, base)]
    names = [base] if planned.job.size == 1 else [f"{base}-{rank}" for rank in range(planned.job.size)]
    metadata, spec = _metadata(planned, options), _pod_spec(planned, options)
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec} for name in names]
    return pods if options.pod_group_api is None else [group_of(planned, options), *pods]


def group_of(planned: PlannedJob, options: ManifestOptions) -> KubeObject:
    """Return the PodGroup of a job, whose pods are scheduled all together."""
    assert options.pod_group_api is not None, "the run has no PodGroups"
    group = pod_group_of(
        planned.job, options.pod_group_api, {LABEL_RUN: options.run, LABEL_NUMBER: str(planned.number)}
    )
    del group["metadata"]["namespace"]
    if "priorityClassName" in group["spec"]:
        group["spec"]["priorityClassName"] = _class_name(planned.job.priority, options)
    return group


def collection_of(obj: KubeObject, namespace: str) -> str:
    """Return the path of the collection that an object belongs to."""
    version = str(obj["apiVersion"])
    return f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/{namespace}/{obj['kind'].lower()}s"


def local_queue(name: str, options: ManifestOptions) -> KubeObject:
    """Return the Kueue LocalQueue of the run's namespace that submits to the ClusterQueue of the same name."""
    queue = local_queue_of(name, name)
    queue["metadata"] = {"name": name, "labels": {LABEL_RUN: options.run}}
    return queue


def priority_class(priority: int, options: ManifestOptions) -> KubeObject:
    """Return the PriorityClass of a priority: the Priority admission plugin rejects an explicit priority of a pod."""
    name = _class_name(priority, options)
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "labels": {LABEL_RUN: options.run}},
        "value": priority,
    }


def _class_name(priority: int, options: ManifestOptions) -> str:
    return f"batkube-{options.run}-{'minus-' if priority < 0 else ''}{abs(priority)}"


def _job_object(planned: PlannedJob, options: ManifestOptions, base: str) -> KubeObject:
    name = base if len(base) <= _JOB_NAME_LENGTH and "." not in base else f"job-{planned.number}"
    metadata = _metadata(planned, options)
    spec: KubeObject = {
        "completions": planned.job.size,
        "parallelism": planned.job.size,
        "backoffLimit": 0,
        # Replace preempted and evicted pods, but not failed ones.
        "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
        "template": {"metadata": metadata, "spec": _pod_spec(planned, options)},
    }
    if options.kind is JobKind.KUEUE_JOB:
        spec |= {"suspend": True, "completionMode": "Indexed"}
        metadata = {**metadata, "labels": {**metadata["labels"], KUEUE_QUEUE: queue_name(planned.job)}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, **metadata}, "spec": spec}


def _metadata(planned: PlannedJob, options: ManifestOptions) -> KubeObject:
    labels = {
        LABEL_RUN: options.run,
        LABEL_NUMBER: str(planned.number),
        LABEL_WORKLOAD: as_label_value(planned.job.workload),
        LABEL_JOB: as_label_value(planned.job.name),
    }
    annotations = {DURATION: f"{exact_seconds(planned.sleep)}s"}
    if planned.exit_code:
        annotations[EXIT_CODE] = str(planned.exit_code)
    if options.pod_group_api is not None:
        labels |= options.pod_group_api.group_labels(object_name(planned.job))
        annotations |= options.pod_group_api.group_annotations(object_name(planned.job))
    return {"labels": labels, "annotations": annotations}


def _pod_spec(planned: PlannedJob, options: ManifestOptions) -> KubeObject:
    job = planned.job
    sleep = f"sleep {exact_seconds(planned.sleep)}"
    command = ["sh", "-c", f"{sleep}; exit {planned.exit_code}"] if planned.exit_code else sleep.split()
    spec: KubeObject = {
        "schedulerName": options.scheduler_name if job.scheduler in ANY_SCHEDULER else job.scheduler,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [
            {"name": "job", "image": job.image or options.image, "command": command, "resources": _resources(planned)}
        ],
    }
    if job.priority:
        spec["priorityClassName"] = _class_name(job.priority, options)
    if options.tolerates_kwok:
        spec["tolerations"] = [_KWOK_TAINT]
    return spec


def _resources(planned: PlannedJob) -> KubeObject:
    requests = {name: format_amount(name, amount) for name, amount in planned.requests}
    # The limit of an extended resource must equal its request (Kubernetes: pkg/apis/core/validation).
    limits = {name: text for name, text in requests.items() if "/" in name}
    return {"requests": requests, **({"limits": limits} if limits else {})}
