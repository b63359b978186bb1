"""client-go's informers stay in sync with the store, despite lost connections and compactions."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from batkube.api.requests.messages import Request, Response
from batkube.kernel.errors import RunFailed
from batkube.schedulers.build.builder import ensure_built
from batkube.schedulers.installed import cache_folder
from batkube.schedulers.recipes import BuildRecipe
from conformance.client import Client
from conformance.direct import ADMIN, MERGE
from conformance.serving import Serving

CLIENT_GO = "v0.34.4"
SOURCE = Path(__file__).resolve().parent.parent / "go" / "informers" / "main.go"
NAMESPACES = ("one", "two")
#: The collection that each informer of the program watches.
FOLLOWED: dict[str, tuple[str, dict[str, str]]] = {
    "pods": ("/api/v1/pods", {}),
    "configmaps": ("/api/v1/configmaps", {}),
    "front": ("/api/v1/namespaces/one/pods", {"labelSelector": "tier=front"}),
    "unbound": ("/api/v1/pods", {"fieldSelector": "spec.nodeName="}),
    "dynamic": ("/api/v1/configmaps", {}),
}
WRITES, WRITES_AT_ONCE, CUTS = 4000, 25, 2
PATIENCE_S = 60.0

Tell = Callable[[], dict[str, dict[str, dict[str, str]]]]


@pytest.fixture(scope="session")
def informers_program() -> Path:
    """The Go program, built on first use."""
    program = BuildRecipe("informers", "k8s.io/client-go", CLIENT_GO, "", main=SOURCE.read_text(), virtual=False)
    try:
        return ensure_built(program, cache_folder())
    except RunFailed as problem:
        pytest.skip(f"needs client-go from the Go module proxy: {problem}")


@contextlib.contextmanager
def running_informers(program: Path, server: Serving, content_type: str, watch_list: str) -> Iterator[Tell]:
    """Run the program; yield a function that returns its informers' content."""
    command = [str(program), "-server", server.url, "-token", "admin-token", "-content-type", content_type]
    environment = {**os.environ, "KUBE_FEATURE_WatchListClient": watch_list}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def read_state() -> dict[str, dict[str, dict[str, str]]]:
            requests.write(b"\n")
            requests.flush()
            state: dict[str, dict[str, dict[str, str]]] = json.loads(answers.readline())
            return state

        try:
            yield read_state
        finally:
            process.kill()


class Writer:
    """Writes random changes within the server's thread, fast enough to outrun its clients."""

    def __init__(self, server: Serving, seed: int) -> None:
        self._server = server
        self._chance = random.Random(seed)
        for namespace in NAMESPACES:
            self._ask("POST", "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": namespace}})

    def write(self, count: int) -> None:
        """Make `count` writes; some fail because their object does not exist."""
        for _ in range(count):
            self._write()

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None, media: str = "application/json") -> int:
        data = b"" if body is None else msgspec.json.encode({"apiVersion": "v1", **body})
        answer = self._server.api.handle(Request(method, path, {}, {**ADMIN, "content-type": media}, data))
        assert isinstance(answer, Response)
        assert answer.status in (200, 201, 404, 409), answer
        return answer.status

    def _write(self) -> None:
        chance = self._chance
        name = f"x{chance.randrange(60)}"
        kind, plural = chance.choice((("Pod", "pods"), ("Pod", "pods"), ("ConfigMap", "configmaps")))
        collection = f"/api/v1/namespaces/{chance.choice(NAMESPACES)}/{plural}"
        labels = {"tier": chance.choice(("front", "back"))}
        action = chance.random()
        if action < 0.4:
            spec = {"spec": {"containers": [{"name": "c", "image": "i"}]}} if kind == "Pod" else {}
            self._ask("POST", collection, {"kind": kind, "metadata": {"name": name, "labels": labels}, **spec})
        elif action < 0.6:
            self._ask("PATCH", f"{collection}/{name}", {"metadata": {"labels": labels}}, MERGE)
        elif action < 0.75 and kind == "Pod":
            target = {"target": {"kind": "Node", "name": "n"}}
            self._ask("POST", f"{collection}/{name}/binding", {"kind": "Binding", "metadata": {"name": name}, **target})
        else:
            self._ask("DELETE", f"{collection}/{name}", {"kind": "DeleteOptions", "gracePeriodSeconds": 0})


def cut_off(server: Serving, writer: Writer) -> None:
    """Close every connection and compact the history, so that clients have to list again."""
    server.disconnect()
    writer.write(WRITES_AT_ONCE)
    server.store.compact()


def await_watches(server: Serving) -> None:
    """Wait until every informer watches again."""
    end = time.monotonic() + PATIENCE_S
    while server.inside(server.api.watches.count) < len(FOLLOWED):
        assert time.monotonic() < end, "an informer does not come back"
        time.sleep(0.05)


def listed(client: Client) -> dict[str, dict[str, str]]:
    """Return the expected content of each informer: the version of every object by key."""
    found = {}
    for name, (path, query) in FOLLOWED.items():
        items = client.request({"method": "GET", "path": path, "query": query})["body"]["items"]
        found[name] = {
            f"{item['metadata']['namespace']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
            for item in items
        }
    return found


@pytest.mark.parametrize(
    ("content_type", "watch_list"),
    [("application/json", "false"), ("application/vnd.kubernetes.protobuf", "true")],
    ids=["json, list and watch", "protobuf, watch with initial events"],
)
def test_informers_converge_to_the_content_of_the_store(
    server: Serving, informers_program: Path, content_type: str, watch_list: str
) -> None:
    writer = server.inside(lambda: Writer(server, seed=5))
    server.inside(lambda: writer.write(300))
    with (
        running_informers(informers_program, server, content_type, watch_list) as read_state,
        contextlib.closing(Client(server.url)) as client,
    ):
        read_state()  # answered once all are in sync

        for number in range(WRITES // WRITES_AT_ONCE):
            server.inside(lambda: writer.write(WRITES_AT_ONCE))
            if number % (WRITES // WRITES_AT_ONCE // CUTS) == 10:
                await_watches(server)
                server.inside(lambda: cut_off(server, writer))
        await_watches(server)
        server.inside(lambda: writer.write(WRITES_AT_ONCE))

        wanted = listed(client)
        assert all(wanted.values())
        end = time.monotonic() + PATIENCE_S
        while (state := read_state()) != {name: {"stored": of, "worked": of} for name, of in wanted.items()}:
            assert time.monotonic() < end, {
                name: state[name] for name in state if state[name]["stored"] != wanted[name]
            }
            time.sleep(0.2)
