"""Submission forms: the objects that represent a job of many pods, depending on its scheduler.

| form          | objects                                                                    | who creates the pods   |
|---------------|----------------------------------------------------------------------------|------------------------|
| `pods`        | bare pods                                                                  | the submitter          |
| `pod-group`   | a PodGroup of the scheduler's API group, and bare pods that name it        | the submitter          |
| `volcano-job` | a batch.volcano.sh/v1alpha1 Job; a PodGroup is created for it              | Volcano's controllers  |
| `indexed-job` | a batch/v1 Job with a completion index for each pod                        | the Job controller     |
| `kueue-job`   | the same, suspended, with the name of a queue                              | the same, once admitted|

The objects carry all attributes of the job: its queue, its priority as a PriorityClass, its user as a label, and its
walltime as the active deadline of its pods (the deadline of a Job would include the time in the queue).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import NamedTuple

from batkube.cluster.mapping import NAMESPACE, PodFactory, ResourceModel, as_label_value, kube_name, pod_base_name
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import NANOSECONDS_PER_SECOND
from batkube.kernel.quantities import format_amount
from batkube.workloads.formats.kubernetes.manifest_writer import priority_class_name
from batkube.workloads.model import Job

#: The job's identity, on the object that represents the job and on the pods that a controller creates for it.
ANNOTATION_JOB = "batkube.io/job-key"
LABEL_USER = "batkube.io/user"
LABEL_QUEUE = "batkube.io/queue"
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
DEFAULT_QUEUE = "default"
#: The longest name to which controllers can append a suffix within the 63 characters of a host name.
_NAME_LENGTH = 50
#: Effectively unlimited: a job restarts as often as it is evicted.
_MAX_RETRIES = 1_000_000_000


class SubmissionForm(enum.StrEnum):
    """The kind of objects that represent a submitted job."""

    PODS = "pods"
    POD_GROUP = "pod-group"
    VOLCANO_JOB = "volcano-job"
    INDEXED_JOB = "indexed-job"
    KUEUE_JOB = "kueue-job"

    @property
    def is_owned(self) -> bool:
        """Whether the job is one object, for which a controller creates the pods."""
        return self not in (SubmissionForm.PODS, SubmissionForm.POD_GROUP)


class PodGroupApi(NamedTuple):
    """The PodGroup API of a scheduler."""

    #: The group and version of its PodGroups.
    api_version: str
    #: The annotation and the label that name a pod's group; "" if there is none.
    annotation: str = "scheduling.k8s.io/group-name"
    label: str = ""
    #: Whether a PodGroup names a queue and a PriorityClass; Queues are of the same group and version.
    has_queues: bool = True
    #: Whether a PodGroup has `minResources`; that of kube-batch 0.5 does not.
    has_min_resources: bool = True
    #: Whether it is that of Kubernetes itself: a pod names its group in its spec, and a PodGroup has a policy.
    is_native: bool = False

    @property
    def group(self) -> str:
        """The group without the version."""
        return self.api_version.partition("/")[0]

    def with_key(self, key: str) -> PodGroupApi:
        """Return this API with `key` instead of its annotation and label."""
        return self._replace(annotation=self.annotation and key, label=self.label and key)

    def group_labels(self, name: str) -> dict[str, str]:
        """Return the labels by which a pod names its group."""
        return {self.label: name} if self.label else {}

    def group_annotations(self, name: str) -> dict[str, str]:
        """Return the annotations by which a pod names its group."""
        return {self.annotation: name} if self.annotation else {}


NATIVE_POD_GROUPS = "scheduling.k8s.io/v1beta1"
#: The APIs of kube-batch (two versions), the coscheduling plugin of scheduler-plugins, Volcano, and Kubernetes 1.37.
POD_GROUP_APIS = {
    api.api_version: api
    for api in (
        PodGroupApi("scheduling.incubator.k8s.io/v1alpha1", has_min_resources=False),
        PodGroupApi("scheduling.sigs.dev/v1alpha2", has_min_resources=False),
        PodGroupApi("scheduling.x-k8s.io/v1alpha1", "", "scheduling.x-k8s.io/pod-group", has_queues=False),
        PodGroupApi("scheduling.volcano.sh/v1beta1"),
        PodGroupApi(NATIVE_POD_GROUPS, "", has_queues=False, has_min_resources=False, is_native=True),
    )
}
#: Those that a CustomResourceDefinition adds to a cluster.
CUSTOM_POD_GROUPS = tuple(version for version, api in POD_GROUP_APIS.items() if not api.is_native)
VOLCANO_JOBS = "batch.volcano.sh/v1alpha1"
KUEUE = "kueue.x-k8s.io/v1beta1"


def object_name(job: Job) -> str:
    """Return the name of the object of `job`: an RFC 1123 label, short enough for the suffixes of controllers."""
    name = pod_base_name(job)
    if len(name) <= _NAME_LENGTH and "." not in name:
        return name
    # The underscore is not valid in a name, so `kube_name` appends a fingerprint of the whole text.
    fingerprint = kube_name(f"{name}_").rpartition("-")[2]
    return f"{re.sub(r'[^a-z0-9]+', '-', name)[: _NAME_LENGTH - 17]}-{fingerprint}"


def queue_name(job: Job) -> str:
    """Return the queue of `job` as a valid Kubernetes name; the queues of SWF traces are numbers."""
    if not job.queue:
        return DEFAULT_QUEUE
    return kube_name(f"queue-{job.queue}" if job.queue.isdigit() else job.queue)


class GangPodFactory(PodFactory):
    """Creates pods that carry the user, queue and walltime of their job."""

    def labels_of(self, job: Job) -> dict[str, str]:
        """Return the labels of a pod, including its user and queue."""
        labels = super().labels_of(job)
        if job.user:
            labels[LABEL_USER] = as_label_value(job.user)
        if job.queue:
            labels[LABEL_QUEUE] = as_label_value(job.queue)
        return labels

    def spec_of(self, job: Job) -> KubeObject:
        """Return the spec of a pod, with the walltime as its deadline."""
        spec = dict(super().spec_of(job))
        if job.walltime is not None:
            spec["activeDeadlineSeconds"] = -(-job.walltime // NANOSECONDS_PER_SECOND)
        return spec


class OwnedPodFactory(GangPodFactory):
    """Creates pod templates for controllers; the pods carry the identity of their job."""

    def annotations_of(self, job: Job) -> dict[str, str]:
        """Return the annotations, with the job's identity."""
        return {**super().annotations_of(job), ANNOTATION_JOB: job.key}


