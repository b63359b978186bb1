"""Maps Batsim's concepts to Kubernetes objects: jobs to pods, machines to nodes. No other module does.

A job of size n is a gang of n pods, named `w0-7` or `w0-7-0` … `w0-7-3`. Job ids that are not valid names are changed
to valid ones (RFC 1123 subdomains; Kubernetes documentation, "Object Names and IDs"). Labels carry workload and job.

The whole-machine model uses an extended resource: every node offers one `batkube.io/machine` and every pod requests
one. Any scheduler that supports extended resources then gives each pod a machine of its own.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import cast

from batkube.cluster.store import Key, KubeObject
from batkube.kernel.instants import Instant, rfc3339
from batkube.kernel.quantities import MACHINE, PODS, format_amount
from batkube.platforms.model import Machine
from batkube.workloads.formats.kubernetes.manifest_writer import priority_class_name
from batkube.workloads.model import Job, Requests

POD = "pods"
NODE = "nodes"
NAMESPACE = "default"
LABEL_WORKLOAD = "batkube.io/workload"
LABEL_JOB = "batkube.io/job"
ANNOTATION_SIZE = "batkube.io/size"
#: Node annotation of a served cluster whose clock does not run at real speed: the speed.
ANNOTATION_SPEED = "batkube.io/speed"
#: Node annotation: the requested power state of its machine. Without it the machine is to be on.
POWER_ANNOTATION, POWER_ON, POWER_OFF = "batkube.io/power", "on", "off"
DEFAULT_SCHEDULER = "default-scheduler"
#: Scheduler names that stand for the run's scheduler: none, that of the 2020 experiments, Kubernetes' default.
ANY_SCHEDULER = ("", "default", DEFAULT_SCHEDULER)
DEFAULT_IMAGE = "batkube.io/simulated"

_VALID_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_INVALID_IN_NAME = re.compile(r"[^a-z0-9.-]+")
_RANK_SUFFIX = re.compile(r"-[0-9]+$")
#: A pod's name is at most 253 characters; leave room for a rank and a fingerprint.
_NAME_LENGTH = 200

#: The status reason of a pod whose job a scheduler has rejected.
REJECTED_BY_SCHEDULER = "RejectedByScheduler"
#: The status reason of a pod whose node failed or was deleted (Kubernetes: pkg/util/node, NodeUnreachablePodReason).
NODE_LOST = "NodeLost"


class ResourceModel(enum.StrEnum):
    """What one unit of a job's size occupies."""

    MACHINES = "machines"  # a machine alone, as in Batsim without compute sharing
    REQUESTS = "requests"  # its cpu, memory, … on a node it may share, as in Kubernetes


def kube_name(text: str) -> str:
    """Return `text` as a valid Kubernetes name; a changed text gets a fingerprint, so that names stay distinct."""
    if _VALID_NAME.fullmatch(text) and len(text) <= _NAME_LENGTH:
        return text
    name = _INVALID_IN_NAME.sub("-", text.lower())
    name = re.sub(r"-*\.[-.]*", ".", name)[:_NAME_LENGTH].strip("-.")
    return f"{name or 'x'}-{_fingerprint(text)}"


def _fingerprint(text: str) -> str:
    """Return 64 bits of a hash: the probability of a collision among a million texts is one in 40 million."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _uid(text: str) -> str:
    """Return a version-4 UUID derived from `text`."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def pod_base_name(job: Job) -> str:
    """Return the name of a job's only pod; the pods of a gang append their rank to it.

    A job id that ends like a rank gets a fingerprint, so that a pod of job `7` cannot have the name of job `7-0`.
    """
    name = kube_name(f"{job.workload}-{job.name}")
    if _RANK_SUFFIX.search(job.name):
        return f"{name}-{_fingerprint(job.name)}"
    return name


def as_label_value(text: str) -> str:
    """Return `text` as a valid label value: at most 63 characters, alphanumeric at both ends."""
    if text.isalnum() and text.isascii() and len(text) <= 63:
        return text
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:63].strip("-._") or "x"


def job_pod_requests(job: Job, model: ResourceModel) -> Requests:
    """Return the resources that each pod of `job` takes from its node, including its slot in `pods`."""
    requests = (*job.requests, (MACHINE, 1)) if model is ResourceModel.MACHINES else job.requests
    return (*requests, (PODS, 1))


def node_capacity(machine: Machine, model: ResourceModel) -> dict[str, int]:
    """Return the capacity of the node of `machine`."""
    extra = {MACHINE: 1} if model is ResourceModel.MACHINES else {}
    return {**machine.capacity, **extra}


def node_names_of(machines: Iterable[Machine]) -> list[str]:
    """Return the node name of each machine, by machine id."""
    return [kube_name(machine.name) for machine in machines]


