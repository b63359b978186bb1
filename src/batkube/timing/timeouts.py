"""For how long a run waits for programs that do nothing, or do not come to rest, unless it is told otherwise."""

from __future__ import annotations

from batkube.kernel.instants import Duration, seconds

#: In virtual time: when nothing is due and nothing happens for so long, a run is given up.
PATIENCE: Duration = seconds(3600)
#: In real time: a program that does not become idle for so long is stuck.
WATCHDOG: Duration = seconds(120)
