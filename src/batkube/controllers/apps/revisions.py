"""ControllerRevisions: the history of pod templates of a StatefulSet or DaemonSet.

Kubernetes: pkg/controller/history/controller_history.go.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from batkube.cluster.client import Client
from batkube.cluster.object_meta import controller_reference, key_of
from batkube.cluster.store import KubeObject
from batkube.cluster.world import World
from batkube.controllers.apps.rollout_plan import template_hash
from batkube.controllers.framework.owner_index import OwnerIndex
from batkube.kernel.instants import Instant

REVISION = "controllerrevisions.apps"
#: Label of pods: the revision they were created from.
REVISION_LABEL = "controller-revision-hash"
#: Label of revisions, by the kind of their owner: the hash of the template.
_HASH_LABELS = {"DaemonSet": REVISION_LABEL, "StatefulSet": "controller.kubernetes.io/hash"}


class ControllerRevisions:
    """The ControllerRevisions of all objects."""

    def __init__(self, world: World, client: Client) -> None:
        self._client = client
        self._owned = OwnerIndex(world.store, REVISION)

    def owned_by(self, owner: KubeObject) -> list[KubeObject]:
        """Return the revisions of `owner`, oldest first."""
        return sorted(self._owned.owned_by(owner["metadata"]["uid"]), key=lambda revision: int(revision["revision"]))

    def get_or_create(self, owner: KubeObject, now: Instant) -> KubeObject:
        """Return the revision of the current template; the revision of a restored template becomes the latest one."""
        revisions, data = self.owned_by(owner), _template_patch(owner["spec"]["template"])
        following = revisions[-1]["revision"] + 1 if revisions else 1
        same = next((revision for revision in reversed(revisions) if revision["data"] == data), None)
        if same is None:
            return self._client.create(REVISION, _new_revision(owner, data, following), now)
        if same is revisions[-1]:
            return same
        return self._client.update(REVISION, {**same, "revision": following}, now)

    def delete_old(self, owner: KubeObject, names_in_use: Collection[str], now: Instant) -> None:
        """Delete the oldest unused revisions beyond revisionHistoryLimit (statefulset: truncateHistory)."""
        unused = [revision for revision in self.owned_by(owner) if revision["metadata"]["name"] not in names_in_use]
        surplus = len(unused) - owner["spec"].get("revisionHistoryLimit", 10)
        for revision in unused[: max(0, surplus)]:
            self._client.delete(REVISION, key_of(revision), now)


def template_of(revision: KubeObject) -> KubeObject:
    """Return the pod template of a revision."""
    template = revision["data"]["spec"]["template"]
    return {name: value for name, value in template.items() if name != "$patch"}


def hash_of(revision: KubeObject) -> str:
    """Return the template hash in a revision's name."""
    return str(revision["metadata"]["name"]).rpartition("-")[2]


def _template_patch(template: KubeObject) -> KubeObject:
    """Return the patch that restores a template, with keys sorted by name as Go marshals maps.

    Clients compare revisions by their bytes (Kubernetes: pkg/controller/daemon/update.go, Match).
    """
    data: KubeObject = msgspec.to_builtins({"spec": {"template": {"$patch": "replace", **template}}}, order="sorted")
    return data


def _new_revision(owner: KubeObject, data: KubeObject, number: int) -> KubeObject:
    metadata, template = owner["metadata"], owner["spec"]["template"]
    digest = template_hash(template, owner.get("status", {}).get("collisionCount", 0))
    labels = (template.get("metadata") or {}).get("labels") or {}
    revision_metadata = {
        "name": f"{metadata['name']}-{digest}",
        "namespace": metadata["namespace"],
        "labels": {**labels, _HASH_LABELS[owner["kind"]]: digest},
        "annotations": metadata.get("annotations") or {},
        "ownerReferences": [controller_reference(owner)],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": revision_metadata,
        "data": data,
        "revision": number,
    }
