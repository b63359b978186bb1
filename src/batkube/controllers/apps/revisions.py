"""ControllerRevisions: the templates that a StatefulSet or DaemonSet has had, so that pods can be told by theirs.

Kubernetes: pkg/controller/history.
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
#: On pods: the revision that they were made of.
REVISION_LABEL = "controller-revision-hash"
#: On revisions, by the kind of their owner: the hash of the template.
_HASH_LABELS = {"DaemonSet": REVISION_LABEL, "StatefulSet": "controller.kubernetes.io/hash"}


class ControllerRevisions:
    """The revisions of all objects."""

    def __init__(self, world: World, client: Client) -> None:
        self._client = client
        self._owned = OwnerIndex(world.store, REVISION)

    def owned_by(self, owner: KubeObject) -> list[KubeObject]:
        """Return the revisions of `owner`, the oldest first."""
        return sorted(self._owned.owned_by(owner["metadata"]["uid"]), key=lambda revision: int(revision["revision"]))

    def get_or_create(self, owner: KubeObject, now: Instant) -> KubeObject:
        """Return the revision of the template that `owner` has now: a new one, or an old one that has come back."""
        revisions, data = self.owned_by(owner), _template_patch(owner["spec"]["template"])
        following = revisions[-1]["revision"] + 1 if revisions else 1
        same = next((revision for revision in reversed(revisions) if revision["data"] == data), None)
        if same is None:
            return self._client.create(REVISION, _new_revision(owner, data, following), now)
        if same is revisions[-1]:
            return same
        return self._client.update(REVISION, {**same, "revision": following}, now)

    def delete_old(self, owner: KubeObject, used: Collection[str], now: Instant) -> None:
        """Delete the oldest revisions that nothing uses, beyond what the history is to hold."""
        unused = [one for one in self.owned_by(owner) if one["metadata"]["name"] not in used]
        surplus = len(unused) - owner["spec"].get("revisionHistoryLimit", 10)
        for revision in unused[: max(0, surplus)]:
            self._client.delete(REVISION, key_of(revision), now)


def template_of(revision: KubeObject) -> KubeObject:
    """Return the pod template that a revision keeps."""
    template = revision["data"]["spec"]["template"]
    return {name: value for name, value in template.items() if name != "$patch"}


def hash_of(revision: KubeObject) -> str:
    """Return the part of a revision's name that tells its template."""
    return str(revision["metadata"]["name"]).rpartition("-")[2]


def _template_patch(template: KubeObject) -> KubeObject:
    """Return the patch that brings a template back, with its keys in the order of Go's maps, which is by name.

    Clients tell the present revision by its bytes (pkg/controller/daemon, Match).
    """
    data: KubeObject = msgspec.to_builtins({"spec": {"template": {"$patch": "replace", **template}}}, order="sorted")
    return data


def _new_revision(owner: KubeObject, data: KubeObject, number: int) -> KubeObject:
    metadata, template = owner["metadata"], owner["spec"]["template"]
    digest = template_hash(template, owner.get("status", {}).get("collisionCount", 0))
    labels = (template.get("metadata") or {}).get("labels") or {}
    made = {
        "name": f"{metadata['name']}-{digest}",
        "namespace": metadata["namespace"],
        "labels": {**labels, _HASH_LABELS[owner["kind"]]: digest},
        "annotations": metadata.get("annotations") or {},
        "ownerReferences": [controller_reference(owner)],
    }
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": made, "data": data, "revision": number}
