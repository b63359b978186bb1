"""Defaults of pods and pod templates.

A pod has all defaults of a template, and more. Templates do not get all defaults of pods, because a new default would
then change the templates of all existing workloads at an upgrade. The module includes those conversions between the
versioned and the internal type (conversion.go) that synchronize fields. It runs for every created or changed pod, so
the fields that all pods have are handled without tables, for speed.

Kubernetes: pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.groups.core.pods.images import tag_of
from batkube.api.groups.core.pods.resource_totals import set_pod_level_resource_defaults
from batkube.api.groups.core.volumes.defaults import set_field_reference_defaults, set_volume_defaults
from batkube.api.groups.kind_model.defaults import (
    Defaults,
    ensure_struct,
    fill_absent,
    fill_empty,
    list_items,
    round_resource_lists,
    round_resource_requirements,
)

_SPEC: Defaults = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"}
_CONTAINER: Defaults = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE: Defaults = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_HTTP_GET: Defaults = {"path": "/", "scheme": "HTTP"}
_GRPC: Defaults = {"service": ""}
_PORT: Defaults = {"protocol": "TCP"}
_FILE_KEY: Defaults = {"optional": False}

_GRACE_S = 30
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")

#: Alpha and beta annotations for init containers (until Kubernetes 1.6); they are dropped.
_INIT_CONTAINER_ANNOTATIONS = (
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
)


def set_pod_defaults(pod: dict[str, Any]) -> None:
    """Set the defaults of a pod."""
    spec = pod.get("spec")
    if spec is None:
        spec = pod["spec"] = {}
    for name in ("containers", "initContainers"):
        for container in list_items(spec, name):
            _set_requests_from_limits(container.get("resources"))
    if spec.get("resources"):
        set_pod_level_resource_defaults(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        _set_host_ports(spec)
    set_pod_spec_defaults(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _drop_init_container_annotations(pod.get("metadata"))
    status = pod.get("status")
    if status:
        _set_status_defaults(status)


def set_template_defaults(template: dict[str, Any] | None) -> None:
    """Set the defaults of a pod template."""
    if template is None:
        return
    spec = template.get("spec")
    if spec is None:
        spec = template["spec"] = {}
    set_pod_spec_defaults(spec)
    _drop_init_container_annotations(template.get("metadata"))


def set_pod_spec_defaults(spec: dict[str, Any]) -> None:
    """Set the defaults of a pod spec, in a pod or a template."""
    fill_empty(spec, _SPEC)
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = _GRACE_S
    for volume in list_items(spec, "volumes"):
        set_volume_defaults(volume)
    for name in _CONTAINERS:
        for container in list_items(spec, name):
            _set_container_defaults(container)
    round_resource_lists(spec, "overhead")
    round_resource_requirements(spec)
    # `serviceAccount` is the old name of `serviceAccountName`; both are kept equal.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _set_container_defaults(container: dict[str, Any]) -> None:
    fill_empty(container, _CONTAINER)
    if not container.get("imagePullPolicy"):
        latest = tag_of(container.get("image") or "") == "latest"
        container["imagePullPolicy"] = "Always" if latest else "IfNotPresent"
    for port in list_items(container, "ports"):
        fill_empty(port, _PORT)
    for variable in list_items(container, "env"):
        source = variable.get("valueFrom")
        if source:
            set_field_reference_defaults(source)
            if source.get("fileKeyRef") is not None:
                fill_absent(source["fileKeyRef"], _FILE_KEY)
    round_resource_requirements(container)
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None:
            fill_empty(probe, _PROBE)
            _set_handler_defaults(probe)
            if probe.get("grpc") is not None:
                fill_absent(probe["grpc"], _GRPC)
    lifecycle = container.get("lifecycle")
    if lifecycle:
        for name in ("postStart", "preStop"):
            _set_handler_defaults(lifecycle.get(name) or {})


def _set_handler_defaults(handler: dict[str, Any]) -> None:
    http = handler.get("httpGet")
    if http is not None:
        fill_empty(http, _HTTP_GET)


def _set_requests_from_limits(resources: dict[str, Any] | None) -> None:
    limits = resources.get("limits") if resources else None
    if resources is not None and limits:
        requests = resources.get("requests")
        resources["requests"] = {**limits, **requests} if requests else dict(limits)


def _set_host_ports(spec: dict[str, Any]) -> None:
    for name in ("containers", "initContainers"):
        for container in list_items(spec, name):
            for port in list_items(container, "ports"):
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]


def _drop_init_container_annotations(metadata: dict[str, Any] | None) -> None:
    annotations = metadata.get("annotations") if metadata else None
    if metadata is not None and annotations:
        for name in _INIT_CONTAINER_ANNOTATIONS:
            if name in annotations:
                del annotations[name]
        if not annotations:
            del metadata["annotations"]


def _set_status_defaults(status: dict[str, Any]) -> None:
    """Round quantities, and set `podIP` to the first of `podIPs`, the only field of the internal type."""
    for name in _STATUSES:
        for container in list_items(status, name):
            round_resource_lists(container, "allocatedResources")
            round_resource_requirements(container)
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and not (addresses and addresses[0].get("ip") == address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and not address:
        status["podIP"] = addresses[0].get("ip", "")


def set_pod_template_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of a PodTemplate."""
    set_template_defaults(ensure_struct(obj, "template"))
