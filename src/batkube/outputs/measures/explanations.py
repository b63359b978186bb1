"""What the numbers of a report mean, in the words of docs/reference/outputs-metrics.md, on the page that shows them."""

from __future__ import annotations

from collections.abc import Iterable

from batkube.outputs.job_statistics import BOUND_S, NARROW, SHORT_S, UTILISATION_PREFIX

#: Words that columns have in their names, and what is then to be said; the first that fits a column is its own.
_SENTENCES = {
    "makespan": "The makespan is the last finish of a job, counted from 0.",
    "waiting_time_": f"Short jobs run for {SHORT_S / 3600:g} h at most, narrow ones have {NARROW} machines at most.",
    "waiting_time": "A job waits from its submission to its start; p95 is the 95th percentile, interpolated linearly.",
    "bounded_slowdown": "A job's bounded slowdown is max(1, (wait + run time) / max(run time, τ)), "
    f"with τ = {BOUND_S:g} s.",
    "slowdown": "A job's slowdown is (wait + run time) / run time.",
    UTILISATION_PREFIX: "The utilisation of a resource is the share that pods held of what all nodes offered of it.",
    "utilisation": "Utilisation is the share of machines, or of cpu where jobs share machines, that pods held of the "
    "nodes that existed; attempts that were lost and tried again do not count.",
    "fairness_by_user": "Fairness by user is Jain's index of the users' mean bounded slowdowns: 1 where all fared "
    "alike, be it badly, and 1/U at worst among U users.",
    "work_lost": "Work lost is that of attempts which were thrown away, by evictions and failures of nodes.",
}
_WINDOW = (
    "Waits, slowdowns and fairness are of the jobs that started and ended, however they ended, and that were submitted "
    "in the window; utilisation is over the window. It goes from the first submission to the last finish, less warm-up "
    "and cool-down."
)


def column_explanations(columns: Iterable[str]) -> list[str]:
    """Return what is to be said of these columns, each sentence once."""
    found = [next((sentence for part, sentence in _SENTENCES.items() if part in column), "") for column in columns]
    told = list(dict.fromkeys(filter(None, found)))
    return [_WINDOW, *told] if told else []
