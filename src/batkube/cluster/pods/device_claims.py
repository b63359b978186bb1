"""Claims to devices, and whose they are (Kubernetes: dynamic resource allocation, the group resource.k8s.io)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from batkube.cluster.store import Key, KubeObject
from batkube.kernel.instants import Instant

DEVICE_CLAIM = "resourceclaims.resource.k8s.io"


@dataclass(slots=True)
class DeviceUse:
    """A device in the hands of a claim, for a while."""

    driver: str
    pool: str
    device: str
    claim: Key
    since: Instant
    #: None if the run ended before it was given back.
    until: Instant | None = None
    #: The pods that had the claim meanwhile, in the order in which it was reserved for them.
    pods: dict[str, None] = field(default_factory=dict)


def claims_by_entry(pod: KubeObject) -> dict[str, str | None]:
    """Return the names of the claims that a pod has, given or made for it, by what it calls them.

    "" where it turned out to need none, and None where one is still to be made (Kubernetes: resourceclaim.Name).
    """
    made = generated_claims(pod)
    entries = pod["spec"].get("resourceClaims") or ()
    return {entry["name"]: entry.get("resourceClaimName") or made.get(entry["name"]) for entry in entries}


def claims_of(pod: KubeObject) -> Iterator[str]:
    """Yield the names of the claims that a pod has."""
    return filter(None, claims_by_entry(pod).values())


def generated_claims(pod: KubeObject) -> dict[str, str]:
    """Return the claims that were made for a pod, by what it calls them; "" where it turned out to need none."""
    statuses = pod.get("status", {}).get("resourceClaimStatuses") or ()
    return {one["name"]: one.get("resourceClaimName", "") for one in statuses}


def is_allocated(claim: KubeObject) -> bool:
    """Return whether a scheduler has chosen devices for the claim."""
    return "allocation" in claim.get("status", {})
