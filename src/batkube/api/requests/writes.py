"""What one write is about, and the behaviour that a kind adds to it.

The registry does what all kinds share. A `Behaviour` is the rest: built-in kinds take theirs from the tables of
`api.groups` and from admission; custom ones from the schema of their definition.
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
    """One create, update or patch: of what, by whom, how."""

    #: The resource as the path names it.
    resource: Resource
    #: The same kind in the version in which it is stored.
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
    #: The name in the path, "" if the object was posted: what rights to create or to escalate can be limited to.
    name_in_path: str = ""
    #: The uid of a new object; drawn if empty.
    uid: str = ""

    @property
    def key(self) -> Key:
        """The key of the object in the store."""
        return key_of(self.namespace, self.name)


class DeletionContext(msgspec.Struct, frozen=True):
    """By whom an object is deleted, and when."""

    now: Instant
    #: None for the server itself.
    user: User | None = None
    #: Warnings for the client, sent as headers.
    warnings: list[str] = []


def key_of(namespace: str, name: str) -> Key:
    """Return the key of an object in the store."""
    return Key(f"{namespace}/{name}" if namespace else name)


class Behaviour(Protocol):
    """What a kind adds to the verbs that all kinds share. Objects given to `prepare…` and `admit…` may be edited."""

    def decode(self, resource: Resource, value: KubeObject) -> Decoded:
        """Return the canonical object, without defaults."""

    def default(self, resource: Resource, value: KubeObject) -> None:
        """Fill in what was left out."""

    def to_storage_version(self, write: Write, value: KubeObject) -> KubeObject:
        """Convert from the version of the request to the stored one."""

    def admit(self, write: Write, value: KubeObject, old: KubeObject | None) -> None:
        """Let admission change or refuse the object; `old` is None for a creation."""

    def prepare_create(self, write: Write, value: KubeObject) -> None:
        """Reset what clients may not set on creation."""

    def prepare_update(self, write: Write, value: KubeObject, old: KubeObject) -> None:
        """Reset what clients may not change, and count the generation."""

    def validate_create(self, write: Write, value: KubeObject) -> list[FieldError]:
        """Judge a new object."""

    def validate_update(self, write: Write, value: KubeObject, old: KubeObject) -> list[FieldError]:
        """Judge a changed object."""
