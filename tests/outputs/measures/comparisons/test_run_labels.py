"""Labels of compared runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.outputs.measures.comparisons.run_labels import labels_of


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (["/x/easy", "/x/fcfs"], ["easy", "fcfs"]),
        (["/x/easy/out", "/x/fcfs/out"], ["easy", "fcfs"]),
        (["/x/a/one", "/x/b/one", "/x/b/two"], ["a/one", "b/one", "two"]),
        (["/x/burst_0_jobs.csv", "/x/burst_1_jobs.csv"], ["burst_0", "burst_1"]),
        (["/x/easy/jobs.csv", "/x/fcfs/jobs.csv"], ["easy", "fcfs"]),
        (["/x/a", "/x/a"], ["a", "a (2)"]),
        (["/x/a"], ["a"]),
    ],
)
def test_labels_are_the_shortest_names_that_differ(paths: list[str], labels: list[str]) -> None:
    assert labels_of([Path(path) for path in paths]) == labels
