"""Nodes that programs create and delete during a run are machines in every output file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import batkube
from batkube import RunFailed
from batkube.kernel.errors import InputError
from batkube.outputs.measures.occupancy.absences import Absence, absences_of
from conftest import Simulate

OUTPUTS = ("jobs.csv", "pods.csv", "nodes.csv", "journal.jsonl", "machine_states.csv", "schedule.csv", "fidelity.json")

#: An autoscaler with fixed actions: `MADE` has the name of each node, its capacity, and the seconds at which it is
#: created and deleted.
AUTOSCALER = """
import json, time
from kubernetes import client, config

START = 946684800  # of the run, on its clock
MADE = json.loads(MADE_TEXT)
config.load_kube_config()
core = client.CoreV1Api()
acts = [(begin, name, capacity) for name, capacity, begin, _ in MADE]
acts += [(end, name, None) for name, _, _, end in MADE if end is not None]
for at, name, capacity in sorted(acts, key=lambda act: act[:2]):
    time.sleep(max(0, START + at - time.time()))
    if capacity is None:
        core.delete_node(name)
        continue
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    if capacity:
        node["status"] = {"capacity": capacity, "allocatable": capacity}
    if name.startswith("ready"):
        node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        node["status"]["addresses"] = [{"type": "Hostname", "address": name}]
    core.create_node(node)
while True:
    time.sleep(3600)
