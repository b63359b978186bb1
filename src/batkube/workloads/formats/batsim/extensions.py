"""What Batkube adds to Batsim's workloads: requests of a job's pods, scheduler, priority, queue, partition and gang.

The keys may stand on a profile, as in the first Batkube's files, or on a job, where they override the profile's one by
one. `cpu` counts cores (a number, or a Kubernetes quantity such as "500m"), `memory` is a quantity of bytes, `gpu`
counts NVIDIA GPUs, and a key with a slash (`example.com/fpga`) is an extended resource, named as in Kubernetes;
`ephemeral-storage` and `hugepages-…` are Kubernetes' own. `min_member` and `min_resources` are of the PodGroup that a
job becomes with schedulers of gangs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from batkube.kernel.quantities import CPU, GPU, MEMORY
from batkube.workloads import fields as take
from batkube.workloads.fields import Place
from batkube.workloads.model import WHOLE_GANG, GangTerms, Requests

_OTHER_KEYS = ("scheduler", "priority", "queue", "partition", "min_member", "min_resources")
_RESOURCE_OF_KEY = {"cpu": CPU, "memory": MEMORY, "gpu": GPU}


class Extension(NamedTuple):
    """The extension keys of one profile or job; None where a key is not given."""

    requests: Requests = ()
    scheduler: str | None = None
    priority: int | None = None
    queue: str | None = None
    partition: str | None = None
    min_member: int | None = None
    #: True for what the pods of `min_member` request.
    min_resources: Requests | bool | None = None

    def overridden_by(self, other: Extension) -> Extension:
        """Return this with everything that `other` gives put in its place."""
        return Extension(
            tuple(sorted({**dict(self.requests), **dict(other.requests)}.items())),
            self.scheduler if other.scheduler is None else other.scheduler,
            self.priority if other.priority is None else other.priority,
            self.queue if other.queue is None else other.queue,
            self.partition if other.partition is None else other.partition,
            self.min_member if other.min_member is None else other.min_member,
            self.min_resources if other.min_resources is None else other.min_resources,
        )

    def gang_terms(self, place: Place, size: int) -> GangTerms:
        """Return the terms of a job of so many pods. Raises InputError if they cannot be met."""
        if self.min_member is None and not self.min_resources:
            return WHOLE_GANG
        if self.min_member is not None and self.min_member > size:
            problem = f"is {self.min_member}, more than the job's {size} pods (res)"
            (place / "min_member").reject(problem, "leave it out to have all of them started together")
        least = self.min_resources or ()
        if least is True:
            if not self.requests:
                remedy = 'write the amounts, {"cpu": 4}, or give the pods requests'
                (place / "min_resources").reject("is true, and the job's pods request nothing", remedy)
            least = tuple((resource, amount * (self.min_member or size)) for resource, amount in self.requests)
        return GangTerms(self.min_member or 0, least)


def is_extension_key(key: str) -> bool:
    """Say whether `key` is one of ours."""
    return key in _OTHER_KEYS or _resource(key) is not None


def _resource(key: str) -> str | None:
    """Return the Kubernetes resource that a key asks for; None for any other key."""
    if key in _RESOURCE_OF_KEY:
        return _RESOURCE_OF_KEY[key]
    return key if "/" in key or key == "ephemeral-storage" or key.startswith("hugepages-") else None


def read_extension(place: Place, fields: Mapping[str, object]) -> Extension:
    """Return what the extension keys of `fields` say; other keys are none of our business."""
    scheduler, priority, queue, partition, min_member, min_resources = map(fields.get, _OTHER_KEYS)
    return Extension(
        _amounts(place, fields),
        None if scheduler is None else take.string(place / "scheduler", scheduler),
        None if priority is None else take.integer(place / "priority", priority),
        _read_name(place / "queue", queue),
        _read_name(place / "partition", partition),
        None if min_member is None else take.positive_integer(place / "min_member", min_member),
        None if min_resources is None else _min_resources(place / "min_resources", min_resources),
    )


def _read_name(place: Place, name: object) -> str | None:
    """Return the name of a queue or a partition, which may be a number; None where none is given."""
    is_number = isinstance(name, int) and not isinstance(name, bool)
    return None if name is None else take.string(place, str(name) if is_number else name)


def _amounts(place: Place, fields: Mapping[str, object]) -> Requests:
    """Return the amounts of those fields that are resources."""
    resources = [(key, _resource(key), value) for key, value in fields.items()]
    known = [(resource, take.quantity(place / key, resource, value)) for key, resource, value in resources if resource]
    return tuple(sorted(dict(known).items()))


def _min_resources(place: Place, value: object) -> Requests | bool:
    """Return amounts of resources; true stands for what the pods request."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, Mapping):
        place.reject_type(value, "true or an object of amounts", 'write true, or {"cpu": 4, "memory": "8Gi"}')
    for key in value:
        if _resource(key) is None:
            (place / key).reject("is no resource", "resources: cpu, memory, gpu, or a name such as example.com/fpga")
    return _amounts(place, value)
