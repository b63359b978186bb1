"""Extenders and profiles of the real kube-scheduler: its configuration is applied, and time waits for extenders."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from batkube import InputError, RunFailed
from conftest import Simulate

PROFILES = {"short": {"type": "delay", "delay": 20}}
#: The real delay of the extender; if the clock advanced meanwhile, it would reach the next job.
DELAY_S = 0.02


def _jobs(count: int, **more: object) -> list[dict[str, object]]:
    return [
        {"id": str(number), "subtime": number * 600, "res": 1, "profile": "short", "cpu": "1", **more}
        for number in range(count)
    ]


class Extender(http.server.ThreadingHTTPServer):
    """Accepts only the last node, and responds slowly, in two pieces."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.verbs: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/scheduling"

    def filter(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {
            "NodeNames": arguments["NodeNames"][-1:],
            "FailedNodes": dict.fromkeys(arguments["NodeNames"][:-1], "no"),
        }

    def prioritize(self, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        last = max(arguments["NodeNames"])
        return [{"Host": name, "Score": 10 * (name == last)} for name in arguments["NodeNames"]]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Extender

    def do_POST(self) -> None:
        arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verb = self.path.removeprefix("/scheduling/")
        self.server.verbs.append(verb)
        response = json.dumps(getattr(self.server, verb)(arguments)).encode()
        time.sleep(DELAY_S)
        self.send_response(200)
        self.send_header("Content-Length", str(len(response)))
        self.end_headers()
        self.wfile.write(response[:1])
        self.wfile.flush()
        time.sleep(DELAY_S)
        self.wfile.write(response[1:])

    def log_message(self, format: str, *args: object) -> None:
        pass


COST = "extender.example/cost"


class CheapestNode(Extender):
    """Receives whole nodes (no node cache), rejects nodes without a cost, and prefers low costs."""

    def filter(self, arguments: dict[str, Any]) -> dict[str, Any]:
        costs = {node["metadata"]["name"]: _cost(node) for node in arguments["Nodes"]["items"]}
        fit = [node for node in arguments["Nodes"]["items"] if _cost(node) is not None]
        return {"Nodes": {"items": fit}, "FailedNodes": {name: "no cost" for name, cost in costs.items() if not cost}}

    def prioritize(self, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        nodes = arguments["Nodes"]["items"]
        return [{"Host": node["metadata"]["name"], "Score": 10 - (_cost(node) or 10)} for node in nodes]


def _cost(node: dict[str, Any]) -> int | None:
    text = node["metadata"].get("annotations", {}).get(COST)
    return None if text is None else int(text)


@contextmanager
def serving(server: Extender) -> Iterator[None]:
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.fixture
def extender() -> Iterator[Extender]:
    server = Extender()
    with serving(server):
        yield server


Configure = Callable[[str], Path]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Return a function that writes a KubeSchedulerConfiguration."""

    def write(text: str) -> Path:
        path = tmp_path / "scheduler.yaml"
        path.write_text(f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{text}")
        return path

    return write


def test_time_does_not_advance_while_an_extender_works(
    simulate: Simulate, kube_scheduler: str, configure: Configure, extender: Extender, tmp_path: Path
) -> None:
    """If the clock advanced, the request would exceed its timeout of 100 ms (of virtual time)."""
    configuration = configure(
        f"extenders: [{{urlPrefix: '{extender.url}', filterVerb: filter, prioritizeVerb: prioritize, weight: 1,\n"
        "  nodeCacheCapable: true, httpTimeout: 100ms}]\n"
    )
    runs = [
        simulate(
            _jobs(3),
            PROFILES,
            platform="4x1",
            scheduler=kube_scheduler,
            scheduler_config=configuration,
            out=tmp_path / name,
        )
        for name in "ab"
    ]
    assert extender.verbs == ["filter"] * 6
    assert list(runs[0].jobs["waiting_time"]) == [0, 0, 0]
    assert set(runs[0].pods["attempts"]) == {1}
    assert len(set(runs[0].pods["node"])) == 1
    assert runs[0].manifest["digest"] == runs[1].manifest["digest"]
    assert json.loads((runs[0].path / "fidelity.json").read_text()) == []


def test_an_extender_can_filter_and_score_by_annotations_of_nodes(
    simulate: Simulate, kube_scheduler: str, configure: Configure, tmp_path: Path
) -> None:
    """By free capacity, kube-scheduler itself would choose `unknown` first, then `dear`."""
    nodes = [("dear", "4", "9"), ("cheap", "1", "2"), ("middle", "1", "5"), ("unknown", "8", None)]
    manifests = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "annotations": {} if cost is None else {COST: cost}},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi"}},
        }
        for name, cpu, cost in nodes
    ]
    platform = tmp_path / "nodes.yaml"
    platform.write_text(yaml.safe_dump_all(manifests))
    # Three jobs at once, and one when all nodes are free again.
    jobs = [{**job, "subtime": at} for job, at in zip(_jobs(4), (0, 0, 0, 600), strict=True)]
    server = CheapestNode()
    with serving(server):
        configuration = configure(
            f"extenders: [{{urlPrefix: '{server.url}', filterVerb: filter, prioritizeVerb: prioritize, weight: 100}}]\n"
        )
        runs = [
            simulate(
                jobs,
                PROFILES,
                platform=platform,
                scheduler=kube_scheduler,
                scheduler_config=configuration,
                out=tmp_path / name,
            )
            for name in "ab"
        ]

    pods = runs[0].pods.sort_values(["scheduled", "pod"])
    assert sorted(pods["node"][:3]) == ["cheap", "dear", "middle"]
    assert pods["node"].iloc[3] == "cheap"
    assert list(runs[0].jobs["waiting_time"]) == [0] * 4
    assert {"filter", "prioritize"} == set(server.verbs)
    assert runs[0].manifest["digest"] == runs[1].manifest["digest"]
    assert runs[0].notes == []


def test_an_unreachable_extender_fails_the_attempt_unless_it_is_ignorable(
    simulate: Simulate, kube_scheduler: str, configure: Configure
) -> None:
    text = (
        "extenders: [{urlPrefix: 'http://127.0.0.1:9', filterVerb: filter, nodeCacheCapable: true, ignorable: IGNORE}]"
    )
    ignored = configure(text.replace("IGNORE", "true"))
    run = simulate(_jobs(1), PROFILES, scheduler=kube_scheduler, scheduler_config=ignored)
    assert list(run.jobs["waiting_time"]) == [0]

    needed = configure(text.replace("IGNORE", "false"))
    with pytest.raises(RunFailed, match="left 1 of 1 jobs without an outcome"):
        simulate(_jobs(1), PROFILES, scheduler=kube_scheduler, scheduler_config=needed, patience="1m")


def test_an_extender_with_direct_connections_is_noted(
    simulate: Simulate, kube_scheduler: str, configure: Configure
) -> None:
    """TLS connections cannot be made on behalf of the scheduler."""
    configuration = configure(
        "extenders: [{urlPrefix: 'https://127.0.0.1:9', enableHTTPS: true, filterVerb: filter,\n"
        "  nodeCacheCapable: true, ignorable: true}]\n"
    )
    run = simulate(_jobs(1), PROFILES, scheduler=kube_scheduler, scheduler_config=configuration)
    (note,) = json.loads((run.path / "fidelity.json").read_text())
    assert "connected to other servers than the run's" in note["message"]
    assert note["example"] == kube_scheduler


def test_an_extender_cannot_bind(simulate: Simulate, kube_scheduler: str, configure: Configure) -> None:
    binding = configure("extenders: [{urlPrefix: 'http://127.0.0.1:9', bindVerb: bind}]")
    with pytest.raises(InputError, match=r"extenders\[0\].bindVerb: an extender cannot bind"):
        simulate(_jobs(1), PROFILES, scheduler=kube_scheduler, scheduler_config=binding)


def test_each_profile_of_a_scheduler_has_its_own_weights(
    simulate: Simulate, kube_scheduler: str, configure: Configure
) -> None:
    """One packs, the other spreads; a job names its profile."""
    configuration = configure(
        "profiles:\n"
        "- schedulerName: spreads\n"
        "- schedulerName: packs\n"
        "  pluginConfig:\n"
        "  - name: NodeResourcesFit\n"
        "    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}\n"
        "  plugins:\n"
        "    score:\n"
        "      disabled: [{name: '*'}]\n"
        "      enabled: [{name: NodeResourcesFit, weight: 5}]\n"
    )
    node_counts = {}
    for name in ("spreads", "packs", ""):
        jobs = [{**job, "subtime": 0} for job in _jobs(4, **({"scheduler": name} if name else {}))]
        run = simulate(jobs, PROFILES, platform="4x4", scheduler=kube_scheduler, scheduler_config=configuration)
        node_counts[name] = len(set(run.pods["node"]))
        assert run.manifest["programs"][0]["serves"] == ["spreads", "packs"]
    assert node_counts == {"spreads": 4, "packs": 1, "": 4}
