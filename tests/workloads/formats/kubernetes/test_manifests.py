"""Reading Kubernetes manifests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from batkube.kernel.errors import InputError
from batkube.kernel.instants import seconds
from batkube.workloads.model import Delay, Job, Workload
from batkube.workloads.reader import read_workload

Fields = dict[str, Any]


def container(**requests: object) -> Fields:
    return {"name": "c", "image": "busybox", "resources": {"requests": requests}}


def pod(name: str = "a", annotations: Fields | None = None, **spec: object) -> Fields:
    marks = {"batkube.io/duration": "90", **(annotations or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {key: mark for key, mark in marks.items() if mark is not None}},
        "spec": {"containers": [container(cpu="500m")], **spec},
    }


def gang(name: str = "g", template: Fields | None = None, **spec: object) -> Fields:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": {"batkube.io/duration": "1h30m"}},
        "spec": {"template": {"spec": {"containers": [container(cpu=1)], **(template or {})}}, **spec},
    }


def read(tmp_path: Path, *objects: object) -> Workload:
    path = tmp_path / "work.yaml"
    path.write_text("---\n".join(yaml.safe_dump(fields) for fields in objects))
    return read_workload(path)


def read_one(tmp_path: Path, *objects: object) -> Job:
    (job,) = read(tmp_path, *objects).jobs
    return job


def test_a_pod_is_a_job_of_one_pod(tmp_path: Path) -> None:
    marks = {"batkube.io/submit": "2m", "batkube.io/walltime": "1h", "batkube.io/user": "ann"}

    job = read_one(tmp_path, pod("train", marks, schedulerName="volcano", priority=7))

    assert (job.key, job.submit, job.size, job.walltime) == ("w0!train", seconds(120), 1, seconds(3600))
    assert job.profile == Delay(name="delay90", duration=seconds(90))
    assert (job.requests, job.user, job.priority, job.scheduler) == ((("cpu", 500),), "ann", 7, "volcano")


def test_a_job_is_a_gang_with_a_pod_per_completion(tmp_path: Path) -> None:
    workload = read(tmp_path, gang(completions=4, parallelism=4))

    assert (workload.jobs[0].size, workload.jobs[0].profile.name) == (4, "delay5400")
    assert workload.notes == ()


@pytest.mark.parametrize(
    ("spec", "size", "notes"),
    [
        ({}, 1, []),
        ({"parallelism": 3}, 3, []),
        ({"completions": 5, "parallelism": 2}, 5, ["parallelism below completions"]),
        ({"completions": 2, "parallelism": 2, "suspend": True}, 2, ["suspended"]),
        ({"completions": 2, "parallelism": 0}, 2, ["suspended"]),
        ({"completions": None, "parallelism": None}, 1, []),
    ],
)
def test_completions_determine_the_size(tmp_path: Path, spec: Fields, size: int, notes: list[str]) -> None:
    workload = read(tmp_path, gang(**spec))

    assert workload.jobs[0].size == size
    assert [any(part in note.message for part in notes) for note, _ in workload.notes] == [True] * len(notes)


def test_annotations_may_be_on_the_pod_template(tmp_path: Path) -> None:
    job = gang()
    job["metadata"]["annotations"] = {"batkube.io/submit": "5"}
    job["spec"]["template"]["metadata"] = {"annotations": {"batkube.io/duration": 30, "batkube.io/submit": "9"}}

    read_job = read_one(tmp_path, job)

    assert (read_job.submit, read_job.profile.name) == (seconds(5), "delay30")


@pytest.mark.parametrize(
    ("manifest", "walltime_s"),
    [
        (pod(activeDeadlineSeconds=60), 60),
        (gang(activeDeadlineSeconds=100), 100),
        (gang(activeDeadlineSeconds=100, template={"activeDeadlineSeconds": 40}), 40),
        (pod("a", {"batkube.io/walltime": "5m"}, activeDeadlineSeconds=60), 300),
    ],
)
def test_active_deadline_seconds_is_the_walltime_unless_an_annotation_overrides_it(
    tmp_path: Path, manifest: Fields, walltime_s: int
) -> None:
    assert read_one(tmp_path, manifest).walltime == seconds(walltime_s)


def test_an_exit_code_makes_a_job_fail(tmp_path: Path) -> None:
    failing, fine = read(tmp_path, pod("a", {"batkube.io/exit-code": "3"}), pod("b")).jobs

    assert (failing.profile.ret, fine.profile.ret) == (3, 0)
    assert failing.profile.name != fine.profile.name


def test_priorities_are_those_of_priority_classes_in_the_same_file(tmp_path: Path) -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    usual = {**high, "metadata": {"name": "usual"}, "value": 5, "globalDefault": True}
    pods = [pod("a", priorityClassName="high"), pod("b"), pod("c", priorityClassName="system-node-critical")]

    jobs = read(tmp_path, *pods, high, usual).jobs

    assert [job.priority for job in jobs] == [1000, 5, 2_000_001_000]


def test_the_default_scheduler_name_means_no_requested_scheduler(tmp_path: Path) -> None:
    assert read_one(tmp_path, pod(schedulerName="default-scheduler")).scheduler == ""


def test_lists_and_json_are_read_and_ties_keep_the_order_of_the_file(tmp_path: Path) -> None:
    late = pod("late", {"batkube.io/submit": "1"})
    path = tmp_path / "list.yml"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [late, pod("z"), pod("b")]}))

    assert [job.name for job in read_workload(path).jobs] == ["z", "b", "late"]


def test_objects_of_other_kinds_are_left_out_and_counted(tmp_path: Path) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}

    workload = read(tmp_path, service, pod(), {**service, "metadata": {"name": "t"}})

    ((note, count),) = workload.notes
    assert ("kind Service" in note.message, count) == (True, 2)


def test_fields_that_only_real_schedulers_support_are_noted(tmp_path: Path) -> None:
    workload = read(
        tmp_path, pod("a", nodeSelector={"disk": "ssd"}, tolerations=[{"key": "gpu"}]), pod("b", affinity={})
    )

    assert [(note.message, count) for note, count in workload.notes] == [
        ("in-process policies ignore nodeSelector", 1),
        ("in-process policies ignore tolerations", 1),
    ]


class TestRequests:
    """The rule of Kubernetes' PodRequests, case by case."""

    def requests(self, tmp_path: Path, **spec: object) -> dict[str, int]:
        return dict(read_one(tmp_path, pod(**spec)).requests)

    def test_containers_add_up(self, tmp_path: Path) -> None:
        containers = [container(cpu="500m", memory="1Gi"), container(cpu=1, **{"nvidia.com/gpu": 2})]

        assert self.requests(tmp_path, containers=containers) == {
            "cpu": 1500,
            "memory": 1 << 30,
            "nvidia.com/gpu": 2,
        }

    def test_the_largest_init_container_counts_if_it_exceeds_the_containers(self, tmp_path: Path) -> None:
        inits = [container(cpu=2), container(cpu=1, memory="3Gi")]

        requests = self.requests(tmp_path, containers=[container(cpu="500m", memory="4Gi")], initContainers=inits)

        assert requests == {"cpu": 2000, "memory": 4 << 30}

    def test_sidecars_add_to_containers_and_later_init_containers(self, tmp_path: Path) -> None:
        sidecar = {**container(cpu=1), "restartPolicy": "Always"}

        # Containers and sidecar: 1.5; init after the sidecar: 1 + 2; init before it: 2.5.
        after = self.requests(tmp_path, initContainers=[sidecar, container(cpu=2)])
        before = self.requests(tmp_path, initContainers=[container(cpu="2500m"), sidecar])
        alone = self.requests(tmp_path, initContainers=[sidecar])

        assert (after["cpu"], before["cpu"], alone["cpu"]) == (3000, 2500, 1500)

    def test_the_overhead_of_a_pod_is_added(self, tmp_path: Path) -> None:
        assert self.requests(tmp_path, overhead={"cpu": "250m", "memory": 100}) == {"cpu": 750, "memory": 100}

    def test_a_limit_without_a_request_counts_as_the_request(self, tmp_path: Path) -> None:
        both = {"name": "c", "resources": {"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": 1}}}

        assert self.requests(tmp_path, containers=[both]) == {"cpu": 1000, "memory": 1 << 30}

    def test_pod_level_resources_replace_the_sum_of_the_containers(self, tmp_path: Path) -> None:
        requests = self.requests(tmp_path, resources={"requests": {"cpu": 3}}, overhead={"cpu": "100m"})

        assert requests == {"cpu": 3100}

    def test_a_pod_may_have_no_requests(self, tmp_path: Path) -> None:
        assert self.requests(tmp_path, containers=[{"name": "c"}]) == {}


