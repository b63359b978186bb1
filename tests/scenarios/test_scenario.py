"""Scenario files: resolution of their paths, and their description in the manifest."""

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
    """A folder with a workload and a policy, other than the current folder."""
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "w.json").write_text(json.dumps(WORKLOAD))
    (tmp_path / "inputs" / "mine.py").write_text(POLICY)
    return tmp_path / "inputs"


def scenario_in(folder: Path, **keys: str) -> batkube.Scenario:
    path = folder / "scenario.yaml"
    path.write_text(json.dumps({"workload": "w.json", "platform": "1x1", **keys}))
    return make_scenario(read_scenario_file(path), path)


@pytest.mark.parametrize("scheduler", ["policy:mine.py:Mine", "policy:./mine.py:Mine", "policy:../inputs/mine.py:Mine"])
def test_a_policy_file_is_resolved_against_the_scenario_and_hashed(folder: Path, scheduler: str) -> None:
    execute(scenario_in(folder, scheduler=scheduler), folder / "out")
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
def test_policy_file_returns_the_file_of_a_policy(scheduler: str, file: str | None) -> None:
    assert policy_file(scheduler) == (None if file is None else Path(file))


def test_a_built_in_policy_and_a_platform_shorthand_are_not_resolved_as_paths(folder: Path) -> None:
    scenario = scenario_in(folder, scheduler="policy:easy", platform="2x4,1Gi")

    assert (scenario.scheduler, scenario.platform) == ("policy:easy", "2x4,1Gi")


@pytest.mark.parametrize("platform", ["absent.xml", "sub/absent.yaml", "16x4.csv", "cluster"])
def test_a_missing_platform_is_reported_with_its_path_beside_the_scenario(folder: Path, platform: str) -> None:
    with pytest.raises(batkube.InputError) as error:
        execute(scenario_in(folder, platform=platform), folder / "out")

    assert error.value.source == str(folder / platform)


def test_a_null_workload_stays_null(folder: Path) -> None:
    assert scenario_values({"workload": None}, folder / "s.yaml").get("workload") is None


def test_an_absolute_platform_path_stays_unchanged(folder: Path) -> None:
    assert scenario_in(folder, platform="/data/nodes.yaml").platform == "/data/nodes.yaml"


def test_attached_programs_are_resolved_against_the_scenario_but_not_their_arguments(folder: Path) -> None:
    keys = {"scheduler": "kube-scheduler", "attach": ["./bin/mine --rules=./rules.yaml", "kube-controller-manager"]}
    scenario = make_scenario(scenario_values({"workload": "w.json", "platform": "1x1", **keys}, folder / "s.yaml"), "s")
    assert scenario.attach == (f"{folder}/bin/mine --rules=./rules.yaml", "kube-controller-manager")
    assert scenario.describe()["attach"] == list(scenario.attach)


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("python:./mine.py --rules=a:b", "python:{}/mine.py --rules=a:b"),
        ("real:/bin/sh -c x", "real:/bin/sh -c x"),
        ("second=preload:bin/mine", "second=preload:{}/bin/mine"),
        ("batsim:./mine", "batsim:{}/mine"),
        ("batsim:tcp://127.0.0.1:28000", "batsim:tcp://127.0.0.1:28000"),
        ("batsim:ipc:///tmp/x", "batsim:ipc:///tmp/x"),
    ],
)
def test_a_command_after_a_clock_or_a_protocol_is_found_beside_the_scenario(
    folder: Path, text: str, resolved: str
) -> None:
    assert scenario_values({"scheduler": text}, folder / "s.yaml")["scheduler"] == [resolved.format(folder)]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"attach": ["mine"]}, "policy:fcfs runs inside the simulation, where no program can be attached"),
        (
            {"controllers": "kube-controller-manager@1.34.4"},
            "policy:fcfs runs inside the simulation, where no program can be attached",
        ),
        ({"controllers": "theirs"}, "'theirs' is not a choice of controllers"),
        ({"scheduler": "name=policy:easy"}, "a policy schedules all jobs of a run"),
        ({"scheduler": ["kube-scheduler", "name=policy:easy"]}, "a policy schedules all jobs of a run"),
    ],
)
def test_policies_cannot_have_names_or_attached_programs(keys: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        make_scenario({"workload": "w.json", "platform": "1x1", **keys}, "s.yaml")
