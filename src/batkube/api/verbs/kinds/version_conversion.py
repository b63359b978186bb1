"""Convert objects to the versions in which webhooks and policies see them."""

from __future__ import annotations

from collections.abc import Callable

from batkube.api.decoding.objects import DecodeError
from batkube.api.requests import statuses
from batkube.api.verbs.kinds.served_kinds import ServedKinds
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject


class ServedVersionConverter:
    """Implements `admission.dynamic.matching.VersionConverter` with the served kinds."""

    def __init__(self, served: Callable[[], ServedKinds]) -> None:
        """`served` is called lazily, since ServedKinds is created after admission."""
        self._served = served

    def of_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """Return the resource of a kind in a version, or None."""
        return self._served().kind_table.of_kind(group, version, kind)

    def to_version(self, value: KubeObject, written_in: Resource, target: Resource) -> KubeObject:
        """Convert an object from the version of a request, or from the storage version, to that of `target`."""
        if value.get("apiVersion", target.api_version) == target.api_version:
            return value
        served = self._served()
        if value["apiVersion"] == served.storage_version(target).api_version:
            return served.in_version(target, value)
        convert = served.converter(written_in)
        converted = None if convert is None else convert(value, target.api_version)
        return value if converted is None else converted[0]

    def decode_and_default(self, resource: Resource, value: KubeObject, *, strict: bool = False) -> KubeObject:
        """Return a modified object in canonical form, with defaults; `strict` rejects unknown fields."""
        behaviour = self._served().behaviour(resource)
        try:
            decoded, unknown = behaviour.decode(resource, value)
        except DecodeError as problem:
            raise statuses.internal(str(problem)) from problem
        if strict and unknown and not resource.custom:
            raise statuses.internal(f"strict decoding error: {', '.join(unknown)}")
        behaviour.default(resource, decoded)
        return decoded
