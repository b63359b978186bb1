"""A TCP proxy between client and server whose connections a test can cut."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class FaultyNetwork:
    """Forwards connections to a server, and can cut them all."""

    def __init__(self, listener: socket.socket, port: int) -> None:
        self._listening = listener
        self._port = port
        self._sockets: list[socket.socket] = []
        self.port: int = listener.getsockname()[1]

    def cut(self) -> None:
        """Shut down every connection immediately, even in the middle of a message."""
        while self._sockets:
            with contextlib.suppress(OSError):
                self._sockets.pop().shutdown(socket.SHUT_RDWR)

    def accept(self) -> None:
        """Forward connections until the listener is shut down."""
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                self._sockets += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=_forward, args=(source, sink), daemon=True).start()


def _forward(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for sock in (source, sink):
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()


@contextlib.contextmanager
def network_to(port: int) -> Iterator[FaultyNetwork]:
    """Yield a proxy for the server that listens on a local port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        network = FaultyNetwork(listener, port)
        acceptor = threading.Thread(target=network.accept)
        acceptor.start()
        try:
            yield network
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            network.cut()
