"""A time axis in a readable unit, with ticks at round numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

#: (unit, its seconds, shortest chart in seconds that uses it, steps between ticks in this unit).
_UNITS = (
    ("d", 86400, 3 * 86400, (0.25, 0.5, 1, 2, 5, 7, 14, 28, 50, 100, 200, 500)),
    ("h", 3600, 3 * 3600, (0.25, 0.5, 1, 2, 3, 6, 12)),
    ("min", 60, 3 * 60, (0.25, 0.5, 1, 2, 5, 10, 15, 20, 30)),
    ("s", 1, 0, (1, 2, 5, 10, 15, 20, 30)),
)


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Ticks of one axis."""

    unit: str
    ticks_s: tuple[float, ...]
    labels: tuple[str, ...]


def time_axis(start_s: float, end_s: float, *, max_ticks: int = 11) -> TimeAxis:
    """Return the axis for a chart from `start_s` to `end_s`, with at most `max_ticks` ticks."""
    span = end_s - start_s
    unit, unit_s, _, steps = next(entry for entry in _UNITS if span >= entry[2])
    step = next((step for step in steps if span / (step * unit_s) < max_ticks), None)
    if step is None or span / (step * unit_s) < 2:
        # For years, and for less than a second: powers of ten.
        step = 10.0 ** math.ceil(math.log10(span / unit_s / (max_ticks - 1)))
    low, high = math.ceil(start_s / (step * unit_s) - 1e-9), math.floor(end_s / (step * unit_s) + 1e-9)
    counts = range(low, high + 1)
    return TimeAxis(
        unit, tuple(count * step * unit_s for count in counts), tuple(f"{count * step:.10g}" for count in counts)
    )
