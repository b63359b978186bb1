"""The controllers that the real kube-controller-manager runs: only those that a run needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from batkube.programs.selection.controller_manager import runs_node_lifecycle
from batkube.scenarios.keys import make_scenario
from batkube.simulation.preparation.inputs import Inputs, read_inputs

MANAGER = "kube-controller-manager@1.34.4"
FAILURE = "- {at: 1000, fail: node-0, for: 2000}\n"
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "job"},
    "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}},
}


def inputs(folder: Path, events: str = FAILURE, objects: Sequence[object] = (JOB,), **keys: object) -> Inputs:
    """Return the inputs of a run with these objects and events, without building or starting a program."""
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    (folder / "events.yaml").write_text(events)
    files = {"workload": str(folder / "objects.yaml"), "events": str(folder / "events.yaml")}
    run = {"platform": "4x4,16Gi", "until": "1h", "scheduler": "kube-scheduler@1.34.4", "controllers": MANAGER}
    return read_inputs(make_scenario({**files, **run, **keys}, "test"), lambda *_: Path("/bin/true"))


def enabled_controllers(run: Inputs) -> set[str]:
    _, manager, *_ = run.external_programs
    texts = [text for text in (*manager.start.arguments, *manager.arguments) if text.startswith("--controllers=")]
    return set(texts[-1].partition("=")[2].split(","))


def test_the_node_lifecycle_controller_runs_if_nodes_can_fail(tmp_path: Path) -> None:
    default = inputs(tmp_path, "- {at: 10, scale: Job/job, to: 2}\n")
    failing = inputs(tmp_path)
    assert not default.has_leases
    assert failing.has_leases
    assert enabled_controllers(failing) - enabled_controllers(default) == {"node-lifecycle-controller"}


def test_the_autoscaler_runs_if_there_are_autoscalers(tmp_path: Path) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3},
    }
    default, scaling = inputs(tmp_path), inputs(tmp_path, objects=[JOB, autoscaler])
    assert enabled_controllers(scaling) - enabled_controllers(default) == {"horizontal-pod-autoscaler-controller"}


@pytest.mark.parametrize(
    ("selection", "are_watched"),
    [
        ("job-controller", False),
        ("*", True),
        ("*,-node-lifecycle-controller", False),
        ("node-lifecycle-controller", True),
    ],
)
def test_controllers_named_by_the_user_are_unchanged(tmp_path: Path, selection: str, are_watched: bool) -> None:
    run = inputs(tmp_path, controllers=f"{MANAGER} --controllers={selection}")
    assert enabled_controllers(run) == set(selection.split(","))
    assert [runs_node_lifecycle(program) for program in run.external_programs] == [False, are_watched]
