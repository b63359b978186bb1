"""List and watch a collection of a cluster, and list again when the watch is lost.

Kubernetes: staging/src/k8s.io/client-go/tools/cache/reflector.go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from batkube.emulation.client.connection import ApiStatusError, ClusterConnection, ClusterUnreachable
from batkube.emulation.client.polling import pause
from batkube.emulation.client.watch_events import WatchEvent, decode_watch_event, resource_version_of
from batkube.kernel.errors import RunFailed

#: The delay before a request without a response is retried.
_RETRY_S = 1.0


class Reflector:
    """One collection. `follow` runs in a thread of its own and calls its subscribers there."""

    def __init__(
        self,
        access: ClusterConnection,
        path: str,
        query: dict[str, str],
        *,
        on_list: Callable[[bytes], None],
        on_change: Callable[[WatchEvent], None],
        on_loss: Callable[[RunFailed], None],
        is_over: threading.Event,
        tries: int | None = None,
    ) -> None:
        """After `tries` failures in a row, and when the server forbids it, `on_loss` is told why, and that is all."""
        self._cluster = access
        self._path = path
        self._query = query
        self._on_list = on_list
        self._on_change = on_change
        self._on_loss = on_loss
        self._stop_event = is_over
        self._max_failures = tries

    def run(self, version: str = "") -> None:
        """Tell whatever changes from a version on, until it is over; without one, what there is comes first."""
        failures = 0
        while not self._stop_event.is_set():
            try:
                if not version:
                    version = self._list()
                since = {**self._query, "resourceVersion": version, "allowWatchBookmarks": "true"}
                for line in self._cluster.watch(self._path, **since):
                    failures, version = 0, self._handle_line(line)
                    if not version or self._stop_event.is_set():
                        break
            except (ClusterUnreachable, ApiStatusError) as error:
                failures += 1
                is_forbidden = isinstance(error, ApiStatusError) and error.code in (400, 401, 403, 404)
                if is_forbidden or (self._max_failures is not None and failures > self._max_failures):
                    self._on_loss(error)
                    return
                version = ""
                pause(_RETRY_S)

    def _list(self) -> str:
        content = self._cluster.get_bytes(self._path, **self._query)
        self._on_list(content)
        return resource_version_of(content)

    def _handle_line(self, line: bytes) -> str:
        """Tell one line of a watch; return the version it brings us to, "" when we have to list again."""
        event = decode_watch_event(line)
        if event.type == "ERROR":
            return ""
        if event.type != "BOOKMARK":
            self._on_change(event)
        return resource_version_of(event.object)
