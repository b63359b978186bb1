"""Pods of a trace as a program sees them over HTTP: it can write to them, and their statuses are complete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import batkube

#: Binds each pod to the first node; before that, and a second after, it labels the pod in every way there is.
LABELLING = """
import json, os, time, urllib.error, urllib.request

PODS = os.environ["BATKUBE_PROXY"] + "/api/v1/namespaces/default/pods"

def ask(method, path, body=None, kind="application/json"):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(path, data, {"Content-Type": kind}, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)

def write_to(name, when):
    label = {"metadata": {"labels": {"when": when}}}
    yield ask("PATCH", f"{PODS}/{name}", label, "application/merge-patch+json")
    label = {"metadata": {"labels": {when: "x"}}}
    yield ask("PATCH", f"{PODS}/{name}", label, "application/strategic-merge-patch+json")
    applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"applied": when}}}
    yield ask("PATCH", f"{PODS}/{name}?fieldManager=mine&force=true", applied, "application/apply-patch+yaml")
    pod = ask("GET", f"{PODS}/{name}")[1]
    yield ask("PUT", f"{PODS}/{name}", pod)
    pod["metadata"]["annotations"]["put"] = when
    yield ask("PUT", f"{PODS}/{name}", pod)

def report(name, when):
    codes = [code for code, _ in write_to(name, when)]
    print(json.dumps({"when": when, "codes": codes, "pod": ask("GET", f"{PODS}/{name}")[1]}), flush=True)

done = set()
while True:
    for pod in ask("GET", PODS)[1]["items"]:
        name = pod["metadata"]["name"]
        if "nodeName" not in pod["spec"]:
            report(name, "before")
            target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            ask("POST", f"{PODS}/{name}/binding", binding)
        elif name not in done:
            done.add(name)
            report(name, "after")
    time.sleep(1)
"""


def trace(folder: Path, *jobs: dict[str, Any]) -> Path:
    """Write jobs of 20 s that are submitted at 0 s by default."""
    described = [
        {"id": str(number), "subtime": 0, "res": 1, "profile": "work", **job} for number, job in enumerate(jobs)
    ]
    path = folder / "jobs.json"
    profiles = {"work": {"type": "delay", "delay": 20}}
    path.write_text(json.dumps({"nb_res": 1, "jobs": described, "profiles": profiles}))
    return path


def labelled(folder: Path, *workloads: Path, **options: Any) -> tuple[batkube.Run, list[dict[str, Any]]]:  # noqa: ANN401 - options of a run
    """Run the program above; return the run and the lines of its log."""
    program = folder / "labelling.py"
    program.write_text(LABELLING)
    run = batkube.run(workload=list(workloads), platform="1x8", scheduler=f"python:{program}", **options)
    return run, [json.loads(line) for line in (run.path / "scheduler" / "log.txt").read_text().splitlines()]


def test_a_program_can_patch_apply_and_put_a_pod_of_a_trace(tmp_path: Path) -> None:
    run, seen = labelled(tmp_path, trace(tmp_path, {"cpu": 2}, {"res": 2}))

    assert [one["when"] for one in seen] == ["before"] * 3 + ["after"] * 3
    assert {code for one in seen for code in one["codes"]} == {200}
    assert all(one["pod"]["metadata"]["labels"]["applied"] == one["when"] for one in seen)
    assert set(run.jobs["final_state"]) == {"COMPLETED_SUCCESSFULLY"}
    assert list(run.jobs["starting_time"]) == [0, 0], "a label is no second binding"
    assert list(run.jobs["finish_time"]) == [20, 20]
    assert run.schedule["nb_violations"] == 0


def test_the_status_of_a_running_pod_of_a_trace_is_complete(tmp_path: Path) -> None:
    _, seen = labelled(tmp_path, trace(tmp_path, {"cpu": 2}))

    before, after = (one["pod"] for one in seen)
    assert before["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    status = after["status"]
    assert {one["type"]: one["status"] for one in status["conditions"]} == dict.fromkeys(
        ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"), "True"
    )
    assert (status["phase"], status["qosClass"], status["startTime"]) == (
        "Running",
        "Burstable",
        "2000-01-01T00:00:00Z",
    )
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    [container] = status["containerStatuses"]
    assert container["state"] == {"running": {"startedAt": "2000-01-01T00:00:00Z"}}
    assert container["ready"]
    assert container["resources"] == {"requests": {"cpu": "2"}}


TWIN = """
apiVersion: v1
kind: Pod
metadata: {name: twin, annotations: {batkube.io/duration: 20s}}
spec:
  restartPolicy: Never
  containers: [{name: job, image: batkube.io/simulated, resources: {requests: {cpu: "2"}}}]
