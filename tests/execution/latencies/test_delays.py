"""Latencies files, and their effects on the pods of a run."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.execution.latencies.delays import NO_LATENCIES, Delays, FirstPodStep, Latencies, read_latencies
from batkube.execution.latencies.image_pulls import pull_policy_of
from batkube.execution.latencies.request_limit import RequestLimit
from batkube.kernel.distributions import parse_distribution
from batkube.kernel.errors import InputError
from batkube.kernel.instants import START, Instant, as_float_s, seconds
from batkube.kernel.streams import Streams
from batkube.workloads.model import Delay, Job

if TYPE_CHECKING:
    from conftest import Simulate

NGINX = {"name": "job", "image": "nginx"}
PINNED = {"name": "job", "image": "nginx:1.25"}
DELAY_10 = {"d10": {"type": "delay", "delay": 10, "cpu": 1}}


def jobs(count: int, every: float = 0) -> list[dict[str, object]]:
    return [{"id": str(n), "subtime": n * every, "res": 1, "profile": "d10"} for n in range(1, count + 1)]


def latencies(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "latencies.yaml"
    path.write_text(text)
    return path


def delays(**steps: object) -> Delays:
    parsed = {name: parse_distribution(value) if isinstance(value, str) else value for name, value in steps.items()}
    return Delays(Latencies(**parsed), Streams(0))  # type: ignore[arg-type]


def at(instant: float) -> Instant:
    return Instant(seconds(instant))


# The file


def test_a_file_of_plain_steps_is_read(tmp_path: Path) -> None:
    read = read_latencies(
        latencies(tmp_path, "notice: 0.5\npull: lognormal:4,0.5\nreport: {name: exponential, mean: 1}\n")
    )

    assert read == Latencies(
        notice=parse_distribution(0.5),
        pull=parse_distribution("lognormal:4,0.5"),
        report=parse_distribution("exponential:1"),
    )


def test_all_keys_of_a_file_are_read_and_shown_in_the_manifest(tmp_path: Path) -> None:
    text = """
