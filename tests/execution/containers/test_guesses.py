"""Fidelity notes and events about containers whose behaviour had to be guessed."""

from __future__ import annotations

import pytest
from tests.execution.pod_status import JOB_LIKE, status
from tests.simulated_cluster import Cluster


def test_a_container_of_unknown_behaviour_is_noted_and_has_a_warning(world: Cluster) -> None:
    for name in "abc":
        world.create("pods", world.pod(name, **JOB_LIKE))
    world.run(20)

    (note,) = world.world.notes.rows()
    assert "nothing says how long containers of image app run: they ended after 10s" in str(note["message"])
    assert (note["count"], note["example"]) == (3, "pod default/a, container app")
    assert (
        world.events("UnknownRunTime")
        == ["Nothing says how long container app runs, so it is simulated to end after 10s"] * 3
    )


@pytest.mark.parametrize(
    ("script", "restart", "doubt", "event"),
    [
        (
            "python train.py",
            "Never",
            "program `python` is unknown",
            "Nothing says how long container app runs, so it is simulated",
        ),
        (
            "wget http://x; sleep 5",
            "Never",
            "program `wget` is unknown",
            "The script of container app is not fully",
        ),
        ("serve | tee log", "Always", "`|`", "The script of container app is not fully supported: "),
    ],
    ids=["not understood", "in part", "until it is stopped"],
)
def test_a_script_that_is_not_understood_is_noted_with_its_image_and_has_a_warning(
    world: Cluster, script: str, restart: str, doubt: str, event: str
) -> None:
    pod = world.pod("a", restart=restart)
    pod["spec"]["containers"][0]["command"] = ["sh", "-c", script]
    world.create("pods", pod)
    world.run(60)

    (note,) = world.world.notes.rows()
    assert "a script of image app is not fully supported" in str(note["message"])
    assert str(note["example"]).startswith("pod default/a, container app: ")
    assert doubt in str(note["example"])
    assert world.events("UnknownRunTime")[0].startswith(event)


@pytest.mark.parametrize(
    ("annotations", "restart"), [({"batkube.io/duration": "5s"}, "Never"), ({}, "Always")], ids=["described", "endless"]
)
def test_no_guess_is_noted_for_a_described_or_endless_container(
    world: Cluster, annotations: dict[str, str], restart: str
) -> None:
    world.create("pods", world.pod("a", annotations, restart=restart))
    world.run(3600)

    assert status(world)["phase"] == ("Running" if restart == "Always" else "Succeeded")
    assert not world.world.notes.rows()
    assert not world.events("UnknownRunTime")
