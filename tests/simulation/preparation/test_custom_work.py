"""Runs with a controller of custom resources beside kube-scheduler: when they end, and what they record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import batkube
from batkube.kernel.errors import RunFailed

Fields = dict[str, Any]

CLIENT = """
import json, os, sys, time, urllib.request, yaml

server = yaml.safe_load(open(os.environ["KUBECONFIG"]))["clusters"][0]["cluster"]["server"]

def ask(path, body=None, method=None):
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server + path, data, {"Content-Type": kind}, method=method)
    return json.load(urllib.request.urlopen(request))

SETS = "/apis/example.org/v1/namespaces/default/jobsets"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
container = {"name": "c", "image": "i", "command": ["sh", "-c", "sleep 100"], "resources": {"requests": {"cpu": "1"}}}
pod_spec = {"restartPolicy": "Never", "containers": [container]}
"""
#: Makes a Job for each JobSet, and reports that the JobSet has completed when its Job has.
JOB_SETS = (
    CLIENT
    + """
time.sleep(946_684_801 - time.time())  # the kind is there from 2000-01-01 on
while True:
    jobs = {job["metadata"]["name"]: job for job in ask(JOBS)["items"]}
    for one in ask(SETS)["items"]:
        name, uid = one["metadata"]["name"], one["metadata"]["uid"]
        if name not in jobs:
            owner = {"apiVersion": "example.org/v1", "kind": "JobSet", "name": name, "uid": uid, "controller": True}
            job = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"template": {"spec": pod_spec}}}
            ask(JOBS, {"apiVersion": "batch/v1", "kind": "Job", **job})
        elif jobs[name].get("status", {}).get("succeeded"):
            ask(f"{SETS}/{name}", {"status": {"terminalState": "Completed"}}, "PATCH")
    time.sleep(1)
"""
)
#: Writes a status that does not state whether a JobSet is active or has ended, makes its Job five seconds later,
#: and counts the Jobs in the status of a queue.
QUEUED_JOB_SETS = JOB_SETS.replace(
    "        if name not in jobs:\n",
    "        if 'status' not in one:\n"
    "            ask(f'{SETS}/{name}', {'status': {'restarts': 0}}, 'PATCH')\n"
    "            time.sleep(5)\n"
    "        if name not in jobs:\n"
    "            active = [{'type': 'Active', 'status': 'True'}]\n"
    "            queue = {'conditions': active, 'admitted': len(jobs) + 1}\n"
    "            ask(SETS.replace('jobsets', 'localqueues') + '/queue', {'status': queue}, 'PATCH')\n",
)
PLACEHOLDERS = (
    CLIENT
    + """
time.sleep(946_684_800 - time.time())
for name in ("forced", "asked", "unplaced"):
    spec = {**pod_spec, "nodeSelector": {"is": "nowhere"}} if name == "unplaced" else pod_spec
    ask(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
time.sleep(10)
for name in ("forced", "asked", "unplaced"):
    ask(f"{PODS}/{name}", {"gracePeriodSeconds": 0} if name == "forced" else {}, "DELETE")
time.sleep(10**6)
"""
)
PANIC = CLIENT + "time.sleep(80)\nsys.exit('panic: nil map')\n"


def definition(kind: str = "JobSet", scope: str = "Namespaced", *, has_status: bool = True) -> Fields:
    schema: Fields = {"type": "object", "properties": {"spec": {"type": "object"}}}
    schema["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] = True
    if has_status:
        schema["properties"]["status"] = schema["properties"]["spec"]
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": f"{kind.lower()}s", "singular": kind.lower(), "kind": kind}
    spec = {"group": "example.org", "scope": scope, "names": names, "versions": [version]}
    metadata = {"name": f"{names['plural']}.example.org"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def job_set(name: str, submit: str = "0") -> Fields:
    metadata = {"name": name, "annotations": {"batkube.io/submit": submit}}
    return {"apiVersion": "example.org/v1", "kind": "JobSet", "metadata": metadata, "spec": {"replicas": 1}}


def run(kube_scheduler: str, folder: Path, controller: str, *objects: Fields) -> batkube.Run:
    (folder / "controller.py").write_text(controller)
    workload = folder / "objects.yaml"
    workload.write_text(yaml.safe_dump_all(objects))
    return batkube.run(
        workload=workload,
        platform="2x4",
        scheduler=kube_scheduler,
        attach=[f"python:{folder / 'controller.py'}"],
        out=folder / "out",
    )


def test_a_run_ends_when_the_statuses_of_its_custom_objects_are_terminal(kube_scheduler: str, tmp_path: Path) -> None:
    done = run(kube_scheduler, tmp_path, JOB_SETS, definition(), job_set("early"), job_set("late", "5m"))

    assert sorted(done.jobs["job_id"]) == ["early", "late"]
    assert set(done.jobs["final_state"]) == {"COMPLETED_SUCCESSFULLY"}
    assert 400 <= done.manifest["end_s"] < 410


def test_queues_and_other_configuration_do_not_keep_a_run_from_ending(kube_scheduler: str, tmp_path: Path) -> None:
    """Kueue's ClusterQueues are cluster-scoped; the status of a LocalQueue never becomes terminal."""
    kinds = [("ClusterQueue", "Cluster", True), ("LocalQueue", "Namespaced", True), ("Runtime", "Namespaced", False)]
    definitions = [definition(kind, scope, has_status=has_status) for kind, scope, has_status in kinds]
    others = [{"apiVersion": "example.org/v1", "kind": kind, "metadata": {"name": "queue"}} for kind, _, _ in kinds]

    done = run(kube_scheduler, tmp_path, QUEUED_JOB_SETS, definition(), *definitions, *others, job_set("a", "5m"))

    assert done.jobs["final_state"].tolist() == ["COMPLETED_SUCCESSFULLY"]
    # The queue is known to have nothing to do when its status has not changed for a minute; the Job takes longer.
    assert 405 <= done.manifest["end_s"] < 415


def test_pods_that_are_deleted_before_their_end_have_the_phase_deleted(kube_scheduler: str, tmp_path: Path) -> None:
    job: Fields = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}}
    container = {"name": "c", "image": "i", "command": ["sh", "-c", "sleep 300"]}
    job["spec"] = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}

    pods = run(kube_scheduler, tmp_path, PLACEHOLDERS, job).pods.set_index("pod")

    assert pods.loc["forced", ["started", "finished", "phase"]].tolist() == [0, 10, "Deleted"]
    assert pods.loc["unplaced", ["finished", "phase"]].tolist() == [10, "Deleted"]
    # Its kubelet stops it first: it handles no SIGTERM, and is killed after 30 seconds.
    assert pods.loc["asked", "phase"] in ("Failed", "Succeeded")
    assert pods["finished"].notna().all()


def test_a_crash_of_a_controller_is_a_fidelity_note(kube_scheduler: str, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="panic: nil map"):
        run(kube_scheduler, tmp_path, PANIC, definition(), job_set("a"))

    notes = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    (crash,) = [note for note in notes if note["subject"] == "programs"]
    assert crash["example"].endswith(" ended with exit code 1")
