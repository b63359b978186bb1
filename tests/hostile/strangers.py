"""Unauthorized connections to the port of a run's program: all attacks that another process can try.

`python strangers.py FOLDER [KIND …]` waits for a run that writes to FOLDER, reads the port from the kubeconfig of its
program and starts before the program is ready. With the kind `as-nobody`, started by root, it runs as another user;
with `own-port` it connects to the port on which the program itself listens, according to its log.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

PODS = "/api/v1/namespaces/default/pods"
NOBODY = 65534
AS_NOBODY, OWN_PORT = "as-nobody", "own-port"

Address = tuple[str, int]


def half_requests(address: Address, secret: str) -> None:
    """Start twenty requests and keep them open until they are closed."""
    _say(address, f"GET {PODS} HTTP/1.1\r\nHo".encode(), 20)


def whole_requests(address: Address, secret: str) -> None:
    """Send requests without the secret part of the path."""
    _say(address, f"GET {PODS} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), 5)


def requests_with_the_secret(address: Address, secret: str) -> None:
    """Try to delete all pods with the secret of the kubeconfig; the connection itself is not authorized."""
    _say(address, f"DELETE {secret}{PODS} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), 5)


def garbage(address: Address, secret: str) -> None:
    """Send data that is not HTTP."""
    _say(address, bytes(range(256)) * 40, 5)


def floods(address: Address, secret: str) -> None:
    """Connect and close at once, hundreds of times."""
    for _ in range(200):
        _connect(address).close()
    time.sleep(0.02)


def short_words(address: Address, secret: str) -> None:
    """Connect, send a request and close at once."""
    for _ in range(50):
        with _connect(address) as caller, contextlib.suppress(OSError):
            caller.sendall(f"POST {PODS} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())


#: The latest silent connections; those of earlier rounds are abandoned.
_SILENT: deque[socket.socket] = deque(maxlen=500)


def silence(address: Address, secret: str) -> None:
    """Connect and send nothing."""
    _SILENT.extend(_connect(address) for _ in range(100))


KINDS: dict[str, Callable[[Address, str], None]] = {
    kind.__name__: kind
    for kind in (half_requests, whole_requests, requests_with_the_secret, garbage, floods, short_words, silence)
}


def _connect(address: Address) -> socket.socket:
    caller = socket.socket()
    caller.settimeout(0.2)
    with contextlib.suppress(OSError):  # the run may be over, or its queue full of our connections
        caller.connect(address)
    return caller


def _say(address: Address, words: bytes, times: int) -> None:
    """Send the same data on several connections, and wait for each one's response or end."""
    callers = [_connect(address) for _ in range(times)]
    for caller in callers:
        with contextlib.suppress(OSError):
            caller.sendall(words)
    for caller in callers:
        with caller, contextlib.suppress(OSError):
            caller.recv(1000)


def server_of(folder: Path) -> tuple[Address, str]:
    """Wait for the kubeconfig of a run; return the server's address and the secret part of the path."""
    url = urlsplit(_found(folder, "kubeconfig", r"server: (http://\S+)\n"))
    return (str(url.hostname), int(url.port or 0)), url.path


def own_port_of(folder: Path) -> Address:
    """Wait until the program of a run logs its address."""
    host, _, port = _found(folder, "log.txt", r"listening on (\S+)\n").partition(":")
    return host, int(port)


def _found(folder: Path, name: str, pattern: str) -> str:
    """Wait until a file of the run's program matches a pattern; return the match."""
    while True:
        for path in folder.glob(f".*.partial-*/new/scheduler/{name}"):
            with contextlib.suppress(OSError):
                if found := re.search(pattern, path.read_text()):
                    return found[1]
        time.sleep(0.001)


def main(folder: Path, kinds: list[str]) -> None:
    """Execute all kinds in turn."""
    address, secret = server_of(folder)
    if OWN_PORT in kinds:
        address = own_port_of(folder)
    if AS_NOBODY in kinds and os.geteuid() == 0:
        os.setuid(NOBODY)
    while True:
        for kind in KINDS:
            if kind in kinds or not set(kinds) - {AS_NOBODY}:
                KINDS[kind](address, secret)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
