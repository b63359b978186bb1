"""Notes on experiments without a meaningful comparison: no job waited, or labels of an axis have equal results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from batkube.experiments.description.columns import REPEAT, SEED, STATE
from batkube.experiments.results.result_files import read_description, typed_columns
from batkube.experiments.running.folder import RunState

#: If all of these are equal, two runs had the same schedule, for all that a table shows.
_NUMBERS = (
    "makespan",
    "mean_waiting_time",
    "max_waiting_time",
    "mean_turnaround_time",
    "mean_bounded_slowdown",
    "mean_utilisation",
)
_LONGEST_WAIT = "max_waiting_time"

_Row = Mapping[str, Any]


def sanity_notes(folder: Path) -> list[str]:
    """Return a sentence for each reason why the runs of the experiment in `folder` hardly differ."""
    columns = typed_columns(folder)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    done = [row for row in rows if row[STATE] == RunState.DONE]
    axes = [axis["name"] for axis in read_description(folder)["axes"]]
    notes = []
    if len(done) > 1 and all(row.get(_LONGEST_WAIT) == 0 for row in done):
        text = f"no job ever waited in any of the {len(done):,} runs"
        notes.append(f"{text}: raise the load, or there is little to compare")
    return [*notes, *(note for axis in axes for note in _notes_on_axis(done, axis, axes))]


def _notes_on_axis(rows: Sequence[_Row], axis: str, axes: Sequence[str]) -> Iterator[str]:
    """Yield a note on each group of labels of an axis whose runs have equal results."""
    others = [name for name in (*axes, SEED, REPEAT) if name != axis]
    results: dict[object, dict[object, object]] = {}
    for row in rows:
        numbers = tuple(row.get(name) for name in _NUMBERS)
        if not any(isinstance(number, int | float) for number in numbers):
            return
        results.setdefault(row[axis], {})[tuple(row[name] for name in others)] = numbers
    seen: set[object] = set()
    for number, (label, of_label) in enumerate(results.items()):
        alike = [other for other in list(results)[number + 1 :] if results[other] == of_label and other not in seen]
        if alike and label not in seen:
            seen.update(alike)
            labels = ", ".join(str(one) for one in (label, *alike[:-1]))
            runs = f"all {len(of_label):,} runs" if len(of_label) > 1 else "the only run"
            yield f"{axis.replace('_', ' ')}: {labels} and {alike[-1]} gave the same numbers in {runs} of each"
