"""`record` and `emulate` against servers that never stop, never answer, or send nonsense."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.commands import WORKLOAD, run_in_process

from batkube.emulation.client import connection
from batkube.emulation.client.connection import ClusterConnection, InvalidResponse

Respond = Callable[[BaseHTTPRequestHandler], None]

META = {"name": "n", "uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
NODE = {"metadata": META, "spec": {}, "status": {"allocatable": {"cpu": "4", "pods": "9", "batkube.io/machine": "1"}}}
POD = {"metadata": {**META, "namespace": "d"}, "spec": {"containers": [{"name": "c"}], "nodeName": "n"}, "status": {}}
JOB = {"metadata": META, "spec": {}}
ITEMS = {"nodes": NODE, "pods": POD, "jobs": JOB}
#: Values of a wrong type or size.
NONSENSE = (10**40, "x", [5], {"a": 5})


@contextlib.contextmanager
def serving(folder: Path, respond: Respond) -> Iterator[list[str]]:
    """Serve with `respond`, write a kubeconfig into `folder`, and yield the options that name it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            with contextlib.suppress(OSError):
                length = int(self.headers.get("Content-Length") or 0)
                self.rfile.read(length)
                respond(self)
            self.close_connection = True

        do_GET = do_POST = do_DELETE = do_PUT = respond  # noqa: N815 - of http.server

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {}}],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))
    try:
        yield ["--kubeconfig", "kubeconfig"]
    finally:
        server.shutdown()
        server.server_close()


def reply(handler: BaseHTTPRequestHandler, content: object) -> None:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(body)


def listing(path: str, *items: object) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "1"}, "items": list(items)}


def kind_of(path: str) -> str:
    return path.partition("?")[0].rpartition("/")[2]


def cluster_with(change: Callable[[str, dict[str, Any]], object]) -> Respond:
    """Respond as a small cluster, with each object changed by `change`; watches are silent."""

    def respond(handler: BaseHTTPRequestHandler) -> None:
        if "watch=true" in handler.path:
            time.sleep(20)
            return
        kind = kind_of(handler.path)
        if kind in ITEMS:
            reply(handler, listing(handler.path, change(kind, json.loads(json.dumps(ITEMS[kind])))))
        else:
            reply(handler, {"gitVersion": "v1.34.0", "status": {"allowed": True}, "metadata": META})

    return respond


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b'{"metadata":{"resourceVersion":"1"},"items":[')
    while True:
        handler.wfile.write(b'{"metadata":{"name":"x"}},' * 10_000)


def dripping(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def dripping_head(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.05)


def silent(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(60)


def changed(value: dict[str, Any], place: tuple[str, ...], nonsense: object) -> dict[str, Any]:
    inner = value
    for key in place[:-1]:
        inner = inner.setdefault(key, {})
    inner[place[-1]] = nonsense
    return value


def test_an_endless_list_takes_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_MAX_RESPONSE_BYTES", 8 << 20)
    with serving(tmp_path, endless) as options:
        result = run_in_process(tmp_path, "record", *options, "-o", "out")

    assert (result.returncode, "is longer than 8 MiB" in result.stderr) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("respond", [silent, dripping, dripping_head])
def test_a_recording_of_a_silent_server_ends_in_its_time(tmp_path: Path, respond: Respond) -> None:
    with serving(tmp_path, respond) as options:
        start = time.monotonic()
        result = run_in_process(tmp_path, "record", *options, "-o", "out", "--for", "1s")
        taken_s = time.monotonic() - start

    assert result.returncode == 1, result.stderr
    assert taken_s < 5


def test_a_recording_ends_in_its_time_though_lists_and_watches_never_do(tmp_path: Path) -> None:
    """The server behaves correctly until the recording begins."""
    count = iter(range(100))

    def respond(handler: BaseHTTPRequestHandler) -> None:
        good = cluster_with(lambda kind, value: value)
        good(handler) if next(count) < 4 else dripping(handler)

    with serving(tmp_path, respond) as options:
        start = time.monotonic()
        result = run_in_process(tmp_path, "record", *options, "-o", "out", "--for", "2s")
        taken_s = time.monotonic() - start

    assert (result.returncode, result.stderr.count("Traceback")) == (0, 0), result.stderr
    assert taken_s < 6


def test_an_endless_event_takes_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_MAX_EVENT_BYTES", 1 << 20)
    with serving(tmp_path, endless):
        cluster = ClusterConnection(tmp_path / "kubeconfig")
        with pytest.raises(InvalidResponse, match="an event of a watch is longer than 1 MiB"):
            list(cluster.watch("/api/v1/pods"))


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("nodes", ("metadata",)),
        ("nodes", ("metadata", "name")),
        ("nodes", ("spec", "taints")),
        ("nodes", ("status", "allocatable", "cpu")),
        ("pods", ("metadata", "creationTimestamp")),
        ("pods", ("spec",)),
        ("pods", ("spec", "containers")),
        ("pods", ("status", "containerStatuses")),
        ("jobs", ("spec", "parallelism")),
    ],
)
def test_objects_of_wrong_types_end_in_one_message(tmp_path: Path, kind: str, place: tuple[str, ...]) -> None:
    for number, nonsense in enumerate(NONSENSE):

        def change(of: str, value: dict[str, Any], nonsense: object = nonsense) -> object:
            return changed(value, place, nonsense) if of == kind else value

        with serving(tmp_path, cluster_with(change)) as options:
            result = run_in_process(tmp_path, "record", *options, "-o", f"out{number}", "--for", "0.2s")

        assert result.returncode in (0, 2), (nonsense, result.stderr)
        assert "Traceback" not in result.stderr, (nonsense, result.stderr)


@pytest.mark.parametrize("body", [b"", b"[]", b"5", b"null", b"[" * 100_000, b"\xff", b"<html>", b'{"items": 5}'])
def test_bodies_that_are_not_lists_end_in_one_message(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    with serving(tmp_path, lambda handler: reply(handler, body)) as options:
        recorded = run_in_process(tmp_path, "record", *options, "-o", "out", "--for", "1s")
        emulated = run_in_process(tmp_path, "emulate", *options, "--workload", "w.json", "--out", "emulated")

    assert (recorded.returncode, emulated.returncode) == (2, 2), (recorded.stderr, emulated.stderr)


@pytest.mark.parametrize("place", [("metadata",), ("metadata", "name"), ("spec", "taints"), ("status", "allocatable")])
def test_an_emulation_rejects_nodes_of_wrong_types(tmp_path: Path, place: tuple[str, ...]) -> None:
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    for nonsense in (5, "x", [5], {"a": 5}):

        def change(of: str, value: dict[str, Any], nonsense: object = nonsense) -> object:
            return changed(value, place, nonsense) if of == "nodes" else value

        with serving(tmp_path, cluster_with(change)) as options:
            result = run_in_process(
                tmp_path, "emulate", *options, "--workload", "w.json", "--out", "out", "--force", "--requests", "cpu=99"
            )

        assert result.returncode == 2, (nonsense, result.stderr)
