"""Completion indexes of an Indexed Job, as a set and as the text in its status: `1,3-5,7`.

Sets are integers as in `kernel.intervals`. Kubernetes: pkg/controller/job/indexed_job_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from batkube.cluster.object_meta import int_annotation
from batkube.cluster.store import KubeObject
from batkube.kernel.intervals import lowest, mask_of, members, runs

INDEX = "batch.kubernetes.io/job-completion-index"


def index_of(pod: KubeObject) -> int | None:
    """Return the completion index of a pod, or None if the annotation is missing or invalid."""
    return int_annotation(pod, INDEX)


def indexes_of(pods: Iterable[KubeObject]) -> int:
    """Return the set of the pods' indexes."""
    return mask_of(index for pod in pods if (index := index_of(pod)) is not None)


def all_indexes(completions: int) -> int:
    """Return the set of all indexes of a Job with this many completions."""
    return (1 << completions) - 1


def parse_indexes(text: str, completions: int) -> int:
    """Parse a set of indexes; ignores invalid parts and indexes beyond `completions`.

    Kubernetes: parseIndexesFromString.
    """
    indexes = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            indexes |= all_indexes(int(last or first) + 1) & ~all_indexes(int(first))
    return indexes & all_indexes(completions)


def format_indexes(indexes: int) -> str:
    """Format a set; two consecutive indexes are listed, three and more become a range."""
    parts: list[str] = []
    for first, last in runs(indexes):
        if last - first > 1:
            parts.append(f"{first}-{last}")
        else:
            parts += [str(first)] if first == last else [str(first), str(last)]
    return ",".join(parts)


def first_missing(taken: int, count: int, completions: int) -> list[int]:
    """Return the lowest `count` indexes that are not in `taken`, or fewer if there are not enough.

    Kubernetes: firstPendingIndexes.
    """
    free = all_indexes(completions) & ~taken
    return list(members(lowest(free, count) if free.bit_count() > count else free))
