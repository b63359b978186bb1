"""Manifests that are read as objects, and the order of the objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from batkube.kernel.errors import InputError
from batkube.kernel.instants import seconds
from batkube.workloads.model import Workload
from batkube.workloads.reader import read_workload

Fields = dict[str, Any]
CONTAINERS = {"containers": [{"name": "c", "image": "i"}]}


def pod(name: str = "a", **annotations: str) -> Fields:
    marks = {f"batkube.io/{key}": text for key, text in annotations.items()}
    metadata = {"name": name, "annotations": marks}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": CONTAINERS}


def job(name: str = "j", duration: str | None = "90", **spec: object) -> Fields:
    marks = {} if duration is None else {"batkube.io/duration": duration}
    metadata = {"name": name, "annotations": marks}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": {"spec": CONTAINERS}, **spec},
    }


def object_of(kind: str, name: str = "x", submit: str = "0", **fields: object) -> Fields:
    metadata = {"name": name, "annotations": {"batkube.io/submit": submit}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


def read(tmp_path: Path, *objects: object) -> Workload:
    path = tmp_path / "work.yaml"
    path.write_text("---\n".join(yaml.safe_dump(fields) for fields in objects))
    return read_workload(path, with_objects=True)


def test_pods_and_jobs_with_a_run_time_are_jobs(tmp_path: Path) -> None:
    workload = read(
        tmp_path,
        pod(duration="5"),
        job(),
        job("k", completions=3, parallelism=3, backoffLimit=0),
        object_of("PriorityClass"),
    )

    assert ([job.name for job in workload.jobs], workload.objects) == (["a", "j", "k"], ())


@pytest.mark.parametrize(
    "manifest",
    [
        object_of("Service"),
        pod(),
        job(duration=None),
        job(backoffLimit=2),
        job(completions=4, parallelism=2),
        job(completions=4),
        job(completionMode="Indexed", completions=2, parallelism=2),
        job(suspend=True),
        job(ttlSecondsAfterFinished=60),
        job(podFailurePolicy={"rules": []}),
        {**pod(duration="5"), "apiVersion": "example.org/v1"},
    ],
)
def test_one_object_that_jobs_cannot_express_makes_the_file_a_workload_of_objects(
    tmp_path: Path, manifest: Fields
) -> None:
    workload = read(tmp_path, pod("first", duration="5"), manifest)

    assert (list(workload.jobs), len(workload.objects)) == ([], 2)


def test_objects_are_sorted_by_time_with_definitions_first_and_then_as_in_the_file(tmp_path: Path) -> None:
    workload = read(
        tmp_path,
        object_of("Service", "late", "1h"),
        object_of("Widget", "w"),
        object_of("Service", "s"),
        object_of("CustomResourceDefinition", "widgets"),
        object_of("Namespace", "n"),
    )

    names = [manifest.fields["metadata"]["name"] for manifest in workload.objects]
    assert names == ["widgets", "n", "w", "s", "late"]
    assert workload.objects[-1].at == seconds(3600)
    assert workload.objects[-1].place == "document 1 (Service late)"


@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
def test_annotations_of_an_object_are_copied_to_its_pod_template(tmp_path: Path, kind: str) -> None:
    template = {"metadata": {"annotations": {"batkube.io/exit-code": "3", "mine": "kept"}}, "spec": CONTAINERS}
    spec: Fields = {"template": template} if kind == "Deployment" else {"jobTemplate": {"spec": {"template": template}}}
    owner = object_of(kind, submit="5m", spec=spec)
    owner["metadata"]["annotations"]["batkube.io/duration"] = 30

    (manifest,) = read(tmp_path, owner).objects

    inner = manifest.fields["spec"].get("jobTemplate", {}).get("spec") or manifest.fields["spec"]
    assert inner["template"]["metadata"]["annotations"] == {
        "batkube.io/exit-code": "3",
        "mine": "kept",
        "batkube.io/duration": "30",
    }


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (object_of("Service", submit="-5"), "is negative"),
        ({"kind": "Service", "metadata": {"name": "s"}}, "apiVersion: is missing"),
        ({"apiVersion": "v1", "kind": "Service", "metadata": {}}, "metadata.name: is missing"),
        ({"apiVersion": "v1", "kind": "Service"}, "metadata: is missing"),
    ],
)
def test_an_invalid_object_is_rejected_with_its_place(tmp_path: Path, manifest: Fields, problem: str) -> None:
    with pytest.raises(InputError, match="document 2") as error:
        read(tmp_path, pod(), manifest)

    assert problem in str(error.value)
