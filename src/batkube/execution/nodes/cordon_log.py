"""Records in the journal which nodes clients of the API cordon, such as `kubectl cordon` or an autoscaler.

The events of a timeline record their own cordons, with all nodes of an event in one line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from batkube.cluster.mapping import NODE
from batkube.cluster.store import MODIFIED, Batch, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import Instant


class CordonLog:
    """Records each change of `spec.unschedulable` of an existing node."""

    def __init__(self, world: World) -> None:
        self._journal = world.journal
        self._is_paused = False
        world.store.subscribe(NODE, self._on_nodes_changed)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Record nothing meanwhile, because the caller records its changes."""
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is not MODIFIED or batch.status is not None or self._is_paused:
            return
        for change in batch.changes():
            assert change.previous is not None, "a modified node existed before"
            is_cordoned = _is_cordoned(change.object)
            if is_cordoned != _is_cordoned(change.previous):
                event = "cordon" if is_cordoned else "uncordon"
                self._journal.append(now, event, nodes=change.object["metadata"]["name"])


def _is_cordoned(node: KubeObject) -> bool:
    return bool(node["spec"].get("unschedulable"))
