"""What a kubelet knows of a pod that has part in a course, and who knows what the course is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from batkube.cluster.courses import Course
from batkube.cluster.store import Key
from batkube.kernel.instants import Instant
from batkube.workloads.model import Requests


class Conductor(Protocol):
    """Who knows what the courses are about."""

    def bound(self, course: Course, ranks: Sequence[int], nodes: Sequence[str], now: Instant) -> None:
        """Hear that pods of the course were bound, before their nodes have admitted them."""

    def begin(self, course: Course, now: Instant) -> Instant:
        """All pods of the course run: return when its work ends, and settle how."""


class CourseLife:
    """A pod that has part in a course, from admission until it is gone."""

    __slots__ = ("course", "is_over", "key", "node", "rank", "uid")

    def __init__(self, key: Key, uid: str, node: str, course: Course, rank: int) -> None:
        self.key = key
        self.uid = uid
        self.node = node
        self.course = course
        self.rank = rank
        #: Whether it has ended; its node's resources are free then.
        self.is_over = False

    @property
    def demand(self) -> Requests:
        """What it holds of its node."""
        return self.course.demand
