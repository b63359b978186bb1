"""Repeated events are counted."""

from __future__ import annotations

from tests.simulated_cluster import Cluster

from batkube.cluster.event_recorder import EventNote, EventRecorder


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


def test_a_component_that_records_many_events_about_an_object_is_throttled(world: Cluster) -> None:
    """client-go: 25 events at once, then one in five minutes; counts include the dropped repetitions."""
    for name in "ab":
        world.create("pods", world.pod(name))
    one, other = (world.get("pods", f"default/{name}") for name in "ab")
    events = EventRecorder(world.world, world.api, "tester")
    for number in range(24):
        events.record(one, "pods", EventNote("Normal", "Odd", f"{number}"), world.now)
    for _ in range(10):
        events.record(one, "pods", EventNote("Normal", "Odd", "again"), world.now)
    events.record(other, "pods", EventNote("Normal", "Odd", "of another object"), world.now)
    events.record(one, "pods", EventNote("Normal", "Odd", "of another node", host="n"), world.now)

    assert world.events("Odd")[24:] == ["again", "of another object", "of another node"]
    world.run(299)
    events.record(one, "pods", EventNote("Normal", "Odd", "too early"), world.now)
    world.run(1)
    events.record(one, "pods", EventNote("Normal", "Odd", "again"), world.now)
    (again,) = [each for each in world.store.all("events").values() if each["message"] == "again"]
    assert again["count"] == 11
    assert "too early" not in world.events("Odd")
