"""Extenders and profiles of the real kube-scheduler: its configuration reaches it, and time waits for extenders."""

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
#: How long, in real time, our extender thinks; a clock that went on meanwhile would be at the next job by then.
THINKING_S = 0.02


def _jobs(count: int, **more: object) -> list[dict[str, object]]:
    return [
        {"id": str(number), "subtime": number * 600, "res": 1, "profile": "short", "cpu": "1", **more}
        for number in range(count)
    ]


class Extender(http.server.ThreadingHTTPServer):
    """Lets pods run on the last node only, and answers in two pieces, slowly."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/scheduling"

    def filter(self, question: dict[str, Any]) -> dict[str, Any]:
        return {"NodeNames": question["NodeNames"][-1:], "FailedNodes": dict.fromkeys(question["NodeNames"][:-1], "no")}

    def prioritize(self, question: dict[str, Any]) -> list[dict[str, Any]]:
        last = max(question["NodeNames"])
        return [{"Host": name, "Score": 10 * (name == last)} for name in question["NodeNames"]]


class _Answering(http.server.BaseHTTPRequestHandler):
    server: Extender

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verb = self.path.removeprefix("/scheduling/")
        self.server.asked.append(verb)
        answer = json.dumps(getattr(self.server, verb)(question)).encode()
        time.sleep(THINKING_S)
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer[:1])
        self.wfile.flush()
        time.sleep(THINKING_S)
        self.wfile.write(answer[1:])

    def log_message(self, format: str, *args: object) -> None:
        pass


COST = "extender.example/cost"


class CheapestNode(Extender):
    """Gets whole nodes, as one does that keeps none itself; refuses those without a cost, and prefers low ones."""

    def filter(self, question: dict[str, Any]) -> dict[str, Any]:
        costs = {node["metadata"]["name"]: _cost(node) for node in question["Nodes"]["items"]}
        fit = [node for node in question["Nodes"]["items"] if _cost(node) is not None]
        return {"Nodes": {"items": fit}, "FailedNodes": {name: "no cost" for name, cost in costs.items() if not cost}}

    def prioritize(self, question: dict[str, Any]) -> list[dict[str, Any]]:
        nodes = question["Nodes"]["items"]
        return [{"Host": node["metadata"]["name"], "Score": 10 - (_cost(node) or 10)} for node in nodes]


def _cost(node: dict[str, Any]) -> int | None:
    text = node["metadata"].get("annotations", {}).get(COST)
    return None if text is None else int(text)


@contextmanager
def answering(server: Extender) -> Iterator[None]:
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.fixture
def extender() -> Iterator[Extender]:
    server = Extender()
    with answering(server):
        yield server


Configure = Callable[[str], Path]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """A function that writes a KubeSchedulerConfiguration."""

    def write(text: str) -> Path:
        path = tmp_path / "scheduler.yaml"
        path.write_text(f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{text}")
        return path

    return write


def test_time_stands_still_while_an_extender_thinks(
    simulate: Simulate, kube_scheduler: str, configure: Configure, extender: Extender, tmp_path: Path
) -> None:
    """It would be out of its 100 ms (of virtual time) if the clock went on; and nothing of it is left to chance."""
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
    assert extender.asked == ["filter"] * 6
    assert list(runs[0].jobs["waiting_time"]) == [0, 0, 0]
    assert set(runs[0].pods["attempts"]) == {1}
    assert len(set(runs[0].pods["node"])) == 1
    assert runs[0].manifest["digest"] == runs[1].manifest["digest"]
    assert json.loads((runs[0].path / "fidelity.json").read_text()) == []


def test_an_extender_decides_by_the_annotations_of_nodes(
    simulate: Simulate, kube_scheduler: str, configure: Configure, tmp_path: Path
) -> None:
    """kube-scheduler itself would choose by room: first `unknown`, then `dear`."""
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
    # Three at once, and one when all nodes are free again.
    jobs = [{**job, "subtime": at} for job, at in zip(_jobs(4), (0, 0, 0, 600), strict=True)]
    server = CheapestNode()
    with answering(server):
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

    placed = runs[0].pods.sort_values(["scheduled", "pod"])
    assert sorted(placed["node"][:3]) == ["cheap", "dear", "middle"]
    assert placed["node"].iloc[3] == "cheap"
    assert list(runs[0].jobs["waiting_time"]) == [0] * 4
    assert {"filter", "prioritize"} == set(server.asked)
    assert runs[0].manifest["digest"] == runs[1].manifest["digest"]
    assert runs[0].notes == []


def test_an_extender_that_is_not_there_fails_the_attempt_unless_it_may_be_ignored(
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


def test_who_is_asked_directly_is_a_fidelity_note(
    simulate: Simulate, kube_scheduler: str, configure: Configure
) -> None:
    """Over TLS nobody can ask in the scheduler's place."""
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


def test_profiles_of_one_program_place_pods_each_by_its_own_weights(
    simulate: Simulate, kube_scheduler: str, configure: Configure
) -> None:
    """One packs, the other spreads; a job takes the profile whose name it gives."""
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
    used = {}
    for name in ("spreads", "packs", ""):
        jobs = [{**job, "subtime": 0} for job in _jobs(4, **({"scheduler": name} if name else {}))]
        run = simulate(jobs, PROFILES, platform="4x4", scheduler=kube_scheduler, scheduler_config=configuration)
        used[name] = len(set(run.pods["node"]))
        assert run.manifest["programs"][0]["serves"] == ["spreads", "packs"]
    assert used == {"spreads": 4, "packs": 1, "": 4}
