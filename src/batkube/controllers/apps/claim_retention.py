"""`persistentVolumeClaimRetentionPolicy` of StatefulSets: deletes claims with the set or when it scales down.

A claim to delete with the set is owned by the set. A claim to delete when the set scales down is owned by the surplus
pod. The garbage collector then deletes the claims (Kubernetes: pkg/controller/statefulset/stateful_set_utils.go,
updateClaimOwnerRefForSetAndPod). A pod that only fails keeps its claim for its replacement.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from batkube.cluster.client import ApiError, Client
from batkube.cluster.object_meta import controller_of, controller_reference, is_being_deleted, with_metadata
from batkube.cluster.store import Key, KubeObject, Store
from batkube.controllers.volumes.matching import CLAIM
from batkube.kernel.instants import Instant

_DELETE = "Delete"


class ClaimRetention:
    """Sets the owners of claims according to the retention policy."""

    def __init__(self, store: Store, client: Client) -> None:
        self._store = store
        self._client = client

    def update_owners(self, owner: KubeObject, pod: KubeObject, *, is_desired: bool, now: Instant) -> None:
        """Set the owners of the pod's claims; `is_desired` says whether the set's replicas include the pod."""
        for claim in self._claims_of(owner, pod):
            managed = {(owner["kind"], owner["metadata"]["name"]), ("Pod", pod["metadata"]["name"])}
            current_references = claim["metadata"].get("ownerReferences") or []
            references = [
                reference for reference in current_references if (reference["kind"], reference["name"]) not in managed
            ]
            controller = controller_of(claim)
            if controller is None or controller not in references:
                references += [controller_reference(new_owner) for new_owner in _owners(owner, pod, is_desired)]
            if references != current_references and not is_being_deleted(claim):
                with contextlib.suppress(ApiError):
                    self._client.update(CLAIM, with_metadata(claim, ownerReferences=references), now)

    def _claims_of(self, owner: KubeObject, pod: KubeObject) -> Iterator[KubeObject]:
        metadata = pod["metadata"]
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            name = f"{template['metadata']['name']}-{metadata['name']}"
            claim = self._store.get(CLAIM, Key(f"{metadata['namespace']}/{name}"))
            if claim is not None:
                yield claim


def _owners(owner: KubeObject, pod: KubeObject, is_desired: bool) -> list[KubeObject]:
    policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    is_deleted_with_set, is_deleted_with_pod = (policy.get(key) == _DELETE for key in ("whenDeleted", "whenScaled"))
    if is_deleted_with_pod and not is_desired:
        return [pod]
    return [owner] if is_deleted_with_set else []
