"""Batkube's extensions of Batsim's workloads: requests of a job's pods, scheduler, priority, queue, partition and gang.

The keys are allowed on a profile, as in the first Batkube's files, and on a job, where each overrides the profile's.

* `cpu` counts cores: a number, or a Kubernetes quantity such as "500m".
* `memory` is a quantity of bytes, `gpu` counts NVIDIA GPUs.
* `ephemeral-storage`, `hugepages-…` and keys with a slash (extended resources such as `example.com/fpga`) have their
  Kubernetes names.
* `min_member` and `min_resources` are fields of the job's PodGroup, for gang schedulers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from batkube.kernel.quantities import CPU, GPU, MEMORY
from batkube.workloads import fields as require
from batkube.workloads.fields import Place
from batkube.workloads.model import WHOLE_GANG, GangTerms, Requests

_OTHER_KEYS = ("scheduler", "priority", "queue", "partition", "min_member", "min_resources")
_RESOURCE_OF_KEY = {"cpu": CPU, "memory": MEMORY, "gpu": GPU}


class Extension(NamedTuple):
    """The extension keys of one profile or job; None for absent keys."""

    requests: Requests = ()
    scheduler: str | None = None
    priority: int | None = None
    queue: str | None = None
    partition: str | None = None
    min_member: int | None = None
    #: True means the sum of the requests of `min_member` pods.
    min_resources: Requests | bool | None = None

    def overridden_by(self, other: Extension) -> Extension:
        """Return these keys, overridden by those of `other`."""
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
        """Return the gang terms of a job of `size` pods. Raises InputError if they cannot be met."""
        if self.min_member is None and not self.min_resources:
            return WHOLE_GANG
        if self.min_member is not None and self.min_member > size:
            problem = f"is {self.min_member}, more than the job's {size} pods (res)"
            (place / "min_member").reject(problem, "write a smaller number, or omit it to start all pods together")
        least = self.min_resources or ()
        if least is True:
            if not self.requests:
                remedy = 'write the amounts, such as {"cpu": 4}, or add requests to the job'
                (place / "min_resources").reject("is true, but the job's pods have no requests", remedy)
            least = tuple((resource, amount * (self.min_member or size)) for resource, amount in self.requests)
        return GangTerms(self.min_member or 0, least)


def is_extension_key(key: str) -> bool:
    """Return whether `key` is an extension key."""
    return key in _OTHER_KEYS or _resource(key) is not None


def _resource(key: str) -> str | None:
    """Return the Kubernetes name of the resource that a key requests; None for any other key."""
    if key in _RESOURCE_OF_KEY:
        return _RESOURCE_OF_KEY[key]
    return key if "/" in key or key == "ephemeral-storage" or key.startswith("hugepages-") else None


def read_extension(place: Place, fields: Mapping[str, object]) -> Extension:
    """Read the extension keys of `fields`, and ignore other keys."""
    scheduler, priority, queue, partition, min_member, min_resources = map(fields.get, _OTHER_KEYS)
    return Extension(
        _amounts(place, fields),
        None if scheduler is None else require.string(place / "scheduler", scheduler),
        None if priority is None else require.integer(place / "priority", priority),
        _read_name(place / "queue", queue),
        _read_name(place / "partition", partition),
        None if min_member is None else require.positive_integer(place / "min_member", min_member),
        None if min_resources is None else _min_resources(place / "min_resources", min_resources),
    )


def _read_name(place: Place, name: object) -> str | None:
    """Return the name of a queue or partition, which may be a number in the file; None if it is absent."""
    is_number = isinstance(name, int) and not isinstance(name, bool)
    return None if name is None else require.string(place, str(name) if is_number else name)


def _amounts(place: Place, fields: Mapping[str, object]) -> Requests:
    """Return the amounts of the fields that are resources."""
    resources = [(key, _resource(key), value) for key, value in fields.items()]
    amounts = [(name, require.quantity(place / key, name, value)) for key, name, value in resources if name]
    return tuple(sorted(dict(amounts).items()))


def _min_resources(place: Place, value: object) -> Requests | bool:
    """Return amounts of resources, or True for the requests of the pods."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, Mapping):
        place.reject_type(value, "true or an object of amounts", 'write true, or {"cpu": 4, "memory": "8Gi"}')
    for key in value:
        if _resource(key) is None:
            (place / key).reject("is not a resource", "write cpu, memory, gpu, or a name such as example.com/fpga")
    return _amounts(place, value)
