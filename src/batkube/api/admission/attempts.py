"""A write that somebody attempts, as admission sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from batkube.api.requests import statuses
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import User
from batkube.cluster.kinds import Resource
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import Instant


class Attempt(msgspec.Struct):
    """A create or an update that has not happened yet."""

    resource: Resource
    #: "" for an object of the cluster.
    namespace: str
    #: As the request gives it; "" when the name is yet to be generated.
    name: str
    #: "" for the object itself, "status", "binding", …
    subresource: str
    #: What is to be written: the object, or what is sent to the sub-resource.
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

    def refused(self, problem: str) -> Failure:
        """Return the refusal of this attempt (admission.NewForbidden)."""
        metadata = self.value.get("metadata") or {}
        name = self.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
        return statuses.forbidden(self.resource, name, problem)

    def in_namespace(self, kind: str) -> Iterator[tuple[Key, KubeObject]]:
        """Yield the objects of `kind` in the namespace of this attempt."""
        prefix = f"{self.namespace}/"
        for key, (value, _) in self.store.entries(kind).items():
            if key.startswith(prefix):
                yield key, value
