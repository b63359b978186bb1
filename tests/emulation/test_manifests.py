"""The objects that are created for a job."""

from __future__ import annotations

from batkube.cluster.mapping import pod_base_name
from batkube.emulation.manifests import LABEL_NUMBER, LABEL_RUN, ManifestOptions, objects_of, priority_class
from batkube.emulation.settings import JobKind
from batkube.execution.containers.plans import plan_of
from batkube.kernel.instants import duration, seconds
from emulation.builders import make_job, make_planned_job

PODS = ManifestOptions("cafe", JobKind.POD, "busybox", "default-scheduler")
JOBS = PODS._replace(kind=JobKind.JOB)


def test_the_command_and_the_annotation_have_the_same_run_time() -> None:
    (pod,) = objects_of(make_planned_job()._replace(sleep=seconds("1.7")), PODS)

    container = pod["spec"]["containers"][0]
    assert container["command"] == ["sleep", "1.7"]
    assert duration(pod["metadata"]["annotations"]["batkube.io/duration"]) == seconds("1.7")


def test_the_command_and_the_annotation_have_the_same_exit_code() -> None:
    (pod,) = objects_of(make_planned_job(exit_code=3), PODS)

    container = pod["spec"]["containers"][0]
    by_command = plan_of({"metadata": {}, "spec": pod["spec"]}, container)
    by_annotation = plan_of(pod, {"name": "job"})
    assert (by_command.length, by_command.exit_code) == (seconds(10), 3)
    assert (by_annotation.length, by_annotation.exit_code) == (seconds(10), 3)


def test_every_object_has_the_label_of_the_run_and_the_number_of_the_job() -> None:
    for options in (PODS, JOBS):
        for each in objects_of(make_planned_job(7), options):
            pod = each["spec"].get("template", each)
            for labels in (each["metadata"]["labels"], pod["metadata"]["labels"]):
                assert (labels[LABEL_RUN], labels[LABEL_NUMBER]) == ("cafe", "7")


def test_a_job_of_size_three_is_three_pods_or_a_job_object_with_three_pods() -> None:
    planned = make_planned_job(job=make_job("7", size=3))

    assert [pod["metadata"]["name"] for pod in objects_of(planned, PODS)] == ["w0-7-0", "w0-7-1", "w0-7-2"]
    (job,) = objects_of(planned, JOBS)
    assert (job["kind"], job["spec"]["completions"], job["spec"]["parallelism"]) == ("Job", 3, 3)


def test_names_too_long_for_a_job_object_are_replaced() -> None:
    long = make_planned_job(12, make_job("x" * 80))

    (job,) = objects_of(long, JOBS)

    assert job["metadata"]["name"] == "job-12"
    assert objects_of(long, PODS)[0]["metadata"]["name"] == pod_base_name(long.job)


def test_only_extended_resources_have_limits_equal_to_their_requests() -> None:
    job = make_job(requests=(("cpu", 500), ("nvidia.com/gpu", 2)))

    (pod,) = objects_of(make_planned_job(job=job), PODS)

    resources = pod["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {"cpu": "500m", "nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}


def test_a_job_keeps_its_own_scheduler_and_image() -> None:
    (own,) = objects_of(make_planned_job(job=make_job(scheduler="mine", image="nginx")), PODS)
    (default,) = objects_of(make_planned_job(job=make_job(scheduler="default")), PODS._replace(scheduler_name="theirs"))

    assert (own["spec"]["schedulerName"], own["spec"]["containers"][0]["image"]) == ("mine", "nginx")
    assert (default["spec"]["schedulerName"], default["spec"]["containers"][0]["image"]) == ("theirs", "busybox")


def test_a_priority_is_a_class_that_the_pods_name() -> None:
    for priority in (1000, -5):
        (pod,) = objects_of(make_planned_job(job=make_job(priority=priority)), PODS)
        manifest = priority_class(priority, PODS)
        assert pod["spec"]["priorityClassName"] == manifest["metadata"]["name"]
        assert manifest["value"] == priority


def test_pods_tolerate_the_taint_of_kwok_only_if_nodes_have_it() -> None:
    (plain,), (fake,) = (
        objects_of(make_planned_job(), PODS),
        objects_of(make_planned_job(), PODS._replace(tolerates_kwok=True)),
    )

    assert "tolerations" not in plain["spec"]
    assert [toleration["key"] for toleration in fake["spec"]["tolerations"]] == ["kwok.x-k8s.io/node"]
