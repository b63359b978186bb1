"""What a scheduler's thinking costs in virtual time.

A program under the virtual clock decides while time stands still. A cost puts the time back in: what it wrote is
received only when the cost has passed, and until then it hears nothing and none of its timers fires, as if it were
busy. All that it decided at one go arrives together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from batkube.kernel.instants import Duration, duration

_NOTHING = Duration(0)


class DecisionCost(Protocol):
    """How long a program was busy."""

    def of(self, decisions: int) -> Duration:
        """Return the cost of what was just written, among it so many requests about single pods."""


class MeasuredCost:
    """The CPU time that the program really used since it last wrote something; no two runs are the same then."""

    def __init__(self, cpu_ns: Callable[[], int]) -> None:
        self._cpu_ns = cpu_ns
        self._before = 0

    def of(self, decisions: int) -> Duration:
        """Return the CPU time used since the last call."""
        now = self._cpu_ns()
        used, self._before = now - self._before, now
        return Duration(used)


@dataclass(frozen=True, slots=True)
class CostModel:
    """Each decision costs a constant and something per node; each round of decisions something per waiting pod."""

    constant: Duration
    per_node: Duration = _NOTHING
    per_pending_pod: Duration = _NOTHING


class ModelledCost:
    """The cost that a model gives, at the cluster's present size."""

    def __init__(self, model: CostModel, nodes: Callable[[], int], pending_pods: Callable[[], int]) -> None:
        self._model = model
        self._nodes = nodes
        self._pending_pods = pending_pods

    def of(self, decisions: int) -> Duration:
        """Return the cost of a round; what is not about pods (events, leases) costs nothing."""
        if not decisions:
            return _NOTHING
        model = self._model
        each = model.constant + model.per_node * self._nodes()
        return Duration(decisions * each + model.per_pending_pod * self._pending_pods())


ZERO, MEASURED, MODEL_PREFIX = "zero", "measured", "model:"


def parse_cost(text: str) -> CostModel | None:
    """Return the model of `model:CONSTANT[,PER-NODE[,PER-PENDING-POD]]`, None for `zero` and `measured`.

    Raises ValueError.
    """
    if text in (ZERO, MEASURED):
        return None
    if not text.startswith(MODEL_PREFIX):
        raise ValueError(f"{text!r} is not possible")
    parts = [duration(part.strip()) for part in text.removeprefix(MODEL_PREFIX).split(",")]
    if len(parts) > 3:
        raise ValueError(f"{text!r} has more than three durations")
    return CostModel(*parts)
