"""The JSON trace has the same slices, marks, counters and flows as that for Perfetto."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.outputs.exports.decoded_traces import decoded
from tests.outputs.playback.saturated_runs import EVENTS, a_run

from batkube.outputs.exports.export import save_export
from batkube.outputs.exports.formats import ExportFormat

Events = list[dict[str, Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_run(tmp_path_factory.mktemp("chrome") / "out", "priority", events=EVENTS, until="1500s")


@pytest.fixture(scope="module")
def events(folder: Path) -> Events:
    path = folder.with_suffix(".chrome.json")
    save_export(folder, path, ExportFormat.CHROME)
    trace = json.loads(path.read_bytes())
    assert trace["otherData"]["digest"] == json.loads((folder / "manifest.json").read_bytes())["digest"]
    assert path.read_bytes().count(b"\n") == len(trace["traceEvents"]) + 2  # an event per line
    return list(trace["traceEvents"])


def test_slices_marks_and_counters_are_those_for_perfetto(folder: Path, events: Events) -> None:
    save_export(folder, folder.with_suffix(".pftrace"), ExportFormat.PERFETTO)
    trace = decoded(folder.with_suffix(".pftrace"))
    end_us = 1_500_000_000

    expected = Counter(
        (name, category, ts // 1000, (end_us - ts // 1000) if dur < 0 else dur // 1000)
        for name, category, ts, dur in trace.execute("select name, category, ts, dur from slice")
    )
    shown = [event for event in events if event["ph"] in "Xi"]
    assert Counter((event["name"], event["cat"], event["ts"], event.get("dur", 0)) for event in shown) == expected
    assert any(event["ts"] + event.get("dur", 0) == end_us for event in shown)  # what did not end

    values = trace.execute("select name, ts / 1000, value from counter join track on track_id = track.id").fetchall()
    counters = [event for event in events if event["ph"] == "C"]
    assert [(event["name"], event["ts"], *event["args"].values()) for event in counters] == values


def test_each_flow_begins_once_and_goes_on_in_the_order_of_time(events: Events) -> None:
    flows: dict[int, Events] = {}
    for event in events:
        if event["ph"] in "stf":
            flows.setdefault(event["id"], []).append(event)

    assert len(flows) > 100
    for steps in flows.values():
        phases = "".join(event["ph"] for event in steps)
        assert phases.startswith("s")
        assert phases.count("s") == 1
        assert "f" not in phases[:-1]
        assert [event["ts"] for event in steps] == sorted(event["ts"] for event in steps)


def test_every_event_is_on_a_named_thread_of_a_named_process(events: Events) -> None:
    names = {(event["pid"], event["tid"], event["name"]): event["args"] for event in events if event["ph"] == "M"}

    assert [names[pid, 0, "process_name"]["name"] for pid in (1, 2, 3, 4)] == [
        "Cluster", "Schedulers", "Nodes", "Jobs",
    ]  # fmt: skip
    for event in events:
        if event["ph"] in "Xi":
            assert (event["pid"], event["tid"], "thread_name") in names
    assert {"node-0: pods", "node-3: status"} <= {arguments.get("name") for arguments in names.values()}


def test_threads_of_nodes_are_in_the_order_of_the_nodes(events: Events) -> None:
    indices, names = (
        {event["tid"]: event["args"][key] for event in events if event["name"] == kind and event["pid"] == 3}
        for kind, key in (("thread_sort_index", "sort_index"), ("thread_name", "name"))
    )

    in_order = [names[track].partition(":")[0] for track in sorted(indices, key=lambda track: indices[track])]
    in_order = [name for name in in_order if name not in (0, "Nodes")]
    assert list(dict.fromkeys(in_order)) == [*(f"node-{number}" for number in range(8)), "spot-0", "spot-1"]
