"""Tick positions and labels of chart axes, in a readable unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from batkube.outputs.charts.time_axis import time_axis

#: Axes at least this long use minutes, hours or days.
_MINUTES_FROM_S = 180
_UNIT_S = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
#: Ticks of a logarithmic time axis that contains more than two of them.
_ROUND_TIMES_S = (
    *(10.0**power for power in range(-9, 2)),
    *(60.0, 600.0, 3600.0, 18000.0, 86400.0, 864000.0, 8640000.0, 86400000.0),
)
#: Ticks are at the data points if there are at most so many, at least this share of the axis apart.
_MAX_PREFERRED_TICKS, _MIN_TICK_SPACING = 9, 0.07


def format_axis(
    axis: Axis,
    label: str,
    unit: str,
    *,
    is_log: bool = False,
    max_ticks: int = 7,
    preferred_ticks: Sequence[float] = (),
    is_whole: bool = False,
    shared_limits: tuple[float, float] | None = None,
    max_tick: float | None = None,
) -> str:
    """Set the label (with unit) and the ticks of an axis whose limits are set, and return the unit of the ticks.

    No tick is beyond `max_tick`, such as 100 %. Ticks are at `preferred_ticks` if these are few and far enough apart,
    and at whole numbers if `is_whole`. The unit of a time axis follows from its limits, or from `shared_limits` if
    neighbouring axes share their limits.
    """
    low, high = sorted(axis.get_view_interval())
    if is_log:
        _format_log_axis(axis, low, high, unit, max_ticks)
        axis.set_label_text(label if unit in ("", "s") else f"{label} ({unit})")
        return unit
    unit = _time_unit(*(shared_limits or (low, high))) if unit == "s" else unit
    unit_s = _UNIT_S.get(unit, 1.0)
    positions = sorted(dict.fromkeys(preferred_ticks))
    if 1 < len(positions) <= _MAX_PREFERRED_TICKS and _are_spaced(positions, (high - low) * _MIN_TICK_SPACING):
        axis.set_major_locator(FixedLocator(positions))
    elif unit in ("min", "h", "d") and unit == _time_unit(low, high):
        axis.set_major_locator(FixedLocator(list(time_axis(low, high, max_ticks=max_ticks + 1).ticks_s)))
    else:
        regular = MaxNLocator(nbins=max_ticks, steps=[1, 2, 2.5, 5, 10], integer=is_whole)
        ticks = [tick * unit_s for tick in regular.tick_values(low / unit_s, high / unit_s)]
        axis.set_major_locator(FixedLocator([tick for tick in ticks if max_tick is None or tick <= max_tick]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _format_number(value / unit_s)))
    axis.set_label_text(f"{label} ({unit})" if unit else label)
    return unit


def unit_factor(unit: str) -> float:
    """Return the number of seconds in a unit of time; 1 for any other unit."""
    return _UNIT_S.get(unit, 1.0)


def _time_unit(low: float, high: float) -> str:
    if high - low >= _MINUTES_FROM_S:
        return time_axis(low, high).unit
    return "ms" if max(abs(low), abs(high)) < 1 else "s"


def _are_spaced(positions: Sequence[float], min_distance: float) -> bool:
    return all(after - before >= min_distance for before, after in pairwise(positions))


def _format_log_axis(axis: Axis, low: float, high: float, unit: str, max_ticks: int) -> None:
    positions = [position for position in _ROUND_TIMES_S if low <= position <= high] if unit == "s" else []
    decades = math.log10(high / low) if low > 0 else 3.0
    if len(positions) > 2:
        axis.set_major_locator(FixedLocator(positions[:: math.ceil(len(positions) / max_ticks)]))
    else:
        subs = (1.0,) if decades * 3 > max_ticks else (1.0, 2.0, 5.0)
        axis.set_major_locator(LogLocator(subs=subs, numticks=max_ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: _format_time(value) if unit == "s" else _format_number(value))
    )


def _format_time(value: float) -> str:
    """Return a time in the largest unit that divides it; axes may span nanoseconds to years."""
    for unit, unit_s in reversed(_UNIT_S.items()):
        if value >= unit_s * 0.9995 and (unit_s <= 1 or value % unit_s == 0):
            return f"{_format_number(value / unit_s)} {unit}"
    return f"{_format_number(value * 1e9)} ns"


def _format_number(value: float) -> str:
    rounded = float(f"{value:.10g}")
    return f"{rounded:,.10g}" if abs(rounded) < 1e12 else f"{rounded:.3g}"
