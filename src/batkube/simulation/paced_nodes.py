"""Nodes without kubelets, as the 2020 prototype had them: whatever is bound to them, runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from batkube.execution.nodes import NodeAccounts
from batkube.kernel.fidelity import FidelityNote, FidelityNotes, Severity
from batkube.workloads.model import Requests

_NO_ROOM = FidelityNote(
    "scheduler", "bound a pod to a node without room for it, where it ran all the same", Severity.VIOLATION
)


class UnguardedNodes(NodeAccounts):
    """Nodes that refuse nothing: a pod without room runs all the same, and is counted."""

    def __init__(self, capacities: Sequence[Mapping[str, int]], notes: FidelityNotes, names: Sequence[str]) -> None:
        super().__init__(capacities)
        self._notes = notes
        self._names = names
        #: Pods that were bound to a node without room for them.
        self.over_allocations = 0

    def take(self, machine_ids: Sequence[int], demand: Requests) -> tuple[int, str] | None:
        """Take `demand` from each of the nodes, whether they have it or not."""
        lacking = super().take(machine_ids, demand)
        if lacking is None:
            return None
        machine_id, resource = lacking
        self.over_allocations += len(machine_ids)
        self._notes.add(_NO_ROOM, example=f"{self._names[machine_id]} lacked {resource}")
        lent = tuple((name, -amount) for name, amount in demand)
        self._restore(machine_ids, lent)
        taken = super().take(machine_ids, ())
        assert taken is None, "nothing was asked for"
        return None
