"""Builds the timeline of a run from its deltas and its journal.

    Cluster      utilisation, free resources, waiting pods and jobs as counters; events of the run
    Schedulers   a track per scheduler: bindings, failed attempts, evictions, rejections, nominations
    Nodes        a track per node; in it, its status, and its pods in lanes of which each has one pod at a time
    Jobs         a track per job: a slice while it waits, and one while it runs

Each pod is a flow: from the slice in which its job waits, through its binding, to its slice on a node, and to the mark
at which its job ends or is queued again.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator

from batkube.kernel.instants import Instant
from batkube.outputs.exports.timeline.counters import Counters
from batkube.outputs.exports.timeline.details import (
    flow_of,
    flows_of_execution,
    job_details,
    node_details,
    pod_details,
    scheduler_of,
)
from batkube.outputs.exports.timeline.items import InstantMark, Item, SliceBegin, SliceEnd, Track
from batkube.outputs.exports.timeline.tracks import Lanes, Tracks
from batkube.outputs.playback.cells import at_resolution
from batkube.outputs.playback.deltas import Delta, DeltaKind
from batkube.outputs.playback.model import JournalEntry, NodeStatus, RecordedPod
from batkube.outputs.playback.playback import Playback

#: Decisions that are marks on the track of a scheduler; bindings and attempts come from the pods.
_DECISIONS = frozenset({"evict", "reject", "nominate", "admit", "late", "wait"})
#: Entries of the journal that deltas already show.
_IN_DELTAS = frozenset({"submit", "resubmit", "start", "finish", "bind", "attempt", "unschedulable"})


def timeline_of(run: Playback) -> Iterator[Item]:
    """Yield the items of the timeline of a run, in order."""
    return _TimelineBuilder(run).items()


class _TimelineBuilder:
    """Converts deltas and entries of the journal to items, one at a time."""

    def __init__(self, run: Playback) -> None:
        self._run = run
        self._tracks = Tracks()
        self._counters = Counters(run, self._tracks)
        self._node_numbers = {node.name: node.number for node in run.nodes}
        self._job_numbers = {job.key: job.number for job in run.jobs}
        self._lanes = Lanes()
        #: The lane of each pod that is on a node.
        self._lane_of: dict[int, tuple[int, Track]] = {}
        #: The tracks with an open slice that the next change of a job, of a node's status or of a starting pod ends.
        self._open: set[int] = set()
        #: The position of the current execution of each job.
        self._execution_of: defaultdict[int, int] = defaultdict(int)

    def items(self) -> Iterator[Item]:
        entries = [entry for entry in self._run.journal if entry.event not in _IN_DELTAS]
        entries.sort(key=lambda entry: entry.at)
        # At one instant deltas come first, since a decision follows the creation of its pods.
        changes: Iterator[Delta | JournalEntry] = heapq.merge(
            self._run.deltas, entries, key=lambda change: at_resolution(change.at)
        )
        for change in changes:
            for item in self._items_of(change):
                yield from self._tracks.pop_new()
                yield item
        for value in self._counters.values():
            yield from self._tracks.pop_new()
            yield value

    def _items_of(self, change: Delta | JournalEntry) -> Iterator[Item]:
        if isinstance(change, JournalEntry):
            yield self._mark_of(change)
            return
        yield from self._counters.apply(change)
        if change.kind in (DeltaKind.NODE_ADDED, DeltaKind.NODE_STATUS, DeltaKind.NODE_REMOVED):
            yield from self._node_items(change)
        elif change.kind in (DeltaKind.JOB_QUEUED, DeltaKind.JOB_STARTED, DeltaKind.JOB_ENDED):
            yield from self._job_items(change)
        elif change.kind in (DeltaKind.SCHEDULER_ATTEMPT, DeltaKind.POD_UNSCHEDULABLE):
            yield self._attempt(change, self._run.pods[change.number])
        elif change.kind is not DeltaKind.POD_QUEUED:
            yield from self._pod_items(change, self._run.pods[change.number])

    def _end_open_slice(self, track: int, at: Instant) -> Iterator[Item]:
        if track in self._open:
            self._open.remove(track)
            yield SliceEnd(track, at)

    def _node_items(self, delta: Delta) -> Iterator[Item]:
        """Yield marks where a node is added or removed, and a slice for each status other than `ready`."""
        node = self._run.nodes[delta.number]
        track = self._tracks.node_status(node.number, node.name).number
        yield from self._end_open_slice(track, delta.at)
        if delta.kind is DeltaKind.NODE_REMOVED:
            yield InstantMark(track, delta.at, "removed", "node", {})
        elif delta.kind is DeltaKind.NODE_ADDED:
            yield InstantMark(track, delta.at, "added", "node", node_details(node))
        elif delta.text != NodeStatus.READY:
            self._open.add(track)
            ends = [change.at for change in node.statuses if change.at > delta.at]
            ends += [period.end for period in node.periods if period.end is not None and period.end > delta.at]
            yield SliceBegin(track, delta.at, min(ends, default=None), delta.text, "node", {})

    def _job_items(self, delta: Delta) -> Iterator[Item]:
        """Yield slices in which a job waits and runs, and marks where it ends or is queued again."""
        job, position = self._run.jobs[delta.number], self._execution_of[delta.number]
        execution, track = job.executions[position], self._tracks.job(job.number, job.key).number
        yield from self._end_open_slice(track, delta.at)
        if delta.kind is DeltaKind.JOB_ENDED:
            flows = flows_of_execution(job, position, self._run.pods)
            yield InstantMark(track, delta.at, delta.text or "queued again", "job", {}, flows, is_last=True)
            self._execution_of[delta.number] += 1
            return
        self._open.add(track)
        if delta.kind is DeltaKind.JOB_QUEUED:
            end = execution.ended if execution.started is None else execution.started
            flows = flows_of_execution(job, position, self._run.pods)
            yield SliceBegin(track, delta.at, end, "waiting", "job", job_details(job), flows)
        else:
            yield SliceBegin(track, delta.at, execution.ended, "running", "job", job_details(job))

    def _pod_items(self, delta: Delta, pod: RecordedPod) -> Iterator[Item]:
        """Yield the slice of a pod on its node. Until the pod runs, an inner slice shows that it is starting."""
        if delta.kind is DeltaKind.POD_BOUND:
            yield from self._binding(delta, pod)
        elif pod.number in self._lane_of:
            lane, track = self._lane_of[pod.number]
            yield from self._end_open_slice(track.number, delta.at)
            if delta.kind is DeltaKind.POD_ENDED:
                yield SliceEnd(track.number, delta.at)
                del self._lane_of[pod.number]
                self._lanes.release(pod.node, lane)

    def _binding(self, delta: Delta, pod: RecordedPod) -> Iterator[Item]:
        scheduler = self._tracks.scheduler(scheduler_of(self._run, pod.job)).number
        flows = [flow_of(pod.number)]
        yield InstantMark(scheduler, delta.at, f"bind {pod.name}", "bind", {"node": pod.node}, flows)
        lane = self._lanes.take(pod.node)
        track = self._tracks.lane(self._node_numbers.get(pod.node, len(self._node_numbers)), pod.node, lane)
        self._lane_of[pod.number] = lane, track
        details = pod_details(pod, self._run.jobs)
        yield SliceBegin(track.number, delta.at, pod.ended, pod.name, "pod", details, flows)
        if pod.started is None or pod.started > delta.at:
            self._open.add(track.number)
            end = pod.ended if pod.started is None else pod.started
            yield SliceBegin(track.number, delta.at, end, "starting", "pod", {})

    def _attempt(self, delta: Delta, pod: RecordedPod) -> InstantMark:
        scheduler = self._tracks.scheduler(scheduler_of(self._run, pod.job)).number
        if delta.kind is DeltaKind.SCHEDULER_ATTEMPT:
            return InstantMark(scheduler, delta.at, f"attempt {pod.name}", "attempt", {"failed": delta.count})
        return InstantMark(scheduler, delta.at, f"unschedulable {pod.name}", "unschedulable", {"reason": delta.text})

    def _mark_of(self, entry: JournalEntry) -> InstantMark:
        """Return the mark of a decision on the track of its scheduler, or that of an event of the cluster."""
        fields = entry.fields
        subject = next((fields[name] for name in ("job", "pod", "nodes", "object") if name in fields), "")
        name = f"{entry.event} {subject}".rstrip()
        if entry.event in _DECISIONS:
            track = self._tracks.scheduler(scheduler_of(self._run, self._job_numbers.get(str(fields.get("job")))))
        else:
            track = self._tracks.events()
        return InstantMark(track.number, at_resolution(entry.at), name, entry.event, fields)
