"""A run with services, and events of its nodes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from batkube.outputs.gantt.chart import draw_gantt
from batkube.outputs.gantt.model import gantt_model_of
from batkube.outputs.results import Results

if TYPE_CHECKING:
    from tests.run_folders import MakeRun, SharedMachines


def pod(name: str, machine: int, start: float, finish: float | None, owner: str = "", **more: object) -> dict:
    times = {"created": start, "scheduled": start, "started": start, "finished": finish}
    location = {"node": f"node-{machine}", "machine": machine}
    return {"pod": name, "workload_name": "w0", "phase": "Running", "owner": owner, **location, **times, **more}


@pytest.fixture
def served(make_run: MakeRun, shared_machines: SharedMachines) -> Results:
    """A job with one core, three pods of a Deployment and a bare pod, on two machines with four cores each."""
    return make_run(
        [("1", 0, 0, 60, "0", {"cpu": 1})],
        manifest={**shared_machines(4000, 2), "end_s": 100},
        pods=[
            pod("job-1", 0, 0, 60, job_id="1"),
            pod("web-a", 0, 0, None, "ReplicaSet/web"),
            pod("web-b", 1, 0, None, "ReplicaSet/web"),
            pod("web-c", 1, 20, 50, "ReplicaSet/web"),
            pod("alone", 1, 30, 80),
        ],
    )


def with_events(results: Results, *events: tuple[float, str, str]) -> Results:
    """Write events of nodes into the journal of a run."""
    lines = [json.dumps({"t": int(at * 1e9), "event": event, "nodes": nodes}) for at, event, nodes in events]
    results.beside("journal.jsonl").write_text("\n".join(['{"t":0,"event":"submit","job":"w0!1"}', *lines, ""]))
    results.beside("machine_states.csv").write_text("time,nb_idle,nb_computing,nb_unavailable\n0,1,1,0\n5,0,1,1\n")
    return Results(results.path)


def legend(results: Results, by: str = "job") -> list[str]:
    return [
        text.get_text()
        for figure_legend in draw_gantt(results, color_by=by).legends
        for text in figure_legend.get_texts()
    ]


def bars(results: Results) -> list[tuple[str, float, float, int]]:
    """Return the subject, begin, end and machine of each box."""
    model = gantt_model_of(results, title=None, color_by="job", window=None)
    names, boxes = model.subjects["job_id"], model.boxes
    rows = zip(boxes.job, boxes.left, boxes.right, boxes.top, strict=True)
    return [(names[job], float(left), float(right), int(top)) for job, left, right, top in rows]
