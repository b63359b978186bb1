"""A write that somebody attempts, as admission sees it."""

from __future__ import annotations

from collections.abc import Iterator
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
    """Return the kind of a resource as webhooks and expressions are told it (metav1.GroupVersionKind)."""
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def group_version_resource(resource: Resource) -> dict[str, str]:
    """Return a resource as webhooks and expressions are told it (metav1.GroupVersionResource)."""
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def user_info(user: User) -> dict[str, Any]:
    """Return a user as webhooks and expressions are told of it (authentication/v1.UserInfo)."""
    told = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in told.items() if value}


class AdmissionRequest(msgspec.Struct):
    """A create, an update or a deletion that has not happened yet."""

    resource: Resource
    #: "" for an object of the cluster.
    namespace: str
    #: As the request gives it; "" when the name is yet to be generated.
    name: str
    #: "" for the object itself, "status", "binding", …
    subresource: str
    #: What is to be written: the object, or what is sent to the sub-resource; empty for a deletion.
    value: dict[str, Any]
    #: The live object; None when one is created.
    old: KubeObject | None
    store: Store
    now: Instant
    #: Where warnings for the client go.
    warnings: list[str] = []
    #: Who attempts it; None for the server itself.
    user: User | None = None
    dry_run: bool = False
    #: The options of the request, as clients write them: `{"kind": "CreateOptions", …}`.
    options: dict[str, Any] = {}
    #: Whether the live object is to be deleted.
    is_deletion: bool = False

    @property
    def operation(self) -> str:
        """What is attempted, as rules of policies and webhooks name it."""
        if self.is_deletion:
            return "DELETE"
        return "CREATE" if self.old is None else "UPDATE"

    @property
    def key(self) -> Key:
        """The key of the object in the store."""
        return key_of(self.namespace, self.name)

    def forbidden(self, problem: str) -> Failure:
        """Return the refusal of this attempt (admission.NewForbidden)."""
        metadata = (self.value or self.old or {}).get("metadata") or {}
        name = self.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
        return statuses.forbidden(self.resource, name, problem)

    def objects_in_namespace(self, kind: str) -> Iterator[tuple[Key, KubeObject]]:
        """Return the objects of `kind` in the namespace of this attempt."""
        return self.store.in_namespace(kind, self.namespace)
