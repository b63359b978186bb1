"""The queue of waiting jobs in a policy's view."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import overload

from batkube.workloads.model import Job


class JobQueue(Sequence[Job]):
    """Waiting jobs in order of submission. An iteration sees the queue as of its start."""

    def __init__(self) -> None:
        #: An OrderedDict, because a dict takes longer to find its first entry after many deletions.
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        #: The first job, or None.
        self.head: Job | None = None

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs.values()))

    @overload
    def __getitem__(self, index: int) -> Job: ...
    @overload
    def __getitem__(self, index: slice) -> list[Job]: ...
    def __getitem__(self, index: int | slice) -> Job | list[Job]:
        return list(self._jobs.values())[index]

    def __contains__(self, job: object) -> bool:
        return isinstance(job, Job) and job.key in self._jobs

    def push(self, job: Job) -> None:
        """Append `job`."""
        self._jobs[job.key] = job
        if self.head is None:
            self.head = job

    def remove(self, job: Job) -> bool:
        """Remove `job`; return whether it was in the queue."""
        if self._jobs.pop(job.key, None) is None:
            return False
        self.head = next(iter(self._jobs.values()), None)
        return True
