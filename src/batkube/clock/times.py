"""What time it is, and sleeping."""

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
    """To a program it is all the same whether a date was made by Python's class or by the one in its place."""

    def __instancecheck__(cls, one: object) -> bool:
        return isinstance(one, cls.__mro__[1])

    def __subclasscheck__(cls, one: type) -> bool:
        return issubclass(one, cls.__mro__[1])


def virtual_times(clock: ProgramClock) -> dict[tuple[object, str], object]:
    """Return what comes into the place of Python's own, by module and name."""
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
    for name, place in (("asctime", 0), ("strftime", 1)):
        functions[name] = _defaulting_to_now(getattr(time, name), place, lambda: _localtime(page.now / SECOND))
    dates: dict[tuple[object, str], object] = {(datetime, name): one for name, one in _virtual_dates(clock).items()}
    return {**{(time, name): function for name, function in functions.items()}, **dates}


def _defaulting_to_now(function: Callable[..., Any], place: int, present: Callable[[], object]) -> Callable[..., Any]:
    """Return a function that means the present when the argument at `place` is left out."""

    def virtual(*arguments: Any) -> Any:
        is_left_out = arguments[place : place + 1] in ((), (None,))
        return function(*arguments[:place], present()) if is_left_out else function(*arguments)

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
