"""What is odd about an object, though allowed: told to the client in Warning headers.

Kubernetes: the functions WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/*/strategy.go.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from batkube.api.validation.addresses import address_warnings, range_warnings
from batkube.api.validation.names import dns_label
from batkube.api.validation.pod_warnings import (
    DEPRECATED_NODE_LABELS,
    claim_fractions,
    node_term_warnings,
    pod_warnings,
)
from batkube.api.validation.rules import Object
from batkube.cluster.kinds import Resource

Warner = Callable[[Object, Object | None], Iterator[str]]
"""Yields what is odd about an object; the second one is what it was before an update."""

_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_VOLUME_ANNOTATIONS = {
    _BETA_CLASS: 'deprecated since v1.8; use "storageClassName" attribute instead',
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_VOLUME_SOURCES = {
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}
_NEGATIVE_LIMIT = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
)
_MANY_INDEXES = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
    "might not be able to track completedIndexes when a big number of indexes fail"
)


def _label_recommended(value: Object, used: str) -> Iterator[str]:
    if wrong := dns_label(value["metadata"].get("name", "")):
        surprise = "which can result in surprising behavior; a DNS label is recommended"
        yield f"metadata.name: this is used in {used}, {surprise}: [{' '.join(wrong)}]"


def _pod(value: Object, old: Object | None) -> Iterator[str]:
    if old is None:
        yield from _label_recommended(value, "the Pod's hostname")
        yield from pod_warnings(value.get("spec", {}), value["metadata"])


def _template(value: Mapping[str, Any] | None, path: str) -> Iterator[str]:
    if value is not None:
        yield from pod_warnings(value.get("spec") or {}, value.get("metadata") or {}, f"{path}.")


def _grew(value: Object, old: Object | None) -> bool:
    """Say whether an object is new or of a new generation, which is when its template is looked at."""
    return old is None or value["metadata"].get("generation") != old["metadata"].get("generation")


def _templated(*, named: bool) -> Warner:
    """Return the warnings of a kind with a pod template; `named` if its name becomes part of its pods' names."""

    def warn(value: Object, old: Object | None) -> Iterator[str]:
        if old is None and named:
            yield from _label_recommended(value, "Pod names and hostnames")
        if _grew(value, old):
            yield from _template(value.get("spec", {}).get("template"), "spec.template")

    return warn


def _pod_template(value: Object, old: Object | None) -> Iterator[str]:
    if _grew(value, old):
        yield from _template(value.get("template"), "template")


def _stateful_set(value: Object, old: Object | None) -> Iterator[str]:
    spec = value.get("spec", {})
    yield from _templated(named=False)(value, old)
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        path = f"spec.volumeClaimTemplates[{index}]" + (".Spec" if old is not None else "")
        yield from claim_fractions(claim.get("spec") or {}, path)
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        yield _NEGATIVE_LIMIT


def _job_spec(spec: Mapping[str, Any], path: str) -> Iterator[str]:
    many = (spec.get("completions") or 0) > 100_000 and (spec.get("parallelism") or 0) > 10_000
    if many and spec.get("completionMode") == "Indexed":
        yield f"{path}: {_MANY_INDEXES}"
    yield from _template(spec.get("template"), f"{path}.template")


def _job(value: Object, old: Object | None) -> Iterator[str]:
    if old is None:
        yield from _label_recommended(value, "Pod names and hostnames")
    if _grew(value, old):
        yield from _job_spec(value.get("spec", {}), "spec")


def _cron_job(value: Object, old: Object | None) -> Iterator[str]:
    spec = value.get("spec", {})
    if old is None:
        yield from _label_recommended(value, "Pod names and hostnames")
    if _grew(value, old):
        yield from _job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")
    if old is not None and "TZ" in spec.get("schedule", ""):
        page = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
        yield f"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see {page} for more details"


