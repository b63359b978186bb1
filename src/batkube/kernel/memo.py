"""Remembering what a function made of texts, when the texts are somebody else's.

`functools.lru_cache` counts entries, not bytes: a few thousand texts of megabytes each would stay in memory for good,
and anyone who may send a request could put them there. What is worth remembering is short and comes again and again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

_P = ParamSpec("_P")
_R = TypeVar("_R")
_MISSING = object()


class _Cache(dict[Any, Any]):
    """What was made of each text; what is asked for and not known is made."""

    def __init__(self, function: Callable[[Any], Any], maxsize: int, longest: int) -> None:
        super().__init__()
        self._function = function
        self._maxsize = maxsize
        self._longest = longest

    def __missing__(self, text: Any) -> Any:  # noqa: ANN401 - of the function that remembers
        result = self._function(text)
        self.store(text, (text,), result)
        return result

    def store(self, key: object, arguments: tuple[object, ...], result: object) -> None:
        """Keep a result, unless a text that it was made of is long; when there are too many, forget the others."""
        if any(isinstance(each, (str, bytes)) and len(each) > self._longest for each in arguments):
            return
        if len(self) >= self._maxsize:
            self.clear()
        self[key] = result


def memoized(maxsize: int, longest: int = 1000) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator that remembers results, but none for texts and bytes beyond `longest`.

    It is on the path of every write, so that a function of one text becomes the look-up itself, and what is named is
    not remembered. When `maxsize` results are known all are forgotten; those that matter come again at once.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        known = _Cache(cast(Callable[[Any], Any], function), maxsize, longest)
        if len(inspect.signature(function).parameters) == 1:
            return cast(Callable[_P, _R], known.__getitem__)

        look_up = known.get

        @functools.wraps(function)
        def call(*arguments: _P.args, **named: _P.kwargs) -> _R:
            result = look_up(arguments, _MISSING)
            if result is _MISSING or named:
                result = function(*arguments, **named)
                if not named:
                    known.store(arguments, arguments, result)
            return result  # type: ignore[no-any-return]

        return call

    return decorate