client: {qps: 5, burst: 10}
spawn: 0.02
notice: {first: 3, later: {name: empirical, values: [0.4, 0.5, 3]}}
check: 0.95
cached: 0.9
system-pods: [{name: coredns, cpu: 100m, memory: 70Mi}]
"""
    read = read_latencies(latencies(tmp_path, text))

    assert read.describe() == {
        "spawn": "constant:0.02",
        "notice.first": "constant:3",
        "notice.later": "empirical:0.4,0.5,3",
        "check": "constant:0.95",
        "cached": "0.9",
        "client": "qps 5, burst 10",
        "system-pods": "coredns, cpu 100m, memory 70Mi",
    }
    assert read.run_only_keys == ["spawn", "client", "system-pods"]
    assert not NO_LATENCIES.run_only_keys


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("notice: {first: 1}", ["notice", "both `first` and `later`"]),
        ("pull: {first: 1, later: 2}", ["pull", "name"]),
        ("notice: -1", ["notice", "-1 is negative"]),
        ("create: {first: 1, later: constant:-0.5}", ["create", "-0.5 is negative"]),
        ("notice: 1e30", ["notice", "longer than a run can last"]),
        ("cached: 2", ["cached", "between 0"]),
        ("cached: lots", ["cached", "between 0"]),
        ("client: 5", ["client", "{qps: 5, burst: 10}"]),
        ("client: {qps: 0, burst: 1}", ["client", "qps is 0"]),
        ("client: {qps: 5, burst: 0}", ["client", "burst is 0"]),
        ("system-pods: coredns", ["system-pods", "list"]),
        ("system-pods: [coredns]", ["system-pods", "entry 1"]),
        ("system-pods: [{name: a, cpu: plenty}]", ["system-pods", "'a'", "plenty"]),
        ("system-pods: [{name: a}, {name: a}]", ["system-pods", "two pods"]),
        ("report: {name: empirical, values: [2, 1]}", ["report", "must not fall"]),
        ("report: {name: empirical, values: [2]}", ["report", "two quantiles"]),
        ("speed: 3", ["speed", "system-pods"]),
    ],
)
def test_an_invalid_file_is_rejected_with_its_place(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        read_latencies(latencies(tmp_path, text))

    assert all(word in str(refused.value) for word in ["latencies.yaml", *words])


# Steps of a pod's start


def test_the_first_pod_on_a_node_has_its_own_latency() -> None:
    step = FirstPodStep(parse_distribution(3), parse_distribution(0.5))
    some = delays(notice=step)

    starts = [as_float_s(some.running_at(START, node, NGINX)) for node in ("a", "a", "b", "a")]

    assert starts == [3, 0.5, 3, 0.5]


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


def test_an_image_is_pulled_once_and_then_checked_for_every_pod_if_its_policy_is_always() -> None:
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


def test_a_pod_that_is_noticed_late_does_not_delay_earlier_pods() -> None:
    some = delays(check="constant:1", cached=1.0, notice=FirstPodStep(parse_distribution(5), parse_distribution(1)))

    late, soon = (as_float_s(some.running_at(at(0), "a", NGINX)) for _ in range(2))

    assert (late, soon) == (6, 2)


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


# Runs


def test_a_limited_client_submits_a_burst_and_then_at_its_rate(simulate: Simulate, tmp_path: Path) -> None:
    file = latencies(tmp_path, "client: {qps: 5, burst: 10}")

    run = simulate(jobs(200), DELAY_10, platform="200x1", latencies=file)

    submitted = sorted(run.jobs["submission_time"])
    assert submitted[:10] == [0] * 10
    assert submitted[10:13] == [0.2, 0.4, 0.6]
    assert submitted[-1] == 38, "as the published driver needed"
    assert (run.jobs["waiting_time"] == 0).all()


def test_a_limit_above_the_rate_of_jobs_has_no_effect(simulate: Simulate, tmp_path: Path) -> None:
    file = latencies(tmp_path, "client: {qps: 5, burst: 1}")

    run = simulate(jobs(20, every=1), DELAY_10, platform="20x1", latencies=file)

    assert sorted(run.jobs["submission_time"]) == list(range(1, 21))


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=60).map(sorted), st.integers(1, 8), st.sampled_from([0.5, 2, 5])
)
def test_no_window_holds_more_jobs_than_the_clients_limit(due: list[int], burst: int, qps: float) -> None:
    """As in golang.org/x/time/rate: at most burst + qps * length in any window; no job is early; the order is kept."""
    profile = Delay(name="d", duration=seconds(1))
    jobs = [Job(workload="w", name=str(n), submit=at(t), size=1, profile=profile) for n, t in enumerate(due)]

    submitted = [as_float_s(job.submit) for job in RequestLimit(qps, burst).throttle(jobs)]

    assert submitted == sorted(submitted)
    assert all(real >= wanted for real, wanted in zip(submitted, due, strict=True))
    for first, begin in enumerate(submitted):
        for last in range(first, len(submitted)):
            assert last - first + 1 <= burst + qps * (submitted[last] - begin) + 1e-6


def test_pods_are_created_after_the_job_controllers_delay(simulate: Simulate, tmp_path: Path) -> None:
    run = simulate(jobs(1), DELAY_10, platform="1x1", latencies=latencies(tmp_path, "spawn: 0.5"))

    assert list(run.pods["created"]) == [0.5]
    assert list(run.jobs["submission_time"]) == [0]
    assert list(run.jobs["starting_time"]) == [0.5]


def test_a_system_pod_keeps_jobs_of_a_whole_node_off_its_node(simulate: Simulate, tmp_path: Path) -> None:
    file = latencies(tmp_path, "system-pods: [{name: coredns, cpu: 100m}]")

    run = simulate(jobs(6), DELAY_10, platform="4x1", scheduler="policy:first-fit", latencies=file)

    assert sorted(run.jobs["allocated_resources"].unique()) == ["0", "1", "2"]
    assert run.jobs["finish_time"].max() == 20
    assert run.manifest["latencies"]["system-pods"] == "coredns, cpu 100m"


def test_several_system_pods_get_one_node_each(simulate: Simulate, tmp_path: Path) -> None:
    file = latencies(tmp_path, "system-pods: [{name: a, cpu: 100m}, {name: b, cpu: 100m}]")

    run = simulate(jobs(6), DELAY_10, platform="4x1", scheduler="policy:first-fit", latencies=file)

    assert sorted(run.jobs["allocated_resources"].unique()) == ["0", "1"]


def test_a_job_without_room_beside_a_system_pod_is_rejected_before_the_run(simulate: Simulate, tmp_path: Path) -> None:
    file = latencies(tmp_path, "system-pods: [{name: coredns, cpu: 100m}]")

    with pytest.raises(InputError, match="at most cpu 900m"):
        simulate(jobs(1), DELAY_10, platform="1x1", latencies=file)


def test_a_system_pod_that_does_not_fit_is_rejected(simulate: Simulate, tmp_path: Path) -> None:
    file = latencies(tmp_path, "system-pods: [{name: huge, cpu: 2}]")

    with pytest.raises(
        InputError, match=r"latencies.yaml: system-pods: .*not have enough cpu for the system pod 'huge'"
    ):
        simulate(jobs(1), DELAY_10, platform="1x1", latencies=file)


def test_the_same_seed_gives_the_same_run_with_every_kind_of_latency(simulate: Simulate, tmp_path: Path) -> None:
    text = """
client: {qps: 2, burst: 3}
spawn: exponential:0.1
notice: {first: "uniform:1,4", later: {name: empirical, values: [0.4, 0.5, 3]}}
pull: lognormal:5,0.4
check: 0.95
cached: 0.5
report: uniform:0,1
"""
    file = latencies(tmp_path, text)

    runs = [
        simulate(jobs(20), DELAY_10, platform="3x2", latencies=file, seed=seed, out=tmp_path / f"out-{number}")
        for number, seed in enumerate((1, 1, 2))
    ]

    first, again, other = (run.manifest["digest"] for run in runs)
    assert first == again
    assert first != other