---
apiVersion: v1  # with it they are objects, and no jobs
kind: ConfigMap
metadata: {name: other}
"""


def test_the_status_of_a_pod_of_a_trace_equals_that_of_any_other_pod(tmp_path: Path) -> None:
    objects = tmp_path / "objects.yaml"
    objects.write_text(TWIN)
    _, seen = labelled(tmp_path, objects, trace(tmp_path, {"cpu": 2}))

    statuses = {one["pod"]["metadata"]["name"]: one["pod"]["status"] for one in seen if one["when"] == "after"}
    twin, traced = statuses["twin"], statuses["w1-0"]
    for status in (twin, traced):
        assert status.pop("podIP") == status.pop("podIPs")[0]["ip"]
        assert status["containerStatuses"][0].pop("containerID").startswith("containerd://")
    assert traced == twin


#: Asks for another cpu for each pod, before it is bound and a second after.
RESIZING = LABELLING.replace(
    "def report(name, when):\n",
    "def report(name, when):\n"
    "    grown = {'spec': {'containers': [{'name': 'job', 'resources': {'requests': {'cpu': '3'}}}]}}\n"
    "    patch = 'application/strategic-merge-patch+json'\n"
    "    code, answer = ask('PATCH', f'{PODS}/{name}/resize', grown, patch)\n"
    "    print(json.dumps([name, code, answer.get('message')]), flush=True)\n"
    "    return\n",
)


def test_pods_of_a_trace_cannot_be_resized_and_other_pods_can(tmp_path: Path) -> None:
    objects, program = tmp_path / "objects.yaml", tmp_path / "resizing.py"
    objects.write_text(TWIN)
    program.write_text(RESIZING)
    run = batkube.run(
        workload=[objects, trace(tmp_path, {"cpu": 2})],
        platform="1x8",
        scheduler=f"python:{program}",
        resources="requests",
    )

    answers = [json.loads(line) for line in (run.path / "scheduler" / "log.txt").read_text().splitlines()]
    refusal = 'Pod "w1-0" is invalid: spec: Forbidden: Pod running on node without support for resize'
    assert sorted(answers) == [["twin", 200, None]] * 2 + [["w1-0", 422, refusal]] * 2
    # The twin has three cpus for all of its 20 s, but for the moment before it was resized; the pod of the trace two.
    assert 5 / 8 - 0.05 < run.schedule["mean_utilisation"] <= 5 / 8


OBJECTS = """
apiVersion: v1
kind: LimitRange
metadata: {name: small}
spec: {limits: [{type: Container, default: {cpu: "3"}, defaultRequest: {cpu: "2"}}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: few}
spec: {hard: {pods: "2"}}
"""


def test_limit_ranges_and_quotas_apply_to_pods_of_a_trace(tmp_path: Path) -> None:
    objects = tmp_path / "objects.yaml"
    objects.write_text(OBJECTS)
    jobs = [{"subtime": 1}, {"subtime": 1}, {"subtime": 1}, {"subtime": 30}]

    run, seen = labelled(tmp_path, objects, trace(tmp_path, *jobs), resources="requests")

    assert [one["pod"]["spec"]["containers"][0]["resources"] for one in seen] == [
        {"limits": {"cpu": "3"}, "requests": {"cpu": "2"}}
    ] * len(seen)
    states = dict(zip(run.jobs["job_id"].astype(str), run.jobs["final_state"], strict=True))
    assert states == {
        "0": "COMPLETED_SUCCESSFULLY",
        "1": "COMPLETED_SUCCESSFULLY",
        "2": "REJECTED",
        "3": "COMPLETED_SUCCESSFULLY",  # what was used is free again
    }
    [note] = [one for one in json.loads((run.path / "fidelity.json").read_text()) if "rejected jobs" in one["message"]]
    assert "exceeded quota: few" in note["example"]
