"""What is odd about a pod, though allowed, which clients are warned of (Kubernetes: pkg/api/pod/warnings.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from batkube.api.validation.addresses import address_warnings
from batkube.api.validation.names import label_value
from batkube.api.validation.pod_security import SECCOMP_CONTAINER, SECCOMP_POD, containers_of
from batkube.api.validation.quantities import quantity
from batkube.cluster.go_text import go_quote

Spec = Mapping[str, Any]

_DEPRECATED_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_DEPRECATED_VOLUMES = {
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "gitRepo": ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}
DEPRECATED_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_NO_SELECTOR = "a null labelSelector results in matching no pod"
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def pod_warnings(spec: Spec, meta: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield what is odd about a pod, or with a prefix such as `spec.template.` about a template."""
    path, annotations = f"{prefix}spec", meta.get("annotations") or {}
    for key in spec.get("nodeSelector") or ():
        if key in DEPRECATED_NODE_LABELS:
            yield f"{path}.nodeSelector[{key}]: {DEPRECATED_NODE_LABELS[key]}"
    yield from _node_affinity((spec.get("affinity") or {}).get("nodeAffinity") or {}, f"{path}.affinity.nodeAffinity")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        at, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey", "")
        if key in DEPRECATED_NODE_LABELS:
            yield f"{at}.topologyKey: {key} is {DEPRECATED_NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{at}.labelSelector: {_NO_SELECTOR}"
    for key, message in _DEPRECATED_ANNOTATIONS.items():
        if key in annotations:
            yield f"{prefix}metadata.annotations[{key}]: {message}"
    yield from _volumes(spec.get("volumes") or (), f"{path}.volumes")
    yield from _repeated(spec.get("hostAliases") or (), "ip", f"{path}.hostAliases")
    yield from _repeated(spec.get("imagePullSecrets") or (), "name", f"{path}.imagePullSecrets")
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'
    yield from fractions(spec.get("overhead") or {}, ("memory", "ephemeral-storage"), f"{path}.overhead")
    profile = (spec.get("securityContext") or {}).get("seccompProfile")
    if profile is None and SECCOMP_POD in annotations:
        yield _use_seccomp_field(prefix, SECCOMP_POD)
    yield from _containers(spec, annotations, path, prefix)
    yield from _ports(spec, path)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        rule = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {rule}"
    yield from _pod_affinity(spec.get("affinity") or {}, f"{path}.affinity")
    for index, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from address_warnings(server, f"{path}.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from address_warnings(alias.get("ip", ""), f"{path}.hostAliases[{index}].ip")


def _use_seccomp_field(prefix: str, key: str) -> str:
    return f'{prefix}metadata.annotations[{key}]: non-functional in v1.27+; use the "seccompProfile" field instead'


def node_term_warnings(term: Spec, path: str, *, judge_values: bool = False) -> Iterator[str]:
    """Yield what is odd about requirements on a node's labels; preferences may have values that no label has."""
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        at, key = f"{path}.matchExpressions[{index}]", requirement.get("key", "")
        if key in DEPRECATED_NODE_LABELS:
            yield f"{at}.key: {key} is {DEPRECATED_NODE_LABELS[key]}"
        for number, value in enumerate(requirement.get("values") or () if judge_values else ()):
            for wrong in label_value(value):
                yield f"{at}.values[{number}]: {value} is invalid, {wrong}"


def _node_affinity(affinity: Spec, path: str) -> Iterator[str]:
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        yield from node_term_warnings(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{index}].preference"
        yield from node_term_warnings(preferred.get("preference") or {}, at, judge_values=True)


def _pod_affinity(affinity: Spec, path: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for index, term in enumerate(terms.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{path}.{kind}.{_REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
        for index, weighted in enumerate(terms.get(_PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                yield f"{path}.{kind}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


def _repeated(items: Sequence[Spec], field: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        value = item.get(field, "")
        if value in seen:
            yield f"{path}[{index}].{field}: duplicate {field} {go_quote(value)}"
        seen.add(value)


def fractions(amounts: Mapping[str, Any], names: Sequence[str], path: str) -> Iterator[str]:
    """Yield which of these amounts are not whole bytes."""
    for name in names:
        if name in amounts and quantity(amounts[name]).milli_value % 1000:
            yield f'{path}[{name}]: fractional byte value "{amounts[name]}" is invalid, must be an integer'


def claim_fractions(spec: Spec, path: str) -> Iterator[str]:
    """Yield which amounts of storage that a claim asks for are not whole bytes."""
    for part in ("requests", "limits"):
        amounts = (spec.get("resources") or {}).get(part) or {}
        yield from fractions(amounts, ("storage",), f"{path}.resources.{part}")


def _containers(spec: Spec, annotations: Mapping[str, str], path: str, prefix: str) -> Iterator[str]:
    for container, at in containers_of(spec, path):
        key = SECCOMP_CONTAINER + container.get("name", "")
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        if profile is None and key in annotations:
            yield _use_seccomp_field(prefix, key)
        resources = container.get("resources") or {}
        for name in ("memory", "ephemeral-storage"):
            for part in ("limits", "requests"):
                yield from fractions(resources.get(part) or {}, (name,), f"{at}.resources.{part}")
        seen: set[str] = set()
        for index, variable in enumerate(container.get("env") or ()):
            name, value = variable.get("name", ""), variable.get("value", "")
            reference = f"$({name})"
            hidden = variable.get("valueFrom") is not None or value == reference or reference not in value
            if name in seen and hidden:
                what = f"hides previous definition of {go_quote(name)}, which may be dropped when using apply"
                yield f"{at}.env[{index}]: {what}"
            seen.add(name)


class _Port(NamedTuple):
    path: str
    address: str
    number: int


def _ports(spec: Spec, path: str) -> Iterator[str]:
    taken: dict[tuple[int, str], list[_Port]] = {}
    named: dict[str, str] = {}
    repeated: list[str] = []
    for container, at in containers_of(spec, path):
        for index, port in enumerate(container.get("ports") or ()):
            here = _Port(f"{at}.ports[{index}]", port.get("hostIP", ""), port.get("hostPort", 0))
            others = taken.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for other in others:
                if how := _clash(here, other):
                    yield f"{here.path}: {how} port definition with {other.path}"
            others.append(here)
            if name := port.get("name"):
                if name in named:
                    what = f"duplicate port name {go_quote(name)} with {named[name]}"
                    rule = f"services and probes that select ports by name will use {named[name]}"
                    repeated.append(f"{here.path}: {what}, {rule}")
                else:
                    named[name] = here.path
    yield from repeated


def _clash(one: _Port, other: _Port) -> str:
    if (one.address, one.number) == (other.address, other.number):
        return "duplicate"
    if not one.number or not other.number:
        return "overlapping"
    ambiguous = one.number == other.number and (not one.address) != (not other.address)
    return "dangerously ambiguous" if ambiguous else ""


def _volumes(volumes: Sequence[Spec], path: str) -> Iterator[str]:
    for index, volume in enumerate(volumes):
        for field, (shown, message) in _DEPRECATED_VOLUMES.items():
            if volume.get(field) is not None:
                yield f"{path}[{index}].{shown}: {message}"
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is not None:
            at = f"{path}[{index}].ephemeral.volumeClaimTemplate.spec"
            yield from claim_fractions(template.get("spec") or {}, at)
    for volume in volumes:
        yield from _overlaps(volume)


class _File(NamedTuple):
    path: str
    source: str

    def __str__(self) -> str:
        return f"{go_quote(self.path)} ({self.source})" if self.source else go_quote(self.path)


def _overlaps(volume: Spec) -> Iterator[str]:
    """Yield which files of a volume would lie in each other's place."""
    name = go_quote(volume.get("name", ""))
    for field, title, key in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        if (source := volume.get(field)) is not None:
            files = [_File(item.get("path", "").rstrip("/"), "") for item in source.get("items") or ()]
            yield from _colliding(files, f"volume {name} ({title} {go_quote(source.get(key, ''))})")
    if (downward := volume.get("downwardAPI")) is not None:
        files = [_File(item.get("path", "").rstrip("/"), "") for item in downward.get("items") or ()]
        yield from _colliding(files, f"volume {name} (DownwardAPI)")
    files = []
    for source in (volume.get("projected") or {}).get("sources") or ():
        if not source:
            yield f"volume {name} (Projected) has no sources provided"
        files += _projected_files(source)
    yield from _colliding(files, f"volume {name} (Projected)")


def _projected_files(source: Spec) -> list[_File]:
    for field, title in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if (files := source.get(field)) is not None and files.get("items"):
            what = f"{title} {go_quote(files.get('name', ''))}"
            return [_File(item.get("path", "").rstrip("/"), what) for item in files["items"]]
    if (downward := source.get("downwardAPI")) is not None and downward.get("items"):
        return [_File(item.get("path", "").rstrip("/"), "DownwardAPI") for item in downward["items"]]
    if (token := source.get("serviceAccountToken")) is not None:
        return [_File(token.get("path", "").rstrip("/"), "ServiceAccountToken")]
    return []


def _colliding(files: Sequence[_File], where: str) -> Iterator[str]:
    for index, file in enumerate(files):
        for other in files[:index] if file.path else ():
            inside = f"{other.path}/".startswith(f"{file.path}/") or f"{file.path}/".startswith(f"{other.path}/")
            if other.path and inside:
                yield f"{where}: overlapping paths: {file} with {other}"
