"""The columns that the page reads: nodes, jobs, pods and deltas, as arrays of numbers and texts.

A finished run is one chunk. A live run is a sequence of them: each has only new rows, whose positions continue those of
the chunks before. `page/src/wire.ts` declares the same columns. Times are microseconds, the resolution of playback.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from batkube.kernel.instants import Instant, format_seconds
from batkube.kernel.quantities import CPU, GPU, MACHINE, MEMORY, PODS
from batkube.outputs.playback.deltas import Delta, DeltaKind
from batkube.outputs.playback.model import NodeStatus, RecordedJob, RecordedNode, RecordedPod

ColumnChunk = dict[str, Any]

_NS_PER_MICROSECOND = 1000
#: The first resources of every page, in this order.
_USUAL_RESOURCES = (MACHINE, CPU, MEMORY, GPU, PODS)
_KINDS = {kind: position for position, kind in enumerate(DeltaKind)}
_STATUSES = {str(status): position for position, status in enumerate(NodeStatus)}


def resources_of(nodes: Iterable[RecordedNode]) -> tuple[str, ...]:
    """Return the resources that any node has: the usual ones first, then the others by name."""
    names = {name for node in nodes for name, amount in node.capacity.items() if amount}
    usual_resources = [name for name in _USUAL_RESOURCES if name in names]
    return (*usual_resources, *sorted(names.difference(usual_resources)))


class ColumnEncoder:
    """Encodes the rows of one run. Texts and requests are stored once, in tables, and referred to by position."""

    def __init__(self, resources: Sequence[str]) -> None:
        self._resources = tuple(resources)
        self._texts: dict[str, int] = {}
        self._requests: dict[tuple[int, ...], int] = {}
        self._nodes: dict[str, int] = {}
        self._time = 0

    def chunk(
        self,
        nodes: Sequence[RecordedNode],
        jobs: Sequence[RecordedJob],
        pods: Sequence[RecordedPod],
        deltas: Sequence[Delta],
        end: Instant,
    ) -> ColumnChunk:
        """Return the columns of rows that follow those of earlier chunks. The deltas are complete up to `end`."""
        texts, requests = len(self._texts), len(self._requests)
        columns = {
            "nodes": self._node_columns(nodes),
            "jobs": self._job_columns(jobs),
            "pods": self._pod_columns(pods),
            "deltas": self._delta_columns(deltas),
        }
        return {
            "texts": list(self._texts)[texts:],
            "requests": [list(amounts) for amounts in list(self._requests)[requests:]],
            **columns,
            "end": end // _NS_PER_MICROSECOND,
        }

    def _node_columns(self, nodes: Sequence[RecordedNode]) -> dict[str, Any]:
        for node in nodes:
            self._nodes[node.name] = len(self._nodes)
        return {
            "name": [node.name for node in nodes],
            "capacity": [[node.capacity.get(name, 0) for node in nodes] for name in self._resources],
            "zone": [self._text(node.zone) for node in nodes],
            "rack": [self._text(node.rack) for node in nodes],
            "pool": [self._text(node.pool) for node in nodes],
        }

    def _job_columns(self, jobs: Sequence[RecordedJob]) -> dict[str, Any]:
        walltimes = ["" if job.walltime is None else format_seconds(job.walltime) for job in jobs]
        return {
            "name": [job.key for job in jobs],
            "user": [self._text(job.user) for job in jobs],
            "scheduler": [self._text(job.scheduler) for job in jobs],
            "priority": [self._text("" if job.priority is None else str(job.priority)) for job in jobs],
            "walltime": [self._text(walltime.rstrip("0").rstrip(".")) for walltime in walltimes],
        }

    def _pod_columns(self, pods: Sequence[RecordedPod]) -> dict[str, Any]:
        return {
            "name": [pod.name for pod in pods],
            "job": [-1 if pod.job is None else pod.job for pod in pods],
            "request": [self._request(pod.requests) for pod in pods],
            "owner": [self._text(pod.owner) for pod in pods],
            "reason": [self._text(pod.reason) for pod in pods],
        }

    def _delta_columns(self, deltas: Sequence[Delta]) -> dict[str, Any]:
        times = []
        for delta in deltas:
            time = delta.at // _NS_PER_MICROSECOND
            times.append(time - self._time)
            self._time = time
        return {
            "time": times,
            "kind": [_KINDS[delta.kind] for delta in deltas],
            "subject": [delta.number for delta in deltas],
            "value": [self._value(delta) for delta in deltas],
            "text": [-1 if delta.kind is DeltaKind.NODE_STATUS else self._text(delta.text) for delta in deltas],
        }

    def _value(self, delta: Delta) -> int:
        """Return the node of a bound pod, the status of a node, or the number of failed attempts; -1 for the others.

        A client may bind a pod to a node that never existed: -1, too.
        """
        if delta.kind is DeltaKind.POD_BOUND:
            return self._nodes.get(delta.node, -1)
        if delta.kind is DeltaKind.NODE_STATUS:
            return _STATUSES[delta.text]
        return delta.count if delta.kind is DeltaKind.SCHEDULER_ATTEMPT else -1

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts)) if text else -1

    def _request(self, requests: Mapping[str, int]) -> int:
        amounts = tuple(1 if name == PODS else requests.get(name, 0) for name in self._resources)
        return self._requests.setdefault(amounts, len(self._requests))
