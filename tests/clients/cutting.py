"""A network between client and server that fails when told to."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class Network:
    """Passes connections on to a server, and can cut them all."""

    def __init__(self, listening: socket.socket, port: int) -> None:
        self._listening = listening
        self._port = port
        self._sockets: list[socket.socket] = []
        self.port: int = listening.getsockname()[1]

    def cut(self) -> None:
        """End every connection at once, in the middle of whatever they carry."""
        while self._sockets:
            with contextlib.suppress(OSError):
                self._sockets.pop().shutdown(socket.SHUT_RDWR)

    def accept(self) -> None:
        """Pass connections on until there can be no more."""
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
                self._sockets += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_carry, args=(source, sink), daemon=True).start()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


@contextlib.contextmanager
def network_to(port: int) -> Iterator[Network]:
    """Give a network to the server that listens on a port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        network = Network(listening, port)
        accepting = threading.Thread(target=network.accept)
        accepting.start()
        try:
            yield network
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            accepting.join()
            network.cut()
