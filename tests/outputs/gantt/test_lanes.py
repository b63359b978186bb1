"""Lanes and boxes of Gantt charts."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from batkube.outputs.gantt.lanes import Boxes, LanePiece, Span, assign_lanes, boxes_of
from batkube.outputs.measures.occupancy.stays import stays_of

if TYPE_CHECKING:
    from tests.run_folders import MakeRun, SharedMachines


def corners(boxes: Boxes) -> list[tuple[int, float, float, float, float]]:
    return list(
        zip(
            boxes.job.tolist(),
            boxes.left.tolist(),
            boxes.right.tolist(),
            boxes.top.tolist(),
            boxes.bottom.tolist(),
            strict=True,
        )
    )


def test_a_lane_is_as_high_as_the_share_of_the_job() -> None:
    assert assign_lanes([Span(0, 10, 1500)], 6000) == [LanePiece(0, 0.0, 0.25)]


def test_lanes_are_first_fit_from_the_top() -> None:
    spans = [Span(0, 10, 2000), Span(0, 4, 2000), Span(5, 8, 1000)]

    assert assign_lanes(spans, 4000) == [LanePiece(0, 0.0, 0.5), LanePiece(1, 0.5, 1.0), LanePiece(2, 0.5, 0.75)]


def test_a_lane_is_free_at_the_instant_at_which_its_job_ends() -> None:
    assert assign_lanes([Span(0, 5, 1000), Span(5, 9, 1000)], 1000) == [LanePiece(0, 0, 1), LanePiece(1, 0, 1)]


def test_a_job_is_drawn_in_pieces_if_only_scattered_lanes_are_free() -> None:
    # The first and third quarter are in use when a job of two quarters arrives.
    spans = [Span(0, 9, 1), Span(0, 5, 1), Span(0, 9, 1), Span(0, 5, 1), Span(5, 9, 2)]

    assert assign_lanes(spans, 4)[-2:] == [LanePiece(4, 0.25, 0.5), LanePiece(4, 0.75, 1.0)]


def test_lanes_of_an_over_allocated_period_are_scaled_down() -> None:
    spans = [Span(0, 10, 1000), Span(5, 12, 1000), Span(12, 20, 1000)]

    assert assign_lanes(spans, 1000) == [LanePiece(0, 0, 0.5), LanePiece(1, 0.5, 1), LanePiece(2, 0, 1)]


def test_a_very_short_overlap_needs_no_lane() -> None:
    spans = [Span(0, 10.1, 1000), Span(10, 20, 1000)]

    assert assign_lanes(spans, 1000, ignored_s=0.2) == [LanePiece(0, 0, 1), LanePiece(1, 0, 1)]


spans = st.builds(
    lambda start, length, milli: Span(start, start + length, milli),
    st.integers(0, 30),
    st.integers(0, 12),
    st.integers(1, 700),
)


@given(st.lists(spans, max_size=25))
def test_pieces_never_overlap_and_stay_in_their_row(spans: list[Span]) -> None:
    pieces = assign_lanes(spans, 1000)

    assert all(0 <= piece.top < piece.bottom <= 1 for piece in pieces)
    for one, other in combinations(pieces, 2):
        overlap_s = min(spans[one.span].end, spans[other.span].end) - max(
            spans[one.span].start, spans[other.span].start
        )
        assert overlap_s <= 0 or one.bottom <= other.top or other.bottom <= one.top


@given(st.lists(spans, max_size=25))
def test_every_job_is_drawn_with_its_height_if_all_fit(spans: list[Span]) -> None:
    pieces = assign_lanes(spans, 25 * 700)

    heights = dict.fromkeys(range(len(spans)), 0.0)
    for piece in pieces:
        heights[piece.span] += piece.bottom - piece.top
    np.testing.assert_allclose(list(heights.values()), [span.milli / (25 * 700) for span in spans])


def test_consecutive_machines_are_one_box(make_run: MakeRun) -> None:
    results = make_run([("1", 0, 0, 10, "0-3 6"), ("2", 0, 10, 20, "2-7")])

    assert corners(boxes_of(stays_of(results))) == [(0, 0, 10, 0, 4), (0, 0, 10, 6, 7), (1, 10, 20, 2, 8)]


def test_a_shared_machine_splits_a_range(make_run: MakeRun) -> None:
    results = make_run([("1", 0, 0, 10, "0-4"), ("2", 0, 5, 20, "2")])

    assert corners(boxes_of(stays_of(results))) == [
        (0, 0, 10, 0, 2),
        (0, 0, 10, 2, 2.5),
        (0, 0, 10, 3, 5),
        (1, 5, 20, 2.5, 3),
    ]


def test_pods_that_share_a_machine_have_lanes_as_high_as_their_cpu(
    make_run: MakeRun, shared_machines: SharedMachines
) -> None:
    times = {"created": 0, "scheduled": 0, "started": 0, "finished": 10, "phase": "Succeeded"}
    pods = [
        {"pod": "w0-1-0", "job_id": "1", "workload_name": "w0", "node": "node-1", "machine": 1, **times},
        {"pod": "w0-1-1", "job_id": "1", "workload_name": "w0", "node": "node-1", "machine": 1, **times},
    ]
    results = make_run(
        [("1", 0, 0, 10, "1", {"cpu": 1, "requested_number_of_resources": 2})],
        manifest=shared_machines(4000, 2),
        pods=pods,
    )

    assert corners(boxes_of(stays_of(results))) == [(0, 0, 10, 1, 1.25), (0, 0, 10, 1.25, 1.5)]


def test_without_pods_a_jobs_cpu_is_spread_evenly_over_its_machines(
    make_run: MakeRun, shared_machines: SharedMachines
) -> None:
    results = make_run(
        [("1", 0, 0, 10, "0-1", {"cpu": 1, "requested_number_of_resources": 4})], manifest=shared_machines(4000, 2)
    )

    assert corners(boxes_of(stays_of(results))) == [(0, 0, 10, 0, 0.5), (0, 0, 10, 1, 1.5)]


def test_an_evicted_attempt_is_drawn_as_lost_work(make_run: MakeRun) -> None:
    def pod(name: str, machine: int, started: float, finished: float) -> dict[str, object]:
        times = {"created": 0, "scheduled": started, "started": started, "finished": finished}
        return {"pod": name, "job_id": "1", "workload_name": "w0", "node": "n", "machine": machine, **times}

    results = make_run(
        [("1", 0, 20, 30, "4-5", {"evictions": 1})],
        pods=[pod("a", 0, 0, 5), pod("b", 1, 0, 5), pod("c", 4, 20, 30), pod("d", 5, 20, 30)],
    )

    boxes = boxes_of(stays_of(results))
    assert corners(boxes) == [(0, 20, 30, 4, 6), (0, 0, 5, 0, 2)]
    assert boxes.lost.tolist() == [False, True]


def test_unfinished_work_is_drawn_until_the_last_known_time(make_run: MakeRun) -> None:
    results = make_run([("1", 0, 5, None, "0"), ("2", 0, 0, 40, "1")])

    assert corners(boxes_of(stays_of(results)))[0] == (0, 5, 40, 0, 1)


def test_a_window_cuts_boxes_at_both_ends(make_run: MakeRun) -> None:
    boxes = boxes_of(stays_of(make_run([("1", 0, 0, 10, "0"), ("2", 0, 10, 30, "0"), ("3", 0, 40, 50, "0")])))

    assert corners(boxes.clipped_to(5, 20)) == [(0, 5, 10, 0, 1), (1, 10, 20, 0, 1)]
