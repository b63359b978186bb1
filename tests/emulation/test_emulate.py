"""`batkube emulate` over HTTP, on clusters of `batkube serve`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from batkube.cli.commands.emulate import emulate
from batkube.emulation.client.connection import ClusterConnection
from batkube.kernel.errors import InputError
from batkube.outputs.results import Results
from clients.serving import Served, served

SPEED = 20


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve four nodes of one cpu, with a clock at twenty times real speed."""
    with served(tmp_path_factory.mktemp("fast") / "out", "--platform", "4x1,4Gi", "--speed", str(SPEED)) as cluster:
        yield cluster


def write_workload(folder: Path, jobs: Sequence[Mapping[str, object]]) -> Path:
    """Write a workload; `run` is the run time of a job, `ret` its exit code."""
    profiles, rows = {}, []
    for number, job in enumerate(jobs):
        profile = {"type": "delay", "delay": job.get("run", 10), "ret": job.get("ret", 0)}
        profiles[f"p{number}"] = profile
        fields = {key: value for key, value in job.items() if key not in ("run", "ret")}
        rows.append({"id": str(number), "subtime": 0, "res": 1, "profile": f"p{number}", "cpu": "1", **fields})
    path = folder / "workload.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": rows, "profiles": profiles}))
    return path


def command_line(kubeconfig: Path, folder: Path, *options: str) -> list[str]:
    required = [
        "--kubeconfig",
        str(kubeconfig),
        "--workload",
        str(folder / "workload.json"),
        "--out",
        str(folder / "out"),
    ]
    return [sys.executable, "-m", "batkube", "emulate", *required, *options]


def run_command(kubeconfig: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command_line(kubeconfig, folder, *options), capture_output=True, text=True, check=False, timeout=120
    )


def remaining_objects(kubeconfig: Path) -> list[str]:
    """Return the names of the objects of emulated runs in a cluster."""
    access = ClusterConnection(kubeconfig)
    paths = ("/api/v1/namespaces", "/api/v1/pods", "/apis/batch/v1/jobs", "/apis/scheduling.k8s.io/v1/priorityclasses")
    objects = [each for path in paths for each in access.get(path, labelSelector="batkube.io/emulation")["items"]]
    return [each["metadata"]["name"] for each in objects]


def test_a_run_writes_its_output_files_and_cleans_up_the_cluster(cluster: Served, tmp_path: Path) -> None:
    jobs = [{"run": 30}, {"run": 30, "subtime": 40}, {"run": 60, "walltime": 30}, {"run": 20, "ret": 3}, {"run": 50}]
    write_workload(tmp_path, jobs)

    process = run_command(cluster.kubeconfig, tmp_path, "--speed", str(SPEED), "--quiet")

    assert process.returncode == 0, process.stderr
    results = Results(tmp_path / "out")
    rows = results.jobs.set_index("job_id")
    states = ["SUCCESSFULLY", "SUCCESSFULLY", "WALLTIME_REACHED", "FAILED", "SUCCESSFULLY"]
    assert list(rows["final_state"]) == [f"COMPLETED_{state}" for state in states]
    assert rows.loc["1", "submission_time"] >= 40
    assert (rows["scheduled"].astype(float) <= rows["starting_time"]).all()
    assert (rows["starting_time"] < rows["finish_time"]).all()
    assert (rows[["pulled", "created"]] != "").all(axis=None)
    assert dict(line.split("=") for line in process.stdout.splitlines())["nb_jobs"] == "5"
    assert (results.manifest["result"], results.machine_count) == ("completed", 4)
    assert (len(results.pods), results.metrics.jobs) == (5, 5)
    assert remaining_objects(cluster.kubeconfig) == []


def test_jobs_can_be_submitted_as_job_objects_with_priorities(cluster: Served, tmp_path: Path) -> None:
    write_workload(tmp_path, [{"res": 2, "priority": 10}, {"ret": 1}])

    process = run_command(cluster.kubeconfig, tmp_path, "--speed", str(SPEED), "--kind", "job", "--quiet")

    assert process.returncode == 0, process.stderr
    results = Results(tmp_path / "out")
    assert list(results.jobs["final_state"]) == ["COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED"]
    assert sorted(results.pods["job_id"]) == ["0", "0", "1"]
    assert remaining_objects(cluster.kubeconfig) == []


