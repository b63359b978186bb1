"""The nodes of the store by number: machine ids of policies, and columns of arrays.

Nodes are numbered in the order of their creation, so a platform's nodes have the ids of its
machines. The number of a deleted node is given to the next new one.
"""

from __future__ import annotations

from batkube.cluster.mapping import NODE
from batkube.cluster.nodes.constraints import NodeConstraints
from batkube.cluster.object_meta import condition_of
from batkube.cluster.store import DELETED, Batch, KubeObject, Store
from batkube.kernel.instants import Instant

_NO_RULES = NodeConstraints({})


class NodeColumns:
    """Assigns columns to nodes."""

    def __init__(self, store: Store) -> None:
        #: The nodes and their names by column; None for a free column.
        self.nodes: list[KubeObject | None] = []
        self.names: list[str | None] = []
        self._column_of: dict[str, int] = {}
        self._free_columns: list[int] = []
        #: Incremented when a node is added, removed, or changes in a way that schedulers see; heartbeats
        #: do not count.
        self.generation = 0
        store.subscribe(NODE, self._on_nodes_changed)

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self._column_of)

    def column_of_node(self, name: str) -> int | None:
        """Return the column of a node, or None."""
        return self._column_of.get(name)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for node in batch.objects:
            if batch.type is DELETED:
                self._remove_node(node["metadata"]["name"])
            else:
                self._set_node(node)

    def _set_node(self, node: KubeObject) -> int:
        """Add or update a node; return its column."""
        name = node["metadata"]["name"]
        column = self._column_of.get(name)
        if column is None:
            column = self._column_of[name] = self._new_column()
        previous = self.nodes[column]
        self.nodes[column], self.names[column] = node, name
        if previous is None or _scheduling_part(previous) != _scheduling_part(node):
            self.generation += 1
        return column

    def _remove_node(self, name: str) -> int:
        """Remove a node; return its former column."""
        column = self._column_of.pop(name)
        self.nodes[column] = self.names[column] = None
        self._free_columns.append(column)
        self.generation += 1
        return column

    def _new_column(self) -> int:
        if self._free_columns:
            return self._free_columns.pop(0)
        self.nodes.append(None)
        self.names.append(None)
        return len(self.nodes) - 1


def is_schedulable(node: KubeObject) -> bool:
    """Return whether `node` is ready and accepts pods without tolerations."""
    ready = condition_of(node, "Ready")
    return _NO_RULES.rejection_reason(node) is None and (ready is None or ready["status"] == "True")


def _scheduling_part(node: KubeObject) -> tuple[object, ...]:
    """Return the parts of a node that schedulers read; heartbeats change none of them."""
    spec, metadata, status = node["spec"], node["metadata"], node.get("status", {})
    ready = condition_of(node, "Ready")
    return (
        spec.get("unschedulable"),
        spec.get("taints"),
        metadata.get("labels"),
        metadata["uid"],
        status.get("allocatable") or status.get("capacity"),
        None if ready is None else ready["status"],
    )
