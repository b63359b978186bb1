"""The fields of a Node manifest that simulated nodes have.

All other fields are dropped and counted, so that a note can name them, except those that an API server assigns itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from batkube.kernel.errors import InputError

#: A type; `[shape]`, a list; `{str: shape}`, a mapping with any names; or `{"name": shape, …}`, a structure.
Shape = Any

_TEXTS = {str: str}
#: The supported fields, by section. `manifests.py` reads labels, taints, capacity and allocatable.
_SECTIONS: dict[str, dict[str, Shape]] = {
    "metadata": {"annotations": _TEXTS},
    "spec": {"podCIDR": str, "podCIDRs": [str], "providerID": str, "externalID": str, "unschedulable": bool},
    "status": {
        "addresses": [{"type": str, "address": str}],
        "conditions": [{"type": str, "status": str, "reason": str, "message": str}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": int}},
        "declaredFeatures": [str],
        "features": {"supplementalGroupsPolicy": bool},
        "images": [{"names": [str], "sizeBytes": int}],
        "nodeInfo": {
            **dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "osImage"), str),
            **dict.fromkeys(("containerRuntimeVersion", "kubeletVersion", "kubeProxyVersion"), str),
            **dict.fromkeys(("operatingSystem", "architecture"), str),
            "swap": {"capacity": int},
        },
        "runtimeHandlers": [{"name": str, "features": {"recursiveReadOnlyMounts": bool, "userNamespaces": bool}}],
    },
}
_HANDLED_ELSEWHERE = {
    "metadata": ("name", "labels"),
    "spec": ("taints",),
    "status": ("capacity", "allocatable"),
}
#: Fields that the API server assigns, and the times of kubelets' reports.
_ASSIGNED = {
    "metadata": ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"),
    "status.conditions": ("lastHeartbeatTime", "lastTransitionTime"),
}
#: The conditions that simulated kubelets report.
_CONDITION_STATUSES = {
    "Ready": "True",
    **dict.fromkeys(("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"), "False"),
}
#: The remedy for a manifest that cannot be read.
REMEDY = "write Node manifests, as `kubectl get nodes -o yaml` prints them"
_TYPE_NAMES = {str: "text", int: "a whole number", bool: "true or false"}


class NodeFields:
    """Extracts the supported fields from the manifests of a file; `dropped` counts the others."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.dropped: Counter[str] = Counter()

    def extract(self, at: str, node: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the supported fields of the Node at the place `at`, by section. Raise InputError."""
        self._count_dropped("", node, ("apiVersion", "kind", *_SECTIONS))
        sections = {}
        for name, fields in _SECTIONS.items():
            section = {
                key: value for key, value in (node.get(name) or {}).items() if key not in _HANDLED_ELSEWHERE[name]
            }
            sections[name] = self._extract_struct(at, name, section, fields)
        status = sections["status"]
        if "conditions" in status:
            status["conditions"] = self._conditions(status["conditions"])
        return sections

    def _extract_value(self, at: str, path: str, value: object, shape: Shape) -> Any:  # noqa: ANN401 - as the shape says
        if isinstance(shape, list):
            if not isinstance(value, list):
                raise self._type_error(at, path, value, "a list")
            return [self._extract_value(at, path, one, shape[0]) for one in value]
        if isinstance(shape, dict):
            if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
                raise self._type_error(at, path, value, "a mapping of names to values")
            if str in shape:
                return {name: self._extract_value(at, f"{path}.{name}", one, shape[str]) for name, one in value.items()}
            return self._extract_struct(at, path, value, shape)
        if not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
            raise self._type_error(at, path, value, _TYPE_NAMES[shape])
        return value

    def _extract_struct(
        self, at: str, path: str, value: Mapping[str, Any], fields: Mapping[str, Shape]
    ) -> dict[str, Any]:
        self._count_dropped(f"{path}.", value, (*fields, *_ASSIGNED.get(path, ())))
        return {
            name: self._extract_value(at, f"{path}.{name}", value[name], shape)
            for name, shape in fields.items()
            if value.get(name) is not None
        }

    def _count_dropped(self, prefix: str, value: Mapping[str, Any], supported: tuple[str, ...]) -> None:
        self.dropped.update(
            f"{prefix}{name}" for name, one in value.items() if name not in supported and not _is_unset(one)
        )

    def _conditions(self, conditions: list[dict[str, str]]) -> list[dict[str, str]]:
        """Return the conditions that the simulated node has, too, except Ready, which its kubelet reports."""
        supported = []
        for condition in conditions:
            kind = condition.get("type", "")
            if condition.get("status") != _CONDITION_STATUSES.get(kind, condition.get("status")):
                self.dropped[f"status.conditions ({kind} is {condition.get('status')})"] += 1
            elif kind != "Ready":
                supported.append(condition)
        return supported

    def _type_error(self, at: str, path: str, value: object, expected: str) -> InputError:
        return InputError(
            self._source,
            at=f"{at}, {path}",
            problem=f"{value!r} is not {expected}",
            remedy=REMEDY,
        )


def _is_unset(value: object) -> bool:
    return value is None or value == {} or value == []
