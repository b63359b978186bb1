"""The objects that are created for a job in each submission form, with permissive CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.cluster.jobs.outcomes import PastAttempts
from batkube.cluster.jobs.submission_forms import CUSTOM_POD_GROUPS, POD_GROUP_APIS, SubmissionForm, object_name
from batkube.cluster.mapping import POD, ResourceModel
from batkube.cluster.object_meta import controller_reference
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.batch.jobs import JOB
from batkube.execution.jobs.creators import JobCreator
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.kernel.quantities import CPU, MEMORY
from batkube.kernel.streams import Streams
from batkube.programs.startup.launch import make_server
from batkube.simulation.preparation.job_forms import JobForm, job_creator_of
from batkube.workloads.model import Delay, GangTerms, Job

NOW = Instant(0)
VOLCANO = POD_GROUP_APIS["scheduling.volcano.sh/v1beta1"]
COSCHEDULING = POD_GROUP_APIS["scheduling.x-k8s.io/v1alpha1"]


def definition(kind: str, version: str, *, namespaced: bool = True) -> KubeObject:
    """Return a CustomResourceDefinition that accepts any fields."""
    group, _, number = version.partition("/")
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Without it, groups that end in k8s.io are Kubernetes' own.
        "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved"}},
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{"name": number, "served": True, "storage": True, "schema": schema}],
        },
    }


class Cluster:
    """An API server with definitions, and a creator of jobs of one form."""

    def __init__(self, job_form: JobForm, *definitions: KubeObject) -> None:
        self.world = World(Streams(0))
        server = make_server(self.world)
        manifests = server.api.manifest_client(server.token)
        for one in definitions:
            manifests.apply(one)
        self.store, self.client = self.world.store, server.api.client("test")
        job_forms = {"volcano": job_form}
        self.creator: JobCreator = job_creator_of(self.world, ResourceModel.REQUESTS, self.client, job_forms)

    def objects(self, storage: str) -> dict[str, KubeObject]:
        return {key.rpartition("/")[2]: obj for key, obj in self.store.all(storage).items()}

    def add_pod(self, owner: KubeObject, template: KubeObject, name: str, **annotations: str) -> Key:
        """Create a pod as a controller does."""
        metadata: dict[str, Any] = {
            "name": name,
            "namespace": "default",
            "labels": template["metadata"]["labels"],
            "annotations": {**template["metadata"]["annotations"], **annotations},
            "ownerReferences": [controller_reference(owner)],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        self.client.create(POD, pod, NOW)
        return Key(f"default/{name}")


def a_job(**more: Any) -> Job:  # noqa: ANN401 - fields of a job
    fields: dict[str, Any] = {
        "workload": "w0",
        "name": "7",
        "submit": NOW,
        "size": 3,
        "profile": Delay(name="d", duration=Duration(1)),
        "requests": ((CPU, 500),),
        "scheduler": "volcano",
    }
    return Job(**fields | more)


FULL: dict[str, Any] = {"queue": "2", "user": "ann", "priority": -5, "walltime": Duration(seconds(90) + 1)}


@pytest.mark.parametrize("version", CUSTOM_POD_GROUPS)
def test_a_pod_group_has_the_api_of_its_scheduler(version: str) -> None:
    dialect = POD_GROUP_APIS[version]
    queue = definition("Queue", version, namespaced=False)
    cluster = Cluster(JobForm(SubmissionForm.POD_GROUP, dialect), definition("PodGroup", version), queue)

    cluster.creator.create(a_job(**FULL), NOW, PastAttempts())

    [group] = cluster.objects(f"podgroups.{dialect.group}").values()
    assert group["apiVersion"] == version
    queues = {"queue": "queue-2", "priorityClassName": "priority-minus-5"} if dialect.has_queues else {}
    assert group["spec"] == {"minMember": 3, **queues}
    assert list(cluster.objects(f"queues.{dialect.group}")) == (["queue-2"] if dialect.has_queues else [])
    pods = cluster.objects(POD)
    assert list(pods) == ["w0-7-0", "w0-7-1", "w0-7-2"]
    for pod in pods.values():
        names = pod["metadata"]["labels" if dialect.label else "annotations"]
        assert names[dialect.label or dialect.annotation] == group["metadata"]["name"]


@pytest.mark.parametrize("version", CUSTOM_POD_GROUPS)
def test_a_pod_group_has_the_minimum_members_and_resources_of_its_job(version: str) -> None:
    queue = definition("Queue", version, namespaced=False)
    cluster = Cluster(
        JobForm(SubmissionForm.POD_GROUP, POD_GROUP_APIS[version]), definition("PodGroup", version), queue
    )
    terms = GangTerms(min_member=2, min_resources=((CPU, 1500), (MEMORY, 1 << 30)))

    cluster.creator.create(a_job(gang=terms), NOW, PastAttempts())

    [group] = cluster.objects(f"podgroups.{POD_GROUP_APIS[version].group}").values()
    assert group["spec"]["minMember"] == 2
    min_resources = {"cpu": "1500m", "memory": "1Gi"} if POD_GROUP_APIS[version].has_min_resources else None
    assert group["spec"].get("minResources") == min_resources
    assert len(cluster.objects(POD)) == 3, "the others come as well"


def test_all_attributes_of_a_job_are_on_its_pods() -> None:
    cluster = Cluster(JobForm(SubmissionForm.POD_GROUP, COSCHEDULING), definition("PodGroup", COSCHEDULING.api_version))

    cluster.creator.create(a_job(**FULL), NOW, PastAttempts())

    pod = cluster.objects(POD)["w0-7-0"]
    assert pod["metadata"]["labels"]["batkube.io/user"] == "ann"
    assert pod["metadata"]["labels"]["batkube.io/queue"] == "2"
    spec = pod["spec"]
    assert (spec["priority"], spec["priorityClassName"], spec["activeDeadlineSeconds"]) == (-5, "priority-minus-5", 91)
    assert cluster.objects("priorityclasses.scheduling.k8s.io")["priority-minus-5"]["value"] == -5


def test_a_pod_group_outlives_an_attempt_and_is_deleted_with_its_job() -> None:
    cluster = Cluster(JobForm(SubmissionForm.POD_GROUP, COSCHEDULING), definition("PodGroup", COSCHEDULING.api_version))
    job = a_job()
    cluster.creator.create(job, NOW, PastAttempts())
    [course] = cluster.world.executions.live()
    cluster.world.executions.remove(course)
    cluster.store.delete(POD, course.keys, NOW)
    [before] = cluster.objects("podgroups.scheduling.x-k8s.io").values()

    cluster.creator.create(job, NOW, PastAttempts(attempts=1))

    assert list(cluster.objects("podgroups.scheduling.x-k8s.io").values()) == [before]
    cluster.creator.clean_up(job, NOW, is_killed=False)
    assert cluster.objects("podgroups.scheduling.x-k8s.io") == {}


def test_an_indexed_job_has_all_pods_at_once_and_is_not_retried() -> None:
    cluster = Cluster(JobForm(SubmissionForm.INDEXED_JOB))

    cluster.creator.create(a_job(**FULL), NOW, PastAttempts())

    [job] = cluster.objects(JOB).values()
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 3)
    assert (spec["backoffLimit"], spec["suspend"]) == (0, False)
    pod = spec["template"]["spec"]
    assert (pod["activeDeadlineSeconds"], pod["priorityClassName"], pod["schedulerName"]) == (
        91,
        "priority-minus-5",
        "volcano",
    )


def test_a_job_for_kueue_is_suspended_and_names_a_local_queue_of_the_cluster_queue() -> None:
    version = "kueue.x-k8s.io/v1beta1"
    cluster_queue = definition("ClusterQueue", version, namespaced=False)
    cluster = Cluster(JobForm(SubmissionForm.KUEUE_JOB), definition("LocalQueue", version), cluster_queue)
    metadata = {"name": "all"}
    cluster.client.create(
        "clusterqueues.kueue.x-k8s.io", {"apiVersion": version, "kind": "ClusterQueue", "metadata": metadata}, NOW
    )

    cluster.creator.create(a_job(queue="long"), NOW, PastAttempts())
    cluster.creator.create(a_job(name="8", queue="long"), NOW, PastAttempts())

    jobs = cluster.objects(JOB)
    assert {job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] for job in jobs.values()} == {"long"}
    assert all(job["spec"]["suspend"] for job in jobs.values())
    [queue] = cluster.objects("localqueues.kueue.x-k8s.io").values()
    assert (queue["metadata"]["name"], queue["spec"]["clusterQueue"]) == ("long", "all")


def test_a_volcano_job_is_one_task_that_restarts_when_a_pod_is_evicted() -> None:
    version = "batch.volcano.sh/v1alpha1"
    queue = definition("Queue", VOLCANO.api_version, namespaced=False)
    cluster = Cluster(JobForm(SubmissionForm.VOLCANO_JOB), definition("Job", version), queue)

    cluster.creator.create(a_job(queue="long"), NOW, PastAttempts())
    cluster.creator.create(a_job(name="8", gang=GangTerms(min_member=2)), NOW, PastAttempts())

    job, elastic = cluster.objects("jobs.batch.volcano.sh").values()
    [task] = job["spec"]["tasks"]
    assert (job["spec"]["minAvailable"], task["replicas"], job["spec"]["queue"]) == (3, 3, "long")
    [task] = elastic["spec"]["tasks"]
    assert (elastic["spec"]["minAvailable"], task["minAvailable"], task["replicas"]) == (2, 2, 3)
    assert job["spec"]["policies"] == [{"event": "PodEvicted", "action": "RestartJob"}]
    assert list(cluster.objects("queues.scheduling.volcano.sh")) == ["long"]


def test_pods_of_a_controller_join_the_execution_of_their_job_by_their_index() -> None:
    cluster = Cluster(JobForm(SubmissionForm.INDEXED_JOB))
    cluster.creator.create(a_job(), NOW, PastAttempts())
    [owner] = cluster.objects(JOB).values()
    template = owner["spec"]["template"]
    index = "batch.kubernetes.io/job-completion-index"

    last = cluster.add_pod(owner, template, "w0-7-2-xyzzy", **{index: "2"})
    first = cluster.add_pod(owner, template, "w0-7-0-abcde", **{index: "0"})

    [course] = cluster.world.executions.live()
    assert course.keys == [first, "", last]
    assert (course.owner, course.job.name) == ("Job/w0-7", "7")


def test_pods_created_after_an_abort_join_a_new_execution_with_past_attempts() -> None:
    cluster = Cluster(JobForm(SubmissionForm.INDEXED_JOB))
    job = a_job()
    cluster.creator.create(job, NOW, PastAttempts())
    [owner] = cluster.objects(JOB).values()
    cluster.add_pod(owner, owner["spec"]["template"], "w0-7-0-abcde")
    [broken] = cluster.world.executions.live()

    cluster.creator.forget_execution(broken)
    later = cluster.add_pod(owner, owner["spec"]["template"], "w0-7-0-later")
    cluster.creator.create(job, NOW, PastAttempts(attempts=1, evictions=1))

    _, course = cluster.world.executions.live()
    assert course.keys[0] == later
    assert course.past == PastAttempts(attempts=1, evictions=1)


def test_a_name_that_is_long_or_has_dots_leaves_room_for_the_suffixes_of_controllers() -> None:
    names = {object_name(a_job(name=name)) for name in ("x" * 70, "x" * 71, "a.b", "a-b", "a_b")}

    assert len(names) == 5
    assert all(len(name) <= 50 and "." not in name for name in names)
