"""Utilisation and queue length over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.outputs.gantt.model import gantt_model_of
from batkube.outputs.measures.occupancy.step_functions import StepFunction, pod_queue_steps, queue_steps

if TYPE_CHECKING:
    from tests.run_folders import MakeRun

    from conftest import Simulate


PROFILES = {"d10": {"type": "delay", "delay": 10}, "d4": {"type": "delay", "delay": 4}}


def test_an_evicted_job_does_not_wait_while_it_runs(simulate: Simulate) -> None:
    jobs = [
        {"id": "low", "subtime": 0, "res": 1, "profile": "d10"},
        {"id": "high", "subtime": 6, "res": 1, "profile": "d4", "priority": 5},
    ]

    run = simulate(jobs, PROFILES, platform="1x1", scheduler="policy:priority")

    waiting = gantt_model_of(run, title=None, color_by="job", window=None).queue
    assert waiting.at(np.array([1.0, 5.0, 7.0, 9.0, 11.0, 19.0])).tolist() == [0, 0, 1, 1, 0, 0]


def test_jobs_and_pods_agree_if_each_job_waits_once(simulate: Simulate) -> None:
    jobs = [{"id": str(number), "subtime": number, "res": 1 + number % 3, "profile": "d4"} for number in range(12)]

    run = simulate(jobs, PROFILES, platform="3x1")

    moments = np.arange(0.0, 40.0, 0.5)
    assert pod_queue_steps(run.pods).at(moments).tolist() == queue_steps(run.jobs).at(moments).tolist()


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 9)), min_size=1, max_size=30, unique_by=lambda step: step[0])
)
def test_averaging_a_curve_keeps_its_area(steps: list[tuple[int, int]]) -> None:
    steps.sort()
    curve = StepFunction(np.array([time for time, _ in steps], float), np.array([value for _, value in steps], float))
    fine = np.linspace(0, 101, 102)

    averaged = curve.averaged(np.linspace(0, 101, 8))

    area = (curve.at(fine[:-1]) * np.diff(fine)).sum()
    assert (averaged.values[:-1] * np.diff(averaged.times)).sum() == pytest.approx(area)


def test_rejected_jobs_do_not_queue_for_ever(make_run: MakeRun) -> None:
    jobs = make_run([("1", 0, 5, 9, "0"), ("2", 1, None, None, "", {"final_state": "REJECTED"})]).jobs

    assert queue_steps(jobs).at(np.array([0.0, 4.0, 5.0, 9.0])).tolist() == [1, 1, 0, 0]
