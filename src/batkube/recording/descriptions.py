"""Reduce the objects of a cluster to the fields that a replay needs, and hash names on request.

Names are hashed here, before the log is written, so that no plain name reaches the disk.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant, instant_of
from batkube.recording.log import JobObservation, NodeObservation, PodDescription
from batkube.workloads import fields as require
from batkube.workloads.fields import Place
from batkube.workloads.formats.kubernetes.manifests import DEFAULT_SCHEDULER, PLACEMENT_FIELDS
from batkube.workloads.formats.kubernetes.pod_requests import read_pod_requests

#: Digits of a hash: with 48 bits, collisions among a million names are unlikely.
_DIGITS = 12
#: Annotation of mirror pods (Kubernetes: pkg/kubelet/types/pod_update.go, ConfigMirrorAnnotationKey).
_MIRROR = "kubernetes.io/config.mirror"
#: The tolerations that every pod gets (Kubernetes: plugin/pkg/admission/defaulttolerationseconds).
_DEFAULT_TOLERATIONS = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


class NameAnonymiser:
    """Hashes names with a key; without a key, returns them unchanged."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    @property
    def is_enabled(self) -> bool:
        """Whether names are hashed."""
        return bool(self._key)

    def anonymise(self, kind: str, name: str) -> str:
        """Return the name to write for an object of this kind."""
        if not self._key or not name:
            return name
        return f"{kind}-{hmac.new(self._key, name.encode(), hashlib.sha256).hexdigest()[:_DIGITS]}"


def pod_description_of(pod: KubeObject, anonymiser: NameAnonymiser) -> PodDescription:
    """Return the immutable properties of a pod."""
    metadata, spec = pod["metadata"], pod["spec"]
    owners: list[dict[str, Any]] = [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    owner = owners[0] if owners else {}
    scheduler = spec.get("schedulerName") or DEFAULT_SCHEDULER
    containers = spec.get("containers") or [{}]
    name = str(metadata["name"])
    return PodDescription(
        name=anonymiser.anonymise("pod", name),
        namespace=anonymiser.anonymise("ns", str(metadata.get("namespace", ""))),
        created=timestamp(metadata.get("creationTimestamp")),
        requests=read_pod_requests(Place(Path(f"pod {name}")) / "spec", spec),
        priority=int(spec.get("priority") or 0),
        scheduler="" if scheduler == DEFAULT_SCHEDULER else anonymiser.anonymise("scheduler", scheduler),
        image=anonymiser.anonymise("image", str(containers[0].get("image") or "")),
        job=str(owner.get("uid", "")) if owner.get("kind") == "Job" else "",
        is_of_node=owner.get("kind") in ("DaemonSet", "Node") or _MIRROR in (metadata.get("annotations") or {}),
        placement=tuple(field for field in PLACEMENT_FIELDS if field != "nodeName" and _is_requested(field, spec)),
    )


def timestamp(value: object) -> str:
    """Return a timestamp of the cluster, empty if it is unset. Raises ValueError if it is not a timestamp."""
    text = str(value or "")
    if text:
        instant_of(text)
    return text


def _is_requested(field: str, spec: Mapping[str, Any]) -> bool:
    value = spec.get(field)
    if field == "tolerations":
        return any(toleration.get("key") not in _DEFAULT_TOLERATIONS for toleration in value or ())
    return bool(value)


def node_observation_of(node: KubeObject, anonymiser: NameAnonymiser, at: Instant) -> NodeObservation:
    """Return the properties of a node that a replay needs."""
    metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    name = str(metadata["name"])
    place = Place(Path(f"node {name}")) / "status" / "allocatable"
    amounts = status.get("allocatable") or status.get("capacity") or {}
    taints = [] if anonymiser.is_enabled else spec.get("taints") or []
    return NodeObservation(
        at=at,
        name=anonymiser.anonymise("node", name),
        allocatable={
            resource: require.quantity(place / resource, resource, text) for resource, text in amounts.items()
        },
        labels={} if anonymiser.is_enabled else dict(metadata.get("labels") or {}),
        taints=tuple({key: str(taint[key]) for key in ("key", "value", "effect") if key in taint} for taint in taints),
        is_cordoned=bool(spec.get("unschedulable")),
    )


def job_observation_of(job: KubeObject, anonymiser: NameAnonymiser, at: Instant) -> JobObservation:
    """Return the properties of a Job that a replay needs."""
    metadata, spec = job["metadata"], job["spec"]
    # Without completions a Job is a work queue of `parallelism` pods (Kubernetes documentation, "Jobs").
    parallelism = int(1 if spec.get("parallelism") is None else spec["parallelism"])
    completions = int(parallelism if spec.get("completions") is None else spec["completions"])
    return JobObservation(
        at, str(metadata["uid"]), anonymiser.anonymise("job", str(metadata["name"])), parallelism, completions
    )
