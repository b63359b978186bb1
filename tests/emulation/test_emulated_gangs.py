"""`batkube emulate` with the PodGroup APIs of gang schedulers, on clusters of `batkube serve`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.emulation.test_emulate import SPEED, remaining_objects, run_command, write_workload

from batkube.cluster.jobs.submission_forms import CUSTOM_POD_GROUPS, POD_GROUP_APIS
from batkube.emulation.client.connection import ClusterConnection
from batkube.emulation.manifests import ManifestOptions, objects_of
from batkube.emulation.settings import JobKind
from batkube.outputs.results import Results
from clients.serving import Served, served
from emulation.builders import make_job, make_planned_job

VOLCANO, COSCHEDULING = "scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Served]:
    """Serve four nodes of one cpu, with a fast clock and only the built-in kinds."""
    with served(tmp_path / "serve", "--platform", "4x1,4Gi", "--speed", str(SPEED)) as cluster:
        yield cluster


def define(cluster: Served, version: str, kind: str = "PodGroup") -> None:
    """Create a CustomResourceDefinition with an open schema, as the installation of a scheduler does."""
    group, _, name = version.partition("/")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.lower()}s.{group}",
            # Protected groups require this annotation.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "versions": [{"name": name, "served": True, "storage": True, "schema": schema}],
        },
    }
    ClusterConnection(cluster.kubeconfig).create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)


@pytest.mark.parametrize("version", CUSTOM_POD_GROUPS)
def test_a_job_of_size_three_is_a_pod_group_and_three_pods_that_name_it(version: str) -> None:
    pod_group_api = POD_GROUP_APIS[version]
    options = ManifestOptions("cafe", JobKind.POD_GROUP, "busybox", "volcano", pod_group_api=pod_group_api)

    group, *pods = objects_of(make_planned_job(job=make_job("7", size=3)), options)

    assert (group["apiVersion"], group["kind"], group["spec"]["minMember"]) == (version, "PodGroup", 3)
    assert group["spec"].get("queue") == ("default" if pod_group_api.has_queues else None)
    for pod in pods:
        group_name = pod["metadata"]["labels" if pod_group_api.label else "annotations"]
        assert group_name[pod_group_api.label or pod_group_api.annotation] == group["metadata"]["name"]
    assert len(pods) == 3


def test_a_kueue_job_is_suspended_and_names_its_queue() -> None:
    (job,) = objects_of(
        make_planned_job(job=make_job("7", size=3)), ManifestOptions("cafe", JobKind.KUEUE_JOB, "busybox", "s")
    )

    assert job["spec"]["suspend"] is True
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    assert "kueue.x-k8s.io/queue-name" not in job["spec"]["template"]["metadata"]["labels"]


def test_the_pod_groups_of_a_run_are_deleted_at_its_end(cluster: Served, tmp_path: Path) -> None:
    define(cluster, COSCHEDULING)
    write_workload(tmp_path, [{"res": 3, "run": 30}, {"res": 2, "run": 20}])

    process = run_command(cluster.kubeconfig, tmp_path, "--speed", str(SPEED), "--kind", "pod-group", "--quiet")

    assert process.returncode == 0, process.stderr
    results = Results(tmp_path / "out")
    assert list(results.jobs["final_state"]) == ["COMPLETED_SUCCESSFULLY"] * 2
    assert sorted(results.pods["job_id"]) == ["0", "0", "0", "1", "1"]
    assert ClusterConnection(cluster.kubeconfig).get(f"/apis/{COSCHEDULING}/podgroups")["items"] == []
    assert remaining_objects(cluster.kubeconfig) == []


def test_the_pod_group_api_must_be_served_and_unambiguous(cluster: Served, tmp_path: Path) -> None:
    write_workload(tmp_path, [{"res": 2, "run": 10}])
    options = ("--speed", str(SPEED), "--kind", "pod-group", "--quiet")

    none = run_command(cluster.kubeconfig, tmp_path, *options)
    define(cluster, COSCHEDULING)
    define(cluster, VOLCANO)
    several = run_command(cluster.kubeconfig, tmp_path, *options)
    unknown = run_command(cluster.kubeconfig, tmp_path, *options, "--pod-group", "x/v1")
    chosen = run_command(cluster.kubeconfig, tmp_path, *options, "--pod-group", VOLCANO)

    assert [process.returncode for process in (none, several, unknown, chosen)] == [2, 2, 2, 0], chosen.stderr
    assert "the cluster serves no PodGroup API" in none.stderr
    assert "the cluster serves several PodGroup APIs" in several.stderr
    assert f"--pod-group {COSCHEDULING}" in several.stderr
    assert "is not a supported PodGroup API" in unknown.stderr


def test_kueue_must_be_installed_and_a_pod_group_api_needs_the_kind_pod_group(cluster: Served, tmp_path: Path) -> None:
    write_workload(tmp_path, [{}])

    queued = run_command(cluster.kubeconfig, tmp_path, "--kind", "kueue-job")
    chosen = run_command(cluster.kubeconfig, tmp_path, "--kind", "pod", "--pod-group", VOLCANO)

    assert (queued.returncode, chosen.returncode) == (2, 2)
    assert "the cluster does not serve kueue.x-k8s.io/v1beta1" in queued.stderr
    assert "cannot be used with --kind pod" in chosen.stderr
