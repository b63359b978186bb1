"""The auditor: compares the cache of a scheduler with the cluster.

A *phantom* is a pod in the cache of a node on which it does not or no longer hold resources. A *blind spot* is a pod on
a node that the cache does not contain. The cached offer of a node may be wrong as well. A difference is reported at the
first settled instant at which it exists, and again when it is over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Set
from typing import Protocol

from batkube.cluster.pods.resources import Amounts
from batkube.kernel.instants import Instant
from batkube.kubeflux.scheduler_cache import NodeAccount

PHANTOM_POD, BLIND_SPOT, WRONG_OFFER = "phantom", "blind spot", "offer"


@dataclasses.dataclass(frozen=True, slots=True)
class CacheDifference:
    """A difference between the cache and the cluster; `pod` is "" if it is about the node itself."""

    kind: str
    node: str
    pod: str
    #: The amounts concerned: cpu in millicores, other resources in their units.
    amounts: tuple[tuple[str, int], ...]


def cache_differences(
    cached_accounts: Mapping[str, NodeAccount], actual_accounts: Mapping[str, NodeAccount]
) -> Iterable[CacheDifference]:
    """Yield the differences between two sets of accounts, by node and pod."""
    empty = NodeAccount()
    for name in sorted({*cached_accounts, *actual_accounts}):
        cached, actual = cached_accounts.get(name, empty), actual_accounts.get(name, empty)
        if cached.offer != actual.offer:
            yield CacheDifference(WRONG_OFFER, name, "", () if actual.offer is None else actual.offer.allocatable)
        for key in sorted(cached.held.keys() - actual.held.keys()):
            yield CacheDifference(PHANTOM_POD, name, str(key), _amounts(cached.held[key]))
        for key in sorted(actual.held.keys() - cached.held.keys()):
            yield CacheDifference(BLIND_SPOT, name, str(key), _amounts(actual.held[key]))


def _amounts(demand: Amounts) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(demand.items()))


class AuditSink(Protocol):
    """Receives the results of an auditor."""

    def write_differences(self, lines: list[dict[str, object]]) -> None:
        """Write lines about differences that are new or over."""

    def write_cache(self, accounts: Mapping[str, NodeAccount]) -> None:
        """Write the current cache."""


class Auditor:
    """Records which differences exist, and since when."""

    def __init__(self) -> None:
        self.since: dict[CacheDifference, Instant] = {}

    def update(self, current: Set[CacheDifference], now: Instant) -> list[dict[str, object]]:
        """Set the differences of a settled instant. Return those that are new or over, as lines for a file."""
        lines = []
        for difference in sorted(current - self.since.keys(), key=_order):
            self.since[difference] = now
            lines.append({**_to_json(difference), "at": now, "is": "new"})
        for difference in sorted(self.since.keys() - current, key=_order):
            lines.append({**_to_json(difference), "at": now, "is": "over", "since": self.since.pop(difference)})
        return lines


def _order(difference: CacheDifference) -> tuple[str, str, str, tuple[tuple[str, int], ...]]:
    return difference.node, difference.pod, difference.kind, difference.amounts


def _to_json(difference: CacheDifference) -> dict[str, object]:
    return {
        "kind": difference.kind,
        "node": difference.node,
        "pod": difference.pod,
        "amounts": dict(difference.amounts),
    }
