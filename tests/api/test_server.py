"""What the server does for each request."""

from __future__ import annotations

import pytest

from batkube.api.assembly import Api
from batkube.api.requests.messages import Request, Response
from batkube.cluster.store import Store
from batkube.kernel.instants import Instant, instant_of
from batkube.kernel.streams import Streams
from conformance.direct import ADMIN
from conformance.serving import USERS


class NoTimers:
    """Timers that never fire."""

    def after(self, seconds: float, callback: object) -> object:
        raise AssertionError("no timer is needed")


@pytest.mark.parametrize(
    ("path", "reads_the_clock"),
    [("/healthz", False), ("/version", False), ("/apis", False), ("/api/v1/namespaces", True)],
)
def test_only_requests_for_objects_read_the_clock(path: str, reads_the_clock: bool) -> None:
    """In `serve`, reading the clock executes what is due, which takes time when the cluster has much to do."""
    start, readings = instant_of("2026-11-15T20:00:00Z"), list[str]()

    def now() -> Instant:
        readings.append(path)
        return start

    api = Api(Store(100), now, NoTimers(), Streams(1), USERS, bare=True)  # type: ignore[arg-type]
    api.bootstrap(start, 6443)
    readings.clear()

    response = api.handle(Request("GET", path, {}, ADMIN, b""))

    assert isinstance(response, Response)
    assert response.status == 200
    assert bool(readings) is reads_the_clock
