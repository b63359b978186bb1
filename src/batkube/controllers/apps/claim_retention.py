"""What becomes of the claims of a StatefulSet when it shrinks or goes: `persistentVolumeClaimRetentionPolicy`.

A claim that is to go with the set is owned by it, and one that is to go with a pod that the set has no more place for
is owned by that pod; then the garbage collector does the rest (Kubernetes: pkg/controller/statefulset,
stateful_set_utils.go, updateClaimOwnerRefForSetAndPod). So a pod that just fails leaves its claim for the next.
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
    """Keeps the owners of claims as the policies of StatefulSets say."""

    def __init__(self, store: Store, client: Client) -> None:
        self._store = store
        self._client = client

    def update_owners(self, owner: KubeObject, pod: KubeObject, *, has_place: bool, now: Instant) -> None:
        """Let the claims of a pod be owned by whom they go with; `has_place` says that the set wants the pod."""
        for claim in self._claims_of(owner, pod):
            own = {(owner["kind"], owner["metadata"]["name"]), ("Pod", pod["metadata"]["name"])}
            before = claim["metadata"].get("ownerReferences") or []
            after = [each for each in before if (each["kind"], each["name"]) not in own]
            controller = controller_of(claim)
            if controller is None or controller not in after:
                after += [controller_reference(each) for each in _owners(owner, pod, has_place)]
            if after != before and not is_being_deleted(claim):
                with contextlib.suppress(ApiError):
                    self._client.update(CLAIM, with_metadata(claim, ownerReferences=after), now)

    def _claims_of(self, owner: KubeObject, pod: KubeObject) -> Iterator[KubeObject]:
        metadata = pod["metadata"]
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            name = f"{template['metadata']['name']}-{metadata['name']}"
            claim = self._store.get(CLAIM, Key(f"{metadata['namespace']}/{name}"))
            if claim is not None:
                yield claim


def _owners(owner: KubeObject, pod: KubeObject, has_place: bool) -> list[KubeObject]:
    policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    goes_with_set, goes_with_pod = (policy.get(key) == _DELETE for key in ("whenDeleted", "whenScaled"))
    if goes_with_pod and not has_place:
        return [pod]
    return [owner] if goes_with_set else []
