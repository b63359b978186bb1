"""ConfigMaps, with the size limit and immutability that Secrets share.

Kubernetes: pkg/apis/core and pkg/registry/core/configmap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.kind import Kind
from batkube.api.printing.ages import age
from batkube.api.validation.metadata import check_built_in_metadata
from batkube.api.validation.names import byte_length, config_key, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidationRules, validate_metadata_update
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

SIZE_LIMIT = 1024 * 1024
_IMMUTABLE_SET = "field is immutable when `immutable` is set"


# Validation


def check_immutable_data(new: Object, old: Object, fields: tuple[str, ...], problems: Problems) -> None:
    """Check that an immutable object stays immutable and keeps its data."""
    if old.get("immutable"):
        if not new.get("immutable"):
            problems.forbidden("immutable", _IMMUTABLE_SET)
        for field in fields:
            if (new.get(field) or {}) != (old.get(field) or {}):
                problems.forbidden(field, _IMMUTABLE_SET)


def decoded_size(text: str) -> int:
    """Return the size of decoded base64."""
    return len(text) // 4 * 3 - text[-2:].count("=")


def _validate_config_map(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    data, binary = value.get("data") or {}, value.get("binaryData") or {}
    total = 0
    for key, text in data.items():
        problems.all_invalid(f"data[{key}]", key, config_key(key))
        if key in binary:
            problems.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        total += byte_length(text)
    for key, text in binary.items():
        problems.all_invalid(f"binaryData[{key}]", key, config_key(key))
        total += decoded_size(text)
    if total > SIZE_LIMIT:
        problems.too_long("[]", SIZE_LIMIT)


def _validate_config_map_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    check_immutable_data(new, old, ("data", "binaryData"), problems)
    _validate_config_map(new, problems)


# Columns


def config_map_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ConfigMap."""
    size = len(value.get("data") or ()) + len(value.get("binaryData") or ())
    return [value["metadata"].get("name", ""), size, age(value, now)]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "configmaps": Kind(
        rules=ValidationRules(_validate_config_map, _validate_config_map_update),
        cells=config_map_cells,
    ),
}
