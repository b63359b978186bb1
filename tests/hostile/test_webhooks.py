"""Webhooks that do not answer: only the writes that they are called for wait."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostile.attacked import Attacked, attacked, request, wait_until

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
PODS = "/api/v1/namespaces/default/pods"
Json = dict[str, Any]


class SilentHook:
    """Accepts connections, and never answers."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self._listening.getsockname()[1]
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self.connections.append(self._listening.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        """Reset all connections, and refuse new ones."""
        with contextlib.suppress(OSError):  # closed already
            # Wakes the thread that accepts.
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for connection in self.connections:
            connection.close()

    def configure(self, server: Attacked, resources: list[str]) -> None:
        """Have the server call the hook for all writes of these resources; failures are ignored after 30 s."""
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": resources}
        webhook = {
            "name": "silent.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{self.port}/"},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Ignore",
            "timeoutSeconds": 30,
        }
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "silent"},
            "webhooks": [webhook],
        }
        assert b" 201 " in server.ask(CONFIGURATIONS, "POST", json.dumps(configuration).encode())


@pytest.fixture
def hook() -> Iterator[SilentHook]:
    silent = SilentHook()
    yield silent
    silent.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Attacked]:
    with attacked(tmp_path, "--platform", "2x4") as running:
        yield running


def create_pod(server: Attacked, name: str) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    assert b" 201 " in server.ask(PODS, "POST", json.dumps(pod).encode())


def pod(server: Attacked, name: str) -> Json:
    found: Json = json.loads(server.ask(f"{PODS}/{name}").partition(b"\r\n\r\n")[2])
    return found


@pytest.mark.parametrize("resource", ["pods/status", "events"])
def test_a_webhook_for_writes_of_components_does_not_delay_clients(
    server: Attacked, hook: SilentHook, resource: str
) -> None:
    """Each request here would take 30 s if the server waited for the hook, more than the client does."""
    hook.configure(server, [resource])
    create_pod(server, "p")
    assert wait_until(lambda: bool(hook.connections)), "the cluster's own write is being reviewed"

    for _ in range(20):
        assert server.ask("/healthz").endswith(b"ok")
        assert server.ask(PODS).startswith(b"HTTP/1.1 200")


def test_writes_that_waited_are_carried_out(server: Attacked, hook: SilentHook) -> None:
    hook.configure(server, ["pods/status"])
    create_pod(server, "p")
    assert wait_until(lambda: bool(hook.connections))
    assert pod(server, "p")["status"]["phase"] == "Pending"

    hook.close()

    assert wait_until(lambda: pod(server, "p")["status"]["phase"] == "Running")


def test_many_writes_at_a_silent_hook_need_a_bounded_number_of_threads(server: Attacked, hook: SilentHook) -> None:
    hook.configure(server, ["configmaps"])
    with contextlib.ExitStack() as open_connections:
        clients = [open_connections.enter_context(server.connect()) for _ in range(300)]
        for number, client in enumerate(clients):
            value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}}
            client.sendall(request("/api/v1/namespaces/default/configmaps", "POST", json.dumps(value).encode()))
        assert wait_until(lambda: len(hook.connections) == 200)

        assert server.ask("/healthz").endswith(b"ok")
        assert len(os.listdir(f"/proc/{server.process.pid}/task")) < 220
        assert len(hook.connections) == 200
        hook.close()
        assert all(client.recv(65536).startswith(b"HTTP/1.1 201") for client in clients)