@pytest.mark.parametrize(
    ("objects", "at", "part"),
    [
        ([pod("a", {"batkube.io/duration": None})], "document 1 (Pod a)", "no annotation batkube.io/duration"),
        ([pod("a", {"batkube.io/duration": "soon"})], "document 1 (Pod a).batkube.io/duration", "not a duration"),
        ([pod("a", {"batkube.io/duration": "-5"})], "document 1 (Pod a).batkube.io/duration", "negative"),
        ([pod("a", {"batkube.io/walltime": "0"})], "document 1 (Pod a).batkube.io/walltime", "must be positive"),
        ([pod("a", {"batkube.io/exit-code": "x"})], "document 1 (Pod a).batkube.io/exit-code", "whole number"),
        ([pod("a", {"batkube.io/user": []})], "document 1 (Pod a).metadata.annotations.batkube.io/user", "not a text"),
        ([pod(), pod()], "document 2 (Pod a)", r"'a', as document 1 \(Pod a\)"),
        ([pod(), gang(completions=0)], "document 2 (Job g).spec.completions", "at least 1"),
        ([pod(activeDeadlineSeconds=0)], "document 1 (Pod a).spec.activeDeadlineSeconds", "at least 1"),
        ([pod(priorityClassName="high")], "document 1 (Pod a).spec.priorityClassName", "not in this file"),
        (
            [pod(containers=[container(cpu="fast")])],
            "document 1 (Pod a).spec.containers[0].resources.requests.cpu",
            "not a quantity",
        ),
        (
            [pod(containers=[container(cpu=-1)])],
            "document 1 (Pod a).spec.containers[0].resources.requests.cpu",
            "negative",
        ),
        ([pod(containers="none")], "document 1 (Pod a).spec.containers", "not a list"),
        ([{"kind": "Pod", "metadata": {"name": "a"}}], "document 1 (Pod a).spec", "missing"),
        ([{"kind": "Pod", "spec": {}, "metadata": {}}], "document 1 (Pod without name).metadata.name", "missing"),
        ([{"metadata": {}}], "document 1.kind", "missing"),
        (["text"], "document 1", "not an object"),
        ([{"kind": "Namespace"}], None, "contains no workload object"),
        ([None], None, "contains no workload object"),
    ],
)
def test_an_invalid_manifest_is_rejected_with_its_place(
    tmp_path: Path, objects: list[Any], at: str | None, part: str
) -> None:
    with pytest.raises(InputError, match=part) as error:
        read(tmp_path, *objects)

    assert error.value.at == at


@pytest.mark.parametrize(
    ("content", "at"),
    [(b"kind: Pod\nspec: [1,\n", "line 3"), (b"a: b: c\n", "line 1"), (b"kind: \xff\xfe\n", None), (b"\x00", None)],
)
def test_invalid_yaml_is_rejected(tmp_path: Path, content: bytes, at: str | None) -> None:
    path = tmp_path / "broken.yaml"
    path.write_bytes(content)

    with pytest.raises(InputError, match="is not") as error:
        read_workload(path)

    assert error.value.at == at
