"""The cost of scheduling decisions in virtual time.

A program under the virtual clock decides while time stands still. A cost adds the time back: its writes are received
only after the cost, and until then it receives nothing and none of its timers fires, as if it were busy. All decisions
of one round arrive together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from batkube.kernel.instants import Duration, duration

_NOTHING = Duration(0)


class DecisionCost(Protocol):
    """Computes how long a program was busy with a round of decisions."""

    def of(self, decisions: int) -> Duration:
        """Return the cost of the program's latest writes, which contain `decisions` requests about single pods."""


class MeasuredCost:
    """The CPU time that the program really used since its last write; it differs from run to run."""

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
    """Parameters: a decision costs a constant and a time per node; a round of decisions adds a time per pending pod."""

    constant: Duration
    per_node: Duration = _NOTHING
    per_pending_pod: Duration = _NOTHING


class ModelledCost:
    """The cost by a model, at the current number of nodes and pending pods."""

    def __init__(self, model: CostModel, nodes: Callable[[], int], pending_pods: Callable[[], int]) -> None:
        self._model = model
        self._nodes = nodes
        self._pending_pods = pending_pods

    def of(self, decisions: int) -> Duration:
        """Return the cost of a round; writes that are not about pods (events, leases) cost nothing."""
        if not decisions:
            return _NOTHING
        model = self._model
        per_decision = model.constant + model.per_node * self._nodes()
        return Duration(decisions * per_decision + model.per_pending_pod * self._pending_pods())


ZERO, MEASURED, MODEL_PREFIX = "zero", "measured", "model:"


def parse_cost(text: str) -> CostModel | None:
    """Parse `model:CONSTANT[,PER-NODE[,PER-PENDING-POD]]`; return None for `zero` and `measured`. Raise ValueError."""
    if text in (ZERO, MEASURED):
        return None
    if not text.startswith(MODEL_PREFIX):
        raise ValueError(f"{text!r} is not a decision cost")
    parts = [duration(part.strip()) for part in text.removeprefix(MODEL_PREFIX).split(",")]
    if len(parts) > 3:
        raise ValueError(f"{text!r} has more than three durations")
    return CostModel(*parts)
