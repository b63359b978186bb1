"""The calculated detection time of an unresponsive node equals that of a simulated periodic monitor."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batkube.cluster.mapping import NODE, ResourceModel, node_of
from batkube.cluster.object_meta import condition_of
from batkube.cluster.store import Batch
from batkube.cluster.store_client import StoreClient
from batkube.cluster.world import World
from batkube.controllers.nodes.lifecycle import NodeLifecycleController
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant, seconds
from batkube.kernel.streams import Streams
from batkube.platforms.reader import read_platform
from batkube.timing.loop import Loop

_MS = 1_000_000


def simulated_detection(first_look: int, registered: int, failed: int) -> int:
    """Return when a monitor that looks every 5 s finds a lease unchanged for more than 50 s, in milliseconds.

    The kubelet renews every 10 s until it fails; at one instant it fails before it renews, and renews before a look.
    """
    seen, changed, look = -1, 0, first_look
    while True:
        renewals = [at for at in range(registered, min(failed, look + 1), 10_000)] or [registered]
        if look >= registered:
            if renewals[-1] != seen:
                seen, changed = renewals[-1], look
            if look - changed > 50_000:
                return look
        look += 5_000


@given(
    first_look=st.integers(100, 20_000),
    registered_after=st.integers(0, 30_000),
    failed_after=st.one_of(st.integers(1, 200_000), st.integers(1, 20).map(lambda tens: tens * 10_000)),
)
def test_an_unresponsive_node_is_detected_when_the_periodic_monitor_would_detect_it(
    first_look: int, registered_after: int, failed_after: int
) -> None:
    registered = first_look + registered_after
    failed = registered + failed_after
    world = World(Streams(0))
    # A monitor that comes up begins 100 ms later.
    world.clock.advance(Instant((first_look - 100) * _MS))
    noticed: list[int] = []

    def on_nodes_changed(batch: Batch, now: Instant) -> None:
        if (condition_of(batch.objects[0], "Ready") or {}).get("status") == "Unknown" and not noticed:
            noticed.append(now // _MS)

    NodeLifecycleController(world, StoreClient(world.store))
    world.store.subscribe(NODE, on_nodes_changed)
    (machine,) = read_platform("1x1").machines
    key, node = node_of(machine, ResourceModel.REQUESTS, Instant(registered * _MS))
    world.agenda.book(Instant(registered * _MS), Rank.START, lambda now: world.store.create(NODE, [key], [node], now))
    world.agenda.book(Instant(failed * _MS), Rank.TIMELINE, lambda now: world.heartbeats.stop(key, now))
    Loop(world).run_until(Instant(failed * _MS + seconds(100)))

    assert noticed == [simulated_detection(first_look, registered, failed)]


def test_a_month_of_a_thousand_nodes_costs_nothing_while_none_fails() -> None:
    world = World(Streams(0))
    NodeLifecycleController(world, StoreClient(world.store))
    machines = read_platform("1000x1").machines
    nodes = [node_of(machine, ResourceModel.REQUESTS, Instant(0)) for machine in machines]
    world.store.create(NODE, [key for key, _ in nodes], [node for _, node in nodes], Instant(0))
    loop = Loop(world)

    loop.run_until(Instant(seconds(30 * 86400)))

    assert loop.executed == 1000, "each node was looked at once, when it came"
