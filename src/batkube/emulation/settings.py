"""The settings of an emulated run."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, seconds
from batkube.kernel.quantities import parse_amount
from batkube.workloads.model import Requests

DEFAULT_IMAGE = "busybox"
_RESOURCE_NAME = re.compile(r"[a-z]([-a-z0-9./]*[a-z0-9])?")
_REMEDY = "write RESOURCE=QUANTITY, RESOURCE=xFACTOR, RESOURCE=OTHER-NAME or, to leave it out, RESOURCE="


class JobKind(enum.StrEnum):
    """The kind of objects that a job becomes."""

    POD = "pod"  # bare pods, as in a simulation
    JOB = "job"  # a batch/v1 Job, whose controller makes the pods
    POD_GROUP = "pod-group"  # bare pods and a PodGroup, in the words of the scheduler that the cluster has
    KUEUE_JOB = "kueue-job"  # a batch/v1 Job that waits in a queue of Kueue's

    @property
    def uses_job_controller(self) -> bool:
        """Whether a Job controller makes the pods, and makes new ones for those that are lost."""
        return self in (JobKind.JOB, JobKind.KUEUE_JOB)


@dataclass(frozen=True, slots=True)
class RequestMapping:
    """What pods ask for instead of one resource that the workload names."""

    resource: str
    #: Ask for this much, whatever the workload says; None for the workload's own amount.
    amount: int | None = None
    factor: Decimal = Decimal(1)
    #: Ask for it under this name; "" to leave it out.
    name: str = ""

    def apply(self, requests: dict[str, int]) -> None:
        """Change what one pod asks for."""
        request = requests.pop(self.resource, None)
        wanted = self.amount if self.amount is not None else None if request is None else self._scaled(request)
        if self.name and wanted is not None:
            requests[self.name] = wanted

    def _scaled(self, request: int) -> int:
        return math.ceil(request * self.factor)


def parse_request_mapping(text: str) -> RequestMapping:
    """Return what one `--requests` means: `cpu=500m`, `cpu=x0.9`, `gpu=nvidia.com/gpu` or `memory=`."""
    resource, equals, value = text.partition("=")
    if not equals or not _RESOURCE_NAME.fullmatch(resource):
        raise InputError(f"--requests {text}", problem="names no resource", remedy=_REMEDY)
    if value.startswith("x"):
        try:
            factor = Decimal(value[1:])
        except InvalidOperation:
            factor = Decimal(-1)
        if factor.is_finite() and factor > 0:
            return RequestMapping(resource, factor=factor, name=resource)
    elif not value:
        return RequestMapping(resource)
    elif value[0].isdigit() or value[0] == ".":
        try:
            return RequestMapping(resource, amount=parse_amount(resource, value), name=resource)
        except ValueError as error:
            raise InputError(f"--requests {text}", problem=str(error), remedy=_REMEDY) from error
    elif _RESOURCE_NAME.fullmatch(value):
        return RequestMapping(resource, name=value)
    raise InputError(f"--requests {text}", problem=f"{value!r} is not a quantity, factor or resource", remedy=_REMEDY)


def apply_mappings(requests: Requests, mappings: Sequence[RequestMapping]) -> Requests:
    """Return a pod's requests after all mappings, applied in order."""
    amounts = dict(requests)
    for mapping in mappings:
        mapping.apply(amounts)
    return tuple(sorted((name, wanted) for name, wanted in amounts.items() if wanted))


@dataclass(frozen=True, slots=True)
class Emulation:
    """The full description of one emulated run."""

    kubeconfig: Path
    workloads: tuple[Path, ...]
    #: The context of the kubeconfig; None for its current one.
    context: str | None = None
    #: Gives the nodes their numbers and, for jobs that compute, their speed.
    platform: str | None = None
    #: The workload's seconds per real second.
    speed: float = 1.0
    image: str = DEFAULT_IMAGE
    #: None for one of its own, made and removed.
    namespace: str | None = None
    kind: JobKind = JobKind.POD
    #: Group and version of the PodGroups, if the cluster has those of several schedulers.
    pod_group: str | None = None
    mappings: tuple[RequestMapping, ...] = ()
    #: The `--requests` as given, for the manifest.
    requests: tuple[str, ...] = ()
    #: For the jobs that name no scheduler.
    scheduler_name: str = "default-scheduler"
    #: Real time without any change after which the run is stopped.
    patience: Duration = field(default_factory=lambda: seconds(600))

    def describe(self) -> dict[str, object]:
        """Return it as the manifest holds it."""
        return {
            "workload": [str(path) for path in self.workloads],
            "kubeconfig": str(self.kubeconfig),
            "context": self.context,
            "platform": self.platform,
            "speed": self.speed,
            "image": self.image,
            "namespace": self.namespace,
            "kind": self.kind.value,
            "pod-group": self.pod_group,
            "requests": list(self.requests),
            "scheduler-name": self.scheduler_name,
        }
