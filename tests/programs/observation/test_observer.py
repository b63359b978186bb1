"""Observation of external programs: failed scheduling attempts that the API shows."""

from __future__ import annotations

import pytest

from batkube.cluster.mapping import POD
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import START, Instant
from batkube.kernel.streams import Streams
from batkube.programs.observation.observer import EVENTS, ProgramObserver

MESSAGE = "0/1 nodes are available: 1 Insufficient cpu."
LATER = Instant(START + 60)


@pytest.fixture
def world() -> World:
    return World(Streams(0))


def make_pod(world: World, uid: str) -> None:
    pod: KubeObject = {"metadata": {"name": "a", "namespace": "default", "uid": uid}, "spec": {}, "status": {}}
    world.store.create(POD, [Key("default/a")], [pod], START)


def create_event(world: World, name: str, reference: KubeObject) -> None:
    """Create an event that reports three failed attempts."""
    event: KubeObject = {
        "metadata": {"name": name, "namespace": "default"},
        "reason": "FailedScheduling",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "a", **reference},
        "note": MESSAGE,
        "series": {"count": 3},
    }
    world.store.create(EVENTS, [Key(f"default/{name}")], [event], LATER)


@pytest.mark.parametrize("reference", [{"uid": "1"}, {}])
def test_an_event_reports_how_often_scheduling_failed(world: World, reference: KubeObject) -> None:
    observer = ProgramObserver(world)
    make_pod(world, "1")

    create_event(world, "a.1", reference)

    assert observer.pop_attempts(Key("default/a")) == (3, MESSAGE)


def test_an_event_of_a_deleted_pod_is_not_attributed_to_a_new_pod_of_its_name(world: World) -> None:
    """client-go reports a series of events minutes later; by then an evicted job may have been resubmitted."""
    observer = ProgramObserver(world)
    make_pod(world, "2")

    create_event(world, "a.1", {"uid": "1"})

    assert observer.pop_attempts(Key("default/a")) == (0, "")


def test_an_event_of_another_object_is_ignored(world: World) -> None:
    observer = ProgramObserver(world)

    create_event(world, "a.1", {"uid": "1"})
    make_pod(world, "1")

    assert observer.pop_attempts(Key("default/a")) == (0, "")
