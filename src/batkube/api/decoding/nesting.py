"""How deeply a request is nested, which decides whether a RecursionError is the client's or ours."""

from __future__ import annotations

import re

import msgspec

from batkube.cluster.store import KubeObject

#: No object of Kubernetes needs as many levels, and three times as many can be followed (sys.getrecursionlimit).
_DEEP = 100
_BRACKET = re.compile(rb"[\[\]{}]")


def is_nested_deeply(body: bytes, live: KubeObject | None) -> bool:
    """Return whether brackets are nested deeply in a body, which may be JSON or YAML, or in the live object."""
    return _is_deep(body) or (live is not None and _is_deep(msgspec.json.encode(live)))


def _is_deep(text: bytes) -> bool:
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > _DEEP:
            return True
    return False
