"""Timelines: entries are resolved to nodes, validated before the run, and drawn from separate streams."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batkube.execution.timeline.events import ClusterTimeline, TimelineEvent
from batkube.kernel.errors import InputError
from batkube.kernel.streams import Streams
from batkube.platforms.reader import read_platform
from batkube.workloads.timeline.entries import EventAction
from batkube.workloads.timeline.reader import read_events


def timeline_of(folder: Path, text: str, platform: str = "4x1") -> ClusterTimeline:
    (folder / "events.yaml").write_text(text, encoding="utf-8")
    return ClusterTimeline(read_events(folder / "events.yaml"), read_platform(platform))


def summary_of(events: list[TimelineEvent]) -> list[tuple[float, str, str]]:
    return [(one.at / 1e9, one.action.value, " ".join(one.nodes)) for one in events]


def test_an_event_with_a_duration_is_undone_even_after_the_next_has_begun(tmp_path: Path) -> None:
    timeline = timeline_of(
        tmp_path, "- {at: 10, every: 10, count: 2, cordon: node-0, for: 5}\n- {at: 12, fail: 1-2, for: 9}"
    )

    assert summary_of(list(timeline.events(Streams(0)))) == [
        (10, "cordon", "node-0"),
        (12, "fail", "node-1 node-2"),
        (15, "uncordon", "node-0"),
        (20, "cordon", "node-0"),
        (21, "return", "node-1 node-2"),
        (25, "uncordon", "node-0"),
    ]


def test_a_reclaimed_node_is_drained_then_removed_and_may_be_added_again(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, "- {at: 100, reclaim: node-3, notice: 120, for: 1h}")

    assert summary_of(list(timeline.events(Streams(0)))) == [
        (100, "drain", "node-3"),
        (220, "remove", "node-3"),
        (3820, "add", "node-3"),
    ]


def test_added_machines_have_ids_after_those_of_the_platform(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, "- {at: 5, every: 5, count: 2, add: 2x8, names: spot}\n- {at: 6, fail: spot-1}")

    assert [machine.name for machine in timeline.platform.machines[4:]] == ["spot-0", "spot-1", "spot-2", "spot-3"]
    assert [machine.id for machine in timeline.platform.machines] == list(range(8))
    assert summary_of(list(timeline.events(Streams(0)))) == [
        (5, "add", "spot-0 spot-1"),
        (6, "fail", "spot-1"),
        (10, "add", "spot-2 spot-3"),
    ]


def failures_of(node: str, folder: Path, platform: str, more: str = "") -> list[float]:
    timeline = timeline_of(
        folder, f"- {{between: 'exponential:1000', fail: all, for: 'uniform:5,10'}}\n{more}", platform
    )
    events = itertools.islice(timeline.events(Streams(7)), 9000)
    return [at for at, action, nodes in summary_of(list(events)) if nodes == node and action == "fail"][:10]


def test_more_nodes_and_more_entries_do_not_change_the_others(tmp_path: Path) -> None:
    alone = failures_of("node-1", tmp_path, "2x1")

    assert len(alone) == 10
    assert failures_of("node-1", tmp_path, "20x1") == alone
    assert failures_of("node-1", tmp_path, "2x1", "- {between: 'exponential:9', cordon: all, for: 1}\n") == alone
    assert failures_of("node-0", tmp_path, "2x1") != alone


def test_failures_occur_at_their_mean_interval(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, "- {between: 'exponential:1000', fail: all, for: 250, until: 1000000}", "20x1")

    events = summary_of(list(timeline.events(Streams(1))))

    # Each of 20 nodes is up for 1000 s and down for 250 s on average, over a million seconds.
    failures = sum(action == "fail" for _, action, _ in events)
    assert failures == pytest.approx(20 * 800, rel=0.05)
    assert events == sorted(events, key=lambda one: one[0])


WRONG = {
    "- {at: 5, fail: nobody}": "[0].fail: names node 'nobody', which does not exist",
    "- {at: 5, fail: 2-4}": "[0].fail: names machine 4, and there are 4 machines",
    "- {at: 5, fail: {zone: a}}": "[0].fail: selects no node: no node has these labels",
    "- {at: 5, return: node-1}": "[0].return: repairs 'node-1', which has not failed",
    "- {at: 5, fail: node-1}\n- {at: 3, return: node-1}": "[1].return: repairs 'node-1', which has not failed",
    "- {at: 5, fail: node-1}\n- {at: 6, fail: 0-1}": "[1].fail: fails 'node-1' at 6.000000 s",
    "- {at: 5, uncordon: node-1}": "[0].uncordon: makes 'node-1' available, which it is already",
    "- {at: 5, remove: node-1}\n- {at: 6, drain: node-1}": "[1].drain: acts on 'node-1' at 6.000000 s",
    "- {at: 5, add: 1x1, names: spot}\n- {at: 3, fail: spot-0}": "which is added later",
    "- {at: 5, add: 1x1, names: node}": "[0].names: adds node 'node-0', which exists already",
    "- {at: 5, add: nonsense}": "not a platform",
}


@pytest.mark.parametrize("chance", ["", "\n- {between: 'exponential:9', cordon: node-3, for: 1}"])
@pytest.mark.parametrize("text", list(WRONG))
def test_impossible_events_are_rejected_before_the_run_whatever_is_random_elsewhere(
    tmp_path: Path, text: str, chance: str
) -> None:
    with pytest.raises(InputError) as error:
        timeline_of(tmp_path, text + chance)

    assert WRONG[text] in str(error.value)


@pytest.mark.parametrize(
    "chance", ["{between: 'exponential:9', fail: node-1, for: 1}", "{at: 1, fail: node-1, for: 'uniform:1,9'}"]
)
def test_events_that_a_random_draw_may_make_possible_are_accepted(tmp_path: Path, chance: str) -> None:
    timeline = timeline_of(tmp_path, f"- {chance}\n- {{at: 5, return: node-1}}")

    assert (5, "return", "node-1") in summary_of(list(itertools.islice(timeline.events(Streams(0)), 20)))


_ENTRY = st.builds(
    lambda at, every, action, node, lasts: {"at": at, "every": every, action: node, "for": lasts, "until": 900},
    st.integers(0, 500),
    st.integers(40, 200),
    st.sampled_from(["fail", "cordon", "drain", "remove"]),
    st.sampled_from(["node-0", "1-2"]),
    st.one_of(st.integers(1, 30), st.just("uniform:1,200")),
)
_CHANCE = st.builds(
    lambda mean, action, lasts: {"between": f"exponential:{mean}", action: "all", "for": lasts, "until": 900},
    st.integers(20, 300),
    st.sampled_from(["fail", "cordon", "reclaim"]),
    st.one_of(st.integers(1, 60), st.just("exponential:30")),
)


_COURSES = {
    "fail": [EventAction.FAIL, EventAction.RETURN],
    "cordon": [EventAction.CORDON, EventAction.UNCORDON],
    "reclaim": [EventAction.DRAIN, EventAction.REMOVE, EventAction.ADD],
}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fixed=st.lists(_ENTRY, max_size=4), chance=st.lists(_CHANCE, min_size=1, max_size=3), seed=st.integers(0, 9))
def test_any_timeline_is_sorted_by_time_then_by_the_file_and_undoes_its_events(
    tmp_path: Path, fixed: list[dict[str, object]], chance: list[dict[str, object]], seed: int
) -> None:
    timeline = timeline_of(tmp_path, json.dumps([*chance, *fixed]))

    events = list(timeline.events(Streams(seed)))

    assert [one.at for one in events] == sorted(one.at for one in events)
    assert summary_of(events) == summary_of(list(timeline.events(Streams(seed))))
    for _, together in itertools.groupby(events, key=lambda one: one.at):
        places = [one.entry.place.at for one in together]
        assert places == sorted(places)
    for number in range(len(chance)):
        for node in ("node-0", "node-3"):
            own = [one for one in events if one.nodes == (node,) and one.entry.place.at == f"[{number}]"]
            actions = [one.action for one in own]
            course = next(course for action, course in _COURSES.items() if action in chance[number])
            assert actions == course * (len(own) // len(course))
            assert all(
                one.at < other.at for one, other in itertools.pairwise(own) if other.action is not EventAction.REMOVE
            )