def test_an_existing_namespace_is_used_and_kept(cluster: Served, tmp_path: Path) -> None:
    write_workload(tmp_path, [{}])

    process = run_command(cluster.kubeconfig, tmp_path, "--speed", str(SPEED), "--namespace", "default", "--quiet")

    assert process.returncode == 0, process.stderr
    assert ClusterConnection(cluster.kubeconfig).exists("/api/v1/namespaces/default")
    assert remaining_objects(cluster.kubeconfig) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_writes_its_observations_and_cleans_up_the_cluster(
    cluster: Served, tmp_path: Path, number: signal.Signals
) -> None:
    write_workload(tmp_path, [{"run": 5}, {"run": 100_000}])
    process = subprocess.Popen(
        command_line(cluster.kubeconfig, tmp_path, "--speed", str(SPEED)), stderr=subprocess.PIPE, text=True
    )
    access, deadline = ClusterConnection(cluster.kubeconfig), time.monotonic() + 60
    selector = {"labelSelector": "batkube.io/emulation", "fieldSelector": "status.phase=Succeeded"}
    while not access.get("/api/v1/pods", **selector)["items"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)

    process.send_signal(number)
    _, message = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "interrupted" in message
    assert Results(tmp_path / "out").manifest["result"] == "failed"
    assert list(Results(tmp_path / "out").jobs["job_id"]) == ["0"]
    assert remaining_objects(cluster.kubeconfig) == []


def test_a_pod_without_a_scheduler_ends_the_run_after_the_patience(cluster: Served, tmp_path: Path) -> None:
    write_workload(tmp_path, [{}])
    options = ("--speed", str(SPEED), "--scheduler-name", "missing", "--patience", "2s")

    process = run_command(cluster.kubeconfig, tmp_path, *options)

    assert process.returncode == 1
    assert "no job has made progress for 2" in process.stderr
    assert "w0!0" in process.stderr
    assert remaining_objects(cluster.kubeconfig) == []


def error_of(kubeconfig: Path, folder: Path, **options: Any) -> str:  # noqa: ANN401 - options of the command
    """Return the error of a command that does not start a run."""
    with pytest.raises(InputError) as caught:
        emulate(kubeconfig=kubeconfig, workload=[folder / "workload.json"], out=folder / "out", **options)
    assert not (folder / "out").exists()
    return str(caught.value)


def test_a_job_larger_than_every_node_is_rejected_before_the_run(cluster: Served, tmp_path: Path) -> None:
    write_workload(tmp_path, [{}, {"cpu": "3"}])

    message = error_of(cluster.kubeconfig, tmp_path)

    assert "job '1': requests cpu 3, which no node of the cluster has (the largest has cpu 1" in message
    assert "--requests cpu=x0.5" in message


def test_jobs_without_requests_need_the_option_requests(cluster: Served, tmp_path: Path) -> None:
    path = write_workload(tmp_path, [{}])
    content = json.loads(path.read_text())
    del content["jobs"][0]["cpu"]
    path.write_text(json.dumps(content))

    assert "--requests cpu=4" in error_of(cluster.kubeconfig, tmp_path)

    emulate(
        kubeconfig=cluster.kubeconfig,
        workload=[path],
        out=tmp_path / "out",
        speed=SPEED,
        requests=["cpu=1"],
        quiet=True,
    )
    assert list(Results(tmp_path / "out").jobs["cpu"]) == [1.0]


def test_an_unreachable_server_is_reported_with_its_address(cluster: Served, tmp_path: Path) -> None:
    write_workload(tmp_path, [{}])
    config = _config(cluster)
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))

    process = run_command(path, tmp_path)

    assert (process.returncode, process.stdout) == (2, "")
    assert "https://127.0.0.1:1 cannot be reached" in process.stderr
    assert "Traceback" not in process.stderr


