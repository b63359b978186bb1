"""The clients of the soak: pods that come and go, reads, and watches, each kind in a process of its own.

Pods are due at a constant rate. A latency is the time from when a request was due until its response was read, so a
server that stalls does not hide the requests that it kept waiting. Pods that are more than a second late are skipped
and counted.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import os
import random
import re
import selectors
import ssl
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from api import PODS, Client, Rejected, pod, request
from hostile import connect

#: Connections for creations and for deletions; with fewer, a stall of the server would limit the rate.
_CONNECTIONS = 32
#: The first pods are permanent.
FIRST_POD = 1000
#: A pod runs for some seconds and is deleted later, so the population is bounded.
_RUN_TIME = "5s"
_LIFETIME_S = 30.0
#: One in so many pods is validated by the webhook that sometimes does not answer.
_CHECKED_EVERY = 10
_LATE_S = 1.0
_REQUEST_TIMEOUT_S = 60.0
_LIST_INTERVAL_S, _GET_INTERVAL_S = 0.2, 0.1
_FLUSH_S = 1.0
#: A slow watcher reads so many bytes each second.
_SLOW_BYTES = 4096
#: Watches end at different times, as those of client-go.
_WATCH_TIMEOUTS_S = (300, 600)
_RETRY_S = 1.0
#: A fast watcher reads at most so often before the next one gets its turn.
_FAST_BYTES, _READS = 1 << 16, 64
_EVENT, _EXPIRED = b',"object":{"', b'"reason":"Expired"'
#: The last chunk of a response.
_END = b"0\r\n\r\n"
_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')


class Access(NamedTuple):
    """The URL of a server, and the token of its administrator."""

    url: str
    token: str


def change_priority(by: int) -> None:
    """Change the priority of this thread if it is a real-time priority (sched(7)).

    Threads of one priority take turns of 100 ms, which would be measured. Therefore clients precede the servers, which
    precede watches and kubectl.
    """
    policy = os.sched_getscheduler(0)
    if policy in (os.SCHED_RR, os.SCHED_FIFO):
        priority = os.sched_getparam(0).sched_priority + by
        os.sched_setscheduler(0, policy, os.sched_param(priority))


@dataclass(slots=True)
class Report:
    """Latencies by operation, and what else was counted."""

    latencies_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, other: Report) -> None:
        """Add the content of another report."""
        for operation, latencies_ms in other.latencies_ms.items():
            self.latencies_ms[operation] += latencies_ms
        for name, count in other.counts.items():
            self.counts[name] += count


class Recorder:
    """Collects what a process measures, and sends it to the process that samples."""

    def __init__(self, reports: multiprocessing.Queue[Report]) -> None:
        self._reports = reports
        self._report = Report()
        self._flushed_s = time.perf_counter()

    def latency(self, operation: str, since_s: float) -> None:
        """Record that an operation, which was due at `since_s`, has ended."""
        self._report.latencies_ms[operation].append((time.perf_counter() - since_s) * 1000)
        self._flush()

    def count(self, name: str, number: int = 1) -> None:
        """Count something."""
        self._report.counts[name] += number
        self._flush()

    def _flush(self) -> None:
        if time.perf_counter() - self._flushed_s > _FLUSH_S:
            self._reports.put(self._report)
            self._report, self._flushed_s = Report(), time.perf_counter()


class Connections:
    """Keep-alive connections, each of which serves one request at a time; failed ones are opened again."""

    def __init__(self, access: Access, recorder: Recorder) -> None:
        self._access = access
        self._recorder = recorder
        self._free: asyncio.Queue[Client | None] = asyncio.Queue()

    def add(self, count: int) -> Connections:
        """Allow so many more connections."""
        for _ in range(count):
            self._free.put_nowait(None)
        return self

    async def send(self, operation: str, due_s: float, method: str, path: str, body: bytes = b"") -> bool:
        """Send a request once a connection is free; record its latency or its error, and return whether it succeeded.

        NotFound is counted and is not an error: pods of a failed node are deleted by the garbage collector too.
        """
        client = await self._free.get()
        try:
            client = client or await Client(*self._access).open()
            await asyncio.wait_for(client.send(method, path, body), _REQUEST_TIMEOUT_S)
        except Rejected as error:
            self._recorder.count(f"{operation} {error.status}")
        except (OSError, EOFError, TimeoutError, asyncio.IncompleteReadError) as error:
            self._recorder.count(f"{operation} {type(error).__name__}")
        else:
            self._recorder.latency(operation, due_s)
            self._free.put_nowait(client)
            return True
        if client is not None:
            client.close()
        self._free.put_nowait(None)
        return False


def short_pod(number: int) -> bytes:
    """Return a pod that ends after some seconds."""
    obj = json.loads(pod(number))
    metadata = obj["metadata"]
    metadata["annotations"] = {"batkube.io/duration": _RUN_TIME}
    metadata["labels"]["checked"] = "yes" if number % _CHECKED_EVERY == 0 else "no"
    return json.dumps(obj).encode()


class Pods:
    """Creates pods at a constant rate, and deletes each after its lifetime."""

    def __init__(self, connections: Connections, deletions: Connections, recorder: Recorder, rate: float) -> None:
        self._creations = connections
        self._deletions = deletions
        self._recorder = recorder
        self._rate = rate
        #: Of creations; when none is free, the next pod is late.
        self._slots = asyncio.Semaphore(_CONNECTIONS)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Create pods until cancelled."""
        began_s = time.perf_counter()
        for number in itertools.count(FIRST_POD):
            due_s = began_s + (number - FIRST_POD) / self._rate
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            await self._slots.acquire()
            if time.perf_counter() - due_s > _LATE_S:
                self._slots.release()
                self._recorder.count("skipped")
                continue
            task = asyncio.create_task(self._live(number, due_s))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _live(self, number: int, due_s: float) -> None:
        operation = "create" if number % _CHECKED_EVERY else "create checked"
        created = await self._creations.send(operation, due_s, "POST", PODS, short_pod(number))
        self._slots.release()
        await asyncio.sleep(_LIFETIME_S)
        if created:
            await self._deletions.send("delete", time.perf_counter(), "DELETE", f"{PODS}/pod-{number}")


