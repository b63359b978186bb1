"""Strategies of pods and pod templates. Kubernetes: pkg/registry/core/pod/strategy.go, pkg/api/pod/util.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.kind_model.context import StrategyContext
from batkube.kernel.instants import rfc3339
from batkube.kernel.quantities import Quantity, parse_quantity

_ALL_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
#: The resources that determine the QoS class.
_QOS_RESOURCES = ("cpu", "memory")
_GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_APP_ARMOR_TYPES = {"runtime/default": "RuntimeDefault", "unconfined": "Unconfined"}
_LOCAL_PROFILE = "localhost/"
_MAX_PROFILE = 4095
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def prepare_pod_create(pod: dict[str, Any], context: StrategyContext) -> None:
    """Set the phase Pending and the QoS class."""
    spec = pod["spec"]
    own_class = (pod.get("status") or {}).get("qosClass")
    status: dict[str, Any] = {"phase": "Pending", "qosClass": own_class or qos_class(spec)}
    pod["status"] = status
    drop_disabled_fields(spec)
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": rfc3339(context.now),
                "reason": "SchedulingGated",
                "message": _GATED_MESSAGE,
            }
        ]
    labels = pod["metadata"].get("labels") or {}
    if spec.get("affinity"):
        _merge_affinity_label_keys(spec["affinity"], labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _extend_selector(constraint, "matchLabelKeys", "In", labels)
    if pod["metadata"].get("annotations") and (spec.get("os") or {}).get("name") != "windows":
        _set_app_armor_from_annotations(pod, context.warnings)


def _set_app_armor_from_annotations(pod: dict[str, Any], warnings: list[str]) -> None:
    """Set AppArmor profiles from annotations, which were used before Kubernetes 1.30."""
    spec, annotations = pod["spec"], pod["metadata"]["annotations"]
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(name) or ():
            text = annotations.get(_APP_ARMOR + container.get("name", ""))
            security = container.get("securityContext") or {}
            if text is not None and security.get("appArmorProfile") is None:
                profile = app_armor_profile(text)
                if profile is not None and profile != of_pod:
                    container["securityContext"] = {**security, "appArmorProfile": profile}
                if profile is None or profile != of_pod:
                    warning = 'deprecated since v1.30; use the "appArmorProfile" field instead'
                    warnings.append(f"metadata.annotations[{_APP_ARMOR}{container.get('name', '')}]: {warning}")


def app_armor_profile(text: str) -> dict[str, str] | None:
    """Return the profile in an annotation; None if it is malformed."""
    if text.startswith(_LOCAL_PROFILE):
        local = text.removeprefix(_LOCAL_PROFILE)
        fits = local and local == local.strip() and len(local) <= _MAX_PROFILE
        return {"type": "Localhost", "localhostProfile": local} if fits else None
    kind = _APP_ARMOR_TYPES.get(text)
    return {"type": kind} if kind else None


def prepare_pod_update(pod: dict[str, Any], _old: dict[str, Any], _context: StrategyContext) -> None:
    """Drop the fields of disabled features."""
    drop_disabled_fields(pod["spec"])


def prepare_pod_status_update(pod: dict[str, Any], old: dict[str, Any], _context: StrategyContext) -> None:
    """Keep QoS class and observed generations if the update omits them."""
    pod["metadata"].pop("deletionTimestamp", None)
    status, before = pod.get("status") or {}, old.get("status") or {}
    pod["status"] = status
    for name in ("qosClass", "observedGeneration"):
        if not status.get(name) and before.get(name):
            status[name] = before[name]
    observed: dict[str, list[int]] = {}
    for condition in before.get("conditions") or ():
        observed.setdefault(condition["type"], []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        generations = observed.get(condition.get("type", ""))
        generation = generations.pop(0) if generations else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation
    status.pop("extendedResourceClaimStatus", None)
    for name in _STATUSES:
        for container in status.get(name) or ():
            container.pop("allocatedResourcesStatus", None)


def prepare_ephemeral_containers_update(pod: dict[str, Any], old: dict[str, Any], _context: StrategyContext) -> None:
    """Keep everything but the ephemeral containers."""
    ephemeral = {"ephemeralContainers": pod["spec"].get("ephemeralContainers")}
    drop_disabled_fields(ephemeral)
    old_spec = {name: value for name, value in old["spec"].items() if name != "ephemeralContainers"}
    pod["spec"] = {**old_spec, **ephemeral} if ephemeral["ephemeralContainers"] else old_spec
    _preserve_rest(pod, old)


def prepare_resize_update(pod: dict[str, Any], old: dict[str, Any], _context: StrategyContext) -> None:
    """Keep everything but resources and resize policies; validation rejects a changed set of containers."""
    spec, before = pod["spec"], old["spec"]
    if any(len(spec.get(name) or ()) != len(before.get(name) or ()) for name in ("containers", "initContainers")):
        drop_disabled_fields(spec)
        return
    merged = {name: _with_new_resources(spec.get(name), before.get(name)) for name in ("containers", "initContainers")}
    pod["spec"] = {**before, **{name: containers for name, containers in merged.items() if containers}}
    _preserve_rest(pod, old)


def _preserve_rest(pod: dict[str, Any], old: dict[str, Any]) -> None:
    """Keep status and metadata in an update of a part of the spec."""
    pod["status"] = old["status"]
    managed = pod["metadata"].get("managedFields")
    pod["metadata"] = {**old["metadata"]}
    if managed:
        pod["metadata"]["managedFields"] = managed


def _with_new_resources(new: list[dict[str, Any]] | None, old: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    desired, live = new or [], old or []
    if any(a.get("name") != b.get("name") for a, b in zip(desired, live, strict=True)):
        return desired
    merged = []
    for container, before in zip(desired, live, strict=True):
        resized = {**before, "resources": container.get("resources") or {}}
        if container.get("resizePolicy"):
            resized["resizePolicy"] = container["resizePolicy"]
        else:
            resized.pop("resizePolicy", None)
        merged.append(resized)
    return merged


def qos_class(spec: dict[str, Any]) -> str:
    """Return the QoS class: Guaranteed, Burstable or BestEffort (pkg/apis/core/helper/qos)."""
    whole = spec.get("resources")
    if whole is not None:
        parts, every = [whole], bool(whole.get("limits"))
    else:
        parts = [container.get("resources") or {} for name in _ALL_CONTAINERS[:2] for container in spec.get(name) or ()]
        every = True
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    for part in parts:
        _add_amounts(requests, part.get("requests"))
        count = _add_amounts(limits, part.get("limits"))
        if every and count < len(_QOS_RESOURCES):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _add_amounts(total: dict[str, Quantity], amounts: dict[str, str] | None) -> int:
    """Add the amounts of relevant resources to `total`; return their number."""
    count = 0
    for name in _QOS_RESOURCES:
        text = amounts.get(name) if amounts else None
        if text is not None:
            amount = parse_quantity(text)
            if amount.nanos > 0:
                count += 1
                total[name] = total[name] + amount if name in total else amount
    return count


def _merge_affinity_label_keys(affinity: dict[str, Any], labels: dict[str, str]) -> None:
    for name in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(name) or {}
        weighted = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        required = terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for term in [*(preference.get("podAffinityTerm") or {} for preference in weighted), *required]:
            _extend_selector(term, "matchLabelKeys", "In", labels)
            _extend_selector(term, "mismatchLabelKeys", "NotIn", labels)


def _extend_selector(holder: dict[str, Any], keys: str, operator: str, labels: dict[str, str]) -> None:
    """Add requirements for the pod's own values of the labels in `keys` to the selector."""
    selector = holder.get("labelSelector")
    if selector is None:
        return
    more = [
        {"key": key, "operator": operator, "values": [labels[key]]} for key in holder.get(keys) or () if key in labels
    ]
    if more:
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *more]


