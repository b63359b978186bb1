"""Policies that an experiment is given as classes and instances."""

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
    """First come, first served, written anew."""

    def decide(self, view) -> Iterator[Start]:  # noqa: ANN001 - as a user would write it
        for job in view.queue:
            place = view.free.fit(job)
            if place is None:
                return
            yield Start(job, place)


class Patience(Policy):
    """Starts nothing before its time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def decide(self, view) -> Iterator[Start]:  # noqa: ANN001
        if view.now < self.seconds * 10**9:
            return
        yield from Mine().decide(view)


def test_classes_are_compared_with_policies_by_name(tmp_path: Path) -> None:
    axes = {"scheduler": {"mine": Mine, "theirs": "policy:fcfs"}}

    found = batkube.experiment({"base": BASE, "axes": axes, "seeds": 2}, tmp_path / "out", jobs=2)

    assert not found.failures
    waits = found.results.pivot_table(index="seed", columns="scheduler", values="mean_waiting_time")
    assert (waits["mine"] == waits["theirs"]).all()
    (name,) = {found.run(run["run"]).manifest["scheduler"] for run in found.runs if run["axes"]["scheduler"] == "mine"}
    assert name.startswith("policy:") and ".Mine@" in name  # noqa: PT018


def test_instances_differ_by_what_they_were_made_with_and_are_not_run_twice(tmp_path: Path) -> None:
    experiment = {"base": BASE, "axes": {"scheduler": {"soon": Patience(1), "late": Patience(100)}}}

    first = written(batkube.experiment(experiment, tmp_path / "out", jobs=1))
    waits = batkube.ExperimentResults(tmp_path / "out").results.set_index("scheduler")["mean_waiting_time"]
    again = written(batkube.experiment(experiment, tmp_path / "out", jobs=1))
    other = {"base": BASE, "axes": {"scheduler": {"soon": Patience(2), "late": Patience(100)}}}
    changed = written(batkube.experiment(other, tmp_path / "out", jobs=1))

    assert waits["late"] > waits["soon"]
    assert again == first
    assert len(changed.keys() & first.keys()) == 1


def written(found: batkube.ExperimentResults) -> dict[str, int]:
    """Return when each run of an experiment was written."""
    places = {run["run"]: found.folder / "runs" / run["run"] / "manifest.json" for run in found.runs}
    return {name: place.stat().st_mtime_ns for name, place in places.items()}


def test_what_cannot_be_sent_is_told_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Patience(1)
    held.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="cannot be sent to other processes"):
        batkube.experiment({"base": {**BASE, "scheduler": held}}, tmp_path / "out")

    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    monkeypatch.setattr(Mine, "__module__", "__main__")
    with pytest.raises(InputError, match="pip install cloudpickle"):
        batkube.experiment({"base": {**BASE, "scheduler": Mine}}, tmp_path / "out")
    assert not (tmp_path / "out").exists()
