"""Reasons of policies for their decisions, recorded in reasons.jsonl by a run with `--explain`.

A policy adds one to a decision (`Start`, `Evict`), or yields `Wait` for a job that it leaves in the queue. It computes
none unless `view.is_explained`, so that reasons cost nothing otherwise. A string instead of one of these classes is
recorded unchanged.
"""

from __future__ import annotations

import msgspec

from batkube.kernel.instants import Instant


class Reason(msgspec.Struct, frozen=True, tag_field="rule"):
    """Why a policy decided as it did. Each class is a rule, and its fields are recorded."""


class NextInOrder(Reason, frozen=True, tag="order"):
    """The job is the next one in the policy's order and does not fit, so no other job may start."""

    #: What the order is by: `submission`, `estimate` or `priority`.
    order: str
    #: How many pods (or machines) the job has, and how many of them fit now.
    size: int
    fitting: int


class Reserved(Reason, frozen=True, tag="reservation"):
    """The job does not fit now, and machines are reserved for it."""

    #: When it will start at the latest, if all running jobs keep to their estimates.
    start: Instant
    #: The machines that it would get then, as an interval set (kernel/intervals.py).
    machines: int
    #: The jobs, running or planned before it, that it waits for: they hold these machines until then.
    after: tuple[str, ...]


class Backfilled(Reason, frozen=True, tag="backfilling"):
    """The job overtakes the head of the queue without delaying its reservation."""

    head: str
    #: When the head will start at the latest, and when this job will have ended.
    head_start: Instant
    end: Instant
    #: Whether it ends by then. If not, it uses none of the machines that are reserved for the head.
    is_short: bool


class Preempted(Reason, frozen=True, tag="preemption"):
    """The job is evicted for one of a higher priority."""

    by: str
    priority: int
    by_priority: int
