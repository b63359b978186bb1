"""ResourceClaims of pods, and the use of devices (Kubernetes: dynamic resource allocation, group resource.k8s.io)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from batkube.cluster.store import Key, KubeObject
from batkube.kernel.instants import Instant

DEVICE_CLAIM = "resourceclaims.resource.k8s.io"


@dataclass(slots=True)
class DeviceUse:
    """An interval in which a device was allocated to a claim."""

    driver: str
    pool: str
    device: str
    claim: Key
    since: Instant
    #: None if the run ended before the device was released.
    until: Instant | None = None
    #: The pods for which the claim was reserved meanwhile, in order of reservation.
    pods: dict[str, None] = field(default_factory=dict)


def claims_by_entry(pod: KubeObject) -> dict[str, str | None]:
    """Return the names of a pod's ResourceClaims by the entry of its spec, whether named there or generated.

    The name is "" if no claim is needed, and None if it is still to be generated.
    Kubernetes: staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/claim.go, Name.
    """
    generated = generated_claims(pod)
    entries = pod["spec"].get("resourceClaims") or ()
    return {entry["name"]: entry.get("resourceClaimName") or generated.get(entry["name"]) for entry in entries}


def claims_of(pod: KubeObject) -> Iterator[str]:
    """Yield the names of a pod's existing claims."""
    return filter(None, claims_by_entry(pod).values())


def generated_claims(pod: KubeObject) -> dict[str, str]:
    """Return the claims generated for a pod, by the entry of its spec; "" if the entry needs none."""
    statuses = pod.get("status", {}).get("resourceClaimStatuses") or ()
    return {status["name"]: status.get("resourceClaimName", "") for status in statuses}


def is_allocated(claim: KubeObject) -> bool:
    """Return whether a scheduler has chosen devices for the claim."""
    return "allocation" in claim.get("status", {})
