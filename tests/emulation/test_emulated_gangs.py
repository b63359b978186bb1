"""`batkube emulate` with jobs in the words of schedulers that know gangs, on clusters that `batkube serve` makes up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.emulation.test_emulate import SPEED, emulated, leftovers, written

from batkube.cluster.jobs.submission_forms import POD_GROUP_APIS
from batkube.emulation.client.connection import ClusterConnection
from batkube.emulation.manifests import ManifestOptions, objects_of
from batkube.emulation.settings import JobKind
from batkube.outputs.results import Results
from clients.serving import Served, served
from emulation.builders import make_job, make_task

VOLCANO, COSCHEDULING = "scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Served]:
    """Four nodes of one cpu whose clock runs fast, and no kinds but Kubernetes' own."""
    with served(tmp_path / "serve", "--platform", "4x1,4Gi", "--speed", str(SPEED)) as running:
        yield running


def define(cluster: Served, version: str, kind: str = "PodGroup") -> None:
    """Define a kind with an open schema, as the installation of a scheduler would."""
    group, _, name = version.partition("/")
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.lower()}s.{group}",
            # The group is protected, and this says that it may be used.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "versions": [{"name": name, "served": True, "storage": True, "schema": anything}],
        },
    }
    ClusterConnection(cluster.kubeconfig).create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)


@pytest.mark.parametrize("version", POD_GROUP_APIS)
def test_a_job_of_three_is_a_group_and_three_pods_that_name_it(version: str) -> None:
    dialect = POD_GROUP_APIS[version]
    style = ManifestOptions("cafe", JobKind.POD_GROUP, "busybox", "volcano", dialect=dialect)

    group, *pods = objects_of(make_task(job=make_job("7", size=3)), style)

    assert (group["apiVersion"], group["kind"], group["spec"]["minMember"]) == (version, "PodGroup", 3)
    assert group["spec"].get("queue") == ("default" if dialect.has_queues else None)
    for pod in pods:
        naming = pod["metadata"]["labels" if dialect.label else "annotations"]
        assert naming[dialect.label or dialect.annotation] == group["metadata"]["name"]
    assert len(pods) == 3


def test_a_job_for_kueue_waits_in_its_queue() -> None:
    (job,) = objects_of(
        make_task(job=make_job("7", size=3)), ManifestOptions("cafe", JobKind.KUEUE_JOB, "busybox", "s")
    )

    assert job["spec"]["suspend"] is True
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    assert "kueue.x-k8s.io/queue-name" not in job["spec"]["template"]["metadata"]["labels"]


def test_gangs_are_played_with_their_groups_and_leave_none(cluster: Served, tmp_path: Path) -> None:
    define(cluster, COSCHEDULING)
    written(tmp_path, [{"res": 3, "run": 30}, {"res": 2, "run": 20}])

    done = emulated(cluster.kubeconfig, tmp_path, "--speed", str(SPEED), "--kind", "pod-group", "--quiet")

    assert done.returncode == 0, done.stderr
    results = Results(tmp_path / "out")
    assert list(results.jobs["final_state"]) == ["COMPLETED_SUCCESSFULLY"] * 2
    assert sorted(results.pods["job_id"]) == ["0", "0", "0", "1", "1"]
    assert ClusterConnection(cluster.kubeconfig).get(f"/apis/{COSCHEDULING}/podgroups")["items"] == []
    assert leftovers(cluster.kubeconfig) == []


def test_a_cluster_with_several_kinds_of_groups_is_asked_about(cluster: Served, tmp_path: Path) -> None:
    written(tmp_path, [{"res": 2, "run": 10}])
    options = ("--speed", str(SPEED), "--kind", "pod-group", "--quiet")

    none = emulated(cluster.kubeconfig, tmp_path, *options)
    define(cluster, COSCHEDULING)
    define(cluster, VOLCANO)
    several = emulated(cluster.kubeconfig, tmp_path, *options)
    unknown = emulated(cluster.kubeconfig, tmp_path, *options, "--pod-group", "x/v1")
    chosen = emulated(cluster.kubeconfig, tmp_path, *options, "--pod-group", VOLCANO)

    assert [one.returncode for one in (none, several, unknown, chosen)] == [2, 2, 2, 0], chosen.stderr
    assert "the cluster has no PodGroups" in none.stderr
    assert "several kinds of PodGroups" in several.stderr
    assert f"--pod-group {COSCHEDULING}" in several.stderr
    assert "is not a supported version of PodGroups" in unknown.stderr


def test_kueue_must_be_there_for_its_jobs_and_groups_for_a_choice_of_them(cluster: Served, tmp_path: Path) -> None:
    written(tmp_path, [{}])

    queued = emulated(cluster.kubeconfig, tmp_path, "--kind", "kueue-job")
    chosen = emulated(cluster.kubeconfig, tmp_path, "--kind", "pod", "--pod-group", VOLCANO)

    assert (queued.returncode, chosen.returncode) == (2, 2)
    assert "the cluster does not serve kueue.x-k8s.io/v1beta1" in queued.stderr
    assert "cannot be used with --kind pod" in chosen.stderr
