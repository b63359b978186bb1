"""`batkube serve`: starts, says how to use it, speaks HTTP and HTTPS, ends cleanly."""

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


class Served:
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
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, json.loads(body) if body.startswith(b"{") else {}

    def authority(self) -> str:
        config = yaml.safe_load((self.folder / "kubeconfig").read_text())
        return base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=20)
        return self.process.returncode, errors


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("serve") / "out", "--platform", "3x4,16Gi")
    yield server
    if server.process.poll() is None:
        server.end()


def test_it_says_in_one_line_how_to_use_it(served: Served) -> None:
    config = served.folder / "kubeconfig"
    assert served.line == f"serving 3 nodes at {served.url}; use it with: export KUBECONFIG={config.resolve()}\n"


def test_the_kubeconfig_is_for_its_owner_alone(served: Served) -> None:
    assert stat.S_IMODE((served.folder / "kubeconfig").stat().st_mode) == 0o600


@pytest.mark.parametrize("tls", [True, False])
def test_one_port_speaks_both_http_and_https(served: Served, tls: bool) -> None:
    status, nodes = served.get("/api/v1/nodes", tls=tls)
    assert status == 200
    assert [node["metadata"]["name"] for node in nodes["items"]] == ["node-0", "node-1", "node-2"]


def test_nobody_gets_in_with_another_token_and_strangers_see_nothing(served: Served) -> None:
    assert served.get("/api/v1/nodes", token="wrong")[0] == 401
    assert served.get("/api/v1/nodes", token="")[0] == 403


def test_a_client_that_connects_and_says_nothing_disturbs_nobody(served: Served) -> None:
    with (
        socket.create_connection(("127.0.0.1", served.port)),
        socket.create_connection(("127.0.0.1", served.port)) as other,
    ):
        other.sendall(b"\x16nonsense")
        assert served.get("/version")[0] == 200


def test_use_of_nodes_is_served(served: Served) -> None:
    status, metrics = served.get("/apis/metrics.k8s.io/v1beta1/nodes")
    assert status == 200
    assert [(one["metadata"]["name"], one["usage"]["cpu"]) for one in metrics["items"]] == [
        ("node-0", "0"),
        ("node-1", "0"),
        ("node-2", "0"),
    ]


def test_the_use_and_the_log_of_a_pod_are_served(served: Served) -> None:
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


def test_what_containers_do_and_use_may_be_said_by_rules(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "- {image: x, duration: forever, cpu: 300m, memory: [[0, 1Gi], [0, 2Gi]]}\n- {image: y, duration: 1}"
    )
    server = Served(tmp_path / "out", "--platform", "1x4,16Gi", "--rules", str(rules))
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


def test_ages_are_those_of_the_clients_clock(served: Served) -> None:
    _, node = served.get("/api/v1/nodes/node-0")
    created = time.mktime(time.strptime(node["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert abs(time.time() - created) < 300


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly_when_asked_to(tmp_path: Path, number: signal.Signals) -> None:
    server = Served(tmp_path / "out", "--bare", "--quiet")
    assert server.line == f"{tmp_path / 'out' / 'kubeconfig'}\n"
    assert server.get("/api/v1/nodes")[1]["items"] == []
    assert server.end(number) == (0, "")


def test_latencies_that_only_a_run_knows_are_noted(tmp_path: Path) -> None:
    latencies = tmp_path / "latencies.yaml"
    latencies.write_text("start: 0.1\nspawn: 0.1\nsystem-pods: [{name: coredns, cpu: 100m}]\n")
    server = Served(tmp_path / "out", "--platform", "1x1", "--latencies", str(latencies))

    server.end()

    (note,) = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert note["example"] == "spawn, system-pods"


def test_users_can_be_given_as_to_kube_apiserver(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('secret,boss,1,"system:masters"\nother,guest,2\n')
    server = Served(tmp_path / "out", "--bare", "--token-auth-file", str(tokens))
    try:
        assert server.token == "secret"
        assert server.get("/api/v1/namespaces", token="other")[0] == 403
    finally:
        server.end()


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A function that runs the command with arguments that make no sense, and returns the message."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["batkube", "serve", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2
        return capsys.readouterr().err

    return run


def test_a_folder_is_replaced_only_when_asked(tmp_path: Path, refused: Callable[..., str]) -> None:
    Served(tmp_path / "out", "--bare").end()
    assert "exists already" in refused("--bare", "--out", str(tmp_path / "out"))
    server = Served(tmp_path / "out", "--bare", "--force")
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
        (["--out", "{out}", "--platform", "2x2", "--scheduler", "policy:magic"], "there is no policy of this name"),
        (["--out", "{out}", "--bare", "--token-auth-file", "{out}/none"], "cannot be read"),
        (["--out", "{out}", "--bare", "--listen", "no.such.host.invalid"], "cannot be listened on"),
        (["--out", "{out}", "--bare", "--port", "{taken}"], "cannot be listened on"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_message(
    tmp_path: Path, refused: Callable[..., str], arguments: list[str], problem: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        values = {"out": str(tmp_path / "out"), "taken": taken.getsockname()[1]}
        errors = refused(*[argument.format(**values) for argument in arguments])
    assert errors.startswith("error: ")
    assert problem in errors
    assert not (tmp_path / "out").exists()
