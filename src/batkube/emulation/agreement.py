"""Compare a simulated run with a real run of the same workload.

Two runs on the same real cluster never agree job by job, because milliseconds decide which of many waiting pods gets a
free node. The comparison therefore has three levels:

- the whole run: makespan and mean wait, - the k-th start of each run, whichever job it is of, - the start of each job,
and the rank correlation of the starts. Compare these with the difference between two real runs.
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
    """The agreement of a simulated and a real run; times in seconds, differences simulated minus real."""

    jobs: int
    makespan_real_s: float
    makespan_simulated_s: float
    wait_real_s: float
    wait_simulated_s: float
    #: Spearman's rank correlation of the starts over the jobs; None if undefined (all start together).
    start_order: float | None
    #: The distance between the k-th starts of the two runs, over all k.
    kth_start_s_mean: float
    kth_start_s_max: float
    #: The distance between the two starts of a job, over all jobs.
    start_s_mean: float
    start_s_max: float

    @property
    def makespan_error(self) -> float:
        """The relative error of the makespan: 0.01 is 1 % too long."""
        return self.makespan_simulated_s / self.makespan_real_s - 1

    @property
    def wait_error(self) -> float:
        """The relative error of the mean wait; the simulated wait in seconds if the real one is 0."""
        if not self.wait_real_s:
            return self.wait_simulated_s
        return self.wait_simulated_s / self.wait_real_s - 1


def agreement_of(real: Results, simulated: Results) -> Agreement:
    """Compare the jobs that ran in both runs. Raises InputError."""
    from batkube.outputs.measures.comparisons.run_comparison import rank_correlation

    both = matched_jobs(real, simulated)
    starts = both[["start_real", "start_simulated"]]
    kth_differences = starts["start_simulated"].sort_values().to_numpy() - starts["start_real"].sort_values().to_numpy()
    distances = (starts["start_simulated"] - starts["start_real"]).abs()
    return Agreement(
        jobs=len(both),
        makespan_real_s=float(both["finish_real"].max()),
        makespan_simulated_s=float(both["finish_simulated"].max()),
        wait_real_s=float(both["wait_real"].mean()),
        wait_simulated_s=float(both["wait_simulated"].mean()),
        start_order=rank_correlation(starts["start_real"], starts["start_simulated"]),
        kth_start_s_mean=float(abs(kth_differences).mean()),
        kth_start_s_max=float(abs(kth_differences).max()),
        start_s_mean=float(distances.mean()),
        start_s_max=float(distances.max()),
    )


def matched_jobs(real: Results, simulated: Results) -> pd.DataFrame:
    """Return the wait, start and finish in both runs of each job that ran in both."""
    frames = []
    for name, results in (("real", real), ("simulated", simulated)):
        jobs = results.jobs.dropna(subset=["starting_time", "finish_time"])
        columns = jobs[["waiting_time", "starting_time", "finish_time"]].set_axis(
            [f"{time}_{name}" for time in ("wait", "start", "finish")], axis="columns"
        )
        frames.append(columns.set_axis(list(zip(jobs["workload_name"], jobs["job_id"], strict=True)), axis="index"))
    both = frames[0].join(frames[1], how="inner")
    if both.empty:
        raise InputError(
            simulated.path,
            problem=f"has no job that also ran in {real.path}",
            remedy="compare runs of the same workload",
        )
    return both


def write_job_comparison(path: Path, both: pd.DataFrame) -> None:
    """Write the jobs of `matched_jobs` side by side, in the order of their real starts."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["workload_name", "job_id", *both.columns, "start_difference"])
        ordered = both.sort_values("start_real", kind="stable")
        ordered["start_difference"] = ordered["start_simulated"] - ordered["start_real"]
        for key, times in zip(ordered.index, ordered.to_numpy(), strict=True):
            writer.writerow([*key, *(f"{seconds:.6f}" for seconds in times)])
