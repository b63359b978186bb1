"""Scenario files: what their paths are relative to, and what of it the manifest keeps."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import batkube
from batkube import InputError
from batkube.outputs.results import Results
from batkube.scenarios.files import read_scenario_file, scenario_values
from batkube.scenarios.keys import make_scenario
from batkube.scenarios.scenario import policy_file
from batkube.simulation.run import execute

WORKLOAD = {
    "jobs": [{"id": "1", "subtime": 0, "res": 1, "profile": "d"}],
    "profiles": {"d": {"type": "delay", "delay": 1}},
}
POLICY = """
from batkube.policies.interface import Policy, Start
class Mine(Policy):
    def decide(self, view):
        for job in view.queue:
            yield Start(job, view.free.fit(job))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a workload and a policy, which is not the current one."""
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "w.json").write_text(json.dumps(WORKLOAD))
    (tmp_path / "inputs" / "mine.py").write_text(POLICY)
    return tmp_path / "inputs"


def scenario_in(folder: Path, **keys: str) -> batkube.Scenario:
    path = folder / "scenario.yaml"
    path.write_text(json.dumps({"workload": "w.json", "platform": "1x1", **keys}))
    return make_scenario(read_scenario_file(path), path)


@pytest.mark.parametrize("written", ["policy:mine.py:Mine", "policy:./mine.py:Mine", "policy:../inputs/mine.py:Mine"])
def test_a_policy_file_is_found_beside_the_scenario_and_fingerprinted(folder: Path, written: str) -> None:
    execute(scenario_in(folder, scheduler=written), folder / "out")
    results = Results(folder / "out")

    entries = {Path(entry["path"]).name: entry["sha256"] for entry in results.manifest["inputs"]}
    assert entries["mine.py"] == hashlib.sha256(POLICY.encode()).hexdigest()
    assert list(entries) == ["w.json", "mine.py"]


@pytest.mark.parametrize(
    ("scheduler", "file"),
    [
        ("policy:easy", None),
        ("policy:a.py:B", "a.py"),
        ("policy:a.py", "a.py"),
        ("policy:/x/a.py:B", "/x/a.py"),
        ("http://host:1", None),
    ],
)
def test_what_of_a_scheduler_is_a_file(scheduler: str, file: str | None) -> None:
    assert policy_file(scheduler) == (None if file is None else Path(file))


def test_a_built_in_policy_and_a_shorthand_are_left_alone(folder: Path) -> None:
    scenario = scenario_in(folder, scheduler="policy:easy", platform="2x4,1Gi")

    assert (scenario.scheduler, scenario.platform) == ("policy:easy", "2x4,1Gi")


@pytest.mark.parametrize("platform", ["absent.xml", "sub/absent.yaml", "16x4.csv", "cluster"])
def test_a_missing_platform_is_looked_for_beside_the_scenario(folder: Path, platform: str) -> None:
    with pytest.raises(batkube.InputError) as caught:
        execute(scenario_in(folder, platform=platform), folder / "out")

    assert caught.value.source == str(folder / platform)


def test_a_workload_of_nothing_is_none(folder: Path) -> None:
    assert scenario_values({"workload": None}, folder / "s.yaml").get("workload") is None


def test_an_absolute_platform_stays_where_it_is(folder: Path) -> None:
    assert scenario_in(folder, platform="/data/nodes.yaml").platform == "/data/nodes.yaml"


def test_what_is_attached_is_found_beside_the_scenario_and_its_arguments_are_its_own(folder: Path) -> None:
    keys = {"scheduler": "kube-scheduler", "attach": ["./bin/mine --rules=./rules.yaml", "kube-controller-manager"]}
    scenario = make_scenario(scenario_values({"workload": "w.json", "platform": "1x1", **keys}, folder / "s.yaml"), "s")
    assert scenario.attach == (f"{folder}/bin/mine --rules=./rules.yaml", "kube-controller-manager")
    assert scenario.describe()["attach"] == list(scenario.attach)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"attach": ["mine"]}, "policy:fcfs decides within the simulation, where nothing can be attached"),
        (
            {"controllers": "kube-controller-manager@1.34.4"},
            "policy:fcfs decides within the simulation, where nothing can be attached",
        ),
        ({"controllers": "theirs"}, "'theirs' is not possible"),
        ({"scheduler": "name=policy:easy"}, "a policy schedules every job of a run"),
        ({"scheduler": ["kube-scheduler", "name=policy:easy"]}, "a policy schedules every job of a run"),
    ],
)
def test_policies_neither_have_names_nor_programs_beside_them(keys: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        make_scenario({"workload": "w.json", "platform": "1x1", **keys}, "s.yaml")
