"""APIServices: which server serves a group and version. Kubernetes: kube-aggregator/pkg/apis/apiregistration.

They are stored, but requests are never proxied to other servers. Local APIServices are always available.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.kind_model.defaults import ensure_struct
from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import PROTECTED_FIELDS_AND_METADATA, Strategy
from batkube.api.printing.ages import age
from batkube.api.validation.metadata import check_built_in_metadata
from batkube.api.validation.names import ErrorMessages, dns_1035_label, path_segment, port_number
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidationRules, metadata_update_then, validate_metadata_update
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant, rfc3339
from batkube.text.go_format import go_quote
from batkube.text.label_syntax import dns_subdomain

_STATUSES = ("True", "False", "Unknown")
_GROUP_PRIORITY_MAX, _VERSION_PRIORITY_MAX = 20_000, 1_000

# Defaults


def set_api_service_defaults(obj: dict[str, Any]) -> None:
    """Set the default port of the service reference."""
    service = ensure_struct(obj, "spec").get("service")
    if service is not None:
        service.setdefault("port", 443)


# Strategy


def prepare_api_service_create(service: dict[str, Any], context: StrategyContext) -> None:
    """Set the condition Available of a local APIService."""
    if (service.get("spec") or {}).get("service") is None:
        condition = {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": rfc3339(context.now),
            "reason": "Local",
            "message": "Local APIServices are always available",
        }
        service["status"] = {"conditions": [condition]}


# Validation


def validate_api_service(value: Object, problems: Problems) -> None:
    """Check an APIService: its name is derived from group and version; a local one has no CA (ValidateAPIService)."""
    spec = value.get("spec") or {}
    group, version = spec.get("group", ""), spec.get("version", "")
    required = f"{version}.{group}"

    def name_rule(name: str, prefix: bool) -> ErrorMessages:
        wrong = path_segment(name, False)
        return wrong or (() if name == required else (f'must be `spec.version+"."+spec.group`: {go_quote(required)}',))

    check_built_in_metadata(value["metadata"], name_rule, False, problems)
    if group:
        problems.all_invalid("spec.group", group, dns_subdomain(group))
    elif version != "v1":
        problems.required("spec.group", "only v1 may have an empty group and it better be legacy kube")
    problems.all_invalid("spec.version", version, dns_1035_label(version))
    for field, most in (("groupPriorityMinimum", _GROUP_PRIORITY_MAX), ("versionPriority", _VERSION_PRIORITY_MAX)):
        priority = spec.get(field, 0)
        if not 0 < priority <= most:
            problems.invalid(f"spec.{field}", priority, f"must be positive and less than {most}")
    _check_service_reference(spec, problems)


def _check_service_reference(spec: Mapping[str, Any], problems: Problems) -> None:
    """Check the service reference and the CA bundle."""
    service, bundle, skips = spec.get("service"), spec.get("caBundle"), spec.get("insecureSkipTLSVerify", False)
    if service is None:
        if bundle:
            size = len(base64.b64decode(bundle))
            problems.invalid("spec.caBundle", f"{size} bytes", "local APIServices may not have a caBundle")
        if skips:
            detail = "local APIServices may not have insecureSkipTLSVerify"
            problems.invalid("spec.insecureSkipTLSVerify", skips, detail)
        return
    for field in ("namespace", "name"):
        if not service.get(field):
            problems.required(f"spec.service.{field}")
    if wrong := port_number(service.get("port", 0)):
        problems.invalid("spec.service.port", service.get("port", 0), f"port is not valid: {', '.join(wrong)}")
    if skips and bundle:
        problems.invalid("spec.insecureSkipTLSVerify", skips, "may not be true if caBundle is present")


def validate_api_service_status_update(new: Object, old: Object, problems: Problems) -> None:
    """Check the status of an APIService."""
    validate_metadata_update(new, old, problems)
    for index, condition in enumerate((new.get("status") or {}).get("conditions") or ()):
        if condition.get("status", "") not in _STATUSES:
            problems.not_supported(f"status.conditions[{index}].status", condition.get("status", ""), _STATUSES)


# Columns


def api_service_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of an APIService (kube-aggregator/pkg/registry/apiservice/etcd/etcd.go)."""
    spec, conditions = value.get("spec") or {}, (value.get("status") or {}).get("conditions") or ()
    service = spec.get("service")
    by = "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"
    available = next(
        (condition for condition in conditions if condition.get("type") == "Available"), {"status": "Unknown"}
    )
    status = available.get("status", "")
    if status != "True" and available.get("reason"):
        status = f"{status} ({available['reason']})"
    return [value["metadata"].get("name", ""), by, status, age(value, now)]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "apiservices.apiregistration.k8s.io": Kind(
        defaults={"v1": set_api_service_defaults},
        strategy=Strategy(protected_fields=PROTECTED_FIELDS_AND_METADATA, allow_unconditional_update=False),
        prepare_create=prepare_api_service_create,
        rules=ValidationRules(
            validate_api_service, metadata_update_then(validate_api_service), validate_api_service_status_update
        ),
        cells=api_service_cells,
    ),
}
