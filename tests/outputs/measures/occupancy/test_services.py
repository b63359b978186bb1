"""Pods of services in Gantt charts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.outputs.measures.occupancy.service_runs import bars, legend, pod

from batkube.kernel.errors import InputError
from batkube.outputs.charts.palette import OTHERS_FILL, STATES
from batkube.outputs.gantt.chart import draw_gantt
from batkube.outputs.gantt.model import gantt_model_of
from batkube.outputs.measures.occupancy.absences import absences_of
from batkube.outputs.results import Results
from batkube.simulation.run import run

if TYPE_CHECKING:
    from tests.run_folders import MakeRun, SharedMachines


def test_pods_of_services_are_bars_of_their_owner_and_running_ones_last_until_the_end(served: Results) -> None:
    assert sorted(bars(served)) == [
        ("1", 0, 60, 0),
        ("alone", 30, 80, 1),
        ("web", 0, 100, 0),
        ("web", 0, 100, 1),
        ("web", 20, 50, 1),
    ]
    model = gantt_model_of(served, title=None, color_by="job", window=None)
    assert len(set(model.colouring.fills)) > 1
    assert not model.is_failure.any()
    assert "1 job on 2 machines" in model.subtitle


def test_the_utilisation_panel_counts_only_jobs(served: Results) -> None:
    model = gantt_model_of(served, title=None, color_by="job", window=None)

    assert model.utilisation.at(np.array([10.0, 70.0])).tolist() == [1 / 8, 0]


def test_pods_without_a_job_have_a_colour_in_charts_by_state(served: Results) -> None:
    assert legend(served, "state") == [STATES["COMPLETED_SUCCESSFULLY"].label, STATES["SERVICE"].label]
    assert STATES["SERVICE"].fill == OTHERS_FILL


def test_a_run_with_only_services_has_a_chart(make_run: MakeRun, shared_machines: SharedMachines) -> None:
    results = make_run(
        [], manifest={**shared_machines(4000), "end_s": 50}, pods=[pod("web-a", 0, 10, None, "ReplicaSet/web")]
    )

    assert bars(results) == [("web", 10, 50, 0)]


def test_a_run_without_started_work_has_no_chart(make_run: MakeRun, shared_machines: SharedMachines) -> None:
    with pytest.raises(InputError, match="nothing ran on a known machine"):
        draw_gantt(make_run([], manifest=shared_machines(4000)))


def test_services_and_absences_of_a_simulated_run_are_shown(tmp_path: Path) -> None:
    web = tmp_path / "web.yaml"
    web.write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2\n"
        "  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n"
        "    spec: {containers: [{name: c, image: i}]}\n"
    )
    events = [{"at": 100, "fail": "node-1"}, {"at": 160, "return": "node-1"}]

    results = run(workload=web, platform="2x4", events=events, until="5m", out=tmp_path / "out")

    assert [tuple(absence) for absence in absences_of(results)] == [(1, 100, 160)]
    assert {right for _, _, right, _ in bars(results)} == {300}
