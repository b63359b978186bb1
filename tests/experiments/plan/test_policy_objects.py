"""Experiments with policies as Python classes and instances."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import batkube
from batkube.kernel.errors import InputError
from batkube.policies import Policy, Start

BASE = {"workload": {"generate": "poisson", "jobs": 30, "interval": "10s", "size": "choice:1,2,4"}, "platform": "8x1"}


class Mine(Policy):
    """First come, first served."""

    def decide(self, view) -> Iterator[Start]:  # noqa: ANN001 - as a user would write it
        for job in view.queue:
            place = view.free.fit(job)
            if place is None:
                return
            yield Start(job, place)


class DelayedStart(Policy):
    """Starts no job before a given time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def decide(self, view) -> Iterator[Start]:  # noqa: ANN001
        if view.now < self.seconds * 10**9:
            return
        yield from Mine().decide(view)


def test_classes_are_compared_with_policies_by_name(tmp_path: Path) -> None:
    axes = {"scheduler": {"mine": Mine, "fcfs": "policy:fcfs"}}

    experiment = batkube.experiment({"base": BASE, "axes": axes, "seeds": 2}, tmp_path / "out", jobs=2)

    assert not experiment.failures
    waits = experiment.results.pivot_table(index="seed", columns="scheduler", values="mean_waiting_time")
    assert (waits["mine"] == waits["fcfs"]).all()
    (name,) = {
        experiment.run(run["run"]).manifest["scheduler"]
        for run in experiment.runs
        if run["axes"]["scheduler"] == "mine"
    }
    assert name.startswith("policy:") and ".Mine@" in name  # noqa: PT018


def test_policy_instances_are_distinguished_by_their_attributes(tmp_path: Path) -> None:
    experiment = {"base": BASE, "axes": {"scheduler": {"soon": DelayedStart(1), "late": DelayedStart(100)}}}

    first = write_times(batkube.experiment(experiment, tmp_path / "out", jobs=1))
    waits = batkube.ExperimentResults(tmp_path / "out").results.set_index("scheduler")["mean_waiting_time"]
    again = write_times(batkube.experiment(experiment, tmp_path / "out", jobs=1))
    other_content = {"base": BASE, "axes": {"scheduler": {"soon": DelayedStart(2), "late": DelayedStart(100)}}}
    changed = write_times(batkube.experiment(other_content, tmp_path / "out", jobs=1))

    assert waits["late"] > waits["soon"]
    assert again == first
    assert len(changed.keys() & first.keys()) == 1


def write_times(experiment: batkube.ExperimentResults) -> dict[str, int]:
    """Return the time at which each run of an experiment was written."""
    paths = {run["run"]: experiment.folder / "runs" / run["run"] / "manifest.json" for run in experiment.runs}
    return {name: path.stat().st_mtime_ns for name, path in paths.items()}


def test_a_policy_that_cannot_be_pickled_is_rejected_before_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = DelayedStart(1)
    policy.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="cannot be sent to other processes"):
        batkube.experiment({"base": {**BASE, "scheduler": policy}}, tmp_path / "out")

    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    monkeypatch.setattr(Mine, "__module__", "__main__")
    with pytest.raises(InputError, match="pip install cloudpickle"):
        batkube.experiment({"base": {**BASE, "scheduler": Mine}}, tmp_path / "out")
    assert not (tmp_path / "out").exists()
