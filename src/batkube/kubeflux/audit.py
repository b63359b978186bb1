"""The auditor: what a scheduler believes of a cluster, compared with what is so.

A *phantom* is a pod that is believed to hold something of a node where it holds nothing (any more); a *blind spot* is a
pod on a node that is not believed to be there. What a node is believed to offer may be wrong as well. A difference has
a beginning and an end; those that a settled instant finds for the first time are told, and so is when they are gone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Set
from typing import Protocol

from batkube.cluster.pods.resources import Amounts
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import CPU
from batkube.kubeflux.scheduler_cache import NodeAccount

PHANTOM_POD, BLIND_SPOT, WRONG_OFFER = "phantom", "blind spot", "offer"


@dataclasses.dataclass(frozen=True, slots=True)
class CacheDifference:
    """Something that is believed and not so, or so and not believed; `pod` is "" where the node itself is meant."""

    kind: str
    node: str
    pod: str
    #: What it is about: cpu in millicores, all else in whole units.
    amounts: tuple[tuple[str, int], ...]


def cache_differences(
    believed: Mapping[str, NodeAccount], true: Mapping[str, NodeAccount]
) -> Iterable[CacheDifference]:
    """Yield where two pictures differ, node by node and pod by pod."""
    nothing = NodeAccount()
    for name in sorted({*believed, *true}):
        one, other = believed.get(name, nothing), true.get(name, nothing)
        if one.offer != other.offer:
            yield CacheDifference(WRONG_OFFER, name, "", () if other.offer is None else other.offer.allocatable)
        for key in sorted(one.held.keys() - other.held.keys()):
            yield CacheDifference(PHANTOM_POD, name, str(key), _amounts(one.held[key]))
        for key in sorted(other.held.keys() - one.held.keys()):
            yield CacheDifference(BLIND_SPOT, name, str(key), _amounts(other.held[key]))


def _amounts(demand: Amounts) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(demand.items()))


class AuditSink(Protocol):
    """Where an auditor tells what it finds."""

    def write_differences(self, lines: list[dict[str, object]]) -> None:
        """Take lines about differences that are new or over."""

    def write_cache(self, accounts: Mapping[str, NodeAccount]) -> None:
        """Take what is believed now."""


class Auditor:
    """Remembers which differences there are, and since when."""

    def __init__(self) -> None:
        self.since: dict[CacheDifference, Instant] = {}

    def update(self, current: Set[CacheDifference], now: Instant) -> list[dict[str, object]]:
        """Take the differences of a settled instant; return what is new and what is over, as lines for a file."""
        lines = []
        for difference in sorted(current - self.since.keys(), key=_order):
            self.since[difference] = now
            lines.append({**_to_json(difference), "at": now, "is": "new"})
        for difference in sorted(self.since.keys() - current, key=_order):
            lines.append({**_to_json(difference), "at": now, "is": "over", "since": self.since.pop(difference)})
        return lines

    @property
    def phantom_cpu(self) -> int:
        """How many millicores are believed to be taken and are not."""
        return sum(dict(known.amounts).get(CPU, 0) for known in self.since if known.kind == PHANTOM_POD)


def _order(difference: CacheDifference) -> tuple[str, str, str, tuple[tuple[str, int], ...]]:
    return difference.node, difference.pod, difference.kind, difference.amounts


def _to_json(difference: CacheDifference) -> dict[str, object]:
    return {
        "kind": difference.kind,
        "node": difference.node,
        "pod": difference.pod,
        "amounts": dict(difference.amounts),
    }
