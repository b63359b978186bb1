"""Fit the latencies of a cluster to recorded runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.calibration.cluster_traits import NodeUsage, client_limit
from batkube.calibration.fitting import Fit, fit
from batkube.calibration.recorded_runs import EVENTS, read_recorded_runs
from batkube.calibration.run_times import run_times_in
from batkube.calibration.steps import steps_of
from batkube.execution.latencies.request_limit import RequestLimit
from batkube.kernel.errors import InputError


@dataclass(frozen=True)
class Calibration:
    """The latencies of recorded runs."""

    #: The files of the recorded runs.
    sources: list[Path]
    jobs: int
    #: In the order of a pod's lifecycle.
    fits: list[Fit]
    #: The share of nodes that had the image at the start of a run; None if unknown.
    cached_share: float | None
    client: RequestLimit | None
    nodes: NodeUsage


def calibrate(
    paths: Sequence[Path],
    *,
    workload: Path | None = None,
    nodes: int | None = None,
    families: Mapping[str, str] | None = None,
) -> Calibration:
    """Fit the latencies of recorded runs (output folders or jobs.csv files).

    `workload` is the workload of the runs, for the exact run times of the jobs. `nodes` is the number of nodes of the
    cluster. `families` forces a family of distributions, by step (`notice`, or `notice.first`); "" is for all others.
    """
    recordings = read_recorded_runs(paths)
    usage = NodeUsage(recordings, nodes)
    if nodes is not None and nodes < usage.used:
        problem = f"jobs ran on {usage.used} nodes"
        raise InputError(
            f"--nodes {nodes}", problem=problem, remedy=f"use the number of nodes of the cluster, at least {usage.used}"
        )
    steps = steps_of(recordings, None if workload is None else run_times_in(workload))
    if not any(sample.step not in ("report", "spawn") for sample in steps.samples):
        raise InputError(
            recordings[0].source,
            problem=f"no job has two consecutive events of {', '.join(EVENTS)}, started, so no step can be measured",
            remedy="record the run again, with its events",
        )
    families = families or {}
    fits = []
    for sample in steps.samples:
        step = sample.step.partition(".")[0]
        fits.append(fit(sample, families.get(sample.step, families.get(step, families.get("")))))
    return Calibration(
        sources=[recording.source for recording in recordings],
        jobs=sum(len(recording) for recording in recordings),
        fits=fits,
        cached_share=steps.cached_share,
        client=client_limit(recordings),
        nodes=usage,
    )
