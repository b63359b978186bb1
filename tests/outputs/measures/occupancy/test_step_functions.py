from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from batkube.outputs.gantt.model import gantt_model_of
from batkube.outputs.measures.occupancy.step_functions import pod_queue_steps, queue_steps

if TYPE_CHECKING:
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


def test_jobs_and_pods_tell_the_same_where_each_job_waits_once(simulate: Simulate) -> None:
    jobs = [{"id": str(number), "subtime": number, "res": 1 + number % 3, "profile": "d4"} for number in range(12)]

    run = simulate(jobs, PROFILES, platform="3x1")

    moments = np.arange(0.0, 40.0, 0.5)
    assert pod_queue_steps(run.pods).at(moments).tolist() == queue_steps(run.jobs).at(moments).tolist()