def drop_disabled_fields(spec: dict[str, Any]) -> None:
    """Drop the fields of features that are disabled in Kubernetes 1.34."""
    spec.pop("hostnameOverride", None)
    for name in _ALL_CONTAINERS:
        for container in spec.get(name) or ():
            if "restartPolicy" in container and (name != "initContainers" or container["restartPolicy"] != "Always"):
                del container["restartPolicy"]
            container.pop("restartPolicyRules", None)
            lifecycle = container.get("lifecycle")
            if lifecycle and lifecycle.pop("stopSignal", None) and not lifecycle:
                del container["lifecycle"]
            for variable in container.get("env") or ():
                (variable.get("valueFrom") or {}).pop("fileKeyRef", None)
    if spec.get("volumes"):
        _drop_disabled_volumes(spec)


def _drop_disabled_volumes(spec: dict[str, Any]) -> None:
    images = [volume["name"] for volume in spec["volumes"] if volume.get("image") is not None]
    for volume in spec["volumes"]:
        for source in (volume.get("projected") or {}).get("sources") or ():
            source.pop("clusterTrustBundle", None)
            source.pop("podCertificate", None)
    if not images:
        return
    _drop_named(spec, "volumes", images)
    for name in _ALL_CONTAINERS:
        for container in spec.get(name) or ():
            _drop_named(container, "volumeMounts", images)


def _drop_named(holder: dict[str, Any], field: str, names: list[str]) -> None:
    """Remove the items with these names from the list at `field`."""
    remaining = [item for item in holder.get(field) or () if item.get("name") not in names]
    if remaining:
        holder[field] = remaining
    else:
        holder.pop(field, None)


def prepare_workload_template(workload: dict[str, Any], *_rest: object) -> None:
    """Drop the fields of disabled features from a workload's template."""
    drop_disabled_template_fields((workload.get("spec") or {}).get("template"))


def prepare_pod_template(template: dict[str, Any], *_rest: object) -> None:
    """Drop the fields of disabled features from a PodTemplate."""
    drop_disabled_template_fields(template.get("template"))


def drop_disabled_template_fields(template: dict[str, Any] | None) -> None:
    """Drop the fields of disabled features from a template."""
    spec = (template or {}).get("spec")
    if spec:
        drop_disabled_fields(spec)
