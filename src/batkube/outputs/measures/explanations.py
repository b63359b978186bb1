"""Explanations of the numbers in a report, after docs/reference/outputs-metrics.md, for the page that shows them."""

from __future__ import annotations

from collections.abc import Iterable

from batkube.outputs.job_statistics import BOUND_S, NARROW, SHORT_S, UTILISATION_PREFIX

#: Explanation of each column by a part of its name; the first match counts.
_SENTENCES = {
    "makespan": "The makespan is the time at which the last job finishes, counted from 0.",
    "waiting_time_": f"Short jobs run for at most {SHORT_S / 3600:g} h, narrow ones have at most {NARROW} machines.",
    "waiting_time": "A job waits from its submission to its start; p95 is the 95th percentile, interpolated linearly.",
    "bounded_slowdown": "A job's bounded slowdown is max(1, (wait + run time) / max(run time, τ)), "
    f"with τ = {BOUND_S:g} s.",
    "slowdown": "A job's slowdown is (wait + run time) / run time.",
    UTILISATION_PREFIX: "The utilisation of a resource is the amount that pods held, as a share of what nodes offered.",
    "utilisation": "Utilisation is the share of the existing machines, or of their cpu if jobs share machines, that "
    "pods held; lost attempts that were repeated do not count.",
    "fairness_by_user": "Fairness by user is Jain's index of the users' mean bounded slowdowns: 1 if all users have "
    "the same one, good or bad, and 1/U if one alone has any. It has no best value.",
    "work_lost": "Work lost is the work of attempts that ended with an eviction or a node failure.",
}
_WINDOW = (
    "Waits, slowdowns and fairness are over the jobs that were submitted in the measured window and that started and "
    "ended, in whatever final state; utilisation is over the window. The window lasts from the first submission to the "
    "last finish, without warm-up and cool-down."
)


def column_explanations(columns: Iterable[str]) -> list[str]:
    """Return the explanations of these columns, each once."""
    matches = [next((sentence for part, sentence in _SENTENCES.items() if part in column), "") for column in columns]
    sentences = list(dict.fromkeys(filter(None, matches)))
    return [_WINDOW, *sentences] if sentences else []
