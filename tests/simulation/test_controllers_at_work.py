"""Which controllers of kube-controller-manager look after a run: nodes, too, where something happens to them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from batkube.kernel.fidelity import FidelityNotes
from batkube.programs.controller_manager import note_order, watches_nodes
from batkube.scenarios.keys import make_scenario
from batkube.simulation.inputs import Inputs, read_inputs

MANAGER = "kube-controller-manager@1.34.4"
FAILURE = "- {at: 1000, fail: node-0, for: 2000}\n"
ALL_KINDS = ("DaemonSet", "Deployment", "Job", "StatefulSet")


def inputs(folder: Path, events: str = FAILURE, kinds: tuple[str, ...] = ("Job",), **keys: object) -> Inputs:
    """Return what a run with these objects and events is made of; no program is built or started for that."""
    objects = [manifest(kind) for kind in kinds]
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    (folder / "events.yaml").write_text(events)
    files = {"workload": str(folder / "objects.yaml"), "events": str(folder / "events.yaml")}
    run = {"platform": "4x4,16Gi", "until": "1h", "scheduler": "kube-scheduler@1.34.4", "controllers": MANAGER}
    return read_inputs(make_scenario({**files, **run, **keys}, "test"), lambda *_: Path("/bin/true"))


def manifest(kind: str) -> dict[str, object]:
    group = "batch/v1" if kind == "Job" else "policy/v1" if kind == "PodDisruptionBudget" else "apps/v1"
    pods = {"containers": [{"name": "c", "image": "i"}], **({"restartPolicy": "Never"} if kind == "Job" else {})}
    labels = {"app": kind.lower()}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    template = {} if kind == "PodDisruptionBudget" else {"template": {"metadata": {"labels": labels}, "spec": pods}}
    named = {"serviceName": "s"} if kind == "StatefulSet" else {}
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": kind.lower()},
        "spec": {**selector, **template, **named},
    }


def at_work(run: Inputs) -> set[str]:
    _, manager, *_ = run.outside
    texts = [text for text in (*manager.start.arguments, *manager.arguments) if text.startswith("--controllers=")]
    return set(texts[-1].partition("=")[2].split(","))


def has_note(run: Inputs) -> bool:
    notes = FidelityNotes()
    for program in run.outside:
        note_order(program, notes)
    return bool(notes.rows())


def test_nodes_are_looked_after_by_their_leases_where_something_happens_to_them(tmp_path: Path) -> None:
    usual = inputs(tmp_path, "- {at: 10, scale: Job/job, to: 2}\n")
    failing = inputs(tmp_path)
    assert not usual.has_leases
    assert failing.has_leases
    assert at_work(failing) - at_work(usual) == {"node-lifecycle-controller"}


@pytest.mark.parametrize(
    ("kinds", "idle"),
    [
        (("Job",), {"disruption-controller"}),
        (("Job", "PodDisruptionBudget"), {"daemonset-controller"}),
        ((*ALL_KINDS, "PodDisruptionBudget"), set()),
    ],
)
def test_one_controller_that_has_nothing_to_do_makes_room(
    tmp_path: Path, kinds: tuple[str, ...], idle: set[str]
) -> None:
    run = inputs(tmp_path, kinds=kinds)
    assert at_work(inputs(tmp_path, "[]", kinds)) - at_work(run) == idle
    assert has_note(run) == (not idle), "with nine that watch pods, a run may not repeat itself to the byte"


def test_none_makes_room_where_other_programs_may_make_objects(tmp_path: Path) -> None:
    run = inputs(tmp_path, attach=["/bin/true"])
    assert "disruption-controller" in at_work(run)


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
    assert [watches_nodes(program) for program in run.outside] == [False, are_watched]