class WatchCounts(NamedTuple):
    """How many watches of each kind there are."""

    #: Of all pods.
    fast: int
    #: Of the pods of one node, as kubelets have.
    of_nodes: int
    #: Of all pods, reading a little each second.
    slow: int


class Watch:
    """A watch of pods, which resumes from the last version it has seen, or begins anew if that is too old."""

    def __init__(self, access: Access, recorder: Recorder, timeout_s: int, selector: str = "") -> None:
        """`selector` is a part of the query."""
        self._access = access
        self._recorder = recorder
        self._options = f"&timeoutSeconds={timeout_s}{selector}"
        self._version = b"0"
        #: When to connect again, unless connected.
        self.retry_s = 0.0
        self.connection: ssl.SSLSocket | None = None

    def open(self) -> ssl.SSLSocket | None:
        """Connect and request the watch; return None, and try again later, if that fails."""
        try:
            connection = connect(self._access.url, tls=True)
            assert isinstance(connection, ssl.SSLSocket)
            path = f"{PODS}?watch=true&resourceVersion={self._version.decode()}{self._options}"
            connection.sendall(request("GET", path, token=self._access.token))
        except OSError as error:
            self._recorder.count(f"watch {type(error).__name__}")
            self.retry_s = time.perf_counter() + _RETRY_S
            return None
        connection.setblocking(False)
        self.connection = connection
        return connection

    def read(self, limit_bytes: int) -> int:
        """Read at most so many bytes without waiting, and return how many; close the connection when it ends."""
        assert self.connection is not None
        try:
            data = self.connection.recv(limit_bytes)
        except ssl.SSLWantReadError:
            return 0
        except OSError as error:
            self._recorder.count(f"watch {type(error).__name__}")
            data = b""
        self._recorder.count("watch events", data.count(_EVENT))
        has_failed = data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 200")
        if data and not has_failed and _EXPIRED not in data and not data.endswith(_END):
            versions = _VERSION.findall(data)
            self._version = versions[-1] if versions else self._version
            return len(data)
        is_expired = _EXPIRED in data
        self._recorder.count("watch expired" if is_expired else "watch failed" if has_failed else "watch ended")
        self._version = b"0" if is_expired else self._version
        self.connection.close()
        self.connection, self.retry_s = None, time.perf_counter() + _RETRY_S
        return 0


def watch_pods(access: Access, recorder: Recorder, counts: WatchCounts) -> None:
    """Keep watches open until killed."""
    of_nodes = [f"&fieldSelector=spec.nodeName%3Dnode-{number}" for number in range(counts.of_nodes)]
    queries = [""] * counts.fast + of_nodes + [""] * counts.slow
    rng, fast = random.Random(0), counts.fast + counts.of_nodes
    watches = [Watch(access, recorder, rng.randint(*_WATCH_TIMEOUTS_S), selector) for selector in queries]
    slow_read_s = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        while True:
            for index, watch in enumerate(watches):
                if watch.connection is None and watch.retry_s <= time.perf_counter():
                    connection = watch.open()
                    if connection is not None and index < fast:
                        selector.register(connection, selectors.EVENT_READ, watch)
            for key, _ in selector.select(0.1):
                _drain(selector, key.data)
            if time.perf_counter() - slow_read_s >= 1:
                slow_read_s = time.perf_counter()
                for watch in watches[fast:]:
                    if watch.connection is not None:
                        watch.read(_SLOW_BYTES)


def _drain(selector: selectors.BaseSelector, watch: Watch) -> None:
    connection = watch.connection
    assert connection is not None
    for _ in range(_READS):
        if not watch.read(_FAST_BYTES):
            break
    if watch.connection is None:
        # A closed socket has no file descriptor, by which select() would remove it.
        selector.unregister(connection)


async def read(connections: Connections, operation: str, path: str, interval_s: float) -> None:
    """Send a GET request in each interval, until cancelled."""
    due_s = time.perf_counter()
    while True:
        await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
        await connections.send(operation, due_s, "GET", path)
        due_s = max(due_s + interval_s, time.perf_counter())


async def change_and_read(access: Access, recorder: Recorder, rate: float) -> None:
    """Create and delete pods, and read some, until cancelled."""

    def connections(count: int) -> Connections:
        return Connections(access, recorder).add(count)

    pods = Pods(connections(_CONNECTIONS), connections(_CONNECTIONS), recorder, rate)
    await asyncio.gather(
        pods.run(),
        read(connections(1), "list of 50", f"{PODS}?limit=50", _LIST_INTERVAL_S),
        read(connections(1), "get", f"{PODS}/pod-1", _GET_INTERVAL_S),
    )
