"""Leases of nodes: renewed every ten seconds while the node is alive, without keeping the run alive."""

from __future__ import annotations

import pytest

from batkube.cluster.mapping import NODE, ResourceModel, node_of
from batkube.cluster.store import Batch, Key
from batkube.cluster.store_client import StoreClient
from batkube.cluster.world import World
from batkube.execution.nodes.leases import LEASE, NodeLeases
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant, rfc3339_micro, seconds
from batkube.kernel.streams import Streams
from batkube.platforms.reader import read_platform
from batkube.timing.loop import Loop


class Kubelets:
    """Two nodes that exist from the first second on, and the writes of their leases."""

    def __init__(self) -> None:
        self.world = World(Streams(0))
        #: In seconds, whose leases were written in one batch.
        self.writes: list[tuple[float, list[str]]] = []
        NodeLeases(self.world, StoreClient(self.world.store))
        self.world.store.subscribe(LEASE, self._hear)
        self.at(1, lambda now: self.register(now))

    def _hear(self, batch: Batch, now: Instant) -> None:
        assert all(lease["spec"]["renewTime"] == rfc3339_micro(now) for lease in batch.objects)
        self.writes.append((now / 1e9, [key.removeprefix("kube-node-lease/node-") for key in batch.keys]))

    def register(self, now: Instant) -> None:
        nodes = [node_of(one, ResourceModel.REQUESTS, now) for one in read_platform("2x1").machines]
        self.world.store.create(NODE, [key for key, _ in nodes], [node for _, node in nodes], now)

    def at(self, second: float, act: object) -> None:
        assert callable(act)
        self.world.agenda.book(Instant(int(second * 1e9)), Rank.TIMELINE, act)

    def go(self, until: float) -> None:
        Loop(self.world).run_until(Instant(int(until * 1e9)))


@pytest.fixture
def kubelets() -> Kubelets:
    return Kubelets()


def test_a_lease_is_created_with_its_node_and_all_are_renewed_in_one_write(kubelets: Kubelets) -> None:
    kubelets.go(25)
    assert kubelets.writes == [(1, ["0"]), (1, ["1"]), (11, ["0", "1"]), (21, ["0", "1"])]
    lease = kubelets.world.store.objects(LEASE, [Key("kube-node-lease/node-0")])[0]
    assert lease["spec"] == {
        "holderIdentity": "node-0",
        "leaseDurationSeconds": 40,
        "renewTime": "2000-01-01T00:00:21.000000Z",
    }
    assert lease["metadata"]["ownerReferences"][0]["name"] == "node-0"


def test_a_silent_node_does_not_renew_from_its_failure_until_it_is_back(kubelets: Kubelets) -> None:
    kubelets.at(11, lambda now: kubelets.world.heartbeats.stop("node-0", now))
    kubelets.at(34, lambda now: kubelets.world.heartbeats.resume("node-0", now))
    kubelets.go(45)
    assert kubelets.writes[2:] == [(11, ["1"]), (21, ["1"]), (31, ["1"]), (34, ["0"]), (41, ["1"]), (44, ["0"])]


def test_a_deleted_node_does_not_renew(kubelets: Kubelets) -> None:
    kubelets.at(5, lambda now: kubelets.world.store.delete(NODE, [Key("node-0")], now))
    kubelets.go(25)
    assert kubelets.writes[2:] == [(11, ["1"]), (21, ["1"])]


def test_renewals_do_not_keep_a_run_alive_and_end_with_the_last_node(kubelets: Kubelets) -> None:
    kubelets.go(25)
    assert len(kubelets.world.agenda) == 0
    assert kubelets.world.agenda.due == seconds(31)
    kubelets.at(28, lambda now: kubelets.world.store.delete(NODE, [Key("node-0"), Key("node-1")], now))
    kubelets.go(31)
    assert kubelets.world.agenda.due is None
