"""The coordinator accepts an idle report only if the program had read everything when it was probed."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.timing.conftest import OtherSide

from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant
from batkube.timing.coordinator import Attachment, Coordinator
from batkube.timing.pages.clock_page import ClockPage

QUESTION, ANSWER, WRITTEN, READ, LIVE = 2, 8, 16, 17, 18


class LatePage(ClockPage):
    """The page of a program that receives bytes late: it reports idle, then reads, then is idle again.

    Whenever the coordinator waits, the program advances to its next step and signals.
    """

    def __init__(self) -> None:
        super().__init__(0, deterministic=True, seed=0)
        self.program = OtherSide(self)
        self.steps = 0
        #: The latest probe before the bytes were read.
        self.asked_before = 0

    @property
    def reports_arrivals(self) -> bool:
        """Return False: without Go's runtime, nothing waits for announced bytes."""
        return False

    def wait(self, timeout_s: float) -> bool:
        """Advance to the next step."""
        self.steps += 1
        if self.steps == 2:
            self.program[READ], self.asked_before = 100, self.program[QUESTION]
        else:
            self.program[ANSWER] = self.program[QUESTION]
        return True


def test_a_program_that_reported_idle_before_bytes_arrived_is_probed_again() -> None:
    page = LatePage()
    server = SimpleNamespace(sent=100, dropped_connections=0, has_bytes_in_flight=True)
    try:
        Attachment(cast(Any, SimpleNamespace(page=page, has_ended=False)), cast(Any, server)).wait_idle()
        assert page.program[ANSWER] > page.asked_before
        assert page.steps == 3
    finally:
        page.program.close()
        page.close()


class IdlePage(ClockPage):
    """The page of a program that is idle at every probe."""

    def __init__(self, *, counts_all: bool = True) -> None:
        super().__init__(0, deterministic=True, seed=0)
        self.program = OtherSide(self)
        self._counts_all = counts_all

    @property
    def counts_all(self) -> bool:
        """Whether it is a Go program."""
        return self._counts_all

    def wait(self, timeout_s: float) -> bool:
        """Answer the probe."""
        self.program[ANSWER] = self.program[QUESTION]
        return True

    def close(self) -> None:
        """Release the page."""
        self.program.close()
        super().close()


@pytest.fixture
def idle() -> Iterator[IdlePage]:
    page = IdlePage()
    yield page
    page.close()


def attached(page: ClockPage, **server: object) -> Attachment:
    """Attach a program to a server that has received 1,000 bytes and sent 2 MiB, in which nothing is in flight."""
    process = SimpleNamespace(page=page, has_ended=False)
    known = {"received": 1000, "sent": 2 << 20, "dropped_connections": 0, "overflows": 0}
    flags = {"has_bytes_in_flight": False, "has_pending_requests": False}
    listener = SimpleNamespace(accepted=0, closed_unidentified=0)
    methods = {"read_ready": lambda wait_s=0.0: False, **flags}
    return Attachment(cast(Any, process), cast(Any, SimpleNamespace(listener=listener, **methods, **known | server)))


def settled(page: IdlePage, **server: object) -> Attachment:
    """Attach a program that has counted what the server has, and let it settle once."""
    page.program[WRITTEN], page.program[READ] = 1000, 2 << 20
    attachment = attached(page, **server)
    attachment.wait_idle()
    attachment.receive(Instant(0))
    return attachment


def test_a_run_is_repeatable_if_all_bytes_are_counted_and_fit_into_the_window(idle: IdlePage) -> None:
    assert settled(idle).is_repeatable


def test_a_run_is_not_repeatable_if_counted_bytes_never_arrive(idle: IdlePage) -> None:
    attachment = settled(idle, received=999)

    assert not attachment.is_repeatable
    assert attachment.rounds_to_settle == 2


def test_a_run_is_not_repeatable_if_more_bytes_arrive_than_the_program_has_counted(idle: IdlePage) -> None:
    attachment = settled(idle, received=1001)

    assert not attachment.is_repeatable
    assert attachment.rounds_to_settle == 2


def test_uncounted_bytes_at_the_end_make_a_run_not_repeatable(idle: IdlePage) -> None:
    attachment = settled(idle)
    attachment.server.received += 1  # type: ignore[misc]  # as a server that collects once more at the end

    assert not attachment.is_repeatable


def test_a_run_is_not_repeatable_if_a_piece_did_not_fit_into_its_window(idle: IdlePage) -> None:
    assert not settled(idle, overflows=1).is_repeatable


@pytest.mark.parametrize(("live", "is_certain"), [((1 << 30) - (1 << 15), False), ((1 << 30) - (1 << 17), True)])
def test_a_run_is_not_repeatable_if_some_kilobytes_have_decided_a_collection(
    idle: IdlePage, live: int, is_certain: bool
) -> None:
    idle.program[LIVE] = live

    assert settled(idle).is_repeatable is is_certain


def test_a_program_whose_idleness_is_read_from_the_kernel_need_not_count_everything() -> None:
    page = IdlePage(counts_all=False)
    try:
        assert settled(page, received=1001).is_repeatable
    finally:
        page.close()


class Ticking:
    """A silent program with a timer every second, which jumps from one to the next up to the limit of its grant."""

    busy_until = None

    def __init__(self) -> None:
        self.page = SimpleNamespace(now=0, next_timer=NANOSECONDS_PER_SECOND, write_count=0)
        #: The start and the limit of each grant.
        self.grants: list[tuple[int, int]] = []

    def grant(self, limit_ns: int) -> None:
        self.grants.append((self.page.now, limit_ns))
        self.page.now = limit_ns - 1
        self.page.next_timer = limit_ns

    def wait_idle(self) -> None:
        if self.page.next_timer <= self.page.now:
            self.page.next_timer = self.page.now + NANOSECONDS_PER_SECOND


def test_the_garbage_of_a_silent_program_is_checked_every_minute() -> None:
    program, day = Ticking(), Instant(86400 * NANOSECONDS_PER_SECOND)

    assert Coordinator([cast(Any, program)], 0).advance(Instant(0), day) == day

    assert max(until - since for since, until in program.grants) <= 61 * NANOSECONDS_PER_SECOND
    assert program.grants[-1][1] == day


class LateRiser(Ticking):
    """A program that writes something as soon as the clock has reached its timer."""

    def grant(self, limit_ns: int) -> None:
        self._write()
        super().grant(limit_ns)

    def wait_idle(self) -> None:
        self._write()

    def _write(self) -> None:
        if self.page.next_timer <= self.page.now:
            self.page.write_count += 1
            self.page.next_timer += NANOSECONDS_PER_SECOND


def test_a_program_is_granted_time_only_while_it_is_idle() -> None:
    """Otherwise a write just before the grant would not end it, and the program would continue without an answer."""
    late, other = LateRiser(), Ticking()
    late.page.next_timer = 5 * NANOSECONDS_PER_SECOND
    minute = Instant(60 * NANOSECONDS_PER_SECOND)

    assert Coordinator([cast(Any, late), cast(Any, other)], 0).advance(Instant(0), minute) == late.page.now
    assert late.page.now == 5 * NANOSECONDS_PER_SECOND
    assert late.grants == []
