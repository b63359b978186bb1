"""Remembering what a function made of texts, when the texts are somebody else's.

`functools.lru_cache` counts entries, not bytes: a few thousand texts of megabytes each would stay in memory for good,
and anyone who may send a request could put them there. What is worth remembering is short and comes again and again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def remembered(maxsize: int, longest: int = 1000) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator like `lru_cache(maxsize)` that does not keep results for texts and bytes beyond `longest`."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        cached: Any = functools.lru_cache(maxsize, typed=True)(function)

        @functools.wraps(function)
        def call(*arguments: _P.args, **named: _P.kwargs) -> _R:
            for argument in arguments:
                if isinstance(argument, str | bytes) and len(argument) > longest:
                    return function(*arguments, **named)
            result: _R = cached(*arguments, **named)
            return result

        return call

    return decorate
