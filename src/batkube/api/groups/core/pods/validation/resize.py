"""Validation of in-place resizes of a pod (Kubernetes: pkg/apis/core/validation, ValidatePodResize)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.core.pods.strategy import qos_class
from batkube.api.groups.core.pods.validation.spec import MIRROR
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object

_RESIZABLE = ("cpu", "memory")


def check_resize(new: Object, old: Object, problems: Problems) -> None:
    """Check that only cpu and memory of containers have changed, and the QoS class has not."""
    if refusal := _resize_problem(new, old):
        problems.clear()
        problems.forbidden("[]", refusal)  # Go's text of field.NewPath("").
        return
    spec, before = new.get("spec", {}), old.get("spec", {})
    if (old.get("status", {}).get("qosClass") or qos_class(before)) != qos_class(spec):
        detail = "Pod QOS Class may not change as a result of resizing"
        problems.invalid("spec", new.get("status", {}).get("qosClass", ""), detail)
    if not _is_resize_supported_by_node(old):
        problems.forbidden("spec", "Pod running on node without support for resize")
    if not _check_same_containers(spec, before, problems):
        return
    for field in ("initContainers", "containers"):
        for index, (container, earlier) in enumerate(zip(spec.get(field) or (), before.get(field) or (), strict=True)):
            if field == "containers" or earlier.get("restartPolicy") == "Always":
                _check_nothing_removed(container, earlier, f"spec.{field}[{index}].resources", problems)
    _check_rest_unchanged(spec, before, problems)


def _resize_problem(new: Object, old: Object) -> str:
    """Return why a pod cannot be resized at all, which is then the only error."""
    for pod in (old, new):
        whole = pod.get("spec", {}).get("resources") or {}
        if whole.get("requests") or whole.get("limits"):
            return "pods with pod-level resources cannot be resized"
    if MIRROR in old["metadata"].get("annotations", {}):
        return "static pods cannot be resized"
    return "windows pods cannot be resized" if old["spec"].get("os", {}).get("name") == "windows" else ""


def _is_resize_supported_by_node(pod: Object) -> bool:
    """Return whether the kubelet reports the allocated resources of containers; it does not for workload jobs.

    Kubernetes: isPodResizeRequestSupported, where there is no running pod without containers.
    """
    statuses = pod.get("status", {}).get("containerStatuses", ())
    for status in statuses:
        if "running" in status.get("state", {}):
            return "resources" in status
    return bool(statuses) or pod.get("status", {}).get("phase") != "Running"


def _check_same_containers(spec: Mapping[str, Any], before: Mapping[str, Any], problems: Problems) -> bool:
    count = len(problems)
    for field in ("containers", "initContainers"):
        containers, earlier = spec.get(field) or (), before.get(field) or ()
        if len(containers) != len(earlier):
            problems.forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")
            continue
        for index, (container, old_container) in enumerate(zip(containers, earlier, strict=True)):
            if container.get("name") != old_container.get("name"):
                detail = f"{field} may not be renamed or reordered on resize"
                problems.forbidden(f"spec.{field}[{index}].name", detail)
    return len(problems) == count


def _check_nothing_removed(
    container: Mapping[str, Any], earlier: Mapping[str, Any], path: str, problems: Problems
) -> None:
    now, then = container.get("resources", {}), earlier.get("resources", {})
    for side in ("requests", "limits"):
        if not then.get(side, {}).keys() <= now.get(side, {}).keys():
            problems.forbidden(f"{path}.{side}", f"resource {side} cannot be removed")


def _check_rest_unchanged(spec: Mapping[str, Any], before: Mapping[str, Any], problems: Problems) -> None:
    """Check that nothing else has changed."""
    munged = dict(spec)
    count = len(problems)
    for field in ("containers", "initContainers"):
        containers = []
        for container, earlier in zip(spec.get(field) or (), before.get(field) or (), strict=True):
            sidecar = container.get("restartPolicy") == "Always"
            bare = _with_old_resources(container, earlier) if field == "containers" or sidecar else container
            if bare != earlier:
                problems.forbidden("spec", _forbidden_message(field, sidecar))
            containers.append(bare)
        if field in spec:
            munged[field] = containers
    if count == 0 and len(problems) == 0 and munged != before:
        problems.forbidden("spec", "only cpu and memory resources are mutable")


def _forbidden_message(field: str, sidecar: bool) -> str:
    if field == "containers":
        return "only cpu and memory resources are mutable"
    if sidecar:
        return "only cpu and memory resources for sidecar containers are mutable"
    return "resources for non-sidecar init containers are immutable"


def _with_old_resources(container: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Return the container with its old cpu and memory (Kubernetes: dropCPUMemoryResourcesFromContainer)."""
    now, then = container.get("resources", {}), earlier.get("resources", {})
    resources: dict[str, Any] = {}
    for side in ("limits", "requests"):
        if side in then:
            other_amounts = {name: amount for name, amount in now.get(side, {}).items() if name not in _RESIZABLE}
            resources[side] = other_amounts | {name: then[side][name] for name in _RESIZABLE if name in then[side]}
    bare = {key: value for key, value in container.items() if key != "resources"}
    return {**bare, "resources": resources} if "resources" in earlier or resources else bare
