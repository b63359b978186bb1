"""Parse YAML bodies, in a worker thread if possible: the largest take seconds."""

from __future__ import annotations

import functools
from typing import Any

from batkube.api.decoding.objects import ParseError, parse_yaml
from batkube.api.requests.messages import NeedsWorkerThread, Request


def parse_yaml_body(request: Request) -> tuple[Any, list[str]]:
    """Return the result of `parse_yaml` for the body, or raise its error.

    Raises NeedsWorkerThread first if the request `may_defer`.
    """
    if request.parsed_body is None:
        if request.may_defer:
            raise NeedsWorkerThread(functools.partial(_parse_into, request))
        _parse_into(request)
    if isinstance(request.parsed_body, Exception):
        raise request.parsed_body
    document: tuple[Any, list[str]] = request.parsed_body
    return document


def _parse_into(request: Request) -> None:
    try:
        request.parsed_body = parse_yaml(request.body)
    except (ParseError, RecursionError, MemoryError) as problem:
        request.parsed_body = problem
