"""The files of an emulated run, from its story."""

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
from emulation.builders import event_at, make_job, make_task, pod_at

NODES = ClusterNodes(["n1", "n2"], [{"cpu": 1000}, {"cpu": 1000}])


def recorded(
    folder: Path, *seen: PodUpdate | PodEvent, sizes: tuple[int, ...] = (1,), failure: RunFailed | None = None
) -> Results:
    tasks = [make_task(number, make_job(str(number), size=size)) for number, size in enumerate(sizes)]
    story = JobTracker(tasks, JobKind.POD)
    for number in range(len(sizes)):
        story.record_submission(number, Instant(0))
    for each in seen:
        story.handle(each)
    emulation = Emulation(Path("kubeconfig"), ())
    around = RunContext(emulation, NODES, "https://cluster", "v1.34.4", "cafe", "ours", (), CpuStopwatch())
    out = OutputFolder(folder / "out")
    with out.writing():
        OutputWriter(story, around, FidelityNotes()).write(out, failure)
    return Results(folder / "out")


def life(number: int, bound_s: float, end_s: float, node: str = "n1", name: str = "") -> list[PodUpdate]:
    running = pod_at(bound_s + 1, number, name, node=node, phase="Running", has_started=True)
    return [
        pod_at(bound_s, number, name, node=node),
        running,
        pod_at(end_s, number, name, node=node, phase="Succeeded", has_started=True),
    ]


def test_steps_are_told_in_columns_of_their_own_and_blank_when_nobody_saw_them(tmp_path: Path) -> None:
    results = recorded(tmp_path, event_at(0.5, "Scheduled"), *life(0, 1, 12), event_at(1.5, "Pulled"))

    (row,) = results.jobs[["scheduled", "pulling", "pulled", "created"]].to_numpy().tolist()
    assert row == ["0.500000", "", "1.500000", ""]
    assert (results.jobs["starting_time"][0], results.jobs["scheduled_time"][0]) == (2.0, 0.5)


def test_of_a_job_of_two_pods_the_last_one_counts(tmp_path: Path) -> None:
    pods = [*life(0, 1, 12, name="w0-0-0"), *life(0, 5, 16, "n2", name="w0-0-1")]

    results = recorded(tmp_path, *pods, sizes=(2,))

    job = results.jobs.iloc[0]
    assert (job["starting_time"], job["finish_time"], job["allocated_resources"]) == (6, 16, "0-1")
    (note,) = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert "did not wait for each other" in note["message"]


def test_busy_nodes_are_counted_once_however_many_pods_they_have(tmp_path: Path) -> None:
    results = recorded(tmp_path, *life(0, 1, 12), *life(1, 3, 20), *life(2, 4, 10, "n2"), sizes=(1, 1, 1))

    states = results.machine_states
    assert list(zip(states["time"], states["nb_computing"], strict=True)) == [(0, 0), (1, 1), (4, 2), (10, 1), (20, 0)]


def test_utilisation_counts_pods_from_binding_to_end_also_those_that_have_none(tmp_path: Path) -> None:
    results = recorded(tmp_path, *life(0, 1, 21), pod_at(11, 1, node="n2"), sizes=(1, 1))

    assert results.schedule["mean_utilisation"] == pytest.approx((20 + 10) / (2 * 21), abs=1e-6)


def test_a_pod_that_nobody_saw_running_started_when_it_was_bound_and_a_note_says_so_once(tmp_path: Path) -> None:
    over = pod_at(12, node="n1", phase="Succeeded", has_started=True, started_at="2026-01-01T00:00:00Z")

    results = recorded(tmp_path, pod_at(1, node="n1"), over)

    assert results.jobs["starting_time"][0] == 1
    (note,) = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert (note["subject"], note["count"]) == ("start", 1)


def test_a_node_that_came_later_gets_the_next_number(tmp_path: Path) -> None:
    results = recorded(tmp_path, *life(0, 1, 12, "new"))

    assert (results.machine_names, results.jobs["allocated_resources"][0]) == (["n1", "n2", "new"], "2")


def test_a_run_that_failed_says_so_and_keeps_the_jobs_that_ended(tmp_path: Path) -> None:
    failure = RunFailed("interrupted at 13 s")

    results = recorded(tmp_path, *life(0, 1, 12), pod_at(3, 1, node="n2"), sizes=(1, 1), failure=failure)

    assert (list(results.jobs["job_id"]), results.manifest["jobs"]) == (["0"], 2)
    assert (results.manifest["result"], results.manifest["failure"]) == ("failed", "interrupted at 13 s")
