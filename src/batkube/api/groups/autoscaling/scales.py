"""The scale subresource: the replicas of any workload in a uniform form (autoscaling/v1 Scale)."""

from __future__ import annotations

from typing import Any

import msgspec

from batkube.api.requests import statuses
from batkube.cluster.kinds import Resource
from batkube.cluster.selectors import selector_of
from batkube.cluster.store import KubeObject

_COPIED_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def _make_scale(value: KubeObject, spec: KubeObject, status: KubeObject) -> KubeObject:
    meta = value["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: meta[field] for field in _COPIED_METADATA if field in meta},
        "spec": spec,
        "status": status,
    }


def _with_client_version(value: KubeObject, scale: KubeObject) -> KubeObject:
    """Return the object with the resourceVersion of the client's Scale, if it has one."""
    meta = {**value["metadata"], "resourceVersion": scale.get("metadata", {}).get("resourceVersion", "")}
    return {**value, "metadata": meta}


class ScaleConverter:
    """Converts objects of built-in kinds, which all have their replicas at the same path, from and to Scales."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    def to_scale(self, value: KubeObject) -> KubeObject:
        """Return the Scale of an object."""
        replicas = value.get("spec", {}).get("replicas", 0)
        status: KubeObject = {"replicas": value.get("status", {}).get("replicas", 0)}
        selector = self._selector(value.get("spec", {}).get("selector"))
        if selector:
            status["selector"] = selector
        return _make_scale(value, {"replicas": replicas} if replicas else {}, status)

    def to_scale_for_update(self, value: KubeObject) -> KubeObject:
        """Return the Scale that an update or patch starts from."""
        return self.to_scale(value)

    def _selector(self, selector: KubeObject | None) -> str:
        if not selector:
            return ""
        if self._resource.storage == "replicationcontrollers":
            return ",".join(f"{key}={selector[key]}" for key in sorted(selector))
        return str(selector_of(selector))

    def apply_scale(self, value: KubeObject, scale: KubeObject) -> KubeObject:
        """Return the object with the replicas of a Scale."""
        changed = _with_client_version(value, scale)
        changed["spec"] = {**value.get("spec", {}), "replicas": scale.get("spec", {}).get("replicas", 0)}
        return changed


class ScalePaths(msgspec.Struct, frozen=True):
    """The paths of a custom kind's replicas, from its definition."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


class CustomScaleConverter(ScaleConverter):
    """Converts objects of a custom kind from and to Scales."""

    def __init__(self, paths: ScalePaths) -> None:
        self._paths = paths

    def to_scale(self, value: KubeObject) -> KubeObject:
        """Return the Scale of an object."""
        replicas = _value_at(value, self._paths.spec_replicas)
        if not isinstance(replicas, int):
            path = ".".join(self._paths.spec_replicas)
            problem = f'the spec replicas field ".{path}" does not exist'
            raise statuses.internal(problem)
        return self._scale_of(value, replicas)

    def to_scale_for_update(self, value: KubeObject) -> KubeObject:
        """Return the Scale that an update or patch starts from; missing replicas count as 0."""
        replicas = _value_at(value, self._paths.spec_replicas)
        return self._scale_of(value, replicas if isinstance(replicas, int) else 0)

    def _scale_of(self, value: KubeObject, replicas: int) -> KubeObject:
        status: KubeObject = {"replicas": _value_at(value, self._paths.status_replicas) or 0}
        selector = _value_at(value, self._paths.selector) if self._paths.selector else None
        if isinstance(selector, str) and selector:
            status["selector"] = selector
        return _make_scale(value, {"replicas": replicas} if replicas else {}, status)

    def apply_scale(self, value: KubeObject, scale: KubeObject) -> KubeObject:
        """Return the object with the replicas of a Scale."""
        if not scale.get("metadata", {}).get("resourceVersion"):
            return _with_value_at(value, self._paths.spec_replicas, scale.get("spec", {}).get("replicas", 0))
        return _with_value_at(
            _with_client_version(value, scale), self._paths.spec_replicas, scale.get("spec", {}).get("replicas", 0)
        )


def _value_at(value: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _with_value_at(value: KubeObject, path: tuple[str, ...], new: int) -> KubeObject:
    """Return a copy of `value` with `new` at `path`."""
    name, *rest = path
    return {**value, name: _with_value_at(value.get(name) or {}, tuple(rest), new) if rest else new}
