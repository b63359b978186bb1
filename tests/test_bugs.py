"""Bugs of Batkube are never silent: whichever layer fails, `run`, `experiment` and `serve` report its context.

Each test injects an error into one layer, at a point that only the Job `work` reaches.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import http.client
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from tests.commands import WORKLOAD, command, run_in_process

import batkube
from batkube.api.verbs.kinds.object_encoding import ObjectEncoder
from batkube.api.verbs.storage.watches import Watch, WatchHub
from batkube.cluster.nodes.resource_usage import ResourceUsage
from batkube.controllers.batch.jobs import JobController
from batkube.controllers.framework.owner_index import OwnerIndex
from batkube.execution.containers.runtime import ContainerRuntime
from batkube.execution.kubelet.kubelets import Kubelets
from batkube.experiments.running.worker_pool import InlineExecutor
from batkube.kernel.errors import Bug, InputError, as_bug
from batkube.platforms.reader import read_platform
from batkube.serving.service import Address, ServeOptions, serve
from batkube.simulation.run_record import RunRecord

JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "work", "namespace": "default"},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "c", "image": "i", "command": ["sleep", "1"]}],
            }
        }
    },
}
INJECTED = "RuntimeError: injected"


class Fault(NamedTuple):
    """The method that fails, a condition on its arguments, and a part of the report."""

    owner: Any
    method: str
    applies: Callable[..., bool]
    context: str
    error: type[Exception] = RuntimeError


def always(*_: object) -> bool:
    return True


FAULTS = {
    "listener": Fault(
        OwnerIndex,
        "_on_objects_changed",
        lambda batch, _: batch.kind == "pods",
        "while subscribers were notified: pods default/work-",
    ),
    "controller": Fault(JobController, "reconcile", always, "while an appointment was executed: "),
    "kubelet": Fault(ContainerRuntime, "on_admitted", always, "while an appointment was executed: "),
    "appointment": Fault(ContainerRuntime, "_finish_pod", always, "(rank FINISH)"),
    "encoder": Fault(
        ObjectEncoder,
        "encode_object",
        lambda value, _: value["metadata"].get("name") == "work",
        "while handling the request: ",
    ),
    "watch": Fault(
        WatchHub,
        "_on_changes",
        lambda batch, _: batch.kind == "pods",
        "while subscribers were notified: pods default/work-",
    ),
}


@pytest.fixture(params=FAULTS)
def context(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Inject an error into one layer, and return the expected part of the report."""
    fault = FAULTS[request.param]
    inject(fault, monkeypatch)
    # Objects are checked by a dry run before the run; an error there would have no outputs.
    monkeypatch.setattr("batkube.simulation.preparation.inputs.check_objects", lambda *_: None)
    return fault.context


