"""The counters of a timeline: utilisation, free amounts, waiting pods and jobs, running jobs."""

from __future__ import annotations

from collections.abc import Iterator

from batkube.kernel.instants import Instant
from batkube.kernel.quantities import CPU
from batkube.outputs.exports.timeline.items import Value
from batkube.outputs.exports.timeline.tracks import Tracks
from batkube.outputs.playback.deltas import Delta
from batkube.outputs.playback.playback import Playback
from batkube.outputs.playback.totals import PlaybackTotals


class Counters:
    """Follows the deltas of a run, and yields the values that changed, once per instant."""

    def __init__(self, run: Playback, tracks: Tracks) -> None:
        self._totals = PlaybackTotals(run.nodes, run.pods, run.main_resource)
        shares_machines = run.main_resource == CPU
        self._milli = 1000 if shares_machines else 1
        self._units = {
            "utilisation": "%",
            "free cores" if shares_machines else "free machines": "cores" if shares_machines else "machines",
            "pending pods": "pods",
            "waiting jobs": "jobs",
            "running jobs": "jobs",
        }
        self._tracks = tracks
        self._values: tuple[int | float, ...] = (0,) * len(self._units)
        self._at: Instant | None = None

    def apply(self, delta: Delta) -> Iterator[Value]:
        """Apply a delta; if it is the first of its instant, yield the values at the end of the one before."""
        if self._at is not None and delta.at != self._at:
            yield from self.values()
        self._at = delta.at
        self._totals.apply(delta)

    def values(self) -> Iterator[Value]:
        """Yield the values that changed at the current instant."""
        totals = self._totals
        free = totals.free / self._milli if self._milli > 1 else totals.free
        percent = round(100 * totals.utilisation, 6)
        values = (percent, free, totals.pending_pods, totals.waiting_jobs, totals.running_jobs)
        for (name, unit), before, value in zip(self._units.items(), self._values, values, strict=True):
            if self._at is not None and value != before:
                yield Value(self._tracks.counter(name, unit).number, self._at, value)
        self._values = values
