"""Bodies in YAML, which takes longer to read than anything else that may be sent: seconds for the largest."""

from __future__ import annotations

import functools
from typing import Any

from batkube.api.decoding.objects import ParseError, parse_yaml
from batkube.api.requests.messages import Laborious, Request


def yaml_of(request: Request) -> tuple[Any, list[str]]:
    """Return what `parse_yaml` makes of the body, or raise what it raises; while others wait, have it read apart."""
    if request.reading is None:
        if request.in_haste:
            raise Laborious(functools.partial(_read, request))
        _read(request)
    if isinstance(request.reading, Exception):
        raise request.reading
    document: tuple[Any, list[str]] = request.reading
    return document


def _read(request: Request) -> None:
    try:
        request.reading = parse_yaml(request.body)
    except (ParseError, RecursionError, MemoryError) as problem:
        request.reading = problem
