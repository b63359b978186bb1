"""Requests of a policy to switch machines off and on, as annotations of nodes."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from batkube.cluster.client import BulkClient
from batkube.cluster.mapping import NODE, POWER_ANNOTATION, POWER_OFF, POWER_ON
from batkube.cluster.object_meta import annotations_of, with_metadata
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant


class PowerRequests:
    """Writes the requested power state to nodes."""

    def __init__(self, world: World, client: BulkClient) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._client = client

    def request(self, names: Sequence[str], is_on: bool, now: Instant) -> None:
        """Request that machines are switched on or off; they take no pods from now on.

        Written after the policy's call is complete, because the policy decides for the machines
        that it knows.
        """
        self._agenda.book(now, Rank.TIMELINE, functools.partial(self._write, names, is_on))

    def _write(self, names: Sequence[str], is_on: bool, now: Instant) -> None:
        keys = self._store.existing(NODE, [Key(name) for name in names])
        nodes = [_with_power_annotation(node, is_on) for node in self._store.objects(NODE, keys)]
        self._client.update_all(NODE, nodes, now)


def _with_power_annotation(node: KubeObject, is_on: bool) -> KubeObject:
    annotations = {**annotations_of(node), POWER_ANNOTATION: POWER_ON if is_on else POWER_OFF}
    # After a request to switch on, the node becomes schedulable when it is on (execution/energy/power_switches.py).
    return {**with_metadata(node, annotations=annotations), "spec": {**node["spec"], "unschedulable": True}}
