"""The statements of docs/explanation/trust.md about the recorded k3s runs agree with their files, where available."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, median, stdev

import numpy as np
import pytest

from batkube.calibration.recorded_runs import Floats, RecordedRun, read_recorded_runs
from batkube.outputs.measures.intervals import sample_of

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = {"burst": "200_delay170_?_jobs.csv", "spaced": "spaced_200_delay170_?_jobs.csv", "KIT": "KIT_?_jobs.csv"}
#: The time between rounds of burst, in seconds.
_GAP_S = 60
#: One kind of `notice` is shorter than this, the other one longer.
_LONG_S = 1.5


@pytest.fixture(scope="module")
def page() -> str:
    """The page, on one line."""
    return " ".join((REPOSITORY / "docs" / "explanation" / "trust.md").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def runs(shared_data: Path) -> dict[str, list[RecordedRun]]:
    folder = shared_data / "batkube" / "emulated"
    return {name: list(read_recorded_runs(sorted(folder.glob(pattern)))) for name, pattern in FILES.items()}


def waits(run: RecordedRun) -> Floats:
    return run.started - run.submitted


def makespan(run: RecordedRun) -> float:
    return float(run.finished.max())


def notices(run: RecordedRun) -> Floats:
    """Return, in order, how long kubelets took to begin with each pod that was not the first on its node."""
    known = ~run.is_first & ~np.isnan(run.pulling) & ~np.isnan(run.scheduled)
    order = np.argsort(run.pulling[known], kind="stable")
    return (run.pulling - run.scheduled)[known][order]


def together(runs: list[RecordedRun], of: str) -> Floats:
    """Return a step of all pods of all runs: from one event to another."""
    begin, end = of.split()
    return np.concatenate([getattr(run, end) - getattr(run, begin) for run in runs])


def test_the_documented_columns_are_those_of_the_recorded_files(runs: dict[str, list[RecordedRun]], page: str) -> None:
    for name in ("burst", "spaced"):
        for measure, values in (
            ("makespan", [makespan(run) for run in runs[name]]),
            ("mean wait", [float(waits(run).mean()) for run in runs[name]]),
        ):
            sample = sample_of(values)
            assert f"| {name}, {measure} | {sample.mean:.1f} ± {sample.high - sample.mean:.1f} |" in page
        quantiles = np.quantile(np.concatenate([waits(run) for run in runs[name]]), [0.05, 0.25, 0.5, 0.75, 0.95, 1])
        cells = " | ".join(f"{value:.0f}" for value in quantiles)
        assert f"| {name}, measured (10 runs) | {cells} |" in page
    (kit,) = runs["KIT"]
    assert f"| KIT, makespan | {makespan(kit):.1f} |" in page
    assert f"| KIT, mean wait | {waits(kit).mean():.1f} |" in page
    assert f"so that the last of the 200 jobs was submitted after {runs['burst'][0].submitted.max():.0f} s" in page


def test_one_node_of_sixteen_never_ran_a_job(runs: dict[str, list[RecordedRun]], page: str) -> None:
    for run in (*runs["burst"], *runs["spaced"]):
        at_once = [int(((run.started <= moment) & (run.finished > moment)).sum()) for moment in run.started]
        assert max(at_once) == 15
    assert "In none of the 20 runs were more than 15 jobs running at once" in page


def test_the_documented_steps_of_a_pod_are_the_recorded_ones(runs: dict[str, list[RecordedRun]], page: str) -> None:
    later = np.concatenate([~run.is_first for run in runs["burst"]])
    start = np.nanmean(together(runs["burst"], "scheduled started")[later])
    end = np.nanmean(np.concatenate([run.execution_times - 170 for run in runs["burst"]]))
    checks = [step[step < 3].mean() for name in ("burst", "spaced") if len(step := _checks(runs[name]))]
    notice = np.concatenate([notices(run) for run in runs["burst"]])
    long = notice > _LONG_S

    assert f"Every pod takes about {start:.1f} s to start, and its end is reported about {end:.1f} s late" in page
    assert f"each pod checks the registry ({fmean(checks):.2f} s)" in page
    usual, longer = notice[~long].mean(), notice[long].mean()
    assert f"needs {usual:.1f} s before it checks the registry, or {longer:.1f} s in a quarter of all cases" in page
    assert 0.22 < long.mean() < 0.28


def _checks(runs: list[RecordedRun]) -> Floats:
    step = together(runs, "pulling pulled")
    return step[~np.isnan(step)]


def test_the_documented_effects_beside_the_columns_are_recorded(runs: dict[str, list[RecordedRun]], page: str) -> None:
    distances = []
    for run in runs["spaced"]:
        for node in sorted(set(run.nodes) - {""}):
            own = np.array([one == node for one in run.nodes])
            order = np.argsort(run.started[own], kind="stable")
            ends, next_ones = run.finished[own][order][:-1], run.scheduled[own][order][1:]
            had_waited = run.submitted[own][order][1:] < ends
            distances += list((next_ones - ends)[had_waited & ~np.isnan(next_ones)])
    assert f"the next pod was bound {median(distances) * 1000:.0f} ms (median) after it on the same node" in page


def test_the_documented_limits_are_those_of_the_recorded_runs(runs: dict[str, list[RecordedRun]], page: str) -> None:
    spans = sorted(makespan(run) for run in runs["burst"])
    neighbours = {name: _correlation(runs[name]) for name in ("burst", "spaced")}
    pulls = {name: _pulls(runs[name]) for name in ("burst", "spaced")}
    missing = {name: np.isnan(together(runs[name], "submitted scheduled")).mean() for name in ("burst", "spaced")}
    means = {name: np.concatenate([notices(run) for run in runs[name]]).mean() for name in runs}

    assert (
        f"in burst, {_between_rounds(runs['burst']) * 100:.0f} % of the variance of `notice` lies between rounds"
        in page
    )
    phrase = f"with the next one's is {neighbours['burst']:.2f} (spaced, 10 s apart: {neighbours['spaced']:.2f})"
    assert phrase in page
    assert f"have a standard deviation of {stdev(spans):.0f} s" in page
    phrase = f"(seven runs between {spans[0]:.0f} and {spans[6]:.0f}, three between {spans[7]:.0f} and {spans[9]:.0f})"
    assert phrase in page
    assert len(pulls["burst"]) == 15
    assert f"fifteen pulls at once took {pulls['burst'].mean():.0f} s each" in page
    assert f"In spaced, one at a time, they took {pulls['spaced'].mean():.1f} s" in page
    assert f"{missing['burst'] * 100:.0f} % of the Scheduled events of burst were not seen" in page
    assert f"In spaced, where {missing['spaced'] * 100:.0f} % are missing" in page
    assert f"its mean is the same within {abs(means['spaced'] / means['burst'] - 1) * 100:.0f} %" in page
    assert f"where `notice` took {means['KIT'] / means['burst']:.1f} times as long" in page


def _pulls(runs: list[RecordedRun]) -> Floats:
    """Return how long the first pods on their nodes waited for a missing image."""
    step = together(runs, "pulling pulled")[np.concatenate([run.is_first for run in runs])]
    return step[step > 3]


def _correlation(runs: list[RecordedRun]) -> float:
    """Return the correlation of the `notice` of a pod with that of the next one."""
    pairs = np.concatenate([np.stack((one[:-1], one[1:])) for one in map(notices, runs)], axis=1)
    return float(np.corrcoef(pairs)[0, 1])


def _between_rounds(runs: list[RecordedRun]) -> float:
    """Return the share of the variance of `notice` that is between the means of rounds."""
    between = whole = 0.0
    for run in runs:
        known = ~run.is_first & ~np.isnan(run.pulling) & ~np.isnan(run.scheduled)
        order = np.argsort(run.pulling[known], kind="stable")
        rounds = np.cumsum(np.diff(run.pulling[known][order], prepend=-np.inf) > _GAP_S)
        values = notices(run)
        for number in range(1, int(rounds[-1]) + 1):
            own = values[rounds == number]
            between += len(own) * (own.mean() - values.mean()) ** 2
        whole += float(((values - values.mean()) ** 2).sum())
    return between / whole
