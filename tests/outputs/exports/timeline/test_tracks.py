"""Tracks of a timeline, and the lanes of nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batkube.outputs.exports.timeline.items import TrackGroup
from batkube.outputs.exports.timeline.tracks import Lanes, Tracks


def test_a_track_is_created_once() -> None:
    tracks = Tracks()

    assert tracks.scheduler("a") is tracks.scheduler("a")
    assert tracks.scheduler("a").number != tracks.scheduler("b").number
    assert [track.name for track in tracks.pop_new()] == ["a", "b"]
    assert tracks.pop_new() == []


def test_parents_are_created_before_their_children() -> None:
    tracks = Tracks()
    lane = tracks.lane(3, "node-3", 1)

    node, created = tracks.pop_new()

    assert created is lane
    assert (node.name, node.order, lane.parent) == ("node-3", 3, node.number)


def test_subjects_of_different_kinds_with_one_name_have_different_tracks() -> None:
    tracks = Tracks()
    numbers = [tracks.counter("x", "pods"), tracks.scheduler("x"), tracks.job(0, "x"), tracks.node_status(0, "x")]

    assert len({track.number for track in numbers}) == 4
    assert {track.group for track in numbers} == set(TrackGroup)
    assert min(track.number for track in tracks.pop_new()) > max(TrackGroup)


def test_the_first_free_lane_is_taken() -> None:
    lanes = Lanes()
    assert [lanes.take("a") for _ in range(3)] == [0, 1, 2]
    lanes.release("a", 2)
    lanes.release("a", 0)

    assert (lanes.take("a"), lanes.take("b"), lanes.take("a"), lanes.take("a")) == (0, 0, 2, 3)


@given(st.lists(st.integers(0, 5)))
def test_no_lane_is_taken_twice_and_there_are_as_many_as_pods_at_once(steps: list[int]) -> None:
    """A step takes a lane, or releases one of those that are taken."""
    lanes, taken, most, highest = Lanes(), list[int](), 0, -1
    for step in steps:
        if step < len(taken):
            lanes.release("n", taken.pop(step))
        else:
            lane = lanes.take("n")
            assert lane not in taken
            taken.append(lane)
            most, highest = max(most, len(taken)), max(highest, lane)
    assert highest + 1 == most
