"""A Perfetto trace has the nodes, jobs, schedulers and counters of the run."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY
from tests.outputs.exports.decoded_traces import decoded
from tests.outputs.playback.saturated_runs import EVENTS, a_run

from batkube.outputs.exports.export import save_export
from batkube.outputs.exports.formats import ExportFormat
from batkube.outputs.playback.playback import Playback
from batkube.outputs.results import Results


def exported(run: Path, path: Path) -> sqlite3.Connection:
    save_export(run, path, ExportFormat.PERFETTO)
    return decoded(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("exported")
    latencies = base / "latencies.yaml"
    latencies.write_text("start: uniform:0.1,2.3\nreport: uniform:0.1,1.7\n")
    return a_run(base / "out", events=EVENTS, latencies=latencies)


@pytest.fixture(scope="module")
def trace(folder: Path) -> sqlite3.Connection:
    return exported(folder, folder.with_suffix(".pftrace"))


def test_every_pod_is_a_slice_of_its_node_from_its_binding_to_its_end(folder: Path, trace: sqlite3.Connection) -> None:
    slices = trace.execute(
        """
        select slice.name, node.name, slice.ts, slice.ts + slice.dur
        from slice join track on slice.track_id = track.id join track as node on track.parent_id = node.id
        where category = 'pod' and depth = 0
        """
    ).fetchall()

    pods = [pod for pod in Playback.read(folder).pods if pod.bound is not None]
    assert sorted(slices) == sorted((pod.name, pod.node, pod.bound, pod.ended) for pod in pods)


def test_pods_of_a_lane_do_not_overlap_and_those_of_other_nodes_have_other_lanes(trace: sqlite3.Connection) -> None:
    overlaps = trace.execute(
        """
        select count(*) from slice as one join slice as other on one.track_id = other.track_id and one.id < other.id
        where one.category = 'pod' and other.category = 'pod' and one.depth = 0 and other.depth = 0
          and other.ts < one.ts + one.dur
        """
    ).fetchone()

    assert overlaps == (0,)


def test_a_pod_starts_inside_its_slice(folder: Path, trace: sqlite3.Connection) -> None:
    starts = trace.execute("select ts, dur from slice where name = 'starting' and depth = 1").fetchall()

    pods = Playback.read(folder).pods
    assert sorted(starts) == sorted(
        (pod.bound, (pod.ended if pod.started is None else pod.started) - pod.bound)  # type: ignore[operator]
        for pod in pods
        if pod.bound is not None and pod.started != pod.bound
    )


def test_jobs_wait_and_run_as_long_as_jobs_csv_says(folder: Path, trace: sqlite3.Connection) -> None:
    slices = trace.execute(
        """
        select track.name, slice.name, sum(dur) from slice join track on slice.track_id = track.id
        where category = 'job' and dur > 0 group by 1, 2
        """
    ).fetchall()
    jobs = Results(folder).jobs
    once = jobs[jobs["attempts"] == 1]
    waits = {(f"w0!{row.job_id}", "waiting"): row.waiting_time for row in once.itertuples() if row.waiting_time}

    lengths = {(job, name): total / 1e9 for job, name, total in slices}
    assert waits
    assert {key: lengths[key] for key in waits} == pytest.approx(waits)


def test_a_pod_is_a_flow_from_its_waiting_job_through_its_binding_and_its_node_to_the_end_of_the_job(
    folder: Path, trace: sqlite3.Connection
) -> None:
    steps = trace.execute(
        """
        select one.name, two.category, three.category, four.category, count(*)
        from flow as a join flow as b on a.slice_in = b.slice_out join flow as c on b.slice_in = c.slice_out
             join slice as one on one.id = a.slice_out join slice as two on two.id = a.slice_in
             join slice as three on three.id = b.slice_in join slice as four on four.id = c.slice_in
        where two.name = 'bind ' || three.name
        group by 1, 2, 3, 4
        """
    ).fetchall()

    pods = [pod for pod in Playback.read(folder).pods if pod.bound is not None]
    assert [row[:4] for row in steps] == [("waiting", "bind", "pod", "job")]
    # A flow joins all slices that it connects, so a gang has the product of its pods.
    assert steps[0][4] >= len(pods)


def test_utilisation_integrates_to_that_of_the_schedule(folder: Path, trace: sqlite3.Connection) -> None:
    schedule = Results(folder).schedule
    begin, end = schedule["measured_from"] * 1e9, schedule["measured_until"] * 1e9
    rows = trace.execute(
        """
        select ts, lead(ts, 1, ?) over (order by ts), value from counter join track on track_id = track.id
        where name = 'utilisation'
        """,
        [end],
    ).fetchall()

    area = sum(max(0, min(until, end) - max(since, begin)) * value for since, until, value in rows)
    offered = trace.execute("select count(*) from slice where name in ('added', 'removed')").fetchone()[0]
    assert offered == 12  # eight nodes, and two that join and leave
    # The number of nodes changes, so the mean over time is close to the share of all machine seconds.
    assert area / (end - begin) / 100 == pytest.approx(schedule["mean_utilisation"], abs=0.03)


def test_nodes_show_when_they_were_failed_or_cordoned(trace: sqlite3.Connection) -> None:
    slices = trace.execute(
        """
        select node.name, slice.name, ts / 1000000000, dur / 1000000000
        from slice join track on track_id = track.id join track as node on node.id = track.parent_id
        where category = 'node' and dur != 0 order by 1
        """
    ).fetchall()

    assert slices == [
        ("node-1", "cordoned", 400, 240),
        ("node-2", "cordoned", 400, 240),
        ("node-3", "failed", 200, 300),
    ]
    events = trace.execute(
        "select slice.name from slice join track on track_id = track.id where track.name = 'events' order by ts"
    ).fetchall()
    assert [name for (name,) in events][:4] == [
        "fail node-3",
        "drain node-1 node-2",
        "return node-3",
        "add spot-0 spot-1",
    ]


def test_the_documented_queries_answer_their_questions(folder: Path, trace: sqlite3.Connection) -> None:
    page = (REPOSITORY / "docs" / "reference" / "cli-export.md").read_text(encoding="utf-8")
    busiest, waits, attempts = re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)

    spent: Counter[str] = Counter()
    run = Playback.read(folder)
    for pod in run.pods:
        if pod.bound is not None and pod.ended is not None:
            spent[pod.node] += pod.ended - pod.bound
    rows = trace.execute(busiest).fetchall()
    assert {node: seconds for node, _, seconds in rows} == pytest.approx(
        {node: total / 1e9 for node, total in spent.most_common(5)}
    )
    executions = [execution for job in run.jobs for execution in job.executions]
    waited = [(execution.started or execution.ended or run.end) - execution.queued for execution in executions]
    assert [row[1:] for row in trace.execute(waits)] == [
        (len(executions), pytest.approx(sum(waited) / len(executions) / 1e9))
    ]
    assert trace.execute(attempts).fetchall() == []  # policies do not try in vain


def test_hostile_names_are_kept_as_they_are(tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>", "a" * 250, 'quote " and \\ and %s', "日本 🙂"]
    jobs = [{"id": name, "subtime": 0, "res": 1, "profile": "d"} for name in names]
    workload = tmp_path / "w.json"
    workload.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 5}}}))

    trace = exported(a_run(tmp_path / "out", workload=workload), tmp_path / "out.pftrace")

    tracks = {name for (name,) in trace.execute("select name from track")}
    assert {f"w0!{name}" for name in names} <= tracks