class GroupedPodFactory(GangPodFactory):
    """Creates pods that name their PodGroup as their scheduler expects it."""

    def __init__(self, model: ResourceModel, api: PodGroupApi, numbers: Iterator[int] | None = None) -> None:
        super().__init__(model, numbers)
        self.pod_group_api = api

    def labels_without_group(self, job: Job) -> dict[str, str]:
        """Return the labels, without a label for the group."""
        return super().labels_of(job)

    def labels_of(self, job: Job) -> dict[str, str]:
        """Return the labels, including the group if the API names it in a label."""
        return super().labels_of(job) | self.pod_group_api.group_labels(object_name(job))

    def annotations_of(self, job: Job) -> dict[str, str]:
        """Return the annotations, including the group if the API names it in an annotation."""
        return super().annotations_of(job) | self.pod_group_api.group_annotations(object_name(job))

    def spec_of(self, job: Job) -> KubeObject:
        """Return the spec of a pod, including the group if the API names it there."""
        spec = super().spec_of(job)
        return {**spec, "schedulingGroup": {"podGroupName": object_name(job)}} if self.pod_group_api.is_native else spec


def _metadata(job: Job, labels: dict[str, str]) -> KubeObject:
    return {
        "name": object_name(job),
        "namespace": NAMESPACE,
        "labels": labels,
        "annotations": {ANNOTATION_JOB: job.key},
    }


def pod_group_of(job: Job, api: PodGroupApi, labels: dict[str, str]) -> KubeObject:
    """Return the PodGroup of `job`: no pod starts before all of them can, or as many as the gang's terms require."""
    size = job.gang.min_member or job.size
    if api.is_native:
        # Kubernetes: api/scheduling/v1beta1/types.go, PodGroupSpec. The WorkloadRef is optional.
        spec: KubeObject = {"schedulingPolicy": {"gang": {"minCount": size}}}
        if job.priority:
            spec["priorityClassName"] = priority_class_name(job.priority)
        return {"apiVersion": api.api_version, "kind": "PodGroup", "metadata": _metadata(job, labels), "spec": spec}
    spec = {"minMember": size}
    if job.gang.min_resources and api.has_min_resources:
        spec["minResources"] = {name: format_amount(name, amount) for name, amount in job.gang.min_resources}
    if api.has_queues:
        spec["queue"] = queue_name(job)
        if job.priority:
            spec["priorityClassName"] = priority_class_name(job.priority)
    return {"apiVersion": api.api_version, "kind": "PodGroup", "metadata": _metadata(job, labels), "spec": spec}


def indexed_job_of(job: Job, template: KubeObject, *, kueue: bool) -> KubeObject:
    """Return the indexed batch/v1 Job of `job`: all pods in parallel, no retry after a failure.

    An evicted pod does not count as failed (Kubernetes documentation, "Pod failure policy"). For Kueue the Job is
    suspended and has the label of a queue; Kueue resumes it when the queue has quota.
    """
    labels = dict(template["metadata"]["labels"])
    ignore_disruptions = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    spec = {
        "completionMode": "Indexed",
        "completions": job.size,
        "parallelism": job.size,
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [ignore_disruptions]},
        "ttlSecondsAfterFinished": 0,
        "template": template,
    }
    if kueue:
        labels[KUEUE_QUEUE] = queue_name(job)
        spec["suspend"] = True
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(job, labels), "spec": spec}


def volcano_job_of(job: Job, template: KubeObject) -> KubeObject:
    """Return the Volcano Job of `job`: one task with all its pods, restarted as a whole when one of them is evicted.

    It sets all fields that Volcano's webhooks would default (Volcano: pkg/webhooks/admission/jobs/mutate).
    """
    min_available = job.gang.min_member or job.size
    spec: KubeObject = {
        "minAvailable": min_available,
        "schedulerName": template["spec"]["schedulerName"],
        "queue": queue_name(job),
        "maxRetry": _MAX_RETRIES,
        "ttlSecondsAfterFinished": 0,
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "tasks": [{"name": "pod", "replicas": job.size, "minAvailable": min_available, "template": template}],
    }
    if job.priority:
        spec["priorityClassName"] = priority_class_name(job.priority)
    labels = dict(template["metadata"]["labels"])
    return {"apiVersion": VOLCANO_JOBS, "kind": "Job", "metadata": _metadata(job, labels), "spec": spec}


def priority_class_of(priority: int) -> KubeObject:
    """Return the PriorityClass of a priority."""
    metadata = {"name": priority_class_name(priority)}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": priority}


def queue_of(name: str, version: str) -> KubeObject:
    """Return a Queue of kube-batch or Volcano; all queues have the same weight."""
    return {"apiVersion": version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}


def local_queue_of(name: str, cluster_queue: str) -> KubeObject:
    """Return a LocalQueue of Kueue, which points to a ClusterQueue."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": cluster_queue}}
