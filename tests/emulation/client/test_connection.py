"""Watches of a connection to a real cluster."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from batkube.cluster.kubeconfigs import kubeconfig
from batkube.emulation.client.connection import ClusterConnection

pytest.importorskip("kubernetes", reason="needs the Python client: pip install kubernetes")

LINE = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}\n'


@pytest.fixture
def broken_server() -> Iterator[str]:
    """Serve one watch event in a response that breaks before its end; yield the URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def respond() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(10_000)
                head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                connection.sendall(head + f"{len(LINE):x}\r\n".encode() + LINE + b"\r\nff\r\nhalf")

        thread = threading.Thread(target=respond)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_a_broken_connection_ends_a_watch_without_an_error(broken_server: str, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig({"server": broken_server}, "user", {}))

    assert list(ClusterConnection(path).watch("/api/v1/pods")) == [LINE.rstrip()]
