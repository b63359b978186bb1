"""`batkube emulate` over real HTTP, on clusters that `batkube serve` makes up."""

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
    """Four nodes of one cpu whose clock runs twenty times as fast as ours."""
    with served(tmp_path_factory.mktemp("fast") / "out", "--platform", "4x1,4Gi", "--speed", str(SPEED)) as running:
        yield running


def written(folder: Path, jobs: Sequence[Mapping[str, object]]) -> Path:
    """Write a workload; `run` is how long a job takes, `ret` its exit code."""
    profiles, rows = {}, []
    for number, job in enumerate(jobs):
        profile = {"type": "delay", "delay": job.get("run", 10), "ret": job.get("ret", 0)}
        profiles[f"p{number}"] = profile
        more = {key: value for key, value in job.items() if key not in ("run", "ret")}
        rows.append({"id": str(number), "subtime": 0, "res": 1, "profile": f"p{number}", "cpu": "1", **more})
    path = folder / "workload.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": rows, "profiles": profiles}))
    return path


def command(kubeconfig: Path, folder: Path, *options: str) -> list[str]:
    usual = ["--kubeconfig", str(kubeconfig), "--workload", str(folder / "workload.json"), "--out", str(folder / "out")]
    return [sys.executable, "-m", "batkube", "emulate", *usual, *options]


def emulated(kubeconfig: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(kubeconfig, folder, *options), capture_output=True, text=True, check=False, timeout=120
    )


def leftovers(kubeconfig: Path) -> list[str]:
    """Return the names of everything of ours that a cluster still holds."""
    access = ClusterConnection(kubeconfig)
    paths = ("/api/v1/namespaces", "/api/v1/pods", "/apis/batch/v1/jobs", "/apis/scheduling.k8s.io/v1/priorityclasses")
    found = [each for path in paths for each in access.get(path, labelSelector="batkube.io/emulation")["items"]]
    return [each["metadata"]["name"] for each in found]


def test_a_workload_is_played_and_leaves_the_files_of_a_run_and_nothing_in_the_cluster(
    cluster: Served, tmp_path: Path
) -> None:
    jobs = [{"run": 30}, {"run": 30, "subtime": 40}, {"run": 60, "walltime": 30}, {"run": 20, "ret": 3}, {"run": 50}]
    written(tmp_path, jobs)

    done = emulated(cluster.kubeconfig, tmp_path, "--speed", str(SPEED), "--quiet")

    assert done.returncode == 0, done.stderr
    results = Results(tmp_path / "out")
    rows = results.jobs.set_index("job_id")
    states = ["SUCCESSFULLY", "SUCCESSFULLY", "WALLTIME_REACHED", "FAILED", "SUCCESSFULLY"]
    assert list(rows["final_state"]) == [f"COMPLETED_{state}" for state in states]
    assert rows.loc["1", "submission_time"] >= 40
    assert (rows["scheduled"].astype(float) <= rows["starting_time"]).all()
    assert (rows["starting_time"] < rows["finish_time"]).all()
    assert (rows[["pulled", "created"]] != "").all(axis=None)
    assert dict(line.split("=") for line in done.stdout.splitlines())["nb_jobs"] == "5"
    assert (results.manifest["result"], results.machine_count) == ("completed", 4)
    assert (len(results.pods), results.metrics.jobs) == (5, 5)
    assert leftovers(cluster.kubeconfig) == []


def test_jobs_may_become_job_objects_with_priorities(cluster: Served, tmp_path: Path) -> None:
    written(tmp_path, [{"res": 2, "priority": 10}, {"ret": 1}])

    done = emulated(cluster.kubeconfig, tmp_path, "--speed", str(SPEED), "--kind", "job", "--quiet")

    assert done.returncode == 0, done.stderr
    results = Results(tmp_path / "out")
    assert list(results.jobs["final_state"]) == ["COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED"]
    assert sorted(results.pods["job_id"]) == ["0", "0", "1"]
    assert leftovers(cluster.kubeconfig) == []


def test_a_given_namespace_is_used_and_kept(cluster: Served, tmp_path: Path) -> None:
    written(tmp_path, [{}])

    done = emulated(cluster.kubeconfig, tmp_path, "--speed", str(SPEED), "--namespace", "default", "--quiet")

    assert done.returncode == 0, done.stderr
    assert ClusterConnection(cluster.kubeconfig).exists("/api/v1/namespaces/default")
    assert leftovers(cluster.kubeconfig) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_it_saw_and_clears_the_cluster(
    cluster: Served, tmp_path: Path, number: signal.Signals
) -> None:
    written(tmp_path, [{"run": 5}, {"run": 100_000}])
    process = subprocess.Popen(
        command(cluster.kubeconfig, tmp_path, "--speed", str(SPEED)), stderr=subprocess.PIPE, text=True
    )
    access, end = ClusterConnection(cluster.kubeconfig), time.monotonic() + 60
    selector = {"labelSelector": "batkube.io/emulation", "fieldSelector": "status.phase=Succeeded"}
    while not access.get("/api/v1/pods", **selector)["items"]:
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(0.5)

    process.send_signal(number)
    _, told = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "interrupted" in told
    assert Results(tmp_path / "out").manifest["result"] == "failed"
    assert list(Results(tmp_path / "out").jobs["job_id"]) == ["0"]
    assert leftovers(cluster.kubeconfig) == []


