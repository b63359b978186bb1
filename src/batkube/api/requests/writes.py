"""Writes, and the behaviour that each kind adds to them.

The registry implements what all kinds have in common. A `Behaviour` adds the rest: for built-in kinds from the tables
of `api.groups` and from admission, for custom kinds from the schema of their CustomResourceDefinition.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from batkube.api.decoding.objects import Decoded
from batkube.api.requests.options import WriteOptions
from batkube.api.requests.users import User
from batkube.api.validation.field_errors import FieldError
from batkube.cluster.kinds import Resource
from batkube.cluster.store import Key, KubeObject
from batkube.kernel.instants import Instant


class Write(msgspec.Struct):
    """One create, update or patch: its object, user and options."""

    #: The resource in the version of the request's path.
    resource: Resource
    #: The same resource in its storage version.
    stored: Resource
    namespace: str
    #: Empty for a create.
    name: str
    #: "" for the object itself, "status", "scale", …
    subresource: str
    options: WriteOptions
    user: User
    now: Instant
    #: Warnings for the client, sent as headers.
    warnings: list[str] = []
    #: The name in the path, "" for a POST. RBAC rules with `resourceNames` apply to this name.
    name_in_path: str = ""
    #: The uid of a new object; generated if empty.
    uid: str = ""

    @property
    def key(self) -> Key:
        """The key of the object in the store."""
        return key_of(self.namespace, self.name)


class DeletionContext(msgspec.Struct, frozen=True):
    """The user and the time of a deletion."""

    now: Instant
    #: None for the server itself, whose deletions are not subject to admission (Kubernetes:
    #: apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go, deleteInstances).
    user: User | None = None
    #: Warnings for the client, sent as headers.
    warnings: list[str] = []
    #: Whether the deletion of a running pod counts as a scheduler's decision to evict it.
    is_decision: bool = True


def key_of(namespace: str, name: str) -> Key:
    """Return the key of an object in the store."""
    return Key(f"{namespace}/{name}" if namespace else name)


class Behaviour(Protocol):
    """The part of a write that depends on the kind. `default`, `admit` and `prepare_…` may edit the object."""

    def decode(self, resource: Resource, value: KubeObject) -> Decoded:
        """Return the object in canonical form, without defaults."""

    def default(self, resource: Resource, value: KubeObject) -> None:
        """Set the defaults of unset fields."""

    def to_storage_version(self, write: Write, value: KubeObject) -> KubeObject:
        """Convert from the version of the request to the storage version."""

    def admit(self, write: Write, value: KubeObject, old: KubeObject | None) -> None:
        """Run mutating admission, which may edit or reject the object; `old` is None for a create."""

    def prepare_create(self, write: Write, value: KubeObject) -> None:
        """Reset the fields that clients may not set on creation."""

    def prepare_update(self, write: Write, value: KubeObject, old: KubeObject) -> None:
        """Reset the fields that clients may not change, and update the generation."""

    def validate_create(self, write: Write, value: KubeObject) -> list[FieldError]:
        """Return the problems with a new object."""

    def validate_update(self, write: Write, value: KubeObject, old: KubeObject) -> list[FieldError]:
        """Return the problems with an updated object."""
