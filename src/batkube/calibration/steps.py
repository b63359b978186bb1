"""Split the start of a pod into steps, and collect their recorded times.

    submission ──spawn──▶ scheduled ──notice──▶ pulling ──pull or check──▶ pulled ──create──▶ created ──start──▶ started
    execution time beyond the run time: report

A step is measured if both its ends were recorded, whatever other events of the pod are missing. Events may arrive out
of order by some milliseconds: a negative time counts as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from batkube.calibration.recorded_runs import Bools, Floats, RecordedRun
from batkube.calibration.run_times import run_times_of

#: Checks of present images take similar times. An image was pulled if it took this many times as long as nearly all
#: checks: this quantile of their times.
_PULL_FACTOR = 2.0
_CHECK_QUANTILE = 0.99
#: First and later pods are separate samples if their means differ by at least this and their distributions differ
#: significantly (two-sample Kolmogorov–Smirnov test at 1 %).
_MIN_DIFFERENCE_S = 0.05
_KS_1_PERCENT = 1.63
#: The minimum delay after a failed scheduling attempt (KubeSchedulerConfiguration.podInitialBackoffSeconds).
_MIN_BACK_OFF_S = 1.0


@dataclass(frozen=True)
class StepSample:
    """The recorded times of one step in seconds, ascending, and the number of pods without one."""

    step: str
    values: Floats
    missing: int

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Steps:
    """All samples, and how often a node had the image at the start of a run."""

    samples: list[StepSample]
    #: The share of first pods on a node whose image was present; None if unknown.
    cached_share: float | None


def steps_of(recordings: Sequence[RecordedRun], run_times: Mapping[str, float] | None = None) -> Steps:
    """Split recorded runs into steps; `run_times` are the run times of jobs in seconds, by id, if known."""
    is_first = np.concatenate([recording.is_first for recording in recordings])
    scheduled, pulling, pulled, created, started = (
        np.concatenate([getattr(recording, event) for recording in recordings])
        for event in ("scheduled", "pulling", "pulled", "created", "started")
    )
    if np.isnan(pulling).all() and np.isnan(pulled).all() and np.isnan(created).all():
        # Simulated kubelets (KWOK) have no containers, so there is only one step.
        created = scheduled
    # If the image is present and need not be checked, the kubelet reports Pulled without Pulling
    # (Kubernetes: pkg/kubelet/images/image_manager.go, EnsureImageExists).
    always_contacts_registry = bool((~np.isnan(pulling) & ~is_first).any())
    noticed = pulling if always_contacts_registry else np.where(np.isnan(pulling), pulled, pulling)
    image_times = pulled - noticed
    was_pulled = _was_pulled(image_times, is_first)
    report = np.concatenate(
        [recording.execution_times - run_times_of(recording, run_times) for recording in recordings]
    )
    samples = [
        _spawn_sample(recordings),
        *_split_first_pods("notice", noticed - scheduled, is_first),
        _sample("pull", image_times[was_pulled]),
        _sample("check", image_times[~was_pulled] if always_contacts_registry else image_times[:0]),
        *_split_first_pods("create", created - pulled, is_first),
        *_split_first_pods("start", started - created, is_first),
        _sample("report", report),
    ]
    first_pulls = image_times[is_first & ~np.isnan(image_times)]
    cached = 1 - float(was_pulled.sum()) / len(first_pulls) if len(first_pulls) else None
    return Steps([sample for sample in samples if len(sample)], cached)


def _sample(step: str, times: Floats) -> StepSample:
    recorded = times[~np.isnan(times)]
    return StepSample(step, np.sort(np.maximum(recorded, 0.0)), len(times) - len(recorded))


def _was_pulled(image_times: Floats, is_first: Bools) -> Bools:
    """Return which pods pulled their image; only the first pod on a node can."""
    checks = image_times[~is_first & ~np.isnan(image_times)]
    if not len(checks):
        return is_first & ~np.isnan(image_times)
    threshold = _PULL_FACTOR * float(np.quantile(checks, _CHECK_QUANTILE))
    return is_first & (np.nan_to_num(image_times) > threshold)


def _split_first_pods(step: str, times: Floats, is_first: Bools) -> list[StepSample]:
    """Return one sample, or two if the times of the first pods on nodes differ significantly from later ones."""
    first, later = _sample(f"{step}.first", times[is_first]), _sample(f"{step}.later", times[~is_first])
    if len(first) and len(later) and _distributions_differ(first.values, later.values):
        return [first, later]
    return [_sample(step, times)]


def _distributions_differ(first: Floats, later: Floats) -> bool:
    if abs(float(first.mean() - later.mean())) < _MIN_DIFFERENCE_S:
        return False
    points = np.concatenate([first, later])
    first_shares = np.searchsorted(first, points, side="right") / len(first)
    later_shares = np.searchsorted(later, points, side="right") / len(later)
    critical = _KS_1_PERCENT * float(np.sqrt(1 / len(first) + 1 / len(later)))
    return float(np.abs(first_shares - later_shares).max()) > critical


def _spawn_sample(recordings: Sequence[RecordedRun]) -> StepSample:
    """Return the times from submission to binding of jobs that found a free node, without queue or back-off.

    They include the delays of the Job controller and of the scheduler, which a recording cannot separate; a simulated
    scheduler decides at once.
    """
    return _sample("spawn", np.concatenate([_bound_at_once(recording) for recording in recordings]))


def _bound_at_once(recording: RecordedRun) -> Floats:
    bound, submitted = recording.bound, recording.submitted
    delays: Floats = recording.scheduled - submitted
    waiting = np.array([np.sum((submitted < at) & (bound > at)) for at in submitted])
    occupied = np.array([np.sum((bound <= at) & (recording.finished > at)) for at in submitted])
    # A job counts as waiting while others are being bound, so nodes must suffice for all of them.
    # A free node may be too small for a job; then the first attempt failed and the delay is that of the back-off.
    had_free_node: Bools = (occupied + waiting < peak_concurrency(recording)) & ~(delays >= _MIN_BACK_OFF_S)
    return delays[had_free_node]


def peak_concurrency(recording: RecordedRun) -> int:
    """Return the maximum number of jobs that ran concurrently."""
    times = np.concatenate([recording.started, recording.finished])
    changes = np.concatenate([np.ones(len(recording)), -np.ones(len(recording))])
    order = np.lexsort((changes, times))
    return int(np.cumsum(changes[order]).max())
