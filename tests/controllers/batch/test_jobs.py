"""Jobs complete, fail, retry, back off, suspend and expire (Kubernetes: pkg/controller/job)."""

from __future__ import annotations

from typing import Any

from tests.simulated_cluster import Cluster

WORK = "default/work"


def status(world: Cluster) -> dict[str, Any]:
    result: dict[str, Any] = world.get("jobs.batch", WORK)["status"]
    return result


def conditions(world: Cluster) -> list[tuple[str, str]]:
    return [(one["type"], one["reason"]) for one in status(world).get("conditions", [])]


def test_a_job_runs_its_pods_and_completes(world: Cluster) -> None:
    world.create("jobs.batch", world.job(completions=3, parallelism=2))
    world.run(10)
    assert status(world)["active"] == 2
    assert status(world)["ready"] == 2
    world.run(60)
    assert status(world)["succeeded"] == 3
    assert conditions(world) == [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
    assert status(world)["completionTime"] > status(world)["startTime"]
    assert status(world)["uncountedTerminatedPods"] == {}
    assert "active" not in status(world)
    assert world.events("Completed") == ["Job completed"]
    assert all("finalizers" not in pod["metadata"] for pod in world.pods())


def test_a_finalizer_protects_pods_until_they_are_counted(world: Cluster) -> None:
    world.create("jobs.batch", world.job())
    world.run(1)
    (pod,) = world.pods()
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert pod["metadata"]["ownerReferences"][0]["controller"] is True


def test_failures_are_retried_with_back_off_until_the_limit(world: Cluster) -> None:
    world.create("jobs.batch", world.job(annotations={"batkube.io/exit-code": "3"}, backoffLimit=2))
    world.run(31)
    assert len(world.pods()) == 1
    world.run(10)
    assert len(world.pods()) == 2
    world.run(31)
    assert len(world.pods()) == 2
    world.run(20)
    assert len(world.pods()) == 3
    world.run(40)
    assert status(world)["failed"] == 3
    reason = "BackoffLimitExceeded"
    assert conditions(world) == [("FailureTarget", reason), ("Failed", reason)]
    assert world.events(reason) == ["Job has reached the specified backoff limit"]
    assert "completionTime" not in status(world)


def test_each_pod_of_an_indexed_job_has_its_index(world: Cluster) -> None:
    world.create("jobs.batch", world.job(completionMode="Indexed", completions=4, parallelism=4))
    world.run(1)
    label = "batch.kubernetes.io/job-completion-index"
    pods = sorted(world.pods(), key=lambda pod: pod["metadata"]["labels"][label])
    assert [pod["metadata"]["annotations"][label] for pod in pods] == ["0", "1", "2", "3"]
    assert [pod["spec"]["hostname"] for pod in pods] == [f"work-{index}" for index in range(4)]
    assert all(pod["metadata"]["name"].startswith(f"work-{index}-") for index, pod in enumerate(pods))
    variable = pods[0]["spec"]["containers"][0]["env"][0]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{label}']"
    world.run(60)
    assert status(world)["completedIndexes"] == "0-3"
    assert status(world)["succeeded"] == 4


def test_with_a_limit_per_index_other_indexes_continue(world: Cluster) -> None:
    job = world.job(
        completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1, backoffLimit=2**31 - 1
    )
    world.create("jobs.batch", job)
    world.run(1)
    failing = next(
        pod for pod in world.pods() if pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "0"
    )
    fail(world, failing)
    world.run(15)
    replacements = [
        pod
        for pod in world.pods()
        if pod["metadata"]["annotations"].get("batch.kubernetes.io/job-index-failure-count") == "1"
    ]
    assert len(replacements) == 1
    fail(world, replacements[0])
    world.run(60)
    assert status(world)["failedIndexes"] == "0"
    assert status(world)["completedIndexes"] == "1"
    assert conditions(world)[-1] == ("Failed", "FailedIndexes")


def fail(world: Cluster, pod: dict[str, Any], code: int = 1) -> None:
    """Report a failed pod, as a kubelet would."""
    containers = [
        {
            **one,
            "state": {
                "terminated": {
                    "exitCode": code,
                    "startedAt": "2000-01-12T13:46:41Z",
                    "finishedAt": "2000-01-12T13:46:42Z",
                }
            },
        }
        for one in pod["status"]["containerStatuses"]
    ]
    failed = {**pod["status"], "phase": "Failed", "containerStatuses": containers}
    world.api.update("pods", {**pod, "status": failed}, world.now, subresource="status")


def test_a_failure_policy_can_fail_the_job_at_once_or_ignore_a_failure(world: Cluster) -> None:
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    ]
    world.create("jobs.batch", world.job(podFailurePolicy={"rules": rules}))
    world.run(1)
    (pod,) = world.pods()
    disrupted = {
        **pod["status"],
        "conditions": [{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2000-01-12T13:46:41Z"}],
    }
    fail(world, {**pod, "status": disrupted})
    world.run(15)
    assert status(world).get("failed", 0) == 0
    assert len(world.pods("Running")) == 1
    fail(world, world.pods("Running")[0], code=42)
    world.run(2)
    assert conditions(world) == [("FailureTarget", "PodFailurePolicy"), ("Failed", "PodFailurePolicy")]
    assert "failed with exit code 42 matching FailJob rule at index 1" in status(world)["conditions"][-1]["message"]


def test_a_success_policy_ends_the_job_early(world: Cluster) -> None:
    policy = {"rules": [{"succeededIndexes": "0", "succeededCount": 1}]}
    world.create("jobs.batch", world.job(completionMode="Indexed", completions=3, parallelism=1, successPolicy=policy))
    world.run(40)
    assert conditions(world) == [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]
    assert status(world)["completedIndexes"] == "0"


def test_a_job_without_completions_completes_when_one_pod_succeeded_and_none_runs(world: Cluster) -> None:
    job = world.job(parallelism=2)
    del job["spec"]["completions"]
    world.create("jobs.batch", job)
    world.run(60)
    assert status(world)["succeeded"] == 2
    assert conditions(world)[-1][0] == "Complete"


def test_a_job_past_its_deadline_fails_and_its_pods_are_deleted(world: Cluster) -> None:
    world.create("jobs.batch", world.job(annotations={"batkube.io/duration": "1h"}, activeDeadlineSeconds=20))
    world.run(30)
    assert conditions(world) == [("FailureTarget", "DeadlineExceeded"), ("Failed", "DeadlineExceeded")]
    assert not world.pods("Running")


def test_a_suspended_job_has_no_pods_and_restarts_when_resumed(world: Cluster) -> None:
    world.create("jobs.batch", world.job(suspend=True))
    world.run(5)
    assert not world.pods()
    assert "startTime" not in status(world)
    world.change("jobs.batch", WORK, suspend=False)
    world.run(5)
    assert len(world.pods("Running")) == 1
    world.change("jobs.batch", WORK, suspend=True)
    world.run(5)
    assert not world.pods("Running")
    assert conditions(world) == [("Suspended", "JobSuspended")]
    world.change("jobs.batch", WORK, suspend=False)
    world.run(60)
    assert conditions(world)[-1][0] == "Complete"
    assert world.events("Resumed") == ["Job resumed"]


def test_a_finished_job_is_deleted_with_its_pods_after_its_ttl(world: Cluster) -> None:
    world.create("jobs.batch", world.job(ttlSecondsAfterFinished=20))
    world.run(45)
    assert conditions(world)[-1][0] == "Complete"
    world.run(20)
    assert world.store.get("jobs.batch", WORK) is None  # type: ignore[arg-type]
    assert not world.pods()


def test_deleting_a_job_in_the_background_deletes_its_pods(world: Cluster) -> None:
    world.create("jobs.batch", world.job(annotations={"batkube.io/duration": "1h"}))
    world.run(5)
    world.delete("jobs.batch", WORK)
    world.run(5)
    assert not world.pods()


def test_restarts_in_place_count_towards_the_limit(world: Cluster) -> None:
    job = world.job(annotations={"batkube.io/exit-code": "1", "batkube.io/duration": "1s"}, backoffLimit=2)
    job["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    world.create("jobs.batch", job)
    world.run(60)
    assert conditions(world)[-1] == ("Failed", "BackoffLimitExceeded")


def test_a_lower_parallelism_deletes_pods(world: Cluster) -> None:
    world.create("jobs.batch", world.job(annotations={"batkube.io/duration": "1h"}, completions=4, parallelism=4))
    world.run(2)
    world.change("jobs.batch", WORK, parallelism=1)
    world.run(2)
    assert len(world.pods("Running")) == 1
    assert status(world)["active"] == 1
    assert status(world).get("failed", 0) == 0
