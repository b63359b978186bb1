"""The steps of a pod's life as samples of recorded times.

    submission ──spawn──▶ scheduled ──notice──▶ pulling ──pull or check──▶ pulled ──create──▶ created ──start──▶ started
    execution time beyond the run time: report

A step is measured wherever both its ends were recorded; a row with a missing event still tells of its other steps.
Times taken when events arrive may be in the wrong order by some milliseconds: such a difference counts as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from batkube.calibration.recorded_runs import Bools, Floats, RecordedRun
from batkube.calibration.run_times import run_times_of

#: An image that is there is checked in much the same time always; one that takes this many times as long as nearly
#: all of these checks was pulled.
_PULL_FACTOR = 2.0
_CHECK_QUANTILE = 0.99
#: First and later pods are kept apart when their means differ by this much and the rest is no chance (two-sample
#: Kolmogorov–Smirnov test at 1 %).
_MIN_DIFFERENCE_S = 0.05
_KS_1_PERCENT = 1.63
#: What a pod waits at least after an attempt that failed (KubeSchedulerConfiguration.podInitialBackoffSeconds).
_MIN_BACK_OFF_S = 1.0


@dataclass(frozen=True)
class StepSample:
    """The recorded times of one step, ascending, in seconds; and of how many pods it is not known."""

    step: str
    values: Floats
    missing: int

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Steps:
    """All samples, and how often a node had the image already when the run began."""

    samples: list[StepSample]
    #: Of the first pods on their nodes, the share that found the image; None when nothing tells.
    cached_share: float | None


def steps_of(recordings: Sequence[RecordedRun], run_times: Mapping[str, float] | None = None) -> Steps:
    """Split recorded runs into steps; `run_times` gives the jobs' run times in seconds by id, where known."""
    is_first = np.concatenate([one.is_first for one in recordings])
    scheduled, pulling, pulled, created, started = (
        np.concatenate([getattr(one, event) for one in recordings])
        for event in ("scheduled", "pulling", "pulled", "created", "started")
    )
    if np.isnan(pulling).all() and np.isnan(pulled).all() and np.isnan(created).all():
        # Simulated kubelets (KWOK) start pods without containers: all there is, is one step.
        created = scheduled
    # A kubelet that finds the image and need not ask the registry reports Pulled without Pulling.
    asks_always = bool((~np.isnan(pulling) & ~is_first).any())
    at_work = pulling if asks_always else np.where(np.isnan(pulling), pulled, pulling)
    fetching = pulled - at_work
    was_pulled = _was_pulled(fetching, is_first)
    report = np.concatenate([one.execution_times - run_times_of(one, run_times) for one in recordings])
    samples = [
        _spawn_sample(recordings),
        *_split_first_pods("notice", at_work - scheduled, is_first),
        _sample("pull", fetching[was_pulled]),
        _sample("check", fetching[~was_pulled] if asks_always else fetching[:0]),
        *_split_first_pods("create", created - pulled, is_first),
        *_split_first_pods("start", started - created, is_first),
        _sample("report", report),
    ]
    firsts = fetching[is_first & ~np.isnan(fetching)]
    cached = 1 - float(was_pulled.sum()) / len(firsts) if len(firsts) else None
    return Steps([sample for sample in samples if len(sample)], cached)


def _sample(step: str, times: Floats) -> StepSample:
    known = times[~np.isnan(times)]
    return StepSample(step, np.sort(np.maximum(known, 0.0)), len(times) - len(known))


def _was_pulled(fetching: Floats, is_first: Bools) -> Bools:
    """Return which pods' images were not on their nodes; only the first pod on a node can find none."""
    checks = fetching[~is_first & ~np.isnan(fetching)]
    if not len(checks):
        return is_first & ~np.isnan(fetching)
    limit = _PULL_FACTOR * float(np.quantile(checks, _CHECK_QUANTILE))
    return is_first & (np.nan_to_num(fetching) > limit)


def _split_first_pods(step: str, times: Floats, is_first: Bools) -> list[StepSample]:
    """Return one sample, or two if the first pods on their nodes took clearly another time than later ones."""
    first, later = _sample(f"{step}.first", times[is_first]), _sample(f"{step}.later", times[~is_first])
    if len(first) and len(later) and _distributions_differ(first.values, later.values):
        return [first, later]
    return [_sample(step, times)]


def _distributions_differ(one: Floats, other: Floats) -> bool:
    if abs(float(one.mean() - other.mean())) < _MIN_DIFFERENCE_S:
        return False
    points = np.concatenate([one, other])
    below_one = np.searchsorted(one, points, side="right") / len(one)
    below_other = np.searchsorted(other, points, side="right") / len(other)
    critical = _KS_1_PERCENT * float(np.sqrt(1 / len(one) + 1 / len(other)))
    return float(np.abs(below_one - below_other).max()) > critical


def _spawn_sample(recordings: Sequence[RecordedRun]) -> StepSample:
    """Return the times from submission to binding of the jobs that met a free node, no queue and no back-off.

    They hold the Job controller's delay and the scheduler's own: the recording cannot tell these apart, and a
    simulated scheduler decides at once.
    """
    return _sample("spawn", np.concatenate([_bound_at_once(one) for one in recordings]))


def _bound_at_once(recording: RecordedRun) -> Floats:
    bound, submitted = recording.bound, recording.submitted
    delays: Floats = recording.scheduled - submitted
    waiting = np.array([np.sum((submitted < at) & (bound > at)) for at in submitted])
    held = np.array([np.sum((bound <= at) & (recording.finished > at)) for at in submitted])
    # Jobs submitted within a moment of each other count as waiting for one another, so nodes must suffice for all.
    # Where jobs differ in size a free node may still be too small: then the first attempt failed.
    met_room: Bools = (held + waiting < peak_concurrency(recording)) & ~(delays >= _MIN_BACK_OFF_S)
    return delays[met_room]


def peak_concurrency(recording: RecordedRun) -> int:
    """Return the largest number of jobs that ran at one time."""
    moments = np.concatenate([recording.started, recording.finished])
    changes = np.concatenate([np.ones(len(recording)), -np.ones(len(recording))])
    order = np.lexsort((changes, moments))
    return int(np.cumsum(changes[order]).max())
