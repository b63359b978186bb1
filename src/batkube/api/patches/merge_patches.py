"""JSON merge patch (RFC 7386), with the deviations of the library that Kubernetes uses (see `json_patches`).

Nulls in lists of the patch are dropped. The object is never modified.
"""

from __future__ import annotations

from batkube.api.patches.json_patches import Json, PatchError, not_an_object_message


def apply_merge_patch(value: dict[str, Json], patch: Json, checks: bool = True) -> Json:
    """Merge `patch` into `value`, where null removes a field; raises PatchError.

    `checks`: fieldValidation is enabled, so that kube-apiserver requires the patch to be an object. Otherwise a list
    replaces the object, and is rejected when the result is decoded.
    """
    if isinstance(patch, dict):
        return _merge(value, patch)
    if patch is not None and checks:
        raise PatchError(400, f"error decoding patch: {not_an_object_message(patch)}")
    if isinstance(patch, list):
        return _without_nulls(patch)
    raise PatchError(400, "Invalid JSON Patch")


def _merge(value: dict[str, Json], patch: dict[str, Json]) -> dict[str, Json]:
    merged = dict(value)
    for key, new in patch.items():
        if new is None:
            merged.pop(key, None)
            continue
        old = merged.get(key)
        if isinstance(old, dict):
            merged[key] = _merge(old, new) if isinstance(new, dict) else new
        else:
            merged[key] = _without_nulls(new)
    return merged


def _without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
