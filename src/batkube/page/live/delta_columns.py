"""The deltas of a live cluster as columns, in the form in which pages receive them.

A change usually concerns all pods of a job. It then costs a few operations on lists, not an object for each pod.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.outputs.playback.deltas import DeltaKind
from batkube.page.columns import KIND_NUMBERS, DeltaRows


class DeltaColumns:
    """Deltas in the order in which they were recorded. Another thread may read them meanwhile."""

    def __init__(self) -> None:
        self._rows = DeltaRows([], [], [], [], [])

    def __len__(self) -> int:
        # The column that is extended last, so that the others are at least as long.
        return len(self._rows.texts)

    def append(self, time: int, kind: DeltaKind, subject: int, value: int = -1, text: str = "") -> None:
        """Add a delta. `time` is in microseconds; the other fields are those of `DeltaRows`."""
        self.extend(time, kind, (subject,), (value,), text)

    def extend(
        self, time: int, kind: DeltaKind, subjects: Sequence[int], values: Sequence[int] = (), text: str = ""
    ) -> None:
        """Add a delta for each subject; without `values`, each value is -1."""
        count, rows = len(subjects), self._rows
        rows.times.extend([time] * count)
        rows.kinds.extend([KIND_NUMBERS[kind]] * count)
        rows.subjects.extend(subjects)
        rows.values.extend(values or [-1] * count)
        rows.texts.extend([text] * count)

    def rows(self, first: int, end: int) -> DeltaRows:
        """Return the deltas from `first` to before `end`."""
        times, kinds, subjects, values, texts = self._rows
        return DeltaRows(times[first:end], kinds[first:end], subjects[first:end], values[first:end], texts[first:end])
