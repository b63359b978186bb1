"""API priority and fairness: FlowSchemas and PriorityLevelConfigurations.

Kubernetes: pkg/apis/flowcontrol and pkg/registry/flowcontrol.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.defaults import Defaults, ensure_struct, fill_absent, fill_empty
from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import PROTECTED_FIELDS_AND_METADATA, SPEC, with_generation
from batkube.api.printing.ages import age
from batkube.api.printing.cell_texts import NONE
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_built_in_metadata
from batkube.api.validation.names import label_name, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidationRules
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
_METHODS = ("ByNamespace", "ByUser")
_MAX_QUEUES = 10**7
_NAMESPACES = "each member of this list must be '*' or a DNS-1123 label; "
_EXEMPT: Defaults = {"nominalConcurrencyShares": 0, "lendablePercent": 0}
_LIMITED: Defaults = {"nominalConcurrencyShares": 30, "lendablePercent": 0}
_QUEUING: Defaults = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}


# Defaults


def set_flow_schema_defaults(obj: dict[str, Any]) -> None:
    """Set the default matching precedence."""
    fill_empty(ensure_struct(obj, "spec"), {"matchingPrecedence": 1000})


def set_priority_level_defaults(obj: dict[str, Any]) -> None:
    """Set the default concurrency shares and queuing of a priority level."""
    spec = obj.get("spec") or {}
    if spec.get("exempt") is not None:
        fill_absent(spec["exempt"], _EXEMPT)
    limited = spec.get("limited")
    if limited is not None:
        fill_absent(limited, _LIMITED)
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            fill_empty(queuing, _QUEUING)


# Validation


def _check_schema_spec(spec: Mapping[str, Any], name: str, problems: Problems) -> None:
    precedence, path = spec.get("matchingPrecedence", 0), "spec.matchingPrecedence"
    if precedence <= 0:
        problems.invalid(path, precedence, "must be a positive value")
    if precedence > 10000:
        problems.invalid(path, precedence, "must not be greater than 10000")
    if precedence == 1 and name != "exempt":
        problems.invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type", "") not in _METHODS:
        go_text = go_struct("flowcontrol.FlowDistinguisherMethod", method)
        problems.not_supported("spec.distinguisherMethod.type", go_text, _METHODS)
    if level := spec.get("priorityLevelConfiguration", {}).get("name"):
        problems.all_invalid("spec.priorityLevelConfiguration.name", level, subdomain_name(level, False))
    else:
        problems.required("spec.priorityLevelConfiguration.name", "must reference a priority level")
    for index, rule in enumerate(spec.get("rules") or ()):
        _check_rule(rule, f"spec.rules[{index}]", problems)


def _check_rule(rule: Mapping[str, Any], path: str, problems: Problems) -> None:
    subjects = rule.get("subjects") or ()
    for index, subject in enumerate(subjects):
        _check_subject(subject, f"{path}.subjects[{index}]", problems)
    if not subjects:
        problems.required(f"{path}.subjects", "subjects must contain at least one value")
    resources, url_rules = rule.get("resourceRules") or (), rule.get("nonResourceRules") or ()
    if not resources and not url_rules:
        problems.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, resource in enumerate(resources):
        _check_resource_rule(resource, f"{path}.resourceRules[{index}]", problems)
    for index, url_rule in enumerate(url_rules):
        at = f"{path}.nonResourceRules[{index}]"
        _check_verbs(url_rule.get("verbs") or [], at, problems)
        _check_urls(url_rule.get("nonResourceURLs") or [], f"{at}.nonResourceURLs", problems)


def _check_subject(subject: Mapping[str, Any], path: str, problems: Problems) -> None:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        problems.not_supported(f"{path}.kind", kind, sorted(_SUBJECTS))
        return
    field = _SUBJECTS[kind]
    at, value = f"{path}.{field}", subject.get(field)
    if value is None:
        problems.required(at, f"{field} is required when subject kind is '{kind}'")
    elif not (name := value.get("name")):
        problems.required(f"{at}.name")
    elif kind == "ServiceAccount" and name != "*":
        problems.all_invalid(f"{at}.name", name, subdomain_name(name, False))
    if kind == "ServiceAccount" and value is not None:
        if namespace := value.get("namespace"):
            problems.all_invalid(f"{at}.namespace", namespace, label_name(namespace, False))
        else:
            problems.required(f"{at}.namespace", "must specify namespace for service account")
    for other_kind, other in _SUBJECTS.items():
        if other != field and subject.get(other) is not None:
            detail = f"{other} is forbidden when subject kind is not '{other_kind}'"
            problems.forbidden(f"{path}.{other}", detail)


def _check_verbs(verbs: list[str], path: str, problems: Problems) -> None:
    if not verbs:
        problems.required(f"{path}.verbs", "verbs must contain at least one value")
    elif "*" in verbs:
        if len(verbs) > 1:
            problems.invalid(f"{path}.verbs", verbs, "if '*' is present, must not specify other verbs")
    elif not set(verbs) <= set(_VERBS):
        problems.not_supported(f"{path}.verbs", verbs, _VERBS)


def _check_resource_rule(rule: Mapping[str, Any], path: str, problems: Problems) -> None:
    _check_verbs(rule.get("verbs") or [], path, problems)
    for field, singular, plural in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values = rule.get(field) or []
        if not values:
            problems.required(f"{path}.{field}", f"resource rules must supply at least one {singular}")
        elif len(values) > 1 and "*" in values:
            problems.invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {plural}")
    namespaces = rule.get("namespaces") or []
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        problems.required(f"{path}.namespaces", detail)
    elif "*" in namespaces:
        if len(namespaces) > 1:
            detail = "if '*' is present, must not specify other namespaces"
            problems.invalid(f"{path}.namespaces", namespaces, detail)
    else:
        for index, namespace in enumerate(namespaces):
            wrong = (_NAMESPACES + detail for detail in label_name(namespace, False))
            problems.all_invalid(f"{path}.namespaces[{index}]", namespace, wrong)


def _check_urls(urls: list[str], path: str, problems: Problems) -> None:
    if not urls:
        problems.required(path, "nonResourceURLs must contain at least one value")
    elif "*" in urls:
        if len(urls) > 1:
            problems.invalid(path, urls, "if '*' is present, must not specify other non-resource URLs")
    else:
        for index, url in enumerate(urls):
            if wrong := _url_problem(url):
                problems.invalid(f"{path}[{index}]", url, wrong)


def _url_problem(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    return "wildcard can only do suffix matching" if "*" in url.removesuffix("/*") else ""


def _check_conditions(value: Object, problems: Problems) -> None:
    seen: set[str] = set()
    for index, condition in enumerate(value.get("status", {}).get("conditions") or ()):
        kind = condition.get("type", "")
        if kind in seen:
            problems.duplicate(f"status.conditions[{index}].type", kind)
        seen.add(kind)
        if not kind:
            problems.required(f"status.conditions[{index}].type")


def _validate_status_update(new: Object, old: Object, problems: Problems) -> None:
    _check_conditions(new, problems)


def _validate_schema(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, False, problems)
    _check_schema_spec(value.get("spec", {}), value["metadata"].get("name", ""), problems)
    _check_conditions(value, problems)


def _validate_schema_update(new: Object, old: Object, problems: Problems) -> None:
    _validate_schema(new, problems)


def _validate_level(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, False, problems)
    spec = value.get("spec", {})
    kind, limited, exempt = spec.get("type", ""), spec.get("limited"), spec.get("exempt")
    if (value["metadata"].get("name") == "exempt") != (kind == "Exempt"):
        problems.invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    if kind == "Exempt":
        if limited is not None:
            problems.forbidden("spec.limited", "must be nil if the type is not Limited")
        if exempt is not None:
            _check_shares(exempt, "spec.exempt", problems)
    elif kind == "Limited":
        if exempt is not None:
            problems.forbidden("spec.exempt", "must be nil if the type is Limited")
        if limited is None:
            problems.required("spec.limited", "must not be empty when type is Limited")
        else:
            _check_limited(limited, "spec.limited", problems)
    else:
        problems.not_supported("spec.type", kind, ("Exempt", "Limited"))
    _check_conditions(value, problems)


def _check_number(config: Mapping[str, Any], field: str, path: str, detail: str, problems: Problems) -> None:
    if (number := config.get(field) or 0) < 0:
        problems.invalid(f"{path}.{field}", number, detail)


def _check_shares(config: Mapping[str, Any], path: str, problems: Problems) -> None:
    _check_number(config, "nominalConcurrencyShares", path, "must be a non-negative integer", problems)
    if not 0 <= (percent := config.get("lendablePercent") or 0) <= 100:
        problems.invalid(f"{path}.lendablePercent", percent, "must be between 0 and 100, inclusive")


def _check_limited(config: Mapping[str, Any], path: str, problems: Problems) -> None:
    _check_number(config, "nominalConcurrencyShares", path, "must be a non-negative integer", problems)
    response, at = config.get("limitResponse") or {}, f"{path}.limitResponse"
    kind, queuing = response.get("type", ""), response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            problems.forbidden(f"{at}.queuing", "must be nil if limited.limitResponse.type is not Limited")
    elif kind != "Queue":
        problems.not_supported(f"{at}.type", kind, ("Queue", "Reject"))
    elif queuing is None:
        problems.required(f"{at}.queuing", "must not be empty if limited.limitResponse.type is Limited")
    else:
        _check_queuing(queuing, f"{at}.queuing", problems)
    if not 0 <= (percent := config.get("lendablePercent") or 0) <= 100:
        problems.invalid(f"{path}.lendablePercent", percent, "must be between 0 and 100, inclusive")
    detail = "if specified, must be a non-negative integer"
    _check_number(config, "borrowingLimitPercent", path, detail, problems)


def _check_queuing(queuing: Mapping[str, Any], path: str, problems: Problems) -> None:
    length, queues, hand = (queuing.get(field, 0) for field in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        problems.invalid(f"{path}.queueLengthLimit", length, "must be positive")
    if queues <= 0:
        problems.invalid(f"{path}.queues", queues, "must be positive")
    elif queues > _MAX_QUEUES:
        problems.invalid(f"{path}.queues", queues, f"must not be greater than {_MAX_QUEUES}")
    if hand <= 0:
        problems.invalid(f"{path}.handSize", hand, "must be positive")
    elif hand > queues:
        problems.invalid(f"{path}.handSize", hand, f"should not be greater than queues ({queues})")
    elif _shuffle_shard_entropy_bits(queues, hand) > 60:
        detail = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than 60"
        problems.invalid(f"{path}.handSize", hand, detail)


def _shuffle_shard_entropy_bits(deck: int, hand: int) -> int:
    """Return the entropy in bits of a hand dealt from a deck (apiserver/pkg/util/shufflesharding)."""
    return math.ceil(math.log2(deck) * hand)


def _validate_level_update(new: Object, old: Object, problems: Problems) -> None:
    _validate_level(new, problems)


# Columns


def flow_schema_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a FlowSchema."""
    spec = value.get("spec", {})
    conditions = value.get("status", {}).get("conditions") or ()
    method = spec.get("distinguisherMethod")
    return [
        value["metadata"].get("name", ""),
        spec.get("priorityLevelConfiguration", {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        NONE if method is None else method.get("type", ""),
        age(value, now),
        next((condition.get("status", "") for condition in conditions if condition.get("type") == "Dangling"), "?"),
    ]


def flow_schema_sort_key(value: KubeObject) -> tuple[int, str]:
    """Return the sort key in a list of FlowSchemas: by matching precedence, then by name."""
    return value.get("spec", {}).get("matchingPrecedence", 0), value["metadata"].get("name", "")


def priority_level_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a PriorityLevelConfiguration."""
    spec = value.get("spec", {})
    limited = spec.get("limited")
    shares: Any = NONE if limited is None else limited.get("nominalConcurrencyShares") or 0
    queuing = (limited or {}).get("limitResponse", {}).get("queuing")
    fields = ("queues", "handSize", "queueLengthLimit")
    queue_cells: list[Any] = [NONE if queuing is None else queuing.get(field, 0) for field in fields]
    return [value["metadata"].get("name", ""), spec.get("type", ""), shares, *queue_cells, age(value, now)]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "flowschemas.flowcontrol.apiserver.k8s.io": Kind(
        defaults={"v1": set_flow_schema_defaults},
        strategy=with_generation(SPEC, keeps=PROTECTED_FIELDS_AND_METADATA),
        rules=ValidationRules(_validate_schema, _validate_schema_update, _validate_status_update),
        cells=flow_schema_cells,
        row_order=flow_schema_sort_key,
    ),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": Kind(
        defaults={"v1": set_priority_level_defaults},
        strategy=with_generation(SPEC, keeps=PROTECTED_FIELDS_AND_METADATA),
        rules=ValidationRules(_validate_level, _validate_level_update, _validate_status_update),
        cells=priority_level_cells,
    ),
}
