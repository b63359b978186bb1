"""JSON merge patch (RFC 7386), with the habits of the library that Kubernetes uses (`json_patches`).

Nulls inside the lists that a patch brings are dropped. The given object is never edited.
"""

from __future__ import annotations

from batkube.api.patches.json_patches import Json, PatchError, not_an_object_message


def apply_merge_patch(value: dict[str, Json], patch: Json, checks: bool = True) -> Json:
    """Return `value` with what `patch` has in place of what it had; a null removes a field. Raises PatchError.

    `checks`: fields are validated, and so the real server makes sure that the patch is an object. Else a list takes
    the place of the object, for decoding to refuse.
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
