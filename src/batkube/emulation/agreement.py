"""How well a simulated run agrees with a real one of the same workload.

Two runs of the *same* real cluster never agree job by job: which of many waiting pods gets a free node first is a
matter of milliseconds. So there are three looks: the whole run (makespan, mean wait), the starts in order of time
whichever job they are of, and the jobs one by one, with the rank correlation of their starts. What two real runs show
against each other is the yardstick for the third.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from batkube.kernel.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from batkube.outputs.results import Results


@dataclass(frozen=True, slots=True)
class Agreement:
    """A simulated run against a real one; times in seconds, differences simulated minus real."""

    jobs: int
    makespan_real_s: float
    makespan_simulated_s: float
    wait_real_s: float
    wait_simulated_s: float
    #: Of the starts: Spearman's rank correlation over the jobs; None when it is not defined (all start together).
    start_order: float | None
    #: How far the k-th start of one run is from the k-th of the other, over all k.
    kth_start_s_mean: float
    kth_start_s_max: float
    #: How far a job's start in one run is from its start in the other.
    start_s_mean: float
    start_s_max: float

    @property
    def makespan_error(self) -> float:
        """Relative: 0.01 is 1 % too long."""
        return self.makespan_simulated_s / self.makespan_real_s - 1

    @property
    def wait_error(self) -> float:
        """Relative; of the mean wait. Without any wait in reality, the simulated wait in seconds."""
        if not self.wait_real_s:
            return self.wait_simulated_s
        return self.wait_simulated_s / self.wait_real_s - 1


def agreement_of(real: Results, simulated: Results) -> Agreement:
    """Return how the simulated run agrees with the real one, over the jobs that ran in both. Raises InputError."""
    from batkube.outputs.measures.comparisons.run_comparison import rank_correlation

    both = matched_jobs(real, simulated)
    starts = both[["start_real", "start_simulated"]]
    in_order = starts["start_simulated"].sort_values().to_numpy() - starts["start_real"].sort_values().to_numpy()
    apart = (starts["start_simulated"] - starts["start_real"]).abs()
    return Agreement(
        jobs=len(both),
        makespan_real_s=float(both["finish_real"].max()),
        makespan_simulated_s=float(both["finish_simulated"].max()),
        wait_real_s=float(both["wait_real"].mean()),
        wait_simulated_s=float(both["wait_simulated"].mean()),
        start_order=rank_correlation(starts["start_real"], starts["start_simulated"]),
        kth_start_s_mean=float(abs(in_order).mean()),
        kth_start_s_max=float(abs(in_order).max()),
        start_s_mean=float(apart.mean()),
        start_s_max=float(apart.max()),
    )


def matched_jobs(real: Results, simulated: Results) -> pd.DataFrame:
    """Return a row per job that ran in both, with its wait, start and finish in each."""
    frames = []
    for name, results in (("real", real), ("simulated", simulated)):
        jobs = results.jobs.dropna(subset=["starting_time", "finish_time"])
        frame = jobs[["waiting_time", "starting_time", "finish_time"]].set_axis(
            [f"{what}_{name}" for what in ("wait", "start", "finish")], axis="columns"
        )
        frames.append(frame.set_axis(list(zip(jobs["workload_name"], jobs["job_id"], strict=True)), axis="index"))
    both = frames[0].join(frames[1], how="inner")
    if both.empty:
        raise InputError(
            simulated.path,
            problem=f"has no job that also ran in {real.path}",
            remedy="compare runs of the same workload",
        )
    return both


def write_job_comparison(path: Path, both: pd.DataFrame) -> None:
    """Write the jobs of `matched_jobs` side by side, in the order in which they really started."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["workload_name", "job_id", *both.columns, "start_difference"])
        ordered = both.sort_values("start_real", kind="stable")
        ordered["apart"] = ordered["start_simulated"] - ordered["start_real"]
        for key, times in zip(ordered.index, ordered.to_numpy(), strict=True):
            writer.writerow([*key, *(f"{seconds:.6f}" for seconds in times)])
