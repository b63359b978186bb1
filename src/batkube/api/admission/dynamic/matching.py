"""Match requests against the rules of policies and webhooks: kind, operation, name, and object and namespace labels.

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


def scope_matches(scope: KubeObject, request: AdmissionRequest) -> bool:
    """Return whether a request matches `scope` (matchConstraints or matchResources)."""
    if not selectors_match(scope, request):
        return False
    any_version = scope.get("matchPolicy", "Equivalent") == "Equivalent"
    if any(rule_matches(rule, request, any_version) for rule in scope.get("excludeResourceRules") or ()):
        return False
    rules = scope.get("resourceRules")
    return not rules or any(rule_matches(rule, request, any_version) for rule in rules)


class VersionConverter(Protocol):
    """Converts objects between the versions of their kind."""

    def of_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """Return the resource of a kind in a version, or None."""

    def to_version(self, value: KubeObject, written_in: Resource, target: Resource) -> KubeObject:
        """Convert an object from the version of a request, or from the storage version, to that of `target`."""

    def decode_and_default(self, resource: Resource, value: KubeObject, *, strict: bool = False) -> KubeObject:
        """Return a modified object in canonical form, with defaults; `strict` rejects unknown fields."""


def versioned_objects(
    request: AdmissionRequest, target: Resource, versions: VersionConverter
) -> tuple[KubeObject | None, KubeObject | None]:
    """Return the new and the old object in the version of `target`, with their resourceVersion."""
    old, value = (
        request.old,
        None if request.is_deletion else versions.to_version(request.value, request.resource, target),
    )
    if old is None:
        return value, None
    version = str(request.store.version_of(request.resource.storage, request.key) or "")
    old = with_metadata(versions.to_version(old, request.resource, target), resourceVersion=version)
    if value is not None and "resourceVersion" not in (value.get("metadata") or {}):
        value = with_metadata(value, resourceVersion=version)
    return value, old


def matched_resource(
    scope: KubeObject, field: str, request: AdmissionRequest, versions: VersionConverter
) -> Resource | None:
    """Return the resource in a version that a rule in `field` names: the request's own, or else an equivalent one.

    None if no rule matches the request.
    """
    rules, resource = scope.get(field) or (), request.resource
    if any(rule_matches(rule, request, any_version=False) for rule in rules):
        return resource
    if scope.get("matchPolicy", "Equivalent") == "Equivalent":
        for rule in rules:
            if rule_matches(rule, request, any_version=True):
                for version in rule["apiVersions"]:
                    other = versions.of_kind(resource.group, version, resource.kind)
                    if other is not None:
                        return other
    return None


def selectors_match(scope: KubeObject, request: AdmissionRequest) -> bool:
    """Return whether the labels of the object and its namespace match the selectors of `scope`."""
    return _namespace_matches(scope, request) and _object_matches(scope, request)


def rule_matches(rule: KubeObject, request: AdmissionRequest, any_version: bool) -> bool:
    """Return whether a rule matches the request's operation and resource, in its version or (`any_version`) in any."""
    # Kubernetes: apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go, Matches.
    resource = request.resource
    names, scope = rule.get("resourceNames") or (), rule.get("scope", _WILDCARD)
    return (
        _contains(rule.get("operations") or (), request.operation)
        and _contains(rule.get("apiGroups") or (), resource.group)
        and (any_version or _contains(rule.get("apiVersions") or (), resource.version))
        and _resource_matches(rule.get("resources") or (), resource.plural, request.subresource)
        and (not names or (request.name or request.value.get("metadata", {}).get("name")) in names)
        # A Namespace is cluster-scoped, although its request has a namespace.
        and (scope == _WILDCARD or (scope == "Namespaced") == resource.namespaced)
    )


def _contains(patterns: Collection[str], text: str) -> bool:
    return _WILDCARD in patterns or text in patterns


def _resource_matches(patterns: Collection[str], plural: str, subresource: str) -> bool:
    """Return whether a pattern (`pods`, `pods/*`, `*`, `*/scale`, `*/*`) matches the resource."""
    for pattern in patterns:
        name, slash, below = pattern.partition("/")
        if name in (_WILDCARD, plural) and (below in (_WILDCARD, subresource) if slash else not subresource):
            return True
    return False


def _namespace_matches(scope: KubeObject, request: AdmissionRequest) -> bool:
    selector = scope.get("namespaceSelector")
    if not selector:
        return True
    if request.resource.storage == "namespaces":
        obj = request.old if request.is_deletion and request.old else request.value
        labels = obj.get("metadata", {}).get("labels")
    elif request.namespace:
        namespace = request.store.get("namespaces", Key(request.namespace))
        labels = None if namespace is None else namespace["metadata"].get("labels")
    else:
        return True  # the selector does not apply to cluster-scoped objects
    return selector_of(selector).matches(labels)


def _object_matches(scope: KubeObject, request: AdmissionRequest) -> bool:
    """Return whether the new or the old object matches the object selector."""
    object_selector = scope.get("objectSelector")
    if not object_selector:
        return True
    selector = selector_of(object_selector)
    return any(
        obj is not None and selector.matches((obj.get("metadata") or {}).get("labels"))
        for obj in (request.value, request.old)
    )
