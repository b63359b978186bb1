"""An invalid experiment file gives one message with the place, the problem and the closest valid name."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from batkube.experiments.description.experiment_file import read_experiment
from batkube.kernel.errors import InputError


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"axis": {}}, "axis: is not a key of an experiment\n  remedy: did you mean 'axes'?"),
        ({"workload": "w"}, "is a scenario, not an experiment"),
        (
            {"base": {"shceduler": "x"}},
            "base.shceduler: is not a key of a scenario\n  remedy: did you mean 'scheduler'?",
        ),
        ({"base": 3}, "base: is not a mapping"),
        ({"axes": {"schedular": ["a"]}}, "'schedular' is not a key of a scenario"),
        ({"axes": {"load": {"key": "plattform", "values": ["a"]}}}, "axes.load.key: 'plattform' is not a key"),
        ({"axes": {"load": {"light": {"worklaod": "a"}}}}, "axes.load.light.worklaod: 'worklaod' is not a key"),
        ({"axes": {"scheduler": "a"}}, "'a' is not a list of values\n  remedy: write [a]"),
        ({"axes": {"scheduler": []}}, "has no values"),
        ({"axes": {"scheduler": ["a", "a"]}}, "has the value 'a' twice"),
        ({"axes": {"patience": {"form": 1, "to": 2, "step": 1}}}, "axes.patience.form: is not a key of an axis"),
        ({"axes": {"patience": [{"form": 1, "to": 2}]}}, "axes.patience.form: is not a key of a range"),
        ({"axes": {"patience": {"from": 2, "to": 1, "step": 1}}}, "before it starts"),
        ({"axes": {"patience": {"from": 2, "to": 3, "step": 1, "values": [1]}}}, "has both 'values' and a range"),
        ({"axes": {"seed": [1, 2]}}, "axes.seed: is the name of a column of the results\n  remedy: write seeds"),
        ({"axes": {"chance": {"key": "seed", "values": [1]}}}, "seeds are not an axis"),
        ({"axes": {"makespan": {"key": "platform", "values": ["a"]}}}, "is the name of a column of the results"),
        ({"axes": {"a": {"x": {"platform": "p"}}, "platform": ["q"]}}, "sets 'platform', which the axis 'a' also sets"),
        (
            {"axes": {"scheduler-args": [None], "t": {"key": "scheduler-args.t", "values": [1]}}},
            "sets 'scheduler-args.t', which the axis 'scheduler-args' also sets",
        ),
        ({"seeds": 0}, "seeds: 0 is not a list of different seeds"),
        ({"seeds": [1, 1]}, "is not a list of different seeds"),
        ({"seeds": [1.5]}, "is not a list of different seeds"),
        ({"seeds": True}, "is not a list of different seeds"),
        ({"seeds": {"from": 1}}, "seeds: a range needs 'to'"),
        ({"seeds": 3, "base": {"seed": 1}}, "base.seed: is set together with 'seeds'"),
        ({"repeats": 0}, "repeats: 0 is not a number of repeats"),
        ({"repeats": "2"}, "is not a number of repeats"),
        ({"exclude": {"a": "b"}}, "exclude: is not a list of mappings"),
        ({"exclude": [{}]}, "exclude[1]: would exclude every run"),
        ({"axes": {"scheduler": ["a"]}, "exclude": [{"schedule": "a"}]}, "did you mean 'scheduler'?"),
        (
            {"axes": {"scheduler": ["easy"]}, "exclude": [{"scheduler": "eazy"}]},
            "exclude[1].scheduler.eazy: is not a value",
        ),
        ({"figures": ["a"]}, "figures: is not a list of mappings"),
        ({"title": 3}, "title: 3 is not a string"),
        ("text", "is not an experiment: a mapping is expected"),
    ],
)
def test_an_invalid_experiment_file_is_rejected(tmp_path: Path, content: object, message: str) -> None:

    path = tmp_path / "e.yaml"
    path.write_text(yaml.safe_dump(content))

    with pytest.raises(InputError) as error:
        read_experiment(path)
    assert message in str(error.value)
    assert str(error.value).startswith(str(path))


def test_figures_are_copied_unchanged_to_the_description() -> None:
    figures = [{"x": "seed", "y": "makespan", "baselines": {"theory": 2210}}]

    assert list(read_experiment({"figures": figures}).figures) == figures
