"""Config maps, and what they share with secrets: a size, and that one may be frozen.

Kubernetes: pkg/apis/core and pkg/registry/core/configmap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind import Kind
from batkube.api.printing.ages import age
from batkube.api.validation.metadata import check_built_in_metadata
from batkube.api.validation.names import config_key, size, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, Rules, metadata_update
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

SIZE_LIMIT = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"


# Checks


def check_frozen(new: Object, old: Object, fields: tuple[str, ...], problems: Problems) -> None:
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


def _check_config_map(value: Object, problems: Problems) -> None:
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
    if total > SIZE_LIMIT:
        problems.too_long("[]", SIZE_LIMIT)


def _check_config_map_update(new: Object, old: Object, problems: Problems) -> None:
    metadata_update(new, old, problems)
    check_frozen(new, old, ("data", "binaryData"), problems)
    _check_config_map(new, problems)


# Columns


def config_map_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ConfigMap."""
    size = len(value.get("data") or ()) + len(value.get("binaryData") or ())
    return [value["metadata"].get("name", ""), size, age(value, now)]


#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "configmaps": Kind(
        rules=Rules(_check_config_map, _check_config_map_update),
        cells=config_map_cells,
    ),
}
