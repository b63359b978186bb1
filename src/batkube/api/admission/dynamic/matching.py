"""Which writes a policy is about: by kind, operation, name, and labels of the object and of its namespace.

Kubernetes: apiserver/pkg/admission/plugin/policy/matching and plugin/webhook/predicates.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from batkube.api.admission.request import AdmissionRequest
from batkube.cluster.kinds import Resource
from batkube.cluster.object_meta import with_metadata
from batkube.cluster.selectors import selector_of
from batkube.cluster.store import Key, KubeObject

_WILDCARD = "*"


def scope_matches(scope: KubeObject, attempt: AdmissionRequest) -> bool:
    """Return whether a write is one that `scope` (matchConstraints, matchResources) means."""
    if not selectors_match(scope, attempt):
        return False
    any_version = scope.get("matchPolicy", "Equivalent") == "Equivalent"
    if any(rule_matches(rule, attempt, any_version) for rule in scope.get("excludeResourceRules") or ()):
        return False
    rules = scope.get("resourceRules")
    return not rules or any(rule_matches(rule, attempt, any_version) for rule in rules)


class VersionConverter(Protocol):
    """The versions of kinds, as far as admission needs them."""

    def of_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """Return a kind in a version, or None."""

    def to_version(self, value: KubeObject, written_in: Resource, target: Resource) -> KubeObject:
        """Return an object in the version of `target`: one in the version of a request, or a stored one."""

    def decode_and_default(self, resource: Resource, value: KubeObject, *, strict: bool = False) -> KubeObject:
        """Return an object that somebody changed in canonical form, with defaults; `strict` refuses unknown fields."""


def versioned_objects(
    attempt: AdmissionRequest, target: Resource, versions: VersionConverter
) -> tuple[KubeObject | None, KubeObject | None]:
    """Return the object of an attempt, and the one before it, as others see them: in a version, and with their own."""
    old, value = (
        attempt.old,
        None if attempt.is_deletion else versions.to_version(attempt.value, attempt.resource, target),
    )
    if old is None:
        return value, None
    version = str(attempt.store.version_of(attempt.resource.storage, attempt.key) or "")
    old = with_metadata(versions.to_version(old, attempt.resource, target), resourceVersion=version)
    if value is not None and "resourceVersion" not in (value.get("metadata") or {}):
        value = with_metadata(value, resourceVersion=version)
    return value, old


def matched_resource(
    scope: KubeObject, field: str, attempt: AdmissionRequest, versions: VersionConverter
) -> Resource | None:
    """Return the kind in the version that a rule in `field` names: that of the request if any does, or an equivalent.

    None if no rule means the write at all.
    """
    rules, resource = scope.get(field) or (), attempt.resource
    if any(rule_matches(rule, attempt, any_version=False) for rule in rules):
        return resource
    if scope.get("matchPolicy", "Equivalent") == "Equivalent":
        for rule in rules:
            if rule_matches(rule, attempt, any_version=True):
                for version in rule["apiVersions"]:
                    other = versions.of_kind(resource.group, version, resource.kind)
                    if other is not None:
                        return other
    return None


def selectors_match(scope: KubeObject, attempt: AdmissionRequest) -> bool:
    """Return whether the object of a write and its namespace have the labels that `scope` asks for."""
    return _namespace_matches(scope, attempt) and _object_matches(scope, attempt)


def rule_matches(rule: KubeObject, attempt: AdmissionRequest, any_version: bool) -> bool:
    """Return whether a write is of a kind and an operation that a rule means, in its version or in any."""
    resource = attempt.resource
    names, scope = rule.get("resourceNames") or (), rule.get("scope", _WILDCARD)
    return (
        _contains(rule.get("operations") or (), attempt.operation)
        and _contains(rule.get("apiGroups") or (), resource.group)
        and (any_version or _contains(rule.get("apiVersions") or (), resource.version))
        and _resource_matches(rule.get("resources") or (), resource.plural, attempt.subresource)
        and (not names or (attempt.name or attempt.value.get("metadata", {}).get("name")) in names)
        # A Namespace is of the cluster, though it is also in itself.
        and (scope == _WILDCARD or (scope == "Namespaced") == resource.namespaced)
    )


def _contains(patterns: Collection[str], text: str) -> bool:
    return _WILDCARD in patterns or text in patterns


def _resource_matches(patterns: Collection[str], plural: str, subresource: str) -> bool:
    """Return whether a resource is meant: `pods`, `pods/*`, `*`, `*/scale`, `*/*`."""
    for pattern in patterns:
        name, slash, below = pattern.partition("/")
        if name in (_WILDCARD, plural) and (below in (_WILDCARD, subresource) if slash else not subresource):
            return True
    return False


def _namespace_matches(scope: KubeObject, attempt: AdmissionRequest) -> bool:
    selector = scope.get("namespaceSelector")
    if not selector:
        return True
    if attempt.resource.storage == "namespaces":
        of = attempt.old if attempt.is_deletion and attempt.old else attempt.value
        labels = of.get("metadata", {}).get("labels")
    elif attempt.namespace:
        namespace = attempt.store.get("namespaces", Key(attempt.namespace))
        labels = None if namespace is None else namespace["metadata"].get("labels")
    else:
        return True  # objects of the cluster are in no namespace that could be left out
    return selector_of(selector).matches(labels)


def _object_matches(scope: KubeObject, attempt: AdmissionRequest) -> bool:
    """Return whether the object as it is to be, or as it was, has the labels wanted."""
    wanted = scope.get("objectSelector")
    if not wanted:
        return True
    selector = selector_of(wanted)
    return any(
        one is not None and selector.matches((one.get("metadata") or {}).get("labels"))
        for one in (attempt.value, attempt.old)
    )
