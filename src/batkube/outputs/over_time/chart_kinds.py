"""Kinds of charts over time, without the drawing libraries, which the help of a command need not load."""

from __future__ import annotations

import enum


class ChartKind(enum.StrEnum):
    """Subject of a chart."""

    STATES = "states"
    FREE = "free"
    QUEUE = "queue"
