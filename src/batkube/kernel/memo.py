"""Memoization for functions of texts that clients send.

`functools.lru_cache` limits entries, not bytes: a few thousand texts of megabytes each would stay in memory, and any
client could send them. Here only short texts are cached. Texts that recur are short.
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
    """Cached results by text; a missing one is computed."""

    def __init__(self, function: Callable[[Any], Any], maxsize: int, longest: int) -> None:
        super().__init__()
        self._function = function
        self._maxsize = maxsize
        self._longest = longest

    def __missing__(self, text: Any) -> Any:  # noqa: ANN401 - the type of the memoized function
        result = self._function(text)
        self.store(text, (text,), result)
        return result

    def store(self, key: object, arguments: tuple[object, ...], result: object) -> None:
        """Store a result unless an argument is a long text; clear the cache first if it is full."""
        if any(isinstance(argument, (str, bytes)) and len(argument) > self._longest for argument in arguments):
            return
        if len(self) >= self._maxsize:
            self.clear()
        self[key] = result


def memoized(maxsize: int, longest: int = 1000) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator that caches results, except for arguments longer than `longest`.

    This is on the path of every write. A function of one parameter therefore becomes the dictionary look-up itself.
    Calls with keyword arguments are not cached. A full cache is cleared; frequent results are back at once.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        cache = _Cache(cast(Callable[[Any], Any], function), maxsize, longest)
        if len(inspect.signature(function).parameters) == 1:
            return cast(Callable[_P, _R], cache.__getitem__)

        look_up = cache.get

        @functools.wraps(function)
        def call(*arguments: _P.args, **named: _P.kwargs) -> _R:
            result = look_up(arguments, _MISSING)
            if result is _MISSING or named:
                result = function(*arguments, **named)
                if not named:
                    cache.store(arguments, arguments, result)
            return result  # type: ignore[no-any-return]

        return call

    return decorate
