"""Objects in the versions that webhooks and policies wish to see them in."""

from __future__ import annotations

from collections.abc import Callable

from batkube.api.decoding.objects import DecodeError
from batkube.api.requests import statuses
from batkube.api.verbs.kinds.served_kinds import ServedKinds
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject


class ServedVersionConverter:
    """The versions of kinds, as admission needs them (`admission.policy_matching.VersionConverter`)."""

    def __init__(self, served: Callable[[], ServedKinds]) -> None:
        """`served` is asked at the time: what is served needs admission itself."""
        self._served = served

    def of_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """Return a kind in a version, or None."""
        return self._served().kind_table.of_kind(group, version, kind)

    def to_version(self, value: KubeObject, written_in: Resource, target: Resource) -> KubeObject:
        """Return an object in the version of `target`: one in the version of a request, or a stored one."""
        if value.get("apiVersion", target.api_version) == target.api_version:
            return value
        served = self._served()
        if value["apiVersion"] == served.storage_version(target).api_version:
            return served.in_version(target, value)
        convert = served.converter(written_in)
        elsewhere = None if convert is None else convert(value, target.api_version)
        return value if elsewhere is None else elsewhere[0]

    def decode_and_default(self, resource: Resource, value: KubeObject, *, strict: bool = False) -> KubeObject:
        """Return an object that somebody changed in canonical form, with defaults; `strict` refuses unknown fields."""
        behaviour = self._served().behaviour(resource)
        try:
            whole, unknown = behaviour.decode(resource, value)
        except DecodeError as problem:
            raise statuses.internal(str(problem)) from problem
        if strict and unknown and not resource.custom:
            raise statuses.internal(f"strict decoding error: {', '.join(unknown)}")
        behaviour.default(resource, whole)
        return whole
