"""Replacements for functions that return the time or sleep."""

from __future__ import annotations

import datetime
import time
from _thread import allocate_lock
from collections.abc import Callable
from datetime import date as _date
from datetime import datetime as _datetime
from typing import Any

from .program_clock import SECOND, ProgramClock

_sleep, _localtime = time.sleep, time.localtime


class _InstanceCheckOfBase(type):
    """Makes isinstance and issubclass treat the replaced date classes as Python's own."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__mro__[1])


def virtual_times(clock: ProgramClock) -> dict[tuple[object, str], object]:
    """Return the replacements for Python's functions, by module and name."""
    page = clock.page

    def sleep(seconds: float, /) -> None:
        if seconds <= 0:
            _sleep(seconds)
            return
        is_over = allocate_lock()
        is_over.acquire()
        with clock.timer(seconds, is_over.release):
            is_over.acquire()

    def time_ns() -> int:
        return page.now

    def monotonic_ns() -> int:
        return page.monotonic

    functions: dict[str, object] = {"sleep": sleep, "time_ns": time_ns, "time": lambda: page.now / SECOND}
    for name in ("monotonic", "perf_counter"):
        functions |= {name: lambda: page.monotonic / SECOND, f"{name}_ns": monotonic_ns}
    for name in ("gmtime", "localtime", "ctime"):
        functions[name] = _defaulting_to_now(getattr(time, name), 0, lambda: page.now / SECOND)
    for name, position in (("asctime", 0), ("strftime", 1)):
        functions[name] = _defaulting_to_now(getattr(time, name), position, lambda: _localtime(page.now / SECOND))
    dates: dict[tuple[object, str], object] = {
        (datetime, name): replacement for name, replacement in _virtual_dates(clock).items()
    }
    return {**{(time, name): function for name, function in functions.items()}, **dates}


def _defaulting_to_now(
    function: Callable[..., Any], position: int, current_time: Callable[[], object]
) -> Callable[..., Any]:
    """Return a function whose argument at `position` defaults to the current virtual time."""

    def virtual(*arguments: Any) -> Any:
        is_missing = arguments[position : position + 1] in ((), (None,))
        return function(*arguments[:position], current_time()) if is_missing else function(*arguments)

    return virtual


def _virtual_dates(clock: ProgramClock) -> dict[str, type]:
    page = clock.page

    class VirtualDatetime(_datetime, metaclass=_InstanceCheckOfBase):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            now = page.now
            return _datetime.fromtimestamp(now // SECOND, tz).replace(microsecond=now % SECOND // 1000)

        @classmethod
        def utcnow(cls) -> Any:
            return cls.now(datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

    class VirtualDate(_date, metaclass=_InstanceCheckOfBase):
        @classmethod
        def today(cls) -> Any:
            return VirtualDatetime.now().date()

    return {"datetime": VirtualDatetime, "date": VirtualDate}
