"""A user's scheduler, with a controller and a kind, in one file: the example of the how-to runs unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.schedulers.conftest import needs_go

import batkube
from batkube.kernel.errors import InputError, RunFailed

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "own-scheduler"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A folder with the example's catalogue, which a test may modify.

    Its programs' source stays where it is: builds are cached by the path of the source folder.
    """
    entries = yaml.safe_load((EXAMPLE / "schedulers.yaml").read_text())
    for entry in entries.values():
        entry["folder"] = str(EXAMPLE)
    (tmp_path / "schedulers.yaml").write_text(yaml.safe_dump(entries))
    return tmp_path


def run(example: Path, workload: Path, **more: object) -> batkube.Run:
    return batkube.run(
        workload=workload,
        platform="4x1",
        scheduler="teams",
        catalogue=str(example / "schedulers.yaml"),
        out=example / "out",
        **more,
    )


def change(example: Path, program: str, **fields: Any) -> None:  # noqa: ANN401 - any YAML
    file = example / "schedulers.yaml"
    entries = yaml.safe_load(file.read_text())
    entries[program] |= fields
    file.write_text(yaml.safe_dump(entries))


def plain_pod(folder: Path) -> Path:
    path = folder / "pod.yaml"
    container = {"name": "c", "image": "busybox", "command": ["sleep", "5"]}
    spec = {"schedulerName": "teams", "restartPolicy": "Never", "containers": [container]}
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone"}, "spec": spec}))
    return path


@needs_go
def test_the_controller_creates_pods_and_the_scheduler_starts_a_team_completely_or_not_at_all() -> None:
    run = batkube.run(
        workload=EXAMPLE / "teams.yaml",
        platform="4x1",
        scheduler="teams",
        catalogue=EXAMPLE / "schedulers.yaml",
        until="3m",
    )

    started = {name: list(group) for name, group in run.pods.groupby(run.pods["pod"].str[:4])["started"]}
    assert started["pair"] == [1, 1]
    assert started["four"] == [61] * 4
    assert run.pods[run.pods["pod"].str.startswith("five")]["scheduled"].isna().all()


@needs_go
def test_undefined_kinds_are_named_when_a_run_stalls(example: Path) -> None:
    change(example, "teams", definitions=[], companions=[])

    with pytest.raises(RunFailed) as told:
        run(example, plain_pod(example), patience="5m")
    assert "programs requested teams of example.org/v1, which are not defined" in str(told.value)


@needs_go
def test_a_controller_that_crashes_ends_the_run_with_its_last_lines(example: Path) -> None:
    change(example, "teams", definitions=[])

    with pytest.raises(RunFailed) as told:
        run(example, plain_pod(example))
    assert "teams-controller ended with exit code 1; its last lines, of teams-controller/log.txt" in str(told.value)
    assert "teams: 404 Not Found" in str(told.value)


@needs_go
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"definitions": ["nowhere"]}, "nowhere: cannot be read: No such file or directory"),
        ({"definitions": ["cmd"]}, "cmd: contains no CustomResourceDefinition"),
        (
            {"objects": [{"apiVersion": "example.org/v2", "kind": "Team", "metadata": {"name": "a"}}]},
            'program \'teams\': Team a: is rejected by the API: no matches for kind "Team" in version "example.org/v2"',
        ),
        ({"companions": ["nobody"]}, "nobody: is not a program of the catalogue"),
        ({"folder": "elsewhere"}, "elsewhere is not a folder with a go.mod"),
    ],
)
def test_an_invalid_catalogue_entry_is_rejected_before_anything_is_written(
    example: Path, fields: dict[str, Any], problem: str
) -> None:
    change(example, "teams", **fields)

    with pytest.raises(InputError) as told:
        run(example, plain_pod(example))
    assert problem in str(told.value)
    assert not (example / "out").exists()
