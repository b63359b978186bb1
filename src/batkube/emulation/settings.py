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
_REMEDY = "write RESOURCE=QUANTITY, RESOURCE=xFACTOR, RESOURCE=OTHER-NAME or, for no request, RESOURCE="


class JobKind(enum.StrEnum):
    """The kind of objects that a job is submitted as."""

    POD = "pod"  # bare pods, as in a simulation
    JOB = "job"  # a batch/v1 Job, whose controller creates the pods
    POD_GROUP = "pod-group"  # bare pods and a PodGroup of the API that the cluster's scheduler uses
    KUEUE_JOB = "kueue-job"  # a batch/v1 Job in a Kueue queue

    @property
    def uses_job_controller(self) -> bool:
        """Whether a Job controller creates the pods, and replaces lost ones."""
        return self in (JobKind.JOB, JobKind.KUEUE_JOB)


@dataclass(frozen=True, slots=True)
class RequestMapping:
    """Replaces the request for one resource of the workload."""

    resource: str
    #: The amount to request; None for the workload's amount times the factor.
    amount: int | None = None
    factor: Decimal = Decimal(1)
    #: The resource to request instead; "" for none.
    name: str = ""

    def apply(self, requests: dict[str, int]) -> None:
        """Change the requests of one pod."""
        request = requests.pop(self.resource, None)
        amount = self.amount
        if amount is None and request is not None:
            amount = math.ceil(request * self.factor)
        if self.name and amount is not None:
            requests[self.name] = amount


def parse_request_mapping(text: str) -> RequestMapping:
    """Parse one `--requests`: `cpu=500m`, `cpu=x0.9`, `gpu=nvidia.com/gpu` or `memory=`."""
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
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount))


@dataclass(frozen=True, slots=True)
class Emulation:
    """The full description of one emulated run."""

    kubeconfig: Path
    workloads: tuple[Path, ...]
    #: The context of the kubeconfig; None for its current one.
    context: str | None = None
    #: Determines the order of the nodes and, for computing profiles, their speed.
    platform: str | None = None
    #: The workload's seconds per real second.
    speed: float = 1.0
    image: str = DEFAULT_IMAGE
    #: None to create a namespace and delete it at the end.
    namespace: str | None = None
    kind: JobKind = JobKind.POD
    #: Group and version of the PodGroup API, if the cluster serves several.
    pod_group: str | None = None
    mappings: tuple[RequestMapping, ...] = ()
    #: The text of `--requests`, for the manifest.
    requests: tuple[str, ...] = ()
    #: The scheduler of jobs that do not name one.
    scheduler_name: str = "default-scheduler"
    #: Real time without any change after which the run is stopped.
    patience: Duration = field(default_factory=lambda: seconds(600))

    def describe(self) -> dict[str, object]:
        """Return the settings in the format of the manifest."""
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