def inject(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    method = getattr(fault.owner, fault.method)

    def failing(self: object, *arguments: object) -> object:
        if fault.applies(*arguments):
            raise fault.error("injected")
        return method(self, *arguments)

    monkeypatch.setattr(fault.owner, fault.method, failing)


def scenario(folder: Path) -> dict[str, str]:
    (folder / "work.yaml").write_text(yaml.safe_dump(JOB))
    return {"workload": str(folder / "work.yaml"), "platform": "2x4,16Gi"}


def assert_outputs_kept(folder: Path, context: str, error: str = INJECTED) -> None:
    """Assert that the outputs so far are written, with the result `failed`."""
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["result"] == "failed"
    assert manifest["failure"].startswith(f"a bug in Batkube: {error}\n")
    assert context in manifest["failure"]
    assert " of virtual time" in manifest["failure"]
    assert (folder / "bug.txt").read_text().startswith("Traceback")
    assert "in failing" in (folder / "bug.txt").read_text()
    with (folder / "schedule.csv").open() as file:
        assert [row["nb_jobs_finished"] for row in csv.DictReader(file)] == ["0"]


@pytest.mark.parametrize("scheduler", ["policy:fcfs", "kube-scheduler"])
def test_a_run_reports_a_bug_with_its_context_and_keeps_its_outputs(
    context: str, scheduler: str, kube_scheduler: str, tmp_path: Path
) -> None:
    options = [text for name, value in scenario(tmp_path).items() for text in (f"--{name}", value)]
    if scheduler == "kube-scheduler":
        scheduler = kube_scheduler

    result = run_in_process(tmp_path, "run", *options, "--scheduler", scheduler, "--out", "out", "--quiet")

    assert result.returncode == 1
    traceback, _, message = result.stderr.rpartition("failed: ")
    assert message.startswith(f"a bug in Batkube: {INJECTED}\n")
    assert context in message
    assert "what was computed until then is in out" in message
    assert traceback.count("Traceback") == 1
    assert_outputs_kept(tmp_path / "out", context)


#: Errors that are not bugs while inputs are read or outputs are written.
INPUT_AND_OUTPUT_ERRORS = [RecursionError, OSError]


@pytest.mark.parametrize("error", INPUT_AND_OUTPUT_ERRORS)
@pytest.mark.parametrize("layer", FAULTS)
def test_recursion_and_os_errors_outside_of_input_and_output_are_bugs(
    error: type[Exception], layer: str, kube_scheduler: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inject(FAULTS[layer]._replace(error=error), monkeypatch)
    monkeypatch.setattr("batkube.simulation.preparation.inputs.check_objects", lambda *_: None)

    with pytest.raises(Bug) as caught:
        batkube.run(**scenario(tmp_path), scheduler=kube_scheduler, out=tmp_path / "out")

    assert f"a bug in Batkube: {error.__name__}: injected" in str(caught.value)
    assert FAULTS[layer].context in str(caught.value)
    assert_outputs_kept(tmp_path / "out", FAULTS[layer].context, f"{error.__name__}: injected")


@pytest.mark.parametrize("time", ["exact", "paced"])
def test_an_os_error_while_handling_a_request_is_a_bug(
    time: str, kube_scheduler: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "trace.json").write_text(json.dumps(WORKLOAD))
    inject(Fault(Kubelets, "admit", always, "", BlockingIOError), monkeypatch)

    with pytest.raises(Bug, match="while handling the request: POST /api/v1/namespaces/default/"):
        batkube.run(
            workload=tmp_path / "trace.json", platform="2x1", scheduler=kube_scheduler, time=time, out=tmp_path / "out"
        )


def test_a_full_disk_is_never_a_bug(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ContainerRuntime, "on_admitted", full)
    monkeypatch.setattr("batkube.simulation.preparation.inputs.check_objects", lambda *_: None)

    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        batkube.run(**scenario(tmp_path), out=tmp_path / "out")


#: Methods that write outputs, and a file that is written before.
WRITERS = {
    "the invariant of the utilisation": (ResourceUsage, "utilisation", "jobs.csv"),
    "the machines of the manifest": (RunRecord, "_machines", "fidelity.json"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_outputs_written_before_a_bug_are_kept(writer: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    owner, method, earlier_file = WRITERS[writer]
    inject(Fault(owner, method, always, ""), monkeypatch)

    with pytest.raises(Bug, match="what was computed until then is in"):
        batkube.run(**scenario(tmp_path), out=tmp_path / "out")

    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["result"] == "failed"
    assert manifest["failure"] == f"a bug in Batkube: {INJECTED}\n  while outputs were written"
    assert {earlier_file, "bug.txt", "journal.jsonl", "pods.csv"} <= manifest["files"].keys()
    assert "in failing" in (tmp_path / "out" / "bug.txt").read_text()
    assert batkube.Results(tmp_path / "out").jobs["job_id"].tolist() == ["work"]


def test_a_bug_of_the_run_is_reported_even_if_a_second_one_prevents_outputs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inject(FAULTS["kubelet"], monkeypatch)
    inject(Fault(ResourceUsage, "utilisation", always, "", ZeroDivisionError), monkeypatch)
    monkeypatch.setattr("batkube.simulation.preparation.inputs.check_objects", lambda *_: None)

    with pytest.raises(Bug, match=INJECTED):
        batkube.run(**scenario(tmp_path), out=tmp_path / "out")

    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["failure"].startswith(f"a bug in Batkube: {INJECTED}\n")


def test_an_experiment_reports_the_failed_run_and_executes_the_others(context: str, tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(json.dumps(WORKLOAD))
    base = scenario(tmp_path)
    workloads = {"trace": str(tmp_path / "trace.json"), "work": base.pop("workload")}

    results = batkube.experiment(
        {"base": base, "axes": {"workload": {"key": "workload", "values": workloads}}},
        tmp_path / "out",
        executor=InlineExecutor(),
    )

    [failure] = results.failures.values()
    assert context in failure
    assert sorted(results.results["state"]) == ["done", "failed"]
    [folder] = (path.parent for path in (tmp_path / "out").glob("runs/*/bug.txt"))
    assert_outputs_kept(folder, context)


class Client(threading.Thread):
    """Creates the Job, and stops a server that has not exited after `patience_s`."""

    def __init__(self, address: Address, path: str = "", *, patience_s: float = 20.0) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._path = path
        self._patience_s = patience_s
        self.statuses: list[int] = []
        self.has_ended = threading.Event()
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            self._send("POST", "/apis/batch/v1/namespaces/default/jobs", json.dumps(JOB))
            if self._path:
                self._send("GET", self._path)
        if not self.has_ended.wait(self._patience_s):
            os.kill(os.getpid(), signal.SIGTERM)

    def _send(self, method: str, path: str, body: str | None = None) -> None:
        host = self._address.url.removeprefix("https://")
        connection = http.client.HTTPConnection(host, timeout=self._patience_s)
        headers = {"Authorization": f"Bearer {self._address.token}", "Content-Type": "application/json"}
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            with connection.getresponse() as response:
                self.statuses.append(response.status)
                response.read()


def serve_until_exit(folder: Path, path: str = "", *, keep_going: bool = False, patience_s: float = 20.0) -> Client:
    """Serve a cluster at a speed of 100 until the server exits, and return the client that used it."""
    clients: list[Client] = []
    service = ServeOptions(platform=read_platform("2x4,16Gi"), out=folder, speed=100, keep_going=keep_going)
    try:
        serve(service, lambda address: clients.append(Client(address, path, patience_s=patience_s)))
    finally:
        clients[0].has_ended.set()
        clients[0].join()
    return clients[0]


def test_a_server_reports_a_bug_with_its_context(context: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="injected") as caught:
        serve_until_exit(tmp_path / "out")

    assert context in str(as_bug(caught.value))


def test_a_server_exits_when_a_watch_stream_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inject(Fault(Watch, "resume", always, ""), monkeypatch)

    with pytest.raises(RuntimeError, match="injected"):
        serve_until_exit(tmp_path / "out", "/api/v1/pods?watch=true")


def test_with_keep_going_a_server_logs_and_notes_the_bug(
    context: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = serve_until_exit(tmp_path / "out", "/version", keep_going=True, patience_s=1.0)

    assert client.statuses == [500 if "request" in context else 201, 200]
    [note] = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert note["subject"] == "bug"
    assert context in note["example"]
    assert INJECTED in capsys.readouterr().err


def test_the_command_serve_prints_one_message_and_exits_with_1(tmp_path: Path) -> None:
    program = (
        "import batkube.execution.kubelet.kubelets as it\n"
        "def fail(*_): raise RuntimeError('injected')\n"
        "it.Kubelets.admit = it.Kubelets._on_pods_changed = fail"
    )
    line = command("serve", "--platform", "1x1", "--out", "out", "--quiet", program=program)
    with subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        cluster = yaml.safe_load((tmp_path / "out" / "kubeconfig").read_text())
        url = cluster["clusters"][0]["cluster"]["server"]
        client = Client(Address(url, tmp_path, cluster["users"][0]["user"]["token"]))
        client.has_ended.set()
        _, errors = process.communicate(timeout=30)

    assert process.returncode == 1
    assert f"\nfailed: a bug in Batkube: {INJECTED}\n  while subscribers were notified: pods default/work-" in errors
