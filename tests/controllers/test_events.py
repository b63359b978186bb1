"""Events are counted when they repeat, and deleted when they are old or too many."""

from __future__ import annotations

from tests.controllers.conftest import Cluster, PlainApi

from batkube.cluster.event_recorder import EventNote, EventRecorder
from batkube.controllers.garbage_collection.event_expiry import EventExpiry


def test_an_event_that_repeats_is_counted(world: Cluster) -> None:
    world.create("pods", world.pod("a"))
    about = world.get("pods", "default/a")
    events = EventRecorder(world.world, world.api, "tester")
    for _ in range(3):
        events.record(about, "pods", EventNote("Warning", "Odd", "something is odd"), world.now)
        world.run(10)
    (event,) = [one for one in world.store.all("events").values() if one["reason"] == "Odd"]
    assert event["count"] == 3
    assert event["firstTimestamp"] < event["lastTimestamp"]
    assert event["involvedObject"]["uid"] == about["metadata"]["uid"]
    assert event["source"] == {"component": "tester"}


def test_new_events_are_counted_in_a_series(world: Cluster) -> None:
    world.create("pods", world.pod("a"))
    events = EventRecorder(world.world, world.api, "tester", host="here", as_series=True)
    note = EventNote("Normal", "Odd", "odd", action="Testing")
    for _ in range(2):
        events.record(world.get("pods", "default/a"), "pods", note, world.now)
    (event,) = [one for one in world.store.all("events").values() if one["reason"] == "Odd"]
    assert event["series"]["count"] == 2
    assert (event["action"], event["reportingComponent"]) == ("Testing", "tester")
    assert event["firstTimestamp"] is None


def test_many_events_of_one_instant_have_different_names(world: Cluster) -> None:
    world.create("pods", world.pod("a"))
    about = world.get("pods", "default/a")
    one, other = (EventRecorder(world.world, world.api, name) for name in ("one", "other"))
    for number in range(5):
        one.record(about, "pods", EventNote("Normal", "Odd", f"one {number}"), world.now)
        other.record(about, "pods", EventNote("Normal", "Odd", f"other {number}"), world.now)
    assert len(world.events("Odd")) == 10


def test_events_expire_after_an_hour(world: Cluster) -> None:
    world.create("pods", world.pod("a"))
    world.run(1)
    assert world.events("Started")
    world.run(3700)
    assert not world.store.all("events")


def test_the_oldest_events_are_deleted_if_there_are_too_many(make_world: type[Cluster]) -> None:
    world = make_world("1x64,64Gi")
    EventExpiry(world.world, PlainApi(world.store, lambda: world.now), max_events=10)
    made: list[str] = []
    world.store.subscribe("events", lambda batch, now: made.extend(batch.keys if batch.type == "ADDED" else ()))
    for number in range(10):
        world.create("pods", world.pod(f"p{number}"))
    world.run(1)
    assert len(made) == 40
    assert list(world.store.all("events")) == made[-10:]
