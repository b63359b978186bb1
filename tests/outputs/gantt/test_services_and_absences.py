"""What a chart shows beside jobs: pods of services, and machines that are not available."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from batkube.kernel.errors import InputError
from batkube.outputs.charts.palette import OTHERS_FILL, STATES
from batkube.outputs.gantt.chart import draw_gantt, save_gantt
from batkube.outputs.gantt.model import gantt_model_of
from batkube.outputs.gantt.rows import ABSENT_FILL
from batkube.outputs.measures.occupancy.absences import absences_of
from batkube.outputs.results import Results
from batkube.simulation.run import run

if TYPE_CHECKING:
    from outputs.conftest import MakeRun, Packed


def pod(name: str, machine: int, start: float, finish: float | None, owner: str = "", **more: object) -> dict:
    times = {"created": start, "scheduled": start, "started": start, "finished": finish}
    place = {"node": f"node-{machine}", "machine": machine}
    return {"pod": name, "workload_name": "w0", "phase": "Running", "owner": owner, **place, **times, **more}


@pytest.fixture
def served(make_run: MakeRun, packed: Packed) -> Results:
    """A job of a core, three pods of a Deployment and one of its own, on two machines of four cores."""
    return make_run(
        [("1", 0, 0, 60, "0", {"cpu": 1})],
        manifest={**packed(4000, 2), "end_s": 100},
        pods=[
            pod("job-1", 0, 0, 60, job_id="1"),
            pod("web-a", 0, 0, None, "ReplicaSet/web"),
            pod("web-b", 1, 0, None, "ReplicaSet/web"),
            pod("web-c", 1, 20, 50, "ReplicaSet/web"),
            pod("alone", 1, 30, 80),
        ],
    )


def happened(results: Results, *deeds: tuple[float, str, str]) -> Results:
    """Write down what happened to the machines of a run."""
    lines = [json.dumps({"t": int(at * 1e9), "event": deed, "nodes": nodes}) for at, deed, nodes in deeds]
    results.beside("journal.jsonl").write_text("\n".join(['{"t":0,"event":"submit","job":"w0!1"}', *lines, ""]))
    results.beside("machine_states.csv").write_text("time,nb_idle,nb_computing,nb_unavailable\n0,1,1,0\n5,0,1,1\n")
    return Results(results.path)


def legend(results: Results, by: str = "job") -> list[str]:
    return [text.get_text() for one in draw_gantt(results, color_by=by).legends for text in one.get_texts()]


def bars(results: Results) -> list[tuple[str, float, float, int]]:
    """Return of each box whose it is, from when until when, and its machine."""
    picture = gantt_model_of(results, title=None, color_by="job", window=None)
    names, boxes = picture.subjects["job_id"], picture.boxes
    rows = zip(boxes.job, boxes.left, boxes.right, boxes.top, strict=True)
    return [(names[job], float(left), float(right), int(top)) for job, left, right, top in rows]


def test_pods_of_services_are_bars_of_their_owner_and_those_alive_last_until_the_end(served: Results) -> None:
    assert sorted(bars(served)) == [
        ("1", 0, 60, 0),
        ("alone", 30, 80, 1),
        ("web", 0, 100, 0),
        ("web", 0, 100, 1),
        ("web", 20, 50, 1),
    ]
    picture = gantt_model_of(served, title=None, color_by="job", window=None)
    assert len(set(picture.colouring.fills)) > 1
    assert not picture.is_failure.any()
    assert "1 job on 2 machines" in picture.subtitle


def test_the_utilisation_below_is_that_of_jobs_alone(served: Results) -> None:
    picture = gantt_model_of(served, title=None, color_by="job", window=None)

    assert picture.utilisation.at(np.array([10.0, 70.0])).tolist() == [1 / 8, 0]


def test_a_chart_by_state_says_which_pods_are_of_no_job(served: Results) -> None:
    assert legend(served, "state") == [STATES["COMPLETED_SUCCESSFULLY"].label, STATES["SERVICE"].label]
    assert STATES["SERVICE"].fill == OTHERS_FILL


def test_a_run_of_services_alone_has_a_chart(make_run: MakeRun, packed: Packed) -> None:
    results = make_run([], manifest={**packed(4000), "end_s": 50}, pods=[pod("web-a", 0, 10, None, "ReplicaSet/web")])

    assert bars(results) == [("web", 10, 50, 0)]


def test_a_run_in_which_nothing_ran_has_none(make_run: MakeRun, packed: Packed) -> None:
    with pytest.raises(InputError, match="nothing ran on a known machine"):
        draw_gantt(make_run([], manifest=packed(4000)))


@pytest.mark.parametrize(
    ("deeds", "expected"),
    [
        ([(10, "fail", "node-0"), (30, "return", "node-0")], [(0, 10, 30)]),
        ([(10, "fail", "node-0 node-1")], [(0, 10, 100), (1, 10, 100)]),
        ([(10, "drain", "node-1"), (30, "uncordon", "node-1")], [(1, 10, 30)]),
        ([(10, "cordon", "node-0"), (20, "fail", "node-0"), (30, "return", "node-0")], [(0, 10, 100)]),
        ([(10, "remove", "node-0"), (30, "add", "node-0")], [(0, 10, 30)]),
        ([(40, "add", "node-1")], [(1, 0, 40)]),
        ([(10, "taint", "node-0"), (20, "label", "node-0"), (30, "fail", "elsewhere")], []),
    ],
)
def test_machines_are_away_as_the_journal_tells(
    served: Results, deeds: Sequence[tuple[float, str, str]], expected: list[tuple[int, float, float]]
) -> None:
    assert [tuple(one) for one in absences_of(happened(served, *deeds))] == expected


def test_a_machine_that_is_away_is_grey_and_hatched_behind_what_runs_on_it(served: Results, tmp_path: Path) -> None:
    def grey_pixels(results: Results, name: str) -> int:
        save_gantt(results, tmp_path / name)
        with Image.open(tmp_path / name) as image:
            return int((np.asarray(image.convert("RGB")) == int(ABSENT_FILL[1:3], 16)).all(axis=2).sum())

    assert grey_pixels(served, "before.png") < 500
    away = happened(served, (10, "fail", "node-0"), (30, "return", "node-0"))
    assert grey_pixels(away, "after.png") > 5_000
    assert legend(away) == ["machine not available"]
    assert sorted(bars(away)) == sorted(bars(served))


def test_a_journal_is_not_read_where_no_machine_was_ever_away(served: Results) -> None:
    served.beside("journal.jsonl").write_text('{"nodes": nonsense')
    served.beside("machine_states.csv").write_text("time,nb_idle,nb_computing,nb_unavailable\n0,1,1,0\n")

    assert absences_of(Results(served.path)) == []


def test_a_real_run_tells_it_all(tmp_path: Path) -> None:
    web = tmp_path / "web.yaml"
    web.write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2\n"
        "  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n"
        "    spec: {containers: [{name: c, image: i}]}\n"
    )
    events = [{"at": 100, "fail": "node-1"}, {"at": 160, "return": "node-1"}]

    results = run(workload=web, platform="2x4", events=events, until="5m", out=tmp_path / "out")

    assert [tuple(one) for one in absences_of(results)] == [(1, 100, 160)]
    assert {right for _, _, right, _ in bars(results)} == {300}
