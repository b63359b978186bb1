"""When a program collects its garbage: at moments that follow from its work alone.

A collection can have consequences. It empties the program's pools (Go: sync.Pool), whose things are then made anew, and
a thing with a map in it draws a number from the run's generator when it is made: whatever is drawn later is another
number. So two runs are to collect at the same moments. How much memory is in use cannot tell when: that differs by some
kilobytes from run to run, for threads are made in real time. How much was read and written can, and it measures garbage
well: kube-scheduler and kube-controller-manager leave 12 to 16 bytes for each of those.
"""

from __future__ import annotations

from batkube.timing.page import ClockPage

#: A program collects after so many bytes.
_TRAFFIC_BYTES = 8 << 20
#: With much in its memory that takes longer and is done less often: after a sixteenth of what the last collection left
#: in addition, in steps so large that some kilobytes seldom decide.
_STEP_BYTES, _SHARE = 64 << 20, 16
#: A program may leave far more garbage for a byte (say, by looking at thousands of nodes for each pod), up to so much
#: more than twice what the last collection left. Its memory is looked at every so many bytes, which leave so much
#: garbage then that, again, some kilobytes seldom decide. Only one that is silent and leaves twice as much cannot wait.
_GARBAGE_BYTES = 1 << 30
_LOOK_BYTES = 1 << 20


class Garbage:
    """The garbage of one program."""

    def __init__(self, page: ClockPage) -> None:
        self._page = page
        #: How much had been read and written when it last collected, and when its memory was last looked at.
        self._collected = self._looked = 0

    def is_due(self) -> bool:
        """Return whether the program, which is idle, is to collect now; if so, count from here on."""
        page = self._page
        traffic, excess = page.bytes_read + page.bytes_written, page.live_bytes - 2 * page.heap_bytes
        if traffic - self._looked < _LOOK_BYTES and excess < 2 * _GARBAGE_BYTES:
            return False
        self._looked = traffic
        steps = page.heap_bytes // _STEP_BYTES
        if traffic - self._collected < _TRAFFIC_BYTES + steps * _STEP_BYTES // _SHARE and excess < _GARBAGE_BYTES:
            return False
        self._collected = traffic
        return True
