"""Placeholders for values that are not known in advance: they are taken from earlier answers of the same replay.

`${3.body.metadata.uid}` is a path into the results, which are numbered as the steps are. A body may also be an earlier
answer with a merge patch (`$from`, `$merge`), or a very long text (`$generate`).
"""

from __future__ import annotations

import re
from typing import Any

Json = Any
"""Anything that JSON can say."""

_PLACEHOLDER = re.compile(r"\$\{([^}]+)\}")


class Unresolved(Exception):
    """A placeholder refers to a value that no answer contains."""


def lookup(results: Json, path: str) -> Json:
    """Return the value at `path`; a dot within a key is written `~1`."""
    found = results
    for segment in path.split("."):
        try:
            found = found[int(segment)] if isinstance(found, list) else found[segment.replace("~1", ".")]
        except (KeyError, IndexError, ValueError, TypeError):
            raise Unresolved(path) from None
    return found


def merged(base: Json, patch: Json) -> Json:
    """Return `base` with a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def resolved(value: Json, results: Json) -> Json:
    """Return `value` with every placeholder replaced; a string that is only a placeholder gets the value's type."""
    if isinstance(value, str):
        whole = _PLACEHOLDER.fullmatch(value)
        if whole:
            return lookup(results, whole.group(1))
        return _PLACEHOLDER.sub(lambda match: str(lookup(results, match.group(1))), value)
    if isinstance(value, list):
        return [resolved(item, results) for item in value]
    if not isinstance(value, dict):
        return value
    if "$from" in value:
        return merged(lookup(results, value["$from"]), resolved(value.get("$merge", {}), results))
    if "$generate" in value:
        wanted = value["$generate"]
        return wanted.get("prefix", "") + wanted["repeat"] * wanted["count"] + wanted.get("suffix", "")
    return {resolved(key, results): resolved(item, results) for key, item in value.items()}