def test_a_missing_permission_is_reported(tmp_path: Path) -> None:
    write_workload(tmp_path, [{}])
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('root,admin,1,"system:masters"\nweak,alice,2\n')
    with served(tmp_path / "served", "--platform", "1x1", "--token-auth-file", str(tokens)) as cluster:
        config = _config(cluster)
        config["users"][0]["user"]["token"] = "weak"
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))

        assert "its user may not list nodes in the whole cluster" in error_of(path, tmp_path)
        config["users"][0]["user"]["token"] = "wrong"
        path.write_text(yaml.safe_dump(config))
        assert "401" in error_of(path, tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"platform": "3x1"}, "has 3 machines, but the cluster has 4 nodes"),
        ({"namespace": "nowhere"}, "does not exist in the cluster"),
        ({"image": " "}, "--image: is empty"),
        ({"kind": "deployment"}, "one of pod, job"),
        ({"speed": 0}, "must be greater than 0"),
        ({"patience": "soon"}, "'soon' is not a duration"),
        ({"patience": "0"}, "must be longer than 0"),
        ({"context": "other"}, "other"),
        ({"requests": ["cpu"]}, "RESOURCE=QUANTITY"),
    ],
)
def test_invalid_options_are_reported_before_the_run(
    cluster: Served, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    write_workload(tmp_path, [{}])

    assert message in error_of(cluster.kubeconfig, tmp_path, **options)


@pytest.mark.parametrize("missing", ["kubeconfig", "workload", "out"])
def test_a_missing_option_is_reported(tmp_path: Path, missing: str) -> None:
    options: dict[str, Any] = {"kubeconfig": tmp_path / "k", "workload": [tmp_path / "w"], "out": tmp_path / "out"}

    with pytest.raises(InputError, match=f"option --{missing} is missing"):
        emulate(**options | {missing: None})


def test_an_invalid_kubeconfig_is_rejected(tmp_path: Path) -> None:
    write_workload(tmp_path, [{}])
    path = tmp_path / "kubeconfig"
    assert "no such file" in error_of(path, tmp_path)
    path.write_text("just: [text")
    assert "is not a valid kubeconfig" in error_of(path, tmp_path)
    path.write_text("root:x:0:0:root:/:/bin/sh\n")
    assert f"{path}: is not a kubeconfig\n" in error_of(path, tmp_path)


def test_an_invalid_output_folder_is_reported_before_the_cluster_is_contacted(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    with pytest.raises(InputError, match=f"cannot be written: {file} is not a folder"):
        emulate(kubeconfig=tmp_path / "none", workload=[write_workload(tmp_path, [{}])], out=file / "below" / "out")


def test_a_run_fails_when_the_cluster_rejects_every_job(cluster: Served, tmp_path: Path) -> None:
    write_workload(tmp_path, [{}, {}])

    process = run_command(cluster.kubeconfig, tmp_path, "--image", " spaced ")

    assert process.returncode == 1
    assert "no job could be submitted, for example w0!0: the cluster rejected the request" in process.stderr
    results = Results(tmp_path / "out")
    assert list(results.jobs["final_state"]) == ["REJECTED", "REJECTED"]
    assert results.manifest["result"] == "failed"
    (note,) = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert (note["subject"], note["count"]) == ("submission", 2)
    assert "image" in note["example"]
    assert remaining_objects(cluster.kubeconfig) == []


def test_nodes_have_the_order_of_the_platform(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.yaml"
    documents = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"capacity": {"cpu": "1", "pods": "10"}},
        }
        for name in ("zebra", "ant")
    ]
    nodes.write_text(yaml.safe_dump_all(documents))
    write_workload(tmp_path, [{}, {}])
    with served(tmp_path / "served", "--platform", str(nodes), "--speed", str(SPEED)) as cluster:
        process = run_command(cluster.kubeconfig, tmp_path, "--speed", str(SPEED), "--platform", str(nodes), "--quiet")

    assert process.returncode == 0, process.stderr
    results = Results(tmp_path / "out")
    assert results.machine_names == ["zebra", "ant"]
    assert set(zip(results.pods["node"], results.pods["machine"], strict=True)) == {("zebra", "0"), ("ant", "1")}


def _config(cluster: Served) -> Any:  # noqa: ANN401 - any YAML
    return yaml.safe_load(cluster.kubeconfig.read_text())