def _service(value: Object, old: Object | None) -> Iterator[str]:
    spec, hints = value.get("spec", {}), "service.kubernetes.io/topology-aware-hints"
    if hints in (value["metadata"].get("annotations") or {}):
        yield f"annotation {hints} is deprecated, please use service.kubernetes.io/topology-mode instead"
    if spec.get("clusterIP") not in (None, "", "None"):
        for index, text in enumerate(spec.get("clusterIPs") or ()):
            yield from address_warnings(text, f"spec.clusterIPs[{index}]")
    if spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None":
        for field in ("loadBalancerIP", "externalIPs"):
            if spec.get(field):
                yield f"spec.{field} is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    for index, text in enumerate(spec.get("externalIPs") or ()):
        yield from address_warnings(text, f"spec.externalIPs[{index}]")
    if text := spec.get("loadBalancerIP"):
        yield from address_warnings(text, "spec.loadBalancerIP")
    for index, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from range_warnings(text, f"spec.loadBalancerSourceRanges[{index}]")
    if spec.get("type") == "ExternalName" and spec.get("externalIPs"):
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if spec.get("type") != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'


def _secret(value: Object, old: Object | None) -> Iterator[str]:
    """Warn of a key pair that is none; more than whether there is any is not looked at."""
    if value.get("type") != "kubernetes.io/tls":
        return
    data = value.get("data") or {}
    for key, noun in (("tls.crt", "certificate"), ("tls.key", "key")):
        if b"-----BEGIN " not in base64.b64decode(data.get(key) or ""):
            yield f"tls: failed to find any PEM data in {noun} input"
            return


def _node(value: Object, old: Object | None) -> Iterator[str]:
    spec = value.get("spec", {})
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for index, text in enumerate(spec.get("podCIDRs") or ()):
        yield from range_warnings(text, f"spec.podCIDRs[{index}]")


def _volume(value: Object, old: Object | None) -> Iterator[str]:
    spec, annotations = value.get("spec", {}), value["metadata"].get("annotations") or {}
    for key, message in _VOLUME_ANNOTATIONS.items():
        if key in annotations:
            yield f"metadata.annotations[{key}]: {message}"
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        advice = "Instead, the recommended approach is to use dynamic provisioning."
        yield f"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. {advice}"
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        yield from node_term_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    for field, (shown, message) in _VOLUME_SOURCES.items():
        if spec.get(field) is not None:
            yield f"spec.{shown}: {message}"


def _claim(value: Object, old: Object | None) -> Iterator[str]:
    if _BETA_CLASS in (value["metadata"].get("annotations") or {}):
        yield f"metadata.annotations[{_BETA_CLASS}]: {_VOLUME_ANNOTATIONS[_BETA_CLASS]}"
    yield from claim_fractions(value.get("spec") or {}, "spec")


def _ingress(value: Object, old: Object | None) -> Iterator[str]:
    key = "kubernetes.io/ingress.class"
    noted = key in (value["metadata"].get("annotations") or {})
    if old is None and noted and value.get("spec", {}).get("ingressClassName") is None:
        yield f"annotation \"{key}\" is deprecated, please use 'spec.ingressClassName' instead"


def _runtime_class(value: Object, old: Object | None) -> Iterator[str]:
    for key in (value.get("scheduling") or {}).get("nodeSelector") or ():
        if key in DEPRECATED_NODE_LABELS:
            yield f"scheduling.nodeSelector: {DEPRECATED_NODE_LABELS[key]}"


def _slice(value: Object, old: Object | None) -> Iterator[str]:
    if old is None and value.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    for index, endpoint in enumerate(value.get("endpoints") or ()):
        for number, text in enumerate(endpoint.get("addresses") or ()):
            yield from address_warnings(text, f"endpoints[{index}].addresses[{number}]")


_WARNERS: dict[str, Warner] = {
    "pods": _pod,
    "podtemplates": _pod_template,
    "replicationcontrollers": _templated(named=True),
    "deployments.apps": _templated(named=True),
    "replicasets.apps": _templated(named=True),
    "daemonsets.apps": _templated(named=False),
    "statefulsets.apps": _stateful_set,
    "jobs.batch": _job,
    "cronjobs.batch": _cron_job,
    "services": _service,
    "secrets": _secret,
    "nodes": _node,
    "persistentvolumes": _volume,
    "persistentvolumeclaims": _claim,
    "ingresses.networking.k8s.io": _ingress,
    "runtimeclasses.node.k8s.io": _runtime_class,
    "endpointslices.discovery.k8s.io": _slice,
}


def warnings_about(resource: Resource, value: Object, old: Object | None = None) -> list[str]:
    """Return what to warn a client of that created an object or, with `old`, changed it (not a sub-resource of it)."""
    warn = _WARNERS.get(resource.group_resource)
    return [] if warn is None else list(warn(value, old))
