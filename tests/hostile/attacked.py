"""`batkube serve` in a process of its own, its resource usage, and raw connections to it."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

TOKEN = "admin-token"


class Attacked:
    """A running server."""

    def __init__(self, folder: Path, *arguments: str, files: int | None = None) -> None:
        """Start the server; `files` limits its open files."""
        tokens = folder / "tokens.csv"
        tokens.write_text(f'{TOKEN},admin,1,"system:masters"\nguest-token,guest,2\n')
        self.out = folder / "out"
        command = [sys.executable, "-m", "batkube", "serve", "--out", str(self.out), "--quiet", *arguments]

        def bound() -> None:
            if files is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

        self.errors = folder / "errors.txt"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [*command, "--token-auth-file", str(tokens)],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                preexec_fn=bound,
            )
        assert self.process.stdout is not None
        assert self.process.stdout.readline(), self.errors.read_text()
        config = (self.out / "kubeconfig").read_text()
        self.files_at_start = self.open_files()
        self.port = int(config.partition("https://127.0.0.1:")[2].partition("\n")[0])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def ask(self, path: str, method: str = "GET", body: bytes = b"") -> bytes:
        """Return the response to one request on a connection of its own."""
        with self.connect() as connection:
            connection.sendall(request(path, method, body, "Connection: close"))
            return read_all(connection)

    def memory_mb(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def end(self, number: signal.Signals = signal.SIGTERM, *, within_s: float = 20) -> int:
        """Send a signal to the server; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(within_s)
        finally:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()


@contextlib.contextmanager
def attacked(folder: Path, *arguments: str, files: int | None = None) -> Iterator[Attacked]:
    server = Attacked(folder, *arguments, files=files)
    try:
        yield server
    finally:
        server.end()


def request(path: str, method: str = "GET", body: bytes = b"", *headers: str, token: str = TOKEN) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: here", f"Authorization: Bearer {token}", *headers]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def read_all(connection: socket.socket) -> bytes:
    """Read to the end of the connection; a reset counts as the end."""
    data = bytearray()
    with contextlib.suppress(ConnectionError):
        while more := connection.recv(1 << 20):
            data += more
    return bytes(data)


def send_until_refused(connection: socket.socket, piece: bytes, most: int) -> int:
    """Send `piece` repeatedly until the other side closes; return the number of bytes sent."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < most:
            connection.sendall(piece)
            sent += len(piece)
    return sent


def wait_until(condition: Callable[[], bool], within_s: float = 20) -> bool:
    """Wait for `condition`; return whether it became true."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
