"""`mean_utilisation` is the share that pods hold of the capacity of existing nodes."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

import batkube
from batkube.outputs.results import Results

Fields = dict[str, Any]


def pod_spec(cpu: str, command: str = "", restart: str = "Never") -> Fields:
    container: Fields = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    if command:
        container["command"] = ["sh", "-c", command]
    return {"restartPolicy": restart, "containers": [container]}


def job_object(name: str, at_s: int, pods: int, cpu: str, length_s: int) -> Fields:
    spec = {"completions": pods, "parallelism": pods, "template": {"spec": pod_spec(cpu, f"sleep {length_s}")}}
    metadata = {"name": name, "annotations": {"batkube.io/submit": str(at_s)}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def deployment(replicas: int, cpu: str) -> Fields:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec(cpu, restart="Always")}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def objects_file(folder: Path, *objects: Fields) -> Path:
    path = folder / "objects.yaml"
    path.write_text("---\n".join(yaml.safe_dump(one) for one in objects))
    return path


def trace_file(folder: Path, jobs: list[Fields]) -> Path:
    profiles = {f"d{job['length']}": {"type": "delay", "delay": job["length"]} for job in jobs}
    entries = [
        {"id": str(number), "subtime": job["at"], "res": 1, "profile": f"d{job['length']}"}
        | {key: job[key] for key in ("res", "cpu", "priority") if key in job}
        for number, job in enumerate(jobs)
    ]
    path = folder / "trace.json"
    path.write_text(json.dumps({"nb_res": 1, "jobs": entries, "profiles": profiles}))
    return path


def test_a_job_of_six_pods_on_four_cpus_has_a_utilisation_of_three_quarters(tmp_path: Path) -> None:
    """Four pods with a cpu run for a minute, then two: 6 × 60 core-seconds in about two minutes of four cpus."""
    run = batkube.run(workload=objects_file(tmp_path, job_object("six", 0, 6, "1", 60)), platform="2x2")

    begin, end = run.schedule["measured_from"], run.schedule["measured_until"]
    assert end - begin == pytest.approx(120, abs=3)
    assert run.schedule["mean_utilisation"] == pytest.approx(6 * 60 / (4 * (end - begin)), abs=1e-3)
    assert run.metrics.utilisation == run.schedule["mean_utilisation"]
    # The files do not contain what pods held in another window.
    assert Results(run.path, warm_up="10s").metrics.utilisation is None


def test_pods_without_jobs_count_until_the_run_ends(tmp_path: Path) -> None:
    run = batkube.run(workload=objects_file(tmp_path, deployment(2, "1")), platform="2x2", until="100s")

    assert run.jobs.empty
    assert (run.schedule["measured_from"], run.schedule["measured_until"]) == (0, 100)
    assert run.schedule["mean_utilisation"] == pytest.approx(0.5, abs=1e-3)
    assert run.schedule["utilisation_cpu"] == run.schedule["mean_utilisation"] == run.metrics.utilisation


def test_pods_beside_jobs_count_as_well(tmp_path: Path) -> None:
    """A job has two of four cpus for 100 s, and a Deployment the other two."""
    jobs = trace_file(tmp_path, [{"at": 0, "length": 100, "cpu": "2"}])

    run = batkube.run(workload=[jobs, objects_file(tmp_path, deployment(2, "1"))], platform="2x2", until="200s")

    assert run.schedule["mean_utilisation"] == pytest.approx(1, abs=1e-2)


def limit_range(cpu: str) -> Fields:
    limit = {"type": "Container", "defaultRequest": {"cpu": cpu}}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "few"}, "spec": {"limits": [limit]}}


def test_default_requests_of_a_limit_range_count(tmp_path: Path) -> None:
    jobs = trace_file(tmp_path, [{"at": 0, "length": 100}])

    run = batkube.run(workload=[objects_file(tmp_path, limit_range("2")), jobs], platform="1x4", resources="requests")

    assert run.schedule["mean_utilisation"] == pytest.approx(0.5, abs=1e-2)
    assert run.schedule["utilisation_cpu"] == run.schedule["mean_utilisation"]


@pytest.mark.parametrize("resources", ["machines", "requests"])
def test_an_unfinished_job_counts_until_the_end_of_the_run(resources: str, tmp_path: Path) -> None:
    jobs = trace_file(tmp_path, [{"at": 0, "length": 100, "cpu": "1"}])

    run = batkube.run(workload=jobs, platform="2x1", resources=resources, until="50s")

    assert run.schedule["nb_jobs_finished"] == 0
    assert run.schedule["mean_utilisation"] == 0.5


def test_a_lost_attempt_counts(tmp_path: Path) -> None:
    """The machine is never free: a job of 100 s is evicted after 50 s, and restarts after another job."""
    jobs = [{"at": 0, "length": 100, "cpu": "1"}, {"at": 50, "length": 10, "cpu": "1", "priority": 5}]

    run = batkube.run(
        workload=trace_file(tmp_path, jobs), platform="1x1", scheduler="policy:priority", resources="machines"
    )

    assert (run.schedule["nb_evictions"], run.schedule["makespan"]) == (1, 160)
    assert run.schedule["mean_utilisation"] == 1
    # A machine is busy while pods hold it, so the share is known for every window.
    assert Results(run.path, cool_down="10s").metrics.utilisation == 1


def test_start_up_and_late_reports_of_pods_count(tmp_path: Path) -> None:
    (tmp_path / "latencies.yaml").write_text("start: 10\nreport: 10\n")
    jobs = trace_file(tmp_path, [{"at": at, "length": 30, "cpu": "1"} for at in (0, 0)])

    run = batkube.run(workload=jobs, platform="1x1", resources="requests", latencies=tmp_path / "latencies.yaml")

    assert run.schedule["measured_until"] == 90
    assert run.schedule["mean_utilisation"] == 1


def test_pods_that_wait_for_other_pods_of_their_job_count(kube_scheduler: str, tmp_path: Path) -> None:
    """The first of two pods holds a machine while another job has the second machine."""
    jobs = [{"at": 0, "length": 100, "cpu": "1"}, {"at": 1, "length": 10, "cpu": "1", "res": 2}]

    run = batkube.run(workload=trace_file(tmp_path, jobs), platform="2x1", scheduler=kube_scheduler)

    assert run.schedule["makespan"] == pytest.approx(110, abs=1)
    assert run.schedule["mean_utilisation"] == pytest.approx(1, abs=2e-2)


def test_a_node_counts_while_it_exists(tmp_path: Path) -> None:
    """Two nodes for 10 s, then four nodes for 10 s; three jobs of one machine and 10 s each."""
    jobs = trace_file(tmp_path, [{"at": at, "length": 10, "cpu": "1"} for at in (0, 0, 10, 20)])
    events = [{"at": 10, "add": "2x1", "names": "more"}, {"at": 20, "remove": ["more-0", "more-1"]}]

    run = batkube.run(workload=jobs, platform="2x1", scheduler="policy:first-fit", events=events)

    assert run.schedule["mean_utilisation"] == pytest.approx(40 / (2 * 30 + 2 * 10), abs=1e-6)
    assert run.metrics.utilisation == pytest.approx(run.schedule["mean_utilisation"], abs=1e-6)
    machines = run.manifest["platform"]["machines"]
    assert [machine.get("present_s") for machine in machines] == [None, None, [[10.0, 20.0]], [[10.0, 20.0]]]


def test_a_job_holds_nothing_once_its_node_is_removed(tmp_path: Path) -> None:
    """The pod garbage collector deletes the pod long after its node was removed."""
    jobs = trace_file(tmp_path, [{"at": 0, "length": 200, "cpu": "1"}])
    events = [{"at": 50, "remove": "node-0"}]

    run = batkube.run(
        workload=jobs, platform="1x1", events=events, controllers="ours", on_failure="fail", out=tmp_path / "out"
    )

    assert run.jobs.loc[0, "final_state"] == "COMPLETED_FAILED"
    assert run.jobs.loc[0, "finish_time"] > 80
    assert run.schedule["mean_utilisation"] == 1


CPU_CHOICES = ("0.5", "1", "2")
trace_jobs = st.lists(
    st.fixed_dictionaries(
        {"at": st.integers(0, 60), "length": st.integers(1, 40), "cpu": st.sampled_from(CPU_CHOICES)}
    ),
    max_size=6,
)
job_objects = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 6), st.sampled_from(CPU_CHOICES), st.integers(1, 40)), max_size=3
)
lifetimes = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=3)


def integral_over_files(run: batkube.Run, cpu_of: dict[str, float]) -> float:
    """Return the share of cpu in the run's window, from the pods in pods.csv and the nodes in the manifest."""
    begin, end = run.schedule["measured_from"], run.schedule["measured_until"]
    nodes = {
        machine["name"]: (machine["cpu_milli"] / 1000, machine.get("present_s", [[0, None]]))
        for machine in run.manifest["platform"]["machines"]
    }

    def inside(since: float, until: float) -> float:
        return max(0.0, min(until, end) - max(since, begin))

    core_seconds = sum(
        cpu * inside(since, math.inf if until is None else until)
        for cpu, spans in nodes.values()
        for since, until in spans
    )
    held_core_seconds = 0.0
    for pod in run.pods.itertuples():
        if math.isnan(pod.scheduled):
            continue
        until = math.inf if math.isnan(pod.finished) else pod.finished
        for present, gone in nodes[pod.node][1]:
            held_core_seconds += cpu_of[pod.job_id] * inside(
                max(pod.scheduled, present), until if gone is None else min(until, gone)
            )
    return held_core_seconds / core_seconds


