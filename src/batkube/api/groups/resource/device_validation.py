"""Validation of devices: in ResourceSlices, DeviceClasses and ResourceClaims.

Fields of feature gates that are off by default in v1.34 (device taints, partitionable devices, consumable capacity,
binding conditions) are dropped before validation.

Kubernetes: pkg/apis/resource/validation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from batkube.api.cel.checker import CEL_NAMESPACE
from batkube.api.cel.types import DYN, TEXT, CelType, map_type
from batkube.api.groups.core.volumes.source_validation import check_csi_driver_name
from batkube.api.groups.kind_model.cel_expressions import check_expression
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_label_name
from batkube.api.validation.names import byte_length, c_identifier, dns_subdomain, label_value
from batkube.api.validation.problems import Problems

CheckItem = Callable[[Any, str, Problems], None]

_ID_MAX = 32
_KEY_MAX = 63 + 1 + _ID_MAX
_VALUE_MAX = 64
_EFFECTS = ("NoExecute", "NoSchedule")
_NUMBER = r"(0|[1-9][0-9]*)"
_PRE = r"(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = r"[0-9a-zA-Z-]+"
#: The fields of `device` in CEL selectors (Kubernetes: dynamic-resource-allocation/cel/compile.go).
_DEVICE = CelType(
    "kubernetes.DRADevice",
    fields={
        "driver": TEXT,
        "attributes": map_type(map_type(DYN)),
        "capacity": map_type(map_type(CelType("kubernetes.Quantity"))),
    },
)
_is_version = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRE}(\.{_PRE})*)?(\+{_BUILD}(\.{_BUILD})*)?").fullmatch


def check_items(items: Sequence[Any], limit: int, check: CheckItem, path: str, problems: Problems) -> None:
    """Check every item, then the number of items (Kubernetes: validateSlice)."""
    for index, item in enumerate(items):
        check(item, f"{path}[{index}]", problems)
    if 0 <= limit < len(items):
        problems.too_many(path, len(items), limit)


def check_unique_items(
    items: Sequence[Any], limit: int, check: CheckItem, field: str, path: str, problems: Problems
) -> None:
    """Check items that must be unique, by `field` or as a whole (Kubernetes: validateSet)."""
    check_items(items, limit, check, path, problems)
    seen: set[str] = set()
    for index, item in enumerate(items):
        key = item.get(field, "") if field else item
        if key in seen:
            problems.duplicate(f"{path}[{index}].{field}" if field else f"{path}[{index}]", key)
        seen.add(key)


def device_id(device: Mapping[str, Any]) -> str:
    """Return the unique identifier of an allocated device."""
    return "/".join(device.get(field, "") for field in ("driver", "pool", "device"))


def check_pool_name(name: str, path: str, problems: Problems) -> None:
    """Check the name of a device pool."""
    if not name:
        problems.required(path)
        return
    if byte_length(name) > 253:
        problems.too_long(path, 253)
    for part in name.split("/"):
        problems.all_invalid(path, part, dns_subdomain(part))


def check_qualified(name: str, path: str, problems: Problems) -> None:
    """Check the name of an attribute: a C identifier, optionally prefixed by its driver's domain."""
    if not name:
        problems.required(path, "name required")
        return
    domain, slash, identifier = name.partition("/")
    if "/" in identifier:
        return
    if not slash:
        identifier = domain
    elif not domain:
        problems.required(path, "the domain must not be empty")
    else:
        check_csi_driver_name(domain, path, problems)
    if slash and not identifier:
        problems.required(path, "the name must not be empty")
        return
    if byte_length(identifier) > _ID_MAX:
        problems.too_long(path, _ID_MAX)
    problems.all_invalid(path, identifier, c_identifier(identifier))


def check_fully_qualified(name: str, path: str, problems: Problems) -> None:
    """Check the name of an attribute that must have a domain."""
    check_qualified(name, path, problems)
    if name and "/" not in name:
        problems.invalid(path, name, "must include a domain")


