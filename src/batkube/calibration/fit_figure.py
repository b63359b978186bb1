"""Plot the goodness of fit of each step: recorded against fitted times.

The left column shows the distribution functions, the right column a quantile-quantile plot: points on the diagonal are
a perfect fit. Uses only matplotlib's objects, not pyplot, so that the same recordings give the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from batkube.calibration.fitting import Fit
from batkube.outputs.pages.colours import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RECORDED, _FITTED = "#33669A", "#B4442E"
#: More points than this are indistinguishable on paper.
_MAX_POINTS = 400
_QUANTILES_SHOWN = 99
#: The number of points at which the fitted distribution function is inverted.
_GRID_POINTS = 20_000
#: The quantile at which the axes end, so that outliers do not compress the rest.
_SHOWN_QUANTILE = 0.995


def fit_figure(fits: list[Fit]) -> Figure:
    """Return a figure with a row per step."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 2.1 * len(fits) + 0.5), layout="constrained")
    grid = figure.subplots(len(fits), 2, squeeze=False, width_ratios=[2, 1])
    for fit, (left, right) in zip(fits, grid, strict=True):
        _draw_cdfs(left, fit)
        _draw_quantiles(right, fit)
    grid[0][0].legend(loc="lower right", frameon=False)
    grid[-1][0].set_xlabel("seconds")
    grid[-1][1].set_xlabel("recorded, seconds")
    return figure


def _draw_cdfs(axes: Axes, fit: Fit) -> None:
    values = fit.sample.values
    low, high = 0.0, max(float(np.quantile(values, _SHOWN_QUANTILE)), 0.001) * 1.05
    points = np.linspace(low, high, _MAX_POINTS)
    rows = np.unique(np.linspace(0, len(values) - 1, _MAX_POINTS).astype(int))
    axes.step(values[rows], (rows + 1) / len(values), where="post", color=_RECORDED, label="recorded")
    axes.plot(points, fit.cdf(points), color=_FITTED, linewidth=1.1, label="fitted")
    axes.set_xlim(low, high)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("share below")
    axes.set_title(
        f"{fit.sample.step}: {fit.distribution.name}, n = {len(values)}, KS = {fit.ks_distance:.3f}", loc="left"
    )
    axes.grid(color=LIGHT["rule"], linewidth=0.5)


def _draw_quantiles(axes: Axes, fit: Fit) -> None:
    values = fit.sample.values
    shares = np.linspace(0, _SHOWN_QUANTILE, _QUANTILES_SHOWN + 2)[1:-1]
    points = np.linspace(0.0, max(float(values[-1]), 0.001) * 1.5, _GRID_POINTS)
    fitted = np.interp(shares, fit.cdf(points), points)
    recorded = np.quantile(values, shares)
    end = max(float(recorded[-1]), float(fitted[-1]), 0.001) * 1.05
    axes.plot([0, end], [0, end], color=LIGHT["rule"], linewidth=0.8)
    axes.plot(recorded, fitted, ".", color=_FITTED, markersize=2.5)
    axes.set_xlim(0, end)
    axes.set_ylim(0, end)
    axes.set_ylabel("fitted")
    axes.grid(color=LIGHT["rule"], linewidth=0.5)
