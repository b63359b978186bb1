"""What Batkube adds to Batsim's workloads: requests of a job's pods, scheduler, priority, queue and partition.

The keys may stand on a profile, as in the first Batkube's files, or on a job, where they override the profile's one by
one. `cpu` counts cores (a number, or a Kubernetes quantity such as "500m"), `memory` is a quantity of bytes, `gpu`
counts NVIDIA GPUs, and a key with a slash (`example.com/fpga`) is an extended resource, named as in Kubernetes;
`ephemeral-storage` and `hugepages-…` are Kubernetes' own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from batkube.kernel.quantities import CPU, GPU, MEMORY
from batkube.workloads import fields as take
from batkube.workloads.fields import Place
from batkube.workloads.model import Requests

_RESOURCE_OF_KEY = {"cpu": CPU, "memory": MEMORY, "gpu": GPU}


class Extension(NamedTuple):
    """The extension keys of one profile or job; None where a key is not given."""

    requests: Requests = ()
    scheduler: str | None = None
    priority: int | None = None
    queue: str | None = None
    partition: str | None = None

    def overridden_by(self, other: Extension) -> Extension:
        """Return this with everything that `other` gives put in its place."""
        return Extension(
            tuple(sorted({**dict(self.requests), **dict(other.requests)}.items())),
            self.scheduler if other.scheduler is None else other.scheduler,
            self.priority if other.priority is None else other.priority,
            self.queue if other.queue is None else other.queue,
            self.partition if other.partition is None else other.partition,
        )


def is_extension_key(key: str) -> bool:
    """Say whether `key` is one of ours."""
    return key in ("scheduler", "priority", "queue", "partition") or _resource(key) is not None


def _resource(key: str) -> str | None:
    """Return the Kubernetes resource that a key asks for; None for any other key."""
    if key in _RESOURCE_OF_KEY:
        return _RESOURCE_OF_KEY[key]
    return key if "/" in key or key == "ephemeral-storage" or key.startswith("hugepages-") else None


def read_extension(place: Place, fields: Mapping[str, object]) -> Extension:
    """Return what the extension keys of `fields` say; other keys are none of our business."""
    amounts: dict[str, int] = {}
    for key, value in fields.items():
        resource = _resource(key)
        if resource is not None:
            amounts[resource] = take.quantity(place / key, resource, value)
    scheduler, priority = fields.get("scheduler"), fields.get("priority")
    return Extension(
        tuple(sorted(amounts.items())),
        None if scheduler is None else take.text(place / "scheduler", scheduler),
        None if priority is None else take.whole(place / "priority", priority),
        _name(place / "queue", fields.get("queue")),
        _name(place / "partition", fields.get("partition")),
    )


def _name(place: Place, name: object) -> str | None:
    """Return the name of a queue or a partition, which may be a number; None where none is given."""
    is_number = isinstance(name, int) and not isinstance(name, bool)
    return None if name is None else take.text(place, str(name) if is_number else name)
