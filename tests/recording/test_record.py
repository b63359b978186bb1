"""A recording of a cluster of `batkube serve` replays to the same pods, order and times."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import batkube
from batkube.cluster.store import KubeObject
from batkube.emulation.client.connection import ApiStatusError, ClusterConnection
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, instant_of
from batkube.recording.log import LOG_FILE, SessionStart, read_log
from batkube.workloads.reader import read_workload
from clients.serving import Served, served

pytest.importorskip("kubernetes", reason="needs the Python client: pip install kubernetes")

PODS = "/api/v1/namespaces/default/pods"
PATIENCE_S = 60.0
SPEED = 2
#: Run times in the cluster's seconds, and cpu: the third pod and later ones wait.
LOAD = ((6, "1500m"), (9, "1500m"), (3, "1"), (5, "500m"), (4, "1"), (2, "2"))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Served]:
    users = tmp_path / "users.csv"
    users.write_text("letmeread,reader,1\n")
    options = ("--platform", "2x2,8Gi", "--speed", str(SPEED), "--scheduler", "policy:first-fit")
    options += ("--token-auth-file", str(users))
    with served(tmp_path / "out", *options) as cluster:
        yield cluster


def reader(cluster: Served, tmp_path: Path) -> Path:
    """Return the kubeconfig of a user with only the permissions that the documentation lists for recording."""
    reference = Path(__file__).parents[2] / "docs" / "reference" / "cli-record.md"
    role = yaml.safe_load(reference.read_text().split("```yaml")[1].split("```")[0])
    group = "rbac.authorization.k8s.io"
    access = ClusterConnection(cluster.kubeconfig)
    access.create(f"/apis/{group}/v1/clusterroles", role)
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role["metadata"]["name"]},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "reader"}],
    }
    access.create(f"/apis/{group}/v1/clusterrolebindings", binding)
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "letmeread"}
    path = tmp_path / "reader.yaml"
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(ApiStatusError):
        create_pod(ClusterConnection(path), "not-allowed", 1, "1")
    return path


def start_recording(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "batkube", "record", *arguments], stderr=subprocess.PIPE, text=True)


def await_session(process: subprocess.Popen[str], trace: Path, sessions: int = 1) -> None:
    """Wait until this number of sessions has started, and the last one watches."""
    deadline = time.monotonic() + PATIENCE_S
    while not ((trace / LOG_FILE).exists() and (trace / LOG_FILE).read_text().count('"begun"') == sessions):
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1.0)


def stop_recording(process: subprocess.Popen[str]) -> str:
    process.terminate()
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    return errors


def create_pod(access: ClusterConnection, name: str, length: int, cpu: str) -> None:
    container = {"name": "main", "image": "private/image", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "annotations": {"batkube.io/duration": str(length)}}
    access.create(PODS, {"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [container]}})


def await_ends(access: ClusterConnection) -> dict[str, KubeObject]:
    limit = time.monotonic() + PATIENCE_S
    while True:
        pods = {pod["metadata"]["name"]: pod for pod in access.get(PODS)["items"]}
        if all(pod["status"]["phase"] == "Succeeded" for pod in pods.values()):
            return pods
        assert time.monotonic() < limit
        time.sleep(0.2)


def stamps_of(pod: KubeObject) -> tuple[float, float, float]:
    """Return the creation, start and end of a pod by its API timestamps, in whole seconds."""
    terminated: dict[str, Any] = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    stamps = (pod["metadata"]["creationTimestamp"], terminated["startedAt"], terminated["finishedAt"])
    first, second, third = (instant_of(stamp) / NANOSECONDS_PER_SECOND for stamp in stamps)
    return first, second, third


def test_a_recorded_cluster_replays_to_the_same_pods_order_and_times(cluster: Served, tmp_path: Path) -> None:
    access, trace = ClusterConnection(cluster.kubeconfig), tmp_path / "trace"
    recording = start_recording("--kubeconfig", str(reader(cluster, tmp_path)), "-o", str(trace))
    await_session(recording, trace)
    for number, (length, cpu) in enumerate(LOAD):
        create_pod(access, f"p{number}", length, cpu)
        time.sleep(0.6)
    pods = await_ends(access)
    stop_recording(recording)

    run = batkube.run(
        workload=trace / "workload.yaml",
        platform=trace / "platform.json",
        scheduler="policy:first-fit",
        out=tmp_path / "r",
    )

    rows = run.jobs.set_index("job_id")
    assert sorted(rows.index) == sorted(pods)
    columns = ["submission_time", "starting_time", "finish_time"]
    replayed = {name: [float(rows.loc[name, column]) for column in columns] for name in pods}
    recorded = {name: stamps_of(pod) for name, pod in pods.items()}
    assert max(start - submission for submission, start, _ in recorded.values()) >= 4, "some pods waited"
    assert sorted(pods, key=lambda name: replayed[name][1]) == sorted(pods, key=lambda name: (recorded[name][1], name))
    # The two clocks differ by a constant. API timestamps are rounded down, which adds an error of up to a second; the
    # replay may differ by another second.
    ahead = [stamp - when for name in pods for stamp, when in zip(recorded[name], replayed[name], strict=True)]
    assert max(ahead) - min(ahead) < 2.0
    for number, (length, _) in enumerate(LOAD):
        assert replayed[f"p{number}"][2] - replayed[f"p{number}"][1] == pytest.approx(length, abs=1.0)


def test_a_resumed_recording_includes_changes_between_the_sessions_and_no_names(
    cluster: Served, tmp_path: Path
) -> None:
    access, trace = ClusterConnection(cluster.kubeconfig), tmp_path / "trace"
    arguments = ("--kubeconfig", str(cluster.kubeconfig), "-o", str(trace), "--hash-names")
    create_pod(access, "plain-before", 1, "1")
    await_ends(access)
    time.sleep(1.5)
    first = start_recording(*arguments)
    await_session(first, trace)
    create_pod(access, "plain-watched", 30, "1")
    time.sleep(1.0)
    notes = stop_recording(first)
    assert "was still running when the recording ended" in notes
    create_pod(access, "plain-between", 3, "1")
    with (trace / LOG_FILE).open("ab") as log:
        log.write(b'{"type":"pod","at":')  # as after a power cut
    await_ends(access)
    second = start_recording(*arguments, "--resume", "--for", "2s")
    _, notes = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 0, notes

    assert "while there was no watch" in notes
    jobs = read_workload(trace / "workload.yaml").jobs
    lengths = [job.profile.duration / NANOSECONDS_PER_SECOND for job in jobs]  # type: ignore[attr-defined]
    # The end of the first, and both times of the second, are timestamps: each may be a second off.
    assert lengths == [pytest.approx(30, abs=2.0), pytest.approx(3, abs=1.0)]
    assert sum(isinstance(line, SessionStart) for line in read_log(trace / LOG_FILE)) == 2
    for file in trace.iterdir():
        text = file.read_text()
        assert not any(word in text for word in ("plain-", "private/image", '"node-0"', "default", "127.0.0.1")), file


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "option --kubeconfig is missing"),
        (["--kubeconfig", "x"], "option --out is missing"),
        (["--kubeconfig", "nowhere", "-o", "t"], "no such file"),
        (["--kubeconfig", "x", "-o", "t", "--for", "soon"], "is not a duration"),
        (["--kubeconfig", "x", "-o", "t", "--for", "0s"], "must be longer than 0"),
        (["--kubeconfig", "x", "-o", "."], "--resume"),
        (["--kubeconfig", "x", "-o", "t", "--resume"], "has no recording to resume"),
    ],
)
def test_a_usage_error_is_reported_without_a_traceback(arguments: list[str], problem: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "batkube", "record", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 2
    assert problem in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())
