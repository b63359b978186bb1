"""Image pulls: the pull policy, and one pull at a time on each node."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.execution.delay_jobs import DELAY_10, a_job, row
from tests.execution.latencies.latency_files import NGINX, at, delays

from batkube.execution.latencies.image_pulls import pull_policy_of
from batkube.kernel.instants import START, as_float_s

if TYPE_CHECKING:
    from conftest import Simulate


PINNED = {"name": "job", "image": "nginx:1.25"}


@pytest.mark.parametrize(
    ("container", "policy"),
    [
        ({"image": "nginx"}, "Always"),
        ({"image": "nginx:latest"}, "Always"),
        ({"image": "registry.local:5000/team/nginx"}, "Always"),
        ({"image": "nginx:1.25"}, "IfNotPresent"),
        ({"image": "registry.local:5000/nginx:1.25"}, "IfNotPresent"),
        ({"image": "nginx@sha256:abc"}, "IfNotPresent"),
        ({"image": "nginx", "imagePullPolicy": "Never"}, "Never"),
    ],
)
def test_the_pull_policy_has_the_default_of_kubernetes(container: dict[str, object], policy: str) -> None:
    assert pull_policy_of(container) == policy


def test_an_image_is_pulled_once_and_checked_for_every_pod_under_the_policy_always() -> None:
    some = delays(pull="constant:20", check="constant:1")

    assert as_float_s(some.running_at(at(0), "a", NGINX)) == 20
    assert as_float_s(some.running_at(at(0), "a", PINNED)) == 40, "after the pull that was under way"
    assert as_float_s(some.running_at(at(100), "a", NGINX)) == 101
    assert as_float_s(some.running_at(at(200), "a", PINNED)) == 200
    assert as_float_s(some.running_at(at(200), "b", {**PINNED, "imagePullPolicy": "Never"})) == 200


def test_a_kubelet_pulls_one_image_at_a_time() -> None:
    some = delays(check="constant:1", cached=1.0)

    starts = [as_float_s(some.running_at(at(0), "a", NGINX)) for _ in range(3)]

    assert starts == [1, 2, 3]
    assert as_float_s(some.running_at(at(0), "b", NGINX)) == 1


def test_the_share_of_cached_nodes_is_as_configured() -> None:
    some = delays(pull="constant:10", cached=0.75)

    pulled = sum(some.running_at(START, f"node-{n}", PINNED) > START for n in range(2000))

    assert 440 < pulled < 560


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 2)), max_size=30),
    st.sampled_from(["uniform:0,5", "constant:2", "exponential:3"]),
)
def test_the_pulls_of_one_node_never_overlap(bindings: list[tuple[int, int]], check: str) -> None:
    """A kubelet pulls one image at a time, whenever and wherever pods are bound."""
    some = delays(check=check, notice="uniform:0,9", cached=1.0)

    for instant, node in sorted(bindings):
        some.running_at(at(instant), f"node-{node}", NGINX)

    for turns in some._images._pull_slots.values():
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(turns))


def test_delays_add_up_and_an_image_is_pulled_once_per_node(simulate: Simulate, tmp_path: Path) -> None:
    latencies = tmp_path / "latencies.yaml"
    latencies.write_text("notice: 0.5\npull: 3\ncreate: 0.25\nstart: 0.25\nreport: 2\n")

    run = simulate([a_job("a"), a_job("b")], DELAY_10, platform="1x1", latencies=latencies)

    first, second = row(run, "a"), row(run, "b")
    assert (first["starting_time"], first["finish_time"]) == (4, 14)
    assert second["scheduled_time"] == 16, "the node is free when the end is reported"
    assert (second["starting_time"], second["finish_time"]) == (17, 27)


def test_a_pod_waits_for_a_running_pull_of_its_image(simulate: Simulate, tmp_path: Path) -> None:
    latencies = tmp_path / "latencies.yaml"
    latencies.write_text("pull: 30\n")
    profiles = {"d10": {"type": "delay", "delay": 10, "cpu": 1}}

    run = simulate([a_job("a"), a_job("b", subtime=12)], profiles, platform="1x2", latencies=latencies)

    assert (row(run, "a")["starting_time"], row(run, "b")["starting_time"]) == (30, 30)
