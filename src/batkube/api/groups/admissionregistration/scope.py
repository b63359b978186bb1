"""What expressions of webhooks and policies may talk of, with types as far as the real server knows them.

Kubernetes: apiserver/pkg/admission/plugin/cel/compile.go, BuildRequestType and BuildNamespaceType. Objects and
parameters may be of any kind; `authorizer` is beyond us, and who uses it is not checked.
"""

from __future__ import annotations

from collections.abc import Iterable

from batkube.api.cel.checking import Scope
from batkube.api.cel.types import BEYOND, BOOL, DYN, INT, TEXT, CelType, list_of, map_of

_TEXTS = list_of(TEXT)
_TIME = CelType("timestamp")


def _of_texts(name: str, fields: Iterable[str]) -> CelType:
    return CelType(f"kubernetes.{name}", fields=dict.fromkeys(fields, TEXT))


_KIND = _of_texts("GroupVersionKind", ("group", "version", "kind"))
_RESOURCE = _of_texts("GroupVersionResource", ("group", "version", "resource"))
_USER = {"username": TEXT, "uid": TEXT, "groups": _TEXTS, "extra": map_of(_TEXTS)}
_REQUEST: dict[str, CelType] = {
    **dict.fromkeys(("kind", "requestKind"), _KIND),
    **dict.fromkeys(("resource", "requestResource"), _RESOURCE),
    **dict.fromkeys(("subResource", "requestSubResource", "name", "namespace", "operation"), TEXT),
    "userInfo": CelType("kubernetes.UserInfo", fields=_USER),
    "dryRun": BOOL,
    "options": DYN,
}
_CONDITION: dict[str, CelType] = {
    **dict.fromkeys(("status", "type", "message", "reason"), TEXT),
    "lastTransitionTime": _TIME,
}
_METADATA: dict[str, CelType] = {
    **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), TEXT),
    **dict.fromkeys(("labels", "annotations"), map_of(TEXT)),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
    **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
    "finalizers": _TEXTS,
}
_STATUS = {"conditions": list_of(CelType("kubernetes.NamespaceCondition", fields=_CONDITION)), "phase": TEXT}
_NAMESPACE = {
    "metadata": CelType("kubernetes.NamespaceMetadata", fields=_METADATA),
    "spec": CelType("kubernetes.NamespaceSpec", fields={"finalizers": _TEXTS}),
    "status": CelType("kubernetes.NamespaceStatus", fields=_STATUS),
}

SCOPE: Scope = {
    **dict.fromkeys(("object", "oldObject"), DYN),
    "authorizer": CelType(BEYOND),
    "request": CelType("kubernetes.AdmissionRequest", fields=_REQUEST),
    "namespaceObject": CelType("kubernetes.Namespace", fields=_NAMESPACE),
}


def with_parameters(has_kind: bool) -> Scope:
    """Return the scope of a policy, which has parameters if it names their kind."""
    return {**SCOPE, "params": DYN} if has_kind else SCOPE


def with_variables(scope: Scope, types: dict[str, CelType]) -> Scope:
    """Return a scope with variables of these types."""
    return {**scope, "variables": CelType("kubernetes.variables", fields=types)}
