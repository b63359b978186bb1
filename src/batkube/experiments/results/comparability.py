"""Which sets of an experiment's runs may be compared: those without violations that ran the same jobs.

A failed run has no numbers. If others completed it, their means are of different workloads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from batkube.experiments.description.columns import OVERALLOCATIONS, VIOLATIONS
from batkube.outputs.measures.comparisons.comparability import Comparability, comparability_of

if TYPE_CHECKING:
    import pandas as pd

#: Completed runs, by the values that identify their workload: seed, repeat, …
RunsByKey: TypeAlias = "Mapping[Any, pd.Series[Any]]"


def comparability_of_sets(sets: Sequence[RunsByKey], failures: Sequence[Collection[Any]]) -> list[Comparability]:
    """Return the comparability of each set of runs; runs with the same key had the same task.

    `failures` are the keys of the failed runs of each set. One violation makes a whole set incomparable. Jobs that
    were never run are counted per key, since workloads differ between keys.
    """
    violations = [sum(bool(row[OVERALLOCATIONS] > 0 or row[VIOLATIONS] > 0) for row in runs.values()) for runs in sets]
    result = [Comparability.VIOLATIONS if broken else Comparability.COMPARABLE for broken in violations]
    for key in dict.fromkeys(key for runs in sets for key in runs):
        with_key = [number for number, runs in enumerate(sets) if key in runs]
        never_run = [sets[number][key]["nb_jobs"] - sets[number][key]["nb_jobs_finished"] for number in with_key]
        of_key = comparability_of([violations[number] for number in with_key], never_run)
        for number, value in zip(with_key, of_key, strict=True):
            result[number] = value if result[number] is Comparability.COMPARABLE else result[number]
    possible = {
        key for runs, value in zip(sets, result, strict=True) if value is not Comparability.VIOLATIONS for key in runs
    }
    return [
        Comparability.FAILED_RUNS if value is Comparability.COMPARABLE and not possible.isdisjoint(keys) else value
        for value, keys in zip(result, failures, strict=True)
    ]
