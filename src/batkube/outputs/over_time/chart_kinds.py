"""Kinds of charts over time; separate from the drawing, so that the help of commands imports no libraries."""

from __future__ import annotations

import enum


class ChartKind(enum.StrEnum):
    """Subject of a chart."""

    STATES = "states"
    FREE = "free"
    QUEUE = "queue"
    USERS = "users"
