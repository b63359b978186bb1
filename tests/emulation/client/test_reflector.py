"""A reflector lists, watches, and retries after a back-off delay."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import cast

import pytest

from batkube.emulation.client.connection import ApiStatusError, ClusterConnection, ClusterUnreachable
from batkube.emulation.client.reflector import Backoff, CollectionUpdate, Reflector
from batkube.kernel.errors import RunFailed

POD = b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"8"}}}'
BOOKMARK = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}'
EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'


class ScriptedCluster:
    """Responds to each watch with the next lines or error of a script; sets the stop event at its end."""

    def __init__(self, stop_event: threading.Event, watches: list[list[bytes | Exception]]) -> None:
        self._stop_event = stop_event
        self._watches = watches
        #: "list", or the version of a watch, for each request.
        self.requests: list[str] = []

    def get_bytes(self, path: str, **_: str) -> bytes:
        self.requests.append("list")
        return b'{"metadata":{"resourceVersion":"7"},"items":[]}'

    def watch(self, path: str, **query: str) -> Iterator[bytes]:
        self.requests.append(query["resourceVersion"])
        lines = self._watches.pop(0)
        if not self._watches:
            self._stop_event.set()
        for line in lines:
            if isinstance(line, Exception):
                raise line
            yield line


class RecordedDelays(threading.Event):
    """A stop event that records the delays for which a reflector waits."""

    def __init__(self) -> None:
        super().__init__()
        self.delays: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.delays.append(timeout)
        return self.is_set()


def run_script(
    *watches: list[bytes | Exception], max_failures: int | None = None
) -> tuple[list[str], list[float | None], list[CollectionUpdate], list[RunFailed]]:
    """Return the requests, delays, updates and failures of a reflector."""
    stop_event = RecordedDelays()
    cluster = ScriptedCluster(stop_event, list(watches))
    updates: list[CollectionUpdate] = []
    failures: list[RunFailed] = []
    Reflector(
        cast("ClusterConnection", cluster),
        "/api/v1/pods",
        on_update=updates.append,
        on_failure=failures.append,
        stop_event=stop_event,
        max_failures=max_failures,
    ).run()
    return cluster.requests, stop_event.delays, updates, failures


def test_a_watch_that_ends_after_events_is_resumed_at_once_from_the_last_version() -> None:
    requests, delays, updates, _ = run_script([POD, BOOKMARK], [POD])

    assert requests == ["list", "7", "9"]
    assert delays == []
    assert [(len(update.objects), update.is_list) for update in updates] == [(0, True), (1, False), (1, False)]


def test_watches_that_end_at_once_without_events_are_retried_with_growing_delays() -> None:
    requests, delays, _, _ = run_script(*[[]] * 8)

    assert requests == ["list", "7"] * 8
    assert delays == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


@pytest.mark.parametrize("failure", [EXPIRED, ClusterUnreachable("connection refused")])
def test_a_failed_watch_is_replaced_by_a_new_list_after_a_delay(failure: bytes | Exception) -> None:
    requests, delays, _, failures = run_script([POD, failure], [BOOKMARK])

    assert requests == ["list", "7", "list", "7"]
    assert (delays, failures) == ([0.8], [])


def test_a_forbidden_watch_is_reported_without_a_retry() -> None:
    requests, delays, _, failures = run_script([ApiStatusError(403, "Forbidden", "no")], [])

    assert (requests, delays) == (["list", "7"], [])
    assert [str(error) for error in failures] == ["the cluster rejected the request: no (403 Forbidden)"]


def test_too_many_failures_in_a_row_are_reported() -> None:
    lost = ClusterUnreachable("connection refused")

    requests, _, _, failures = run_script([lost], [POD, lost], [lost], [lost], [], max_failures=2)

    assert requests == ["list", "7"] * 4
    assert failures == [lost]


def test_the_delay_is_reset_when_the_last_back_off_began_more_than_two_minutes_ago() -> None:
    backoff = Backoff()

    assert [backoff.next_delay_s(now_s) for now_s in (0, 1, 121, 242)] == [0.8, 1.6, 3.2, 0.8]
