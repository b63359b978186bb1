"""Which controllers of kube-controller-manager look after a run: nodes, too, where something happens to them."""

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
    """Return what a run with objects and these events is made of; no program is built or started for that."""
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    (folder / "events.yaml").write_text(events)
    files = {"workload": str(folder / "objects.yaml"), "events": str(folder / "events.yaml")}
    run = {"platform": "4x4,16Gi", "until": "1h", "scheduler": "kube-scheduler@1.34.4", "controllers": MANAGER}
    return read_inputs(make_scenario({**files, **run, **keys}, "test"), lambda *_: Path("/bin/true"))


def at_work(run: Inputs) -> set[str]:
    _, manager, *_ = run.external_programs
    texts = [text for text in (*manager.start.arguments, *manager.arguments) if text.startswith("--controllers=")]
    return set(texts[-1].partition("=")[2].split(","))


def test_nodes_are_looked_after_by_their_leases_where_something_happens_to_them(tmp_path: Path) -> None:
    usual = inputs(tmp_path, "- {at: 10, scale: Job/job, to: 2}\n")
    failing = inputs(tmp_path)
    assert not usual.has_leases
    assert failing.has_leases
    assert at_work(failing) - at_work(usual) == {"node-lifecycle-controller"}


def test_autoscalers_are_looked_after_where_there_are_any(tmp_path: Path) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3},
    }
    usual, scaling = inputs(tmp_path), inputs(tmp_path, objects=[JOB, autoscaler])
    assert at_work(scaling) - at_work(usual) == {"horizontal-pod-autoscaler-controller"}


@pytest.mark.parametrize(
    ("named", "are_watched"),
    [
        ("job-controller", False),
        ("*", True),
        ("*,-node-lifecycle-controller", False),
        ("node-lifecycle-controller", True),
    ],
)
def test_the_controllers_that_the_user_names_stay_as_they_are(tmp_path: Path, named: str, are_watched: bool) -> None:
    run = inputs(tmp_path, controllers=f"{MANAGER} --controllers={named}")
    assert at_work(run) == set(named.split(","))
    assert [runs_node_lifecycle(program) for program in run.external_programs] == [False, are_watched]
