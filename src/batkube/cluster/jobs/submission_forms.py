"""Forms of submission: what a job of many pods is in the words of a scheduler that knows such jobs.

| form          | objects                                                                    | who makes the pods     |
|---------------|----------------------------------------------------------------------------|------------------------|
| `pods`        | bare pods                                                                  | whoever submits        |
| `pod-group`   | a PodGroup, in the scheduler's own dialect, and bare pods that name it     | whoever submits        |
| `volcano-job` | a batch.volcano.sh/v1alpha1 Job, of which a PodGroup is made as well       | Volcano's controllers  |
| `indexed-job` | a batch/v1 Job with a completion index for each pod                        | the Job controller     |
| `kueue-job`   | the same, suspended, with the name of a queue                              | the same, once admitted|

Everything that the workload says of a job comes along: its queue, its priority as a PriorityClass, its user as a label,
its walltime as the active deadline of its pods (on a Job it would count from the Job's creation, waiting included).
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

#: On what stands for a job, and on the pods that a controller makes of it: the job's identity.
ANNOTATION_JOB = "batkube.io/job-key"
LABEL_USER = "batkube.io/user"
LABEL_QUEUE = "batkube.io/queue"
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
DEFAULT_QUEUE = "default"
#: A name longer than this leaves no room for what a controller adds to it within the 63 letters of a host's name.
_NAME_LENGTH = 50
#: A job starts over as often as it is evicted.
_MAX_RETRIES = 1_000_000_000


class SubmissionForm(enum.StrEnum):
    """What a job is submitted as."""

    PODS = "pods"
    POD_GROUP = "pod-group"
    VOLCANO_JOB = "volcano-job"
    INDEXED_JOB = "indexed-job"
    KUEUE_JOB = "kueue-job"

    @property
    def is_owned(self) -> bool:
        """Whether it is one object, of which a controller makes the pods."""
        return self not in (SubmissionForm.PODS, SubmissionForm.POD_GROUP)


class PodGroupApi(NamedTuple):
    """How a scheduler speaks of groups of pods."""

    #: The group and version of its PodGroups.
    api_version: str
    #: The annotation and the label that name a pod's group; "" where there is none.
    annotation: str = "scheduling.k8s.io/group-name"
    label: str = ""
    #: Whether a PodGroup names a queue and a PriorityClass; Queues are of the same group and version.
    has_queues: bool = True
    #: Whether a PodGroup says how much there must be for all of it; kube-batch's of 0.5 does not.
    has_min_resources: bool = True

    @property
    def group(self) -> str:
        """The group without the version."""
        return self.api_version.partition("/")[0]

    def with_key(self, key: str) -> PodGroupApi:
        """Return the dialect with another key in the place of each that it has."""
        return self._replace(annotation=self.annotation and key, label=self.label and key)

    def group_labels(self, name: str) -> dict[str, str]:
        """Return the labels by which a pod names its group."""
        return {self.label: name} if self.label else {}

    def group_annotations(self, name: str) -> dict[str, str]:
        """Return the annotations by which a pod names its group."""
        return {self.annotation: name} if self.annotation else {}


#: Of kube-batch (two of them), the coscheduling plugin of scheduler-plugins, and Volcano.
POD_GROUP_APIS = {
    dialect.api_version: dialect
    for dialect in (
        PodGroupApi("scheduling.incubator.k8s.io/v1alpha1", has_min_resources=False),
        PodGroupApi("scheduling.sigs.dev/v1alpha2", has_min_resources=False),
        PodGroupApi("scheduling.x-k8s.io/v1alpha1", "", "scheduling.x-k8s.io/pod-group", has_queues=False),
        PodGroupApi("scheduling.volcano.sh/v1beta1"),
    )
}
VOLCANO_JOBS = "batch.volcano.sh/v1alpha1"
KUEUE = "kueue.x-k8s.io/v1beta1"


def object_name(job: Job) -> str:
    """Return the name of what stands for `job`: a label (RFC 1123), with room for what controllers add to it."""
    name = pod_base_name(job)
    if len(name) <= _NAME_LENGTH and "." not in name:
        return name
    # An underscore is in no name, so it gets a fingerprint of the whole.
    fingerprint = kube_name(f"{name}_").rpartition("-")[2]
    return f"{re.sub(r'[^a-z0-9]+', '-', name)[: _NAME_LENGTH - 17]}-{fingerprint}"


def queue_name(job: Job) -> str:
    """Return the queue of `job` as Kubernetes allows names; SWF's queues have numbers."""
    if not job.queue:
        return DEFAULT_QUEUE
    return kube_name(f"queue-{job.queue}" if job.queue.isdigit() else job.queue)