"""


def _autoscaler(folder: Path, *made: tuple[str, dict[str, str], float, float | None]) -> str:
    path = folder / "autoscaler.py"
    path.write_text(AUTOSCALER.replace("MADE_TEXT", repr(json.dumps(made))))
    return f"python:{path}"


def _job(name: str, at: float, length_s: int, cpu: int | None = 1, size: int = 1) -> dict[str, object]:
    job: dict[str, object] = {"id": name, "subtime": at, "res": size, "profile": f"d{length_s}"}
    return job if cpu is None else {**job, "cpu": str(cpu)}


PROFILES = {f"d{length}": {"type": "delay", "delay": length} for length in (10, 20, 50)}


def test_a_node_that_a_program_creates_is_a_machine_until_it_is_deleted(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    pytest.importorskip("kubernetes")
    spot = ("spot", {"cpu": "4", "memory": "8Gi", "pods": "20"}, 10, 100)
    # The second needs four cpus, on a platform of one; the third runs on the node with more free cpu.
    jobs = [_job("a", 0, 50), _job("b", 5, 20, cpu=2, size=2), _job("c", 60, 20), _job("d", 110, 10)]
    attached = _autoscaler(tmp_path, spot)

    first, second = (
        simulate(jobs, PROFILES, platform="1x1", scheduler=kube_scheduler, attach=attached, out=tmp_path / name)
        for name in ("first", "second")
    )

    assert {name: (first.path / name).read_bytes() for name in OUTPUTS} == {
        name: (second.path / name).read_bytes() for name in OUTPUTS
    }
    assert list(first.jobs["starting_time"].round()) == [0, 10, 60, 110]
    assert list(first.jobs["allocated_resources"]) == ["0", "1", "1", "0"]
    assert sorted(zip(first.pods["job_id"], first.pods["node"], first.pods["machine"], strict=True)) == [
        ("a", "node-0", "0"),
        ("b", "spot", "1"),
        ("b", "spot", "1"),
        ("c", "spot", "1"),
        ("d", "node-0", "0"),
    ]
    states = first.machine_states.set_index("time")
    assert (states >= 0).all(axis=None)
    assert [(at, row.nb_idle + row.nb_computing) for at, row in states.iterrows() if at in (0, 10, 100)] == [
        (0, 1),
        (10, 2),
        (100, 1),
    ]
    assert first.violations == 0
    assert first.manifest["platform"]["machines"][1]["present_s"] == [[10.0, 100.0]]
    assert first.schedule["nb_computing_machines"] == 2
    # The window goes from 0 to 120 s: one cpu all the time, and four for 90 s.
    held = 50 + 4 * 20 + 20 + 10
    assert first.schedule["mean_utilisation"] == pytest.approx(held / (120 + 4 * 90), abs=1e-4)
    assert first.metrics.utilisation == pytest.approx(first.schedule["mean_utilisation"], abs=1e-6)
    assert first.schedule["time_idle"] == pytest.approx(120 + 90 - 50 - 20 - 20 - 10, abs=0.1)
    assert absences_of(first) == [Absence(1, 0, 10), Absence(1, 100, first.manifest["end_s"])]
    first.gantt()


def test_jobs_of_a_deleted_node_lose_their_work_and_run_elsewhere(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    pytest.importorskip("kubernetes")
    attached = _autoscaler(tmp_path, ("spot", {"cpu": "1", "memory": "8Gi", "pods": "20"}, 1, 40))
    jobs = [_job("a", 0, 50), _job("b", 5, 50)]

    run = simulate(jobs, PROFILES, platform="1x1", scheduler=kube_scheduler, attach=attached)

    assert list(run.jobs["allocated_resources"]) == ["0", "0"]
    assert list(run.jobs["attempts"]) == [1, 2]
    assert run.jobs.loc[1, "work_lost"] == pytest.approx(35, abs=0.1)
    assert sorted(run.pods[run.pods["job_id"] == "b"]["node"]) == ["node-0", "spot"]
    assert (run.machine_states >= 0).all(axis=None)
    assert 0 < run.schedule["mean_utilisation"] < 1


def test_a_node_without_a_status_gets_one_from_its_kubelet(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    """Jobs take whole machines here, which every kubelet offers."""
    pytest.importorskip("kubernetes")
    attached = _autoscaler(tmp_path, ("plain", {}, 10, None))
    jobs = [_job("a", 0, 50, cpu=None), _job("b", 5, 20, cpu=None)]

    run = simulate(jobs, PROFILES, platform="1x1", scheduler=kube_scheduler, attach=attached)

    assert run.manifest["resources"] == "machines"
    assert list(run.pods.set_index("job_id").loc[["a", "b"], "node"]) == ["node-0", "plain"]
    assert run.jobs.loc[1, "starting_time"] == pytest.approx(10, abs=0.1)
    assert run.manifest["platform"]["machines"][1]["capacity"]["cpu"] == 4000
    assert run.schedule["mean_utilisation"] == pytest.approx((50 + 20) / (50 + 40), abs=1e-3)


def test_a_node_that_is_created_ready_takes_pods_at_once(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    pytest.importorskip("kubernetes")
    attached = _autoscaler(tmp_path, ("ready", {"cpu": "1", "memory": "1Gi", "pods": "9"}, 10, None))

    run = simulate(
        [_job("a", 0, 50), _job("b", 5, 20)], PROFILES, platform="1x1", scheduler=kube_scheduler, attach=attached
    )

    assert list(run.pods.set_index("job_id").loc[["a", "b"], "node"]) == ["node-0", "ready"]
    assert run.jobs.loc[1, "starting_time"] == pytest.approx(10, abs=0.1)


def test_a_half_started_job_waits_for_a_node_that_a_program_may_create(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    pytest.importorskip("kubernetes")
    attached = _autoscaler(tmp_path, ("late", {"cpu": "1", "memory": "8Gi", "pods": "9"}, 1000, None))

    run = simulate([_job("a", 0, 10, size=2)], PROFILES, platform="1x1", scheduler=kube_scheduler, attach=attached)

    assert list(run.jobs["starting_time"].round()) == [1000]
    (note,) = [note for note in run.notes if note["subject"] == "deadlock"]
    assert "unless a program adds nodes" in note["message"]
    assert run.schedule["nb_jobs_deadlocked"] == 0


#: A scheduler that creates a node of two cpus for each pod, and binds it there.
AUTOSCALING_SCHEDULER = """
import time
from kubernetes import client, config

config.load_kube_config()
core = client.CoreV1Api()
while True:
    for pod in core.list_namespaced_pod("default", field_selector="spec.nodeName=").items:
        node = {"kind": "Node", "metadata": {"name": "own"}, "status": {"capacity": {"cpu": "2", "memory": "8Gi"}}}
        core.create_node(node)
        target = client.V1ObjectReference(api_version="v1", kind="Node", name="own")
        binding = client.V1Binding(metadata=client.V1ObjectMeta(name=pod.metadata.name), target=target)
        core.create_namespaced_binding("default", binding, _preload_content=False)
    time.sleep(5)
