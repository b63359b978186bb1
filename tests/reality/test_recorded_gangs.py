"""Gang schedulers in simulation against the same programs in real time, recorded on a real control plane 1.34.4.

Nothing is fitted to these runs: the times that KWOK needs to start and end pods were measured in another one. The order
of gangs, the seconds between two scheduling cycles of Volcano and kube-batch, kube-batch's five requests a second and
coscheduling's throttling are all effects of the programs themselves.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.simulation.test_gang_schedulers import most_at_once

import batkube
import published
from batkube.kernel.errors import RunFailed
from batkube.outputs.results import Results
from opt_in import require_built

#: The name of each in the catalogue, and in the folder of the recorded runs.
PROGRAMS = {
    "volcano": "volcano@1.10.0",
    "kube-batch": "kube-batch@0.5.0",
    "coscheduling": "scheduler-plugins@0.30.6",
    "kueue": "kueue@0.10.0",
}
COMPANIONS = {"volcano": ("volcano-controller-manager@1.10.0",), "kueue": ("kube-scheduler@1.34.4",)}
RECORDED = {"mixed": "w1", "four": "w3"}
#: The rank correlation between runs of one program in real time: 0.94 to 0.99 (Volcano).
LEAST_CORRELATION = 0.9
#: Four equal gangs of one instant: Kueue orders gangs by seconds, and those of the same second by its heap, which
#: depends on milliseconds (recorded twice: 1, 0, 3, 2; in simulation they come in their order: a correlation of 0.6).
TIES = {("four", "kueue")}


def recorded_runs(shared_data: Path, workload: str, scheduler: str) -> list[pd.DataFrame]:
    folder = shared_data / "gangs" / scheduler
    return [pd.read_csv(path).set_index("gang") for path in sorted(folder.glob(f"{RECORDED[workload]}-?-gangs.csv"))]


@pytest.mark.parametrize(("workload", "scheduler"), list(published.GANGS))
def test_the_documented_ranges_are_those_of_the_recorded_runs(
    shared_data: Path, tmp_path: Path, workload: str, scheduler: str
) -> None:
    runs = recorded_runs(shared_data, workload, scheduler)
    makespans = [run["finished"].max() for run in runs]
    waits = [(run["running"] - run["submit"]).mean() for run in runs]
    ranges = published.GANGS[workload, scheduler]

    assert ranges.makespan_s == pytest.approx((min(makespans), max(makespans)), abs=0.001)
    assert ranges.mean_wait_s == pytest.approx((min(waits), max(waits)), abs=0.001)
    jobs = pd.read_json(published.GANG_WORKLOADS[workload](tmp_path), typ="series")["jobs"]
    planned = runs[0][["submit_planned", "size"]].itertuples(name=None)
    assert [(job["id"], job["subtime"], job["res"]) for job in jobs] == list(planned)


@pytest.mark.parametrize(
    ("workload", "scheduler"), [case for case in published.GANGS if case != ("four", "coscheduling")]
)
def test_makespans_and_waits_of_gangs_are_predicted(
    tmp_path: Path, shared_data: Path, workload: str, scheduler: str
) -> None:
    """Makespan within 3 %, mean wait within 6 % of the recorded ranges; the order as in any two recorded runs."""
    require_built(PROGRAMS[scheduler], *COMPANIONS.get(scheduler, ()))
    run = batkube.run(
        workload=published.GANG_WORKLOADS[workload](tmp_path),
        platform=published.EIGHT_OF_TWO,
        scheduler=PROGRAMS[scheduler],
        latencies=published.KWOK_LATENCIES,
        out=tmp_path / "out",
    )

    (shortest, longest), (least, most) = published.GANGS[workload, scheduler]
    assert 0.97 * shortest <= run.jobs["finish_time"].max() <= 1.03 * longest
    assert 0.94 * least <= run.jobs["waiting_time"].mean() <= 1.06 * most
    assert most_at_once(run.pods) == 2, "nodes of two cpus are used, and never beyond"
    assert set(run.jobs["final_state"]) == {"COMPLETED_SUCCESSFULLY"}
    starts = run.jobs.set_index("job_id")["starting_time"].rank()
    for real in recorded_runs(shared_data, workload, scheduler) if (workload, scheduler) not in TIES else ():
        assert starts.corr(real["running"].rank()) >= LEAST_CORRELATION


def test_coscheduling_is_throttled_as_recorded_if_attempts_take_longer_than_pods_arrive(
    tmp_path: Path, shared_data: Path
) -> None:
    """It requests the PodGroups of two pods whenever it compares them, so its waits depend on the queue's length.

    Pods queue because a failed attempt takes longer than the time between two pods: three requests one after another,
    two for PodGroups and one for the pod's status, on a plane where each took some 10 ms (40 creations, 0.4 to 0.65 s).
    If attempts took no time, the first gang would start after 2 s instead of 6. Between 20 and 40 ms the exact value
    hardly matters.
    """
    require_built(PROGRAMS["coscheduling"])
    pods = batkube.run(
        workload=published.four_interleaved_gangs(tmp_path),
        platform=published.EIGHT_OF_TWO,
        scheduler=PROGRAMS["coscheduling"],
        latencies=published.KWOK_LATENCIES,
        decision_cost="model:30ms",
        out=tmp_path / "out",
    ).pods

    (shortest, longest), (least, most) = published.GANGS["four", "coscheduling"]
    running = pods.groupby(pods["pod"].str[:3])["started"].max()
    assert 0.97 * shortest <= pods["finished"].max() <= 1.03 * longest
    assert 0.94 * least <= running.mean() <= 1.06 * most
    real = [run["running"] for run in recorded_runs(shared_data, "four", "coscheduling")]
    assert len(real) == 3
    for gang, start in running.items():
        starts = [run[gang] for run in real]
        assert 0.94 * min(starts) <= start <= 1.06 * max(starts), gang


def test_the_deadlock_of_kube_scheduler_is_the_recorded_one_and_is_reported_at_once(
    tmp_path: Path, shared_data: Path, kube_scheduler: str
) -> None:
    """Pods of half-started gangs held all 16 cpus after 60 s, and made no progress.

    The number of these gangs is not compared: in the recording each gang's pods were created one after another (four of
    each got a node); here all 40 arrive at once, and the scheduler's heap decides.
    """
    for path in sorted((shared_data / "gangs" / "kube-scheduler").glob("w3-barrier-?-gangs.csv")):
        recorded = pd.read_csv(path)
        assert recorded["finished"].isna().all()
        assert recorded["pods_bound"].sum() == 16

    with pytest.raises(RunFailed) as failure:
        batkube.run(
            workload=published.four_gangs(tmp_path),
            platform=published.EIGHT_OF_TWO,
            scheduler=kube_scheduler,
            latencies=published.KWOK_LATENCIES,
            out=tmp_path / "out",
        )

    stuck = Results(tmp_path / "out")
    assert str(failure.value).startswith("deadlock since")
    held = stuck.pods[stuck.pods["node"] != ""]
    assert len(held) == 16
    assert held["finished"].isna().all()
    assert stuck.schedule["nb_jobs_deadlocked"] == held["job_id"].nunique()
    assert stuck.manifest["end_s"] < 1
