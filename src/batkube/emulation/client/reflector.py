"""List and watch a collection of a cluster, and list it again when the watch fails.

Kubernetes: staging/src/k8s.io/client-go/tools/cache/reflector.go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from batkube.emulation.client.connection import (
    ApiStatusError,
    ClusterConnection,
    ClusterUnreachable,
    InvalidResponse,
    expected_shape,
    status_error,
)
from batkube.emulation.client.watch_events import decode_watch_event, items_of, resource_version_of
from batkube.kernel.errors import RunFailed
from batkube.kernel.stopwatch import Stopwatch

_FIRST_DELAY_S, _MAX_DELAY_S = 0.8, 30.0
#: The delay is reset when the previous back-off began longer ago than this.
_RESET_AFTER_S = 120.0
#: A watch that ends sooner than this and without an event has failed.
_MIN_WATCH_S = 1.0
#: Statuses that no retry can change: bad request, unauthenticated, forbidden, not found.
_PERMANENT_ERRORS = (400, 401, 403, 404)


class CollectionUpdate(NamedTuple):
    """All objects of a collection, or one that was created, changed or deleted."""

    objects: list[msgspec.Raw]
    is_list: bool = False
    is_deletion: bool = False


class Backoff:
    """Delays between retries: 0.8 s, doubled each time up to 30 s.

    Kubernetes: NewReflectorWithOptions, and exponentialBackoffManagerImpl in
    staging/src/k8s.io/apimachinery/pkg/util/wait/backoff.go. Its jitter is left out, so that runs repeat.
    """

    def __init__(self) -> None:
        self._delay_s = _FIRST_DELAY_S
        self._last_s = 0.0

    def next_delay_s(self, now_s: float) -> float:
        """Return the delay before a retry; `now_s` is the current time on any clock."""
        if now_s - self._last_s > _RESET_AFTER_S:
            self._delay_s = _FIRST_DELAY_S
        delay_s, self._last_s = self._delay_s, now_s
        self._delay_s = min(2 * delay_s, _MAX_DELAY_S)
        return delay_s


class Reflector:
    """Follows one collection, in a thread of its own that also calls the callbacks."""

    def __init__(
        self,
        cluster: ClusterConnection,
        path: str,
        *,
        on_update: Callable[[CollectionUpdate], None],
        on_failure: Callable[[RunFailed], None],
        stop_event: threading.Event,
        query: dict[str, str] | None = None,
        max_failures: int | None = None,
    ) -> None:
        """Call `on_failure` and end after a permanent error, or after more than `max_failures` errors in a row."""
        self._cluster = cluster
        self._path = path
        self._query = query or {}
        self._on_update = on_update
        self._on_failure = on_failure
        self._stop_event = stop_event
        self._max_failures = max_failures

    def start(self, version: str = "") -> None:
        """Start the thread. Without a version to watch from, it lists the collection first."""
        threading.Thread(target=self.run, args=(version,), name=f"watch {self._path}", daemon=True).start()

    def run(self, version: str = "") -> None:
        """List and watch until the stop event is set."""
        backoff, stopwatch, failures = Backoff(), Stopwatch(), 0
        while not self._stop_event.is_set():
            try:
                with expected_shape(self._path):
                    if not version:
                        version = self._list()
                    for next_version in self._watch(version):
                        failures, version = 0, next_version
            except InvalidResponse as error:
                self._on_failure(error)
                return
            except (ClusterUnreachable, ApiStatusError) as error:
                failures += 1
                is_permanent = isinstance(error, ApiStatusError) and error.code in _PERMANENT_ERRORS
                if is_permanent or (self._max_failures is not None and failures > self._max_failures):
                    self._on_failure(error)
                    return
                version = ""
                self._stop_event.wait(backoff.next_delay_s(stopwatch.real_s))

    def _list(self) -> str:
        content = self._cluster.get_bytes(self._path, **self._query)
        self._on_update(CollectionUpdate(items_of(content), is_list=True))
        return resource_version_of(content)

    def _watch(self, version: str) -> Iterator[str]:
        """Report the events of a watch, and yield the resource version of each."""
        stopwatch, has_events = Stopwatch(), False
        query = {**self._query, "resourceVersion": version, "allowWatchBookmarks": "true"}
        for line in self._cluster.watch(self._path, **query):
            has_events = True
            event = decode_watch_event(line)
            if event.type == "ERROR":
                raise status_error(bytes(event.object))
            if event.type != "BOOKMARK":
                self._on_update(CollectionUpdate([event.object], is_deletion=event.type == "DELETED"))
            yield resource_version_of(event.object)
            if self._stop_event.is_set():
                return
        if not has_events and stopwatch.real_s < _MIN_WATCH_S:
            # Kubernetes: VeryShortWatchError.
            raise ClusterUnreachable(f"{self._path}: the server ended the watch at once, without an event")
