"""Label, unit and preferred direction of each column of schedule.csv and of an experiment's tables.

Tables, comparisons, figures and reports use this list.
"""

from __future__ import annotations

from dataclasses import dataclass

from batkube.outputs.job_statistics import BOUND_S, CLASSES, PERCENTILES, UTILISATION_PREFIX

#: A column that reports add to each run: 1 if it completed, otherwise 0.
COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """A column with one number per run or per job."""

    name: str
    label: str
    #: s, %, bytes, jobs… or empty.
    unit: str = ""
    #: -1 when less is better, 1 when more is better, 0 when neither.
    better: int = 0
    #: Factor from the value in the files to the unit: shares are shown as percentages.
    factor: float = 1.0
    decimals: int = 2
    #: True for real time, CPU time and memory, which differ between otherwise identical runs.
    is_real_time: bool = False

    @property
    def is_time(self) -> bool:
        """True if its unit is seconds."""
        return self.unit == "s"

    @property
    def maximum(self) -> float | None:
        """The largest possible value, in the unit: 100 % for shares; None if there is none."""
        return 100.0 if self.unit == "%" else None


_RUN_COLUMNS = (
    MetricColumn(COMPLETED, "runs completed", "%", 1, 100.0, 1),
    MetricColumn("makespan", "makespan", "s", -1),
    MetricColumn("mean_waiting_time", "mean wait", "s", -1),
    MetricColumn("median_waiting_time", "median wait", "s", -1),
    *(MetricColumn(f"p{rank}_waiting_time", f"p{rank} wait", "s", -1) for rank in PERCENTILES),
    MetricColumn("max_waiting_time", "longest wait", "s", -1),
    *(MetricColumn(f"mean_waiting_time_{kind}", f"mean wait, {kind.replace('_', ' ')}", "s", -1) for kind in CLASSES),
    MetricColumn("mean_turnaround_time", "mean turnaround", "s", -1),
    MetricColumn("max_turnaround_time", "longest turnaround", "s", -1),
    MetricColumn("mean_slowdown", "mean slowdown", "", -1, decimals=3),
    MetricColumn("max_slowdown", "largest slowdown", "", -1, decimals=3),
    MetricColumn("mean_bounded_slowdown", f"mean bounded slowdown (τ = {BOUND_S:g} s)", "", -1, decimals=3),
    MetricColumn("p95_bounded_slowdown", f"p95 bounded slowdown (τ = {BOUND_S:g} s)", "", -1, decimals=3),
    MetricColumn("fairness_by_user", "fairness by user", "", decimals=4),
    MetricColumn("throughput", "throughput", "jobs/h", 1),
    MetricColumn("mean_utilisation", "utilisation", "%", 1, 100.0),
    MetricColumn("success_rate", "success rate", "%", 1, 100.0),
    MetricColumn("nb_jobs", "jobs", decimals=0),
    MetricColumn("nb_jobs_finished", "jobs finished", "", 1, decimals=0),
    MetricColumn("nb_jobs_success", "jobs succeeded", "", 1, decimals=0),
    MetricColumn("nb_jobs_measured", "jobs measured", decimals=0),
    MetricColumn("measured_from", "measured from", "s"),
    MetricColumn("measured_until", "measured until", "s"),
    MetricColumn("nb_jobs_failed", "jobs failed", "", -1, decimals=0),
    MetricColumn("nb_jobs_rejected", "jobs rejected", "", -1, decimals=0),
    MetricColumn("nb_evictions", "evictions", "", -1, decimals=0),
    MetricColumn("work_lost", "work lost", "s", -1),
    MetricColumn("nb_violations", "violations", "", -1, decimals=0),
    MetricColumn("nb_jobs_killed", "jobs killed", "", -1, decimals=0),
    MetricColumn("nb_computing_machines", "machines", decimals=0),
    MetricColumn("time_computing", "machine time computing", "s"),
    MetricColumn("time_idle", "machine time idle", "s", -1),
    MetricColumn("overallocations", "over-allocations", "", -1, decimals=0),
    MetricColumn("nb_jobs_deadlocked", "jobs in a deadlock", "", -1, decimals=0),
    MetricColumn("nb_bindings_refused", "bindings refused", "", -1, decimals=0),
    MetricColumn("nb_pods_rejected", "pods rejected by kubelets", "", -1, decimals=0),
    MetricColumn("cycles", "cycles", decimals=0),
    MetricColumn("cycles_cut_short", "cycles cut short", decimals=0),
    MetricColumn("decisions", "decisions", decimals=0),
    MetricColumn("late_decisions", "late decisions", "", -1, decimals=0),
    MetricColumn("mean_lateness", "mean lateness", "s", -1, decimals=3),
    MetricColumn("max_lateness", "largest lateness", "s", -1, decimals=3),
    MetricColumn("real_s", "real time", "s", -1, is_real_time=True),
    MetricColumn("cpu_s", "CPU time", "s", -1, is_real_time=True),
    MetricColumn("scheduler_cpu_s", "scheduler's CPU time", "s", -1, is_real_time=True),
    MetricColumn("peak_memory_bytes", "peak memory", "MiB", -1, 1 / 2**20, 0, is_real_time=True),
    MetricColumn("virtual_per_real", "speed", "× real time", 1, decimals=0, is_real_time=True),
)
#: Numbers of each job, for distributions.
_PER_JOB_COLUMNS = (
    MetricColumn("waiting_time", "wait", "s", -1),
    MetricColumn("turnaround_time", "turnaround", "s", -1),
    MetricColumn("bounded_slowdown", f"bounded slowdown (τ = {BOUND_S:g} s)", "", -1, decimals=3),
)
JOB_COLUMNS = tuple(column.name for column in _PER_JOB_COLUMNS)
_BY_NAME = {column.name: column for column in _RUN_COLUMNS}

#: Columns to be read before any mean.
FAILURE_COLUMNS = ("nb_violations", "overallocations", "nb_jobs_rejected", "nb_jobs_failed")
#: Columns of an experiment's first table, as far as its runs have them.
MAIN_COLUMNS = (
    *FAILURE_COLUMNS,
    "makespan",
    "mean_waiting_time",
    "median_waiting_time",
    "p95_waiting_time",
    "max_waiting_time",
    "mean_bounded_slowdown",
    "mean_utilisation",
    "fairness_by_user",
    "nb_evictions",
    "work_lost",
    "nb_jobs_killed",
    "real_s",
)


def column_of(name: str) -> MetricColumn:
    """Return the column called `name`; the label of an unknown one is its name."""
    if name.startswith(UTILISATION_PREFIX):
        return MetricColumn(name, f"utilisation of {name.removeprefix(UTILISATION_PREFIX)}", "%", 1, 100.0)
    return _BY_NAME.get(name) or MetricColumn(name, name.replace("_", " "))


def job_column_of(name: str) -> MetricColumn:
    """Return the column called `name` of single jobs, one of `JOB_COLUMNS`."""
    return next(column for column in _PER_JOB_COLUMNS if column.name == name)
