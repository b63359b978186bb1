"""What can be drawn over time; apart from how, which takes libraries that a command line's help need not load."""

from __future__ import annotations

import enum


class ChartKind(enum.StrEnum):
    """What a chart is of."""

    STATES = "states"
    FREE = "free"
    QUEUE = "queue"
