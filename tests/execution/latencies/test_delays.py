"""Latencies files, and their effects on the pods of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.execution.delay_jobs import DELAY_10, a_job
from tests.execution.latencies.latency_files import NGINX, PROFILES, at, delays, jobs, latencies

import batkube
from batkube.execution.latencies.delays import NO_LATENCIES, FirstPodStep, Latencies, read_latencies
from batkube.kernel.distributions import parse_distribution
from batkube.kernel.errors import InputError
from batkube.kernel.instants import START, as_float_s

if TYPE_CHECKING:
    from conftest import Simulate


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
        ("report: {name: empirical, values: [2, 1]}", ["report", "must not decrease"]),
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


def test_a_pod_that_is_noticed_late_does_not_delay_earlier_pods() -> None:
    some = delays(check="constant:1", cached=1.0, notice=FirstPodStep(parse_distribution(5), parse_distribution(1)))

    late, soon = (as_float_s(some.running_at(at(0), "a", NGINX)) for _ in range(2))

    assert (late, soon) == (6, 2)


# Runs


def test_pods_are_created_after_the_job_controllers_delay(simulate: Simulate, tmp_path: Path) -> None:
    run = simulate(jobs(1), PROFILES, platform="1x1", latencies=latencies(tmp_path, "spawn: 0.5"))

    assert list(run.pods["created"]) == [0.5]
    assert list(run.jobs["submission_time"]) == [0]
    assert list(run.jobs["starting_time"]) == [0.5]


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
        simulate(jobs(20), PROFILES, platform="3x2", latencies=file, seed=seed, out=tmp_path / f"out-{number}")
        for number, seed in enumerate((1, 1, 2))
    ]

    first, again, other = (run.manifest["digest"] for run in runs)
    assert first == again
    assert first != other


def test_a_drawn_latency_that_is_too_long_ends_the_run_with_its_name(simulate: Simulate, tmp_path: Path) -> None:
    latencies = tmp_path / "latencies.yaml"
    latencies.write_text("pull: choice:1e300\n")

    with pytest.raises(batkube.RunFailed, match=r"latency 'pull' was drawn as 1e\+300 s"):
        simulate([a_job("a")], DELAY_10, latencies=latencies)
