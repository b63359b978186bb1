"""Writes that wait for a webhook while their component continues, and writes of suspended components."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from batkube.api.requests.statuses import Failure
from batkube.api.requests.webhooks.calls import WebhookCalls, WebhookRequest, WebhookResponse
from batkube.api.requests.webhooks.deferred_writes import DeferredWrites, WriteTarget
from batkube.api.requests.webhooks.interrupted_writes import InterruptedWrites
from batkube.cluster.suspension import Suspended
from batkube.kernel.instants import Instant

NOW = Instant(7)
STATUS = WriteTarget("pods", "default/p", "update", "status")
DELETION = WriteTarget("pods", "default/p", "delete")


class Server:
    """Writes that each call a webhook, which answers when the test requests it."""

    def __init__(self) -> None:
        self.written: list[str] = []
        #: The contents that the webhook rejects.
        self.rejected: set[str] = set()
        self.calls = WebhookCalls(lambda request: WebhookResponse(200, request.body), lambda: len(self.written))
        self._background: list[Callable[[], None]] = []
        self.deferred = DeferredWrites(self.calls, self._run_in_background, lambda: NOW)
        self.interrupted = InterruptedWrites(self.calls, self._run_in_background, self.deferred, lambda: NOW)

    def _run_in_background(self, calls: Sequence[Callable[[], None]], then: Callable[[], None]) -> None:
        def run() -> None:
            for call in calls:
                call()
            then()

        self._background.append(run)

    @property
    def waiting(self) -> int:
        """The number of writes whose webhooks are being called."""
        return len(self._background)

    def answer(self) -> None:
        """Let the webhook answer the calls that are under way."""
        under_way, self._background = self._background, []
        for run in under_way:
            run()

    def write(self, content: str) -> Callable[[Instant], str]:
        def write(now: Instant) -> str:
            request = WebhookRequest("https://x/", "x", 443, "x", "", content.encode(), 1)
            (response,) = self.calls.responses([(content, request)])
            if content in self.rejected:
                raise Failure(403, "Forbidden", f"no {response.body.decode()}")
            self.written.append(content)
            return f"stored {content}"

        return write

    def defer(self, target: WriteTarget, content: str) -> str:
        return self.deferred.run(target, self.write(content), NOW, "not stored yet")

    def reconcile(self, content: str) -> str:
        """Write on behalf of a component that can be suspended."""
        return self.interrupted.run("controller", STATUS, {"is": content}, self.write(content), NOW)


@pytest.fixture
def server() -> Server:
    return Server()


def test_the_component_continues_and_repeats_the_write_after_the_answer(server: Server) -> None:
    assert server.defer(STATUS, "running") == "not stored yet"
    assert not server.written

    server.answer()

    assert server.written == ["running"]
    assert not server.waiting


def test_writes_to_one_object_keep_their_order_and_only_the_last_queued_update_counts(server: Server) -> None:
    for content in ("running", "ready", "not ready", "ended"):
        server.defer(STATUS, content)
    server.defer(DELETION, "deletion")
    server.defer(STATUS._replace(key="default/q"), "of another pod")
    assert server.waiting == 2, "one call for each object"

    while server.waiting:
        server.answer()

    assert server.written == ["running", "of another pod", "ended", "deletion"]


def test_a_rejected_write_is_lost_and_the_next_one_follows(server: Server) -> None:
    server.rejected = {"running"}
    for content in ("running", "ended"):
        server.defer(STATUS, content)

    server.answer()
    server.answer()

    assert server.written == ["ended"]


def test_a_write_that_fails_at_once_fails_its_component(server: Server) -> None:
    def fail(now: Instant) -> str:
        raise Failure(404, "NotFound", "gone")

    with pytest.raises(Failure, match="gone"):
        server.deferred.run(STATUS, fail, NOW, "not stored yet")


def test_a_bug_in_a_write_does_not_prevent_the_next_one(server: Server) -> None:
    def fail(now: Instant) -> str:
        raise ZeroDivisionError

    server.defer(STATUS, "running")
    server.deferred.run(STATUS, fail, NOW, "not stored yet")
    server.defer(DELETION, "deletion")

    with pytest.raises(ZeroDivisionError):
        server.answer()
    while server.waiting:
        server.answer()

    assert server.written == ["running", "deletion"]


def test_events_are_dropped_while_too_many_objects_wait(server: Server) -> None:
    for number in range(1100):
        server.defer(WriteTarget("events", f"default/{number}", "create"), f"{number}")
    server.defer(STATUS, "running")

    server.answer()

    assert len(server.written) == 1001
    assert server.written[-1] == "running"


def test_a_suspended_component_repeats_its_write_and_finds_the_answer(server: Server) -> None:
    resumed: list[Instant] = []
    for _ in range(2):
        with pytest.raises(Suspended) as suspension:
            server.reconcile("status")
        suspension.value.when_answered(resumed.append)
    assert server.waiting == 1, "the webhook is called once"

    server.answer()

    assert resumed == [NOW, NOW]
    assert server.reconcile("status") == "stored status"
    assert server.written == ["status"]


def test_a_write_that_differs_in_every_attempt_is_executed_without_its_component(server: Server) -> None:
    for attempt in range(3):
        with pytest.raises(Suspended):
            server.reconcile(f"status at {attempt}")
        while server.waiting:
            server.answer()

    assert server.written == ["status at 2"]
    assert server.reconcile("status at 3") == "stored status at 2", "the component gets its result"
    with pytest.raises(Suspended):
        server.reconcile("status at 4")


def test_a_component_gets_the_failure_of_a_write_that_was_carried_out_without_it(server: Server) -> None:
    server.rejected = {"status at 2"}
    for attempt in range(3):
        with pytest.raises(Suspended):
            server.reconcile(f"status at {attempt}")
        while server.waiting:
            server.answer()

    with pytest.raises(Failure, match="no status at 2"):
        server.reconcile("status at 3")
