"""A run's files together with its numbers, which are computed once: what charts and comparisons are made of."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from batkube.outputs.measures.run_files import RunFiles

if TYPE_CHECKING:
    from batkube.outputs.measures.metrics import Metrics


class MeasuredRun(RunFiles):
    """The files of one run, and what they amount to."""

    @cached_property
    def metrics(self) -> Metrics:
        """The run in numbers."""
        from batkube.outputs.measures.metrics import metrics_of

        return metrics_of(self)