"""


@pytest.mark.parametrize("way", ["python", "own entry"])
def test_jobs_may_be_larger_than_the_platform_if_the_scheduler_creates_nodes(
    simulate: Simulate, tmp_path: Path, way: str
) -> None:
    """The node has no number of pods, so its kubelet reports the default."""
    pytest.importorskip("kubernetes")
    (tmp_path / "mine.py").write_text(AUTOSCALING_SCHEDULER)
    catalogue = tmp_path / "schedulers.yaml"
    catalogue.write_text("mine: {about: mine, scheduler-name: default-scheduler, command: [./mine.py], clock: python}")
    how = {"python": {"scheduler": f"python:{tmp_path / 'mine.py'}"}, "own entry": {"scheduler": "mine"}}[way]

    run = simulate([_job("large", 5, 10, cpu=2)], PROFILES, platform="1x1", catalogue=catalogue, **how)

    assert list(run.jobs["final_state"]) == ["COMPLETED_SUCCESSFULLY"]
    assert run.manifest["platform"]["machines"][1]["capacity"] == {"cpu": 2000, "memory": 8 << 30, "pods": 110}


@pytest.mark.parametrize("condition", ["False", "Unknown"])
def test_a_node_that_is_created_not_ready_becomes_ready_through_its_kubelet(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path, condition: str
) -> None:
    pytest.importorskip("kubernetes")
    attached = _autoscaler(tmp_path, ("ready", {"cpu": "1", "memory": "1Gi"}, 10, None))
    program = tmp_path / "autoscaler.py"
    program.write_text(program.read_text().replace('"status": "True"', f'"status": "{condition}"'))
    jobs = [_job("a", 0, 50), _job("b", 5, 20)]

    run = simulate(jobs, PROFILES, platform="1x1", scheduler=kube_scheduler, attach=attached)

    assert list(run.pods.set_index("job_id").loc[["a", "b"], "node"]) == ["node-0", "ready"]
    assert run.jobs.loc[1, "starting_time"] == pytest.approx(10, abs=0.1)


def test_a_job_larger_than_the_platform_is_rejected_unless_a_program_may_add_nodes(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    pytest.importorskip("kubernetes")
    jobs = [_job("a", 0, 10), _job("large", 5, 10, cpu=2)]
    with pytest.raises(InputError, match="can never run: it requests a pod with cpu 2"):
        simulate(jobs, PROFILES, platform="1x1", scheduler=kube_scheduler)

    with pytest.raises(RunFailed, match="left 1 of 2 jobs without an outcome: w0!large"):
        simulate(jobs, PROFILES, platform="1x1", scheduler=kube_scheduler, attach=_autoscaler(tmp_path), patience="10m")

    (note,) = [note for note in batkube.Results(tmp_path / "out").notes if note["subject"] == "workload"]
    assert "no program created nodes" in note["message"]
    assert (note["example"], note["count"]) == ("job w0!large", 1)


def test_a_scheduler_of_unknown_origin_may_add_nodes(simulate: Simulate, faulty_scheduler: str) -> None:
    jobs = [_job("a", 0, 10), _job("large", 5, 10, cpu=2)]

    with pytest.raises(RunFailed, match="left 2 of 2 jobs without an outcome"):
        simulate(
            jobs,
            PROFILES,
            platform="1x1",
            scheduler=faulty_scheduler,
            scheduler_args={"way": "idles"},
            patience="1m",
        )


def test_schedulers_of_our_catalogue_do_not_add_nodes(simulate: Simulate, kube_scheduler: str) -> None:
    """A scheduler of the catalogue is recognised by its name and by the path of its build."""
    for scheduler in ("kube-scheduler@1.34.4", kube_scheduler):
        with pytest.raises(InputError, match="can never run: it requests a pod with cpu 2"):
            simulate([_job("large", 5, 10, cpu=2)], PROFILES, platform="1x1", scheduler=scheduler)
