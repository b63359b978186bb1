"""A live page shows what the playback of the same run shows, however often it was disconnected."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.page.pages import PageOpener, as_shown, wait_until

from batkube.kernel.instants import Instant
from batkube.outputs.playback.deltas import Delta, DeltaKind
from batkube.outputs.playback.model import NodeStatus
from batkube.outputs.playback.playback import Playback
from batkube.page.columns import resources_of
from batkube.page.live.delta_columns import DeltaColumns
from batkube.page.live.live_page import LivePage
from batkube.page.live.recorder import Recorder
from batkube.page.live.stream import DeltaStream
from batkube.scenarios.keys import make_scenario
from batkube.simulation.assembly import Simulation
from batkube.simulation.run import execute


def scenario_of(folder: Path) -> Any:  # noqa: ANN401 - only passed on
    """Return a scenario in which nodes fail, jobs of several pods wait, and pods lose their work."""
    jobs = [
        {"id": str(number), "subtime": number * 7, "res": 1 + number % 3, "profile": f"d{number % 4}"}
        for number in range(30)
    ]
    profiles = {f"d{number}": {"type": "delay", "delay": 20 + 35 * number} for number in range(4)}
    (folder / "w.json").write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    (folder / "events.yaml").write_text("- {at: 60, fail: node-1, for: 80}\n- {at: 90, cordon: node-2}\n")
    keys = {
        "workload": [str(folder / "w.json")],
        "platform": "5x4",
        "scheduler": "policy:easy",
        "events": str(folder / "events.yaml"),
    }
    return make_scenario(keys, "test")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recorder, Playback]:
    """A recorder that observed a run, and the playback of the run's folder."""
    folder = tmp_path_factory.mktemp("recorded")
    recorders: list[Recorder] = []
    execute(
        scenario_of(folder),
        folder / "out",
        on_assembled=lambda simulation: recorders.append(Recorder(simulation.world)),
    )
    return recorders[0], Playback.read(folder / "out")


def lives_by_name(playback: Playback) -> dict[tuple[str, int], list[object]]:
    """Return what happened to each pod: the n-th of a name, its deltas without numbers."""
    return _lives([pod.name for pod in playback.pods], playback.deltas)


def deltas_of_recorder(recorder: Recorder) -> list[Delta]:
    """Return what was recorded as deltas of playback: the last node of a pod is that of its start and end, too."""
    deltas, nodes, statuses = [], dict[int, str](), list(NodeStatus)
    for time, kind_number, number, value, text in zip(*recorder.deltas.rows(0, len(recorder.deltas)), strict=True):
        kind = list(DeltaKind)[kind_number]
        if kind is DeltaKind.POD_BOUND:
            nodes[number] = recorder.nodes[value].name
        is_on_node = kind in (DeltaKind.POD_BOUND, DeltaKind.POD_STARTED, DeltaKind.POD_ENDED)
        status = statuses[value] if kind is DeltaKind.NODE_STATUS else text
        deltas.append(Delta(Instant(time * 1000), kind, number, nodes.get(number, "") if is_on_node else "", status))
    return deltas


def _lives(names: list[str], deltas: Any) -> dict[tuple[str, int], list[object]]:  # noqa: ANN401 - of deltas
    counts: dict[str, int] = {}
    identities = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        identities.append((name, counts[name]))
    lives: dict[tuple[str, int], list[object]] = {identity: [] for identity in identities}
    for delta in deltas:
        if (
            delta.kind in (DeltaKind.POD_QUEUED, DeltaKind.POD_BOUND, DeltaKind.POD_STARTED)
            or delta.kind is DeltaKind.POD_ENDED
        ):
            lives[identities[delta.number]].append((delta.at, delta.kind, delta.node))
    return lives


def test_recorded_pods_have_the_lives_of_the_files(recorded: tuple[Recorder, Playback]) -> None:
    recorder, playback = recorded

    assert _lives([pod.name for pod in recorder.pods], deltas_of_recorder(recorder)) == lives_by_name(playback)
    assert len(recorder.pods) > 60


