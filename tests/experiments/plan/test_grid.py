"""The grid contains every combination once, in the order of the file."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batkube.experiments.description.experiment_file import read_experiment
from batkube.experiments.plan.grid import apply_settings, points

#: Keys of a scenario that take any text, so that axes may be named after them.
KEYS = ["platform", "decision-cost", "scheduler", "resources"]


@st.composite
def experiments(draw: st.DrawFn) -> dict[str, Any]:
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=3))
    labels = st.lists(st.text("abcdef", min_size=1, max_size=3), unique=True, min_size=1, max_size=4)
    return {
        "base": {"workload": "w"},
        "axes": {key: draw(labels) for key in keys},
        "seeds": draw(st.one_of(st.integers(1, 3), st.lists(st.integers(-9, 9), unique=True, min_size=1, max_size=3))),
        "repeats": draw(st.integers(1, 3)),
    }


def seeds_of(content: dict[str, Any]) -> list[int]:
    return list(range(content["seeds"])) if isinstance(content["seeds"], int) else content["seeds"]


@given(experiments())
def test_every_combination_occurs_once_and_in_order(content: dict[str, Any]) -> None:
    grid = list(points(read_experiment(content)))

    expected = itertools.product(*content["axes"].values(), seeds_of(content), range(1, content["repeats"] + 1))
    assert [(*point.labels.values(), point.seed, point.repeat) for point in grid] == list(expected)
    for point in grid:
        assert point.content == {"workload": "w", **point.labels, "seed": point.seed}


@given(experiments(), st.data())
def test_points_that_match_a_whole_rule_are_excluded(content: dict[str, Any], data: st.DataObject) -> None:
    names = {**content["axes"], "seed": seeds_of(content)}
    rule = {
        name: data.draw(st.lists(st.sampled_from(labels), min_size=1, unique=True))
        for name, labels in names.items()
        if data.draw(st.booleans())
    }

    all_points = list(points(read_experiment(content)))
    grid = list(points(read_experiment({**content, "exclude": [rule] if rule else []})))

    def matches(coordinates: dict[str, Any]) -> bool:
        return bool(rule) and all(coordinates[name] in labels for name, labels in rule.items())

    assert grid == [point for point in all_points if not matches({**point.labels, "seed": point.seed})]


def test_an_experiment_without_axes_is_one_run() -> None:
    (point,) = points(read_experiment({"base": {"workload": "w", "platform": "1x1", "seed": 5}}))

    assert (point.labels, point.seed, point.repeat) == ({}, 5, 1)


def test_a_labelled_value_sets_several_keys_at_once() -> None:
    loads = {"light": {"workload": "l", "platform": "1x1"}, "heavy": {"workload": "h", "platform": "9x1"}}

    grid = list(points(read_experiment({"axes": {"load": loads}})))

    assert [point.labels["load"] for point in grid] == ["light", "heavy"]
    assert [point.content["platform"] for point in grid] == ["1x1", "9x1"]
    assert [point.content["workload"] for point in grid] == ["l", "h"]


def test_a_list_of_values_may_mix_ranges_labels_and_plain_values() -> None:
    values = [{"from": "0ms", "to": "10ms", "step": "5ms"}, "1s", {"exact": {"time": "exact"}}]
    base = {"time": {"mode": "paced", "max-step": "20s"}}

    grid = list(points(read_experiment({"base": base, "axes": {"timeout": {"key": "time.timeout", "values": values}}})))

    assert [point.labels["timeout"] for point in grid] == ["0ms", "5ms", "10ms", "1s", "exact"]
    assert grid[1].content["time"] == {"mode": "paced", "max-step": "20s", "timeout": "5ms"}
    assert grid[4].content["time"] == "exact"


def test_a_plain_value_may_have_a_label() -> None:
    grid = list(
        points(read_experiment({"axes": {"machines": {"key": "platform", "values": {16: "16x1", 32: "32x1"}}}}))
    )

    assert [(point.labels["machines"], point.content["platform"]) for point in grid] == [("16", "16x1"), ("32", "32x1")]


def test_a_dotted_key_sets_one_entry_of_a_mapping_and_keeps_the_others() -> None:
    content = {"scheduler-args": {"a": 1, "b": 2}}

    assert apply_settings(content, {"scheduler-args.b": 3, "x.y.z": 4}) == {
        "scheduler-args": {"a": 1, "b": 3},
        "x": {"y": {"z": 4}},
    }
    assert content == {"scheduler-args": {"a": 1, "b": 2}}


def test_lists_and_booleans_have_labels() -> None:
    axes = {"workload": [["a", "b"], "c"], "deterministic": [True, False], "latencies": [None, "l.yaml"]}

    labels = [axis.labels for axis in read_experiment({"axes": axes}).axes]

    assert labels == [["a+b", "c"], ["true", "false"], ["none", "l.yaml"]]
    switch = {"key": "energy", "values": {True: True, False: False}}  # YAML reads `on` and `off` as booleans
    assert read_experiment({"axes": {"metered": switch}}).axes[0].labels == ["true", "false"]


def test_a_file_and_a_mapping_mean_the_same(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("base: {workload: w}\naxes: {scheduler: [a, b]}\nseeds: {from: 1, to: 3}\n")
    content = {"base": {"workload": "w"}, "axes": {"scheduler": ["a", "b"]}, "seeds": [1, 2, 3]}

    assert list(points(read_experiment(path))) == list(points(read_experiment(content)))
