"""Namespaces, config maps, secrets, service accounts and runtime classes (Kubernetes: pkg/apis/core/validation)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from batkube.api.checks.go_values import go_struct
from batkube.api.checks.metadata import (
    check_built_in_metadata,
    check_kube_finalizer,
    check_labels,
    check_metadata,
    check_metadata_update,
)
from batkube.api.checks.names import config_key, label_name, qualified_name, size, subdomain_name
from batkube.api.checks.problems import IMMUTABLE, Problems
from batkube.api.checks.quantities import check_container_resource, check_requirements
from batkube.api.checks.rules import Object, Rules, metadata_only, metadata_update, rechecked, updated_then
from batkube.api.decoding.json_syntax import ParseError, check_syntax
from batkube.api.groups.core.pods.scheduling import check_tolerations

_LIMIT = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_SERVICE_ACCOUNT = "kubernetes.io/service-account.name"


def _check_frozen(new: Object, old: Object, fields: tuple[str, ...], problems: Problems) -> None:
    """Check that an object which was declared immutable stays so and as it is."""
    if old.get("immutable"):
        if not new.get("immutable"):
            problems.forbidden("immutable", _FROZEN)
        for field in fields:
            if (new.get(field) or {}) != (old.get(field) or {}):
                problems.forbidden(field, _FROZEN)


def decoded_size(text: str) -> int:
    """Return how many bytes a base64 text stands for."""
    return len(text) // 4 * 3 - text[-2:].count("=")


def _config_map(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    data, binary = value.get("data") or {}, value.get("binaryData") or {}
    total = 0
    for key, text in data.items():
        problems.all_invalid(f"data[{key}]", key, config_key(key))
        if key in binary:
            problems.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        total += size(text)
    for key, text in binary.items():
        problems.all_invalid(f"binaryData[{key}]", key, config_key(key))
        total += decoded_size(text)
    if total > _LIMIT:
        problems.too_long("[]", _LIMIT)


def _update_config_map(new: Object, old: Object, problems: Problems) -> None:
    metadata_update(new, old, problems)
    _check_frozen(new, old, ("data", "binaryData"), problems)
    _config_map(new, problems)


def _secret(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    data: Mapping[str, str] = value.get("data") or {}
    for key in data:
        problems.all_invalid(f"data[{key}]", key, config_key(key))
    if sum(decoded_size(text or "") for text in data.values()) > _LIMIT:
        problems.too_long("data", _LIMIT)
    kind = value.get("type", "")
    if kind == "kubernetes.io/service-account-token":
        if not (value["metadata"].get("annotations") or {}).get(_SERVICE_ACCOUNT):
            problems.required(f"metadata.annotations[{_SERVICE_ACCOUNT}]")
    elif kind in ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson"):
        _check_docker_config(data, f".{kind.removeprefix('kubernetes.io/')}", problems)
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            problems.required("data[username]")
            problems.required("data[password]")
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            problems.required("data[ssh-privatekey]")
    elif kind == "kubernetes.io/tls":
        for key in ("tls.crt", "tls.key"):
            if key not in data:
                problems.required(f"data[{key}]")


def _check_docker_config(data: Mapping[str, str], key: str, problems: Problems) -> None:
    if key not in data:
        problems.required(f"data[{key}]")
        return
    content = base64.b64decode(data[key] or "")
    wrong = ""
    try:
        check_syntax(content)
    except ParseError as problem:
        wrong = str(problem)
    kinds = {b'"': "string", b"[": "array", b"t": "bool", b"f": "bool", b"n": "", b"{": ""}
    if not wrong and (kind := kinds.get(content.strip()[:1], "number")):
        wrong = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    if wrong:
        problems.invalid(f"data[{key}]", "<secret contents redacted>", wrong)


def _update_secret(new: Object, old: Object, problems: Problems) -> None:
    metadata_update(new, old, problems)
    problems.unchanged("type", new.get("type", ""), old.get("type", ""))
    _check_frozen(new, old, ("data",), problems)
    _secret(new, problems)


def _namespace(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], label_name, False, problems)
    for finalizer in value.get("spec", {}).get("finalizers") or ():
        _check_finalizer(finalizer, "spec.finalizers", problems)


def _check_finalizer(finalizer: str, path: str, problems: Problems) -> None:
    problems.all_invalid(path, finalizer, qualified_name(finalizer))
    check_kube_finalizer(finalizer, path, problems)


def _namespace_status(new: Object, old: Object, problems: Problems) -> None:
    metadata_update(new, old, problems)
    phase = new.get("status", {}).get("phase", "")
    if "deletionTimestamp" not in new["metadata"]:
        if phase != "Active":
            problems.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")
    elif phase != "Terminating":
        problems.invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")


def _finalize_namespace(new: Object, old: Object, problems: Problems) -> None:
    metadata_update(new, old, problems)
    for index, finalizer in enumerate(new.get("spec", {}).get("finalizers") or ()):
        _check_finalizer(finalizer, f"spec.finalizers[{index}]", problems)


def _runtime_class(value: Object, problems: Problems) -> None:
    check_metadata(value["metadata"], subdomain_name, False, problems)
    handler = value.get("handler", "")
    problems.all_invalid("handler", handler, label_name(handler, False))
    if (overhead := value.get("overhead")) is not None:
        limits = {"limits": overhead.get("podFixed") or {}}
        check_requirements(limits, check_container_resource, frozenset(), "overhead", problems)
    if (scheduling := value.get("scheduling")) is not None:
        check_labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector", problems)
        _check_own_tolerations(scheduling.get("tolerations") or [], problems)


def _check_own_tolerations(tolerations: list[dict[str, Any]], problems: Problems) -> None:
    check_tolerations(tolerations, "scheduling.tolerations.tolerations", problems)
    seen: set[tuple[Any, ...]] = set()
    for index, toleration in enumerate(tolerations):
        key = tuple(toleration.get(field, "") for field in ("key", "operator", "value", "effect"))
        if key in seen:
            shown = go_struct("core.Toleration", toleration)
            problems.duplicate(f"scheduling.tolerations[{index}]", shown)
        seen.add(key)


def _update_runtime_class(new: Object, old: Object, problems: Problems) -> None:
    check_metadata_update(new["metadata"], old["metadata"], problems)
    if new.get("handler", "") != old.get("handler", ""):
        problems.invalid("handler", new.get("handler", ""), IMMUTABLE)


_service_account = metadata_only(subdomain_name, True)

RULES = {
    "configmaps": Rules(_config_map, _update_config_map),
    "secrets": Rules(_secret, _update_secret),
    "namespaces": Rules(
        _namespace, rechecked(_namespace, metadata_update), _namespace_status, {"finalize": _finalize_namespace}
    ),
    "serviceaccounts": Rules(_service_account, updated_then(_service_account)),
    "runtimeclasses.node.k8s.io": Rules(_runtime_class, rechecked(_runtime_class, _update_runtime_class)),
}
