"""Events are deleted when they are old or too many."""

from __future__ import annotations

from tests.simulated_cluster import Cluster, PlainApi

from batkube.controllers.garbage_collection.event_expiry import EventExpiry


def test_events_expire_after_an_hour(world: Cluster) -> None:
    world.create("pods", world.pod("a"))
    world.run(1)
    assert world.events("Started")
    world.run(3700)
    assert not world.store.all("events")


def test_the_oldest_events_are_deleted_if_there_are_too_many(make_world: type[Cluster]) -> None:
    world = make_world("1x64,64Gi")
    EventExpiry(world.world, PlainApi(world.store, lambda: world.now), max_events=10)
    created: list[str] = []
    world.store.subscribe("events", lambda batch, now: created.extend(batch.keys if batch.type == "ADDED" else ()))
    for number in range(10):
        world.create("pods", world.pod(f"p{number}"))
    world.run(1)
    assert len(created) == 40
    assert list(world.store.all("events")) == created[-10:]


def test_events_beyond_the_maximum_leave_no_appointments_behind(make_world: type[Cluster]) -> None:
    """Each overflow left one, an hour ahead: 100 pods per second filled the memory of a server with them."""
    world = make_world("1x64,64Gi")
    EventExpiry(world.world, PlainApi(world.store, lambda: world.now), max_events=10)
    for number in range(10):
        world.create("pods", world.pod(f"p{number}"))
        world.run(1)
    before = len(world.world.agenda)

    for number in range(10, 30):
        world.create("pods", world.pod(f"p{number}"))
        world.run(1)

    assert len(world.world.agenda) <= before
