"""`batkube serve`: start, message, HTTP and HTTPS, shutdown."""

from __future__ import annotations

import base64
import http.client
import json
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from batkube.cli.main import main
from batkube.outputs.measures.run_data.text_table import read_table


class ServeProcess:
    """A running server."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "batkube", "serve", "--out", str(folder), *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        if not self.line:
            pytest.fail(self.process.communicate()[1])
        config = yaml.safe_load((folder / "kubeconfig").read_text())
        self.url: str = config["clusters"][0]["cluster"]["server"]
        self.token: str = config["users"][0]["user"]["token"]
        self.port = int(self.url.rpartition(":")[2])

    def post(self, path: str, value: dict[str, Any]) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(value), headers)
        status = connection.getresponse().status
        connection.close()
        return status

    def text(self, path: str) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        body = connection.getresponse().read().decode()
        connection.close()
        return body

    def get(self, path: str, *, tls: bool = True, token: str | None = None) -> tuple[int, dict[str, Any]]:
        context = ssl.create_default_context(cadata=self.authority()) if tls else None
        connection = (
            http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=context)
            if tls
            else http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        )
        headers = {"Authorization": f"Bearer {token or self.token}"} if token != "" else {}
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, json.loads(body) if body.startswith(b"{") else {}

    def authority(self) -> str:
        config = yaml.safe_load((self.folder / "kubeconfig").read_text())
        return base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=20)
        return self.process.returncode, errors


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    server = ServeProcess(tmp_path_factory.mktemp("serve") / "out", "--platform", "3x4,16Gi")
    yield server
    if server.process.poll() is None:
        server.end()


def test_the_message_contains_the_url_and_the_kubeconfig(served: ServeProcess) -> None:
    config = served.folder / "kubeconfig"
    assert served.line == f"serving 3 nodes at {served.url}; use it with: export KUBECONFIG={config.resolve()}\n"


def test_only_the_owner_can_read_the_kubeconfig(served: ServeProcess) -> None:
    assert stat.S_IMODE((served.folder / "kubeconfig").stat().st_mode) == 0o600


@pytest.mark.parametrize("tls", [True, False])
def test_one_port_serves_http_and_https(served: ServeProcess, tls: bool) -> None:
    status, nodes = served.get("/api/v1/nodes", tls=tls)
    assert status == 200
    assert [node["metadata"]["name"] for node in nodes["items"]] == ["node-0", "node-1", "node-2"]


def test_a_wrong_token_is_unauthorized_and_anonymous_requests_are_forbidden(served: ServeProcess) -> None:
    assert served.get("/api/v1/nodes", token="wrong")[0] == 401
    assert served.get("/api/v1/nodes", token="")[0] == 403


def test_silent_and_invalid_connections_do_not_block_other_clients(served: ServeProcess) -> None:
    with (
        socket.create_connection(("127.0.0.1", served.port)),
        socket.create_connection(("127.0.0.1", served.port)) as other,
    ):
        other.sendall(b"\x16nonsense")
        assert served.get("/version")[0] == 200


def test_metrics_of_nodes_are_served(served: ServeProcess) -> None:
    status, metrics = served.get("/apis/metrics.k8s.io/v1beta1/nodes")
    assert status == 200
    assert [(one["metadata"]["name"], one["usage"]["cpu"]) for one in metrics["items"]] == [
        ("node-0", "0"),
        ("node-1", "0"),
        ("node-2", "0"),
    ]


def test_metrics_and_log_of_a_pod_are_served(served: ServeProcess) -> None:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    pods = "/api/v1/namespaces/default/pods"
    assert served.post(pods, pod) == 201
    deadline = time.monotonic() + 10
    while served.get(f"{pods}/p")[1]["status"]["phase"] != "Running" and time.monotonic() < deadline:
        time.sleep(0.05)
    _, metrics = served.get("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/p")
    assert metrics["containers"] == [{"name": "c", "usage": {"cpu": "250000000n", "memory": "65536Ki"}}]
    assert served.text(f"{pods}/p/log").startswith("batkube: simulated container c (x on node-")
    assert served.text(f"{pods}/p/log?tailLines=0") == ""
    assert served.get(f"{pods}/p/log?container=none")[1]["message"] == "container none is not valid for pod p"
    assert served.get(f"{pods}/p/log?previous=true")[0] == 400


def test_rules_set_duration_and_usage_of_containers(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "- {image: x, duration: forever, cpu: 300m, memory: [[0, 1Gi], [0, 2Gi]]}\n- {image: y, duration: 1}"
    )
    server = ServeProcess(tmp_path / "out", "--platform", "1x4,16Gi", "--rules", str(rules))
    try:
        spec = {"containers": [{"name": "c", "image": "x:1"}], "restartPolicy": "Never"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
        assert server.post("/api/v1/namespaces/default/pods", pod) == 201
        path, deadline = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/p", time.monotonic() + 10
        while server.get(path)[0] != 200 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert server.get(path)[1]["containers"] == [
            {"name": "c", "usage": {"cpu": "300000000n", "memory": "2097152Ki"}}
        ]
    finally:
        assert server.end()[0] == 0
    (note,) = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert (note["subject"], note["example"]) == ("rules", f"{rules}: [1]")


def test_timestamps_are_in_real_time(served: ServeProcess) -> None:
    _, node = served.get("/api/v1/nodes/node-0")
    created = time.mktime(time.strptime(node["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert abs(time.time() - created) < 300


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_server_with_exit_code_0(tmp_path: Path, number: signal.Signals) -> None:
    server = ServeProcess(tmp_path / "out", "--bare", "--quiet")
    assert server.line == f"{tmp_path / 'out' / 'kubeconfig'}\n"
    assert server.get("/api/v1/nodes")[1]["items"] == []
    assert server.end(number) == (0, "")


def test_nodes_csv_has_the_nodes_with_their_times_in_real_time(tmp_path: Path) -> None:
    server = ServeProcess(tmp_path / "out", "--platform", "1x4,16Gi")
    at_start = read_table(tmp_path / "out" / "nodes.csv")
    spot = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "spot"}, "status": {"capacity": {"cpu": "2"}}}
    assert server.post("/api/v1/nodes", spot) == 201

    assert server.end()[0] == 0

    at_end = read_table(tmp_path / "out" / "nodes.csv")
    assert (at_start.columns["node"], at_end.columns["node"]) == (("node-0",), ("node-0", "spot"))
    assert at_end.columns["cpu"] == ("4.000", "2.000")
    since_2000 = time.time() - 946684800
    assert all(abs(since_2000 - float(created)) < 300 for created in at_end.columns["created"])


def test_latencies_that_only_apply_to_runs_are_noted(tmp_path: Path) -> None:
    latencies = tmp_path / "latencies.yaml"
    latencies.write_text("start: 0.1\nspawn: 0.1\nsystem-pods: [{name: coredns, cpu: 100m}]\n")
    server = ServeProcess(tmp_path / "out", "--platform", "1x1", "--latencies", str(latencies))

    server.end()

    (note,) = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert note["example"] == "spawn, system-pods"


def test_users_are_read_from_a_token_file_of_kube_apiserver(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('secret,boss,1,"system:masters"\nother,guest,2\n')
    server = ServeProcess(tmp_path / "out", "--bare", "--token-auth-file", str(tokens))
    try:
        assert server.token == "secret"
        assert server.get("/api/v1/namespaces", token="other")[0] == 403
    finally:
        server.end()


@pytest.fixture
def rejected(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A function that runs the command with invalid arguments, and returns the message."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["batkube", "serve", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2
        return capsys.readouterr().err

    return run


def test_an_existing_folder_is_replaced_only_with_force(tmp_path: Path, rejected: Callable[..., str]) -> None:
    ServeProcess(tmp_path / "out", "--bare").end()
    assert "exists already" in rejected("--bare", "--out", str(tmp_path / "out"))
    server = ServeProcess(tmp_path / "out", "--bare", "--force")
    assert server.end()[0] == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--platform", "2x2"], "the output folder is missing"),
        (["--out", "{out}"], "the platform is missing"),
        (["--out", "{out}", "--platform", "nonsense"], "not a platform"),
        (["--out", "{out}", "--platform", "2x2", "--speed", "0"], "must be greater than 0"),
        (["--out", "{out}", "--platform", "2x2", "--scheduler", "magic"], "is not a scheduler"),
        (["--out", "{out}", "--platform", "2x2", "--controllers", "magic"], "is not a set of controllers"),
        (["--out", "{out}", "--platform", "2x2", "--scheduler", "policy:magic"], "is not a built-in policy"),
        (["--out", "{out}", "--bare", "--token-auth-file", "{out}/none"], "cannot be read"),
        (["--out", "{out}", "--bare", "--listen", "no.such.host.invalid"], "cannot listen on this address"),
        (["--out", "{out}", "--bare", "--port", "{used_port}"], "cannot listen on this address"),
    ],
)
def test_invalid_arguments_are_rejected_with_one_message(
    tmp_path: Path, rejected: Callable[..., str], arguments: list[str], problem: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        values = {"out": str(tmp_path / "out"), "used_port": listener.getsockname()[1]}
        errors = rejected(*[argument.format(**values) for argument in arguments])
    assert errors.startswith("error: ")
    assert problem in errors
    assert not (tmp_path / "out").exists()
