"""When a program collects its garbage: at moments that follow from its work alone.

A collection can have consequences. It empties the program's pools (Go: sync.Pool), whose things are then made anew, and
a thing with a map in it draws a number from the run's generator when it is made: whatever is drawn later is another
number. So two runs are to collect at the same moments. How much memory is in use cannot tell when: that differs by some
kilobytes from run to run, for threads are made in real time. How much was read and written can, and it measures garbage
well: kube-scheduler and kube-controller-manager leave 12 to 16 bytes for each of those.

A program that looks at its queue every second and finds nothing to say (Volcano, kube-batch) leaves garbage by time
alone, in each minute as much as in the next. It collects in a rhythm of virtual time, which is slowed down or quickened
until what a beat leaves lies within wide bounds, and then stays: kilobytes have no say in it from there on.

All this is for a program that is idle. One that places ten thousand pods at one instant without a word in between
(Volcano) would fill the machine before it is; it collects by itself between two turns of its goroutines.
"""

from __future__ import annotations

from batkube.kernel.instants import Duration, seconds
from batkube.timing.pages.clock_page import ClockPage

#: A program collects after so many bytes.
_TRAFFIC_BYTES = 8 << 20
#: With much in its memory that takes longer and is done less often: after a sixteenth of what the last collection left
#: in addition, in steps so large that some kilobytes seldom decide.
_STEP_BYTES, _SHARE = 64 << 20, 16
#: A program may leave far more garbage for a byte (say, by looking at thousands of nodes for each pod), up to so much
#: more than twice what the last collection left. Its memory is looked at every so many bytes, which leave so much
#: garbage then that, again, some kilobytes seldom decide. Only one that is silent and leaves twice as much cannot wait.
_GARBAGE_BYTES = 1 << 30
_CHECK_BYTES = 1 << 20
#: By how much the memory in use may differ between two runs at the same moment: threads are made in real time, and each
#: takes some. (Of three runs of kube-scheduler with 2,000 pods on 1,000 nodes it differed by up to 25 KB.)
_NOISE_BYTES = 64 << 10
#: Even a busy program leaves no more than so much.
_BUSY_GARBAGE_BYTES = 4 << 30
#: A beat of virtual time at first, and the bounds of it.
_FIRST_INTERVAL, _MAX_INTERVAL = seconds(60), seconds(86_400)
_MIN_INTERVAL = seconds(1)
#: Worth a collection: so much garbage, more than any talk leaves between two, beside what the last one left; and a beat
#: that leaves so many times as much is too long.
_WORTHWHILE_BYTES = 160 << 20
_EXCESS_FACTOR = 3


class GarbageCollection:
    """The garbage of one program."""

    def __init__(self, page: ClockPage) -> None:
        self._page = page
        page.collect_when_busy(_BUSY_GARBAGE_BYTES)
        #: How much had been read and written when it last collected, and when its memory was last looked at.
        self._collected_at_traffic = self._checked_at_traffic = 0
        #: The beat of its rhythm, and the instant of the latest one.
        self._interval: Duration = _FIRST_INTERVAL
        self._interval_began = page.now
        #: Whether some decision was so close that another run may have decided otherwise.
        self.was_marginal = False

    def is_due(self) -> bool:
        """Return whether the program, which is idle, is to collect now; if so, count from here on."""
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
        garbage, worth = page.live_bytes - page.heap_bytes, _WORTHWHILE_BYTES + page.heap_bytes
        is_worth_it = self._reaches(garbage, worth)
        if not is_worth_it:
            self._interval = min(Duration(2 * self._interval), _MAX_INTERVAL)
        elif self._reaches(garbage, _EXCESS_FACTOR * worth):
            self._interval = max(Duration(self._interval // 2), _MIN_INTERVAL)
        return is_worth_it

    def _reaches(self, size: int, bound: int) -> bool:
        """Return whether so much memory reaches a bound, and remember if that was close."""
        self.was_marginal |= abs(size - bound) < _NOISE_BYTES
        return size >= bound
