"""Which sets of an experiment's runs may be compared: those that did nothing impossible, and ran the same jobs.

A run that failed has no numbers. Where others completed it, the means of the two are of different workloads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from batkube.experiments.description.columns import OVERALLOCATIONS, VIOLATIONS
from batkube.outputs.measures.comparisons.comparability import Comparability, comparability_of

if TYPE_CHECKING:
    import pandas as pd

#: Runs that are over, by what tells their workloads apart: seed, repeat, …
RunsByKey: TypeAlias = "Mapping[Any, pd.Series[Any]]"


def comparability_of_sets(sets: Sequence[RunsByKey], failures: Sequence[Collection[Any]]) -> list[Comparability]:
    """Return how each of several sets of runs stands; runs with the same key had the same to do.

    `failures` are the keys of those runs of each set that failed. One violation makes a whole set void. Jobs that were
    never run are counted key by key: other workloads have others.
    """
    violations = [sum(bool(row[OVERALLOCATIONS] > 0 or row[VIOLATIONS] > 0) for row in runs.values()) for runs in sets]
    found = [Comparability.VIOLATIONS if broken else Comparability.COMPARABLE for broken in violations]
    for key in dict.fromkeys(key for runs in sets for key in runs):
        there = [number for number, runs in enumerate(sets) if key in runs]
        never_run = [sets[number][key]["nb_jobs"] - sets[number][key]["nb_jobs_finished"] for number in there]
        of_key = comparability_of([violations[number] for number in there], never_run)
        for number, one in zip(there, of_key, strict=True):
            found[number] = one if found[number] is Comparability.COMPARABLE else found[number]
    possible = {
        key for runs, one in zip(sets, found, strict=True) if one is not Comparability.VIOLATIONS for key in runs
    }
    return [
        Comparability.FAILED_RUNS if one is Comparability.COMPARABLE and not possible.isdisjoint(keys) else one
        for one, keys in zip(found, failures, strict=True)
    ]
