"""A run's files together with its metrics, which are computed once: the input of charts and comparisons."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from batkube.kernel.errors import InputError
from batkube.kernel.instants import NANOSECONDS_PER_SECOND
from batkube.kernel.measured_window import NO_TRIM, TRIM_FORMATS, Trim, Window, parse_trim, window_of
from batkube.outputs.measures.run_data.run_files import RunFiles

if TYPE_CHECKING:
    from batkube.outputs.measures.metrics import Metrics


class MeasuredRun(RunFiles):
    """The files of one run, and its metrics in the measured window: the scenario's, or the given one."""

    def __init__(
        self, path: str | Path, *, warm_up: str | None = None, cool_down: str | None = None, label: str = ""
    ) -> None:
        super().__init__(path)
        self.label = label
        self._trims = {"warm-up": warm_up, "cool-down": cool_down}

    @cached_property
    def window(self) -> Window:
        """The measured part of the run."""
        submits = (self.jobs["submission_time"].dropna() * NANOSECONDS_PER_SECOND).round().astype("int64")
        return window_of(submits.tolist(), self._trim("warm-up"), self._trim("cool-down"))

    @property
    def window_remark(self) -> str:
        """Warning if no job is left between warm-up and cool-down; empty otherwise."""
        is_empty = self.metrics.finished and not self.metrics.measured
        return "has no job between warm-up and cool-down, so it has no mean values" if is_empty else ""

    def _trim(self, key: str) -> Trim:
        text = self._trims[key] or (self.manifest.get("scenario") or {}).get(key)
        try:
            return parse_trim(str(text)) if text else NO_TRIM
        except ValueError as error:
            raise InputError(f"--{key}", problem=str(error), remedy=f"write {TRIM_FORMATS}") from error

    @cached_property
    def metrics(self) -> Metrics:
        """The metrics of the run."""
        from batkube.outputs.measures.metrics import metrics_of

        return metrics_of(self, self.window)