def node_of(machine: Machine, model: ResourceModel, now: Instant) -> tuple[Key, KubeObject]:
    """Return the Node of `machine`, ready at `now`."""
    name = kube_name(machine.name)
    amounts = {resource: format_amount(resource, amount) for resource, amount in node_capacity(machine, model).items()}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **machine.labels}
    metadata, spec, status = (dict(machine.node.get(section, {})) for section in ("metadata", "spec", "status"))
    if machine.taints:
        spec["taints"] = [dict(taint) for taint in machine.taints]
    since = rfc3339(now)
    times = {"lastHeartbeatTime": since, "lastTransitionTime": since}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        **times,
    }
    conditions = [*({**condition, **times} for condition in status.get("conditions", ())), ready]
    capacity = allocatable = amounts
    if "capacity" in status or "allocatable" in status:
        allocatable = status.get("allocatable") or status["capacity"]
        capacity = status.get("capacity") or allocatable
        # Add the resources that the manifest does not mention: the default number of pods, the machine itself.
        missing = {name: text for name, text in amounts.items() if name not in capacity and name not in allocatable}
        capacity, allocatable = {**capacity, **missing}, {**allocatable, **missing}
    node: KubeObject = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": _uid(f"node {name}"),
            "creationTimestamp": since,
            "labels": labels,
            **metadata,
        },
        "spec": spec,
        "status": {**status, "capacity": capacity, "allocatable": allocatable, "conditions": conditions},
    }
    return Key(name), node


def uid_of(number: int) -> str:
    """Return the uid of the pod with this number."""
    return f"00000000-0000-4000-8000-{number:012x}"


class PodFactory:
    """Creates the pods of jobs. Pods of a job, and of jobs with equal requests, share one spec object."""

    def __init__(self, model: ResourceModel, numbers: Iterator[int] | None = None) -> None:
        """`numbers` are the source of uids; factories of one cluster share it."""
        self._model = model
        self._numbers = itertools.count() if numbers is None else numbers
        self._specs: dict[tuple[Requests, str, int, str], KubeObject] = {}
        #: The ends of the names of pods, by rank.
        self._suffixes: list[str] = []

    def identities_of(self, job: Job) -> tuple[list[Key], list[int]]:
        """Return the keys of the pods of `job`'s gang, in order of rank, and the numbers of their uids (`uid_of`).

        Uids increase in order of submission, since some schedulers order pods created at one instant by uid.
        """
        base = f"{NAMESPACE}/{pod_base_name(job)}"
        self._suffixes += [f"-{rank}" for rank in range(len(self._suffixes), job.size)]
        keys = [base] if job.size == 1 else list(map(base.__add__, self._suffixes[: job.size]))
        # A cast instead of `Key(…)`, which would be a function call per pod.
        return cast(list[Key], keys), list(itertools.islice(self._numbers, job.size))

    def template_of(self, job: Job) -> KubeObject:
        """Return the template of the pods of `job`, as a client would write it."""
        metadata = {"labels": self.labels_of(job), "annotations": self.annotations_of(job)}
        return {"metadata": metadata, "spec": self.spec_of(job)}

    def labels_of(self, job: Job) -> dict[str, str]:
        """Return the labels that the pods of `job` share."""
        return {LABEL_WORKLOAD: as_label_value(job.workload), LABEL_JOB: as_label_value(job.name)}

    def annotations_of(self, job: Job) -> dict[str, str]:
        """Return the annotations that the pods of `job` share."""
        return {ANNOTATION_SIZE: str(job.size)}

    def spec_of(self, job: Job) -> KubeObject:
        """Return the spec of the pods of `job`. Jobs with equal requests, scheduler, priority and image share it."""
        shape = (job.requests, job.scheduler, job.priority, job.image)
        spec = self._specs.get(shape)
        if spec is None:
            container = {"name": "job", "image": job.image or DEFAULT_IMAGE, "resources": self._resources_of(job)}
            spec = self._specs[shape] = {
                "schedulerName": DEFAULT_SCHEDULER if job.scheduler in ANY_SCHEDULER else job.scheduler,
                "restartPolicy": "Never",
                "containers": [container],
            }
            if job.priority:
                spec["priorityClassName"] = priority_class_name(job.priority)
        return spec

    def _resources_of(self, job: Job) -> KubeObject:
        requests = {
            resource: format_amount(resource, amount)
            for resource, amount in job_pod_requests(job, self._model)
            if resource != PODS
        }
        # The limit of an extended resource must equal its request.
        # Kubernetes: pkg/apis/core/validation/validation.go, ValidateContainerResourceRequirements.
        limits = {resource: amount for resource, amount in requests.items() if "/" in resource}
        return {name: amounts for name, amounts in (("requests", requests), ("limits", limits)) if amounts}