class GangPodFactory(PodFactory):
    """Describes pods that tell of their jobs all that the workload does."""

    def labels_of(self, job: Job) -> dict[str, str]:
        """Return the labels of a pod, those of its user and queue among them."""
        labels = super().labels_of(job)
        if job.user:
            labels[LABEL_USER] = as_label_value(job.user)
        if job.queue:
            labels[LABEL_QUEUE] = as_label_value(job.queue)
        return labels

    def spec_of(self, job: Job) -> KubeObject:
        """Return the spec of a pod, with its deadline."""
        spec = dict(super().spec_of(job))
        if job.walltime is not None:
            spec["activeDeadlineSeconds"] = -(-job.walltime // NANOSECONDS_PER_SECOND)
        return spec


class OwnedPodFactory(GangPodFactory):
    """Makes templates for controllers: the pods that they make carry the identity of their job."""

    def annotations_of(self, job: Job) -> dict[str, str]:
        """Return the annotations, with the job's identity."""
        return {**super().annotations_of(job), ANNOTATION_JOB: job.key}


class GroupedPodFactory(GangPodFactory):
    """Describes pods that name their group in the dialect of their scheduler."""

    def __init__(self, model: ResourceModel, dialect: PodGroupApi, numbers: Iterator[int] | None = None) -> None:
        super().__init__(model, numbers)
        self.pod_group_api = dialect

    def labels_without_group(self, job: Job) -> dict[str, str]:
        """Return the labels without that of the group."""
        return super().labels_of(job)

    def labels_of(self, job: Job) -> dict[str, str]:
        """Return the labels, with the group where a label names it."""
        return super().labels_of(job) | self.pod_group_api.group_labels(object_name(job))

    def annotations_of(self, job: Job) -> dict[str, str]:
        """Return the annotations, with the group where an annotation names it."""
        return super().annotations_of(job) | self.pod_group_api.group_annotations(object_name(job))


def _metadata(job: Job, labels: dict[str, str]) -> KubeObject:
    return {
        "name": object_name(job),
        "namespace": NAMESPACE,
        "labels": labels,
        "annotations": {ANNOTATION_JOB: job.key},
    }


def pod_group_of(job: Job, dialect: PodGroupApi, labels: dict[str, str]) -> KubeObject:
    """Return the PodGroup of `job`: nothing of it starts before all of it can, or as much as its terms say."""
    spec: KubeObject = {"minMember": job.gang.min_member or job.size}
    if job.gang.min_resources and dialect.has_min_resources:
        spec["minResources"] = {name: format_amount(name, amount) for name, amount in job.gang.min_resources}
    if dialect.has_queues:
        spec["queue"] = queue_name(job)
        if job.priority:
            spec["priorityClassName"] = priority_class_name(job.priority)
    return {"apiVersion": dialect.api_version, "kind": "PodGroup", "metadata": _metadata(job, labels), "spec": spec}


def indexed_job_of(job: Job, template: KubeObject, *, kueue: bool) -> KubeObject:
    """Return the batch/v1 Job of `job`: all pods at once, and not again when one fails.

    What is evicted has not failed (Kubernetes documentation, "Pod failure policy"). Kueue wants a Job suspended and the
    name of a queue on it, and lets it go when the queue has room.
    """
    labels = dict(template["metadata"]["labels"])
    disrupted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    spec = {
        "completionMode": "Indexed",
        "completions": job.size,
        "parallelism": job.size,
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [disrupted]},
        "ttlSecondsAfterFinished": 0,
        "template": template,
    }
    if kueue:
        labels[KUEUE_QUEUE] = queue_name(job)
        spec["suspend"] = True
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(job, labels), "spec": spec}


def volcano_job_of(job: Job, template: KubeObject) -> KubeObject:
    """Return the Volcano Job of `job`: one task of all its pods, which starts over when one of them is evicted.

    Everything is said that Volcano's webhooks would fill in (pkg/webhooks/admission/jobs/mutate).
    """
    at_least = job.gang.min_member or job.size
    spec: KubeObject = {
        "minAvailable": at_least,
        "schedulerName": template["spec"]["schedulerName"],
        "queue": queue_name(job),
        "maxRetry": _MAX_RETRIES,
        "ttlSecondsAfterFinished": 0,
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "tasks": [{"name": "pod", "replicas": job.size, "minAvailable": at_least, "template": template}],
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
    """Return a Queue of kube-batch or Volcano, of the same weight as every other."""
    return {"apiVersion": version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}


def local_queue_of(name: str, cluster_queue: str) -> KubeObject:
    """Return a LocalQueue of Kueue, which leads to a ClusterQueue."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": cluster_queue}}
