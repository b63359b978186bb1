"""Remembering what a function made of texts, when the texts are somebody else's.

`functools.lru_cache` counts entries, not bytes: a few thousand texts of megabytes each would stay in memory for good,
and anyone who may send a request could put them there. What is worth remembering is short and comes again and again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def remembered(maxsize: int, longest: int = 1000) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator that remembers results, but none for texts and bytes beyond `longest`.

    It is on the path of every write, so a result that is known costs one lookup. When `maxsize` results are known all
    are forgotten; those that matter come again at once.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        known: dict[tuple[object, ...], _R] = {}

        @functools.wraps(function)
        def call(*arguments: _P.args, **named: _P.kwargs) -> _R:
            key = (*arguments, *named.items()) if named else arguments
            try:
                return known[key]
            except KeyError:
                pass
            result = function(*arguments, **named)
            if not any(isinstance(each, str | bytes) and len(each) > longest for each in arguments):
                if len(known) >= maxsize:
                    known.clear()
                known[key] = result
            return result

        return call

    return decorate
