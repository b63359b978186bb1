"""The items of a timeline keep the promises of `items.py`."""

from __future__ import annotations

from collections import Counter, defaultdict

from batkube.kernel.instants import Instant
from batkube.outputs.exports.timeline.builder import timeline_of
from batkube.outputs.exports.timeline.details import flow_of
from batkube.outputs.exports.timeline.items import InstantMark, SliceBegin, SliceEnd, Track, Value
from batkube.outputs.playback.playback import Playback


def test_items_are_in_the_order_of_time_and_follow_their_track(run: Playback) -> None:
    tracks, last = set[int](), Instant(0)
    for item in timeline_of(run):
        if isinstance(item, Track):
            assert item.parent is None or item.parent in tracks
            tracks.add(item.number)
        else:
            assert item.track in tracks
            assert item.at >= last
            last = item.at


def test_every_slice_ends_when_its_begin_says(run: Playback) -> None:
    ends: defaultdict[int, list[Instant | None]] = defaultdict(list)
    for item in timeline_of(run):
        if isinstance(item, SliceBegin):
            assert not ends[item.track] or item.category == "pod", "only the slice of a pod has another one inside"
            ends[item.track].append(item.end)
        elif isinstance(item, SliceEnd):
            assert ends[item.track].pop() == item.at
    assert {end for open_ends in ends.values() for end in open_ends} <= {None}


def test_a_flow_leads_from_the_queue_over_the_binding_to_the_end_of_the_job(run: Playback) -> None:
    steps: defaultdict[int, list[str]] = defaultdict(list)
    for item in timeline_of(run):
        if isinstance(item, SliceBegin | InstantMark):
            for flow in item.flows:
                steps[flow].append(f"{item.category} end" if getattr(item, "is_last", False) else item.category)

    bound = [pod for pod in run.pods if pod.bound is not None]
    assert len(bound) > 100
    assert {tuple(steps[flow_of(pod.number)]) for pod in bound} == {("job", "bind", "pod", "job end")}


def test_jobs_of_failed_nodes_are_queued_again(run: Playback) -> None:
    marks = Counter(item.name for item in timeline_of(run) if isinstance(item, InstantMark) and item.category == "job")

    assert marks["queued again"] == sum(len(job.executions) - 1 for job in run.jobs) > 0
    assert sum(marks.values()) == sum(len(job.executions) for job in run.jobs)


def test_a_counter_has_a_value_only_where_it_changes(run: Playback) -> None:
    latest: dict[int, tuple[Instant, int | float]] = {}
    for item in timeline_of(run):
        if isinstance(item, Value):
            if item.track in latest:
                at, value = latest[item.track]
                assert item.at > at
                assert item.value != value
            latest[item.track] = item.at, item.value
    assert len(latest) == 5
