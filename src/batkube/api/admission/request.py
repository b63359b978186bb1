"""The admission request: a write or deletion that has not happened yet (Kubernetes: admission.Attributes)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from batkube.api.requests import statuses
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import User
from batkube.api.requests.writes import key_of
from batkube.cluster.kinds import Resource
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import Instant


def group_version_kind(resource: Resource) -> dict[str, str]:
    """Return the kind of a resource as webhooks and expressions see it (metav1.GroupVersionKind)."""
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def group_version_resource(resource: Resource) -> dict[str, str]:
    """Return a resource as webhooks and expressions see it (metav1.GroupVersionResource)."""
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def user_info(user: User) -> dict[str, Any]:
    """Return a user as webhooks and expressions see it (authentication/v1.UserInfo)."""
    info = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in info.items() if value}


class AdmissionRequest(msgspec.Struct):
    """A create, update or deletion for admission to change or reject."""

    resource: Resource
    #: "" for a cluster-scoped object.
    namespace: str
    #: The name in the request; "" if it is yet to be generated.
    name: str
    #: "" for the object itself, "status", "binding", …
    subresource: str
    #: The object to write, or the body sent to the subresource; empty for a deletion.
    value: dict[str, Any]
    #: The live object; None for a create.
    old: KubeObject | None
    store: Store
    now: Instant
    #: Collects warnings for the client.
    warnings: list[str] = []
    #: None for the server itself.
    user: User | None = None
    dry_run: bool = False
    #: The options of the request as an API object: `{"kind": "CreateOptions", …}`.
    options: dict[str, Any] = {}
    #: Whether the live object is to be deleted.
    is_deletion: bool = False

    @property
    def operation(self) -> str:
        """The operation as rules of policies and webhooks name it."""
        if self.is_deletion:
            return "DELETE"
        return "CREATE" if self.old is None else "UPDATE"

    @property
    def key(self) -> Key:
        """The key of the object in the store."""
        return key_of(self.namespace, self.name)

    def forbidden(self, problem: str) -> Failure:
        """Return the 403 that rejects this request (Kubernetes: admission.NewForbidden)."""
        metadata = (self.value or self.old or {}).get("metadata") or {}
        name = self.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
        return statuses.forbidden(self.resource, name, problem)

    def objects_in_namespace(self, kind: str) -> Iterator[tuple[Key, KubeObject]]:
        """Return the objects of `kind` in the namespace of this request."""
        return self.store.in_namespace(kind, self.namespace)


Plugin = Callable[[AdmissionRequest], None]
"""Changes the object of a request, or raises Failure to reject it."""