def test_a_pod_that_nobody_places_ends_the_run_with_the_reason(cluster: Served, tmp_path: Path) -> None:
    written(tmp_path, [{}])
    options = ("--speed", str(SPEED), "--scheduler-name", "nobody", "--patience", "2s")

    done = emulated(cluster.kubeconfig, tmp_path, *options)

    assert done.returncode == 1
    assert "nothing has happened for 2" in done.stderr
    assert "w0!0" in done.stderr
    assert leftovers(cluster.kubeconfig) == []


def refused(kubeconfig: Path, folder: Path, **options: Any) -> str:  # noqa: ANN401 - of the command
    """Return what the command says when it will not even begin."""
    with pytest.raises(InputError) as caught:
        emulate(kubeconfig=kubeconfig, workload=[folder / "workload.json"], out=folder / "out", **options)
    assert not (folder / "out").exists()
    return str(caught.value)


def test_a_job_that_no_node_can_hold_is_refused_before_anything_is_made(cluster: Served, tmp_path: Path) -> None:
    written(tmp_path, [{}, {"cpu": "3"}])

    told = refused(cluster.kubeconfig, tmp_path)

    assert "job '1': requests cpu 3, which no node of the cluster has (the largest has cpu 1" in told
    assert "--requests cpu=x0.5" in told


def test_jobs_without_requests_are_refused_until_somebody_says_what_they_take(cluster: Served, tmp_path: Path) -> None:
    path = written(tmp_path, [{}])
    content = json.loads(path.read_text())
    del content["jobs"][0]["cpu"]
    path.write_text(json.dumps(content))

    assert "--requests cpu=4" in refused(cluster.kubeconfig, tmp_path)

    emulate(
        kubeconfig=cluster.kubeconfig,
        workload=[path],
        out=tmp_path / "out",
        speed=SPEED,
        requests=["cpu=1"],
        quiet=True,
    )
    assert list(Results(tmp_path / "out").jobs["cpu"]) == [1.0]


def test_a_server_that_is_not_there_is_told_by_its_address(cluster: Served, tmp_path: Path) -> None:
    written(tmp_path, [{}])
    config = _config(cluster)
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))

    done = emulated(path, tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert "https://127.0.0.1:1 cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_user_without_rights_is_told_which_one_is_missing(tmp_path: Path) -> None:
    written(tmp_path, [{}])
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('root,admin,1,"system:masters"\nweak,alice,2\n')
    with served(tmp_path / "served", "--platform", "1x1", "--token-auth-file", str(tokens)) as cluster:
        config = _config(cluster)
        config["users"][0]["user"]["token"] = "weak"
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))

        assert "its user may not list nodes in the whole cluster" in refused(path, tmp_path)
        config["users"][0]["user"]["token"] = "wrong"
        path.write_text(yaml.safe_dump(config))
        assert "401" in refused(path, tmp_path)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"platform": "3x1"}, "has 3 machines, which are not the 4 nodes"),
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
def test_wrong_options_are_told_before_anything_is_made(
    cluster: Served, tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    written(tmp_path, [{}])

    assert told in refused(cluster.kubeconfig, tmp_path, **options)


@pytest.mark.parametrize("missing", ["kubeconfig", "workload", "out"])
def test_what_is_missing_is_asked_for(tmp_path: Path, missing: str) -> None:
    given: dict[str, Any] = {"kubeconfig": tmp_path / "k", "workload": [tmp_path / "w"], "out": tmp_path / "out"}

    with pytest.raises(InputError, match=f"option --{missing} is missing"):
        emulate(**given | {missing: None})


def test_what_is_no_kubeconfig_is_refused(tmp_path: Path) -> None:
    written(tmp_path, [{}])
    path = tmp_path / "kubeconfig"
    assert "no such file" in refused(path, tmp_path)
    path.write_text("just: [text")
    assert "is not a kubeconfig that can be used" in refused(path, tmp_path)
    path.write_text("root:x:0:0:root:/:/bin/sh\n")
    assert f"{path}: is not a kubeconfig\n" in refused(path, tmp_path)


def test_an_output_folder_that_cannot_be_is_refused_before_the_cluster_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    with pytest.raises(InputError, match=f"cannot be written: {file} is not a folder"):
        emulate(kubeconfig=tmp_path / "none", workload=[written(tmp_path, [{}])], out=file / "below" / "out")


def test_a_run_of_which_the_cluster_takes_no_job_fails_and_says_why(cluster: Served, tmp_path: Path) -> None:
    written(tmp_path, [{}, {}])

    done = emulated(cluster.kubeconfig, tmp_path, "--image", " spaced ")

    assert done.returncode == 1
    assert "no job could be submitted, such as w0!0: the cluster refused it" in done.stderr
    results = Results(tmp_path / "out")
    assert list(results.jobs["final_state"]) == ["REJECTED", "REJECTED"]
    assert results.manifest["result"] == "failed"
    (note,) = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert (note["subject"], note["count"]) == ("submission", 2)
    assert "image" in note["example"]
    assert leftovers(cluster.kubeconfig) == []


def test_nodes_are_numbered_as_in_the_platform(tmp_path: Path) -> None:
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
    written(tmp_path, [{}, {}])
    with served(tmp_path / "served", "--platform", str(nodes), "--speed", str(SPEED)) as cluster:
        done = emulated(cluster.kubeconfig, tmp_path, "--speed", str(SPEED), "--platform", str(nodes), "--quiet")

    assert done.returncode == 0, done.stderr
    results = Results(tmp_path / "out")
    assert results.machine_names == ["zebra", "ant"]
    assert set(zip(results.pods["node"], results.pods["machine"], strict=True)) == {("zebra", "0"), ("ant", "1")}


def _config(cluster: Served) -> Any:  # noqa: ANN401 - any YAML
    return yaml.safe_load(cluster.kubeconfig.read_text())
