"""The output files of an emulated run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batkube.emulation.client.watch_events import PodEvent, PodUpdate
from batkube.emulation.job_tracker import JobTracker
from batkube.emulation.output_files import OutputWriter, RunContext
from batkube.emulation.preflight import ClusterNodes
from batkube.emulation.settings import Emulation, JobKind
from batkube.kernel.errors import RunFailed
from batkube.kernel.fidelity import FidelityNotes
from batkube.kernel.instants import Instant
from batkube.kernel.stopwatch import CpuStopwatch
from batkube.outputs.files.folder import OutputFolder
from batkube.outputs.results import Results
from emulation.builders import event_at, make_job, make_planned_job, pod_at

NODES = ClusterNodes(["n1", "n2"], [{"cpu": 1000}, {"cpu": 1000}])


def results_of(
    folder: Path, *events: PodUpdate | PodEvent, sizes: tuple[int, ...] = (1,), failure: RunFailed | None = None
) -> Results:
    planned_jobs = [make_planned_job(number, make_job(str(number), size=size)) for number, size in enumerate(sizes)]
    tracker = JobTracker(planned_jobs, JobKind.POD)
    for number in range(len(sizes)):
        tracker.record_submission(number, Instant(0))
    for each in events:
        tracker.handle(each)
    emulation = Emulation(Path("kubeconfig"), ())
    context = RunContext(emulation, NODES, "https://cluster", "v1.34.4", "cafe", "ours", (), CpuStopwatch())
    out = OutputFolder(folder / "out")
    with out.writing():
        OutputWriter(tracker, context, FidelityNotes()).write(out, failure)
    return Results(folder / "out")


def pod_updates(number: int, bound_s: float, end_s: float, node: str = "n1", name: str = "") -> list[PodUpdate]:
    running = pod_at(bound_s + 1, number, name, node=node, phase="Running", has_started=True)
    return [
        pod_at(bound_s, number, name, node=node),
        running,
        pod_at(end_s, number, name, node=node, phase="Succeeded", has_started=True),
    ]


def test_each_step_has_a_column_that_is_blank_if_the_step_was_not_observed(tmp_path: Path) -> None:
    results = results_of(tmp_path, event_at(0.5, "Scheduled"), *pod_updates(0, 1, 12), event_at(1.5, "Pulled"))

    (row,) = results.jobs[["scheduled", "pulling", "pulled", "created"]].to_numpy().tolist()
    assert row == ["0.500000", "", "1.500000", ""]
    assert (results.jobs["starting_time"][0], results.jobs["scheduled_time"][0]) == (2.0, 0.5)


def test_a_job_starts_and_finishes_with_its_last_pod(tmp_path: Path) -> None:
    pods = [*pod_updates(0, 1, 12, name="w0-0-0"), *pod_updates(0, 5, 16, "n2", name="w0-0-1")]

    results = results_of(tmp_path, *pods, sizes=(2,))

    job = results.jobs.iloc[0]
    assert (job["starting_time"], job["finish_time"], job["allocated_resources"]) == (6, 16, "0-1")
    (note,) = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert "did not wait for each other" in note["message"]


def test_a_node_with_several_pods_is_counted_as_one_busy_node(tmp_path: Path) -> None:
    results = results_of(
        tmp_path, *pod_updates(0, 1, 12), *pod_updates(1, 3, 20), *pod_updates(2, 4, 10, "n2"), sizes=(1, 1, 1)
    )

    states = results.machine_states
    assert list(zip(states["time"], states["nb_computing"], strict=True)) == [(0, 0), (1, 1), (4, 2), (10, 1), (20, 0)]


def test_utilisation_counts_pods_from_binding_to_their_end_or_that_of_the_run(tmp_path: Path) -> None:
    results = results_of(tmp_path, *pod_updates(0, 1, 21), pod_at(11, 1, node="n2"), sizes=(1, 1))

    assert results.schedule["mean_utilisation"] == pytest.approx((20 + 10) / (2 * 21), abs=1e-6)


def test_a_pod_that_was_not_observed_running_starts_at_its_binding_with_a_note(tmp_path: Path) -> None:
    succeeded = pod_at(12, node="n1", phase="Succeeded", has_started=True, started_at="2026-01-01T00:00:00Z")

    results = results_of(tmp_path, pod_at(1, node="n1"), succeeded)

    assert results.jobs["starting_time"][0] == 1
    (note,) = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert (note["subject"], note["count"]) == ("start", 1)


def test_a_node_that_is_added_during_the_run_gets_the_next_number(tmp_path: Path) -> None:
    results = results_of(tmp_path, *pod_updates(0, 1, 12, "new"))

    assert (results.machine_names, results.jobs["allocated_resources"][0]) == (["n1", "n2", "new"], "2")


def test_the_files_of_a_failed_run_have_the_failure_and_the_ended_jobs(tmp_path: Path) -> None:
    failure = RunFailed("interrupted at 13 s")

    results = results_of(tmp_path, *pod_updates(0, 1, 12), pod_at(3, 1, node="n2"), sizes=(1, 1), failure=failure)

    assert (list(results.jobs["job_id"]), results.manifest["jobs"]) == (["0"], 2)
    assert (results.manifest["result"], results.manifest["failure"]) == ("failed", "interrupted at 13 s")
