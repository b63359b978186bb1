"""Files of manifests that are no list of jobs: what they are taken for, and in which order their objects come."""

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


def other(kind: str, name: str = "x", submit: str = "0", **fields: object) -> Fields:
    metadata = {"name": name, "annotations": {"batkube.io/submit": submit}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


def read(tmp_path: Path, *objects: object) -> Workload:
    path = tmp_path / "work.yaml"
    path.write_text("---\n".join(yaml.safe_dump(one) for one in objects))
    return read_workload(path, with_objects=True)


def test_pods_and_jobs_that_say_how_long_they_run_are_jobs(tmp_path: Path) -> None:
    workload = read(
        tmp_path,
        pod(duration="5"),
        job(),
        job("k", completions=3, parallelism=3, backoffLimit=0),
        other("PriorityClass"),
    )

    assert ([job.name for job in workload.jobs], workload.objects) == (["a", "j", "k"], ())


@pytest.mark.parametrize(
    "manifest",
    [
        other("Service"),
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
def test_one_object_that_no_job_can_express_makes_the_whole_file_objects(tmp_path: Path, manifest: Fields) -> None:
    workload = read(tmp_path, pod("first", duration="5"), manifest)

    assert (list(workload.jobs), len(workload.objects)) == ([], 2)


def test_objects_come_by_their_times_then_as_in_the_file_with_definitions_first(tmp_path: Path) -> None:
    workload = read(
        tmp_path,
        other("Service", "late", "1h"),
        other("Widget", "w"),
        other("Service", "s"),
        other("CustomResourceDefinition", "widgets"),
        other("Namespace", "n"),
    )

    names = [manifest.fields["metadata"]["name"] for manifest in workload.objects]
    assert names == ["widgets", "n", "w", "s", "late"]
    assert workload.objects[-1].at == seconds(3600)
    assert workload.objects[-1].place == "document 1 (Service late)"


@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
def test_annotations_on_an_object_reach_the_pods_it_makes(tmp_path: Path, kind: str) -> None:
    template = {"metadata": {"annotations": {"batkube.io/exit-code": "3", "mine": "kept"}}, "spec": CONTAINERS}
    spec: Fields = {"template": template} if kind == "Deployment" else {"jobTemplate": {"spec": {"template": template}}}
    made = other(kind, submit="5m", spec=spec)
    made["metadata"]["annotations"]["batkube.io/duration"] = 30

    (manifest,) = read(tmp_path, made).objects

    inner = manifest.fields["spec"].get("jobTemplate", {}).get("spec") or manifest.fields["spec"]
    assert inner["template"]["metadata"]["annotations"] == {
        "batkube.io/exit-code": "3",
        "mine": "kept",
        "batkube.io/duration": "30",
    }


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (other("Service", submit="-5"), "is negative"),
        ({"kind": "Service", "metadata": {"name": "s"}}, "apiVersion: is missing"),
        ({"apiVersion": "v1", "kind": "Service", "metadata": {}}, "metadata.name: is missing"),
        ({"apiVersion": "v1", "kind": "Service"}, "metadata: is missing"),
    ],
)
def test_what_is_no_object_is_refused_with_its_place(tmp_path: Path, manifest: Fields, problem: str) -> None:
    with pytest.raises(InputError, match="document 2") as refusal:
        read(tmp_path, pod(), manifest)

    assert problem in str(refusal.value)