def test_recorded_nodes_have_the_statuses_of_the_files(recorded: tuple[Recorder, Playback]) -> None:
    recorder, playback = recorded
    kinds = (DeltaKind.NODE_ADDED, DeltaKind.NODE_STATUS, DeltaKind.NODE_REMOVED)

    def changes(deltas: Any) -> list[object]:  # noqa: ANN401 - of deltas
        return [(delta.at, delta.kind, delta.number, delta.text) for delta in deltas if delta.kind in kinds]

    assert changes(deltas_of_recorder(recorder)) == changes(playback.deltas)
    assert [node.name for node in recorder.nodes] == [node.name for node in playback.nodes]
    assert [dict(node.capacity) for node in recorder.nodes] == [
        {name: amount for name, amount in node.capacity.items() if amount} for node in playback.nodes
    ]


def test_recorded_jobs_start_when_those_of_the_files_do(recorded: tuple[Recorder, Playback]) -> None:
    recorder, playback = recorded

    def starts(jobs: Any, deltas: Any) -> list[object]:  # noqa: ANN401 - of jobs and deltas
        kinds = (DeltaKind.JOB_QUEUED, DeltaKind.JOB_STARTED)
        return sorted((delta.at, delta.kind, jobs[delta.number].key) for delta in deltas if delta.kind in kinds)

    assert starts(recorder.jobs.jobs, deltas_of_recorder(recorder)) == starts(playback.jobs, playback.deltas)


def test_a_page_that_reconnects_receives_the_same(recorded: tuple[Recorder, Playback]) -> None:
    recorder, _ = recorded
    stream = DeltaStream(recorder, resources_of(recorder.nodes))
    everything, deltas, shown = [], recorder.deltas, DeltaColumns()
    recorder.deltas = shown
    try:
        for first, end in itertools.pairwise((0, 3, 4, 50, 51, len(deltas))):
            for time, kind, *row in zip(*deltas.rows(first, end), strict=True):
                shown.append(time, list(DeltaKind)[kind], *row)
            everything.append(json.loads(stream.answer({"since": str(len(everything))})[1]))
    finally:
        recorder.deltas = deltas
    chunks = list(itertools.chain.from_iterable(answer["chunks"] for answer in everything))

    assert len(chunks) == 5
    assert [answer["cursor"] for answer in everything] == ["1", "2", "3", "4", "5"]
    for since in range(6):
        assert json.loads(stream.answer({"since": str(since)})[1])["chunks"] == chunks[since:]
    for unknown in ("", "6", "-1", "x", "٣"):
        assert json.loads(stream.answer({"since": unknown})[1])["chunks"] == chunks
    assert sum(len(chunk["deltas"]["time"]) for chunk in chunks) == len(deltas)


def test_the_page_of_a_run_shows_what_its_files_say(open_page: PageOpener, tmp_path: Path) -> None:
    """The digest of the run is that of a run without a page."""
    pages: list[LivePage] = []

    def show(simulation: Simulation) -> None:
        pages.append(stack.enter_context(LivePage(simulation.world, "live", "in progress")))
        assert ask(pages[0].url)["chunks"] != []

    with contextlib.ExitStack() as stack:
        record = execute(scenario_of(tmp_path), tmp_path / "out", on_assembled=show)
        assert record.digest == execute(scenario_of(tmp_path), tmp_path / "other").digest
        playback = Playback.read(tmp_path / "out")
        pages[0].finish(tmp_path / "out")
        page = open_page(url=pages[0].url)
        wait_until(page.browser_page, f"window.batkube.end() >= {playback.end // 1000}")
        resources = resources_of(playback.nodes)
        for delta in playback.deltas[:: len(playback.deltas) // 12]:
            (shown,) = page.states_at(delta.at)
            expected = as_shown(playback.state_at(delta.at), resources)
            assert {name: node["used"] for name, node in shown["nodes"].items()} == {
                name: node["used"] for name, node in expected["nodes"].items()
            }
            assert len(shown["pending"]) == len(expected["pending"])
            assert len(shown["waiting_jobs"]) == len(expected["waiting_jobs"])


def ask(url: str) -> dict[str, Any]:
    """Return the answer to a page without anything."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    connection.request("GET", f"{parts.path}deltas?since=")
    answer: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return answer
