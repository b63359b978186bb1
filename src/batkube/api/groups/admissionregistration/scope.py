"""The variables of CEL expressions in webhooks and policies, with their types.

Objects and parameters may be of any kind, so they are `dyn`. The variable `authorizer` is not supported; expressions
that use it are not checked.

Kubernetes: apiserver/pkg/admission/plugin/cel/compile.go, BuildRequestType and BuildNamespaceType.
"""

from __future__ import annotations

from collections.abc import Iterable

from batkube.api.cel.checker import Scope
from batkube.api.cel.types import AUTHORIZER, BOOL, DYN, INT, TEXT, CelType, list_type, map_type

_STRING_LIST = list_type(TEXT)
_TIME = CelType("timestamp")


def _string_fields_type(name: str, fields: Iterable[str]) -> CelType:
    return CelType(f"kubernetes.{name}", fields=dict.fromkeys(fields, TEXT))


_KIND = _string_fields_type("GroupVersionKind", ("group", "version", "kind"))
_RESOURCE = _string_fields_type("GroupVersionResource", ("group", "version", "resource"))
_USER = {"username": TEXT, "uid": TEXT, "groups": _STRING_LIST, "extra": map_type(_STRING_LIST)}
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
    **dict.fromkeys(("labels", "annotations"), map_type(TEXT)),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
    **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
    "finalizers": _STRING_LIST,
}
_STATUS = {"conditions": list_type(CelType("kubernetes.NamespaceCondition", fields=_CONDITION)), "phase": TEXT}
_NAMESPACE = {
    "metadata": CelType("kubernetes.NamespaceMetadata", fields=_METADATA),
    "spec": CelType("kubernetes.NamespaceSpec", fields={"finalizers": _STRING_LIST}),
    "status": CelType("kubernetes.NamespaceStatus", fields=_STATUS),
}

REQUEST_SCOPE: Scope = {
    **dict.fromkeys(("object", "oldObject"), DYN),
    "authorizer": CelType(AUTHORIZER),
    "request": CelType("kubernetes.AdmissionRequest", fields=_REQUEST),
    "namespaceObject": CelType("kubernetes.Namespace", fields=_NAMESPACE),
}


def scope_with_parameters(has_kind: bool) -> Scope:
    """Return the scope of a policy, which has `params` if it sets paramKind."""
    return {**REQUEST_SCOPE, "params": DYN} if has_kind else REQUEST_SCOPE


def scope_with_variables(scope: Scope, types: dict[str, CelType]) -> Scope:
    """Return the scope with variables of these types."""
    return {**scope, "variables": CelType("kubernetes.variables", fields=types)}
