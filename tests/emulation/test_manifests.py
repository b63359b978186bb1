"""The objects that jobs become."""

from __future__ import annotations

from batkube.cluster.mapping import pod_base_name
from batkube.emulation.manifests import LABEL_NUMBER, LABEL_RUN, ManifestOptions, objects_of, priority_class
from batkube.emulation.settings import JobKind
from batkube.execution.containers.plans import plan_of
from batkube.kernel.instants import duration, seconds
from emulation.builders import make_job, make_task

PODS = ManifestOptions("cafe", JobKind.POD, "busybox", "default-scheduler")
JOBS = PODS._replace(kind=JobKind.JOB)


def test_a_kubelet_and_an_annotation_reader_come_to_the_same_run_time() -> None:
    (pod,) = objects_of(make_task()._replace(sleep=seconds("1.7")), PODS)

    container = pod["spec"]["containers"][0]
    assert container["command"] == ["sleep", "1.7"]
    assert duration(pod["metadata"]["annotations"]["batkube.io/duration"]) == seconds("1.7")


def test_a_job_that_fails_ends_with_its_exit_code_wherever_it_runs() -> None:
    (pod,) = objects_of(make_task(exit_code=3), PODS)

    container = pod["spec"]["containers"][0]
    by_command = plan_of({"metadata": {}, "spec": pod["spec"]}, container)
    by_annotation = plan_of(pod, {"name": "job"})
    assert (by_command.length, by_command.exit_code) == (seconds(10), 3)
    assert (by_annotation.length, by_annotation.exit_code) == (seconds(10), 3)


def test_every_object_carries_the_runs_label_and_the_jobs_number() -> None:
    for style in (PODS, JOBS):
        for each in objects_of(make_task(7), style):
            pod = each["spec"].get("template", each)
            for labels in (each["metadata"]["labels"], pod["metadata"]["labels"]):
                assert (labels[LABEL_RUN], labels[LABEL_NUMBER]) == ("cafe", "7")


def test_a_job_of_three_becomes_three_pods_or_one_job_object_of_three() -> None:
    task = make_task(job=make_job("7", size=3))

    assert [pod["metadata"]["name"] for pod in objects_of(task, PODS)] == ["w0-7-0", "w0-7-1", "w0-7-2"]
    (job,) = objects_of(task, JOBS)
    assert (job["kind"], job["spec"]["completions"], job["spec"]["parallelism"]) == ("Job", 3, 3)


def test_names_that_kubernetes_would_cut_are_replaced_in_job_objects() -> None:
    long = make_task(12, make_job("x" * 80))

    (job,) = objects_of(long, JOBS)

    assert job["metadata"]["name"] == "job-12"
    assert objects_of(long, PODS)[0]["metadata"]["name"] == pod_base_name(long.job)


def test_extended_resources_get_equal_limits_and_others_none() -> None:
    job = make_job(requests=(("cpu", 500), ("nvidia.com/gpu", 2)))

    (pod,) = objects_of(make_task(job=job), PODS)

    resources = pod["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {"cpu": "500m", "nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}


def test_a_job_keeps_its_own_scheduler_and_image() -> None:
    (own,) = objects_of(make_task(job=make_job(scheduler="mine", image="nginx")), PODS)
    (usual,) = objects_of(make_task(job=make_job(scheduler="default")), PODS._replace(scheduler_name="theirs"))

    assert (own["spec"]["schedulerName"], own["spec"]["containers"][0]["image"]) == ("mine", "nginx")
    assert (usual["spec"]["schedulerName"], usual["spec"]["containers"][0]["image"]) == ("theirs", "busybox")


def test_priorities_become_classes_that_the_pods_name() -> None:
    for priority in (1000, -5):
        (pod,) = objects_of(make_task(job=make_job(priority=priority)), PODS)
        its_class = priority_class(priority, PODS)
        assert pod["spec"]["priorityClassName"] == its_class["metadata"]["name"]
        assert its_class["value"] == priority


def test_pods_tolerate_kwoks_taint_only_where_nodes_have_it() -> None:
    (plain,), (fake,) = objects_of(make_task(), PODS), objects_of(make_task(), PODS._replace(tolerates_kwok=True))

    assert "tolerations" not in plain["spec"]
    assert [one["key"] for one in fake["spec"]["tolerations"]] == ["kwok.x-k8s.io/node"]
