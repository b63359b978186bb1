"""Default timeouts of a run for programs that do nothing or do not become idle."""

from __future__ import annotations

from batkube.kernel.instants import Duration, seconds

#: In virtual time: a run is aborted when nothing is due and nothing happens for this long.
PATIENCE: Duration = seconds(3600)
#: In real time: a program that does not become idle within this time counts as stuck.
WATCHDOG: Duration = seconds(120)