def check_selectors(selectors: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> None:
    """Check CEL selectors of devices."""
    check_items(selectors, 32, _check_selector, path, problems)


def _check_selector(selector: Mapping[str, Any], path: str, problems: Problems) -> None:
    if (cel := selector.get("cel")) is None:
        problems.required(f"{path}.cel")
        return
    text = cel.get("expression", "")
    if byte_length(text) > 10 * 1024:
        problems.too_long(f"{path}.cel.expression", 10 * 1024)
    else:
        kind = check_expression(text, {"device": _DEVICE, **CEL_NAMESPACE}, f"{path}.cel.expression", problems)
        # Our type `dyn` stands for CEL's `any`.
        if kind.name not in ("bool", "dyn"):
            detail = f"must evaluate to bool or the unknown type, not {kind}"
            problems.invalid(f"{path}.cel.expression", text, detail)


def check_configuration(config: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check the configuration for a driver."""
    if (opaque := config.get("opaque")) is None:
        problems.required(f"{path}.opaque")
        return
    check_csi_driver_name(opaque.get("driver", ""), f"{path}.opaque.driver", problems)
    check_opaque_parameters(opaque.get("parameters"), f"{path}.opaque.parameters", problems)


def check_opaque_parameters(value: Any, path: str, problems: Problems) -> None:  # noqa: ANN401 - any JSON
    """Check a driver's opaque parameters: a JSON object of limited size."""
    if value is None:
        problems.required(path)
    elif len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()) > 10 * 1024:
        problems.too_long(path, 10 * 1024)
    elif not isinstance(value, Mapping):
        problems.invalid(path, "<value omitted>", "must be a valid JSON object")


def _shorten_key(key: str) -> str:
    if len(key) <= _KEY_MAX:
        return key
    length_max = _KEY_MAX - 3
    return key[: (length_max + 1) // 2] + "..." + key[len(key) - length_max // 2 :]


def check_attributes(device: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check the attributes of a device."""
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if (count := len(attributes) + len(capacity)) > 32:
        detail = "the total number of attributes and capacities must not exceed 32"
        problems.invalid(path, count, detail)
    for key, value in attributes.items():
        at = f"{path}.attributes[{_shorten_key(key)}]"
        check_qualified(key, at, problems)
        _check_attribute(value, at, problems)
    for key in capacity:
        check_qualified(key, f"{path}.capacity[{_shorten_key(key)}]", problems)


def _check_attribute(value: Mapping[str, Any], path: str, problems: Problems) -> None:
    kinds = [field for field in ("bool", "int", "string", "version") if value.get(field) is not None]
    if (text := value.get("string")) is not None and byte_length(text) > _VALUE_MAX:
        problems.too_long(f"{path}.string", _VALUE_MAX)
    if (version := value.get("version")) is not None:
        if not _is_version(version):
            detail = "must be a string compatible with semver.org spec 2.0.0"
            problems.invalid(f"{path}.version", version, detail)
        if byte_length(version) > _VALUE_MAX:
            problems.too_long(f"{path}.version", _VALUE_MAX)
    if not kinds:
        problems.required(path, "exactly one value must be specified")
    elif len(kinds) > 1:
        go_text = go_struct("resource.DeviceAttribute", value)
        problems.invalid(path, go_text, "exactly one value must be specified")


def check_toleration(toleration: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check a toleration of device taints in a request."""
    key, operator, value = (toleration.get(field, "") for field in ("key", "operator", "value"))
    if key:
        check_label_name(key, f"{path}.key", problems)
    if operator == "Exists":
        if value:
            problems.invalid(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        problems.all_invalid(f"{path}.value", value, label_value(value))
    elif not operator:
        problems.required(f"{path}.operator")
    else:
        problems.not_supported(f"{path}.operator", operator, ("Equal", "Exists"))
    if (effect := toleration.get("effect")) and effect not in _EFFECTS:
        problems.not_supported(f"{path}.effect", effect, _EFFECTS)
