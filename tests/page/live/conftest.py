"""A served cluster with its page, in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from batkube.emulation.client.connection import ClusterConnection

_RULES = "- {image: 'nginx*', cpu-load: 2}\n- {image: batch, duration: forever}\n"
_DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}],
            },
        },
    },
}


@dataclass(frozen=True)
class ServedPage:
    """The page of a served cluster, and its API."""

    url: str
    api: ClusterConnection

    def node(self, name: str) -> dict[str, Any]:
        """Return a node from the API."""
        return self.api.get(f"/api/v1/nodes/{name}")

    def pods(self) -> list[dict[str, Any]]:
        """Return the pods of the namespace `default`, with their usage as `kubectl top` sees it."""
        items: list[dict[str, Any]] = self.api.get("/api/v1/namespaces/default/pods")["items"]
        return items


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    """A cluster of four nodes with the Deployment `web`, whose containers share a load, at sixty times real time."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "rules.yaml").write_text(_RULES)
    options = ["--platform", "4x8,16Gi", "--out", str(folder / "out"), "--rules", str(folder / "rules.yaml")]
    command = [sys.executable, "-m", "batkube", "serve", *options, "--speed", "60", "--page"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            url = next(line.split()[-1] for line in process.stdout if line.startswith("showing at"))
            assert process.stdout.readline().startswith("serving 4 nodes")
            connection = ClusterConnection(folder / "out" / "kubeconfig")
            connection.create("/apis/apps/v1/namespaces/default/deployments", _DEPLOYMENT)
            yield ServedPage(url, connection)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