@given(trace=trace_jobs, objects_drawn=job_objects, spans=lifetimes)
@example(trace=[], objects_drawn=[(0, 6, "1", 30)], spans=[])
@settings(max_examples=20)
def test_utilisation_is_a_share_and_equals_the_integral_over_pods_and_nodes(
    trace: list[Fields], objects_drawn: list[tuple[int, int, str, int]], spans: list[tuple[int, int]]
) -> None:
    trace = [*trace, {"at": 0, "length": 5, "cpu": "1"}]
    events: list[Fields] = []
    for number, (since, length) in enumerate(spans):
        events += [{"at": since, "add": "1x2", "names": f"more{number}"}]
        events += [{"at": since + length, "remove": f"more{number}-0"}]
    cpu_of = {str(number): float(job["cpu"]) for number, job in enumerate(trace)}
    cpu_of |= {f"o{number}": float(cpu) for number, (_, _, cpu, _) in enumerate(objects_drawn)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workloads = [trace_file(folder, trace)]
        if objects_drawn:
            objects = [job_object(f"o{number}", *one) for number, one in enumerate(objects_drawn)]
            workloads.append(objects_file(folder, *objects))
        run = batkube.run(
            workload=workloads, platform="2x2", scheduler="policy:first-fit", events=events, out=folder / "out"
        )

        share = run.schedule["mean_utilisation"]
        assert 0 <= share <= 1
        assert share == pytest.approx(integral_over_files(run, cpu_of), abs=1e-5)
