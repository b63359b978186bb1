"""Formatting of a mean and its interval, with only as many decimals as the interval justifies."""

from __future__ import annotations

import math

from batkube.outputs.measures.intervals import Sample
from batkube.outputs.measures.metric_columns import MetricColumn


def format_mean(sample: Sample, column: MetricColumn) -> str:
    """Return a mean and its interval as text."""
    mean, spread = format_mean_and_interval(sample, column)
    return f"{mean} {spread}" if spread else mean


def format_mean_and_interval(sample: Sample, column: MetricColumn) -> tuple[str, str]:
    """Return the mean and the interval separately; the latter is empty if there is none."""
    if not sample.has_interval:
        return f"{sample.mean:,.{column.decimals}f}", ""
    decimals = _decimals(sample.half, column.decimals)
    mean = f"{sample.mean:,.{decimals}f}"
    if sample.sd is None:
        # The interval of a share is not symmetric.
        return mean, f"({sample.low:,.{decimals}f} to {sample.high:,.{decimals}f})"
    return mean, f"± {sample.half:,.{decimals}f}" if sample.half else "± 0"


def _decimals(half: float, max_decimals: int) -> int:
    """Return the number of decimals that shows two significant digits of the interval, and at most `max_decimals`."""
    return max_decimals if half <= 0 else max(0, min(max_decimals, 1 - math.floor(math.log10(half))))
