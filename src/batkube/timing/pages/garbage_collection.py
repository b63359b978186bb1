"""Decides when a Go program collects its garbage, so that collections are the same in every run.

A collection can change results. It empties the program's pools (Go: sync.Pool), so their objects are created again. A
new object that contains a map draws a hash seed from the run's random generator, which changes all later draws. So two
runs must collect at the same points. The memory in use cannot be the criterion: it differs by some kilobytes between
runs, since threads are created in real time. The number of bytes read and written is the same in every run. It also
predicts garbage well: kube-scheduler and kube-controller-manager leave 12 to 16 bytes of garbage per byte.

A program that polls its queue every second without writing (Volcano, kube-batch) leaves garbage at a constant rate. It
collects at an interval of virtual time. The interval is doubled or halved until the garbage of one interval lies within
wide bounds, and then stays constant, so that kilobytes do not matter.

This applies to idle programs. A program that places ten thousand pods at one instant without writing in between
(Volcano) would exhaust the memory before it is idle. It may therefore also collect while it is busy.
"""

from __future__ import annotations

from batkube.kernel.instants import Duration, seconds
from batkube.timing.pages.clock_page import ClockPage

#: A program collects after this many bytes of traffic.
_TRAFFIC_BYTES = 8 << 20
#: Collecting a large heap takes longer and is done less often: the traffic must exceed a further sixteenth of the heap
#: left by the last collection, rounded down to steps so large that some kilobytes seldom matter.
_STEP_BYTES, _SHARE = 64 << 20, 16
#: A program may leave far more garbage per byte (for instance, if it examines thousands of nodes per pod), up to this
#: much more than twice the heap left by the last collection. That is checked every `_CHECK_BYTES` of traffic, in which
#: so much garbage accumulates that some kilobytes seldom matter. At twice the limit it is checked at once.
_GARBAGE_BYTES = 1 << 30
_CHECK_BYTES = 1 << 20
#: How much the memory in use may differ between two runs at the same point, since threads are created in real time.
#: (In three runs of kube-scheduler with 2,000 pods on 1,000 nodes it differed by up to 25 KB.)
_NOISE_BYTES = 64 << 10
#: The garbage at which even a busy program collects.
_BUSY_GARBAGE_BYTES = 4 << 30
#: The initial interval between collections in virtual time, and its bounds.
_FIRST_INTERVAL, _MAX_INTERVAL = seconds(60), seconds(86_400)
_MIN_INTERVAL = seconds(1)
#: A collection is worthwhile if the garbage exceeds this size, which is more than traffic leaves between collections,
#: plus the heap left by the last one. An interval that leaves several times as much is too long.
_WORTHWHILE_BYTES = 160 << 20
_EXCESS_FACTOR = 3


class GarbageCollection:
    """Decides when one program collects its garbage."""

    def __init__(self, page: ClockPage) -> None:
        self._page = page
        page.collect_when_busy(_BUSY_GARBAGE_BYTES)
        #: The traffic at the last collection, and when the memory was last checked.
        self._collected_at_traffic = self._checked_at_traffic = 0
        #: The current interval in virtual time, and when it began.
        self._interval: Duration = _FIRST_INTERVAL
        self._interval_began = page.now
        #: Whether a decision was so close to a bound that another run may have decided otherwise.
        self.was_marginal = False

    def is_due(self) -> bool:
        """Return whether the idle program must collect now; if so, restart the counters."""
        if not self._is_due_by_traffic() and not self._is_due_by_time():
            return False
        self._collected_at_traffic = self._page.bytes_read + self._page.bytes_written
        self._interval_began = self._page.now
        return True

    def _is_due_by_traffic(self) -> bool:
        page = self._page
        traffic, excess = page.bytes_read + page.bytes_written, page.live_bytes - 2 * page.heap_bytes
        if traffic - self._checked_at_traffic < _CHECK_BYTES and not self._reaches(excess, 2 * _GARBAGE_BYTES):
            return False
        self._checked_at_traffic = traffic
        steps = page.heap_bytes // _STEP_BYTES
        needed = _TRAFFIC_BYTES + steps * _STEP_BYTES // _SHARE
        return traffic - self._collected_at_traffic >= needed or self._reaches(excess, _GARBAGE_BYTES)

    def _is_due_by_time(self) -> bool:
        page = self._page
        if page.now < self._interval_began + self._interval:
            return False
        self._interval_began = page.now
        garbage, threshold = page.live_bytes - page.heap_bytes, _WORTHWHILE_BYTES + page.heap_bytes
        has_enough_garbage = self._reaches(garbage, threshold)
        if not has_enough_garbage:
            self._interval = min(Duration(2 * self._interval), _MAX_INTERVAL)
        elif self._reaches(garbage, _EXCESS_FACTOR * threshold):
            self._interval = max(Duration(self._interval // 2), _MIN_INTERVAL)
        return has_enough_garbage

    def _reaches(self, size: int, bound: int) -> bool:
        """Return whether a size reaches a bound, and record if it was close."""
        self.was_marginal |= abs(size - bound) < _NOISE_BYTES
        return size >= bound
