"""Pods of a trace are stored exactly as the API server stores the same manifest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.requests.messages import Request, Response
from batkube.cluster.client import ApiError
from batkube.cluster.jobs.outcomes import NO_ATTEMPTS
from batkube.cluster.mapping import POD, PodFactory, ResourceModel
from batkube.cluster.store import KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import START, Duration, Instant, seconds
from batkube.kernel.quantities import CPU, MEMORY
from batkube.kernel.streams import Streams
from batkube.programs.startup.launch import make_server
from batkube.simulation.preparation.job_forms import job_creator_of
from batkube.workloads.model import Delay, Job, Requests

PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
#: The fields in which two pods of the same manifest differ.
OWN = ("name", "uid", "creationTimestamp")

AMOUNTS = {CPU: 1000, MEMORY: 1 << 30, "nvidia.com/gpu": 1, "ephemeral-storage": 1}
requests = st.dictionaries(st.sampled_from(sorted(AMOUNTS)), st.integers(1, 5000)).map(
    lambda counts: tuple((name, count * AMOUNTS[name]) for name, count in sorted(counts.items()))
)


class Cluster:
    """The API server of a run, with the creator of its jobs."""

    def __init__(self, model: ResourceModel = ResourceModel.REQUESTS) -> None:
        self.world = World(Streams(0))
        self.server = make_server(self.world)
        self.creator = job_creator_of(self.world, model, self.server.api.client("batkube"), {})

    def submit(self, job: Job, at: Instant = START) -> list[KubeObject]:
        self.creator.create(job, at, NO_ATTEMPTS)
        return [pod for key, pod in self.world.store.all(POD).items() if key.startswith(f"default/w0-{job.name}")]

    def apply(self, **fields: Any) -> None:  # noqa: ANN401 - any object
        self.server.api.manifest_client(self.server.token).apply(fields)

    def post(self, manifest: KubeObject) -> KubeObject:
        headers = {
            "authorization": f"Bearer {self.server.token}",
            "accept": "application/json",
            "content-type": "application/json",
        }
        query = {"fieldManager": ["batkube"], "fieldValidation": ["Strict"]}
        body = json.dumps(manifest).encode()
        answer = self.server.api.handle(Request("POST", "/api/v1/namespaces/default/pods", query, headers, body))
        assert isinstance(answer, Response)
        assert answer.status == 201, answer.body
        [pod] = [one for key, one in self.world.store.all(POD).items() if key == "default/posted"]
        return pod


def a_job(name: str = "7", size: int = 1, **more: Any) -> Job:  # noqa: ANN401 - fields of a job
    profile = Delay(name="d", duration=Duration(1))
    return Job(workload="w0", name=name, submit=START, size=size, profile=profile, **more)


def common(pod: KubeObject) -> KubeObject:
    """Return the part of a pod that is common to all pods of its manifest."""
    return {**pod, "metadata": {name: value for name, value in pod["metadata"].items() if name not in OWN}}


@given(requests, st.sampled_from(ResourceModel), st.sampled_from([0, 5, -3]), st.sampled_from(["", "x/y:1", "z"]))
def test_the_pods_of_a_job_are_stored_as_those_of_its_manifest(
    requests: Requests, model: ResourceModel, priority: int, image: str
) -> None:
    cluster = Cluster(model)
    job = a_job(size=2, requests=requests, priority=priority, image=image)

    pods = cluster.submit(job)

    template = PodFactory(model).template_of(job)
    metadata = {**template["metadata"], "name": "posted"}
    posted = cluster.post({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
    assert [common(pod) for pod in pods] == [common(posted)] * 2
    assert posted["spec"]["dnsPolicy"] == "ClusterFirst"
    assert posted["spec"]["priority"] == priority
    assert {one["key"] for one in posted["spec"]["tolerations"]} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
    assert len({pod["metadata"]["uid"] for pod in (*pods, posted)}) == 3


def test_a_later_job_of_the_same_shape_has_its_own_time_labels_and_managed_fields() -> None:
    cluster = Cluster()
    [first] = cluster.submit(a_job("1", requests=((CPU, 1000),)))
    [second] = cluster.submit(a_job("2", requests=((CPU, 1000),)), Instant(seconds(90)))

    assert second["metadata"]["creationTimestamp"] == "2000-01-01T00:01:30Z"
    assert second["metadata"]["managedFields"][0]["time"] == "2000-01-01T00:01:30Z"
    assert first["metadata"]["managedFields"][0]["time"] == "2000-01-01T00:00:00Z"
    assert second["metadata"]["labels"]["batkube.io/job"] == "2"
    assert second["spec"] is first["spec"], "what pods have in common is kept once"


def test_admission_runs_again_after_one_of_its_objects_has_changed() -> None:
    cluster = Cluster()
    [before] = cluster.submit(a_job("1"))
    limits = [{"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "500m"}}]
    cluster.apply(apiVersion="v1", kind="LimitRange", metadata={"name": "small"}, spec={"limits": limits})
    [after] = cluster.submit(a_job("2"))

    assert before["spec"]["containers"][0]["resources"] == {}
    assert after["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "500m"}}
    execution = cluster.world.executions.find("default/w0-2")
    assert execution is not None
    assert dict(execution.demand)[CPU] == 500, "its kubelet counts what it was given"


def test_a_quota_is_charged_with_each_pod_and_a_job_beyond_it_leaves_nothing_behind() -> None:
    cluster = Cluster()
    cluster.apply(
        apiVersion="v1", kind="ResourceQuota", metadata={"name": "few"}, spec={"hard": {"pods": "3", "cpu": "9"}}
    )
    quota = cluster.world.store.all("resourcequotas")["default/few"]
    status = {"hard": quota["spec"]["hard"], "used": {"pods": "0", "cpu": "0"}}
    cluster.world.store.set_statuses("resourcequotas", ["default/few"], status, START)

    cluster.submit(a_job("1", size=2, requests=((CPU, 1000),)))
    assert cluster.world.store.all("resourcequotas")["default/few"]["status"]["used"] == {"pods": "2", "cpu": "2"}
    with pytest.raises(ApiError, match="exceeded quota: few"):
        cluster.submit(a_job("2", size=2, requests=((CPU, 1000),)))

    assert list(cluster.world.store.all(POD)) == ["default/w0-1-0", "default/w0-1-1"]
    assert cluster.world.executions.find("default/w0-2-0") is None


def test_an_admission_policy_applies_to_pods_of_a_trace() -> None:
    cluster = Cluster()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    cluster.apply(
        apiVersion="admissionregistration.k8s.io/v1",
        kind="ValidatingAdmissionPolicy",
        metadata={"name": "odd"},
        spec={
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "object.metadata.name != 'w0-2'", "message": "not this one"}],
        },
    )
    cluster.apply(
        apiVersion="admissionregistration.k8s.io/v1",
        kind="ValidatingAdmissionPolicyBinding",
        metadata={"name": "odd"},
        spec={"policyName": "odd", "validationActions": ["Deny"]},
    )

    cluster.submit(a_job("1"))
    with pytest.raises(ApiError, match="not this one"):
        cluster.submit(a_job("2"))
    assert list(cluster.world.store.all(POD)) == ["default/w0-1"]


def test_a_job_whose_name_is_taken_is_rejected_and_the_other_pod_stays() -> None:
    cluster = Cluster()
    template = PodFactory(ResourceModel.REQUESTS).template_of(a_job())
    metadata = {"name": "w0-7-1", "namespace": "default"}
    cluster.apply(apiVersion="v1", kind="Pod", metadata=metadata, spec=template["spec"])

    with pytest.raises(ApiError, match='pods "w0-7-1" already exists'):
        cluster.submit(a_job(size=2))
    assert list(cluster.world.store.all(POD)) == ["default/w0-7-1"]


def test_the_priority_class_is_created_before_its_pods() -> None:
    cluster = Cluster()
    [pod] = cluster.submit(a_job(priority=7))

    assert pod["spec"]["priorityClassName"] == "priority-7"
    assert pod["spec"]["preemptionPolicy"] == "PreemptLowerPriority"
    assert cluster.world.store.all(PRIORITY_CLASSES)["priority-7"]["value"] == 7
